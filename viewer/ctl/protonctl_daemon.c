/* SPDX-License-Identifier: MIT. protonctl_daemon.c: starts a private daemon when none runs.
 *
 * Many may try at once (64 ranks under one scheduler): each starts one, the daemons' own lock lets
 * one of them live, and every protonctl connects to that. The socket appears by rename when it
 * listens, so waiting for its name in the directory is enough. */
#include "protonctl_daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "human.h"
#include "paths.h"
#include "protonctl_call.h"
#include "protonctl_self.h"
#include "source.h"

#define RETRY_MS  50   /* between two looks when nothing is heard */
#define WAIT_MS   6000 /* a daemon that finds another's lock says after 5 s that nobody answers */
#define LOG_BYTES (1 << 20)

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int open_log(const char *dir, off_t *ret_end)
{
	char path[4352];
	struct stat st;
	int fd;

	if (snprintf(path, sizeof(path), "%s/" DAEMON_LOG_FILE, dir) >= (int)sizeof(path))
		return -1;
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		(void)close(fd);
		return -1;
	}
	if (st.st_size > LOG_BYTES)
		(void)ftruncate(fd, 0);
	*ret_end = lseek(fd, 0, SEEK_END);
	return fd;
}

/* In the child: passes on nothing of ours. */
static _Noreturn void become_daemon(const char *path, int log_fd)
{
	char *const argv[] = {
		(char[]){"protond"}, (char[]){"--private"}, (char[]){"--foreground"}, NULL};
	const int null_fd = open("/dev/null", O_RDWR);
	sigset_t none;
	int sig;

	(void)setsid();
	for (sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0 ||
		dup2(log_fd >= 0 ? log_fd : null_fd, 2) < 0)
		_exit(125);
	(void)close_range(3, ~0U, 0);
	(void)execv(path, argv);
	dprintf(2, "protond: %s cannot be run: %s\n", path, strerror(errno));
	_exit(126);
}

struct starting {
	const char *dir, *path; /* runtime directory; the program */
	int log_fd, watch_fd;
	off_t log_begin; /* what stands before it in the log is of earlier daemons */
	pid_t pid;       /* 0: none runs */
	int status;      /* of the one that ended; 0: another has the directory */
};

/* Its last complaint, for the error's words. */
static void last_words(const struct starting *s, char *ret, size_t n)
{
	char path[4352], line[1400];
	FILE *f = NULL;
	int fd;

	ret[0] = '\0';
	if (snprintf(path, sizeof(path), "%s/" DAEMON_LOG_FILE, s->dir) >= (int)sizeof(path))
		return;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		f = fdopen(fd, "r");
	if (f == NULL)
		return;
	(void)fseeko(f, s->log_begin, SEEK_SET);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strstr(line, " level=info ") == NULL)
			snprintf(ret, n, "%.*s", (int)strcspn(line, "\n"), line);
	(void)fclose(f);
}

/* Ours ended, or nobody answers. */
static int say_why(const struct starting *s, struct err *e)
{
	const bool by_signal = WIFSIGNALED(s->status);
	char words[448];

	last_words(s, words, sizeof(words));
	if (s->status == 0)
		return err_set(e, -ENOTCONN,
			"protond was started but does not answer in %.200s%s%.200s; see its log, "
			"%.200s/" DAEMON_LOG_FILE,
			s->dir, *words != '\0' ? ": " : "", words, s->dir);
	if (WIFEXITED(s->status) && *words != '\0')
		return err_set(e, WEXITSTATUS(s->status) == CTL_USAGE ? -EINVAL : -ENOTCONN,
			"the daemon does not start: %s", words);
	return err_set(e, -ENOTCONN,
		"the daemon does not start: it ended %s %d%s%.200s; `protond --private "
		"--foreground` shows why",
		by_signal ? "on signal" : "with status",
		by_signal ? WTERMSIG(s->status) : WEXITSTATUS(s->status),
		*words != '\0' ? ": " : ", without a message", words);
}

static int spawn(struct starting *s, struct err *e)
{
	s->pid = fork();
	if (s->pid == 0)
		become_daemon(s->path, s->log_fd);
	if (s->pid > 0)
		return 0;
	s->pid = 0;
	return err_set(e, neg_errno(), "cannot start protond: %s", strerror(errno));
}

/* Until somebody listens. Our daemon ends with status 0 when another one answers; if that one
 * was about to end, ours is started again. One that fails would fail again. */
static int wait_for_socket(struct starting *s, struct rpc **ret, struct err *e)
{
	const int64_t until = now_ms() + WAIT_MS;
	struct pollfd p = {.fd = s->watch_fd, .events = POLLIN};
	char events[1024];
	int r = spawn(s, e);

	while (r == 0) {
		r = rpc_open_at(s->dir, ret, e);
		if (r != -ENOTCONN)
			return r;
		if (s->status != 0 || now_ms() >= until)
			return say_why(s, e);
		if (poll(&p, 1, RETRY_MS) > 0)
			(void)read(s->watch_fd, events, sizeof(events));
		r = 0;
		if (s->pid == 0)
			r = spawn(s, e);
		else if (waitpid(s->pid, &s->status, WNOHANG) == s->pid)
			s->pid = 0;
	}
	return r;
}

static int start_private(struct rpc **ret, struct err *e)
{
	char dir[4096], path[4096];
	struct starting s = {.dir = dir, .path = path};
	int r;

	r = paths_private_runtime(dir, sizeof(dir), e);
	if (r < 0)
		return r;
	if (self_find("protond", path, sizeof(path)) < 0)
		return err_set(e, -ENOENT,
			"no daemon is running, and there is no protond beside protonctl to start; "
			"install protond completely, or run `protond --private` yourself");
	s.watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (s.watch_fd < 0 || inotify_add_watch(s.watch_fd, dir, IN_CREATE | IN_MOVED_TO) < 0) {
		r = err_set(e, neg_errno(),
			"cannot watch %s: %s; raise fs.inotify.max_user_instances", dir,
			strerror(errno));
		if (s.watch_fd >= 0)
			(void)close(s.watch_fd);
		return r;
	}
	s.log_fd = open_log(dir, &s.log_begin);
	r = wait_for_socket(&s, ret, e);
	if (s.log_fd >= 0)
		(void)close(s.log_fd);
	(void)close(s.watch_fd);
	return r;
}

int daemon_ensure(struct rpc **ret, bool *ret_started, struct err *e)
{
	int r = rpc_open(ret, e);

	*ret_started = false;
	if (r != -ENOTCONN)
		return r;
	r = start_private(ret, e);
	*ret_started = r == 0;
	return r;
}

int daemon_of_sessions(struct rpc **ret, struct err *e)
{
	bool started = false;
	char usual[4096];
	int r = rpc_open(ret, e);

	source_usual_db(usual, sizeof(usual));
	if (r == -ENOTCONN && access(usual, F_OK) == 0) {
		if (strcmp(usual, PATHS_SERVICE_DB) == 0)
			return err_set(e, r,
				"%s is the service's, which does not run; start it with `systemctl "
				"start protond.socket`",
				usual);
		r = daemon_ensure(ret, &started, e);
	}
	if (r < 0)
		return r;
	if (started)
		text_say("no protond ran; one was started for %s, and ends by itself",
			rpc_daemon(*ret)->db);
	if (!source_is_elsewhere(rpc_daemon(*ret)->db))
		return 0;
	err_set(e, -EBUSY,
		"PROTOND_DB is %s, and the running protond's database is %s: unset PROTOND_DB to "
		"change that, or end it with `protonctl shutdown`",
		usual, rpc_daemon(*ret)->db);
	rpc_close(*ret);
	return -EBUSY;
}
