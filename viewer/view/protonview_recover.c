/* SPDX-License-Identifier: MIT. protonview_recover.c: the verb recover: what can be read of a
 * damaged database as a new one, and what lacks. */
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"
#include "protonview_verb.h"
#include "recover.h"

static void table_line(struct run *run, const char *name, const struct recovered_table *t)
{
	struct text *out = &run->out;

	if (t->left_out)
		return;
	text_fmt(out, "%-8s %10llu", name, (unsigned long long)t->rows);
	if (t->gone)
		text_str(out, "  where it begins is lost");
	if (t->pages > 0) {
		text_str(out, "  ");
		term_count(out, t->pages, "page", "pages");
	}
	if (t->broken > 0) {
		text_str(out, t->pages > 0 ? ", " : "  ");
		term_count(out, t->broken, "row", "rows");
	}
	text_char(out, '\n');
	run->partial |= t->gone || t->pages > 0 || t->broken > 0;
}

static void session_line(void *arg, int64_t id, const char *name, const char *lacks)
{
	struct run *run = arg;

	text_fmt(&run->out, "session %lld '", (long long)id);
	term_name(&run->term, &run->out, name, 60);
	text_fmt(&run->out, "': %s%s\n", lacks == NULL ? "whole" : "lacks ",
		lacks == NULL ? "" : lacks);
	run->partial |= lacks != NULL;
}

static int copy(struct run *run, const char *path)
{
	struct recover r = {.session = session_line, .arg = run};
	struct text sessions;
	sqlite3 *to = NULL;
	int code;

	if (sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
		SQLITE_OK)
		code = err_set(&run->e, -EIO, "%s: %s", path, sqlite3_errmsg(to));
	else
		code = recover(run->o.args[0], to, &r, &run->e);
	(void)sqlite3_close(to);
	if (code < 0)
		return code;
	sessions = run->out;
	run->out = (struct text){0};
	text_str(&run->out, "TABLE          ROWS  LACKS\n");
#define X(t, key, options) table_line(run, #t, &r.table[TABLE_##t]);
	TABLES(X)
#undef X
	text_add(&run->out, sessions.s, sessions.n);
	run->out.failed |= sessions.failed;
	text_fini(&sessions);
	return 0;
}

int view_recover(struct run *run)
{
	const char *from = run->o.args[0], *to = run->o.value[OPT_OUTPUT];
	char usual[PATH_MAX];
	struct output o;
	int r;

	if (snprintf(usual, sizeof(usual), "%s.recovered", from) >= (int)sizeof(usual))
		return err_set(&run->e, -ENAMETOOLONG, "%s: the name is too long", from);
	to = to == NULL ? usual : to;
	if (strcmp(to, "-") == 0 || output_is_special(to))
		return err_set(&run->e, -EINVAL, "recover writes a database, which must be a file");
	if (access(to, F_OK) == 0)
		return err_set(&run->e, -EEXIST,
			"%s exists and is not overwritten; choose another name with -o", to);
	(void)umask(077); /* as the daemon's own */
	r = output_open(to, &o, &run->e);
	if (r < 0)
		return r;
	r = output_close(to, &o, false, copy(run, o.temporary), &run->e);
	if (r == 0)
		text_fmt(&run->out, "written to %s\n", to);
	return r;
}
