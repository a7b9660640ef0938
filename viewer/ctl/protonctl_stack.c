/* SPDX-License-Identifier: MIT. protonctl_stack.c: the threads of a process: /proc says what each waits in, its memory
 * what Python is in.
 */
#include "protonctl_stack.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "cpython.h"
#include "human.h"
#include "json.h"
#include "py_stack.h"

#define THREADS_MOST 256u
#define OBJECTS_MOST 4096u

struct thread {
	uint64_t tid, own; /* own: as its pid namespace has it */
	char name[64], state, wchan[64], call[32];
	const struct py_stack *python; /* NULL: it runs none */
	bool put;
};

struct stack {
	uint64_t pid, more;
	uint32_t apart; /* Python's threads that are none of these */
	struct thread thread[THREADS_MOST];
	uint32_t n;
	struct py_process python;
	char why[256]; /* there are no Python frames, or not of all; "": nothing is to be said */
};

/* The calls that a thread is found waiting in. Others are numbers. */
static const struct {
	long number;
	const char *word;
} calls[] = {
	{SYS_futex, "futex"},
	{SYS_read, "read"},
	{SYS_write, "write"},
	{SYS_clock_nanosleep, "clock_nanosleep"},
	{SYS_ppoll, "ppoll"},
	{SYS_pselect6, "pselect6"},
	{SYS_epoll_pwait, "epoll_pwait"},
	{SYS_ioctl, "ioctl"},
	{SYS_wait4, "wait4"},
	{SYS_waitid, "waitid"},
	{SYS_accept4, "accept4"},
	{SYS_recvfrom, "recvfrom"},
	{SYS_recvmsg, "recvmsg"},
	{SYS_sendto, "sendto"},
	{SYS_sendmsg, "sendmsg"},
	{SYS_connect, "connect"},
	{SYS_fsync, "fsync"},
	{SYS_flock, "flock"},
	{SYS_rt_sigtimedwait, "rt_sigtimedwait"},
#ifdef SYS_poll
	{SYS_poll, "poll"},
	{SYS_select, "select"},
	{SYS_epoll_wait, "epoll_wait"},
	{SYS_pause, "pause"},
#endif
};

/* The first line of a thread's file; "": it cannot be read. */
static void read_line(const struct stack *s, uint64_t tid, const char *file, char *ret, size_t n)
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%lu/task/%lu/%s", s->pid, tid, file);
	f = fopen(path, "re");
	if (f == NULL || fgets(ret, (int)n, f) == NULL)
		*ret = '\0';
	if (f != NULL)
		fclose(f);
	ret[strcspn(ret, "\n")] = '\0';
}

/* In a container Python has other numbers: the last one of "NSpid:". */
static uint64_t own_tid(const struct stack *s, uint64_t tid)
{
	char path[96], line[512], *last;
	uint64_t own = tid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%lu/task/%lu/status", s->pid, tid);
	f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		last = strrchr(line, '\t');
		if (last == NULL || !text_u64(last + 1, INT32_MAX, &own))
			own = tid;
		break;
	}
	if (f != NULL)
		fclose(f);
	return own;
}

static void read_thread(const struct stack *s, struct thread *t)
{
	char line[512], *end;
	long number;
	size_t i;

	read_line(s, t->tid, "comm", t->name, sizeof(t->name));
	read_line(s, t->tid, "stat", line, sizeof(line));
	end = strrchr(line, ')'); /* a name may hold any */
	t->state = '?';
	if (end != NULL && end[1] == ' ' && end[2] != '\0')
		t->state = end[2];
	read_line(s, t->tid, "wchan", t->wchan, sizeof(t->wchan));
	if (strcmp(t->wchan, "0") == 0)
		t->wchan[0] = '\0';
	read_line(s, t->tid, "syscall", line, sizeof(line));
	number = strtol(line, &end, 10);
	if (end == line || number < 0) /* "running", or it may not be read */
		return;
	snprintf(t->call, sizeof(t->call), "call %ld", number);
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].number == number)
			snprintf(t->call, sizeof(t->call), "%s", calls[i].word);
}

static void read_python(struct stack *s)
{
	struct memory m = memory_of((int)s->pid);
	char path[64], line[4400];
	uint32_t tried = 0;
	uint64_t base;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%lu/maps", s->pid);
	f = fopen(path, "re");
	while (f != NULL && !found && tried < OBJECTS_MOST && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "%lx-%*x r%*3c 00000000 ", &base) == 1 &&
			strstr(line, " 00000000 ") != NULL && strchr(line, '/') != NULL) {
			tried++;
			found = py_process_read(&m, base, &s->python);
		}
	if (f == NULL || (!found && (m.err == EPERM || m.err == EACCES)))
		snprintf(s->why, sizeof(s->why),
			"Python frames: the kernel does not let you read this process's memory%s; "
			"ask as root",
			f != NULL ? " (kernel.yama.ptrace_scope, or a container without SYS_PTRACE)"
				  : "");
	else if (!found)
		snprintf(s->why, sizeof(s->why), "Python frames: no Python is in this process");
	else if (s->python.version == 0)
		snprintf(s->why, sizeof(s->why),
			"Python frames: those of " CPYTHON_VERSIONS
			" can be read, and this Python is older");
	else if (!s->python.known)
		snprintf(s->why, sizeof(s->why),
			"Python frames: those of " CPYTHON_VERSIONS
			" can be read, and this is %lu.%lu%s",
			s->python.version >> 24 & 255, s->python.version >> 16 & 255,
			s->python.free_threaded ? ", free-threaded" : "");
	else if (s->python.threads == NULL)
		snprintf(s->why, sizeof(s->why), "Python frames: out of memory");
	if (f != NULL)
		fclose(f);
}

static bool is_python(const struct stack *s, uint64_t own)
{
	uint32_t i;

	for (i = 0; i < s->python.n && s->python.threads[i].tid != own; i++)
		;
	return i < s->python.n;
}

/* Of those that tell most, which are the main thread and Python's, or of the others. */
static void read_some(struct stack *s, DIR *d, bool most)
{
	struct dirent *e;
	uint64_t tid, own;

	rewinddir(d);
	while ((e = readdir(d)) != NULL) {
		if (!text_u64(e->d_name, INT32_MAX, &tid))
			continue;
		own = own_tid(s, tid);
		if ((tid == s->pid || is_python(s, own)) != most)
			continue;
		if (s->n == THREADS_MOST) {
			s->more++;
			continue;
		}
		s->thread[s->n] = (struct thread){.tid = tid, .own = own};
		read_thread(s, &s->thread[s->n++]);
	}
}

static void read_threads(struct stack *s)
{
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%lu/task", s->pid);
	d = opendir(path);
	if (d == NULL) {
		snprintf(s->why, sizeof(s->why), "its threads cannot be read: %s", strerror(errno));
		return;
	}
	read_some(s, d, true);
	read_some(s, d, false);
	closedir(d);
}

struct stack *stack_read(uint64_t pid)
{
	struct stack *s = calloc(1, sizeof(*s));
	uint32_t i, k;

	if (s == NULL)
		return NULL;
	s->pid = pid;
	read_python(s);
	read_threads(s);
	for (k = 0; s->python.threads != NULL && k < s->python.n; k++) {
		for (i = 0; i < s->n && s->thread[i].own != s->python.threads[k].tid; i++)
			;
		if (i < s->n)
			s->thread[i].python = &s->python.threads[k];
		else
			s->apart++;
	}
	return s;
}

void stack_free(struct stack *s)
{
	if (s == NULL)
		return;
	py_process_fini(&s->python);
	free(s);
}

static const char *state_word(char state)
{
	return state == 'R'                   ? "on CPU, or ready to run"
	       : state == 'S'                 ? "waits"
	       : state == 'D'                 ? "waits, and cannot be interrupted"
	       : state == 'T' || state == 't' ? "stopped"
	       : state == 'Z'                 ? "has ended"
					      : "in a state that is not known";
}

static void put_frame(const struct term *term, struct text *out, const struct py_frame *f)
{
	text_str(out, "      ");
	term_name(term, out, f->name[0] != '\0' ? f->name : "(unreadable)", 0);
	text_str(out, "  ");
	term_name(term, out, f->file, 0);
	if (f->line > 0)
		text_fmt(out, ":%d", f->line);
	text_char(out, '\n');
}

static void put_thread(struct thread *t, const struct term *term, struct text *out)
{
	const struct py_stack *p = t->python;
	uint32_t i;

	t->put = true;
	text_fmt(out, "    %s", state_word(t->state));
	text_str(out, t->call[0] != '\0' ? " in " : "");
	text_str(out, t->call);
	if (t->wchan[0] != '\0') {
		text_str(out, " (kernel: ");
		term_name(term, out, t->wchan, 0);
		text_char(out, ')');
	}
	text_str(out, p != NULL && p->gil ? ", holds the GIL\n" : "\n");
	if (p == NULL)
		return;
	for (i = 0; i < p->n_inner; i++)
		put_frame(term, out, &p->inner[i]);
	if (p->n > p->n_inner + p->n_outer)
		text_fmt(out, "      ... %u more\n", p->n - p->n_inner - p->n_outer);
	for (i = 0; i < p->n_outer; i++)
		put_frame(term, out, &p->outer[i]);
	if (p->broken)
		text_str(out, "      (the stack could not be followed further)\n");
	if (p->changed)
		text_str(out, "      (it ran on while it was read: frames may not belong "
			      "together)\n");
}

void stack_put(struct stack *s, const struct term *term, struct text *out, uint64_t tid)
{
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		if (s->thread[i].put || (tid != 0 && s->thread[i].tid != tid))
			continue;
		if (tid == 0) {
			text_fmt(out, "  thread %lu ", s->thread[i].tid);
			term_name(term, out, s->thread[i].name, 0);
			text_str(out, ", in no scope\n");
		}
		put_thread(&s->thread[i], term, out);
	}
	if (tid != 0)
		return;
	if (s->more > 0)
		text_fmt(out, "  ... and %lu more threads\n", s->more);
	if (s->apart > 0 || s->python.more > 0)
		text_fmt(out, "  ... and %lu threads of Python that are none of these\n",
			s->apart + s->python.more);
	if (s->why[0] != '\0')
		text_fmt(out, "  %s\n", s->why);
}

static void json_key(FILE *f, const char *key, const char *value)
{
	fprintf(f, ",\"%s\":", key);
	json_text(f, value, strlen(value));
}

static void json_frames(FILE *f, const char *key, const struct py_frame *frame, uint32_t n)
{
	uint32_t i;

	fprintf(f, ",\"%s\":[", key);
	for (i = 0; i < n; i++) {
		fprintf(f, "%s{\"line\":%d", i > 0 ? "," : "", frame[i].line);
		json_key(f, "function", frame[i].name);
		json_key(f, "file", frame[i].file);
		fputc('}', f);
	}
	fputc(']', f);
}

void stack_json(const struct stack *s, FILE *f)
{
	uint32_t i;

	fprintf(f, "{\"pid\":%lu,\"more\":%lu,\"apart\":%lu", s->pid, s->more,
		s->apart + s->python.more);
	json_key(f, "why", s->why);
	fputs(",\"threads\":[", f);
	for (i = 0; i < s->n; i++) {
		const struct thread *t = &s->thread[i];
		const char state[2] = {t->state, '\0'};

		fprintf(f, "%s{\"tid\":%lu", i > 0 ? "," : "", t->tid);
		json_key(f, "name", t->name);
		json_key(f, "state", state);
		json_key(f, "wchan", t->wchan);
		json_key(f, "syscall", t->call);
		if (t->python != NULL) {
			fprintf(f, ",\"frames\":%u,\"gil\":%s,\"changed\":%s,\"broken\":%s",
				t->python->n, t->python->gil ? "true" : "false",
				t->python->changed ? "true" : "false",
				t->python->broken ? "true" : "false");
			json_frames(f, "inner", t->python->inner, t->python->n_inner);
			json_frames(f, "outer", t->python->outer, t->python->n_outer);
		}
		fputc('}', f);
	}
	fputs("]}", f);
}
