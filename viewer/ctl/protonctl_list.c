/* SPDX-License-Identifier: MIT. protonctl_list.c: the commands that show what the daemon knows:
 * sessions, jobs, status, backends, version. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "grid.h"
#include "human.h"
#include "json.h"
#include "protonctl_answer.h"
#include "protonctl_call.h"
#include "protonctl_self.h"
#include "sessions.h"

/* The items of a list in an answer. */
struct list {
	const msgpack_object *item;
	uint32_t n;
};

static struct list list_of(const struct rpc_reply *r, const char *key)
{
	struct list l = {.n = 0};

	l.n = answer_items(r->result, key, &l.item);
	return l;
}

static int more_of(struct ctl *c, const struct rpc_reply *r)
{
	const uint64_t more = wire_u64_or(r->result, "more", 0);

	if (more == 0)
		return CTL_OK;
	ctl_warn(c, "%lu more did not fit into the daemon's answer", more);
	return CTL_PARTIAL;
}

/* --- sessions */

/* A row as the daemon has it, whoever was asked. */
static void session_json(const struct pick_row *row)
{
	const struct {
		const char *key, *text;
	} texts[] = {{"uuid", row->uuid}, {"name", row->name}, {"command", row->command},
		{"state", row->state}, {"source", row->source}, {"tags", row->tags},
		{"note", row->note}};
	size_t i;

	printf("{\"id\":%ld", row->id);
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		printf(",\"%s\":", texts[i].key);
		json_text(stdout, texts[i].text, strlen(texts[i].text));
	}
	printf(",\"uid\":%u,\"created_ns\":%ld,\"ended_ns\":%ld,\"duration_ns\":", row->uid,
		row->created_ns, row->ended_ns);
	if (row->active_ns >= 0)
		printf("%ld", row->active_ns);
	else
		fputs("null", stdout);
	printf(",\"processes\":%ld,\"launches\":%ld,\"matched\":%ld,\"empty\":%s}", row->processes,
		row->launches, row->matched, row->empty ? "true" : "false");
}

static void sessions_json(const struct ctl *c, const struct listing *l)
{
	uint32_t i;

	json_begin(stdout, c->cmd->name);
	fputs("{\"sessions\":[", stdout);
	for (i = 0; i < l->n; i++) {
		fputs(i > 0 ? "," : "", stdout);
		session_json(&l->row[i]);
	}
	printf("],\"more\":%lu}", l->more + l->older);
	ctl_json_end(c, stdout);
}

static void sessions_show(const struct ctl *c, const struct listing *l)
{
	struct text t = {0};
	struct term term;

	term_init(&term, STDOUT_FILENO, !c->color);
	sessions_print(&t, &term, l);
	if (t.n > 0)
		fwrite(t.s, 1, t.n, stdout);
	text_fini(&t);
	sessions_say_left_out(l);
}

static int cmd_sessions(struct ctl *c)
{
	const char *lines = ctl_option(c, "rows");
	struct listing_wish w = {.ask = true,
#define X(id, letter, name, arg, verbs, help) .filter[FILTER_##id] = ctl_option(c, name),
		LISTING_FILTERS(X, )
#undef X
			.all = c->json || ctl_option(c, "all") != NULL};
	uint64_t max = c->json ? 0 : LISTING_ROWS;
	struct source how;
	struct listing l;

	if (lines != NULL && !text_u64(lines, UINT32_MAX, &max))
		return ctl_usage(c, "--rows %s is not a number", lines);
	w.rows = (uint32_t)max;
	if (listing_read(&w, &l, &how, &c->err) < 0)
		return ctl_fail(c);
	if (l.more > 0)
		ctl_warn(c, "%lu more did not fit into the daemon's answer", l.more);
	if (c->json)
		sessions_json(c, &l);
	else
		sessions_show(c, &l);
	ctl_warnings(c);
	max = l.more;
	listing_free(&l);
	return max > 0 || how.partial ? CTL_PARTIAL : CTL_OK;
}

/* clang-format off */
static const struct option_def sessions_options[] = {
	{'n', "rows", "N", "at most the N newest (default 40; 0: all)", NULL},
	{'a', "all", NULL, "also those that ended with nothing in them", NULL},
#define X(id, letter, name, arg, verbs, help) {letter, name, arg, help, NULL},
	LISTING_FILTERS(X, )
#undef X
	{0, NULL, NULL, NULL, NULL},
};
/* clang-format on */

const struct command command_sessions = {.name = "sessions",
	.alias = "ls",
	.run = cmd_sessions,
	.args = "",
	.help = "list what was recorded and what is being recorded",
	.more = "Asks the daemon; when none runs, reads the database that it left. --json also\n"
		"lists those with nothing in them (`empty`).\n",
	.examples = "protonctl sessions\n"
		    "protonctl sessions --since 2h --name 'train*'\n"
		    "protonctl sessions --json | jq '.data.sessions[0]'\n",
	.options = sessions_options};

/* --- jobs */

static const struct grid_column job_columns[] = {{"PID", true, 0, 0}, {"RANK", true, 0, 4},
	{"STATE", false, 0, 0}, {"GPU", false, 0, 0}, {"EVENTS", true, 0, 2},
	{"KERNELS", true, 0, 3}, {"DROPS", true, 0, 0}, {"COMMAND", false, 16, 0},
	{"SESSIONS", false, 0, 1}};

static void job_sessions(struct grid *t, const msgpack_object *s)
{
	char ids[96] = "";
	size_t n = 0;
	uint32_t i;

	for (i = 0; s != NULL && s->type == MSGPACK_OBJECT_ARRAY && i < s->via.array.size; i++)
		if (s->via.array.ptr[i].type == MSGPACK_OBJECT_POSITIVE_INTEGER && n < sizeof(ids))
			n += (size_t)snprintf(ids + n, sizeof(ids) - n, "%s%lu", n > 0 ? "," : "",
				s->via.array.ptr[i].via.u64);
	grid_cell_fmt(t, "%s", n > 0 ? ids : "-");
}

static void job_cells(const struct ctl *c, struct grid *t, const msgpack_object *o)
{
	const int64_t rank = wire_i64_or(o, "rank", -1);
	char text[1100];

	grid_cell_fmt(t, "%lu", wire_u64_or(o, "pid", 0));
	if (rank >= 0)
		grid_cell_fmt(t, "%ld", rank);
	else
		grid_cell_fmt(t, "-");
	grid_cell(t, &c->term, *wire_text(o, "ended", text, sizeof(text)) != '\0' ? text : "runs");
	grid_cell(t, &c->term, wire_text(o, "gpu", text, sizeof(text)));
	grid_cell_fmt(t, "%lu", wire_u64_or(o, "events", 0));
	grid_cell_fmt(t, "%lu", wire_u64_or(o, "kernels", 0));
	grid_cell_fmt(t, "%lu", wire_u64_or(o, "drops", 0));
	grid_cell(t, &c->term, wire_text(o, "command", text, sizeof(text)));
	job_sessions(t, wire_get(o, "sessions"));
}

/* Why its GPU is as it is, below the table: a sentence is no column. */
static void job_words(const struct ctl *c, struct text *out, const msgpack_object *o)
{
	char words[1100];
	const size_t from = out->n;

	if (*wire_text(o, "gpu_text", words, sizeof(words)) == '\0')
		return;
	text_fmt(out, "%lu: ", wire_u64_or(o, "pid", 0));
	term_name(&c->term, out, words, 0);
	term_wrap(&c->term, out, from, 2);
	text_char(out, '\n');
}

static void jobs_print(const struct ctl *c, const struct list *l)
{
	struct grid t;
	struct text out = {0};
	uint32_t i;

	grid_init(&t, job_columns, sizeof(job_columns) / sizeof(job_columns[0]));
	for (i = 0; i < l->n; i++)
		job_cells(c, &t, &l->item[i]);
	grid_print(&out, &c->term, &t);
	for (i = 0; i < l->n; i++)
		job_words(c, &out, &l->item[i]);
	ctl_print(&out);
	grid_fini(&t);
}

static int cmd_jobs(struct ctl *c)
{
	struct rpc_reply r = {.fd = -1};
	struct rpc *rpc;
	struct list l;
	int code = ctl_open(c, &rpc);

	if (code < 0)
		return ctl_fail(c);
	wire_kv_bool(rpc_begin(rpc, "jobs"), "all", ctl_option(c, "all") != NULL);
	code = ctl_call(c, rpc, &r);
	rpc_close(rpc);
	if (code < 0)
		return ctl_fail(c);
	code = more_of(c, &r);
	l = list_of(&r, "jobs");
	if (!ctl_json(c, &r) && l.n == 0) {
		puts("no job is attached; start one with `protonctl run -- CMD`, or enable a "
		     "shell with:");
		env_line(stdout, NULL);
	} else if (!c->json) {
		jobs_print(c, &l);
	}
	ctl_warnings(c);
	rpc_reply_free(&r);
	return code;
}

/* clang-format off */
static const struct option_def jobs_options[] = {
	{'a', "all", NULL, "also jobs that have ended", NULL},
	{0, NULL, NULL, NULL, NULL},
};
/* clang-format on */

const struct command command_jobs = {.name = "jobs",
	.run = cmd_jobs,
	.args = "",
	.help = "list the jobs that protond sees",
	.examples = "protonctl jobs\nprotonctl jobs --all\n",
	.options = jobs_options};

/* --- status */

#define STATUS_INDENT 11 /* where the words begin */

static void status_line(const struct ctl *c, struct text *t, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void status_line(const struct ctl *c, struct text *t, const char *what, const char *fmt, ...)
{
	const size_t from = t->n;
	char words[4400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	text_fmt(t, "%-*s", STATUS_INDENT, what);
	term_name(&c->term, t, words, 0);
	term_wrap(&c->term, t, from, STATUS_INDENT);
	text_char(t, '\n');
}

static void status_gpu(const struct ctl *c, struct text *t, const msgpack_object *o)
{
	status_line(c, t, "GPU",
		"on in %lu jobs, armed in %lu, failed in %lu, aside in %lu, with CUPTI residual in "
		"%lu",
		wire_u64_or(o, "on", 0), wire_u64_or(o, "armed", 0), wire_u64_or(o, "failed", 0),
		wire_u64_or(o, "aside", 0), wire_u64_or(o, "residual", 0));
}

static void status_print(const struct ctl *c, const struct rpc_reply *r)
{
	const msgpack_object *o = r->result;
	char text[4096], a[32], b[32];
	const struct list w = list_of(r, "warnings");
	const double up = wire_f64_or(o, "uptime_s", 0), cpu = wire_f64_or(o, "cpu_s", 0);
	struct text t = {0};
	uint32_t i;

	text_duration(up, a);
	status_line(c, &t, "daemon", "protond %s, pid %ld, up %s", wire_text(o, "daemon", text, 32),
		wire_i64_or(o, "pid", 0), a);
	status_line(c, &t, "runtime", "%s", wire_text(o, "runtime_dir", text, sizeof(text)));
	text_bytes(wire_u64_or(o, "db_bytes", 0), a);
	status_line(c, &t, "database", "%s (%s)", wire_text(o, "db", text, sizeof(text)), a);
	status_line(c, &t, "jobs", "%lu attached, %lu sessions live, automatic sessions: %s",
		wire_u64_or(o, "jobs", 0), wire_u64_or(o, "sessions", 0),
		wire_text(o, "auto_session", text, sizeof(text)));
	status_line(c, &t, "recorded", "%lu events, %lu kernels; dropped: %lu",
		wire_u64_or(o, "events", 0), wire_u64_or(o, "kernels", 0),
		wire_u64_or(o, "drops", 0));
	text_bytes(wire_u64_or(o, "rss_bytes", 0), a);
	text_bytes(wire_u64_or(o, "journal_bytes", 0), b);
	status_line(c, &t, "cost",
		"%.2f %% of a core since it began (%.2f s; agents in jobs %.2f s), %s of memory, "
		"%s of journal not stored",
		up > 0 ? 100 * cpu / up : 0.0, cpu, wire_f64_or(o, "agents_cpu_s", 0), a, b);
	status_gpu(c, &t, wire_get(o, "gpu"));
	for (i = 0; i < w.n; i++)
		status_line(c, &t, "warning", "%s", answer_text(&w.item[i], text, sizeof(text)));
	ctl_print(&t);
}

static int cmd_status(struct ctl *c)
{
	struct rpc_reply r = {.fd = -1};

	if (ctl_ask(c, "status", &r) < 0)
		return ctl_fail(c);
	if (!ctl_json(c, &r))
		status_print(c, &r);
	rpc_reply_free(&r);
	return CTL_OK;
}

const struct command command_status = {.name = "status",
	.run = cmd_status,
	.args = "",
	.help = "the daemon's state and what it costs",
	.examples = "protonctl status\n",
	.options = no_options};

static int cmd_backends(struct ctl *c)
{
	struct rpc_reply r = {.fd = -1};
	struct list l;
	struct text t = {0};
	uint32_t i;
	char text[1024];

	if (ctl_ask(c, "backends", &r) < 0)
		return ctl_fail(c);
	l = list_of(&r, "backends");
	for (i = 0; !c->json && i < l.n; i++) {
		const size_t from = t.n;

		text_fmt(&t, "%-8s ", wire_text(&l.item[i], "name", text, 16));
		text_fmt(&t, "%-8s ", wire_text(&l.item[i], "state", text, 16));
		term_name(&c->term, &t, wire_text(&l.item[i], "text", text, sizeof(text)), 0);
		term_wrap(&c->term, &t, from, 18);
		text_char(&t, '\n');
	}
	ctl_print(&t);
	(void)ctl_json(c, &r);
	rpc_reply_free(&r);
	return CTL_OK;
}

const struct command command_backends = {.name = "backends",
	.run = cmd_backends,
	.args = "",
	.help = "what can record here",
	.examples = "protonctl backends\n",
	.options = no_options};

/* Works without a daemon: then only this tool's version is known. */
static int cmd_version(struct ctl *c)
{
	struct rpc *rpc;
	const struct rpc_daemon *d = NULL;

	if (ctl_open(c, &rpc) == 0)
		d = rpc_daemon(rpc);
	if (c->json) {
		json_begin(stdout, c->cmd->name);
		printf("{\"protonctl\":\"" PROTOND_BUILD_VERSION "\",\"wire\":%d,\"protond\":",
			WIRE_VERSION);
		if (d != NULL)
			json_text(stdout, d->version, strlen(d->version));
		else
			fputs("null", stdout);
		putchar('}');
		json_end(stdout, NULL, 0);
	} else {
		puts("protonctl " PROTOND_BUILD_VERSION);
		if (d != NULL)
			printf("protond   %s (pid %ld, %s)\n", d->version, d->pid, d->dir);
		else
			puts("protond   none runs");
	}
	if (d != NULL)
		rpc_close(rpc);
	return CTL_OK;
}

const struct command command_version = {.name = "version",
	.run = cmd_version,
	.args = "",
	.help = "versions of this tool and of the daemon",
	.examples = "protonctl version\n",
	.options = no_options};
