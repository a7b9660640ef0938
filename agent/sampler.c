/* SPDX-License-Identifier: MIT. sampler.c: a thread that looks, about a hundred times a second, at what each other
 * thread of the process is in: at its scope, at its Python frames, and whether it is on a CPU.
 *
 * It stops nothing and takes no lock of the program's: another thread's place is an atomic word of its now block, its
 * frames are copied by the kernel (sampled_stack.c), and how long it was on a CPU is what its CPU clock says. A thread
 * whose clock has not moved since a look that found it on none is where it was: that costs one system call. Looks that find the
 * same follow each other in one SAMPLE record, so a thread that waits costs two records a second.
 *
 * Looks come at random distances around LOOK_NS, or a program with a period of its own would be seen in one place of it.
 * Each counts for the time since the one before, so sums are right however late a look is. A round of looks takes at
 * most ROUND_NS; the threads that it did not come to are first in the next one. What falls below LEAST_HZ a
 * thread is counted (LOST_SAMPLES).
 *
 * With PROTOND_CPU_NATIVE=1 native frames are looked for, too (native_stack.c), after Python's and of a later instant: they
 * stand below Python's only if the innermost Python frame has come no instruction further meanwhile.
 *
 * Threads: those that Python knows, those that have called libprotond, and of the others those that are on a CPU.
 */
#include "sampler.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "clock.h"
#include "lane.h"
#include "native_stack.h"
#include "proxy.h"
#include "record.h"
#include "sampled_stack.h"
#include "scope.h"
#include "sync.h"

#define LOOK_NS           10000000u
#define ROUND_NS          200000u
#define ROUND_NATIVE_NS   1000000u /* of native frames: most of it waits for a tick */
#define LEAST_HZ          50u
#define LIST_NS           100000000u /* threads are listed so often, or it would cost too much: LIST_SHARE */
#define LIST_SHARE        100u        /* of the time since the last list, one part is for it */
#define TASKS_NS          1000000000u /* likewise, those that only the kernel knows */
#define MISSING_MOST      64u /* looks at a thread that waits, and whose native frames are not found */
#define RUN_NS            500000000u /* a record is of no more */
#define MOVE_MOST         1000000000 /* of one thread's CPU time that is not counted yet, ns */
#define WATCHED_MOST      16384u
#define WATCHED_SLOTS     (2 * WATCHED_MOST)
#define INTERPRETERS_MOST 64u
#define SAMPLER           "protond-sampler"

struct watched {
	uint32_t tid, shown;         /* shown: its number in /proc; 0: not known yet */
	uint32_t state_round, round; /* of the lists in which its state and itself last were */
	bool native, gone;
	bool refused;     /* its native frames were, at the last look at its frames */
	uint32_t missing; /* looks at its frames, one after the other, that found no native ones */
	bool still,
		ready; /* the last look found it on no CPU; and it waits for one, or is on one */
	int64_t ran; /* ns on a CPU that no look has counted yet; below 0: that were counted before */
	uint64_t interpreter, state;   /* Python's of it; state 0: none */
	const struct pd_thread *block; /* NULL: it never called libprotond */
	uint64_t cpu;                  /* its CPU clock then, ns */
	uint64_t seen, seen_ns;        /* clock of the last look; CLOCK_MONOTONIC */
	uint64_t run_ns;               /* CLOCK_MONOTONIC when the run began */
	uint32_t python;               /* path of its frames then */
	uint32_t named;                /* native: path of its name; PATH_ROOT: not yet made */
	struct rec_sample run;         /* samples 0: none yet, but begin is right */
};

struct sampler {
	struct stacks *stacks;
	struct native *native; /* NULL: native frames are not asked for */
	struct memory memory;
	struct lane *lane;
	uint64_t listed_ns, list_cost, tasks_ns, told_ns;
	uint64_t found_ns, find_ns; /* when Python was looked for, and how long until it is again */
	uint64_t looks;             /* since told_ns */
	uint64_t random;
	uint32_t n, next, round, over; /* over: threads that there was no room for */
	uint32_t tid;
	/* /proc has the numbers of another pid namespace; some are to be found */
	bool foreign, unseen;
	bool python, bare;            /* bare: there is a Python whose frames cannot be read */
	uint16_t slot[WATCHED_SLOTS]; /* by tid: place + 1 */
	struct watched watched[WATCHED_MOST];
};

static struct {
	_Atomic uint32_t lock;
	_Atomic uint32_t bell; /* futex */
	_Atomic uint32_t on;
	_Atomic uint32_t told; /* what was seen before `ending` is in the ring */
	_Atomic uint32_t ending;
	_Atomic uint32_t begun;        /* it may have seen something */
	struct sampler *_Atomic rests; /* between two looks; who takes it has all that was seen */
	_Atomic uint64_t ns;
	_Atomic bool runs; /* changed under lock */
} sampling;

/* --- clocks ----------------------------------------------------------------------------------- */

static uint64_t cpu_ns(clockid_t clock, bool *ret_there)
{
	struct timespec ts = {0};

	*ret_there = clock_gettime(clock, &ts) == 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Of another thread, as the kernel names such clocks. */
static uint64_t cpu_of(uint32_t tid, bool *ret_there)
{
	return cpu_ns((clockid_t)(~tid << 3 | 6u), ret_there);
}

static uint64_t own_ns(void)
{
	bool there;

	return cpu_ns(CLOCK_THREAD_CPUTIME_ID, &there);
}

/* --- runs ------------------------------------------------------------------------------------- */

static void run_put(const struct sampler *s, struct watched *w)
{
	if (w->run.samples != 0 && s->lane != NULL)
		(void)lane_put(s->lane, &w->run, sizeof(w->run));
	else if (w->run.samples != 0)
		agent_count(&core.counts->drop_no_lane, 1);
	w->run.begin = w->run.end;
	w->run.samples = 0;
	w->run_ns = w->seen_ns;
}

/* What one look found. */
struct look {
	uint64_t now; /* clock */
	uint32_t path, flags;
};

static void run_add(const struct sampler *s, struct watched *w, const struct look *l)
{
	const uint64_t hdr = REC_HDR(sizeof(w->run), REC_SAMPLE, 0, l->flags, l->path);

	if (w->run.hdr != hdr || w->run.python != w->python || w->run.end != w->seen ||
		w->seen_ns - w->run_ns > RUN_NS) {
		run_put(s, w);
		w->run = (struct rec_sample){
			.hdr = hdr, .begin = w->seen, .python = w->python, .tid = w->tid};
	}
	w->run.end = l->now;
	w->run.samples++;
	w->seen = l->now;
}

/* --- looks ------------------------------------------------------------------------------------ */

static uint32_t where(const struct watched *w)
{
	return w->block != NULL ? scope_of(w->block) : scope_follow(NULL);
}

#define COMM_BYTES 16u /* as the kernel keeps it, with its end */

/* The beginning of a thread's file in /proc; "": it is gone, or not known there. */
static void read_task(uint32_t shown, const char *file, char *ret, size_t n)
{
	char path[48];
	ssize_t got;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%u/%s", shown, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd >= 0 ? read(fd, ret, n - 1) : -1;
	if (fd >= 0)
		(void)close(fd);
	ret[got > 0 ? got : 0] = '\0';
}

/* The system's name of a thread. */
static void comm_of(uint32_t shown, char ret[COMM_BYTES])
{
	read_task(shown, "comm", ret, COMM_BYTES);
	ret[strcspn(ret, "\n")] = '\0';
}

static uint32_t thread_name(const struct sampler *s, uint32_t shown)
{
	char comm[COMM_BYTES], text[COMM_BYTES + 16];

	comm_of(shown, comm);
	(void)snprintf(text, sizeof(text), "[thread %s]", comm);
	return stacks_named(s->stacks, text);
}

/* Of one that is on no CPU: for want of one? */
static bool is_ready(uint32_t shown)
{
	char line[512];
	const char *state;

	read_task(shown, "stat", line, sizeof(line));
	state = strrchr(line, ')'); /* a name may hold any */
	return state != NULL && strncmp(state, ") R", 3) == 0;
}

/* How the time since the last look counts of a thread that would run: on a CPU as much of it as its CPU clock says, in
 * whole looks. What a look finds by itself would not do: where CPUs are short, the looking thread takes one from those
 * that it looks at. */
static uint32_t flags_of(struct watched *w, uint64_t moved_ns, uint64_t past_ns)
{
	const int64_t most = MOVE_MOST + (int64_t)past_ns;

	w->ran += (int64_t)(moved_ns < (uint64_t)most ? moved_ns : (uint64_t)most);
	w->ran = w->ran < most ? w->ran : most;
	if (!w->ready)
		return SAMPLE_OFF_CPU;
	if (2 * w->ran < (int64_t)past_ns)
		return SAMPLE_OFF_CPU | SAMPLE_READY;
	w->ran -= (int64_t)past_ns;
	return 0;
}

static struct stacks_mark mark_of(const struct sampler *s, const struct watched *w)
{
	return w->state != 0 ? stacks_mark(s->stacks, w->interpreter, w->state, w->tid)
			     : (struct stacks_mark){0};
}

/* Below what find() has found. */
static void find_native(struct sampler *s, struct watched *w, const struct stacks_mark *before)
{
	const bool python = before->frame != 0;
	const uint32_t path = w->python;
	enum native_what what = NATIVE_NONE;
	struct stacks_mark after;

	if (python == (w->state != 0 && path != PATH_ROOT)) /* else it has come, or gone */
		what = native_look(s->native, w->tid, w->shown, python, stacks_native(s->stacks));
	w->refused = what == NATIVE_REFUSED;
	after = mark_of(s, w);
	if (what == NATIVE_FOUND && memcmp(&after, before, sizeof(after)) == 0)
		w->python = native_below(s->native, s->stacks, path);
	w->missing = w->python == path ? w->missing + 1 : 0;
}

/* What it is in, of one that has moved since the last look. */
static void find(struct sampler *s, struct watched *w)
{
	struct stacks_mark mark = {0};

	if (s->native != NULL)
		mark = mark_of(s, w);
	w->python = w->native ? w->named : PATH_ROOT;
	if (w->native && w->named == PATH_ROOT)
		w->python = w->named = thread_name(s, w->shown);
	else if (w->state != 0)
		w->python = stacks_path(s->stacks, w->interpreter, w->state, w->tid);
	if (s->native != NULL)
		find_native(s, w, &mark);
}

static void look_at(struct sampler *s, struct watched *w)
{
	uint64_t cpu, moved, now_ns;
	struct look l;
	bool there;

	cpu = cpu_of(w->tid, &there);
	now_ns = agent_monotonic_ns();
	l.now = agent_clock_inline();
	if (!there) {
		run_put(s, w);
		w->gone = true;
		return;
	}
	moved = cpu - w->cpu;
	w->missing = moved == 0 ? w->missing : 0;
	if (moved != 0 || !w->still || (w->missing != 0 && w->missing < MISSING_MOST)) {
		find(s, w);
		w->cpu = cpu_of(w->tid, &there);
		w->still = w->cpu == cpu;
		w->ready = !w->still || is_ready(w->shown);
		moved += w->cpu - cpu;
	}
	l.flags = flags_of(w, moved, now_ns - w->seen_ns) | (s->bare ? SAMPLE_NO_FRAMES : 0);
	if (w->refused && (l.flags & SAMPLE_OFF_CPU) == 0)
		l.flags |= SAMPLE_NO_NATIVE;
	w->seen_ns = now_ns;
	if (w->native && (l.flags & SAMPLE_OFF_CPU) != 0) {
		run_put(s, w);
		w->seen = l.now;
		return;
	}
	l.path = where(
		w); /* one without scopes of its own is where the main thread is, even if it waits */
	run_add(s, w, &l);
}

static void look_round(struct sampler *s)
{
	const uint64_t begin = agent_monotonic_ns(),
		       most = s->native != NULL ? ROUND_NATIVE_NS : ROUND_NS;
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		s->next = s->next < s->n ? s->next : 0;
		look_at(s, &s->watched[s->next++]);
		s->looks++;
		if (agent_monotonic_ns() - begin > most)
			break;
	}
}

/* --- which threads there are ------------------------------------------------------------------ */

static uint32_t slot_of(const struct sampler *s, uint32_t tid)
{
	uint32_t i = tid * 0x9e3779b1u;

	for (i %= WATCHED_SLOTS; s->slot[i] != 0; i = (i + 1) % WATCHED_SLOTS)
		if (s->watched[s->slot[i] - 1].tid == tid)
			break;
	return i;
}

/* NULL: it is one of ours, or there is no room. */
static struct watched *watch(struct sampler *s, uint32_t tid)
{
	const uint32_t slot = slot_of(s, tid);
	struct watched *w;
	bool there;

	if (s->slot[slot] != 0) {
		w = &s->watched[s->slot[slot] - 1];
		w->round = s->round;
		return w;
	}
	if (tid == 0 || tid == s->tid || s->n == WATCHED_MOST) {
		s->over += s->n == WATCHED_MOST;
		return NULL;
	}
	w = &s->watched[s->n++];
	s->slot[slot] = (uint16_t)s->n;
	s->unseen |= s->foreign;
	*w = (struct watched){.tid = tid,
		.shown = s->foreign ? 0 : tid,
		.round = s->round,
		.seen = agent_clock_inline(),
		.seen_ns = agent_monotonic_ns()};
	w->cpu = cpu_of(tid, &there);
	w->run.begin = w->run.end = w->seen;
	return w;
}

static void list_python(struct sampler *s)
{
	const struct cpython *py = stacks_cpython(s->stacks);
	uint64_t interpreter = 0, at;
	struct cpython_thread t;
	struct watched *w;
	uint32_t i, n = 0;

	for (i = 0; s->python && i < INTERPRETERS_MOST; i++) {
		interpreter = cpython_interpreter(py, interpreter);
		if (interpreter == 0)
			return;
		at = cpython_first_thread(py, interpreter);
		for (; at != 0 && n < WATCHED_MOST; at = t.next, n++) {
			if (!cpython_thread(py, interpreter, at, &t))
				break;
			w = t.tid <= INT32_MAX ? watch(s, (uint32_t)t.tid) : NULL;
			/* Of two interpreters: the one that it runs in. */
			if (w == NULL || (w->state != 0 && w->state != at && t.frame == 0))
				continue;
			w->native = false;
			w->interpreter = interpreter;
			w->state = at;
			w->state_round = s->round;
		}
	}
}

static void list_blocks(struct sampler *s)
{
	const struct protond_host *h = core.host;
	const struct pd_thread *t = NULL;
	struct watched *w;

	if (!HOST_HAS(h, next_thread) || h->next_thread == NULL)
		return;
	while ((t = h->next_thread(t)) != NULL) {
		const uint32_t tid = __atomic_load_n(&t->tid, __ATOMIC_RELAXED);

		w = tid != 0 ? watch(s, tid) : NULL;
		if (w == NULL)
			continue;
		w->native = false;
		w->block = t;
	}
}

static bool is_ours(uint32_t shown)
{
	char comm[COMM_BYTES];

	comm_of(shown, comm);
	return strcmp(comm, "protond") == 0 || strcmp(comm, "protond-agent") == 0 ||
	       strcmp(comm, SAMPLER) == 0;
}

/* As this process's pid namespace has it: the last of the numbers behind "NSpid:". 0: not to be had. */
static uint32_t tid_of(uint32_t shown)
{
	static const char word[] = "\nNSpid:";
	char text[4096], *p, *end;

	read_task(shown, "status", text, sizeof(text));
	p = strstr(text, word);
	end = p != NULL ? strchr(p + 1, '\n') : NULL;
	if (end == NULL)
		return 0;
	*end = '\0';
	p = strrchr(p, '\t');
	return p != NULL ? (uint32_t)strtoul(p, NULL, 10) : 0;
}

static void list_task(struct sampler *s, const char *name)
{
	struct watched *w;
	uint32_t shown = 0, tid, n;

	for (; *name >= '0' && *name <= '9' && shown < INT32_MAX / 10; name++)
		shown = shown * 10 + (uint32_t)(*name - '0');
	n = s->n;
	tid = s->foreign ? tid_of(shown) : shown;
	if (tid == 0 || *name != '\0' || (s->slot[slot_of(s, tid)] == 0 && is_ours(shown)))
		return;
	w = watch(s, tid);
	if (w == NULL)
		return;
	w->shown = shown;
	w->native = w->native || s->n != n;
}

/* No malloc: the program's may be anything. */
static void list_tasks(struct sampler *s)
{
	struct entry {
		uint64_t inode, offset;
		uint16_t bytes;
		uint8_t type;
		char name[];
	} * e;
	_Alignas(8) char buf[4096];
	const int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long got, at;

	while (fd >= 0 && (got = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
		for (at = 0; at < got; at += e->bytes) {
			e = (struct entry *)(void *)(buf + at);
			list_task(s, e->name);
		}
	if (fd >= 0)
		(void)close(fd);
}

/* Those that ended, or that nobody has named again. */
static void list_end(struct sampler *s)
{
	uint32_t i, was = s->n;

	for (i = s->n; i-- > 0;) {
		struct watched *w = &s->watched[i];

		if (w->state_round != s->round)
			w->state = 0; /* it may be anything by now */
		if (!w->gone && (w->round == s->round || w->native))
			continue;
		run_put(s, w);
		*w = s->watched[--s->n];
	}
	if (was == s->n)
		return;
	memset(s->slot, 0, sizeof(s->slot));
	for (i = 0; i < s->n; i++)
		s->slot[slot_of(s, s->watched[i].tid)] = (uint16_t)(i + 1);
}

/* Ever more seldom: the loader may be busy, and then this thread waits. */
static void find_python(struct sampler *s, uint64_t now)
{
	const struct cpython_symbols symbols = {
		.runtime = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "_PyRuntime"),
		.version = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "Py_Version"),
		.code_type = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "PyCode_Type"),
		.text_type = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "PyUnicode_Type")};

	s->python = stacks_python(s->stacks, &symbols);
	s->bare = !s->python && symbols.runtime != 0;
	if (s->native != NULL)
		native_python(s->native,
			(uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault"));
	s->found_ns = now;
	s->find_ns = s->find_ns == 0 ? TASKS_NS : s->find_ns * 2;
}

static void list(struct sampler *s, uint64_t now)
{
	bool tasks;
	const uint64_t began = own_ns();

	s->round++;
	s->over = 0;
	if (!s->python && !s->bare && now - s->found_ns >= s->find_ns)
		find_python(s, now);
	list_python(s);
	list_blocks(s);
	tasks = now - s->tasks_ns >= TASKS_NS || s->unseen;
	s->unseen = false;
	if (tasks) {
		list_tasks(s);
		s->tasks_ns = now;
	}
	list_end(s);
	s->listed_ns = now;
	s->list_cost = own_ns() - began;
}

/* --- the thread ------------------------------------------------------------------------------- */

static void take_lane(struct sampler *s)
{
	void *l = NULL;

	if (s->lane == NULL)
		lane_claim(s->tid, false, &l);
	if (l != NULL)
		s->lane = l;
}

/* Once a second: looks that were to come and did not. */
static void tell_late(struct sampler *s, uint64_t now)
{
	const uint64_t due = (now - s->told_ns) / 1000000u * LEAST_HZ / 1000u * (s->n + s->over);
	struct rec_lost r = {.hdr = REC_HDR(sizeof(r), REC_LOST, 0, 0, LOST_SAMPLES)};

	take_lane(s);
	if (due > s->looks && s->told_ns != 0 && s->lane != NULL) {
		r.count = due - s->looks;
		r.first = r.last = agent_clock_inline();
		(void)lane_put(s->lane, &r, sizeof(r));
	}
	s->looks = 0;
	s->told_ns = now;
	atomic_store_explicit(&sampling.ns, own_ns(), memory_order_relaxed);
}

static void put_runs(struct sampler *s)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		run_put(s, &s->watched[i]);
}

static void put_all(struct sampler *s)
{
	put_runs(s);
	/* release: all of it is in the ring; pairs with the acquire in sampler_exit() */
	atomic_store_explicit(&sampling.told, 1, memory_order_release);
	agent_wake(&sampling.told);
}

/* From half of LOOK_NS to one and a half. */
static uint64_t pause_ns(struct sampler *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return LOOK_NS / 2 + s->random % LOOK_NS;
}

/* False: the process ends, and s is not ours any more. */
static bool sample(struct sampler *s)
{
	uint32_t seen = atomic_load(&sampling.bell);
	uint64_t now;

	atomic_store(&sampling.begun, 1);
	while (atomic_load(&sampling.on) != 0 && atomic_load(&sampling.ending) == 0) {
		now = agent_monotonic_ns();
		if (now - s->listed_ns >= LIST_NS + s->list_cost * LIST_SHARE)
			list(s, now);
		look_round(s);
		if (now - s->told_ns >= TASKS_NS)
			tell_late(s, now);
		atomic_store(&sampling.rests, s);
		agent_wait_ns(&sampling.bell, seen, (int64_t)pause_ns(s));
		if (atomic_exchange(&sampling.rests, NULL) == NULL)
			return false;
		seen = atomic_load(&sampling.bell);
	}
	put_all(s);
	return true;
}

static void sampler_free(struct sampler *s)
{
	if (s->lane != NULL)
		lane_release(s->lane, true);
	native_free(s->native);
	stacks_free(s->stacks);
	memory_fini(&s->memory);
	(void)munmap(s, sizeof(*s));
}

static bool wants_native(void)
{
	const char *flag = agent_env("PROTOND_CPU_NATIVE");

	return flag != NULL && strcmp(flag, "1") == 0;
}

static bool proc_is_foreign(void)
{
	char pid[16] = "";

	return readlink("/proc/self", pid, sizeof(pid) - 1) > 0 &&
	       strtoul(pid, NULL, 10) != (unsigned long)getpid();
}

static struct sampler *sampler_new(void)
{
	const bool native = wants_native();
	struct sampler *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (s == MAP_FAILED)
		return NULL;
	(void)madvise(s, sizeof(*s), MADV_DONTFORK);
	s->memory = memory_self();
	s->stacks = stacks_new(&s->memory);
	s->random = agent_monotonic_ns() | 1;
	s->tid = (uint32_t)syscall(SYS_gettid);
	s->foreign = proc_is_foreign();
	s->native = native ? native_new(&s->memory) : NULL;
	if (s->stacks != NULL && (s->native != NULL || !native))
		return s;
	sampler_free(s);
	return NULL;
}

/* Somebody may want samples again just now: then this thread goes on. */
static bool done(bool failed)
{
	bool ends;

	(void)agent_lock_for(&sampling.lock, UINT32_MAX);
	ends = failed || atomic_load(&sampling.on) == 0 || atomic_load(&sampling.ending) != 0;
	atomic_store(&sampling.runs, !ends);
	agent_unlock(&sampling.lock);
	return ends;
}

static void *sampler_main(void *unused)
{
	struct sampler *s;

	(void)unused;
	pthread_setname_np(pthread_self(), SAMPLER);
	do {
		s = sampler_new();
		if (s == NULL)
			continue;
		take_lane(s);
		if (!sample(s))
			return NULL;
		sampler_free(s);
	} while (!done(s == NULL));
	return NULL;
}

static bool thread_start(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int r;

	if (pthread_attr_init(&attr) != 0)
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, &attr, sampler_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return r == 0;
}

void sampler_want(bool on)
{
	if (on == (atomic_load(&sampling.on) != 0))
		return;
	(void)agent_lock_for(&sampling.lock, UINT32_MAX);
	atomic_store(&sampling.on, on);
	if (on && !sampler_runs())
		atomic_store(&sampling.runs, thread_start());
	agent_unlock(&sampling.lock);
	atomic_fetch_add(&sampling.bell, 1);
	agent_wake(&sampling.bell);
}

/* A machine that is busy runs a thread some time after it was woken: what rests is not waited for. */
void sampler_exit(uint32_t timeout_ms)
{
	struct sampler *s;

	if (atomic_load(&sampling.on) == 0)
		return;
	atomic_store(&sampling.told, 0);
	atomic_store(&sampling.ending, 1);
	s = atomic_exchange(&sampling.rests, NULL);
	if (s != NULL)
		put_runs(s);
	if (s != NULL || atomic_load(&sampling.begun) == 0)
		return;
	atomic_fetch_add(&sampling.bell, 1);
	agent_wake(&sampling.bell);
	/* acquire: pairs with the release in put_all() */
	if (atomic_load_explicit(&sampling.told, memory_order_acquire) == 0)
		agent_wait(&sampling.told, 0, timeout_ms);
}

void sampler_forked(void)
{
	memset(&sampling, 0, sizeof(sampling));
	native_forked();
}

bool sampler_runs(void)
{
	return atomic_load(&sampling.runs);
}

uint64_t sampler_ns(void)
{
	return atomic_load_explicit(&sampling.ns, memory_order_relaxed);
}
