/* SPDX-License-Identifier: MIT. protonctl_run.c: `protonctl run`: one program, recorded from its
 * first instruction to its end, its tree at last.
 *
 * The child is forked first and waits at a pipe: its pid is known for %p, and it runs only once the
 * session records. Standard output is the program's alone. A signal that the terminal sends reaches
 * the program from the terminal; one that somebody sends to us is passed on, once. What happens to
 * the daemon does not touch the program, nor its exit status; only where all of a successful
 * program is lost to a version mismatch, or --strict finds no -o FILE, 0 would be a lie. */
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counter_terms.h"
#include "formats.h"
#include "human.h"
#include "json.h"
#include "profile.h"
#include "protonctl_answer.h"
#include "protonctl_call.h"
#include "protonctl_complaints.h"
#include "protonctl_daemon.h"
#include "protonctl_ending.h"
#include "protonctl_file.h"
#include "protonctl_launch.h"
#include "protonctl_options.h"
#include "protonctl_self.h"
#include "protonctl_session.h"
#include "session_terms.h"

#define RESTARTS_MAX 3
#define TREE_ROWS    "100" /* of the tree at the end: what a terminal can take */

struct run {
	struct ctl *c;
	struct rpc *rpc;    /* NULL: the daemon is lost */
	bool ended_orderly; /* the daemon said that it ends */
	uint32_t restarts;
	struct launch launch;
	uint8_t token[16];
	char dir[4096], name[128], output[4096], db[CTL_DB_WORDS];
	char session[40]; /* uuid in hex */
	int64_t id;
	char *argv[3 + 4096]; /* the command */
	pid_t pid;
	int go_fd, failed_fd; /* our ends: the token lets the child go; its errno when exec fails */
	int pidfd, signal_fd;
	bool killed;             /* it ended on a signal */
	struct rpc_reply before; /* its status when the run began */
	/* what the daemon said at the end */
	uint64_t processes, launches, unmatched, kernels;
	char gpu_text[256];
	bool warned;    /* the daemon complained of something since the run began, */
	bool mismatch;  /* namely of a library of another version */
	bool unwritten; /* -o FILE */
};

static bool is_quiet(const struct run *r)
{
	return ctl_option(r->c, "quiet") != NULL;
}

static void say(const struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(const struct run *r, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (r->c->json)
		return; /* the envelope says it */
	fputs("protonctl: ", stderr);
	text_put(stderr, text, 0);
	fputc('\n', stderr);
}

static int run_fail(struct run *r)
{
	(void)ctl_fail(r->c);
	if (r->pid > 0) { /* the child waits for a byte that does not come, and ends */
		(void)close(r->go_fd);
		(void)waitpid(r->pid, NULL, 0);
	}
	rpc_close(r->rpc);
	return CTL_RUN_FAILED;
}

/* --- before */

static bool ends_with(const char *text, const char *end)
{
	const size_t n = strlen(text), m = strlen(end);

	return n > m && strcmp(text + n - m, end) == 0;
}

/* script.py and pytest run under python3. */
static int take_command(struct run *r)
{
	static char python[] = "python3", dash_m[] = "-m";
	const size_t max = sizeof(r->argv) / sizeof(r->argv[0]) - 1;
	size_t n = 0;
	int i;

	if (ends_with(r->c->argv[0], ".py"))
		r->argv[n++] = python;
	else if (strcmp(r->c->argv[0], "pytest") == 0) {
		r->argv[n++] = python;
		r->argv[n++] = dash_m;
	}
	for (i = 0; i < r->c->argc; i++) {
		if (n == max)
			return err_set(
				&r->c->err, -E2BIG, "the command has more than %zu words", max);
		r->argv[n++] = r->c->argv[i];
	}
	return 0;
}

/* Of a program that runs already nobody can say it. */
static int take_counters(const struct run *r)
{
	const char *words = ctl_option(r->c, "counters");
	uint8_t kind[COUNTERS_AT_ONCE];

	if (words == NULL || counters_read(words, kind) != 0)
		return 0;
	return err_set(&r->c->err, -EINVAL,
		"--counters '%.64s': give up to %u of these, with commas: " COUNTER_WORDS, words,
		COUNTERS_AT_ONCE);
}

/* What names the run: the program; of `python3 -X dev train.py`, the script; of `python3 -m mod`,
 * the module. */
static const char *what_runs(int argc, char *const *argv)
{
	const char *base = strrchr(argv[0], '/');
	int i;

	if (strncmp(base != NULL ? base + 1 : argv[0], "python", 6) != 0)
		return argv[0];
	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-m") == 0 && i + 1 < argc)
			return argv[i + 1];
		if (strcmp(argv[i], "-X") == 0 || strcmp(argv[i], "-W") == 0)
			i++;
		else if (strcmp(argv[i], "-c") == 0 || strcmp(argv[i], "-") == 0)
			return argv[0];
		else if (*argv[i] != '-')
			return argv[i];
	}
	return argv[0];
}

static int default_name(struct run *r)
{
	char path[4096];
	char *base, *dot;

	snprintf(path, sizeof(path), "%s", what_runs(r->c->argc, r->c->argv));
	base = basename(path);
	dot = strrchr(base, '.');
	if (dot != NULL && dot != base)
		*dot = '\0';
	snprintf(r->name, sizeof(r->name), "%s", *base != '\0' && *base != '@' ? base : "run");
	return 0;
}

static int take_names(struct run *r)
{
	const char *name = ctl_option(r->c, "name"), *output = ctl_option(r->c, "output");
	const char *data = ctl_option(r->c, "data");
	struct err *e = &r->c->err;
	int code = name != NULL ? expand_name(name, r->pid, r->name, sizeof(r->name), e)
				: default_name(r);

	if (code == 0 && output != NULL)
		code = expand_name(output, r->pid, r->output, sizeof(r->output), e);
	if (code == 0 && r->output[0] != '\0')
		code = output_check(r->c, r->output); /* before the run, not after it */
	if (code < 0 || r->output[0] == '\0')
		return code;
	if (format_needs_timeline(format_of_file(r->output)) &&
		(data == NULL || strcmp(data, "tree") == 0))
		return err_set(
			e, -EINVAL, "%s needs a timeline; add -d trace or -d both", r->output);
	return 0;
}

/* What Python does not do before protond is imported. */
static bool needs_package(const struct run *r)
{
	const char *context = ctl_option(r->c, "context"), *switches = ctl_option(r->c, "switches");
	uint8_t bits = 0;

	if (switches != NULL && !switches_read(switches, &bits))
		bits = 0;
	return (context != NULL && strcmp(context, "python") == 0) ||
	       ctl_option(r->c, "native") != NULL ||
	       (bits & (SWITCH_OPS | SWITCH_CPU_SAMPLES)) != 0;
}

/* Python reads the folder's sitecustomize.py first of all: it waits for torch and triton. */
static void child_python(const struct run *r)
{
	const char *hook = ctl_option(r->c, "hook"), *old = getenv("PYTHONPATH");
	const bool as_proton = ctl_option(r->c, "as-proton") != NULL;
	const bool package = needs_package(r);
	char dir[4096], path[8192];

	if (hook == NULL)
		hook = "torch";
	if ((strcmp(hook, "none") == 0 && !as_proton && !package) ||
		self_find_python(dir, sizeof(dir)) < 0)
		return;
	if (snprintf(path, sizeof(path), "%s%s%s", dir, old != NULL && *old != '\0' ? ":" : "",
		    old != NULL ? old : "") >= (int)sizeof(path))
		return;
	(void)setenv("PYTHONPATH", path, 1);
	(void)setenv("PROTOND_HOOK", hook, 1);
	if (as_proton)
		(void)setenv("PROTOND_AS_PROTON", "1", 1);
	if (package)
		(void)setenv("PROTOND_STACKS", "1", 1);
}

/* The environment of the program. Another tool's injection is left alone, and said. */
static void child_environment(
	const struct run *r, const uint8_t id[16], const struct env_var *v, size_t n)
{
	const char *backend = ctl_option(r->c, "backend");
	char token[33];
	size_t i;

	for (i = 0; i < 16; i++)
		snprintf(token + 2 * i, 3, "%02x", id[i]);
	(void)setenv("PROTOND_TOKEN", token, 1);
	(void)setenv("PROTOND_RUNTIME_DIR", r->dir, 1);
	for (i = 0; i < n; i++)
		if (!v[i].taken)
			(void)setenv(v[i].name, v[i].value, 1);
	if (backend == NULL || strcmp(backend, "none") != 0)
		(void)setenv("PROTOND_GPU", "on", 1);
	if (ctl_option(r->c, "counters") != NULL)
		(void)setenv("PROTOND_COUNTERS", ctl_option(r->c, "counters"), 1);
	if (ctl_option(r->c, "native") != NULL)
		(void)setenv("PROTOND_CPU_NATIVE", "1", 1);
	child_python(r);
}

static _Noreturn void child(
	const struct run *r, const struct env_var *v, size_t n, const int pipes[4])
{
	uint8_t token[16]; /* not known when we were forked */
	int e;

	(void)close(pipes[1]); /* or our own end would keep us waiting when the parent is gone */
	if (read(pipes[0], token, sizeof(token)) != sizeof(token))
		_exit(CTL_RUN_FAILED);
	child_environment(r, token, v, n);
	(void)execvp(r->argv[0], r->argv);
	e = errno;
	(void)write(pipes[3], &e, sizeof(e));
	_exit(e == ENOENT ? CTL_RUN_MISSING : CTL_RUN_CANNOT);
}

static int fork_child(struct run *r)
{
	static struct env_var v[ENV_VARS_MAX];
	struct err *e = &r->c->err;
	int pipes[4];
	size_t i, n = env_vars(r->dir, v, e);

	if (n == 0)
		ctl_warn(r->c, "%s", e->text);
	for (i = 0; i < n; i++)
		if (v[i].taken)
			ctl_warn(r->c,
				"%s names another tool (%.100s) and is left alone, so GPU data may "
				"be missing; unset it to use protond",
				v[i].name, getenv(v[i].name));
	if (pipe2(pipes, O_CLOEXEC) < 0 || pipe2(pipes + 2, O_CLOEXEC) < 0)
		return err_set(e, neg_errno(), "no pipe: %s", strerror(errno));
	r->pid = fork();
	if (r->pid < 0)
		return err_set(e, neg_errno(), "cannot fork: %s", strerror(errno));
	if (r->pid == 0)
		child(r, v, n, pipes);
	(void)close(pipes[0]);
	(void)close(pipes[3]);
	r->go_fd = pipes[1];
	r->failed_fd = pipes[2];
	r->pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0); /* glibc has it since 2.36 */
	return r->pidfd < 0 ? err_set(e, neg_errno(), "no pidfd: %s", strerror(errno)) : 0;
}

/* From when the program begins, SIGINT and SIGQUIT of a terminal are its; the rest is passed on. All are
 * taken through a descriptor. */
static int take_signals(struct run *r)
{
	static const int signals[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT};
	sigset_t set;
	size_t i;

	(void)sigemptyset(&set);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaddset(&set, signals[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signal_fd < 0
		       ? err_set(&r->c->err, neg_errno(), "no signalfd: %s", strerror(errno))
		       : 0;
}

static int start_session(struct run *r)
{
	struct wire_buf *b = rpc_begin(r->rpc, "start");
	struct rpc_reply reply = {.fd = -1};
	const msgpack_object *uuid;
	uint32_t i;
	int code;

	wire_kv_str(b, "name", r->name);
	wire_kv_str(b, "source", "run");
	wire_kv_bin(b, "token", r->token, sizeof(r->token));
	session_params(r->c, b);
	if (ctl_option(r->c, "as-proton") != NULL && ctl_option(r->c, "mode") == NULL)
		wire_kv_str(b, "mode", term_session_modes.word[MODE_PROTON]);
	code = ctl_call(r->c, r->rpc, &reply);
	if (code < 0)
		return code;
	r->id = wire_i64_or(reply.result, "id", 0);
	uuid = wire_get(reply.result, "uuid");
	if (uuid == NULL || uuid->type != MSGPACK_OBJECT_BIN || uuid->via.bin.size != 16)
		code = err_set(&r->c->err, -EPROTO,
			"protond's answer to 'start' has no uuid; `protonctl version` shows both "
			"versions");
	for (i = 0; code == 0 && i < 16; i++)
		snprintf(r->session + 2 * i, 3, "%02x", (unsigned char)uuid->via.bin.ptr[i]);
	rpc_reply_free(&reply);
	return code;
}

/* The session of this run, or that of the ranks beside it. */
static int take_session(struct run *r)
{
	struct launch_session *s = &r->launch.session;
	int code;

	if (launch_join(&r->launch, r->name) == 1) {
		memcpy(r->token, s->token, sizeof(r->token));
		memcpy(r->session, s->uuid, sizeof(r->session));
		r->id = s->id;
		return 0;
	}
	code = start_session(r);
	memcpy(s->token, r->token, sizeof(r->token));
	memcpy(s->uuid, r->session, sizeof(r->session));
	s->id = r->id;
	if (code == 0)
		launch_begin(&r->launch);
	return code;
}

/* --- while it runs */

static void pass_signals(const struct run *r)
{
	struct signalfd_siginfo s;

	while (read(r->signal_fd, &s, sizeof(s)) == (ssize_t)sizeof(s))
		if (s.ssi_code != SI_KERNEL) /* the terminal's went to the whole group */
			(void)syscall(SYS_pidfd_send_signal, r->pidfd, (int)s.ssi_signo, NULL, 0);
}

/* The daemon said something unasked, or the connection ended: it goes. A private one that
 * crashed is started again: ring, journal and store let it continue where it stopped. */
static void daemon_gone(struct run *r)
{
	char byte;
	bool started;

	r->ended_orderly = recv(rpc_fd(r->rpc), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
	rpc_close(r->rpc);
	r->rpc = NULL;
	if (r->ended_orderly) {
		say(r, "the daemon was stopped while the program is running; what the program does "
		       "until a daemon runs again may be lost");
		return;
	}
	if (r->restarts++ < RESTARTS_MAX && daemon_ensure(&r->rpc, &started, &r->c->err) == 0)
		say(r, "the daemon died and %s; the recording goes on",
			started ? "was started again" : "is back");
	else
		say(r, "the daemon died: %s", r->c->err.text);
}

/* Waits for the child. Returns its exit code as a shell gives it. */
static int wait_child(struct run *r)
{
	struct pollfd p[3] = {{.fd = r->pidfd, .events = POLLIN},
		{.fd = r->signal_fd, .events = POLLIN}, {.events = POLLIN}};
	siginfo_t s;

	for (;;) {
		p[2].fd = r->rpc != NULL ? rpc_fd(r->rpc) : -1;
		if (poll(p, 3, -1) < 0 && errno != EINTR)
			break;
		if ((p[1].revents & POLLIN) != 0)
			pass_signals(r);
		if (r->rpc != NULL && p[2].revents != 0)
			daemon_gone(r);
		if ((p[0].revents & POLLIN) != 0)
			break;
	}
	if (waitid(P_PID, (id_t)r->pid, &s, WEXITED) < 0)
		return CTL_RUN_FAILED;
	r->killed = s.si_code != CLD_EXITED;
	return r->killed ? 128 + s.si_status : s.si_status;
}

/* --- after */

static bool is_ours(const msgpack_object *job, int64_t id)
{
	const msgpack_object *s = wire_get(job, "sessions");
	uint32_t i;

	if (s == NULL || s->type != MSGPACK_OBJECT_ARRAY)
		return false;
	for (i = 0; i < s->via.array.size; i++)
		if (s->via.array.ptr[i].type == MSGPACK_OBJECT_POSITIVE_INTEGER &&
			s->via.array.ptr[i].via.u64 == (uint64_t)id)
			return true;
	return false;
}

/* What helps a program ends as it sees that the program did: Python's multiprocessing has some. */
#define LEAVES_MS 200

/* After *left_ms, of which all is used up by the first that does not end. The daemon may not know yet that a
 * process ended. Its pids are ours only in the same pid namespace. */
static bool is_running(const struct run *r, const msgpack_object *job, int *left_ms)
{
	char ended[16];
	struct pollfd p = {.fd = -1, .events = POLLIN};
	bool running = false;

	if (*wire_text(job, "ended", ended, sizeof(ended)) == '\0' &&
		rpc_daemon_state(rpc_daemon(r->rpc)->pid) != 0)
		p.fd = (int)syscall(SYS_pidfd_open, (pid_t)wire_u64_or(job, "pid", 0), 0);
	if (p.fd >= 0) {
		running = poll(&p, 1, *left_ms) == 0;
		*left_ms = running ? 0 : *left_ms;
		(void)close(p.fd);
	}
	return running;
}

/* What the run's processes say of their GPU, and whether one goes on. */
static void look_at_jobs(struct run *r)
{
	struct rpc_reply reply = {.fd = -1};
	const msgpack_object *jobs;
	struct err e;
	int left_ms = LEAVES_MS;
	uint32_t i, n = 0;
	uint64_t pid = 0;

	wire_kv_bool(rpc_begin(r->rpc, "jobs"), "all", true);
	if (rpc_call(r->rpc, RPC_TIMEOUT_MS, &reply, &e) < 0)
		return;
	jobs = wire_get(reply.result, "jobs");
	for (i = 0; jobs != NULL && jobs->type == MSGPACK_OBJECT_ARRAY && i < jobs->via.array.size;
		i++) {
		const msgpack_object *j = &jobs->via.array.ptr[i];

		if (!is_ours(j, r->id))
			continue;
		if (r->gpu_text[0] == '\0')
			wire_text(j, "gpu_text", r->gpu_text, sizeof(r->gpu_text));
		if (is_running(r, j, &left_ms)) {
			pid = wire_u64_or(j, "pid", 0);
			n++;
		}
	}
	rpc_reply_free(&reply);
	if (n > 0)
		ctl_warn(r->c,
			"%u process%s of this run (pid %lu%s) outlive%s CMD; nothing recorded from "
			"now on is in this session",
			n, n == 1 ? "" : "es", pid, n == 1 ? "" : " and others", n == 1 ? "s" : "");
}

static int finalize(struct run *r)
{
	struct rpc_reply reply = {.fd = -1};
	bool started;
	int code;

	if (r->rpc == NULL && daemon_ensure(&r->rpc, &started, &r->c->err) < 0)
		return r->c->err.code;
	pass_signals(r); /* the program's, of which it ended */
	ending_begin();
	look_at_jobs(r);
	wire_kv_str(rpc_begin(r->rpc, "finalize"), "session", r->session);
	code = ctl_call(r->c, r->rpc, &reply);
	ending_end();
	if (code < 0)
		return code;
	r->processes = wire_u64_or(reply.result, "processes", 0);
	r->launches = wire_u64_or(reply.result, "launches", 0);
	r->unmatched = wire_u64_or(reply.result, "unmatched", 0);
	r->kernels = r->launches - r->unmatched;
	rpc_reply_free(&reply);
	return 0;
}

/* The tree, on standard error. */
static void show_tree(const struct run *r)
{
	char path[4096], id[24];
	char *const argv[] = {(char[]){"protonview"}, (char[]){"tree"}, (char[]){"-n"},
		(char[]){TREE_ROWS}, id, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;

	if (self_find("protonview", path, sizeof(path)) < 0) {
		say(r, "there is no protonview beside protonctl to show the tree");
		return;
	}
	snprintf(id, sizeof(id), "%ld", r->id);
	(void)setenv("PROTOND_RUNTIME_DIR", r->dir, 1);
	(void)unsetenv("PROTOND_DB"); /* the daemon's own, whatever it says */
	if (posix_spawn_file_actions_init(&actions) != 0)
		return;
	(void)posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
	if (posix_spawn(&pid, path, &actions, NULL, argv, environ) == 0)
		(void)waitpid(pid, NULL, 0);
	(void)posix_spawn_file_actions_destroy(&actions);
}

static void complaint(void *arg, const char *text, bool mismatch)
{
	struct run *r = arg;

	r->mismatch |= mismatch;
	r->warned = true;
	say(r, "the daemon says: %s", text);
	if (r->c->json)
		ctl_warn(r->c, "%s", text);
}

/* Why there is nothing, and what to do, without asking doctor. */
static void say_why(const struct run *r, int status)
{
	const char *backend = ctl_option(r->c, "backend"), *off = getenv("PROTOND_DISABLE");

	if (r->processes == 0 && off != NULL && *off != '\0' && strcmp(off, "0") != 0)
		say(r, "nothing was recorded: PROTOND_DISABLE is set; unset it");
	else if (r->processes == 0 && status != 0)
		say(r,
			"nothing was recorded: the program ended with status %d before it reached "
			"protond",
			status);
	else if (r->mismatch)
		say(r,
			"nothing was recorded, so the exit status is %d: the program's libprotond "
			"and "
			"the daemon are of different versions; update the older, and run it again",
			CTL_RUN_FAILED);
	else if (r->processes == 0)
		say(r,
			"no process of this run reached protond: %sthe program neither links "
			"libprotond (or `import protond`) nor uses CUDA or NVTX, or it runs as "
			"another user or without this environment (sudo, env -i); link it with "
			"-lprotond, or name its parts with NVTX",
			r->warned ? "unless that is why, " : "");
	else if (r->launches == 0 && is_quiet(r) && /* else the tree says it */
		 (backend == NULL || strcmp(backend, "none") != 0))
		say(r, "no GPU data: %s", r->gpu_text[0] != '\0' ? r->gpu_text : PROFILE_NO_KERNEL);
	if (r->unmatched > 0)
		say(r, "%lu of %lu launches have no GPU record; `protonctl where %ld` says which",
			r->unmatched, r->launches, r->id);
}

/* In words that work when they are copied: where protonctl is not found by its name, protonview is
 * neither, and the daemon's database may be one that protonview does not look for. */
static void say_how_to_open(const struct run *r)
{
	char path[4096], word[3900];

	if (strchr(program_invocation_name, '/') == NULL ||
		self_find("protonview", path, sizeof(path)) < 0)
		snprintf(path, sizeof(path), "protonview");
	say(r, "session '%s', id %ld%s%s. Open it again: %s%s tree %ld", r->name, r->id,
		r->output[0] != '\0' ? ", written to " : "", r->output, r->db,
		word_quoted(word, sizeof(word), path), r->id);
}

static void put_json(const struct run *r, int status, bool stored)
{
	json_begin(stderr, "run");
	fprintf(stderr, "{\"id\":%ld,\"uuid\":\"%s\",\"name\":", r->id, r->session);
	json_text(stderr, r->name, strlen(r->name));
	fprintf(stderr,
		",\"status\":%d,\"stored\":%s,\"processes\":%lu,\"launches\":%lu,\"unmatched\":%lu,"
		"\"kernels\":%lu,\"gpu_text\":",
		status, stored ? "true" : "false", r->processes, r->launches, r->unmatched,
		r->kernels);
	json_text(stderr, r->gpu_text, strlen(r->gpu_text));
	fputc('}', stderr);
	ctl_json_end(r->c, stderr);
}

/* -o FILE, if it was asked for. */
static void write_output(struct run *r, bool stored)
{
	if (r->output[0] == '\0')
		return;
	if (!stored)
		ctl_warn(r->c, "%s was not written", r->output);
	else if (export_file(r->rpc, r->session, r->output, ctl_option(r->c, "force") != NULL,
			 &r->c->err) < 0)
		ctl_warn(r->c, "%s", r->c->err.text);
	else
		return;
	r->output[0] = '\0';
	r->unwritten = true;
}

/* Whatever happens here, a program that failed keeps its exit status. */
static int exit_status(const struct run *r, int status)
{
	const bool strict = r->unwritten && ctl_option(r->c, "strict") != NULL;

	return status == 0 && (r->mismatch || strict) ? CTL_RUN_FAILED : status;
}

static int run_end(struct run *r, int status)
{
	int code;

	if (!launch_leave(&r->launch)) {
		if (!is_quiet(r))
			say(r,
				"session '%s', id %ld, goes on: other ranks of this launch still "
				"run",
				r->name, r->id);
		if (r->c->json)
			put_json(r, status, false);
		return status;
	}
	code = finalize(r);
	if (code < 0)
		ctl_warn(r->c, "the session could not be finalized: %s", r->c->err.text);
	write_output(r, code == 0);
	if (code == 0 && r->processes == 0)
		complaints_since(r->rpc, &r->before, complaint, r);
	if (r->c->json) {
		put_json(r, status, code == 0);
		return exit_status(r, status);
	}
	if (code == 0 && !is_quiet(r) && r->processes > 0)
		show_tree(r);
	if (code == 0)
		say_why(r, status);
	ctl_warnings(r->c);
	if (r->killed)
		say(r, "the program ended on signal %d (%s)", status - 128,
			strsignal(status - 128));
	if (code == 0 && !is_quiet(r) && r->processes > 0)
		say_how_to_open(r);
	return exit_status(r, status);
}

/* The child could not exec: nothing ran, nothing is kept. */
static int exec_failed(struct run *r, int e)
{
	struct rpc_reply reply = {.fd = -1};
	struct wire_buf *b;

	(void)waitpid(r->pid, NULL, 0);
	err_set(&r->c->err, -e, "%s: %s%s", r->argv[0], strerror(e),
		e != ENOENT                         ? ""
		: strcmp(r->argv[0], "python") == 0 ? "; perhaps it is python3 here"
						    : "; give its path, or add its folder to PATH");
	(void)ctl_fail(r->c);
	if (r->rpc != NULL && launch_leave(&r->launch)) {
		b = rpc_begin(r->rpc, "delete");
		wire_kv_str(b, "session", r->session);
		wire_kv_bool(b, "force", true);
		(void)ctl_call(r->c, r->rpc, &reply);
		rpc_reply_free(&reply);
	}
	rpc_close(r->rpc);
	return e == ENOENT ? CTL_RUN_MISSING : CTL_RUN_CANNOT;
}

static void say_wrong(void *arg, const char *words)
{
	const struct run *r = arg;

	if (r->c->json)
		ctl_warn(r->c, "%s", words);
	say(r, "warning: %s", words);
}

static int cmd_run(struct ctl *c)
{
	static struct run r;
	bool started;
	int status, e = 0;

	r.c = c;
	job_options_check(say_wrong, &r);
	if (take_command(&r) < 0 || take_counters(&r) < 0 ||
		daemon_ensure(&r.rpc, &started, &c->err) < 0)
		return run_fail(&r);
	snprintf(r.dir, sizeof(r.dir), "%s", rpc_daemon(r.rpc)->dir);
	ctl_db_words(r.rpc, r.db, sizeof(r.db));
	complaints_note(r.rpc, &r.before);
	if (getrandom(r.token, sizeof(r.token), 0) != (ssize_t)sizeof(r.token)) {
		err_set(&c->err, -EIO, "the system gave no random bytes");
		return run_fail(&r);
	}
	if (fork_child(&r) < 0 || take_names(&r) < 0 || take_session(&r) < 0 ||
		take_signals(&r) < 0)
		return run_fail(&r);
	if (write(r.go_fd, r.token, sizeof(r.token)) != sizeof(r.token)) {
		err_set(&c->err, neg_errno(), "the program did not start: %s", strerror(errno));
		return run_fail(&r);
	}
	(void)close(r.go_fd);
	if (read(r.failed_fd, &e, sizeof(e)) == (ssize_t)sizeof(e))
		return exec_failed(&r, e);
	(void)close(r.failed_fd);
	status = wait_child(&r);
	status = run_end(&r, status);
	rpc_reply_free(&r.before);
	rpc_close(r.rpc);
	return status;
}

/* clang-format off */
static const struct option_def run_options[] = {
	{'n', "name",   "NAME", "name of the session; %h host, %p pid, %q{VAR} variable (default: the program's)", NULL},
	{'o', "output", "FILE", "also write FILE (" OUTPUT_FILES "); takes %h %p %q{VAR}", NULL},
	{0,   "force",  NULL,   "overwrite the output file", NULL},
	{0,   "strict", NULL,   "exit with 125 when the program succeeded and FILE could not be written", NULL},
	SESSION_OPTIONS,
	{0,   "counters", "WORDS", "-s counters, of these: " COUNTERS_DEFAULT " (what it counts without), and more (`protonctl help options`)", "task_clock,page_faults"},
	{0,   "native", NULL,   "-s cpu, with native frames below Python's (PROTOND_CPU_NATIVE=1)", NULL},
	{0,   "as-proton", NULL, "`import triton.profiler` and `import proton` give protond", NULL},
	{'q', "quiet",  NULL,   "print no tree at the end, and only what went wrong", NULL},
	{0, NULL, NULL, NULL, NULL},
};

const struct command command_run = {.name = "run",
	.run = cmd_run,
	.min = 1,
	.max = -1,
	.args = "[--] CMD...",
	.help = "record one run of a program and print its tree",
	.more =
		"The program's output is its own; what protonctl says goes to standard error, with --json as its last\n"
		"line: `protonctl run --json -- CMD 2>&1 >/dev/null | tail -n 1`. The exit status is the program's\n"
		"(128+N on a signal); 126: it cannot be run; 127: it was not found; 125: protonctl failed before it ran,\n"
		"or the program succeeded and nothing of it was recorded, because its libprotond and the daemon are of\n"
		"different versions. A FILE that could not be written is reported; with --strict the exit status is then 125.\n"
		"All processes that CMD makes are in the session until CMD ends, daemonised ones too. One that first records\n"
		"after that has an automatic session of its own: `protonview tree @auto`.\n"
		"A private daemon is started when none runs. `run script.py` and `run pytest ...` need no python in\n"
		"front. SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on; Ctrl-C reaches the program from the\n"
		"terminal. The tree shows the 100 nodes that took most, and counts the others. Behind srun,\n"
		"mpirun or torchrun the runs of one launch on a node are one session, which the last of them stores,\n"
		"unless -n gives each a name of its own.\n",
	.examples =
		"protonctl run -- python train.py\n"
		"mpirun -np 8 protonctl run -- ./train\n"
		"protonctl run -n 'rank%q{RANK}' -o 'rank%q{RANK}.hatchet' -- ./train\n"
		"protonctl run -b none pytest tests/\n",
	.options = run_options,
	.passes = true,
	.completes = 'c'};
/* clang-format on */
