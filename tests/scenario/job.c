/* SPDX-License-Identifier: MIT. job.c: a job that does what it is told, a line at a time, so that a
 * scenario decides when things happen and waits for each to have happened.
 *
 * Each line on stdin is a command, answered on stdout by "ok [result]" once it is done. A command
 * may be prefixed by "@N " to run on thread N (made at its first use, joined by "join N").
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <protond.h>

#define THREADS 64

struct worker {
	pthread_t id;
	bool live;
	int to[2], from[2]; /* pipes of lines */
};

static struct worker workers[THREADS];

static void answer(FILE *out, const char *text)
{
	fprintf(out, "ok%s%s\n", *text != '\0' ? " " : "", text);
	fflush(out);
}

static void repeat(const char *arg)
{
	char name[256];
	unsigned long n;

	if (sscanf(arg, "%lu %255s", &n, name) != 2)
		return;
	for (uint32_t id = protond_name(name); n > 0; n--) {
		protond_scope_enter(id);
		protond_scope_exit();
	}
}

static void distinct(const char *arg)
{
	char name[64];
	unsigned long n = strtoul(arg, NULL, 10);

	for (unsigned long i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "step %lu", i);
		protond_scope_enter(protond_name(name));
		protond_scope_exit();
	}
}

static void *brief(void *name)
{
	protond_scope_enter(protond_name(name));
	protond_scope_exit();
	return NULL;
}

static void threads(const char *arg)
{
	pthread_t t;

	for (unsigned long n = strtoul(arg, NULL, 10); n > 0; n--)
		if (pthread_create(&t, NULL, brief, (void *)(uintptr_t) "brief") == 0)
			pthread_join(t, NULL);
}

static void *outlive(void *main_thread)
{
	pthread_join(*(pthread_t *)main_thread, NULL);
	return brief((void *)(uintptr_t) "after main");
}

static void outlived(void)
{
	static pthread_t self;
	pthread_t t;

	self = pthread_self();
	if (pthread_create(&t, NULL, outlive, &self) == 0)
		pthread_exit(NULL);
}

static void fork_one(const char *arg)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		brief((void *)(uintptr_t)arg);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
}

/* "forks N K NAME": N children with K scopes each, that end before anybody may have looked. */
static void forks(const char *arg)
{
	char name[256];
	unsigned long n, k;

	if (sscanf(arg, "%lu %lu %255s", &n, &k, name) != 3)
		return;
	for (unsigned long i = 0; i < n; i++) {
		if (fork() != 0)
			continue;
		for (uint32_t id = protond_name(name); k > 0; k--) {
			protond_scope_enter(id);
			protond_scope_exit();
		}
		_exit(0);
	}
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

/* A child that records, and once more when its parent is gone. */
static void orphan(const char *arg)
{
	int end[2], began[2];
	char c;

	if (pipe(end) < 0 || pipe(began) < 0)
		return;
	if (fork() == 0) {
		close(end[1]);
		brief((void *)(uintptr_t)arg);
		(void)!write(began[1], "!", 1);
		(void)!read(end[0], &c, 1); /* the parent's end of it closes with the parent */
		brief((void *)(uintptr_t)arg);
		_exit(0);
	}
	close(end[0]);
	(void)!read(began[0], &c, 1);
}

static void spawn_one(const char *arg)
{
	char *argv[] = {(char *)(uintptr_t)arg, NULL};
	int status = 0;
	pid_t pid;

	if (posix_spawn(&pid, arg, NULL, NULL, argv, environ) == 0)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
}

static void metric(const char *arg)
{
	char name[128], type[8], value[128];

	if (sscanf(arg, "%7s %127s %127[^\n]", type, value, name) != 3)
		return;
	if (type[0] == 'i')
		protond_metric_i64(protond_metric(name), strtoll(value, NULL, 10));
	else if (type[0] == 'f')
		protond_metric_f64(protond_metric(name), strtod(value, NULL));
	else
		protond_metric_str(protond_metric(name), value);
}

/* "child PARENT NAME" and "begin" give a number, "span CONTEXT BEGIN" takes two. */
static void span(const char *word, const char *arg, char *ret, size_t n)
{
	unsigned long long a = 0, b = 0;
	char *end;

	a = strtoull(arg, &end, 10);
	if (strcmp(word, "child") == 0) {
		b = protond_context_child(a, protond_name(end + 1));
		(void)snprintf(ret, n, "%llu", b);
	} else if (strcmp(word, "begin") == 0) {
		(void)snprintf(ret, n, "%llu", (unsigned long long)protond_span_begin());
	} else {
		b = strtoull(end, NULL, 10);
		protond_span_end(a, b);
	}
}

static void session(const char *word, const char *arg, char *ret, size_t n)
{
	int r;

	if (strcmp(word, "start") == 0)
		r = protond_start(arg, NULL);
	else if (strcmp(word, "activate") == 0)
		r = protond_activate(atoi(arg));
	else if (strcmp(word, "deactivate") == 0)
		r = protond_deactivate(atoi(arg), 0);
	else if (strcmp(word, "finalize") == 0)
		r = protond_finalize(atoi(arg), NULL);
	else
		r = protond_finalize(atoi(arg), "hatchet");
	(void)snprintf(ret, n, "%d %s", r, protond_error());
}

static void run(char *line, char *ret, size_t n)
{
	char *word = line, *arg = strchr(line, ' ');

	ret[0] = '\0';
	if (arg != NULL)
		*arg++ = '\0';
	else
		arg = line + strlen(line);
	if (strcmp(word, "enter") == 0)
		protond_scope_enter(protond_name(arg));
	else if (strcmp(word, "exit") == 0)
		protond_scope_exit();
	else if (strcmp(word, "unwind") == 0)
		protond_scope_unwind((uint32_t)atoi(arg));
	else if (strcmp(word, "leave") == 0)
		protond_scope_leave(protond_name(arg));
	else if (strcmp(word, "child") == 0 || strcmp(word, "begin") == 0 ||
		 strcmp(word, "span") == 0)
		span(word, arg, ret, n);
	else if (strcmp(word, "depth") == 0)
		(void)snprintf(ret, n, "%u", protond_depth());
	else if (strcmp(word, "state") == 0)
		protond_state_enter(protond_name(arg));
	else if (strcmp(word, "unstate") == 0)
		protond_state_exit();
	else if (strcmp(word, "op") == 0)
		protond_op_enter(protond_name(arg));
	else if (strcmp(word, "unop") == 0)
		protond_op_exit();
	else if (strcmp(word, "metric") == 0)
		metric(arg);
	else if (strcmp(word, "repeat") == 0)
		repeat(arg);
	else if (strcmp(word, "distinct") == 0)
		distinct(arg);
	else if (strcmp(word, "threads") == 0)
		threads(arg);
	else if (strcmp(word, "fork") == 0)
		fork_one(arg);
	else if (strcmp(word, "pause") == 0)
		pause();
	else if (strcmp(word, "forks") == 0)
		forks(arg);
	else if (strcmp(word, "orphan") == 0)
		orphan(arg);
	else if (strcmp(word, "spawn") == 0)
		spawn_one(arg);
	else if (strcmp(word, "get") == 0)
		(void)snprintf(ret, n, "%llu", (unsigned long long)protond_context_get());
	else if (strcmp(word, "set") == 0)
		protond_context_set(strtoull(arg, NULL, 10));
	else if (strcmp(word, "outlived") == 0)
		outlived(); /* never answered */
	else if (strcmp(word, "exec") == 0)
		(void)execl("/proc/self/exe", "job", "execed", NULL); /* which answers */
	else if (strcmp(word, "quit") == 0)
		exit(atoi(arg));
	else if (strcmp(word, "_exit") == 0)
		_exit(atoi(arg));
	else if (strcmp(word, "signal") == 0)
		raise(atoi(arg));
	else if (strcmp(word, "ping") != 0)
		session(word, arg, ret, n);
}

static void *serve(void *p)
{
	struct worker *w = p;
	FILE *in = fdopen(w->to[0], "r"), *out = fdopen(w->from[1], "w");
	char line[512], ret[512];

	while (in != NULL && out != NULL && fgets(line, sizeof(line), in) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		run(line, ret, sizeof(ret));
		answer(out, ret);
	}
	return NULL;
}

static void on_thread(unsigned n, const char *line, char *ret, size_t size)
{
	struct worker *w = &workers[n % THREADS];
	size_t got = 0;

	if (!w->live) {
		if (pipe(w->to) < 0 || pipe(w->from) < 0 ||
			pthread_create(&w->id, NULL, serve, w) != 0)
			exit(3);
		w->live = true;
	}
	if (strcmp(line, "join") == 0) {
		close(w->to[1]);
		pthread_join(w->id, NULL);
		w->live = false;
		ret[0] = '\0';
		return;
	}
	dprintf(w->to[1], "%s\n", line);
	while (got + 1 < size && read(w->from[0], ret + got, 1) == 1 && ret[got] != '\n')
		got++;
	ret[got] = '\0';
	memmove(ret, ret + (got > 2 ? 3 : 2), strlen(ret + (got > 2 ? 3 : 2)) + 1);
}

int main(int argc, char **argv)
{
	char line[512], ret[512];

	if (argc > 1 && strcmp(argv[1], "execed") == 0)
		answer(stdout, "");
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '@') {
			char *rest = strchr(line, ' ');

			on_thread((unsigned)atoi(line + 1), rest != NULL ? rest + 1 : "ping", ret,
				sizeof(ret));
		} else {
			run(line, ret, sizeof(ret));
		}
		answer(stdout, ret);
	}
	return 0;
}
