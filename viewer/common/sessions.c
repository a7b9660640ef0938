/* SPDX-License-Identifier: MIT. sessions.c: sessions as people read them. */
#include "sessions.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "grid.h"
#include "human.h"
#include "profile.h"

static const struct grid_column columns[] = {{"ID", true, 0, 0}, {"NAME", false, 14, 0},
	{"STATE", false, 0, 0}, {"SOURCE", false, 0, 3}, {"USER", false, 8, 0},
	{"BEGAN", false, 0, 0}, {"ACTIVE", true, 0, 0}, {"PROCS", true, 0, 5},
	{"LAUNCHES", true, 0, 2}, {"UNMATCHED", true, 0, 4}, {"COMMAND", false, 12, 1}};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))
#define USER      4

/* Borrowed from a profile for its sanitising: bytes of a database are anybody's. */
static void cell(struct grid *g, const struct term *term, const char *any_bytes)
{
	struct profile *p = profile_new();
	const char *s = p == NULL ? NULL : profile_text(p, any_bytes, strlen(any_bytes));

	grid_cell(g, term, s == NULL ? "" : s);
	g->cells.failed |= s == NULL;
	profile_free(p);
}

static void user_cell(struct grid *g, const struct term *term, uint32_t uid)
{
	const struct passwd *p = getpwuid(uid);

	if (p != NULL)
		grid_cell(g, term, p->pw_name);
	else
		grid_cell_fmt(g, "%u", uid);
}

/* What people wrote to it, on a line of its own. */
static void put_labels(struct grid *g, const struct term *term, const struct pick_row *row)
{
	struct text t = {0};

	if (*row->tags != '\0') {
		text_str(&t, "tags ");
		term_name(term, &t, row->tags, 0);
		text_str(&t, *row->note != '\0' ? "; " : "");
	}
	term_name(term, &t, row->note, 0);
	text_char(&t, '\0');
	if (t.failed)
		g->lines.failed = true;
	else if (t.n > 1)
		grid_line(g, t.s);
	text_fini(&t);
}

static void put_row(struct grid *g, const struct term *term, const struct pick_row *row, bool users)
{
	char when[32], active[32] = "-";

	text_when(row->created_ns, when);
	if (row->active_ns >= 0)
		text_duration((double)row->active_ns * 1e-9, active);
	grid_cell_fmt(g, "%lld", (long long)row->id);
	cell(g, term, row->name);
	cell(g, term, row->state);
	cell(g, term, row->source);
	if (users)
		user_cell(g, term, row->uid);
	grid_cell_fmt(g, "%s", when);
	grid_cell_fmt(g, "%s", active);
	grid_cell_fmt(g, "%lld", (long long)row->processes);
	grid_cell_fmt(g, "%lld", (long long)row->launches);
	grid_cell_fmt(g, "%lld", (long long)(row->launches - row->matched));
	cell(g, term, *row->command != '\0' ? row->command : "-");
	put_labels(g, term, row);
}

void sessions_print(struct text *t, const struct term *term, const struct listing *l)
{
	struct grid_column chosen[N_COLUMNS];
	struct grid g;
	uint32_t i, n = 0;

	if (l->n == 0) {
		text_str(t, !l->filtered && l->empty == 0 ? SESSIONS_NONE : "");
		return;
	}
	for (i = 0; i < N_COLUMNS; i++)
		if (i != USER || l->users)
			chosen[n++] = columns[i];
	grid_init(&g, chosen, n);
	for (i = 0; i < l->n; i++)
		put_row(&g, term, &l->row[i], l->users);
	grid_print(t, term, &g);
	grid_fini(&g);
}

void sessions_say_left_out(const struct listing *l)
{
	if (l->older > 0)
		text_say("%u older session%s not shown; -n 0 shows all", l->older,
			l->older == 1 ? " is" : "s are");
	if (l->empty > 0)
		text_say("%u session%s with nothing in %s not shown; --all shows %s", l->empty,
			l->empty == 1 ? "" : "s", l->empty == 1 ? "it is" : "them are",
			l->empty == 1 ? "it" : "them");
	if (l->filtered && l->n == 0 && l->empty == 0)
		text_say("no session matches; without these options all are listed");
}

void session_of_answer(const msgpack_object *map, struct session_answer *ret)
{
	const msgpack_object *uuid = wire_get(map, "uuid");
	uint32_t i, n = uuid != NULL && uuid->type == MSGPACK_OBJECT_BIN ? uuid->via.bin.size : 0;

	*ret = (struct session_answer){.row = {.id = wire_i64_or(map, "id", 0),
					       .created_ns = wire_i64_or(map, "created_ns", 0),
					       .ended_ns = wire_i64_or(map, "ended_ns", 0),
					       .active_ns = wire_i64_or(map, "duration_ns", 0),
					       .processes = wire_i64_or(map, "processes", 0),
					       .launches = wire_i64_or(map, "launches", 0),
					       .matched = wire_i64_or(map, "matched", 0),
					       .uid = (uint32_t)wire_u64_or(map, "uid", 0),
					       .uuid = ret->uuid}};
	for (i = 0; i < n && i < 16; i++)
		snprintf(ret->uuid + 2 * i, 3, "%02x", (unsigned char)uuid->via.bin.ptr[i]);
	(void)wire_get_bool(map, "empty", &ret->row.empty);
	ret->row.name = wire_text(map, "name", ret->name, sizeof(ret->name));
	ret->row.state = wire_text(map, "state", ret->state, sizeof(ret->state));
	ret->row.source = wire_text(map, "source", ret->source, sizeof(ret->source));
	ret->row.command = wire_text(map, "command", ret->command, sizeof(ret->command));
	ret->row.tags = wire_text(map, "tags", ret->tags, sizeof(ret->tags));
	ret->row.note = wire_text(map, "note", ret->note, sizeof(ret->note));
}

void session_words(const struct pick_row *row, char *ret, size_t n)
{
	FILE *f = fmemopen(ret, n, "w");

	*ret = '\0';
	if (f == NULL)
		return;
	fprintf(f, "%lld '", (long long)row->id);
	text_put(f, row->name, 0);
	fputc('\'', f);
	(void)fclose(f);
	ret[n - 1] = '\0';
}

void session_say(const char *ref, const struct pick_row *row)
{
	static _Thread_local char
		said[160]; /* a source may be opened more than once: it is said once */
	const int64_t since = row->ended_ns != 0 ? row->ended_ns : row->created_ns;
	char words[600], ago[32], ref_is[sizeof(said)];
	struct timespec now;
	int64_t s;

	snprintf(ref_is, sizeof(ref_is), "%s is %lld", ref, (long long)row->id);
	if (*ref != '@' || strcmp(said, ref_is) == 0)
		return;
	memcpy(said, ref_is, sizeof(said));
	session_words(row, words, sizeof(words));
	(void)clock_gettime(CLOCK_REALTIME, &now);
	s = now.tv_sec - since / 1000000000;
	if (s < 120)
		snprintf(ago, sizeof(ago), "%lld s", (long long)s);
	else
		text_duration((double)s, ago);
	text_say("%s is %s%s, %s%s %s%s%s", ref, words,
		strcmp(row->source, "auto") == 0 ? " (automatic)" : "",
		row->ended_ns != 0 ? "" : row->state, row->ended_ns != 0 ? "ended" : ", began",
		s > 0 ? ago : "just now", s > 0 ? " ago" : "",
		row->empty ? ", with nothing in it" : "");
}
