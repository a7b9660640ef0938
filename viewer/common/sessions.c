/* SPDX-License-Identifier: MIT. sessions.c: sessions as people read them. */
#include "sessions.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "human.h"
#include "profile.h"

#define COMMAND_COLUMNS 60 /* where there is no terminal to fill, and the least on one is 24 */
#define COMMAND_LEAST   24

/* Borrowed from a profile for its sanitising: bytes of a database are anybody's. */
static void cell(struct text *t, const struct term *term, const char *any_bytes, uint32_t width)
{
	struct profile *p = profile_new();
	const char *s = p == NULL ? NULL : profile_text(p, any_bytes, strlen(any_bytes));

	if (s == NULL)
		t->failed = true;
	else
		term_name(term, t, s, width);
	profile_free(p);
}

static void column(struct text *t, const struct term *term, const char *any_bytes, uint32_t width)
{
	const size_t from = t->n;
	uint32_t used;

	cell(t, term, any_bytes, width);
	for (used = term_line_width(t, from); used <= width && !t->failed; used++)
		text_char(t, ' ');
}

static void print_head(struct text *t, const struct term *term, bool users)
{
	term_style(term, t, STYLE_BOLD);
	text_str(t, "   ID NAME                     STATE       SOURCE  ");
	text_str(t, users ? "USER         " : "");
	text_str(t, "BEGAN                     ACTIVE PROCS LAUNCHES UNMATCHED COMMAND");
	term_style(term, t, STYLE_PLAIN);
	text_char(t, '\n');
}

static void user_column(struct text *t, const struct term *term, uint32_t uid)
{
	const struct passwd *p = getpwuid(uid);
	char number[16];

	snprintf(number, sizeof(number), "%u", uid);
	column(t, term, p != NULL ? p->pw_name : number, 12);
}

/* What people wrote to it, on a line of its own. */
static void print_labels(struct text *t, const struct term *term, const struct pick_row *row)
{
	if (*row->tags == '\0' && *row->note == '\0')
		return;
	text_str(t, "      ");
	if (*row->tags != '\0') {
		text_str(t, "tags ");
		cell(t, term, row->tags, 0);
		text_str(t, *row->note != '\0' ? "; " : "");
	}
	cell(t, term, row->note, 0);
	text_char(t, '\n');
}

static void print_row(
	struct text *t, const struct term *term, const struct pick_row *row, bool users)
{
	const size_t line = t->n;
	char when[32], active[32] = "-";
	uint32_t used;

	text_when(row->created_ns, when);
	if (row->active_ns >= 0)
		text_duration((double)row->active_ns * 1e-9, active);
	text_fmt(t, "%5lld ", (long long)row->id);
	column(t, term, row->name, 24);
	column(t, term, row->state, 11);
	column(t, term, row->source, 7);
	if (users)
		user_column(t, term, row->uid);
	text_fmt(t, "%-19s %12s %5lld %8lld %9lld ", when, active, (long long)row->processes,
		(long long)row->launches, (long long)(row->launches - row->matched));
	used = term_line_width(t, line);
	cell(t, term, *row->command != '\0' ? row->command : "-",
		term->width == 0                     ? COMMAND_COLUMNS
		: used + COMMAND_LEAST < term->width ? term->width - used
						     : COMMAND_LEAST);
	text_char(t, '\n');
}

void sessions_print(struct text *t, const struct term *term, const struct listing *l)
{
	uint32_t i;

	if (l->n > 0)
		print_head(t, term, l->users);
	else if (!l->filtered && l->empty == 0)
		text_str(t, SESSIONS_NONE);
	for (i = 0; i < l->n; i++) {
		print_row(t, term, &l->row[i], l->users);
		print_labels(t, term, &l->row[i]);
	}
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
		text_say("no session is like that; without these options all are listed");
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
	const int64_t since = row->ended_ns != 0 ? row->ended_ns : row->created_ns;
	char words[600], ago[32];
	struct timespec now;
	int64_t s;

	if (*ref != '@')
		return;
	session_words(row, words, sizeof(words));
	(void)clock_gettime(CLOCK_REALTIME, &now);
	s = now.tv_sec - since / 1000000000;
	text_duration((double)s, ago);
	text_say("%s is %s%s, %s%s %s%s%s", ref, words,
		strcmp(row->source, "auto") == 0 ? " (automatic)" : "",
		row->ended_ns != 0 ? "" : row->state, row->ended_ns != 0 ? "ended" : ", began",
		s > 0 ? ago : "just now", s > 0 ? " ago" : "",
		row->empty ? ", with nothing in it" : "");
}
