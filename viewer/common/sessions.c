/* SPDX-License-Identifier: MIT. sessions.c: a list of sessions as people read it. */
#include "sessions.h"

#include <stdio.h>

#include "human.h"
#include "profile.h"

#define HEAD                                                                                   \
	"   ID NAME                     STATE       SOURCE  BEGAN                     ACTIVE " \
	"PROCS LAUNCHES UNMATCHED COMMAND"
#define COMMAND_COLUMNS 60 /* where there is no terminal to fill, and the least on one is 24 */
#define COMMAND_LEAST   24

void sessions_head(struct text *t, const struct term *term)
{
	term_style(term, t, STYLE_BOLD);
	text_str(t, HEAD);
	term_style(term, t, STYLE_PLAIN);
	text_char(t, '\n');
}

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

void sessions_row(struct text *t, const struct term *term, const struct pick_row *row)
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
	text_fmt(t, "%-19s %12s %5lld %8lld %9lld ", when, active, (long long)row->processes,
		(long long)row->launches, (long long)(row->launches - row->matched));
	used = term_line_width(t, line);
	cell(t, term, *row->command != '\0' ? row->command : "-",
		term->width == 0                     ? COMMAND_COLUMNS
		: used + COMMAND_LEAST < term->width ? term->width - used
						     : COMMAND_LEAST);
	text_char(t, '\n');
}
