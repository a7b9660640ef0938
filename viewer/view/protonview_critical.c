/* SPDX-License-Identifier: MIT. protonview_critical.c: the verb critical: what bounds a step. */
#include "critical.h"
#include "session_terms.h"
#include "sheet.h"

#define ROWS 12u /* names shown, without --rows */

static const struct {
	const char *word, *what;
} parts[CRITICAL_N] = {
#define X(name, word, what) [CRITICAL_##name] = {word, what},
	CRITICAL_PARTS(X)
#undef X
};

static int read_it(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	return critical_read(db, id, s, ret_left, arg, e);
}

struct line { /* NULL, NAN: none */
	const char *part, *name;
	double ns, times, gain_ns;
};

static void put_line(struct sheet *s, const struct line *l, double whole)
{
	sheet_number(s, l->ns);
	sheet_number(s, l->ns / whole);
	sheet_number(s, l->times);
	sheet_number(s, l->gain_ns);
	sheet_text(s, l->part);
	sheet_text(s, l->name);
}

static void put_lines(struct run *run, struct sheet *s, const struct critical *c)
{
	const double whole = (double)(c->end_ns - c->begin_ns), none = (double)NAN;
	const uint32_t most = s->json || (run_given(run, OPT_ROWS) && run->print.rows == 0)
				      ? CRITICAL_ROWS_MAX
			      : run_given(run, OPT_ROWS) ? run->print.rows
							 : ROWS;
	uint32_t i;

	put_line(s, &(struct line){"all", NULL, whole, none, none}, whole);
	for (i = 0; i < CRITICAL_N; i++)
		if (c->part_ns[i] > 0)
			put_line(s,
				&(struct line){
					parts[i].word, NULL, (double)c->part_ns[i], none, none},
				whole);
	for (i = 0; i < c->n_rows && i < most; i++) {
		const struct critical_row *v = &c->row[i];
		const char *name = *v->name != '\0' ? names_show(run->names, v->name) : NULL;

		put_line(s,
			&(struct line){
				parts[v->part].word, name, (double)v->ns, v->times, v->gain_ns},
			whole);
	}
	if (c->n_rows > most)
		sheet_note(s, "%u names more, of %u; -n N shows N", c->n_rows - most,
			c->n_rows + c->left_out);
	else if (c->left_out > 0)
		sheet_note(
			s, "%u more names have %.3f ms", c->left_out, (double)c->left_out_ns / 1e6);
}

static void put_notes(
	struct run *run, struct sheet *s, const struct profile *p, const struct critical *c)
{
	const bool sync = (p->head.row.switches & SWITCH_SYNC) != 0;
	const char *of = c->rank >= 0 ? "rank" : "process";
	const long long number = c->rank >= 0 ? c->rank : c->pid;
	uint32_t i;

	for (i = 0; i < CRITICAL_N && !s->json; i++)
		if (c->part_ns[i] > 0)
			sheet_note(s, "%s: %s", parts[i].word, parts[i].what);
	if (c->step != 0)
		sheet_note(s, "Step %u of %u of %s %lld, from %.6f s on%s.", c->step, c->steps, of,
			number, (double)c->begin_ns / 1e9,
			run_given(run, OPT_STEP) ? ""
						 : ": of median length; --step N shows another");
	else
		sheet_note(s, "%s of %s %lld; --rank and --process choose another.",
			run_given(run, OPT_WINDOW) ? "A window"
						   : "All (no step is in the timeline)",
			of, number);
	if (!sync && !c->waits && (p->n_devices > 0 || p->head.launches > 0))
		sheet_note(s, "Waits for the GPU were not recorded: what the host waited for it is "
			      "in its scopes here. `-d both -s sync` records them.");
	if (c->behind > 0)
		sheet_note(s,
			"The host did not wait for %u pieces of work that it launched: they end up "
			"to "
			"%.3f ms behind, and are not on the path.",
			c->behind, (double)c->behind_ns / 1e6);
}

static void put(struct run *run, const struct profile *p, const struct critical *c)
{
	static const struct sheet_column columns[] = {{"time", "time/ms", SHEET_MS, 0, 0},
		{"share", "share", SHEET_PERCENT, 0, 0}, {"times", "times", SHEET_COUNT, 0, 1},
		{"gain", "10% faster/ms", SHEET_MS, 0, 0}, {"part", "part", SHEET_TEXT, 0, 0},
		{"name", "name", SHEET_TEXT, 16, 0}};
	struct sheet s;

	sheet_open(&s, run, "critical", p, columns, sizeof(columns) / sizeof(*columns));
	put_lines(run, &s, c);
	put_notes(run, &s, p, c);
	sheet_close(&s, p);
}

int view_critical(struct run *run)
{
	struct profile *p = NULL;
	struct critical *c = NULL;
	int r = sheet_source(run, read_it, &c, &p);

	if (r == 0)
		put(run, p, c);
	critical_free(c);
	profile_free(p);
	return r;
}
