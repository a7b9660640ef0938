/* SPDX-License-Identifier: MIT. protonctl_session.c: the verbs that begin, hold and end sessions.
 */
#include "protonctl_session.h"

#include <stdio.h>
#include <string.h>

#include "formats.h"
#include "human.h"
#include "protonctl_answer.h"
#include "protonctl_call.h"
#include "protonctl_file.h"
#include "protonctl_process.h"
#include "protonctl_self.h"
#include "session_terms.h"

static const char *const shared_options[] = {"backend", "context", "data", "hook", "mode", "cpu"};

/* --counters and --native say a switch, too. */
static void put_switches(const struct ctl *c, struct wire_buf *b)
{
	const char *words = ctl_option(c, "switches");
	const bool counters = ctl_option(c, "counters") != NULL,
		   native = ctl_option(c, "native") != NULL;
	char all[256];

	if (words == NULL && !counters && !native)
		return;
	snprintf(all, sizeof(all), "%s%s%s", words != NULL ? words : "",
		counters ? ",counters" : "", native ? ",cpu" : "");
	wire_kv_str(b, "switches", *all == ',' ? all + 1 : all);
}

void session_params(const struct ctl *c, struct wire_buf *b)
{
	const char *v;
	size_t i;

	for (i = 0; i < sizeof(shared_options) / sizeof(shared_options[0]); i++) {
		v = ctl_option(c, shared_options[i]);
		if (v != NULL)
			wire_kv_str(b, shared_options[i], v);
	}
	put_switches(c, b);
	v = ctl_option(c, "nvtx-domains");
	if (v != NULL)
		wire_kv_str(b, "nvtx_domains", v);
}

/* A call whose only parameter is a session or a pid. Exit code; what failed was said. */
static int call_one(struct ctl *c, const char *method, const char *key, const char *value,
	struct rpc_reply *ret)
{
	struct rpc *rpc;
	struct wire_buf *b;
	uint64_t pid;
	int code = ctl_open(c, &rpc);

	if (code < 0)
		return ctl_fail(c);
	b = rpc_begin(rpc, method);
	if (value != NULL && strcmp(key, "pid") == 0 && text_u64(value, INT32_MAX, &pid))
		wire_kv_u64(b, key, pid);
	else if (value != NULL)
		wire_kv_str(b, key, value);
	code = ctl_call(c, rpc, ret);
	rpc_close(rpc);
	return code < 0 ? ctl_fail(c) : CTL_OK;
}

/* *ret: which one; *ret_said: it was told as JSON. */
static int change(struct ctl *c, const char *method, struct named *ret, bool *ret_said)
{
	struct rpc_reply r = {.fd = -1};
	const int code = call_one(c, method, "session", c->argv[0], &r);

	if (code == CTL_OK) {
		answer_session(r.result, c->argv[0], ret);
		*ret_said = ctl_json(c, &r);
	}
	rpc_reply_free(&r);
	return code;
}

static int cmd_stop(struct ctl *c)
{
	struct named n;
	bool said;
	const int code = change(c, "stop", &n, &said);

	if (code == CTL_OK && !said)
		printf("session %s is stopped; `protonctl activate %ld` resumes it, "
		       "`protonctl finalize %ld` ends it\n",
			n.words, n.s.row.id, n.s.row.id);
	return code;
}

const struct command command_stop = {.name = "stop",
	.alias = "deactivate",
	.run = cmd_stop,
	.min = 1,
	.max = 1,
	.args = "SESSION",
	.help = "record no more for now; `activate` goes on",
	.examples = "protonctl stop slow\n",
	.options = no_options,
	.completes = 'l'};

static int cmd_activate(struct ctl *c)
{
	struct named n;
	bool said;
	const int code = change(c, "activate", &n, &said);

	if (code == CTL_OK && !said)
		printf("session %s records again\n", n.words);
	return code;
}

const struct command command_activate = {.name = "activate",
	.run = cmd_activate,
	.min = 1,
	.max = 1,
	.args = "SESSION",
	.help = "go on with a stopped session",
	.examples = "protonctl activate slow\n",
	.options = no_options,
	.completes = 'l'};

/* "+sync" and "-sync" of the command line, parted by commas as the wire has them. False: another
 * word. */
static bool switch_words_of(const struct ctl *c, char sign, char *ret, size_t n)
{
	size_t used = 0;
	int i;

	*ret = '\0';
	for (i = 1; i < c->argc; i++) {
		if (c->argv[i][0] != '+' && c->argv[i][0] != '-')
			return false;
		if (c->argv[i][0] == sign && used < n)
			used += (size_t)snprintf(
				ret + used, n - used, "%s%s", used > 0 ? "," : "", c->argv[i] + 1);
	}
	return used < n;
}

static int cmd_set(struct ctl *c)
{
	struct rpc_reply r = {.fd = -1};
	char on[64], off[64];
	struct wire_buf *b;
	struct named n;
	struct rpc *rpc;
	int code;

	if (!switch_words_of(c, '+', on, sizeof(on)) || !switch_words_of(c, '-', off, sizeof(off)))
		return ctl_usage(c, "say what to switch as +WORD or -WORD: " SWITCH_WORDS);
	if (ctl_open(c, &rpc) < 0)
		return ctl_fail(c);
	b = rpc_begin(rpc, "switch");
	wire_kv_str(b, "session", c->argv[0]);
	if (*on != '\0')
		wire_kv_str(b, "on", on);
	if (*off != '\0')
		wire_kv_str(b, "off", off);
	code = ctl_call(c, rpc, &r);
	rpc_close(rpc);
	if (code < 0)
		return ctl_fail(c);
	answer_session(r.result, c->argv[0], &n);
	if (!ctl_json(c, &r))
		printf("session %s, from now on:%s%s%s%s\n", n.words, *on != '\0' ? " +" : "", on,
			*off != '\0' ? " -" : "", off);
	rpc_reply_free(&r);
	return CTL_OK;
}

const struct command command_set = {.name = "set",
	.run = cmd_set,
	.min = 2,
	.max = 2 * (int)(sizeof(switch_bits)) + 1,
	.args = "SESSION +WORD|-WORD...",
	.help = "what else a session records from now on",
	.more = "Words: " SWITCH_WORDS "; docs/options.md says what each records.\n",
	.examples = "protonctl set slow +sync\nprotonctl set slow -sync\n",
	.options = no_options,
	.signs = true,
	.completes = 'l'};

static void say_unsettled(struct ctl *c, const struct rpc_reply *r)
{
	bool settled = true;

	(void)wire_get_bool(r->result, "settled", &settled);
	if (!settled)
		ctl_warn(c,
			"not every job has answered yet; `protonctl jobs` shows what each records");
}

static int pause_or_resume(struct ctl *c, const char *method, const char *done)
{
	struct rpc_reply r = {.fd = -1};
	uint64_t pid, n;
	int code;

	if (c->argc > 0 && !text_u64(c->argv[0], INT32_MAX, &pid))
		return ctl_usage(c, "%s is not a pid", c->argv[0]);
	code = call_one(c, method, "pid", c->argc > 0 ? c->argv[0] : NULL, &r);
	if (code == CTL_OK && !ctl_json(c, &r)) {
		n = wire_u64_or(r.result, "jobs", 0);
		printf("%lu job%s %s\n", n, n == 1 ? "" : "s", done);
		say_unsettled(c, &r);
		ctl_warnings(c);
	}
	rpc_reply_free(&r);
	return code;
}

static int cmd_pause(struct ctl *c)
{
	return pause_or_resume(c, "pause", "let go of CUPTI; `protonctl resume` takes it again");
}

const struct command command_pause = {.name = "pause",
	.run = cmd_pause,
	.max = 1,
	.args = "[PID]",
	.help = "let go of CUPTI, for another tool",
	.more = "Without a pid: all your jobs.\n",
	.examples = "protonctl pause 4242\n",
	.options = no_options,
	.completes = 'j'};

static int cmd_resume(struct ctl *c)
{
	return pause_or_resume(c, "resume", "may use CUPTI again");
}

const struct command command_resume = {.name = "resume",
	.run = cmd_resume,
	.max = 1,
	.args = "[PID]",
	.help = "take CUPTI again after `pause`",
	.examples = "protonctl resume 4242\n",
	.options = no_options,
	.completes = 'j'};

/* --- start */

/* The daemon does not have it; the user may see more of it than the daemon does. */
static void say_why_not(struct ctl *c, uint64_t pid)
{
	const struct err e = c->err;
	const char *next = strstr(e.text, "; ");
	char why[256];

	if (process_words(pid, why, sizeof(why)))
		err_set(&c->err, e.code, "%s%s", why, next != NULL ? next : "");
}

static int cmd_start(struct ctl *c)
{
	const char *pid_text = ctl_option(c, "pid"), *match = ctl_option(c, "match");
	const bool all = ctl_option(c, "all") != NULL;
	struct rpc_reply r = {.fd = -1};
	struct wire_buf *b;
	struct rpc *rpc;
	uint64_t pid = 0, jobs;
	int code;

	if ((pid_text != NULL) + (match != NULL) + all != 1)
		return ctl_usage(c, "say which jobs: exactly one of --pid, --all and --match");
	if (pid_text != NULL && (!text_u64(pid_text, INT32_MAX, &pid) || pid == 0))
		return ctl_usage(c, "--pid %s is not a pid", pid_text);
	if (ctl_open(c, &rpc) < 0)
		return ctl_fail(c);
	b = rpc_begin(rpc, "start");
	wire_kv_str(b, "name", c->argv[0]);
	if (pid != 0)
		wire_kv_u64(b, "pid", pid);
	if (all)
		wire_kv_bool(b, "all", true);
	if (match != NULL)
		wire_kv_str(b, "match", match);
	session_params(c, b);
	code = ctl_call(c, rpc, &r);
	if (code == -ESRCH)
		say_why_not(c, pid);
	if (code == -ESRCH && !c->json) {
		(void)ctl_fail(c);
		fputs("To make a shell's programs visible from now on:\n  ", stderr);
		env_line(stderr, rpc_daemon(rpc)->dir);
	}
	rpc_close(rpc);
	if (code < 0)
		return code == -ESRCH && !c->json ? CTL_NOT_FOUND : ctl_fail(c);
	if (!ctl_json(c, &r)) {
		jobs = wire_u64_or(r.result, "jobs", 0);
		text_put(stdout, c->argv[0], 0);
		printf(" records: id %ld, %lu job%s now%s. End it with `protonctl finalize "
		       "%ld`.\n",
			wire_i64_or(r.result, "id", 0), jobs, jobs == 1 ? "" : "s",
			jobs == 0 ? ", and those that come" : "", wire_i64_or(r.result, "id", 0));
		say_unsettled(c, &r);
	}
	ctl_warnings(c);
	rpc_reply_free(&r);
	return CTL_OK;
}

/* clang-format off */
static const struct option_def start_options[] = {
	{'p', "pid",   "PID",  "this job", NULL},
	{'a', "all",   NULL,   "all your jobs, also later ones, from a few milliseconds after they begin", NULL},
	{0,   "match", "GLOB", "your jobs whose command line matches, also later ones", NULL},
	SESSION_OPTIONS,
	{0, NULL, NULL, NULL, NULL},
};

const struct command command_start = {.name = "start",
	.run = cmd_start,
	.min = 1,
	.max = 1,
	.args = "NAME",
	.help = "begin to record running jobs",
	.more =
		"Which jobs: exactly one of --pid, --all, --match. A job can be recorded when it links libprotond, or\n"
		"was started under `protonctl run` or with the variables of `protonctl env`.\n",
	.examples =
		"protonctl start slow --pid 4242\n"
		"protonctl start night --match '*train.py*'\n",
	.options = start_options};
/* clang-format on */

/* --- finalize */

static int cmd_finalize(struct ctl *c)
{
	const char *output = ctl_option(c, "output"), *timeout = ctl_option(c, "timeout");
	struct rpc_reply r = {.fd = -1};
	struct rpc *rpc;
	struct wire_buf *b;
	uint64_t seconds = 5;
	char id[24], db[CTL_DB_WORDS];
	struct named n;
	int code;

	if (timeout != NULL && !text_u64(timeout, 60, &seconds))
		return ctl_usage(c, "--timeout %s: give 0 to 60 seconds", timeout);
	if ((output != NULL && output_check(c, output) < 0) || ctl_open(c, &rpc) < 0)
		return ctl_fail(c);
	b = rpc_begin(rpc, "finalize");
	wire_kv_str(b, "session", c->argv[0]);
	wire_kv_u64(b, "timeout_ms", seconds * 1000);
	code = rpc_call(rpc, (int)(seconds * 1000) + RPC_TIMEOUT_MS, &r, &c->err);
	snprintf(id, sizeof(id), "%ld", code == 0 ? wire_i64_or(r.result, "id", 0) : 0);
	ctl_db_words(rpc, db, sizeof(db));
	if (code == 0 && output != NULL)
		code = export_file(rpc, id, output, ctl_option(c, "force") != NULL, &c->err);
	rpc_close(rpc);
	if (code < 0) {
		rpc_reply_free(&r);
		return ctl_fail(c);
	}
	answer_session(r.result, c->argv[0], &n);
	if (!ctl_json(c, &r))
		printf("session %s is stored: %lu launches, %lu without a GPU record%s%s. Open "
		       "it with `%sprotonview tree %s`.\n",
			n.words, wire_u64_or(r.result, "launches", 0),
			wire_u64_or(r.result, "unmatched", 0), output != NULL ? ", in " : "",
			output != NULL ? output : "", db, id);
	rpc_reply_free(&r);
	return CTL_OK;
}

/* clang-format off */
static const struct option_def finalize_options[] = {
	{'o', "output",  "FILE",    "also write FILE (" OUTPUT_FILES ")", NULL},
	{0,   "force",   NULL,      "overwrite the output file", NULL},
	{0,   "timeout", "SECONDS", "how long to wait for launches in flight (default 5)", NULL},
	{0, NULL, NULL, NULL, NULL},
};
/* clang-format on */

const struct command command_finalize = {.name = "finalize",
	.run = cmd_finalize,
	.min = 1,
	.max = 1,
	.args = "SESSION",
	.help = "end a session and store it",
	.examples = "protonctl finalize slow\nprotonctl finalize slow -o slow.hatchet\n",
	.options = finalize_options,
	.completes = 'l'};
