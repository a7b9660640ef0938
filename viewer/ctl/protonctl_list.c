/* SPDX-License-Identifier: MIT. protonctl_list.c: the commands that show what the daemon knows:
 * sessions, jobs, status, backends, version. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "human.h"
#include "json.h"
#include "protonctl_answer.h"
#include "protonctl_call.h"
#include "protonctl_self.h"
#include "sessions.h"

#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

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

static void head(const struct ctl *c, const char *words)
{
	printf(c->color ? BOLD "%s" PLAIN "\n" : "%s\n", words);
}

/* Text in a column, padded. */
static void column(const char *text, int width)
{
	char cell[256];
	FILE *f = fmemopen(cell, sizeof(cell), "w");

	cell[0] = '\0';
	if (f != NULL) {
		text_put(f, text, (size_t)width);
		(void)fclose(f);
	}
	printf("%-*s ", width, cell);
}

static void column_of(const msgpack_object *o, const char *key, int width)
{
	char text[256];

	column(wire_text(o, key, text, sizeof(text)), width);
}

static int more_of(struct ctl *c, const struct rpc_reply *r)
{
	const uint64_t more = wire_u64_or(r->result, "more", 0);

	if (more == 0)
		return CTL_OK;
	ctl_warn(c, "%lu more did not fit into one reply", more);
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
	fwrite(t.s, 1, t.n, stdout);
	text_fini(&t);
	sessions_say_left_out(l);
}

static int cmd_sessions(struct ctl *c)
{
	const char *lines = ctl_option(c, "lines");
	struct listing_wish w = {.ask = true,
#define X(id, letter, name, arg, verbs, help) .filter[FILTER_##id] = ctl_option(c, name),
		LISTING_FILTERS(X, )
#undef X
			.all = c->json || ctl_option(c, "all") != NULL};
	uint64_t max = c->json ? 0 : LISTING_ROWS;
	struct source how;
	struct listing l;

	if (lines != NULL && !text_u64(lines, UINT32_MAX, &max))
		return ctl_usage(c, "--lines %s is not a number", lines);
	w.rows = (uint32_t)max;
	if (listing_read(&w, &l, &how, &c->err) < 0)
		return ctl_fail(c);
	if (l.more > 0)
		ctl_warn(c, "%lu more did not fit into one reply", l.more);
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
	{'n', "lines", "N", "at most the N newest (default 40; 0: all)", NULL},
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
	.help = "list what has been and is recorded",
	.more = "Of the daemon; when none runs, of the database that it left. With --json also "
		"those\n"
		"with nothing in them (`empty`).\n",
	.examples = "protonctl sessions\n"
		    "protonctl sessions --since 2h --name 'train*'\n"
		    "protonctl sessions --json | jq '.data.sessions[0]'\n",
	.options = sessions_options};

/* --- jobs */

static void job_line(const msgpack_object *o)
{
	const int64_t rank = wire_i64_or(o, "rank", -1);
	const msgpack_object *s = wire_get(o, "sessions");
	char text[256], rank_text[24] = "-";
	uint32_t i;

	if (rank >= 0)
		snprintf(rank_text, sizeof(rank_text), "%ld", rank);
	printf("%8lu %5s ", wire_u64_or(o, "pid", 0), rank_text);
	column(*wire_text(o, "ended", text, sizeof(text)) != '\0' ? text : "runs", 7);
	column_of(o, "gpu", 8);
	printf("%12lu %9lu %6lu ", wire_u64_or(o, "events", 0), wire_u64_or(o, "kernels", 0),
		wire_u64_or(o, "drops", 0));
	column_of(o, "command", 40);
	for (i = 0; s != NULL && s->type == MSGPACK_OBJECT_ARRAY && i < s->via.array.size; i++)
		if (s->via.array.ptr[i].type == MSGPACK_OBJECT_POSITIVE_INTEGER)
			printf("%s%lu", i > 0 ? "," : "", s->via.array.ptr[i].via.u64);
	putchar('\n');
	if (*wire_text(o, "gpu_text", text, sizeof(text)) != '\0') {
		fputs("               ", stdout);
		text_put(stdout, text, 0);
		putchar('\n');
	}
}

static int cmd_jobs(struct ctl *c)
{
	struct rpc_reply r = {.fd = -1};
	struct rpc *rpc;
	struct list l;
	uint32_t i;
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
		head(c, "     PID  RANK STATE   GPU            EVENTS   KERNELS  DROPS COMMAND     "
			"                             SESSIONS");
		for (i = 0; i < l.n; i++)
			job_line(&l.item[i]);
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

static void status_print(const struct rpc_reply *r)
{
	const msgpack_object *o = r->result;
	char text[4096], a[32], b[32];
	const struct list w = list_of(r, "warnings");
	const double up = wire_f64_or(o, "uptime_s", 0), cpu = wire_f64_or(o, "cpu_s", 0);
	uint32_t i;

	printf("daemon     protond %s, pid %ld, up ", wire_text(o, "daemon", text, 32),
		wire_i64_or(o, "pid", 0));
	text_duration(up, a);
	puts(a);
	printf("runtime    %s\n", wire_text(o, "runtime_dir", text, sizeof(text)));
	text_bytes(wire_u64_or(o, "db_bytes", 0), a);
	printf("database   %s (%s)\n", wire_text(o, "db", text, sizeof(text)), a);
	printf("jobs       %lu attached, %lu sessions live, automatic sessions: %s\n",
		wire_u64_or(o, "jobs", 0), wire_u64_or(o, "sessions", 0),
		wire_text(o, "auto_session", text, sizeof(text)));
	printf("recorded   %lu events, %lu kernels; dropped: %lu\n", wire_u64_or(o, "events", 0),
		wire_u64_or(o, "kernels", 0), wire_u64_or(o, "drops", 0));
	text_bytes(wire_u64_or(o, "rss_bytes", 0), a);
	text_bytes(wire_u64_or(o, "journal_bytes", 0), b);
	printf("cost       %.2f %% of a core since it began (%.2f s; agents in jobs %.2f s), "
	       "%s of memory, %s of journal not stored\n",
		up > 0 ? 100 * cpu / up : 0.0, cpu, wire_f64_or(o, "agents_cpu_s", 0), a, b);
	o = wire_get(o, "gpu");
	printf("GPU        on in %lu jobs, armed in %lu, failed in %lu, aside in %lu, with "
	       "CUPTI residual in %lu\n",
		wire_u64_or(o, "on", 0), wire_u64_or(o, "armed", 0), wire_u64_or(o, "failed", 0),
		wire_u64_or(o, "aside", 0), wire_u64_or(o, "residual", 0));
	for (i = 0; i < w.n; i++) {
		fputs("warning    ", stdout);
		text_put(stdout, answer_text(&w.item[i], text, sizeof(text)), 0);
		putchar('\n');
	}
}

static int cmd_status(struct ctl *c)
{
	struct rpc_reply r = {.fd = -1};

	if (ctl_ask(c, "status", &r) < 0)
		return ctl_fail(c);
	if (!ctl_json(c, &r))
		status_print(&r);
	rpc_reply_free(&r);
	return CTL_OK;
}

const struct command command_status = {.name = "status",
	.run = cmd_status,
	.args = "",
	.help = "how the daemon is and what it costs",
	.examples = "protonctl status\n",
	.options = no_options};

static int cmd_backends(struct ctl *c)
{
	struct rpc_reply r = {.fd = -1};
	struct list l;
	uint32_t i;
	char text[1024];

	if (ctl_ask(c, "backends", &r) < 0)
		return ctl_fail(c);
	l = list_of(&r, "backends");
	for (i = 0; !c->json && i < l.n; i++) {
		column_of(&l.item[i], "name", 8);
		column_of(&l.item[i], "state", 8);
		text_put(stdout, wire_text(&l.item[i], "text", text, sizeof(text)), 0);
		putchar('\n');
	}
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
