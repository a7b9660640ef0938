/* SPDX-License-Identifier: MIT. protonview_launches.c: the verb launches: kernels by how they are launched. */
#include <stdio.h>

#include "launches.h"
#include "sheet.h"

#define ROWS 20u /* shown, without --rows */

static const struct sheet_column columns[] = {{"time", "time/ms", SHEET_MS, 0, 0},
	{"share", "share", SHEET_PERCENT, 0, 6}, {"count", "count", SHEET_COUNT, 0, 0},
	{"avg", "avg/us", SHEET_US, 0, 4}, {"grid", "grid", SHEET_TEXT, 0, 0},
	{"block", "block", SHEET_TEXT, 0, 2}, {"registers", "regs", SHEET_COUNT, 0, 7},
	{"shared", "shared/B", SHEET_COUNT, 0, 8}, {"occupancy", "occ", SHEET_PERCENT, 0, 0},
	{"limit", "by", SHEET_TEXT, 0, 3}, {"waves", "waves", SHEET_NUMBER, 0, 0},
	{"tail", "tail", SHEET_PERCENT, 0, 5}, {"name", "kernel", SHEET_TEXT, 16, 0}};

struct axes {
	char text[40];
};

/* "132", "8x4": axes of 1 at the end are left out. */
static const char *axes(const uint32_t v[3], struct axes *buf)
{
	if (v[2] > 1)
		snprintf(buf->text, sizeof(buf->text), "%ux%ux%u", v[0], v[1], v[2]);
	else if (v[1] > 1)
		snprintf(buf->text, sizeof(buf->text), "%ux%u", v[0], v[1]);
	else
		snprintf(buf->text, sizeof(buf->text), "%u", v[0]);
	return buf->text;
}

static void put_config(struct sheet *s, const struct profile_config *c)
{
	struct axes a, b;
	const double none = (double)NAN;

	sheet_text(s, c != NULL ? axes(c->grid, &a) : NULL);
	sheet_text(s, c != NULL ? axes(c->block, &b) : NULL);
	sheet_number(s, c != NULL ? c->registers : none);
	sheet_number(s, c != NULL ? (double)c->static_shared + c->dynamic_shared : none);
}

static void put_row(
	struct run *run, struct sheet *s, const struct launches *l, const struct launches_row *r)
{
	const struct occupancy *o = r->has_occupancy ? &r->occupancy : NULL;
	const double none = (double)NAN;

	sheet_number(s, r->ns);
	sheet_number(s, l->ns > 0 ? r->ns / l->ns : none);
	sheet_number(s, r->count);
	sheet_number(s, r->count > 0 ? r->ns / r->count : none);
	put_config(s, r->config);
	sheet_number(s, o != NULL ? o->share : none);
	sheet_text(s, o != NULL ? occupancy_words[o->limit] : NULL);
	sheet_number(s, o != NULL ? o->waves : none);
	sheet_number(s, o != NULL ? o->tail : none);
	sheet_text(s, names_show(run->names, r->name));
}

static void put_notes(struct sheet *s, const struct launches *l)
{
	const struct profile_device *d = l->device;

	if (l->count > 0)
		sheet_note(s,
			"small: %.0f of %.0f launches (%.1f%%) are of kernels under 10 us on "
			"average; "
			"they have %.1f%% of the time.",
			l->small, l->count, 100 * l->small / l->count,
			l->ns > 0 ? 100 * l->small_ns / l->ns : 0);
	if (d == NULL)
		sheet_note(s,
			"Occupancy is not known: the GPUs that worked differ, or none is named.");
	else if (!l->row[0].has_occupancy && l->row[0].config != NULL && d->arch == 0)
		sheet_note(s, "Occupancy is not known: nor is the GPU's architecture.");
	else if (!l->row[0].has_occupancy && l->row[0].config != NULL)
		sheet_note(s,
			"Occupancy is not known: no limits of architecture '%.16s' are in our "
			"table.",
			d->arch_text);
	else
		sheet_note(s,
			"occ: the warps that an SM can hold of it, and what holds it at that; "
			"waves: its "
			"blocks by what %u SMs hold at once; tail: what of them the last wave "
			"leaves empty.",
			(unsigned)d->num_sms);
	if (l->row[0].config == NULL)
		sheet_note(s,
			"How it was launched is not known of some: configurations are in a session "
			"and its portable file, not in a .hatchet file.");
	if (l->shared_out)
		sheet_note(s, "Where a kernel has several configurations at one place of the tree, "
			      "each has "
			      "its time by how often it was launched.");
}

static void put(struct run *run, const struct profile *p, const struct launches *l)
{
	const uint32_t most = run_given(run, OPT_ROWS) ? run->print.rows : ROWS;
	struct sheet s;
	uint32_t i;

	sheet_open(&s, run, "launches", p, columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < l->n && (s.json || most == 0 || i < most); i++)
		put_row(run, &s, l, &l->row[i]);
	if (i < l->n)
		sheet_note(&s, "%u more; -n N shows N, -n 0 all", l->n - i);
	put_notes(&s, l);
	sheet_close(&s, p);
}

int view_launches(struct run *run)
{
	struct profile *p = NULL;
	struct launches *l = NULL;
	int r = sheet_profile(run, &p);

	if (r == 0)
		r = launches_new(p, &l);
	if (r == -ENODATA)
		r = err_set(&run->e, r, "no kernels in it; %s",
			p->head.gpu_why != NULL
				? p->head.gpu_why
				: "`protonctl doctor` says whether they can be recorded");
	else if (r == -ENOMEM)
		r = err_set(&run->e, r, "out of memory");
	if (r == 0)
		put(run, p, l);
	launches_free(l);
	profile_free(p);
	return r;
}
