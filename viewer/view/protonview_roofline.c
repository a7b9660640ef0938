/* SPDX-License-Identifier: MIT. protonview_roofline.c: the verb roofline: flops and bytes against the peaks of a GPU. */
#include <stdlib.h>
#include <string.h>

#include "roofline.h"
#include "sheet.h"

#define ROWS 20u /* shown, without --rows */

static const struct sheet_column columns[] = {{"time", "gpu/ms", SHEET_MS, 0, 0},
	{"flops", "GFLOP", SHEET_NUMBER, 0, 3}, {"bytes", "GB", SHEET_NUMBER, 0, 4},
	{"intensity", "flop/byte", SHEET_NUMBER, 0, 2},
	{"flops_per_s", "TFLOP/s", SHEET_NUMBER, 0, 0}, {"bytes_per_s", "GB/s", SHEET_NUMBER, 0, 1},
	{"bound", "bound by", SHEET_TEXT, 0, 0}, {"util", "of roof", SHEET_PERCENT, 0, 0},
	{"path", "in", SHEET_TEXT, 12, 0}};

static double rate(double of, double ns, double unit)
{
	return of > 0 && ns > 0 ? of / ns * 1e9 / unit : (double)NAN;
}

static double told(double v, double unit)
{
	return v > 0 ? v / unit : (double)NAN;
}

static void put_row(
	struct run *run, struct sheet *s, const struct profile *p, const struct roofline_row *r)
{
	const double giga = s->json ? 1 : 1e9, tera = s->json ? 1 : 1e12;
	struct text path = {0};
	size_t n;
	char *words;

	sheet_number(s, r->ns);
	sheet_number(s, told(r->flops, giga));
	sheet_number(s, told(r->bytes, giga));
	sheet_number(s, r->flops > 0 && r->bytes > 0 ? r->flops / r->bytes : (double)NAN);
	sheet_number(s, rate(r->flops, r->ns, tera));
	sheet_number(s, rate(r->bytes, r->ns, giga));
	sheet_text(s, r->bound != BOUND_UNKNOWN ? roofline_words[r->bound] : NULL);
	sheet_number(s, r->util);
	if (r->node == 0)
		text_str(&path, p->node[0].name);
	else
		run_path(run, &path, p, r->node, "/");
	if (text_take(&path, &words, &n) < 0)
		words = NULL;
	sheet_text(s, words);
	free(words);
}

static void put_notes(struct sheet *s, const struct profile *p, const struct roofline *r)
{
	if (!isnan(r->mfu))
		sheet_note(s, "MFU %.1f%%: the flops at their peak, of the recorded time%s. %s",
			100 * r->mfu, r->gpus > 1 ? " of all GPUs that worked" : "",
			r->mfu > 1 ? "No GPU does so much: the flops that were given are wrong."
				   : "It is right as far as all of the model's flops were given.");
	if (r->peaks.code != 0)
		sheet_note(s, "No roof: %s.",
			r->peaks.text + (strncmp(r->peaks.text, "util: ", 6) == 0 ? 6 : 0));
	else if (isnan(r->row[0].compute_ns) && isnan(r->row[0].memory_ns) && r->device == NULL)
		sheet_note(s, p->n_devices > 0
				      ? "No roof: the GPUs that worked differ."
				      : "No roof: no GPU was recorded, whose peaks would be it.");
	if (r->unsized)
		sheet_note(s, "Some have `flops` of no width, and so no peak: give flops8, "
			      "flops16, flops32 "
			      "or flops64.");
	if (!s->json)
		sheet_note(s, "of roof: the least time that flops and bytes need at the GPU's "
			      "peaks, of the "
			      "time of the GPU work in it; peaks are of docs/metrics.md.");
}

static void put(struct run *run, const struct profile *p, const struct roofline *r)
{
	const uint32_t most = run_given(run, OPT_ROWS) ? run->print.rows : ROWS;
	struct sheet s;
	uint32_t i;

	sheet_open(&s, run, "roofline", p, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < r->n && (s.json || most == 0 || i < most); i++)
		put_row(run, &s, p, &r->row[i]);
	if (i < r->n)
		sheet_note(&s, "%u more; -n N shows N, -n 0 all", r->n - i);
	put_notes(&s, p, r);
	sheet_close(&s, p);
}

int view_roofline(struct run *run)
{
	struct profile *p = NULL;
	struct roofline *r = NULL;
	int status = sheet_profile(run, &p);

	if (status == 0)
		status = roofline_new(p, &r);
	if (status == -ENODATA && run_part(run))
		status = err_set(&run->e, -ENODATA,
			"nothing in that part was given flops or bytes; without --window, --step "
			"and "
			"--scope the whole session is shown");
	else if (status == -ENODATA)
		status = err_set(&run->e, -ENODATA,
			"nothing was given flops or bytes: a scope has them as protond.scope(NAME, "
			"{\"flops16\": F, \"bytes\": B}), Triton's kernels by their "
			"launch_metadata");
	else if (status == -ENOMEM)
		status = err_set(&run->e, status, "out of memory");
	if (status == 0)
		put(run, p, r);
	roofline_free(r);
	profile_free(p);
	return status;
}
