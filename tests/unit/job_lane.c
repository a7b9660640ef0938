/* SPDX-License-Identifier: MIT. job_lane.c: tests of lanes: wrap, losses, hand-over, full tmpfs,
 * and that nothing is lost uncounted. */
#include "lane_world.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "keep.h"

/* A number below 3 that another thread's dup2() took from us since is not ours to close. */
START_TEST(low_descriptors)
{
	int pipes[2], fd;

	ck_assert_int_eq(pipe(pipes), 0);
	(void)close(0);
	ck_assert_int_eq(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
	fd = fd_keep(0);
	ck_assert_int_ge(fd, 3);
	ck_assert_int_eq(fcntl(0, F_GETFD), -1);
	ck_assert_int_eq(dup2(pipes[0], 0), 0); /* no O_CLOEXEC: an application's */
	ck_assert_int_eq(fd_keep(0), -1);
	ck_assert_int_eq(errno, EBUSY);
	ck_assert_int_eq(fcntl(0, F_GETFD), 0);
	ck_assert_int_eq(fd_keep(fd), fd);
}
END_TEST

/* 64 KiB is no multiple of 24: every lap ends in a pad, or not, in turn; 300 laps pass the 8 bits
 * of the lap number. The reader checks each record's lap and place. */
START_TEST(wraps)
{
	uint64_t n = 0;

	ready(&small);
	while (n < 300 * 2730) {
		pairs(1000);
		n += 1000;
		(void)view_walk(&t_v, NULL, NULL);
	}
	balance(n);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
	ck_assert_uint_ge(t_v.n[REC_PAD], 190);
}
END_TEST

static const struct size_case {
	uint32_t bytes;
} sizes[] = {{8}, {24}, {32}, {64}, {104}, {2040}};

/* Each size at each 8-byte offset from the end of a lap. */
START_TEST(every_offset_at_the_wrap)
{
	const uint32_t bytes = sizes[_i].bytes;
	uint64_t rec[REC_BYTES_MAX / 8] = {0};
	uint64_t n = 0;

	ready(&small);
	for (uint32_t i = 0; i < 300; i++) {
		/* shift by one word, go once around */
		rec[0] = REC_HDR(8, REC_MAX - 1, 0, 0, 0);
		ck_assert(agent_put(rec, 8));
		for (uint32_t j = 0; j < small.lane_bytes / 2048; j++) {
			rec[0] = REC_HDR(bytes, REC_MAX - 1, 0, 0, j);
			ck_assert(agent_put(rec, bytes));
			n++;
			rec[0] = REC_HDR(2040, REC_MAX - 1, 0, 0, j);
			ck_assert(agent_put(rec, 2040));
			(void)view_walk(&t_v, NULL, NULL);
		}
	}
	ck_assert_uint_eq(t_v.n[REC_MAX - 1], 300 + 2 * n);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
}
END_TEST

static const struct engine_open two = {.n_lanes = 2, .lane_bytes = RING_LANE_BYTES_MIN};

START_TEST(full_lane_drops_and_tells)
{
	const uint64_t n = 5000;

	ready(&two); /* one is the agent's: there is no further one */
	pairs(n);
	ck_assert_uint_gt(view_dropped(&t_v), 2000);
	balance(n);
	ck_assert_uint_eq(t_v.lost, 0); /* no room to tell yet */
	pairs(10);
	balance(n + 10);
	ck_assert_uint_eq(t_v.lost, view_dropped(&t_v));
	ck_assert_uint_eq(t_v.n[REC_LOST], 1);
	ck_assert_uint_eq(t_thread()->depth, 0);
}
END_TEST

START_TEST(without_a_daemon_one_lap_is_kept)
{
	A = t_new("a");
	t_open(&two, false);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	pairs(100000);
	balance(100000);
	ck_assert_uint_ge(t_v.n[REC_SCOPE], RING_LANE_BYTES_MIN / 24 - 8);
}
END_TEST

/* --- with a reader at the same time --- */

static _Atomic bool over;

static void *reader(void *p)
{
	while (!atomic_load(&over))
		(void)view_walk(&t_v, NULL, NULL);
	return p;
}

enum { EACH = 200000 };

static void many(void)
{
	pairs(EACH);
}

static struct ring_ctl *control(void)
{
	return (struct ring_ctl *)((uintptr_t)t_v.ctl - offsetof(struct ring_ctl, lane));
}

/* Not before a quarter's end, and once for each nap, however much comes; a session's record at
 * once. */
START_TEST(a_napping_daemon_is_woken)
{
	const struct session_options o = {.data = SESSION_TREE};

	ready(&small);
	ck_assert_uint_eq(t_v.h->abi, RING_ABI);
	pairs(2000); /* it does not nap */
	ck_assert_uint_eq(t_wakes, 0);
	for (uint32_t nap = 1; nap < 8; nap += 2) {
		(void)view_walk(&t_v, NULL, NULL);
		control()->nap = nap;
		pairs(300);
		ck_assert_uint_eq(t_wakes, nap / 2);
		pairs(1100); /* an end of a quarter is among them */
		ck_assert_uint_eq(t_wakes, nap / 2 + 1);
		pairs(3000); /* the lane is full */
		ck_assert_uint_eq(t_wakes, nap / 2 + 1);
	}
	(void)view_walk(&t_v, NULL, NULL);
	control()->nap = 9;
	ck_assert_int_eq(t_e->session(t_thread(), SESSION_START, 1, A, &o), 0);
	ck_assert_uint_eq(t_wakes, 5);
	(void)view_walk(&t_v, NULL, NULL);
	control()->nap = 0;
	pairs(2000);
	ck_assert_uint_eq(t_wakes, 5);
}
END_TEST

START_TEST(a_host_that_cannot_wake)
{
	t_host.bytes = HOST_BYTES_LEAST;
	ready(&small);
	ck_assert_uint_eq(t_v.h->abi & 0xffff, 0);
	control()->nap = 1;
	pairs(5000);
	ck_assert_uint_eq(t_wakes, 0);
}
END_TEST

START_TEST(conservation)
{
	pthread_t r, w[3];
	void (*fn)(void) = many;
	void *p;

	ready(&small);
	memcpy(&p, &fn, sizeof(p));
	ck_assert_int_eq(pthread_create(&r, NULL, reader, NULL), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_create(&w[i], NULL, t_run_main, p), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_join(w[i], NULL), 0);
	atomic_store(&over, true);
	ck_assert_int_eq(pthread_join(r, NULL), 0);
	balance(3 * EACH);
}
END_TEST

/* --- hand-over --- */

static void ten(void)
{
	pairs(10);
}

static uint32_t lanes_used(void)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < t_v.h->n_lanes; i++)
		used += view_lane(&t_v, i)->generation != 0;
	return used;
}

START_TEST(lanes_change_hands)
{
	ready(&small);
	for (int i = 0; i < 200; i++) {
		t_run(ten);
		if (i % 50 == 0)
			(void)view_walk(&t_v, NULL, NULL);
	}
	balance(2000);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
	ck_assert_uint_eq(t_v.n[REC_THREAD], 201); /* and the agent's */
	ck_assert_uint_eq(lanes_used(), 2);
}
END_TEST

#define EIGHTH (RING_LANE_BYTES_MIN / 24 / 8)

static void two_eighths(void)
{
	pairs(2 * EIGHTH);
}

static void five_eighths(void)
{
	pairs(5 * EIGHTH);
}

static void seven_eighths(void)
{
	pairs(7 * EIGHTH);
}

/* While the daemon is behind, threads that come and go spread over the lanes. */
START_TEST(a_half_full_lane_waits_for_the_daemon)
{
	ready(&small);
	for (uint32_t i = 1; i <= 4; i++) { /* nobody reads */
		t_run(five_eighths);
		ck_assert_uint_eq(lanes_used(), 1 + i);
	}
	balance(4ull * 5 * EIGHTH);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
	t_run(five_eighths);
	t_run(two_eighths); /* there is an emptier one than that which was left last */
	t_run(five_eighths);
	balance(4ull * 5 * EIGHTH + 12ull * EIGHTH);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
	ck_assert_uint_eq(lanes_used(), 5);
}
END_TEST

/* Where all lanes have had an owner. */
START_TEST(the_emptiest_lane_is_handed_over)
{
	const struct engine_open three = {.n_lanes = 3, .lane_bytes = RING_LANE_BYTES_MIN};

	ready(&three); /* one is the agent's */
	t_run(five_eighths);
	t_run(seven_eighths);
	t_run(two_eighths);
	balance(14ull * EIGHTH);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
}
END_TEST

#define FILLS (RING_LANE_BYTES_MIN / 24 - 3) /* THREAD before them, room for a mark behind */

static void fills(void)
{
	pairs(FILLS);
}

START_TEST(a_full_lane_is_not_handed_over)
{
	ready(&small);
	for (int i = 0; i < 5; i++)
		t_run(fills); /* nobody reads */
	balance(5ull * FILLS);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
	ck_assert_uint_eq(t_v.n[REC_THREAD], 6);
}
END_TEST

/* --- bursts --- */

enum { COUNTS = 9000 };
static uint64_t mark_at[COUNTS + 1]; /* clock of the mark behind so many counts */

/* Up to a mark of a lane, or behind the last, counts go up by one. */
static void marks_fn(void *arg, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	const struct rec_metric *m = (const void *)rec;
	uint64_t *next = (uint64_t *)arg + lane;

	(void)v;
	if (REC_TYPE(*rec) == REC_THREAD) {
		if (REC_IS_MARK(*rec))
			mark_at[*next] = rec[1];
		*next = UINT64_MAX;
	} else if (REC_TYPE(*rec) == REC_METRIC) {
		ck_assert(*next == UINT64_MAX || m->value == *next);
		*next = m->value + 1;
	}
}

/* The marks' clocks are in the order of what came before them. */
START_TEST(a_burst_goes_on_in_further_lanes)
{
	uint64_t next[8] = {0}, last = 0, n = 0;
	uint32_t number;

	ready(&small);
	number = t_new("number");
	t_enter(A);
	for (uint64_t i = 0; i < COUNTS; i++) {
		t_e->metric(t_thread(), number, METRIC_U64, i);
		if (i % 5000 == 4999)
			(void)view_walk(&t_v, marks_fn, next);
	}
	t_exit();
	(void)view_walk(&t_v, marks_fn, next);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
	ck_assert_uint_eq(t_v.n[REC_METRIC], COUNTS);
	for (uint64_t i = 0; i <= COUNTS; i++) {
		ck_assert(mark_at[i] == 0 || mark_at[i] > last);
		last = mark_at[i] != 0 ? mark_at[i] : last;
		n += mark_at[i] != 0;
	}
	ck_assert_uint_ge(n, COUNTS / (RING_LANE_BYTES_MIN / 32) - 1);
	ck_assert_uint_le(lanes_used(), 4);
}
END_TEST

static uint32_t lanes_that_are(uint32_t state, uint32_t *ret_most)
{
	uint32_t n = 0;

	*ret_most = UINT32_MAX;
	for (uint32_t i = 0; i < t_v.h->n_lanes; i++) {
		const struct ring_lane *l = view_lane(&t_v, i);

		if (l->state != state || l->tid != t_thread()->tid)
			continue;
		if (*ret_most == UINT32_MAX || l->moves > view_lane(&t_v, *ret_most)->moves)
			*ret_most = i;
		n++;
	}
	return n;
}

static void burst(void)
{
	const struct ring_lane *l;
	uint32_t at;

	t_enter(A);
	t_enter(A);
	pairs(2 * FILLS + 100);
	ck_assert_uint_eq(lanes_that_are(LANE_LIVE, &at), 1);
	l = view_lane(&t_v, at);
	ck_assert_uint_eq(l->moves, 2);
	ck_assert_uint_eq(l->now.depth, 2);
	ck_assert_str_eq(view_where(&t_v, l->now.path), "a/a");
	ck_assert_str_eq(view_where(&t_v, l->now.frame[0].path), "a");
	ck_assert_uint_gt(l->now.frame[0].begin, 0);
	ck_assert_uint_eq(lanes_that_are(LANE_LEFT, &at), 2);
	t_exit();
	t_exit();
}

/* What the thread is in goes with it; when it ends, none of its lanes is its any more. */
START_TEST(a_burst_takes_the_now_block_along)
{
	ready(&small);
	t_run(burst);
	balance(2ull * FILLS + 102);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
	for (uint32_t i = 0; i < t_v.h->n_lanes; i++)
		ck_assert(view_lane(&t_v, i)->state != LANE_LEFT &&
			  (view_lane(&t_v, i)->state != LANE_LIVE ||
				  view_lane(&t_v, i)->now.depth == 0));
}
END_TEST

/* It takes its share, and leaves a quarter to threads that are yet to come. */
START_TEST(a_burst_has_a_share)
{
	const struct engine_open many_lanes = {.n_lanes = 64, .lane_bytes = RING_LANE_BYTES_MIN};
	uint64_t dropped;

	ready(&many_lanes);
	pairs(100ull * FILLS);
	dropped = view_dropped(&t_v);
	ck_assert_uint_le(lanes_used(), 2 + 64 / 8 + 1);
	ck_assert_uint_ge(lanes_used(), 64 / 8);
	ck_assert_uint_lt(dropped, 100ull * FILLS - 64 / 8 * FILLS);
	for (int i = 0; i < 10; i++)
		t_run(ten);
	balance(100ull * FILLS + 100);
	ck_assert_uint_eq(view_dropped(&t_v), dropped);
}
END_TEST

/* However often it was refused: as soon as the daemon was there it goes on. */
START_TEST(a_burst_that_was_refused_goes_on)
{
	const unsigned rounds = 20;

	ready(&small);
	pairs(20ull * FILLS);
	for (unsigned i = 0; i < rounds; i++) {
		const uint64_t dropped = view_dropped(&t_v);

		(void)view_walk(&t_v, NULL, NULL);
		pairs(3ull * FILLS - 10);
		ck_assert_uint_eq(view_dropped(&t_v), dropped);
		pairs(2ull * FILLS);
	}
	balance((20 + 5ull * rounds) * FILLS - 10ull * rounds);
}
END_TEST

static uint64_t memory(void)
{
	struct stat st;

	ck_assert_int_eq(fstat(core.fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

START_TEST(a_burst_gives_its_memory_back)
{
	uint64_t before, most;

	ready(&small);
	ck_assert(agent_lock_for(&core.backend_lock, UINT32_MAX)); /* no periodic work */
	pairs(10);
	before = memory();
	for (uint64_t round = 1; round < 4; round++) {
		pairs(3ull * FILLS - 20);
		most = memory();
		ck_assert_uint_ge(most, before + 2ull * RING_LANE_BYTES_MIN);
		ck_assert(lane_trim()); /* the daemon was not there */
		ck_assert(lane_trim());
		ck_assert_uint_eq(memory(), most);
		(void)view_walk(&t_v, NULL, NULL);
		ck_assert(lane_trim()); /* somebody may need them yet */
		ck_assert_uint_eq(memory(), most);
		ck_assert(!lane_trim());
		ck_assert_uint_le(memory(), before);
		balance(10 + round * (3 * FILLS - 20));
		ck_assert_uint_eq(view_dropped(&t_v), 0);
	}
	agent_unlock(&core.backend_lock);
}
END_TEST

/* --- no room --- */

START_TEST(more_threads_than_lanes)
{
	ready(&two); /* one is the agent's */
	pairs(5);
	t_run(ten);
	t_run(ten);
	balance(25);
	ck_assert_uint_eq(t_v.c->drop_no_lane, 20);
}
END_TEST

static void overfills(void)
{
	pairs(FILLS + 10);
}

static void ten_without_locks(void)
{
	sigset_t mask;

	t_enter(A); /* asks, in vain */
	t_exit();
	agent_lock_tables(&mask); /* whoever asks for it now waits for ever */
	ten();
	agent_unlock_tables(&mask);
}

/* With a lane left over that is full a claim fails under the lock: once, until something changes.
 */
START_TEST(no_lane_is_asked_for_once)
{
	const struct engine_open three = {.n_lanes = 3, .lane_bytes = RING_LANE_BYTES_MIN};

	ready(&three); /* the agent's, the main thread's */
	pairs(5);
	t_run(overfills);
	ck_assert(agent_lock_for(&core.backend_lock, UINT32_MAX)); /* no periodic work */
	t_run(ten_without_locks);
	ck_assert_uint_eq(t_v.c->drop_no_lane, 11);
	(void)view_walk(&t_v, NULL, NULL); /* now there is room */
	lane_retry();
	t_run(ten);
	ck_assert_uint_eq(t_v.c->drop_no_lane, 11);
	agent_unlock(&core.backend_lock);
}
END_TEST

/* A tmpfs of 2 MiB: the ring's tables fit, a few lanes do, and then there is no SIGBUS. */
START_TEST(full_tmpfs)
{
	char dir[] = "/tmp/protond-tmpfs.XXXXXX";
	struct engine_open o = {.n_lanes = 64, .lane_bytes = RING_LANE_BYTES_MIN, .rings_dir = dir};
	char text[256], fill[300];
	int fd;

	if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return; /* needs root */
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(mount("t", dir, "tmpfs", 0, "size=2m"), 0);
	A = t_new("a");
	t_open(&o, true);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	pairs(3);
	(void)snprintf(fill, sizeof(fill), "%s/fill", dir);
	fd = open(fill, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (off_t at = 0; fallocate(fd, 0, at, 4096) == 0; at += 4096)
		;
	t_run(ten);
	for (uint32_t i = 0; i < 3000; i++) { /* paths and names: their tables cannot grow either */
		t_enter(t_new("grows"));
		t_exit();
	}
	balance(3 + 10 + 3000);
	ck_assert_uint_gt(t_v.c->drop_no_lane + t_v.c->paths_refused + t_v.c->names_refused, 0);
	(void)close(fd);
	ck_assert_int_eq(umount2(dir, MNT_DETACH), 0);
	(void)rmdir(dir);
	(void)text;
}
END_TEST

START_TEST(no_room_for_a_ring)
{
	const struct rlimit lim = {1u << 20, 1u << 20};
	const struct engine_open o = {0};
	char text[256];

	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &lim), 0); /* going over would be SIGXFSZ */
	ck_assert_int_eq(protond_engine_v1()->open(&t_host, &o, text), -EFBIG);
	ck_assert_ptr_nonnull(strstr(text, "ulimit -f"));
}
END_TEST

START_TEST(a_smaller_ring_under_a_limit)
{
	const struct rlimit lim = {16u << 20, 16u << 20};

	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	ready(NULL);
	ck_assert_uint_lt(t_v.h->n_lanes, RING_LANES);
	pairs(10);
	balance(10);
}
END_TEST

/* The application closes all it does not know and opens files of its own. */
START_TEST(ring_descriptor_is_taken)
{
	uint8_t uuid[16];
	uint32_t named;
	struct stat st;
	int mine, fd;

	ready(&small);
	fd = t_e->ring_fd(uuid, &named);
	mine = memfd_create("mine", 0);
	ck_assert_int_eq(dup2(mine, fd), fd);
	t_run(ten); /* wants memory for a lane */
	ck_assert_int_eq(fstat(mine, &st), 0);
	ck_assert_int_eq(st.st_size, 0);
	ck_assert_int_eq(t_e->ring_fd(uuid, &named), -EBADF);
	balance(10);
	ck_assert_uint_eq(t_v.c->drop_no_lane, 10);
}
END_TEST

START_TEST(hostile_control)
{
	struct ring_ctl c = {.magic = RING_CTL_MAGIC, .abi = RING_ABI};
	int fd;

	ready(&small);
	fd = memfd_create("short", 0);
	ck_assert_int_eq(write(fd, &c, sizeof(c)), (ssize_t)sizeof(c));
	ck_assert_int_eq(t_e->control(fd, 8), -EPROTO);
	fd = memfd_create("no magic", 0);
	ck_assert_int_eq(ftruncate(fd, 65536), 0);
	ck_assert_int_eq(t_e->control(fd, 8), -EPROTO);
	ck_assert_int_eq(t_e->control(-1, 8), -EPROTO);
	/* heads that lie: the lane refuses, the process lives */
	t_v.ctl[8] = UINT64_MAX;
	pairs(3000);
	t_v.ctl[8] = 7;
	pairs(3000);
	t_v.ctl = NULL;
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_eq(t_v.n[REC_SCOPE] + view_dropped(&t_v), 6000);
}
END_TEST

static void lanes(TCase *c)
{
	tcase_add_test(c, low_descriptors);
	tcase_add_test(c, wraps);
	tcase_add_loop_test(c, every_offset_at_the_wrap, 0, (int)(sizeof(sizes) / sizeof(*sizes)));
	tcase_add_test(c, full_lane_drops_and_tells);
	tcase_add_test(c, without_a_daemon_one_lap_is_kept);
	tcase_add_test(c, a_napping_daemon_is_woken);
	tcase_add_test(c, a_host_that_cannot_wake);
	tcase_add_test(c, conservation);
	tcase_add_test(c, lanes_change_hands);
	tcase_add_test(c, a_half_full_lane_waits_for_the_daemon);
	tcase_add_test(c, the_emptiest_lane_is_handed_over);
	tcase_add_test(c, a_full_lane_is_not_handed_over);
	tcase_add_test(c, a_burst_goes_on_in_further_lanes);
	tcase_add_test(c, a_burst_takes_the_now_block_along);
	tcase_add_test(c, a_burst_has_a_share);
	tcase_add_test(c, a_burst_that_was_refused_goes_on);
	tcase_add_test(c, a_burst_gives_its_memory_back);
	tcase_add_test(c, more_threads_than_lanes);
	tcase_add_test(c, no_lane_is_asked_for_once);
	tcase_add_test(c, full_tmpfs);
	tcase_add_test(c, no_room_for_a_ring);
	tcase_add_test(c, a_smaller_ring_under_a_limit);
	tcase_add_test(c, ring_descriptor_is_taken);
	tcase_add_test(c, hostile_control);
}

Suite *suite(void)
{
	void (*const all[])(TCase *) = {lanes, NULL};

	return t_suite("job_lane", all);
}
