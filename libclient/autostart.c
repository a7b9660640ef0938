/* SPDX-License-Identifier: MIT. autostart.c: PROTOND_AUTOSTART=1: starts a private protond that is no
 * child of ours, with neither SIGCHLD nor a zombie for the application to find.
 *
 * Two steps of clone(CLONE_VM | CLONE_VFORK): no page is copied, no fork hook of the application
 * runs, and between the clone and exec only system calls are made. The first child has no exit
 * signal, so only we can wait for it; the second is orphaned at once.
 */
#include "autostart.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends.h"
#include "doorbell.h"
#include "futex.h"
#include "load.h"

#define STACK   16384u
#define ENV_MAX 4096u

extern char **environ;

struct job {
	const char *path;
	char *const *argv;
	char **env;
	unsigned char *stack; /* of the second child */
};

static int daemon_main(void *p)
{
	const struct job *j = p;
	const struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;
	int fd;

	for (int s = 1; s < 65; s++)
		(void)sigaction(s, &dfl, NULL);
	fd = open("/dev/null", O_RDWR);
	if (fd >= 0) {
		(void)dup2(fd, 0);
		(void)dup2(fd, 1);
		(void)dup2(fd, 2);
	}
#ifdef SYS_close_range
	(void)syscall(SYS_close_range, 3u, ~0u, 0u);
#endif
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	(void)execve(j->path, j->argv, j->env);
	_exit(127);
}

static int middle_main(void *p)
{
	const struct job *j = p;

	(void)setsid();
	_exit(clone(daemon_main, j->stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, p) < 0);
}

/* The daemon must not be loaded with us, nor belong to our run. */
static bool is_ours(const char *var)
{
	/* clang-format off */
	static const char *const drop[] = {
#define X(name, vendor, caps, injection) injection "=",
		BACKENDS(X)
#undef X
		"LD_PRELOAD=", "PROTOND_TOKEN=", "PROTOND_AUTOSTART="};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(drop) / sizeof(*drop); i++)
		if (strncmp(var, drop[i], strlen(drop[i])) == 0)
			return true;
	return false;
}

static char *read_env[ENV_MAX]; /* under pd.lock. setenv() frees no text that it replaces */

void pd_spawn_env_read(void)
{
	size_t n = 0;

	for (char **e = environ; e != NULL && *e != NULL && n + 1 < ENV_MAX; e++)
		if (!is_ours(*e))
			read_env[n++] = *e;
	read_env[n] = NULL;
}

static const char *path_of(char **env)
{
	while (*env != NULL && strncmp(*env, "PATH=", 5) != 0)
		env++;
	return *env != NULL ? *env + 5 : NULL;
}

static bool in_path(char **env, char *ret, size_t n)
{
	const char *p = path_of(env);

	while (p != NULL && *p != '\0') {
		const size_t len = strcspn(p, ":");

		if (len > 0 && (size_t)snprintf(ret, n, "%.*s/protond", (int)len, p) < n &&
			access(ret, X_OK) == 0)
			return true;
		p += len;
		p += *p == ':';
	}
	return false;
}

static bool find(char **env, char *ret, size_t n)
{
	const char *own = pd_own_path(), *slash = strrchr(own, '/');

	if (slash != NULL &&
		(size_t)snprintf(ret, n, "%.*s/../bin/protond", (int)(slash - own), own) < n &&
		access(ret, X_OK) == 0)
		return true;
	return in_path(env, ret, n);
}

int pd_spawn_daemon(void)
{
	static unsigned char stacks[2][STACK] __attribute__((aligned(64)));
	static char *env[ENV_MAX];
	char path[PATH_MAX], name[] = "protond", private[] = "--private";
	char *argv[] = {name, private, NULL};
	struct job j = {.path = path, .argv = argv, .env = env, .stack = stacks[1]};
	sigset_t all, old;
	int pid, status = 0;

	pd_lock(&pd.lock);
	memcpy(env, read_env, sizeof(env));
	pd_unlock(&pd.lock);
	if (!find(env, path, sizeof(path)))
		return -ENOENT;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = clone(middle_main, stacks[0] + STACK, CLONE_VM | CLONE_VFORK, &j);
	while (pid > 0 && waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EAGAIN;
}
