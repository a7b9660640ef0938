/* SPDX-License-Identifier: MIT. job_counters.c: tests of counters in scopes. The kernel is made here: perf_event_open(),
 * what reads a counter, and its page. The CPU's own instruction, rdpmc, is not run. */
#include "job_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "counter_page.h"
#include "counter_terms.h"

#define SCOPE_A 2u
#define SCOPE_B 3u

/* --- a kernel --- */

#define MADE 4096u
static struct made {
	uint64_t ino;
	uint32_t type, kind;
	bool on; /* of the first one of a thread's: all of them */
	struct perf_event_mmap_page *page;
} made[MADE];
static uint32_t n_made, n_reads;
static int refuse[8]; /* errno, by config, of hardware counters; 0: given */
static bool direct;
static uint64_t step = 1; /* of each counter, each time that one is read; times its config + 1 */
static uint64_t now_value, enabled, running, enabled_step = 100, running_step = 100;
static const char *words;

const char *agent_env(const char *name)
{
	return strcmp(name, "PROTOND_COUNTERS") == 0 ? words : NULL;
}

static long raw(long n, const long a[6])
{
	/* All read before: a sanitizer's call would take the registers. */
	const long x = a[0], y = a[1], z = a[2], d = a[3], e = a[4], f = a[5];
	long r;
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(n), "D"(x), "S"(y), "d"(z), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
#else
#error "this test makes system calls of its own"
#endif
	if (r < 0 && r > -4096) {
		errno = (int)-r;
		return -1;
	}
	return r;
}

static struct made *made_of(int fd)
{
	struct stat st;

	for (uint32_t i = 0; fstat(fd, &st) == 0 && i < n_made; i++)
		if (made[i].ino == st.st_ino)
			return &made[i];
	return NULL;
}

static long make(const struct perf_event_attr *a, int group)
{
	struct made *m = &made[n_made];
	struct stat st;
	int fd;

	ck_assert_uint_eq(a->exclude_hv, 1);
	ck_assert_uint_eq(a->disabled, group < 0);
	if (a->type == PERF_TYPE_HARDWARE && refuse[a->config] != 0) {
		errno = refuse[a->config];
		return -1;
	}
	ck_assert_uint_lt(n_made, MADE);
	fd = memfd_create("counter", MFD_CLOEXEC);
	ck_assert_int_eq(ftruncate(fd, RING_PAGE), 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	m->page = mmap(NULL, RING_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert(m->page != MAP_FAILED);
	m->page->cap_user_rdpmc = direct;
	m->page->offset = (int64_t)(now_value * (a->config + 1));
	m->page->time_enabled = enabled;
	m->page->time_running = running;
	m->ino = st.st_ino;
	m->type = a->type;
	m->kind = (uint32_t)a->config;
	m->on = a->disabled == 0;
	n_made++;
	return fd;
}

long syscall(long n, ...);
long syscall(long n, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, n);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (n == SYS_perf_event_open)
		return make((const struct perf_event_attr *)a[0], (int)a[3]);
	return raw(n, a);
}

int ioctl(int fd, unsigned long what, ...)
{
	struct made *m = made_of(fd);
	uint64_t *id;
	va_list ap;

	va_start(ap, what);
	id = va_arg(ap, uint64_t *);
	va_end(ap);
	if (m == NULL) {
		errno = ENOTTY;
		return -1;
	}
	if (what == PERF_EVENT_IOC_ID)
		*id = m->ino;
	else
		m->on = what == PERF_EVENT_IOC_ENABLE && (uintptr_t)id == PERF_IOC_FLAG_GROUP;
	return 0;
}

/* All of a thread's counters are asked for at once, and its pages say the same. */
static void move_on(void)
{
	now_value += step;
	enabled += enabled_step;
	running += running_step;
	for (uint32_t i = 0; i < n_made; i++) {
		made[i].page->offset = (int64_t)(now_value * (made[i].kind + 1));
		made[i].page->time_enabled = enabled;
		made[i].page->time_running = running;
	}
}

/* Those of one thread were made one after the other. */
ssize_t read(int fd, void *buf, size_t n)
{
	struct made *first = made_of(fd), *m = first;
	uint64_t v[3 + 2 * COUNTERS_AT_ONCE] = {0, enabled, running};
	const long a[6] = {fd, (long)buf, (long)n};

	if (m == NULL)
		return raw(SYS_read, a);
	n_reads++;
	ck_assert(first->on);
	for (; m < made + n_made && v[0] < COUNTERS_AT_ONCE; m++, v[0]++) {
		if (v[0] > 0 && m->kind == first->kind) /* the next thread's */
			break;
		v[3 + 2 * v[0]] = now_value * (m->kind + 1);
		v[4 + 2 * v[0]] = m->ino;
	}
	memcpy(buf, v, (3 + 2 * v[0]) * sizeof(v[0]));
	return (ssize_t)((3 + 2 * v[0]) * sizeof(v[0]));
}

/* --- what came of it --- */

static struct got {
	uint64_t a, b, scaled, metrics, said[COUNTERS_WHAT_MAX];
	uint32_t kinds, sums;
	int32_t code;
} got;

/* Of instructions, in scopes whose path ends in a or b. */
static void got_fn(void *arg, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	const struct rec_metric *m = (const void *)rec;
	const struct rec_counters *c = (const void *)rec;
	const char *path;

	(void)arg;
	(void)lane;
	if (REC_TYPE(*rec) == REC_COUNTERS) {
		got.said[REC_FLAGS(*rec)]++;
		got.kinds |= REC_ID(*rec);
		got.code = c->code;
	}
	if (REC_TYPE(*rec) != REC_METRIC)
		return;
	ck_assert_uint_eq(REC_FLAGS(*rec) & (uint8_t)~METRIC_SCALED, METRIC_U64 | METRIC_COUNTED);
	got.metrics++;
	if (strcmp(view_name(v, m->name), "instructions") != 0)
		return;
	path = view_where(v, REC_ID(*rec));
	got.scaled += (REC_FLAGS(*rec) & METRIC_SCALED) != 0;
	*(path[strlen(path) - 1] == 'a' ? &got.a : &got.b) += m->value;
}

static struct got *walk(void)
{
	memset(&got, 0, sizeof(got));
	(void)view_walk(&t_v, got_fn, NULL);
	return &got;
}

static void begin(const struct engine_open *o, bool control)
{
	(void)snprintf(t_names[SCOPE_A], sizeof(t_names[0]), "a");
	(void)snprintf(t_names[SCOPE_B], sizeof(t_names[0]), "b");
	atomic_store(&t_count, 16);
	t_open(o, control);
}

static void count(bool on)
{
	ck_assert_int_eq(t_e->want(WANT_ALL | (on ? (uint32_t)WANT_COUNTERS : 0)), 0);
}

static void enter(uint32_t name)
{
	move_on();
	t_enter(name);
}

static void leave(void)
{
	move_on();
	t_exit();
}

static void scope(uint32_t name)
{
	enter(name);
	leave();
}

static uint32_t fds(void)
{
	uint32_t n = 0;

	for (int i = 0; i < 4096; i++)
		n += made_of(i) != NULL;
	return n;
}

/* --- scopes --- */

/* What came inside of b is b's, and instructions go up by 2 each time. */
static void nested(void)
{
	enter(SCOPE_A);
	enter(SCOPE_B);
	scope(SCOPE_A);
	leave();
	scope(SCOPE_B);
	leave();
}

START_TEST(of_the_scope_itself)
{
	const struct got *g;

	direct = _i == 1;
	begin(NULL, false);
	count(true);
	nested();
	g = walk();
	ck_assert_uint_eq(g->metrics, 4 * 4); /* scopes, counters */
	ck_assert_uint_eq(g->a, 2 * (3 + 1));
	ck_assert_uint_eq(g->b, 2 * (2 + 1));
	ck_assert_uint_eq(g->scaled, 0);
	ck_assert_uint_eq(t_v.n[REC_SCOPE], 4);
	ck_assert_uint_eq(fds(), 4);
	ck_assert_int_eq(n_reads == 0, direct);
	ck_assert(made[0].on && made[1].on);
	ck_assert_uint_eq(made[0].type, PERF_TYPE_HARDWARE);
	ck_assert_uint_eq(made[0].kind, PERF_COUNT_HW_INSTRUCTIONS);
}
END_TEST

START_TEST(a_switch)
{
	begin(NULL, false);
	count(false);
	scope(SCOPE_A);
	enter(SCOPE_B);
	ck_assert_uint_eq(n_made, 0);
	count(true); /* b is counted from the next scope on */
	move_on();
	scope(SCOPE_A);
	leave();
	ck_assert_uint_eq(walk()->a, 2);
	ck_assert_uint_eq(got.b, 2);
	enter(SCOPE_B);
	count(false);
	scope(SCOPE_A);
	leave();
	ck_assert_uint_eq(walk()->metrics, 0);
	ck_assert_uint_eq(t_v.n[REC_SCOPE], 5);
	enter(SCOPE_A);
	count(true); /* and not with what came before */
	leave();
	scope(SCOPE_B);
	ck_assert_uint_eq(walk()->a, 0);
	ck_assert_uint_eq(got.b, 2);
	ck_assert_uint_eq(fds(), 4);
}
END_TEST

static void jumped(void)
{
	enter(SCOPE_A);
	for (int i = 0; i < 3; i++)
		enter(SCOPE_B);
	t_e->scope_unwind(t_thread(), 1);
	leave();
}

static void deep(void)
{
	for (uint32_t i = 0; i < STACK_MAX + 10; i++)
		enter(SCOPE_B);
	for (uint32_t i = 0; i < STACK_MAX + 10; i++)
		leave();
}

/* All of its counts are somewhere, and its descriptors closed. */
START_TEST(a_thread)
{
	begin(NULL, false);
	count(true);
	t_run(jumped);
	ck_assert_uint_eq(walk()->b, 2 * 2);
	ck_assert_uint_eq(got.a, 2 * 2);
	ck_assert_uint_eq(fds(), 0);
	t_run(deep);
	ck_assert_uint_eq(walk()->b, 2 * (2 * (STACK_MAX + 10) - 1));
	ck_assert_uint_eq(fds(), 0);
}
END_TEST

/* Half of the time on the CPU: twice as much. None of it: told with the next that had some. */
START_TEST(shared_with_others)
{
	begin(NULL, false);
	direct = _i == 1;
	count(true);
	enter(SCOPE_A);
	running_step = 50;
	leave();
	ck_assert_uint_eq(walk()->a, 4);
	ck_assert_uint_eq(got.scaled, 1);
	enter(SCOPE_A);
	step = running_step = 0;
	leave();
	ck_assert_uint_eq(walk()->a, 0);
	ck_assert_uint_eq(got.scaled, 1);
	step = 1;
	running_step = 100;
	enter(SCOPE_A);
	leave();
	ck_assert_uint_eq(walk()->a, 2);
}
END_TEST

/* --- what is not to be had --- */

START_TEST(refused)
{
	begin(NULL, false);
	refuse[PERF_COUNT_HW_CACHE_MISSES] = ENOENT;
	refuse[PERF_COUNT_HW_BRANCH_MISSES] = ENOENT;
	count(true);
	scope(SCOPE_A);
	scope(SCOPE_A);
	ck_assert_uint_eq(walk()->metrics, 4); /* the others are */
	ck_assert_uint_eq(got.said[COUNTERS_REFUSED], 1);
	ck_assert_uint_eq(got.kinds, 1u << COUNTER_CACHE_MISSES | 1u << COUNTER_BRANCH_MISSES);
	ck_assert_int_eq(got.code, ENOENT);
	refuse[PERF_COUNT_HW_INSTRUCTIONS] = refuse[PERF_COUNT_HW_CPU_CYCLES] = EACCES;
	count(false);
	count(true);
	scope(SCOPE_A);
	scope(SCOPE_A);
	ck_assert_uint_eq(walk()->metrics, 0);
	ck_assert_uint_eq(got.said[COUNTERS_REFUSED], 2); /* one for each reason */
	ck_assert_uint_eq(fds(), 0);
	ck_assert_uint_eq(t_v.n[REC_SCOPE], 4);
}
END_TEST

START_TEST(too_many)
{
	const struct rlimit few = {24, 24};

	begin(NULL, false);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	count(true); /* 6 */
	scope(SCOPE_A);
	t_run(nested);
	t_run(nested);
	ck_assert_uint_eq(walk()->metrics, 4);
	ck_assert_uint_eq(got.said[COUNTERS_LIMIT], 1);
	ck_assert_uint_eq(fds(), 4);
}
END_TEST

START_TEST(named)
{
	begin(NULL, false);
	words = _i == 0 ? "cycles,instructions,cycles" : "instructions,horses";
	count(true);
	scope(SCOPE_A);
	ck_assert_uint_eq(walk()->metrics, _i == 0 ? 2 : 4);
	ck_assert_int_eq((int)got.said[COUNTERS_WORDS], _i);
	ck_assert_uint_eq(got.a, 2);
}
END_TEST

/* The program closes what it does not know, and has a file of its own there: that one is not touched. */
START_TEST(closed_by_the_program)
{
	int own[2], fd = 4095;

	begin(NULL, false);
	count(true);
	enter(SCOPE_A);
	while (made_of(fd) == NULL || made_of(fd)->kind != PERF_COUNT_HW_INSTRUCTIONS)
		fd--;
	ck_assert_int_eq(pipe(own), 0);
	ck_assert_int_eq(write(own[1], "x", 1), 1);
	ck_assert_int_eq(dup2(own[1], fd), fd); /* one that cannot be read */
	leave();
	scope(SCOPE_B);
	ck_assert_uint_eq(walk()->metrics, 0);
	ck_assert_uint_eq(got.said[COUNTERS_GONE], 1);
	ck_assert_int_eq(write(fd, "y", 1), 1); /* it is still open */
	ck_assert_uint_eq(fds(), 0);
	count(false);
	count(true);
	scope(SCOPE_B);
	ck_assert_uint_eq(walk()->metrics, 4);
}
END_TEST

/* It has none of its parent's, and all that the program put where one was. */
START_TEST(a_forked_child)
{
	int status, own[2], fd = 4095;
	pid_t pid;

	begin(NULL, false);
	count(true);
	scope(SCOPE_A);
	ck_assert_uint_eq(fds(), 4);
	while (made_of(fd) == NULL || made_of(fd)->kind != PERF_COUNT_HW_CPU_CYCLES)
		fd--;
	ck_assert_int_eq(pipe(own), 0);
	ck_assert_int_eq(dup2(own[1], fd), fd);
	pid = fork();
	if (pid == 0)
		_exit((int)fds() + (write(fd, "x", 1) == 1 ? 0 : 100));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(fds(), 3);
	count(false);
	ck_assert_int_eq(write(fd, "x", 1), 1);
}
END_TEST

/* --- where there is no room for records --- */

static struct {
	uint64_t value, n;
} sums;

static void total(const uint64_t *rec)
{
	const struct rec_total *r = (const void *)rec;

	if (REC_TYPE(*rec) != REC_TOTAL || strcmp(view_name(&t_v, r->name), "instructions") != 0)
		return;
	ck_assert_uint_eq(REC_FLAGS(*rec), METRIC_U64 | METRIC_COUNTED);
	sums.value += r->sum;
	sums.n += r->count;
}

static void all_fn(void *arg, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	got_fn(arg, v, lane, rec);
	total(rec);
}

/* Sums that are open stand behind a lane's tail. */
static void open_sums(void)
{
	for (uint32_t i = 0; i < t_v.h->n_lanes; i++) {
		const struct ring_lane *l = view_lane(&t_v, i);
		const unsigned char *data = t_v.p + t_v.at.data + (uint64_t)i * t_v.h->lane_bytes;

		for (uint64_t at = l->tail; at < l->sums;) {
			const uint64_t *rec = (const void *)(data + at % t_v.h->lane_bytes);

			total(rec);
			at += REC_BYTES(*rec) != 0 ? REC_BYTES(*rec) : REC_ID(*rec);
		}
	}
}

START_TEST(summed)
{
	const struct engine_open small = {.n_lanes = 4, .lane_bytes = RING_LANE_BYTES_MIN};

	t_abi = RING_ABI_MAJOR | RING_ABI_SUMS;
	begin(&small, true);
	count(true);
	for (int i = 0; i < 5000; i++)
		scope(SCOPE_A);
	memset(&got, 0, sizeof(got));
	(void)view_walk(&t_v, all_fn, NULL);
	open_sums();
	ck_assert_uint_gt(sums.n, 1000);
	ck_assert_uint_eq(got.a + sums.value, 2 * 5000);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
}
END_TEST

/* --- a page --- */

static const struct page_case {
	const char *label;
	struct perf_event_mmap_page page;
	uint64_t pmc, tsc;
	bool ok;
	struct counter_reading want;
} page_cases[] = {
	{"on the CPU", {.cap_user_rdpmc = 1, .index = 3, .pmc_width = 48, .offset = 1000}, 234, 0,
		true, {1234, 0, 0}},
	{"its sign", {.cap_user_rdpmc = 1, .index = 3, .pmc_width = 48, .offset = 1000},
		0xffffffffffffull - 99, 0, true, {900, 0, 0}},
	{"what is above its width", {.cap_user_rdpmc = 1, .index = 3, .pmc_width = 32, .offset = 7},
		0xabcd00000001ull, 0, true, {8, 0, 0}},
	{"64 bits", {.cap_user_rdpmc = 1, .index = 3, .pmc_width = 64}, 1ull << 63, 0, true,
		{1ull << 63, 0, 0}},
	{"on no CPU", {.cap_user_rdpmc = 1, .offset = 77, .time_enabled = 9, .time_running = 5}, 1,
		0, true, {77, 9, 5}},
	{"not allowed", {.index = 3, .pmc_width = 48}, 0, 0, false, {0}},
	{"no width", {.cap_user_rdpmc = 1, .index = 3}, 0, 0, false, {0}},
	{"too wide", {.cap_user_rdpmc = 1, .index = 3, .pmc_width = 65}, 0, 0, false, {0}},
	{"times go on: 10 ns + 300 cycles of half a ns",
		{.cap_user_rdpmc = 1,
			.cap_user_time = 1,
			.index = 3,
			.pmc_width = 48,
			.time_enabled = 1000,
			.time_running = 400,
			.time_offset = 10,
			.time_mult = 1u << 9,
			.time_shift = 10},
		5, 300, true, {5, 1160, 560}},
	{"not that of running",
		{.cap_user_rdpmc = 1,
			.cap_user_time = 1,
			.time_enabled = 1000,
			.time_running = 400,
			.time_mult = 1,
			.time_shift = 0},
		0, 50, true, {0, 1050, 400}},
	{"a clock of 32 bits",
		{.cap_user_rdpmc = 1,
			.cap_user_time = 1,
			.cap_user_time_short = 1,
			.time_enabled = 1000,
			.time_running = 400,
			.time_mult = 1,
			.time_cycles = (5ull << 32) + 10,
			.time_mask = UINT32_MAX,
			.time_offset = 0 - (5ull << 32)},
		0, 30, true, {0, 1030, 400}},
};

static struct perf_event_mmap_page page;
static uint64_t pmc, tsc;
static uint32_t changes, asked; /* changes: times that it moves while it is read */

static uint64_t page_pmc(uint32_t index)
{
	ck_assert_uint_eq(index, 2);
	asked++;
	if (changes == 0)
		return pmc;
	changes--;
	page.lock += 1 + changes % 2;
	page.offset += 1000;
	return 12345;
}

static uint64_t page_tsc(void)
{
	return tsc;
}

START_TEST(a_page)
{
	const struct page_case *c = &page_cases[_i];
	struct counter_reading r = {0};

	page = c->page;
	pmc = c->pmc;
	tsc = c->tsc;
	ck_assert_msg(counter_page_read(&page, page_pmc, page_tsc, &r) == c->ok, "%s", c->label);
	ck_assert_msg(memcmp(&r, &c->want, sizeof(r)) == 0, "%s: %lu, %lu of %lu", c->label,
		r.value, r.running, r.enabled);
}
END_TEST

/* It is read again, and of one that never stands still the kernel is asked. */
START_TEST(a_page_that_moves)
{
	struct counter_reading r = {0};

	page = page_cases[0].page;
	pmc = 5;
	changes = 3;
	ck_assert(counter_page_read(&page, page_pmc, page_tsc, &r));
	ck_assert_uint_eq(asked, 4);
	ck_assert_uint_eq(r.value, 4005);
	changes = UINT32_MAX;
	ck_assert(!counter_page_read(&page, page_pmc, page_tsc, &r));
}
END_TEST

static const struct since_case {
	struct counter_reading was, now;
	uint64_t want;
	bool ok, scaled;
} since_cases[] = {
	{{10, 5, 5}, {15, 9, 9}, 5, true, false},
	{{10, 5, 5}, {15, 9, 7}, 10, true, true},
	{{10, 5, 5}, {15, 9, 5}, 0, false, true},
	{{10, 5, 5}, {15, 5, 5}, 5, true, false},
	{{10, 5, 5}, {9, 9, 9}, 0, true, false}, /* no number falls */
	{{0, 0, 0}, {UINT64_MAX, UINT64_MAX, 1}, INT64_MAX, true, true},
};

START_TEST(between_two_readings)
{
	const struct since_case *c = &since_cases[_i];
	uint64_t since = 0;
	bool scaled;

	ck_assert(counter_since(&c->was, &c->now, &since, &scaled) == c->ok);
	ck_assert(!c->ok || since == c->want);
	ck_assert(scaled == c->scaled);
}
END_TEST

START_TEST(words_of_counters)
{
	static const char *const bad[] = {"", "instruction", "instructions,", ",cycles",
		"instructions cycles", "task_clock (ns)",
		"instructions,cycles,cache_references,cache_misses,branches,branch_misses,"
		"task_clock,page_faults,major_faults"};
	uint8_t kind[COUNTERS_AT_ONCE];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(counters_read(bad[i], kind) == 0, "%s", bad[i]);
	ck_assert_uint_eq(counters_read("task_clock,page_faults,task_clock", kind), 2);
	ck_assert_uint_eq(kind[0], COUNTER_TASK_CLOCK);
	ck_assert_uint_eq(counters_read(COUNTERS_DEFAULT, kind), 4);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("counters");
	TCase *c = tcase_create("counters");

#define N(cases) (int)(sizeof(cases) / sizeof((cases)[0]))
	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, of_the_scope_itself, 0, 2);
	tcase_add_test(c, a_switch);
	tcase_add_test(c, a_thread);
	tcase_add_loop_test(c, shared_with_others, 0, 2);
	tcase_add_test(c, refused);
	tcase_add_test(c, too_many);
	tcase_add_loop_test(c, named, 0, 2);
	tcase_add_test(c, closed_by_the_program);
	tcase_add_test(c, a_forked_child);
	tcase_add_test(c, summed);
	tcase_add_loop_test(c, a_page, 0, N(page_cases));
	tcase_add_test(c, a_page_that_moves);
	tcase_add_loop_test(c, between_two_readings, 0, N(since_cases));
	tcase_add_test(c, words_of_counters);
	suite_add_tcase(s, c);
	return s;
}
