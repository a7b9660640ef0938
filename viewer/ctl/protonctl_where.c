/* SPDX-License-Identifier: MIT. protonctl_where.c: where: what each rank and thread of a job is in.
 */
#include <stdio.h>
#include <string.h>

#include "human.h"
#include "json.h"
#include "protonctl_answer.h"
#include "protonctl_call.h"
#include "protonctl_daemon.h"
#include "protonctl_process.h"
#include "protonctl_stack.h"

struct where {
	const struct term *term;
	struct names *names;
	struct text out;
	uint64_t now_ns;
	bool stacks;
	struct stack *stack; /* of the job that is printed; NULL: none was asked for */
};

/* "for 1.20 s", or that it is not known. */
static void put_since(struct where *w, uint64_t since_ns)
{
	char took[32];

	if (since_ns == 0 || w->now_ns < since_ns) {
		text_str(&w->out, "since before it was recorded");
		return;
	}
	text_duration((double)(w->now_ns - since_ns) * 1e-9, took);
	text_fmt(&w->out, "for %s", took);
}

#define PATH_LEAST 16u
#define SINCE_MOST 30u /* "  since before it was recorded" */

/* A path or a kernel's name, as people read it: cut to what of the line is left beside `more`. */
static void put_name_of(
	struct where *w, size_t line, const msgpack_object *map, const char *key, uint32_t more)
{
	const uint32_t used = term_line_width(&w->out, line) + more, width = w->term->width;
	char text[1100];

	term_name(w->term, &w->out,
		names_show_path(w->names, wire_text(map, key, text, sizeof(text))),
		width == 0                  ? 0
		: used + PATH_LEAST < width ? width - used
					    : PATH_LEAST);
}

/* As the kernel has it, since the thread began; ready: it waited for a CPU. */
static void put_usage(struct where *w, const msgpack_object *t)
{
	const size_t line = w->out.n;

	text_fmt(&w->out, "  thread %lu", wire_u64_or(t, "tid", 0));
	if (wire_get(t, "cpu_ns") != NULL) {
		text_str(&w->out, "  ran ");
		term_duration(&w->out, (double)wire_u64_or(t, "cpu_ns", 0));
		text_str(&w->out, ", ready ");
		term_duration(&w->out, (double)wire_u64_or(t, "run_queue_ns", 0));
		text_fmt(&w->out, ", faults %lu minor %lu major", wire_u64_or(t, "minor_faults", 0),
			wire_u64_or(t, "major_faults", 0));
		term_wrap(w->term, &w->out, line, 4);
	}
	text_char(&w->out, '\n');
}

static void where_thread(struct where *w, const msgpack_object *t)
{
	const msgpack_object *open = NULL;
	uint32_t i, n = answer_items(t, "open", &open);

	put_usage(w, t);
	for (i = 0; i < n; i++) {
		const size_t line = w->out.n;

		text_str(&w->out, "    ");
		put_name_of(w, line, &open[i], "path", SINCE_MOST);
		text_str(&w->out, "  ");
		put_since(w, wire_u64_or(&open[i], "since_ns", 0));
		if (wire_get(&open[i], "properties") != NULL) {
			text_str(&w->out, "  ");
			put_name_of(w, line, &open[i], "properties", 0);
		}
		text_char(&w->out, '\n');
	}
	if (w->stack != NULL)
		stack_put(w->stack, w->term, &w->out, wire_u64_or(t, "tid", 0));
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
static void where_launch(struct where *w, const msgpack_object *l, uint32_t more)
{
	const bool running = wire_get(l, "running") != NULL && wire_get(l, "running")->via.boolean;
	size_t line = w->out.n;

	text_str(&w->out, running ? "    RUNNING   " : "    in flight ");
	put_name_of(w, line, l, "kernel", 0);
	term_wrap(w->term, &w->out, line, 6);
	text_str(&w->out, "  launched in ");
	put_name_of(w, line, l, "path", SINCE_MOST);
	text_str(&w->out, "  ");
	put_since(w, wire_u64_or(l, "since_ns", 0));
	if (running)
		text_fmt(&w->out, "  device %lu stream %lu", wire_u64_or(l, "device", 0),
			wire_u64_or(l, "stream", 0));
	if (more > 0)
		text_fmt(&w->out, ", and %u more of it", more);
	term_wrap(w->term, &w->out, line, 6);
	text_char(&w->out, '\n');
}

static void where_ended(struct where *w, const msgpack_object *j)
{
	const msgpack_object *notes = NULL;
	const uint32_t n = answer_items(j, "notes", &notes);
	char text[1100];
	uint32_t i;

	if (n == 0)
		text_str(&w->out, "  nothing was open that is known\n");
	for (i = 0; i < n; i++) {
		const size_t line = w->out.n;

		text_str(&w->out, "  ");
		term_name(w->term, &w->out, answer_text(&notes[i], text, sizeof(text)), 0);
		term_wrap(w->term, &w->out, line, 4);
		text_char(&w->out, '\n');
	}
}

static void where_job(struct where *w, const msgpack_object *j)
{
	const msgpack_object *list = NULL;
	const int64_t rank = wire_i64_or(j, "rank", -1);
	const uint64_t flight = wire_u64_or(j, "in_flight", 0);
	const size_t line = w->out.n;
	char ended[32], text[512];
	uint32_t i, n, same;

	text_fmt(&w->out, "pid %lu", wire_u64_or(j, "pid", 0));
	if (rank >= 0)
		text_fmt(&w->out, ", rank %ld", rank);
	text_str(&w->out, *wire_text(j, "ended", ended, sizeof(ended)) != '\0' ? ", " : "");
	text_str(&w->out, ended);
	if (wire_i64_or(j, "session", 0) > 0) {
		text_fmt(&w->out, ", in session %ld '", wire_i64_or(j, "session", 0));
		term_name(w->term, &w->out, wire_text(j, "session_name", text, sizeof(text)), 40);
		text_char(&w->out, '\'');
	}
	text_str(&w->out, ": ");
	term_name(w->term, &w->out, wire_text(j, "command", text, sizeof(text)), 0);
	term_wrap(w->term, &w->out, line, 2);
	text_char(&w->out, '\n');
	if (*ended != '\0') {
		where_ended(w, j);
		return;
	}
	w->stack = w->stacks ? stack_read(wire_u64_or(j, "pid", 0)) : NULL;
	n = answer_items(j, "threads", &list);
	if (n == 0)
		text_str(&w->out, "  no scope is open\n");
	for (i = 0; i < n; i++)
		where_thread(w, &list[i]);
	if (w->stack != NULL)
		stack_put(w->stack, w->term, &w->out, 0);
	stack_free(w->stack);
	w->stack = NULL;
	n = answer_items(j, "launches", &list);
	if (flight > 0)
		text_fmt(&w->out, "  %lu launches in flight; last delivery ", flight);
	if (flight > 0 && wire_u64_or(j, "delivered_ns", 0) == 0)
		text_str(&w->out, "never\n");
	else if (flight > 0) {
		put_since(w, wire_u64_or(j, "delivered_ns", 0));
		text_str(&w->out, "\n");
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
	if (answer_items(j, "threads", &t) == 0)
		return;
	n = answer_items(&t[0], "open", &open);
	if (n > 0)
		wire_text(&open[n - 1], "path", ret, 512);
}

/* Which ranks stand elsewhere than most: those are what a hang waits for. */
static void where_differs(struct where *w, const msgpack_object *jobs, uint32_t n)
{
	char place[512], other[512], most[512] = "";
	const size_t line = w->out.n;
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
	text_fmt(&w->out, "%u of %u are in ", best, n);
	term_name(
		w->term, &w->out, *most != '\0' ? names_show_path(w->names, most) : "no scope", 0);
	text_str(&w->out, "; elsewhere:");
	for (i = 0; i < n; i++) {
		place_of(&jobs[i], place);
		if (strcmp(place, most) != 0)
			text_fmt(&w->out, " pid %lu (rank %ld)", wire_u64_or(&jobs[i], "pid", 0),
				wire_i64_or(&jobs[i], "rank", -1));
	}
	term_wrap(w->term, &w->out, line, 2);
	text_char(&w->out, '\n');
}

/* -errno in c->err. */
static int where_print(struct ctl *c, const struct rpc_reply *r)
{
	struct where w = {.term = &c->term,
		.now_ns = wire_u64_or(r->result, "now_ns", 0),
		.stacks = ctl_option(c, "stack") != NULL};
	const msgpack_object *jobs = NULL;
	const uint32_t n = answer_items(r->result, "jobs", &jobs);
	uint32_t i;

	if (names_new(false, &w.names) < 0 || answer_names(w.names, r->result) < 0 ||
		names_demangle(w.names) < 0) {
		names_free(w.names);
		return err_set(&c->err, -ENOMEM, "out of memory");
	}
	for (i = 0; i < n; i++)
		where_job(&w, &jobs[i]);
	where_differs(&w, jobs, n);
	ctl_print(&w.out);
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
	if (code < 0 || !is_number || answer_items(ret->result, "jobs", &jobs) > 0)
		return code;
	wire_kv_str(rpc_begin(rpc, "where"), "session", job);
	code = ctl_call(c, rpc, &session);
	if (code < 0)
		return code == -ENOENT ? 0 : code;
	rpc_reply_free(ret);
	*ret = session;
	return 0;
}

/* s->words: as it is called; "": none was found by that word. */
static void where_nothing(const struct ctl *c, const struct named *s)
{
	char why[256];
	uint64_t pid;

	if (*s->words != '\0')
		text_say("of session %s no job is left that is known; `protonview tree %lld` "
			 "shows what it recorded",
			s->words, (long long)s->s.row.id);
	else if (c->argc == 0)
		text_say("no job is being recorded; `protonctl jobs` lists what is attached");
	else if (text_u64(c->argv[0], INT32_MAX, &pid) && process_words(pid, why, sizeof(why)))
		text_say("%s; `protonctl jobs` lists what is attached", why);
	else
		text_say("no job and no session is called %s; `protonctl jobs --all` and "
			 "`protonctl sessions` list them",
			c->argv[0]);
}

/* The answer, and beside its jobs the stacks of those that run. */
static void where_json_stacks(struct ctl *c, const struct rpc_reply *r)
{
	const msgpack_object_map *map = &r->result->via.map;
	const msgpack_object *jobs = NULL;
	const uint32_t n = answer_items(r->result, "jobs", &jobs);
	struct stack *s;
	char ended[32];
	const char *comma = "";
	uint32_t i;

	json_begin(stdout, c->cmd->name);
	putchar('{');
	for (i = 0; i < map->size; i++) {
		if (map->ptr[i].key.type != MSGPACK_OBJECT_STR)
			continue;
		json_text(stdout, map->ptr[i].key.via.str.ptr, map->ptr[i].key.via.str.size);
		putchar(':');
		json_value(stdout, &map->ptr[i].val);
		putchar(',');
	}
	fputs("\"stacks\":[", stdout);
	for (i = 0; i < n; i++) {
		if (*wire_text(&jobs[i], "ended", ended, sizeof(ended)) != '\0')
			continue;
		s = stack_read(wire_u64_or(&jobs[i], "pid", 0));
		if (s == NULL)
			continue;
		fputs(comma, stdout);
		comma = ",";
		stack_json(s, stdout);
		stack_free(s);
	}
	fputs("]}", stdout);
	ctl_json_end(c, stdout);
}

static int cmd_where(struct ctl *c)
{
	struct rpc_reply r = {.fd = -1};
	const msgpack_object *jobs = NULL, *session;
	struct named named = {.words = ""};
	struct rpc *rpc;
	uint32_t n;
	int code = ctl_open(c, &rpc);

	if (code == -ENOTCONN && c->argc > 0) /* of jobs that have ended, the database knows */
		code = daemon_of_sessions(&rpc, &c->err);
	if (code < 0)
		return ctl_fail(c);
	code = where_ask(c, rpc, &r);
	rpc_close(rpc);
	if (code < 0)
		return ctl_fail(c);
	n = answer_items(r.result, "jobs", &jobs);
	session = wire_get(r.result, "session");
	if (session != NULL)
		answer_session(session, c->argv[0], &named);
	if (c->json && ctl_option(c, "stack") != NULL && r.result->type == MSGPACK_OBJECT_MAP)
		where_json_stacks(c, &r);
	else if (!ctl_json(c, &r))
		code = where_print(c, &r);
	rpc_reply_free(&r);
	if (code < 0)
		return ctl_fail(c);
	if (n == 0 && !c->json)
		where_nothing(c, &named);
	return n == 0 ? CTL_NOT_FOUND : CTL_OK;
}

/* clang-format off */
static const struct option_def where_options[] = {
	{0, "stack", NULL, "also what each thread waits in, and its Python stack (3.11 to 3.13), innermost first", NULL},
	{0, NULL, NULL, NULL, NULL},
};

const struct command command_where = {.name = "where",
	.run = cmd_where,
	.max = 1,
	.args = "[JOB]",
	.help = "what each rank and thread is doing, and since when",
	.more =
		"JOB is a pid or a session. Shows open scopes, the oldest launches in flight and the kernel that is\n"
		"running; of a job that has ended, what it left. Makes no call into the job or the GPU.\n"
		"--stack reads the job's memory with your own rights, and neither stops it nor attaches to it.\n",
	.examples =
		"protonctl where 4242\n"
		"protonctl where @last\n"
		"protonctl where --stack 4242\n",
	.options = where_options,
	.completes = 'b'};
/* clang-format on */
