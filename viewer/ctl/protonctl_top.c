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
#include "protonctl_top_screen.h"
#include "top_look.h"
#include "top_memory.h"

#define ROWS_MAX 5000u

/* A row of a table: one path's sums since the look before. */
struct row {
	const struct look_cell *cell;
	struct look_change change;
};

static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->change.ns < y->change.ns ? 1 : x->change.ns > y->change.ns ? -1 : 0;
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

struct line_begins {
	const char *with; /* NULL: it has begun */
};

static bool line_word(void *arg, const char *word)
{
	struct line_begins *l = arg;

	printf("%s  %s", l->with != NULL ? l->with : "", word);
	l->with = NULL;
	return true;
}

static bool memory_word(void *arg, const char *word)
{
	bool *began = arg;

	printf("%s%s", *began ? "  " : "", word);
	*began = true;
	return true;
}

/* A line each; none where nothing is known. */
static void top_lines(const struct look *before, const struct look *now)
{
	struct line_begins steps = {.with = "steps"}, gpu = {.with = "GPU"};
	bool began = false;

	look_rate_words(before, now, line_word, &steps);
	if (steps.with == NULL)
		putchar('\n');
	look_gpu_words(before, now, line_word, &gpu);
	if (gpu.with == NULL)
		putchar('\n');
	look_memory_words(now, memory_word, &began);
	if (began)
		putchar('\n');
}

static const struct grid_column top_columns[] = {{"TIME ms", true, 0, 0}, {"%", true, 0, 0},
	{"CALLS", true, 0, 0}, {"MEAN us", true, 0, 1}, {"CLASS", false, 0, 2},
	{"SCOPE OR KERNEL", false, 24, 0}};

/* seconds: what the time is a share of. */
static void put_cells(const struct ctl *c, struct grid *screen, struct names *names,
	const struct row *w, double seconds)
{
	const double ns = (double)w->change.ns;

	grid_cell_fmt(screen, "%.3f", ns * 1e-6);
	grid_cell_fmt(screen, "%.2f", seconds > 0 ? ns / (seconds * 1e7) : 0.0);
	grid_cell_fmt(screen, "%lu", w->change.count);
	grid_cell_fmt(
		screen, "%.2f", w->change.count > 0 ? ns / (double)w->change.count * 1e-3 : 0.0);
	grid_cell_fmt(screen, "%s", gpu_classes[w->cell->class].word);
	grid_cell(screen, &c->term, names_show_path(names, w->cell->path));
}

static int top_rows(const struct ctl *c, const struct look *before, const struct look *now,
	struct names *names, uint32_t rows)
{
	const double seconds = look_seconds(before, now);
	struct row *row = calloc(now->n + (size_t)1, sizeof(*row));
	struct grid screen;
	struct text out = {0};
	uint32_t i;

	if (row == NULL)
		return -ENOMEM;
	for (i = 0; i < now->n; i++)
		row[i] = (struct row){&now->cell[i], look_since(before, &now->cell[i])};
	qsort(row, now->n, sizeof(*row), by_time);
	grid_init(&screen, top_columns, sizeof(top_columns) / sizeof(top_columns[0]));
	for (i = 0; i < now->n && i < rows; i++)
		if (row[i].change.count > 0 || row[i].change.ns > 0)
			put_cells(c, &screen, names, &row[i], seconds);
	grid_print(&out, &c->term, &screen);
	ctl_print(&out);
	grid_fini(&screen);
	free(row);
	return 0;
}

/* Rows that the terminal has below the three lines of the head. */
static uint32_t screen_rows(void)
{
	struct winsize w;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_row < 7)
		return 40;
	return w.ws_row - 5u;
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
	bool said; /* which session a selector is */
};

static int show(struct ctl *c, struct top *top, const struct rpc_reply *r, const struct look *now)
{
	const struct look *before = top->before.now_ns != 0 ? &top->before : NULL;
	struct named named;

	if (!top->said && c->argc > 0)
		answer_session(r->result, c->argv[0], &named);
	top->said = true;
	if (before != NULL && before->id != now->id) { /* another one: since it began */
		look_free(&top->before);
		before = NULL;
	}
	top_head(c, r, before != NULL ? look_seconds(before, now) : 0);
	top_lines(before, now);
	if (top_rows(c, before, now, top->names, top->rows) < 0)
		return -ENOMEM;
	(void)fflush(stdout);
	look_free(&top->before);
	top->before = *now;
	return 0;
}

/* One look. -errno in c->err. */
static int top_once(struct ctl *c, struct rpc *rpc, struct top *top)
{
	struct rpc_reply r = {.fd = -1};
	struct look now = {.n = 0};
	int code = top_ask(c, rpc, c->argc > 0 ? c->argv[0] : NULL, &r);

	if (code == 0 && ctl_json(c, &r)) {
		rpc_reply_free(&r);
		return 0;
	}
	if (code == 0 &&
		(answer_names(top->names, r.result) < 0 || names_demangle(top->names) < 0 ||
			look_take(r.result, &now) < 0 || show(c, top, &r, &now) < 0)) {
		look_free(&now);
		code = err_set(&c->err, -ENOMEM, "out of memory");
	}
	rpc_reply_free(&r);
	return code;
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

static bool takes_screen(const struct ctl *c)
{
	const char *kind = getenv("TERM");

	return kind != NULL && strcmp(kind, "dumb") != 0 && isatty(STDIN_FILENO) &&
	       isatty(STDOUT_FILENO) && !c->json && ctl_option(c, "once") == NULL &&
	       ctl_option(c, "batch") == NULL && ctl_option(c, "count") == NULL;
}

/* One table after the other. */
static int top_tables(struct ctl *c, struct rpc *rpc, uint64_t looks, uint64_t rows, double seconds)
{
	struct top top = {.rows = (uint32_t)rows};
	struct pollfd p = {.fd = rpc_fd(rpc), .events = POLLIN};
	int code = names_new(false, &top.names);

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
	return code;
}

static int cmd_top(struct ctl *c)
{
	const char *interval = ctl_option(c, "interval"), *lines = ctl_option(c, "rows");
	const bool screen = takes_screen(c);
	double seconds = interval != NULL ? strtod(interval, NULL) : screen ? 0.5 : 1;
	uint64_t rows = screen_rows(), looks;
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
	code = screen ? top_screen(c, rpc, c->argc > 0 ? c->argv[0] : NULL, seconds) : 1;
	if (code == 1) /* a terminal without a screen, too */
		code = top_tables(c, rpc, looks, rows, seconds);
	rpc_close(rpc);
	return code < 0 ? ctl_fail(c) : CTL_OK;
}

/* clang-format off */
static const struct option_def top_options[] = {
	{0,   "interval", "SECONDS", "between two looks (default 0.5 on a whole screen, else 1)", NULL},
	{'n', "rows",    "N",       "rows of a table (default: what the terminal has)", NULL},
	{'1', "once",     NULL,      "one table of everything so far, then end; so into a file or a pipe", NULL},
	{'b', "batch",    NULL,      "a table after the other, without a screen; into a file or a pipe, too", NULL},
	{'c', "count",    "N",       "end after N tables", NULL},
	{0, NULL, NULL, NULL, NULL},
};
/* clang-format on */

const struct command command_top = {.name = "top",
	.run = cmd_top,
	.max = 1,
	.args = "[SESSION]",
	.help = "what takes the time right now",
	.more = "On a terminal a whole screen: what changed in the last 5 seconds, looked at twice "
		"a\n"
		"second; `?` shows its keys. Else one table. Asks the daemon alone: neither the "
		"job nor its\n"
		"GPU is called. Times of the GPU and of scopes are milliseconds a second, so 1000 "
		"is one GPU,\n"
		"or one thread, all the time.\n",
	.examples = "protonctl top\nprotonctl top --once @last\nprotonctl top -b -c 60 >top.txt\n",
	.options = top_options,
	.completes = 'l'};
