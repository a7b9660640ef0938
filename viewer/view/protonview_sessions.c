/* SPDX-License-Identifier: MIT. protonview_sessions.c: the verb sessions: what the database holds.
 */
#include <string.h>

#include "protonview_sessions.h"

#include "print_json.h"
#include "protonview_verb.h"
#include "sessions.h"

/* Borrowed for its sanitising: bytes of a database are anybody's. */
static void clean_string(struct text *t, const char *any_bytes)
{
	struct profile *p = profile_new();

	envelope_string(t, p == NULL ? NULL : profile_text(p, any_bytes, strlen(any_bytes)));
	profile_free(p);
}

static void json_row(struct text *t, const struct pick_row *row)
{
	envelope_row(t);
	envelope_integer(t, row->id);
	envelope_string(t, row->uuid);
	clean_string(t, row->name);
	clean_string(t, row->state);
	clean_string(t, row->source);
	clean_string(t, row->command);
	envelope_integer(t, row->created_ns);
	if (row->active_ns >= 0)
		envelope_integer(t, row->active_ns);
	else
		envelope_string(t, NULL);
	envelope_integer(t, row->processes);
	envelope_integer(t, row->launches);
	envelope_integer(t, row->uid);
	envelope_integer(t, row->ended_ns);
	clean_string(t, row->tags);
	clean_string(t, row->note);
	envelope_boolean(t, row->empty);
	envelope_integer(t, row->matched);
}

static void json_rows(struct run *run, const struct listing *l)
{
	/* As the daemon's answer calls them. */
	static const struct envelope_column columns[] = {{"id", "", "integer"},
		{"uuid", "", "string"}, {"name", "", "string"}, {"state", "", "string"},
		{"source", "", "string"}, {"command", "", "string"},
		{"created_ns", "ns", "integer"}, {"duration_ns", "ns", "integer"},
		{"processes", "", "integer"}, {"launches", "", "integer"}, {"uid", "", "integer"},
		{"ended_ns", "ns", "integer"}, {"tags", "", "string"}, {"note", "", "string"},
		{"empty", "", "boolean"}, {"matched", "", "integer"}};
	uint32_t i;

	envelope_columns(&run->out, columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; i < l->n; i++)
		json_row(&run->out, &l->row[i]);
}

static int read_list(struct run *run, bool all, struct listing *ret)
{
	const struct listing_wish w = {.db = run->o.value[OPT_DB],
		.all = all,
#define X(id, letter, name, arg, verbs, help) .filter[FILTER_##id] = run->o.value[OPT_##id],
		LISTING_FILTERS(X, )
#undef X
			.rows = run->print.rows};
	struct source how;
	int r = listing_read(&w, ret, &how, &run->e);

	if (r < 0)
		return r;
	run_note_parts(run, &how);
	run->partial |= ret->more > 0;
	if (ret->more > 0)
		warning_add(&run->warnings, "%llu more did not fit into the daemon's answer",
			(unsigned long long)ret->more);
	return 0;
}

int sessions_rows(struct run *run)
{
	struct listing l;
	int r = read_list(run, true, &l);

	if (r < 0)
		return r;
	json_rows(run, &l);
	listing_free(&l);
	return 0;
}

int view_sessions(struct run *run)
{
	struct listing l;
	int r;

	if (run_given(run, OPT_JSON)) {
		envelope_open(&run->out, "sessions", NULL);
		r = sessions_rows(run);
		if (r == 0)
			envelope_close(&run->out, &run->warnings);
		else
			run->out.n = 0;
		return r;
	}
	r = read_list(run, run_given(run, OPT_ALL), &l);
	if (r < 0)
		return r;
	sessions_print(&run->out, &run->term, &l);
	sessions_say_left_out(&l);
	listing_free(&l);
	return 0;
}
