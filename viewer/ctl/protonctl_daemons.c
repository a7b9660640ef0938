/* SPDX-License-Identifier: MIT. protonctl_daemons.c: the daemons that run here: daemon, shutdown. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "human.h"
#include "json.h"
#include "paths.h"
#include "protonctl_call.h"
#include "protonctl_daemon.h"

/* --- one, in words --- */

static void put_log(const struct rpc_daemon *d)
{
	char path[4352];

	if (!d->private)
		puts("  log       journalctl -u protond");
	else if (snprintf(path, sizeof(path), "%s/" DAEMON_LOG_FILE, d->dir) < (int)sizeof(path) &&
		 access(path, F_OK) == 0)
		printf("  log       %s\n", path);
}

static void put_end(const msgpack_object *status, bool private)
{
	const uint64_t idle_s = wire_u64_or(status, "idle_exit_s", 0);
	bool unstored = false;

	(void)wire_get_bool(status, "unstored", &unstored);
	if (idle_s > 0 && unstored)
		puts("  ends      not by itself: sessions wait for the database, which fails;\n"
		     "            `protonctl status` says why");
	else if (idle_s > 0)
		printf("  ends      by itself, after %lu s without job and client\n", idle_s);
	else if (private)
		puts("  ends      with `protonctl daemon stop`");
}

static void put_daemon(const struct rpc_daemon *d, const msgpack_object *status)
{
	const char *set = getenv("PROTOND_RUNTIME_DIR");
	struct timespec now;
	char when[32], up[32];
	const double up_s = wire_f64_or(status, "uptime_s", 0);

	(void)clock_gettime(CLOCK_REALTIME, &now);
	text_when((int64_t)now.tv_sec * 1000000000 - (int64_t)(up_s * 1e9), when);
	text_duration(up_s, up);
	printf("protond %s, pid %ld, %s%s\n", d->version, d->pid,
		d->private ? "private" : "the system service",
		set != NULL && *set == '/' ? ", in PROTOND_RUNTIME_DIR" : "");
	printf("  since     %s (%s)\n", when, up);
	printf("  socket    %s/" PATHS_CONTROL_SOCK "\n", d->dir);
	printf("  database  %s\n", d->db);
	put_log(d);
	put_end(status, d->private);
}

static int ask_status(struct ctl *c, struct rpc *rpc, struct rpc_reply *ret)
{
	(void)rpc_begin(rpc, "status");
	return ctl_call(c, rpc, ret);
}

/* --- start --- */

/* One that was asked for stays until it is stopped. */
static int start(struct ctl *c)
{
	struct rpc_reply r = {.fd = -1};
	struct rpc *rpc = NULL;
	bool started;

	(void)setenv("PROTOND_IDLE_EXIT_S", "0", 0);
	if (daemon_ensure(&rpc, &started, &c->err) < 0 || ask_status(c, rpc, &r) < 0) {
		rpc_close(rpc);
		return ctl_fail(c);
	}
	if (c->json) {
		json_begin(stdout, c->cmd->name);
		printf("{\"started\":%s,\"daemons\":[", started ? "true" : "false");
		json_value(stdout, r.result);
		fputs("]}", stdout);
		ctl_json_end(c, stdout);
	} else {
		puts(started ? "started" : "runs already");
		put_daemon(rpc_daemon(rpc), r.result);
		if (!started && wire_u64_or(r.result, "idle_exit_s", 0) > 0)
			puts("            `protonctl daemon stop`, then `start`: one that stays");
	}
	rpc_reply_free(&r);
	rpc_close(rpc);
	return CTL_OK;
}

/* --- status --- */

/* Each place is asked, and told of: a daemon, or what keeps one from answering. */
static int status(struct ctl *c)
{
	char dir[4096];
	struct rpc_reply r;
	struct rpc *rpc;
	uint32_t i, n = 0;
	int code;

	if (c->json) {
		json_begin(stdout, c->cmd->name);
		fputs("{\"daemons\":[", stdout);
	}
	for (i = 0; paths_runtime(i, dir, sizeof(dir)) == 0; i++) {
		r = (struct rpc_reply){.fd = -1};
		rpc = NULL;
		code = rpc_open_at(dir, &rpc, &c->err);
		if (code == 0)
			code = ask_status(c, rpc, &r);
		if (code == 0 && c->json) {
			fputs(n > 0 ? "," : "", stdout);
			json_value(stdout, r.result);
		} else if (code == 0)
			put_daemon(rpc_daemon(rpc), r.result);
		else if (code != -ENOTCONN)
			ctl_warn(c, "%s", c->err.text);
		n += code == 0 ? 1 : 0;
		rpc_reply_free(&r);
		rpc_close(rpc);
	}
	if (c->json) {
		fputs("]}", stdout);
		ctl_json_end(c, stdout);
	} else if (n == 0 && c->n_warnings == 0)
		puts("no daemon runs; `protonctl daemon start` starts one of your own");
	ctl_warnings(c);
	return n > 0 ? CTL_OK : CTL_UNREACHABLE;
}

/* --- stop --- */

#define END_MS 30000

/* The daemon stores what it has, then ends: the next command must not meet it. Whether it did. */
static bool await_end(int64_t pid)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0), .events = POLLIN};
	bool ended;

	if (p.fd < 0)
		return true; /* gone, or of another pid namespace */
	ended = rpc_daemon_state(pid) == 0 || poll(&p, 1, END_MS) > 0;
	(void)close(p.fd);
	return ended;
}

/* Takes the connection. */
static int end(struct ctl *c, struct rpc *rpc)
{
	struct rpc_reply r = {.fd = -1};
	const int64_t pid = rpc_daemon(rpc)->pid;
	int code;

	(void)rpc_begin(rpc, "stop_daemon");
	code = ctl_call(c, rpc, &r);
	rpc_close(rpc);
	if (code == 0 && !await_end(pid))
		code = err_set(&c->err, -EBUSY,
			"protond (pid %ld) still stores what it has; it ends when that is done",
			pid);
	if (code == 0 && !ctl_json(c, &r))
		puts("protond has ended; jobs go on, and the next one finds them again");
	rpc_reply_free(&r);
	return code < 0 ? ctl_fail(c) : CTL_OK;
}

static int stop(struct ctl *c)
{
	char dir[4096];
	struct rpc *rpc;
	uint32_t i;
	struct err blocked = {0};

	for (i = 0; paths_runtime(i, dir, sizeof(dir)) == 0; i++) {
		if (rpc_open_at(dir, &rpc, &c->err) < 0) {
			if (c->err.code != -ENOTCONN)
				blocked = c->err;
			continue;
		}
		if (rpc_daemon(rpc)->private && rpc_daemon(rpc)->uid == geteuid())
			return end(c, rpc);
		rpc_close(rpc);
	}
	if (blocked.code < 0)
		c->err = blocked;
	else
		err_set(&c->err, -ENOTCONN,
			"no private daemon of yours runs; `protonctl daemon status` lists what "
			"does, "
			"and the service ends with `systemctl stop protond`");
	return ctl_fail(c);
}

static int cmd_daemon(struct ctl *c)
{
	static const struct {
		const char *word;
		ctl_fn *run;
	} words[] = {{"start", start}, {"stop", stop}, {"status", status}};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].word, c->argv[0]) == 0)
			return words[i].run(c);
	return ctl_usage(c, "'%s' is not one of start, stop, status", c->argv[0]);
}

const struct command command_daemon = {.name = "daemon",
	.run = cmd_daemon,
	.min = 1,
	.max = 1,
	.args = "start|stop|status",
	.help = "start a daemon of your own, end it, or say which daemons there are",
	.more = "start: a daemon that stays until it is stopped (or has been idle for\n"
		"PROTOND_IDLE_EXIT_S, when that is set); nothing when one runs already, yours or "
		"the\n"
		"service. stop: your own daemon only; live sessions are stored first, and jobs go "
		"on.\n"
		"status: exit code 3 when none runs.\n",
	.examples = "protonctl daemon start\nprotonctl daemon status\nprotonctl daemon stop\n",
	.options = no_options,
	.completes = 'w'};

static int cmd_shutdown(struct ctl *c)
{
	struct rpc *rpc;

	return ctl_open(c, &rpc) < 0 ? ctl_fail(c) : end(c, rpc);
}

const struct command command_shutdown = {.name = "shutdown",
	.run = cmd_shutdown,
	.args = "",
	.help = "end the daemon that answers, a service's too; jobs go on, and the next daemon "
		"finds them again",
	.examples = "protonctl shutdown\n",
	.options = no_options};
