/* SPDX-License-Identifier: MIT. protonview_sql.c: the verb sql: a statement over a session's tables.
 *
 * They are made anew in a database of their own, which is gone at the end: no statement reaches the
 * store. A timeline is read only for a statement that names one of its tables. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "print_json.h"
#include "protonview_verb.h"
#include "sql_memory.h"
#include "sql_tables.h"
#include "table.h"
#include "tree_rows.h"

#define SEEN_ROWS  512u /* of a screen: so many tell how wide its columns are */
#define CELL_MOST  60u  /* columns of the terminal for a text, */
#define CELL_LEAST 8u   /* and where it is cut */

/* --- what a statement may do */

struct wanted { /* what a statement names */
	bool timeline, memory;
};

static int may(void *arg, int action, const char *a, const char *b, const char *c, const char *d)
{
	struct wanted *w = arg;

	(void)b;
	(void)c;
	(void)d;
	if (action == SQLITE_READ && sql_tables_of_timeline(a))
		w->timeline = true;
	if (action == SQLITE_READ && sql_memory_has(a))
		w->memory = true;
	return action == SQLITE_READ || action == SQLITE_SELECT || action == SQLITE_FUNCTION ||
			       action == SQLITE_RECURSIVE
		       ? SQLITE_OK
		       : SQLITE_DENY;
}

/* What may be asked for, since the statement named something else. */
static void list_tables(sqlite3 *db)
{
	struct text t = {0};
	sqlite3_stmt *st;
	char *words;

	(void)sqlite3_set_authorizer(db, NULL, NULL);
	if (sqlite3_prepare_v2(db,
		    "SELECT name || '(' || (SELECT group_concat(name, ', ') FROM"
		    " pragma_table_info(s.name)) || ')' FROM sqlite_schema s WHERE name NOT GLOB"
		    " 'timeline_*' ORDER BY name",
		    -1, &st, NULL) != SQLITE_OK)
		return;
	while (sqlite3_step(st) == SQLITE_ROW)
		text_fmt(&t, "\n  %s", (const char *)sqlite3_column_text(st, 0));
	(void)sqlite3_finalize(st);
	if (text_take(&t, &words, &(size_t){0}) < 0)
		return;
	(void)term_write(2, "protonview: the tables are:", 27);
	(void)term_write(2, words, strlen(words));
	(void)term_write(2, "\n", 1);
	free(words);
}

static int prepare(struct run *run, sqlite3 *db, struct wanted *ret_wanted, sqlite3_stmt **ret)
{
	const char *sql = run->o.args[1], *rest;
	int r = 0;

	*ret_wanted = (struct wanted){false, false};
	(void)sqlite3_set_authorizer(db, may, ret_wanted);
	if (sqlite3_prepare_v2(db, sql, -1, ret, &rest) != SQLITE_OK)
		r = err_set(&run->e, -EINVAL,
			sqlite3_errcode(db) == SQLITE_AUTH ? "sql takes a SELECT only: %s" : "%s",
			sqlite3_errmsg(db));
	else if (*ret == NULL)
		r = err_set(&run->e, -EINVAL, "the statement is empty; give a SELECT");
	else if (rest[strspn(rest, " \t\n;")] != '\0')
		r = err_set(&run->e, -EINVAL, "one statement only; behind the first stands: %.60s",
			rest);
	if (r < 0 && strstr(run->e.text, "no such") != NULL)
		list_tables(db);
	return r;
}

/* --- a screen */

struct cell {
	char *text;
	bool number;
};

struct screen {
	const struct term *term;
	struct text *to;
	int columns;
	uint32_t *width;
	struct cell *cell; /* the head, then the first rows */
	uint32_t n, cap;
	bool flowing;
};

static char *shown(struct screen *s, const char *text)
{
	struct text t = {0};
	char *ret = NULL;

	term_name(s->term, &t, text, s->term->width > 0 ? CELL_MOST : 0);
	(void)text_take(&t, &ret, &(size_t){0});
	return ret;
}

static void put_cell(struct screen *s, const struct cell *c, int column)
{
	const uint32_t room = s->width[column];
	uint32_t have = term_width(c->text != NULL ? c->text : "");

	if (column > 0)
		text_str(s->to, "  ");
	if (c->number && room > have)
		text_fmt(s->to, "%*s", (int)(room - have), "");
	/* Where the line is full, it is names that are cut. */
	if (!c->number && s->term->width > 0 && have > room)
		term_name(s->term, s->to, c->text, have = room);
	else if (c->text != NULL)
		text_str(s->to, c->text);
	if (!c->number && column + 1 < s->columns && room > have)
		text_fmt(s->to, "%*s", (int)(room - have), "");
	if (column + 1 == s->columns)
		text_char(s->to, '\n');
}

/* The widest column of words gives way, as long as there is one. */
static void fit(struct screen *s)
{
	uint32_t total = 2 * (uint32_t)(s->columns - 1);
	int i, widest;

	for (i = 0; i < s->columns; i++)
		total += s->width[i];
	for (; s->term->width > 0 && total > s->term->width; total--) {
		for (i = 0, widest = -1; i < s->columns; i++)
			if (!s->cell[i].number && s->width[i] > CELL_LEAST &&
				(widest < 0 || s->width[i] > s->width[widest]))
				widest = i;
		if (widest < 0)
			return;
		s->width[widest]--;
	}
}

/* What was kept back to see how wide it is. */
static void screen_flow(struct screen *s)
{
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		const uint32_t w = term_width(s->cell[i].text != NULL ? s->cell[i].text : "");
		uint32_t *room = &s->width[i % (uint32_t)s->columns];

		*room = w > *room ? w : *room;
	}
	for (i = 0; i < (uint32_t)s->columns && s->n > (uint32_t)s->columns; i++)
		s->cell[i].number = s->cell[i + (uint32_t)s->columns].number;
	if (s->n >= (uint32_t)s->columns)
		fit(s);
	for (i = 0; i < s->n; i++) {
		put_cell(s, &s->cell[i], (int)(i % (uint32_t)s->columns));
		free(s->cell[i].text);
	}
	s->n = 0;
	s->flowing = true;
}

static int screen_cell(struct screen *s, int column, const char *text, bool number)
{
	struct cell c = {shown(s, text != NULL ? text : ""), number};

	if (s->flowing) {
		put_cell(s, &c, column);
		free(c.text);
		return 0;
	}
	if (!ROOM_FOR(s->cell, s->cap, s->n)) {
		free(c.text);
		return -ENOMEM;
	}
	s->cell[s->n++] = c;
	if (column + 1 == s->columns && s->n >= (SEEN_ROWS + 1) * (uint32_t)s->columns)
		screen_flow(s);
	return 0;
}

static bool is_number(sqlite3_stmt *st, int column)
{
	const int type = sqlite3_column_type(st, column);

	return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

/* Each of these three: 0, -ENOMEM, or what SQLite says of a step. */
static int to_screen(struct run *run, sqlite3_stmt *st)
{
	struct screen s = {
		.term = &run->term, .to = &run->out, .columns = sqlite3_column_count(st)};
	int i, step = SQLITE_ROW, r = 0;

	s.width = calloc((size_t)s.columns, sizeof(*s.width));
	if (s.width == NULL)
		return -ENOMEM;
	for (i = 0; i < s.columns && r == 0; i++)
		r = screen_cell(&s, i, sqlite3_column_name(st, i), false);
	while (r == 0 && (step = sqlite3_step(st)) == SQLITE_ROW) {
		for (i = 0; i < s.columns && r == 0; i++)
			r = screen_cell(
				&s, i, (const char *)sqlite3_column_text(st, i), is_number(st, i));
		if (s.flowing && run->print.flush != NULL && run->out.n > 1u << 16)
			run->print.flush(run->print.flush_arg, &run->out);
	}
	screen_flow(&s);
	free(s.cell);
	free(s.width);
	return r < 0 ? r : step;
}

static int to_json(struct run *run, const struct profile *p, sqlite3_stmt *st)
{
	const int n = sqlite3_column_count(st);
	struct envelope_column *c = calloc((size_t)n, sizeof(*c));
	struct text *t = &run->out;
	int i, step;

	if (c == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		c[i] = (struct envelope_column){sqlite3_column_name(st, i), "", "any"};
	envelope_open(t, "sql", p);
	envelope_columns(t, c, (uint32_t)n);
	free(c);
	while ((step = sqlite3_step(st)) == SQLITE_ROW) {
		envelope_row(t);
		for (i = 0; i < n; i++)
			if (sqlite3_column_type(st, i) == SQLITE_INTEGER)
				envelope_integer(t, sqlite3_column_int64(st, i));
			else if (sqlite3_column_type(st, i) == SQLITE_FLOAT)
				envelope_number(t, sqlite3_column_double(st, i));
			else
				envelope_string(t, (const char *)sqlite3_column_text(st, i));
		if (run->print.flush != NULL && t->n > 1u << 16)
			run->print.flush(run->print.flush_arg, t);
	}
	envelope_close(t, &run->warnings);
	return step;
}

static void csv_cell(struct rows *r, sqlite3_stmt *st, int i)
{
	struct value v = {.type = VALUE_NONE};

	if (sqlite3_column_type(st, i) == SQLITE_INTEGER)
		v = (struct value){.type = VALUE_I64, .i = sqlite3_column_int64(st, i)};
	else if (sqlite3_column_type(st, i) == SQLITE_FLOAT)
		v = (struct value){.type = VALUE_F64, .f = sqlite3_column_double(st, i)};
	else if (sqlite3_column_type(st, i) != SQLITE_NULL) {
		r->form->text(r, (const char *)sqlite3_column_text(st, i));
		return;
	}
	r->form->number(r, &v);
}

static int to_csv(struct run *run, sqlite3_stmt *st, const char *path)
{
	struct rows rows = {.form = &rows_csv};
	struct output o;
	int i, step, r = output_open(path, &o, &run->e);

	if (r < 0)
		return r;
	for (i = 0; i < sqlite3_column_count(st); i++)
		rows.form->column(&rows, sqlite3_column_name(st, i), "", "");
	while ((step = sqlite3_step(st)) == SQLITE_ROW && !rows.out.failed) {
		rows.form->begin(&rows);
		for (i = 0; i < sqlite3_column_count(st); i++)
			csv_cell(&rows, st, i);
		if (rows.out.n > 1u << 18) {
			if (fwrite(rows.out.s, 1, rows.out.n, o.file) != rows.out.n)
				break;
			rows.out.n = 0;
		}
	}
	rows.form->rows_end(&rows);
	r = rows.out.failed ? -ENOMEM
	    : step != SQLITE_DONE
		    ? err_set(&run->e, -EINVAL, "%s", sqlite3_errmsg(sqlite3_db_handle(st)))
	    : fwrite(rows.out.s, 1, rows.out.n, o.file) == rows.out.n
		    ? 0
		    : err_set(&run->e, neg_errno(), "%s cannot be written: %s", path,
			      strerror(errno));
	text_fini(&rows.out);
	r = output_close(path, &o, run_given(run, OPT_FORCE), r, &run->e);
	return r < 0 ? r : SQLITE_DONE;
}

/* --- the verb */

static int fill(struct run *run, sqlite3 *db, const struct profile *p, const struct wanted *w)
{
	struct source_options o = {.timeline = sql_tables_timeline, .arg = db},
			      m = {.timeline = sql_memory_fill, .arg = db};
	struct source s;
	int r;

	(void)sqlite3_set_authorizer(db, NULL, NULL);
	r = sql_tables_tree(db, p, &run->e);
	if (r == 0 && w->timeline)
		r = run_timeline(run, &o, &s);
	if (r == 0 && w->memory)
		r = run_source_by(run, run->o.args[0], &m, &s);
	if (r == -ENODATA && !w->timeline) /* a tree alone: its tables are empty */
		r = 0;
	return r;
}

static int answer(struct run *run, sqlite3 *db, const struct profile *p)
{
	const char *file = run->o.value[OPT_OUTPUT];
	sqlite3_stmt *st = NULL;
	struct wanted wanted;
	int r = prepare(run, db, &wanted, &st);

	(void)sqlite3_finalize(st);
	if (r == 0)
		r = fill(run, db, p, &wanted);
	st = NULL;
	if (r == 0)
		r = prepare(run, db, &wanted, &st);
	if (r == 0)
		r = file != NULL               ? to_csv(run, st, file)
		    : run_given(run, OPT_JSON) ? to_json(run, p, st)
					       : to_screen(run, st);
	if (r > 0 && r != SQLITE_DONE)
		r = err_set(&run->e, -EINVAL, "%s", sqlite3_errmsg(db));
	else if (r == -ENOMEM)
		r = err_set(&run->e, r, "out of memory");
	(void)sqlite3_finalize(st);
	return r < 0 ? r : 0;
}

int view_sql(struct run *run)
{
	struct profile *p = NULL;
	sqlite3 *db;
	int r = run_source(run, run->o.args[0], false, &p);

	if (r == 0)
		r = run_show_names(run, p);
	if (r < 0) {
		profile_free(p);
		return r;
	}
	/* Of no name: a file that is gone when it is closed, in memory as long as it is small. */
	if (sqlite3_open("", &db) != SQLITE_OK)
		r = err_set(&run->e, -ENOMEM, "no room for the tables: %s", sqlite3_errmsg(db));
	if (r == 0)
		r = sql_tables_make(db, &run->e);
	if (r == 0)
		r = answer(run, db, p);
	(void)sqlite3_close(db);
	profile_free(p);
	return r;
}
