/* SPDX-License-Identifier: MIT. protonctl_top.c: top: what takes the time now. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "gpu_terms.h"
#include "grid.h"
#include "human.h"
#include "protonctl_answer.h"
#include "protonctl_call.h"

#define ROWS_MAX 5000u

/* A row: one path's sums, and what they were at the look before. */
struct row {
	char *path;
	uint64_t class, count, sum_ns, max_ns, was_count, was_ns;
};

struct look {
	struct row *row;
	uint32_t n;
	int64_t session;
	uint64_t now_ns;
};

static void look_free(struct look *t)
{
	uint32_t i;

	for (i = 0; i < t->n; i++)
		free(t->row[i].path);
	free(t->row);
	*t = (struct look){.n = 0};
}

static int by_name(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	const int d = strcmp(x->path, y->path);

	if (d != 0)
		return d;
	return x->class < y->class ? -1 : x->class > y->class ? 1 : 0;
}

static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	const uint64_t dx = x->sum_ns - x->was_ns, dy = y->sum_ns - y->was_ns;

	return dx < dy ? 1 : dx > dy ? -1 : 0;
}

static int look_take(const struct rpc_reply *r, struct look *ret)
{
	const msgpack_object *cells = NULL;
	const uint32_t n = answer_items(r->result, "cells", &cells);
	struct look t = {.now_ns = wire_u64_or(r->result, "now_ns", 0)};
	char path[1100];
	uint32_t i;

	t.row = calloc(n > 0 ? n : 1, sizeof(*t.row));
	for (i = 0; t.row != NULL && i < n; i++) {
		struct row *w = &t.row[i];

		w->path = strdup(wire_text(&cells[i], "path", path, sizeof(path)));
		if (w->path == NULL)
			break;
		t.n = i + 1;
		w->class = wire_u64_or(&cells[i], "class", 0);
		w->count = wire_u64_or(&cells[i], "count", 0);
		w->sum_ns = wire_u64_or(&cells[i], "sum_ns", 0);
		w->max_ns = wire_u64_or(&cells[i], "max_ns", 0);
	}
	if (t.row == NULL || t.n < n) {
		look_free(&t);
		return -ENOMEM;
	}
	qsort(t.row, t.n, sizeof(*t.row), by_name);
	*ret = t;
	return 0;
}

/* Sums of the look before, for the deltas. A session that shrank (another one) counts from zero. */
static void look_since(struct look *t, const struct look *before)
{
	const struct row *w;
	uint32_t i;

	for (i = 0; i < t->n; i++) {
		w = before->n == 0 ? NULL
				   : bsearch(&t->row[i], before->row, before->n,
					     sizeof(*before->row), by_name);
		if (w == NULL || w->sum_ns > t->row[i].sum_ns || w->count > t->row[i].count)
			continue;
		t->row[i].was_count = w->count;
		t->row[i].was_ns = w->sum_ns;
	}
}

static void top_head(const struct ctl *c, const struct rpc_reply *r, double seconds)
{
	const msgpack_object *jobs = NULL;
	const uint32_t n = answer_items(r->result, "jobs", &jobs);
	uint64_t drops = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		drops += wire_u64_or(&jobs[i], "drops", 0);
	fputs("session ", stdout);
	answer_put(r->result, "session", 40);
	printf(" (id %ld)  %u job%s  %sdrops %lu%s  ", wire_i64_or(r->result, "id", 0), n,
		n == 1 ? "" : "s", c->color && drops > 0 ? "\033[1;31m" : "", drops,
		c->color && drops > 0 ? "\033[0m" : "");
	if (seconds > 0)
		printf("last %.1f s\n", seconds);
	else
		puts("since it began");
}

static const struct grid_column top_columns[] = {{"TIME ms", true, 0, 0}, {"%", true, 0, 0},
	{"CALLS", true, 0, 0}, {"MEAN us", true, 0, 1}, {"CLASS", false, 0, 2},
	{"SCOPE OR KERNEL", false, 24, 0}};

/* seconds: what the time is a share of. */
static void top_rows(
	const struct ctl *c, struct look *t, struct names *names, double seconds, uint32_t rows)
{
	struct grid screen;
	struct text out = {0};
	uint32_t i;

	grid_init(&screen, top_columns, sizeof(top_columns) / sizeof(top_columns[0]));
	qsort(t->row, t->n, sizeof(*t->row), by_time);
	for (i = 0; i < t->n && i < rows; i++) {
		const struct row *w = &t->row[i];
		const double ns = (double)(w->sum_ns - w->was_ns);
		const uint64_t count = w->count - w->was_count;

		if (count == 0 && ns <= 0)
			continue;
		grid_cell_fmt(&screen, "%.3f", ns * 1e-6);
		grid_cell_fmt(&screen, "%.2f", seconds > 0 ? ns / (seconds * 1e7) : 0.0);
		grid_cell_fmt(&screen, "%lu", count);
		grid_cell_fmt(&screen, "%.2f", count > 0 ? ns / (double)count * 1e-3 : 0.0);
		grid_cell_fmt(&screen, "%s", gpu_classes[gpu_class_known(w->class)].word);
		grid_cell(&screen, &c->term, names_show_path(names, w->path));
	}
	grid_print(&out, &c->term, &screen);
	ctl_print(&out);
	grid_fini(&screen);
}

/* Rows that the terminal has below the two lines of the head. */
static uint32_t screen_rows(void)
{
	struct winsize w;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_row < 6)
		return 40;
	return w.ws_row - 4u;
}

static int top_ask(struct ctl *c, struct rpc *rpc, const char *session, struct rpc_reply *ret)
{
	struct wire_buf *b = rpc_begin(rpc, "top");

	if (session != NULL)
		wire_kv_str(b, "session", session);
	wire_kv_u64(b, "n", ROWS_MAX / 2);
	return ctl_call(c, rpc, ret);
}

/* What one look leaves for the next. */
struct top {
	struct names *names;
	struct look before;
	uint32_t rows;
	bool clears; /* the screen, before each look but the first */
	bool said;   /* which session a selector is */
};

/* One look. -errno in c->err. */
static int top_once(struct ctl *c, struct rpc *rpc, struct top *top)
{
	struct rpc_reply r = {.fd = -1};
	struct named named;
	struct look t;
	double seconds = 0;
	int code = top_ask(c, rpc, c->argc > 0 ? c->argv[0] : NULL, &r);

	if (code == 0 && ctl_json(c, &r)) {
		rpc_reply_free(&r);
		return 0;
	}
	if (code == 0 && (answer_names(top->names, r.result) < 0 ||
				 names_demangle(top->names) < 0 || look_take(&r, &t) < 0))
		code = err_set(&c->err, -ENOMEM, "out of memory");
	if (code < 0) {
		rpc_reply_free(&r);
		return code;
	}
	t.session = wire_i64_or(r.result, "id", 0);
	if (top->before.session != t.session) { /* another one: since it began */
		look_free(&top->before);
		top->before = (struct look){0};
	}
	if (top->before.now_ns != 0)
		seconds = (double)(t.now_ns - top->before.now_ns) * 1e-9;
	if (!top->said && c->argc > 0)
		answer_session(r.result, c->argv[0], &named);
	top->said = true;
	look_since(&t, &top->before);
	if (top->clears && seconds > 0)
		fputs("\033[H\033[J", stdout);
	top_head(c, &r, seconds);
	if (seconds <= 0)
		seconds = (double)wire_u64_or(r.result, "duration_ns", 0) * 1e-9;
	top_rows(c, &t, top->names, seconds, top->rows);
	(void)fflush(stdout);
	qsort(t.row, t.n, sizeof(*t.row), by_name);
	look_free(&top->before);
	top->before = t;
	rpc_reply_free(&r);
	return 0;
}

/* Into a file or a pipe one, unless somebody says that it goes on. 0: without end. */
static int looks_of(struct ctl *c, uint64_t *ret)
{
	const char *count = ctl_option(c, "count");
	const bool one = ctl_option(c, "once") != NULL || c->json ||
			 (!isatty(STDOUT_FILENO) && ctl_option(c, "batch") == NULL);

	*ret = one ? 1 : 0;
	if (count != NULL && (!text_u64(count, UINT32_MAX, ret) || *ret == 0))
		return ctl_usage(c, "--count %s: give 1 or more", count);
	return 0;
}

static int cmd_top(struct ctl *c)
{
	const char *interval = ctl_option(c, "interval"), *lines = ctl_option(c, "rows");
	struct top top = {.clears = isatty(STDOUT_FILENO) && ctl_option(c, "batch") == NULL};
	uint64_t rows = screen_rows(), looks;
	double seconds = interval != NULL ? strtod(interval, NULL) : 1.0;
	struct pollfd p = {.events = POLLIN};
	struct rpc *rpc;
	int code;

	if (!(seconds >= 0.1 && seconds <= 3600))
		return ctl_usage(c, "--interval %s: give 0.1 to 3600 seconds", interval);
	if (lines != NULL && (!text_u64(lines, ROWS_MAX, &rows) || rows == 0))
		return ctl_usage(c, "--rows %s: give 1 to %u", lines, ROWS_MAX);
	code = looks_of(c, &looks);
	if (code != 0)
		return code;
	if (ctl_open(c, &rpc) < 0)
		return ctl_fail(c);
	p.fd = rpc_fd(rpc);
	top.rows = (uint32_t)rows;
	code = names_new(false, &top.names);
	if (code < 0)
		err_set(&c->err, code, "out of memory");
	while (code == 0) {
		code = top_once(c, rpc, &top);
		if (--looks == 0 || ferror(stdout)) /* 0 goes on for longer than anybody waits */
			break;
		if (code == 0) /* the daemon's end is seen at once */
			(void)poll(&p, 1, (int)(seconds * 1e3));
	}
	names_free(top.names);
	look_free(&top.before);
	rpc_close(rpc);
	return code < 0 ? ctl_fail(c) : CTL_OK;
}

/* clang-format off */
static const struct option_def top_options[] = {
	{0,   "interval", "SECONDS", "between two looks (default 1)", NULL},
	{'n', "rows",    "N",       "rows (default: what the terminal has)", NULL},
	{'1', "once",     NULL,      "one table of everything so far, then end; so into a file or a pipe", NULL},
	{'b', "batch",    NULL,      "a table after the other, into a file or a pipe, too", NULL},
	{'c', "count",    "N",       "end after N tables", NULL},
	{0, NULL, NULL, NULL, NULL},
};
/* clang-format on */

const struct command command_top = {.name = "top",
	.run = cmd_top,
	.max = 1,
	.args = "[SESSION]",
	.help = "what takes the time now",
	.examples = "protonctl top\nprotonctl top --once @last\nprotonctl top -b -c 60 >top.txt\n",
	.options = top_options,
	.completes = 's'};
