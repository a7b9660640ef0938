/* SPDX-License-Identifier: MIT. protonctl_doctor.c: looks for what keeps protond from working here,
 * and says for each finding how to mend it. Changes nothing but for making the runtime directory
 * that protond would make. Here: the order, and the report. */
#include "protonctl_doctor.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json.h"

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
	(void)vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	(void)snprintf(f->mend, sizeof(f->mend), "%s", grade != GOOD ? mend : "");
}

/* --- what several of them need ---------------------------------------------------------------- */

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

	(void)setenv("CUDA_INJECTION64_PATH", "", 1);
	(void)setenv("PROTOND_DISABLE", "1", 1);
	h = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (h == NULL)
		(void)snprintf(line, sizeof(line), "-%.500s", dlerror());
	else
		fn(h, line + 1, sizeof(line) - 1);
	if (h != NULL)
		line[0] = line[1] != '\0' ? '+' : '-';
	if (h != NULL && line[1] == '\0')
		(void)snprintf(line, sizeof(line), "-it does not work");
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
		(void)snprintf(line, sizeof(line), "-it ends the process that loads it");
	(void)close(pipes[0]);
	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	(void)snprintf(ret, n, "%s", line + 1);
	return line[0] == '+';
}

/* --- report ----------------------------------------------------------------------------------- */

static void report_json(const struct doctor *d)
{
	static const char *const grades[] = {"ok", "note", "bad"};
	size_t i;

	json_begin(stdout, "doctor");
	(void)fputs("{\"findings\":[", stdout);
	for (i = 0; i < d->n; i++) {
		const struct finding *f = &d->finding[i];

		(void)printf("%s{\"grade\":\"%s\",\"what\":", i > 0 ? "," : "", grades[f->grade]);
		json_text(stdout, f->what, strlen(f->what));
		(void)fputs(",\"text\":", stdout);
		json_text(stdout, f->text, strlen(f->text));
		(void)fputs(",\"mend\":", stdout);
		json_text(stdout, f->mend, strlen(f->mend));
		(void)putchar('}');
	}
	(void)fputs("]}", stdout);
	json_end(stdout, NULL, 0);
}

static void report(const struct doctor *d)
{
	static const char *const marks[] = {"ok  ", "note", "BAD "};
	size_t i;

	for (i = 0; i < d->n; i++) {
		const struct finding *f = &d->finding[i];

		(void)printf("%s  %-22s ", marks[f->grade], f->what);
		text_put(stdout, f->text, 0);
		(void)putchar('\n');
		if (f->mend[0] != '\0') {
			(void)printf("      %-22s → ", "");
			text_put(stdout, f->mend, 0);
			(void)putchar('\n');
		}
	}
}

int cmd_doctor(struct ctl *c)
{
	static doctor_fn *const looks[] = {doctor_runtime, doctor_daemon, doctor_database,
		doctor_beside, doctor_settings, doctor_versions, doctor_kernel, doctor_limits,
		doctor_container, doctor_logout, doctor_gpu, doctor_others};
	static struct doctor d;
	size_t i, bad = 0;

	d.c = c;
	d.status.fd = -1;
	if (rpc_open(&d.rpc, &d.why) < 0)
		d.rpc = NULL;
	if (d.rpc != NULL) {
		(void)rpc_begin(d.rpc, "status");
		(void)rpc_call(d.rpc, RPC_TIMEOUT_MS, &d.status, &d.why);
	}
	for (i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
		looks[i](&d);
	for (i = 0; i < d.n; i++)
		bad += d.finding[i].grade == BAD ? 1 : 0;
	if (c->json)
		report_json(&d);
	else
		report(&d);
	rpc_reply_free(&d.status);
	rpc_close(d.rpc);
	return bad > 0 ? CTL_NOT_FOUND : CTL_OK;
}
