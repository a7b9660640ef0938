/* SPDX-License-Identifier: MIT. protonctl_look.c: where and top: a running job from outside. */
#include "protonctl.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "name.h"

#define ROWS_MAX 5000u

static uint32_t items(const msgpack_object *map, const char *key, const msgpack_object **ret)
{
	const msgpack_object *o = wire_get(map, key);

	if (o == NULL || o->type != MSGPACK_OBJECT_ARRAY)
		return 0;
	*ret = o->via.array.ptr;
	return o->via.array.size;
}

static void put_text_of(const msgpack_object *map, const char *key, size_t columns)
{
	char text[1100];

	text_put(stdout, wire_text(map, key, text, sizeof(text)), columns);
}

/* A path or a kernel's name, as people read it. */
static void put_name_of(
	struct names *names, const msgpack_object *map, const char *key, size_t columns)
{
	char text[1100];

	text_put(stdout, names_show_path(names, wire_text(map, key, text, sizeof(text))), columns);
}

/* A text of its own, cut to fit; "" when it is none. */
static const char *text_of(const msgpack_object *o, char *buf, size_t n)
{
	size_t bytes = o->type == MSGPACK_OBJECT_STR ? o->via.str.size : 0;

	bytes = bytes < n - 1 ? bytes : n - 1;
	memcpy(buf, bytes > 0 ? o->via.str.ptr : "", bytes);
	buf[bytes] = '\0';
	return buf;
}

/* All texts of an answer: which of them are names of kernels is seen by how they begin. */
static int add_names(struct names *names, const msgpack_object *o)
{
	char text[1100];
	uint32_t i;
	int r = 0;

	if (o->type == MSGPACK_OBJECT_STR)
		r = names_add(names, text_of(o, text, sizeof(text)));
	if (o->type == MSGPACK_OBJECT_ARRAY)
		for (i = 0; i < o->via.array.size && r == 0; i++)
			r = add_names(names, &o->via.array.ptr[i]);
	if (o->type == MSGPACK_OBJECT_MAP)
		for (i = 0; i < o->via.map.size && r == 0; i++)
			r = add_names(names, &o->via.map.ptr[i].val);
	return r;
}

/* "for 1.20 s", or nothing when it is not known. */
static void put_since(uint64_t now_ns, uint64_t since_ns)
{
	char took[32];

	if (since_ns == 0 || now_ns < since_ns) {
		(void)fputs("since before it was recorded", stdout);
		return;
	}
	text_duration((double)(now_ns - since_ns) * 1e-9, took);
	(void)printf("for %s", took);
}

/* --- where
 * ---------------------------------------------------------------------------------------- */

struct where {
	struct names *names;
	uint64_t now_ns;
};

static void where_thread(const struct where *w, const msgpack_object *t)
{
	const msgpack_object *open = NULL;
	uint32_t i, n = items(t, "open", &open);

	(void)printf("  thread %lu\n", wire_u64_or(t, "tid", 0));
	for (i = 0; i < n; i++) {
		(void)fputs("    ", stdout);
		put_name_of(w->names, &open[i], "path", 100);
		(void)fputs("  ", stdout);
		put_since(w->now_ns, wire_u64_or(&open[i], "since_ns", 0));
		(void)putchar('\n');
	}
}

static bool alike(const msgpack_object *a, const msgpack_object *b)
{
	static const char *const keys[] = {"kernel", "path"};
	char x[512], y[512];
	size_t i;

	for (i = 0; i < 2; i++)
		if (strcmp(wire_text(a, keys[i], x, sizeof(x)),
			    wire_text(b, keys[i], y, sizeof(y))) != 0)
			return false;
	return wire_get(a, "running") != NULL && wire_get(b, "running") != NULL &&
	       wire_get(a, "running")->via.boolean == wire_get(b, "running")->via.boolean;
}

/* more: as many behind it are alike. */
static void where_launch(const struct where *w, const msgpack_object *l, uint32_t more)
{
	const bool running = wire_get(l, "running") != NULL && wire_get(l, "running")->via.boolean;

	(void)fputs(running ? "    RUNNING   " : "    in flight ", stdout);
	put_name_of(w->names, l, "kernel", 60);
	(void)fputs("  launched in ", stdout);
	put_name_of(w->names, l, "path", 80);
	(void)fputs("  ", stdout);
	put_since(w->now_ns, wire_u64_or(l, "since_ns", 0));
	if (running)
		(void)printf("  device %lu stream %lu", wire_u64_or(l, "device", 0),
			wire_u64_or(l, "stream", 0));
	if (more > 0)
		(void)printf(", and %u more of it", more);
	(void)putchar('\n');
}

static void where_ended(const msgpack_object *j)
{
	const msgpack_object *notes = NULL;
	const uint32_t n = items(j, "notes", &notes);
	char text[1100];
	uint32_t i;

	if (n == 0)
		(void)puts("  nothing was open that is known");
	for (i = 0; i < n; i++) {
		(void)fputs("  ", stdout);
		text_put(stdout, text_of(&notes[i], text, sizeof(text)), 0);
		(void)putchar('\n');
	}
}

static void where_job(const struct where *w, const msgpack_object *j)
{
	const msgpack_object *list = NULL;
	const int64_t rank = wire_i64_or(j, "rank", -1);
	const uint64_t flight = wire_u64_or(j, "in_flight", 0);
	char ended[32];
	uint32_t i, n, same;

	(void)printf("pid %lu", wire_u64_or(j, "pid", 0));
	if (rank >= 0)
		(void)printf(", rank %ld", rank);
	(void)fputs(*wire_text(j, "ended", ended, sizeof(ended)) != '\0' ? ", " : "", stdout);
	(void)printf("%s: ", ended);
	put_text_of(j, "command", 80);
	(void)putchar('\n');
	if (*ended != '\0') {
		where_ended(j);
		return;
	}
	n = items(j, "threads", &list);
	if (n == 0)
		(void)puts("  no scope is open");
	for (i = 0; i < n; i++)
		where_thread(w, &list[i]);
	n = items(j, "launches", &list);
	if (flight > 0)
		(void)printf("  %lu launches in flight; last delivery ", flight);
	if (flight > 0 && wire_u64_or(j, "delivered_ns", 0) == 0)
		(void)puts("never");
	else if (flight > 0) {
		put_since(w->now_ns, wire_u64_or(j, "delivered_ns", 0));
		(void)puts("");
	}
	for (i = 0; i < n; i += same) {
		for (same = 1; i + same < n && alike(&list[i], &list[i + same]); same++)
			;
		where_launch(w, &list[i], same - 1);
	}
}

/* The deepest path a job's first thread is in: what ranks are compared by. */
static void place_of(const msgpack_object *j, char ret[512])
{
	const msgpack_object *t = NULL, *open = NULL;
	uint32_t n;

	ret[0] = '\0';
	if (items(j, "threads", &t) == 0)
		return;
	n = items(&t[0], "open", &open);
	if (n > 0)
		(void)wire_text(&open[n - 1], "path", ret, 512);
}

/* Which ranks stand elsewhere than most: those are what a hang waits for. */
static void where_differs(struct names *names, const msgpack_object *jobs, uint32_t n)
{
	char place[512], other[512], most[512] = "";
	uint32_t i, k, same, best = 0;

	if (n < 2 || n > 256)
		return;
	for (i = 0; i < n; i++) {
		place_of(&jobs[i], place);
		for (same = 0, k = 0; k < n; k++) {
			place_of(&jobs[k], other);
			same += strcmp(place, other) == 0 ? 1 : 0;
		}
		if (same > best) {
			best = same;
			memcpy(most, place, sizeof(most));
		}
	}
	if (best == n || best == 1)
		return;
	(void)printf("%u of %u are in ", best, n);
	text_put(stdout, *most != '\0' ? names_show_path(names, most) : "no scope", 100);
	(void)fputs("; elsewhere:", stdout);
	for (i = 0; i < n; i++) {
		place_of(&jobs[i], place);
		if (strcmp(place, most) != 0)
			(void)printf(" pid %lu (rank %ld)", wire_u64_or(&jobs[i], "pid", 0),
				wire_i64_or(&jobs[i], "rank", -1));
	}
	(void)putchar('\n');
}

/* -errno in c->err. */
static int where_print(struct ctl *c, const struct rpc_reply *r)
{
	struct where w = {.now_ns = wire_u64_or(r->result, "now_ns", 0)};
	const msgpack_object *jobs = NULL;
	const uint32_t n = items(r->result, "jobs", &jobs);
	uint32_t i;

	if (names_new(false, &w.names) < 0 || add_names(w.names, r->result) < 0 ||
		names_demangle(w.names) < 0) {
		names_free(w.names);
		return err_set(&c->err, -ENOMEM, "out of memory");
	}
	for (i = 0; i < n; i++)
		where_job(&w, &jobs[i]);
	where_differs(w.names, jobs, n);
	names_free(w.names);
	return 0;
}

/* A number is a pid, else a session's id. */
static int where_ask(struct ctl *c, struct rpc *rpc, struct rpc_reply *ret)
{
	const char *job = c->argc > 0 ? c->argv[0] : NULL;
	const msgpack_object *jobs = NULL;
	struct rpc_reply session = {.fd = -1};
	struct wire_buf *b = rpc_begin(rpc, "where");
	uint64_t pid;
	const bool is_number = job != NULL && text_u64(job, INT32_MAX, &pid);
	int code;

	if (is_number)
		wire_kv_u64(b, "pid", pid);
	else if (job != NULL)
		wire_kv_str(b, "session", job);
	code = ctl_call(c, rpc, ret);
	if (code < 0 || !is_number || items(ret->result, "jobs", &jobs) > 0)
		return code;
	wire_kv_str(rpc_begin(rpc, "where"), "session", job);
	code = ctl_call(c, rpc, &session);
	if (code < 0)
		return code == -ENOENT ? 0 : code;
	rpc_reply_free(ret);
	*ret = session;
	return 0;
}

int cmd_where(struct ctl *c)
{
	struct rpc_reply r = {.fd = -1};
	const msgpack_object *jobs = NULL;
	struct rpc *rpc;
	uint32_t n;
	int code = ctl_open(c, &rpc);

	if (code < 0)
		return ctl_fail(c);
	code = where_ask(c, rpc, &r);
	rpc_close(rpc);
	if (code < 0)
		return ctl_fail(c);
	n = items(r.result, "jobs", &jobs);
	if (!ctl_json(c, &r))
		code = where_print(c, &r);
	rpc_reply_free(&r);
	if (code < 0)
		return ctl_fail(c);
	if (n == 0 && !c->json)
		(void)fprintf(stderr,
			"protonctl where: %s; `protonctl jobs` lists what is attached\n",
			c->argc > 0 ? "no such job or session, or nothing is left of it"
				    : "no job is recorded");
	return n == 0 ? CTL_NOT_FOUND : CTL_OK;
}

/* --- top
 * ------------------------------------------------------------------------------------------- */

/* A row: one path's sums, and what they were at the look before. */
struct row {
	char *path;
	uint64_t class, count, sum_ns, max_ns, was_count, was_ns;
};

struct table {
	struct row *row;
	uint32_t n;
	int64_t session;
	uint64_t now_ns;
};

static void table_free(struct table *t)
{
	uint32_t i;

	for (i = 0; i < t->n; i++)
		free(t->row[i].path);
	free(t->row);
	*t = (struct table){.n = 0};
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

static int table_take(const struct rpc_reply *r, struct table *ret)
{
	const msgpack_object *cells = NULL;
	const uint32_t n = items(r->result, "cells", &cells);
	struct table t = {.now_ns = wire_u64_or(r->result, "now_ns", 0)};
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
		table_free(&t);
		return -ENOMEM;
	}
	qsort(t.row, t.n, sizeof(*t.row), by_name);
	*ret = t;
	return 0;
}

/* Sums of the look before, for the deltas. A session that shrank (another one) counts from zero. */
static void table_since(struct table *t, const struct table *before)
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
	const uint32_t n = items(r->result, "jobs", &jobs);
	uint64_t drops = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		drops += wire_u64_or(&jobs[i], "drops", 0);
	(void)fputs("session ", stdout);
	put_text_of(r->result, "session", 40);
	(void)printf(" (id %ld)  %u job%s  drops %lu  ", wire_i64_or(r->result, "id", 0), n,
		n == 1 ? "" : "s", drops);
	if (seconds > 0)
		(void)printf("last %.1f s\n", seconds);
	else
		(void)puts("since it began");
	(void)printf("%s%12s %7s %10s %10s  %-7s SCOPE OR KERNEL%s\n", c->color ? "\033[1m" : "",
		"TIME ms", "%", "CALLS", "MEAN us", "CLASS", c->color ? "\033[0m" : "");
}

static const char *class_name(uint64_t class)
{
	static const char *const names[] = {
		"cpu", "compute", "comm", "h2d", "d2h", "d2d", "p2p", "memset", "other"};

	return class < sizeof(names) / sizeof(names[0]) ? names[class] : "?";
}

/* seconds: what the time is a share of. */
static void top_rows(struct table *t, struct names *names, double seconds, uint32_t rows)
{
	uint32_t i;

	qsort(t->row, t->n, sizeof(*t->row), by_time);
	for (i = 0; i < t->n && i < rows; i++) {
		const struct row *w = &t->row[i];
		const double ns = (double)(w->sum_ns - w->was_ns);
		const uint64_t count = w->count - w->was_count;

		if (count == 0 && ns <= 0)
			continue;
		(void)printf("%12.3f %7.2f %10lu %10.2f  %-7s ", ns * 1e-6,
			seconds > 0 ? ns / (seconds * 1e7) : 0.0, count,
			count > 0 ? ns / (double)count * 1e-3 : 0.0, class_name(w->class));
		text_put(stdout, names_show_path(names, w->path), 110);
		(void)putchar('\n');
	}
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
	struct table before;
	uint32_t rows;
};

/* One look. -errno in c->err. */
static int top_once(struct ctl *c, struct rpc *rpc, struct top *top)
{
	struct rpc_reply r = {.fd = -1};
	struct table t;
	double seconds = 0;
	int code = top_ask(c, rpc, c->argc > 0 ? c->argv[0] : NULL, &r);

	if (code == 0 && ctl_json(c, &r)) {
		rpc_reply_free(&r);
		return 0;
	}
	if (code == 0 && (add_names(top->names, r.result) < 0 || names_demangle(top->names) < 0 ||
				 table_take(&r, &t) < 0))
		code = err_set(&c->err, -ENOMEM, "out of memory");
	if (code < 0) {
		rpc_reply_free(&r);
		return code;
	}
	t.session = wire_i64_or(r.result, "id", 0);
	if (top->before.session != t.session) { /* another one: since it began */
		table_free(&top->before);
		top->before = (struct table){0};
	}
	if (top->before.now_ns != 0)
		seconds = (double)(t.now_ns - top->before.now_ns) * 1e-9;
	table_since(&t, &top->before);
	if (isatty(STDOUT_FILENO) && seconds > 0)
		(void)fputs("\033[H\033[J", stdout);
	top_head(c, &r, seconds);
	if (seconds <= 0)
		seconds = (double)wire_u64_or(r.result, "duration_ns", 0) * 1e-9;
	top_rows(&t, top->names, seconds, top->rows);
	(void)fflush(stdout);
	qsort(t.row, t.n, sizeof(*t.row), by_name);
	table_free(&top->before);
	top->before = t;
	rpc_reply_free(&r);
	return 0;
}

int cmd_top(struct ctl *c)
{
	const char *interval = ctl_option(c, "interval"), *lines = ctl_option(c, "lines");
	const bool once = ctl_option(c, "once") != NULL || c->json;
	struct top top = {.names = NULL};
	uint64_t rows = screen_rows();
	double seconds = interval != NULL ? strtod(interval, NULL) : 1.0;
	struct pollfd p = {.events = POLLIN};
	struct rpc *rpc;
	int code;

	if (!(seconds >= 0.1 && seconds <= 3600))
		return ctl_usage(c, "--interval %s: 0.1 to 3600 seconds", interval);
	if (lines != NULL && (!text_u64(lines, ROWS_MAX, &rows) || rows == 0))
		return ctl_usage(c, "--lines %s: 1 to %u", lines, ROWS_MAX);
	if (ctl_open(c, &rpc) < 0)
		return ctl_fail(c);
	p.fd = rpc_fd(rpc);
	top.rows = (uint32_t)rows;
	code = names_new(false, &top.names);
	if (code < 0)
		(void)err_set(&c->err, code, "out of memory");
	while (code == 0) {
		code = top_once(c, rpc, &top);
		if (once || ferror(stdout))
			break;
		if (code == 0) /* the daemon's end is seen at once */
			(void)poll(&p, 1, (int)(seconds * 1e3));
	}
	names_free(top.names);
	table_free(&top.before);
	rpc_close(rpc);
	return code < 0 ? ctl_fail(c) : CTL_OK;
}
