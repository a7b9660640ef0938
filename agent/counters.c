/* SPDX-License-Identifier: MIT. counters.c: what the CPU counts in each scope: instructions, cycles, misses, or what
 * the kernel counts of a thread.
 *
 * Each thread has counters of its own, opened at its first scope with the switch on. A scope reads all of them when it is
 * entered and when it is left, by rdpmc where the kernel lets a program do so and else by one read(): what came since
 * the thread's last reading belongs to the scope that it was in. A scope keeps what came in itself and writes it when it is
 * left, one METRIC record for each counter; what came in scopes inside of it is theirs, and viewers add it up. Nothing is
 * written of scopes that are open when the switch goes off.
 *
 * HOT->cpu is CPU_COUNTED meanwhile, which is the slow way of scope.c: the fast one does not know of counters.
 *
 * Descriptors: one a counter and thread, at high numbers, so that a program that closes what it does not know and opens
 * files does not get these numbers soon; each is asked for its id before it is closed or disabled. What read() gives says its
 * id as well; if it is not ours, the thread's counters are given up.
 */
#include "counters.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent.h"
#include "clock.h"
#include "counter_page.h"
#include "counter_terms.h"
#include "lane.h"
#include "record.h"
#include "sums.h"

#define FDS_MOST    1024u /* of all threads, and a quarter of what the process may have */
#define FD_HIGH     2048u
#define PARANOID    "/proc/sys/kernel/perf_event_paranoid"
#define NO_PARANOID INT32_MAX

_Static_assert(PERF_TYPE_HARDWARE == 0 && PERF_TYPE_SOFTWARE == 1 &&
		       PERF_COUNT_HW_BRANCH_MISSES == 5 && PERF_COUNT_SW_PAGE_FAULTS_MAJ == 6,
	"numbers of counter_terms.h");

struct counted {
	uint32_t n, open; /* n 0: none is to be had; open: scopes whose `self` is kept */
	bool direct;      /* rdpmc */
	int fd[COUNTERS_AT_ONCE];
	uint64_t id[COUNTERS_AT_ONCE];
	uint32_t name[COUNTERS_AT_ONCE]; /* ring name of its metric */
	const struct perf_event_mmap_page *page[COUNTERS_AT_ONCE];
	struct counter_reading last[COUNTERS_AT_ONCE];
	uint8_t scaled[STACK_MAX + 1]; /* bits */
	uint64_t self[STACK_MAX + 1][COUNTERS_AT_ONCE];
};

/* A group's, as PERF_FORMAT says. */
struct group_values {
	uint64_t n, enabled, running;
	struct {
		uint64_t value, id;
	} of[COUNTERS_AT_ONCE];
};
#define FORMAT                                                                                 \
	(PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | \
		PERF_FORMAT_ID)

static struct {
	bool on;                /* under worker_in() */
	_Atomic uint32_t epoch; /* goes up when the switch goes on */
	_Atomic uint32_t fds, most;
	_Atomic uint32_t told[COUNTERS_WHAT_MAX]; /* in which epoch */
	struct {
		_Atomic uint64_t id;
		_Atomic int fd; /* + 1; 0: free */
	} open[FDS_MOST];
} counting;

/* --- descriptors ------------------------------------------------------------------------------ */

/* The program may have closed it, and have another file there. */
static bool is_ours(int fd, uint64_t id)
{
	uint64_t is = 0;

	return ioctl(fd, PERF_EVENT_IOC_ID, &is) == 0 && is == id;
}

static void fd_keep(int fd, uint64_t id)
{
	for (uint32_t i = 0; i < FDS_MOST; i++) {
		int none = 0;

		if (!atomic_compare_exchange_strong(&counting.open[i].fd, &none, fd + 1))
			continue;
		atomic_store(&counting.open[i].id, id);
		return;
	}
}

static void fd_close(int fd, uint64_t id)
{
	for (uint32_t i = 0; i < FDS_MOST; i++) {
		int mine = fd + 1;

		if (atomic_load(&counting.open[i].id) == id &&
			atomic_compare_exchange_strong(&counting.open[i].fd, &mine, 0))
			break;
	}
	if (is_ours(fd, id))
		(void)close(fd);
	atomic_fetch_sub(&counting.fds, 1);
}

static uint32_t fds_most(void)
{
	struct rlimit r = {0};

	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur / 4 > FDS_MOST)
		return FDS_MOST;
	return (uint32_t)r.rlim_cur / 4;
}

static int high(int fd)
{
	const uint32_t half = 2 * atomic_load(&counting.most);
	const int to = fcntl(fd, F_DUPFD_CLOEXEC, half < FD_HIGH ? half : FD_HIGH);

	if (to < 0)
		return fd;
	(void)close(fd);
	return to;
}

/* group: the first one's, or -1. -errno. */
static int counter_open(uint32_t kind, int group, uint64_t *ret_id)
{
	const struct cpu_counter_row *row = cpu_counter(kind);
	struct perf_event_attr a = {.type = row->type,
		.size = sizeof(a),
		.config = row->config,
		.read_format = FORMAT,
		.disabled = group < 0, /* or those that come to it would not count yet */
		.exclude_kernel = !row->kernel,
		.exclude_hv = 1};
	int fd;

	if (atomic_fetch_add(&counting.fds, 1) >= atomic_load(&counting.most)) {
		atomic_fetch_sub(&counting.fds, 1);
		return -EMFILE;
	}
	fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_ID, ret_id) != 0) {
		const int e = errno;

		if (fd >= 0)
			(void)close(fd);
		atomic_fetch_sub(&counting.fds, 1);
		return -e;
	}
	fd = high(fd);
	fd_keep(fd, *ret_id);
	return fd;
}

/* --- what is said ----------------------------------------------------------------------------- */

static int32_t paranoid(void)
{
	const int e = errno, fd = open(PARANOID, O_RDONLY | O_CLOEXEC);
	char text[16] = "";
	const ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		(void)close(fd);
	errno = e;
	return got > 0 ? (int32_t)strtol(text, NULL, 10) : NO_PARANOID;
}

/* Once each time that the switch goes on, whichever thread comes first. */
static bool is_told(enum counters_what what)
{
	const uint32_t epoch = atomic_load(&counting.epoch);

	return atomic_exchange(&counting.told[what], epoch) == epoch;
}

static void tell(struct lane *l, enum counters_what what, uint32_t kinds, int code)
{
	const struct rec_counters r = {.hdr = REC_HDR(sizeof(r), REC_COUNTERS, 0, what, kinds),
		.clock = agent_clock_inline(),
		.code = code,
		.paranoid = paranoid()};

	(void)lane_put(l, &r, sizeof(r));
}

/* Those that a thread did not get, by why. */
static void tell_refused(struct lane *l, const uint8_t *kind, const int *code, uint32_t n)
{
	uint32_t kinds, done = 0;

	for (uint32_t i = 0; i < n; i++) {
		kinds = 0;
		for (uint32_t j = i; j < n; j++)
			kinds |= code[j] == code[i] ? 1u << kind[j] : 0;
		if ((done & kinds) == 0)
			tell(l, COUNTERS_REFUSED, kinds, code[i]);
		done |= kinds;
	}
}

/* --- a thread's ------------------------------------------------------------------------------- */

static void counted_unmap(struct counted *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		if (c->page[i] != NULL)
			(void)munmap((void *)(uintptr_t)c->page[i], RING_PAGE);
		c->page[i] = NULL;
	}
}

static void counted_close(struct counted *c)
{
	counted_unmap(c);
	while (c->n > 0) {
		c->n--;
		fd_close(c->fd[c->n], c->id[c->n]);
	}
}

static void counted_free(struct counted *c)
{
	counted_close(c);
	(void)munmap(c, sizeof(*c));
}

/* All of them, or it is read(). */
static void counted_map(struct counted *c)
{
	void *p;

#if defined(__x86_64__)
	c->direct = c->n > 0;
#endif
	for (uint32_t i = 0; i < c->n && c->direct; i++) {
		p = mmap(NULL, RING_PAGE, PROT_READ, MAP_SHARED, c->fd[i], 0);
		c->page[i] = p != MAP_FAILED ? p : NULL;
		c->direct = c->page[i] != NULL && c->page[i]->cap_user_rdpmc;
	}
	if (!c->direct)
		counted_unmap(c);
}

/* Which ones are asked for. */
static uint32_t kinds_wanted(struct lane *l, uint8_t ret[COUNTERS_AT_ONCE])
{
	const char *words = agent_env("PROTOND_COUNTERS");
	const bool any = words != NULL && *words != '\0';
	const uint32_t n = any ? counters_read(words, ret) : 0;

	if (n != 0)
		return n;
	if (any && !is_told(COUNTERS_WORDS))
		tell(l, COUNTERS_WORDS, 0, 0);
	return counters_read(COUNTERS_DEFAULT, ret);
}

static void counted_add(struct counted *c, uint8_t kind, int fd)
{
	const char *metric = cpu_counter(kind)->metric;

	c->name[c->n] = agent_name(metric, strlen(metric));
	c->fd[c->n++] = fd;
}

/* A thread has all that there are, or none. */
static void counted_open(struct counted *c, struct lane *l)
{
	uint8_t kind[COUNTERS_AT_ONCE], refused[COUNTERS_AT_ONCE];
	const uint32_t n = kinds_wanted(l, kind);
	int code[COUNTERS_AT_ONCE], fd = 0;
	uint32_t lost = 0;

	for (uint32_t i = 0; i < n && fd != -EMFILE && fd != -ENFILE; i++) {
		fd = counter_open(kind[i], c->n > 0 ? c->fd[0] : -1, &c->id[c->n]);
		if (fd >= 0) {
			counted_add(c, kind[i], fd);
		} else {
			code[lost] = -fd;
			refused[lost++] = kind[i];
		}
	}
	if (fd == -EMFILE || fd == -ENFILE) {
		counted_close(c);
		if (!is_told(COUNTERS_LIMIT))
			tell(l, COUNTERS_LIMIT, 0, -fd);
	} else if (lost > 0 && !is_told(COUNTERS_REFUSED)) {
		tell_refused(l, refused, code, lost);
	}
	counted_map(c);
	if (c->n > 0 && ioctl(c->fd[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP) != 0)
		counted_close(c);
}

/* --- reading ---------------------------------------------------------------------------------- */

#if defined(__x86_64__)
static inline uint64_t pmc_read(uint32_t pmc)
{
	return (uint64_t)__builtin_ia32_rdpmc((int)pmc);
}
#endif

static inline bool read_direct(const struct counted *c, struct counter_reading *ret)
{
#if defined(__x86_64__)
	for (uint32_t i = 0; i < c->n; i++)
		if (!counter_page_read(c->page[i], pmc_read, agent_tsc, &ret[i]))
			return false;
	return true;
#else
	(void)c;
	(void)ret;
	return false;
#endif
}

static bool read_group(const struct counted *c, struct counter_reading *ret)
{
	const size_t bytes = (3 + 2 * (size_t)c->n) * sizeof(uint64_t);
	struct group_values v;

	if (read(c->fd[0], &v, sizeof(v)) != (ssize_t)bytes || v.n != c->n ||
		v.of[0].id != c->id[0])
		return false;
	for (uint32_t i = 0; i < c->n; i++)
		ret[i] = (struct counter_reading){v.of[i].value, v.enabled, v.running};
	return true;
}

static bool counted_read(const struct counted *c, struct counter_reading *ret)
{
	return (c->direct && read_direct(c, ret)) || read_group(c, ret);
}

/* Of scopes that were entered or left unseen (in a signal handler, by a jump) nothing is known. */
static void level(struct counted *c, uint32_t depth)
{
	for (uint32_t i = c->open; i < depth; i++) {
		memset(c->self[i], 0, sizeof(c->self[i]));
		c->scaled[i] = 0;
	}
	c->open = depth;
}

/* What came since the last reading is the innermost scope's. */
static bool take(struct counted *c)
{
	struct counter_reading now[COUNTERS_AT_ONCE];
	uint64_t since;
	bool scaled;

	if (!counted_read(c, now))
		return false;
	for (uint32_t i = 0; i < c->n; i++) {
		const bool any = counter_since(&c->last[i], &now[i], &since, &scaled);

		if (c->open != 0) {
			c->self[c->open - 1][i] += any ? since : 0;
			c->scaled[c->open - 1] |= (uint8_t)(scaled << i);
		}
		if (any)
			c->last[i] = now[i];
	}
	return true;
}

static void gone(struct counted *c, struct lane *l)
{
	l->counted = NULL; /* until the switch goes on again */
	if (!is_told(COUNTERS_GONE))
		tell(l, COUNTERS_GONE, 0, 0);
	counted_free(c);
}

/* The thread's first scope since the switch went on, or since the lane is its. */
__attribute__((cold, noinline)) static struct counted *renew(
	const struct pd_thread *t, struct lane *l, uint32_t epoch)
{
	struct counted *c = l->counted;

	if (c != NULL)
		counted_free(c);
	l->counted = NULL;
	l->counted_epoch = epoch;
	l->counted_tid = t->tid;
	c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c == MAP_FAILED)
		return NULL;
	counted_open(c, l);
	if (c->n == 0 || !counted_read(c, c->last)) {
		counted_free(c);
		return NULL;
	}
	l->counted = c;
	return c;
}

static inline struct counted *of_thread(const struct pd_thread *t, struct lane *l)
{
	const uint32_t epoch = atomic_load_explicit(&counting.epoch, memory_order_relaxed);

	if (likely(l->counted_epoch == epoch && l->counted_tid == t->tid))
		return l->counted;
	return renew(t, l, epoch);
}

/* --- scopes ----------------------------------------------------------------------------------- */

void counters_enter(const struct pd_thread *t, struct lane *l)
{
	struct counted *c = of_thread(t, l);

	if (c == NULL)
		return;
	level(c, t->depth < STACK_MAX ? t->depth : STACK_MAX);
	if (!take(c))
		gone(c, l);
	else
		level(c, c->open + 1);
}

static void put(struct lane *l, const struct counted *c, uint32_t at, uint32_t path)
{
	struct rec_metric r = {.clock = agent_clock_inline()};

	for (uint32_t i = 0; i < c->n; i++) {
		const uint32_t scaled = (c->scaled[at] >> i & 1) != 0 ? METRIC_SCALED : 0;

		r.hdr = REC_HDR(
			sizeof(r), REC_METRIC, 0, METRIC_U64 | METRIC_COUNTED | scaled, path);
		r.name = c->name[i];
		r.value = c->self[at][i];
		if (likely(l->tail + sizeof(r) <= l->limit) || !sums_metric(l, &r))
			(void)lane_put(l, &r, sizeof(r));
	}
}

void counters_exit(const struct pd_thread *t, struct lane *l)
{
	struct counted *c = of_thread(t, l);
	const uint32_t depth = t->depth;

	if (c == NULL || depth == 0 || depth > STACK_MAX)
		return;
	level(c, depth);
	if (!take(c)) {
		gone(c, l);
		return;
	}
	put(l, c, depth - 1, t->frame[depth - 1].path);
	c->open = depth - 1;
}

void counters_end(struct lane *l)
{
	const int e = errno;

	if (l->counted != NULL)
		counted_free(l->counted);
	l->counted = NULL;
	l->counted_epoch = 0;
	errno = e;
}

/* --- the switch ------------------------------------------------------------------------------- */

/* A thread that stops has its counters until it ends, and the kernel nothing to do for them. */
static void disable_all(void)
{
	for (uint32_t i = 0; i < FDS_MOST; i++) {
		const int fd = atomic_load(&counting.open[i].fd) - 1;

		if (fd >= 0 && is_ours(fd, atomic_load(&counting.open[i].id)))
			(void)ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	}
}

void counters_want(bool on)
{
	if (on == counting.on)
		return;
	counting.on = on;
	if (on) {
		atomic_store(&counting.most, fds_most());
		atomic_fetch_add(&counting.epoch, 1);
	} else {
		disable_all();
	}
}

void counters_forked(void)
{
	const int e = errno;

	if (atomic_load(&counting.epoch) == 0)
		return;
	for (uint32_t i = 0; i < FDS_MOST; i++) {
		const int fd = atomic_load(&counting.open[i].fd) - 1;

		if (fd >= 0 && is_ours(fd, atomic_load(&counting.open[i].id)))
			(void)close(fd);
	}
	memset(&counting, 0, sizeof(counting));
	errno = e;
}
