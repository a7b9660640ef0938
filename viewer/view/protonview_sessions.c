/* SPDX-License-Identifier: MIT. protonview_sessions.c: the verb sessions: what the database holds.
 */
#include "protonview_sessions.h"

#include <sqlite3.h>
#include <string.h>

#include "complete.h"
#include "pick.h"
#include "print_json.h"
#include "protonview_verb.h"
#include "sessions.h"

struct listing {
	struct run *run;
	uint32_t n;
};

/* Borrowed for its sanitising: bytes of a database are anybody's. */
static void clean_string(struct text *t, const char *any_bytes)
{
	struct profile *p = profile_new();

	envelope_string(t, p == NULL ? NULL : profile_text(p, any_bytes, strlen(any_bytes)));
	profile_free(p);
}

static int session_row(void *arg, const struct pick_row *row)
{
	struct listing *l = arg;
	struct text *t = &l->run->out;

	if (l->run->print.rows > 0 && l->n == l->run->print.rows)
		return -ECANCELED;
	if (l->n++ == 0 && !run_given(l->run, OPT_JSON))
		sessions_head(t, &l->run->term);
	if (!run_given(l->run, OPT_JSON)) {
		sessions_row(t, &l->run->term, row);
		return 0;
	}
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
	return 0;
}

int view_sessions(struct run *run)
{
	static const struct envelope_column columns[] = {{"id", "", "integer"},
		{"uuid", "", "string"}, {"name", "", "string"}, {"state", "", "string"},
		{"source", "", "string"}, {"command", "", "string"}, {"created", "ns", "integer"},
		{"active", "ns", "integer"}, {"processes", "", "integer"},
		{"launches", "", "integer"}};
	struct listing l = {.run = run};
	struct source how;
	sqlite3 *db;
	int r = source_open_db(run->o.value[OPT_DB], &db, &how, &run->e);

	if (r < 0)
		return r;
	run_note_parts(run, &how);
	if (run_given(run, OPT_JSON)) {
		envelope_open(&run->out, "sessions", NULL);
		envelope_columns(&run->out, columns, sizeof(columns) / sizeof(columns[0]));
	}
	r = pick_each(db, session_row, &l, &run->e);
	(void)sqlite3_close(db);
	if (r == 0 || r == -ECANCELED) {
		if (run_given(run, OPT_JSON))
			envelope_close(&run->out, &run->warnings);
		else if (l.n == 0)
			text_str(&run->out, SESSIONS_NONE);
		return 0;
	}
	return r;
}

static int complete_row(void *arg, const struct pick_row *row)
{
	const char *const *begin = arg;

	complete_put(*begin, row->name, NULL);
	return 0;
}

void sessions_complete(const char *begin)
{
	struct source how;
	sqlite3 *db;
	struct err e;

	complete_put(begin, "@last", "the newest");
	if (source_open_db(NULL, &db, &how, &e) < 0)
		return;
	(void)pick_each(db, complete_row, &begin, &e);
	(void)sqlite3_close(db);
}
