/* SPDX-License-Identifier: MIT. protonview_streams.c: the verb streams: what each stream of each GPU did. */
#include <stdio.h>

#include "sheet.h"
#include "streams.h"

static const struct sheet_column columns[] = {{"pid", NULL, SHEET_COUNT, 0, 0},
	{"rank", NULL, SHEET_COUNT, 0, 0}, {NULL, "of", SHEET_TEXT, 0, 4},
	{"gpu", "GPU", SHEET_COUNT, 0, 0}, {"context", "context", SHEET_COUNT, 0, 5},
	{"stream", "stream", SHEET_COUNT, 0, 0}, {"streams", NULL, SHEET_COUNT, 0, 0},
	{"operations", "work", SHEET_COUNT, 0, 0}, {"busy", "busy/ms", SHEET_MS, 0, 0},
	{"active", "of all", SHEET_PERCENT, 0, 3}, {"beside", "beside/ms", SHEET_MS, 0, 1},
	{"span", NULL, SHEET_MS, 0, 0}, {"efficiency", "efficiency", SHEET_PERCENT, 0, 0},
	{"gaps", "gaps", SHEET_COUNT, 0, 0}, {"gap", "gaps/ms", SHEET_MS, 0, 2},
	{"longest_gap", "longest/ms", SHEET_MS, 0, 0}, {"sum", NULL, SHEET_MS, 0, 0},
	{"window", NULL, SHEET_MS, 0, 0}, {"name", NULL, SHEET_TEXT, 0, 0}};

#define NAMES_SHOWN 32u

static double share(uint64_t of, uint64_t whole)
{
	return whole > 0 ? (double)of / (double)whole : (double)NAN;
}

static void put_row(struct sheet *s, const struct streams_row *r)
{
	const double none = (double)NAN;
	char of[32];

	sheet_number(s, (double)r->pid);
	sheet_number(s, r->rank >= 0 ? (double)r->rank : none);
	if (r->rank >= 0)
		snprintf(of, sizeof(of), "rank %lld", (long long)r->rank);
	else
		snprintf(of, sizeof(of), "pid %lld", (long long)r->pid);
	sheet_text(s, of);
	sheet_number(s, r->gpu);
	sheet_number(s, r->streams == 0 ? r->context : none);
	sheet_number(s, r->streams == 0 ? r->stream : none);
	sheet_number(s, r->streams == 0 ? none : r->streams);
	sheet_number(s, (double)r->ops);
	sheet_number(s, (double)r->busy_ns);
	sheet_number(s, share(r->busy_ns, r->window_ns));
	sheet_number(s, (double)(r->busy_ns - r->alone_ns));
	sheet_number(s, (double)r->span_ns);
	sheet_number(s, share(r->busy_ns, r->span_ns));
	sheet_number(s, (double)r->gaps);
	sheet_number(s, (double)(r->span_ns - r->busy_ns));
	sheet_number(s, (double)r->longest_ns);
	sheet_number(s, (double)r->sum_ns);
	sheet_number(s, (double)r->window_ns);
	sheet_text(s, r->name[0] != '\0' ? r->name : NULL);
}

static void put_names(struct sheet *s, const struct streams *v)
{
	uint32_t i, n = 0;

	for (i = 0; i < v->n && n < NAMES_SHOWN && !s->json; i++) {
		if (v->row[i].name[0] == '\0')
			continue;
		sheet_note(s, "GPU %u stream %u is the program's '%s'.", v->row[i].gpu,
			v->row[i].stream, v->row[i].name);
		n++;
	}
}

static void put_notes(struct run *run, struct sheet *s, const struct streams *v)
{
	const struct streams_row *r;

	for (r = v->row; r < v->row + v->n; r++)
		if (r->streams > 1 && r->busy_ns > 0)
			sheet_note(s,
				"GPU %u of %s %lld: %u streams; while it worked %.2f ran side "
				"by "
				"side, which hid %.1f%% of their work.",
				r->gpu, r->rank >= 0 ? "rank" : "process",
				(long long)(r->rank >= 0 ? r->rank : r->pid), r->streams,
				share(r->sum_ns, r->busy_ns),
				100 * share(r->sum_ns - r->busy_ns, r->sum_ns));
	put_names(s, v);
	if (!s->json)
		sheet_note(s,
			"stream -: all of the GPU, together. beside: while another stream of it "
			"worked; gaps: within its first work and its last; efficiency: busy of "
			"that time.");
	if (v->left_out > 0)
		warning_add(&run->warnings,
			"streams: %llu operations are left out, also of their GPU's row: there are "
			"more than %u streams; --window A..B or --step N looks at fewer",
			(unsigned long long)v->left_out, STREAMS_MAX);
}

static void put(struct run *run, const struct profile *p, const struct streams *v)
{
	const uint32_t most = run_given(run, OPT_ROWS) ? run->print.rows : 0;
	struct sheet s;
	uint32_t i;

	sheet_open(&s, run, "streams", p, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < v->n && (s.json || most == 0 || i < most); i++)
		put_row(&s, &v->row[i]);
	if (i < v->n)
		sheet_note(&s, "%u more; -n N shows N", v->n - i);
	put_notes(run, &s, v);
	sheet_close(&s, p);
}

int view_streams(struct run *run)
{
	struct profile *p = NULL;
	struct streams v = {0};
	int r = sheet_source(run, streams_read, &v, &p);

	if (r == 0 && v.n == 0)
		r = err_set(&run->e, -ENOENT, "no work of a GPU is in it; %s",
			p->head.gpu_why != NULL ? p->head.gpu_why
						: "`protonview tree` shows what was recorded");
	if (r == 0)
		put(run, p, &v);
	streams_fini(&v);
	profile_free(p);
	return r;
}
