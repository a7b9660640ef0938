/* SPDX-License-Identifier: MIT. protonctl_doctor.c: what several checks of `protonctl doctor` need.
 */
#include "protonctl_doctor.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends.h"

#define PROBE_MS 10000

void found(struct doctor *d, enum grade grade, const char *what, const char *mend, const char *fmt,
	...)
{
	struct finding *f;
	va_list ap;

	if (d->n == FINDINGS_MAX)
		return;
	f = &d->finding[d->n++];
	f->grade = grade;
	f->what = what;
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	snprintf(f->mend, sizeof(f->mend), "%s", grade != GOOD ? mend : "");
}

/* The kernel says who called listen(): with socket activation that is the service manager. */
bool doctor_peer(const struct doctor *d, struct doctor_peer *ret)
{
	struct ucred u;
	socklen_t n = sizeof(u);
	int64_t own;

	if (d->rpc == NULL || getsockopt(rpc_fd(d->rpc), SOL_SOCKET, SO_PEERCRED, &u, &n) < 0)
		return false;
	own = rpc_daemon(d->rpc)->pid;
	*ret = (struct doctor_peer){.pid = u.pid, .uid = u.uid};
	ret->same = u.pid != 0 && (u.pid == own || rpc_daemon_state(own) != 0);
	if (ret->same)
		ret->pid = own;
	return true;
}

bool doctor_number(const char *path, const char *key, uint64_t *ret)
{
	FILE *f = fopen(path, "re");
	const size_t n = strlen(key);
	char line[512], *end;
	bool hit = false;

	while (f != NULL && !hit && fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, key, n) != 0)
			continue;
		*ret = strtoull(line + n, &end, 0);
		hit = end != line + n;
	}
	if (f != NULL)
		(void)fclose(f);
	return hit;
}

/* "+" and the answer, or "-" and why there is none. */
static _Noreturn void probe_child(const char *library, doctor_probe_fn *fn, int to)
{
	char line[512] = "-";
	void *h;

	for (size_t i = 0; i < BACKEND_COUNT; i++)
		(void)setenv(backend_terms[i].injection, "", 1);
	(void)setenv("PROTOND_DISABLE", "1", 1);
	h = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (h == NULL)
		snprintf(line, sizeof(line), "-%.500s", dlerror());
	else
		fn(h, line + 1, sizeof(line) - 1);
	if (h != NULL)
		line[0] = line[1] != '\0' ? '+' : '-';
	if (h != NULL && line[1] == '\0')
		snprintf(line, sizeof(line), "-it does not work");
	(void)write(to, line, strlen(line) + 1);
	_exit(0);
}

bool doctor_probe(const char *library, doctor_probe_fn *fn, char *ret, size_t n)
{
	struct pollfd p = {.events = POLLIN};
	char line[512] = "-it did not answer";
	int pipes[2];
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return false;
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		probe_child(library, fn, pipes[1]);
	(void)close(pipes[1]);
	p.fd = pipes[0];
	if (pid > 0 && poll(&p, 1, PROBE_MS) > 0 && read(pipes[0], line, sizeof(line) - 1) <= 0)
		snprintf(line, sizeof(line), "-it ends the process that loads it");
	(void)close(pipes[0]);
	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	snprintf(ret, n, "%s", line + 1);
	return line[0] == '+';
}
