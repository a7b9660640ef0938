/* SPDX-License-Identifier: MIT. job_lane.c: tests of lanes: wrap, losses, hand-over, full tmpfs,
 * and that nothing is lost uncounted. */
#include "job_engine.h"
#include "keep.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

static uint32_t A;

static const struct engine_open small = {.n_lanes = 8, .lane_bytes = RING_LANE_BYTES_MIN};

static void ready(const struct engine_open *o)
{
	A = t_new("a");
	t_open(o, true);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
}

static void pairs(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		t_enter(A);
		t_exit();
	}
}

static void balance(uint64_t attempted)
{
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_eq(t_v.n[REC_SCOPE] + view_dropped(&t_v), attempted);
	view_check_tables(&t_v);
}

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

/* --- the agent's own lane, the backend --- */

static struct {
	_Atomic uint32_t starts, stops, flushes, forced, drains, waits;
	_Atomic uint64_t pending, launched;
	int fail;
	bool armed, take, refuses, exits;
	uint32_t given;
} b;

static int b_probe(struct backend_status *ret, struct backend_error *e)
{
	(void)e;
	*ret = (struct backend_status){.gpu = {.library_version = 26}};
	return 0;
}

static int b_start(bool armed, bool take, struct backend_error *e)
{
	b.starts++;
	b.take = take;
	b.armed = armed;
	if (b.fail != 0)
		*e = (struct backend_error){999, "no driver"};
	return b.fail;
}

static uint64_t b_flush(bool force)
{
	const struct rec_kernel k = {.hdr = REC_HDR(sizeof(k), REC_KERNEL, 0, 0, 0)};
	uint64_t n = 0;

	b.flushes++;
	b.forced += force;
	while (b.pending > 0 && n < 100 && agent_put_wait(&k, sizeof(k))) {
		b.pending--;
		n++;
	}
	return n;
}

static uint64_t b_stuck_flush(bool force)
{
	b.flushes++;
	b.forced += force;
	return 0;
}

static uint64_t b_pending(void)
{
	return b.pending;
}

static int b_stop(bool finalize, bool *ret_residual)
{
	b.stops++;
	*ret_residual = !finalize;
	return 0;
}

static bool b_give_back(void)
{
	b.given++;
	return !b.refuses;
}

static bool b_exit(uint32_t timeout_ms)
{
	(void)timeout_ms;
	return b.exits;
}

static uint64_t b_drain(void)
{
	b.drains++;
	return 0;
}

static struct backend b_table = {.term = &backend_terms[BACKEND_cupti],
	.probe = b_probe,
	.start = b_start,
	.flush = b_flush,
	.drain = b_drain,
	.pending = b_pending,
	.stop = b_stop,
	.give_back = b_give_back,
	.exit = b_exit};

static void backend_ready(void)
{
	A = t_new("a");
	t_open(&small, true);
	core.backend = &b_table;
}

START_TEST(gpu_states)
{
	backend_ready();
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU_ARMED), 0);
	ck_assert_uint_eq(t_gpu.state, GPU_ARMED);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert_uint_eq(t_gpu.state, GPU_ON);
	ck_assert(!b.armed);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0); /* idempotent */
	ck_assert_uint_eq(b.starts, 2);
	b.pending = 250;
	ck_assert_int_eq(t_e->flush(5000), 0);
	ck_assert_uint_eq(b.pending, 0);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	ck_assert_uint_eq(t_gpu.state, GPU_RESIDUAL);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU_PAUSE), 0);
	ck_assert_uint_eq(t_gpu.state, GPU_NONE);
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_eq(t_v.n[REC_KERNEL], 250);
	ck_assert_uint_ge(t_v.n[REC_DELIVERED], 3);
	ck_assert_uint_eq(t_v.n[REC_GPU], 4);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
}
END_TEST

/* A pause by the process itself lets go at once and gives the cost back after; a resume may take.
 */
START_TEST(gpu_hints)
{
	backend_ready();
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert(!b.take);
	t_e->gpu_give_back(); /* nothing is paused */
	ck_assert_uint_eq(b.given, 0);
	t_e->gpu_hint(GPU_HINT_ASIDE);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU | WANT_GPU_PAUSE), 0);
	ck_assert_uint_eq(t_gpu.state, GPU_RESIDUAL);
	b.refuses = true;
	t_e->gpu_give_back();
	ck_assert_uint_eq(t_gpu.state, GPU_RESIDUAL);
	b.refuses = false;
	t_e->gpu_give_back();
	ck_assert_uint_eq(t_gpu.state, GPU_NONE);
	ck_assert_uint_eq(b.given, 2);
	t_e->gpu_hint(GPU_HINT_TAKE);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert(b.take);
	t_e->gpu_hint(0);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU_PAUSE), 0); /* the daemon's: all at once */
	ck_assert_uint_eq(t_gpu.state, GPU_NONE);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert(!b.take); /* it was for once */
}
END_TEST

START_TEST(gpu_that_cannot_start)
{
	backend_ready();
	b.fail = -ENODEV;
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert_uint_eq(t_gpu.state, GPU_FAILED);
	ck_assert_int_eq(t_gpu.code, 999);
	ck_assert_str_eq(t_gpu.text, "no driver");
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert_uint_eq(b.starts, 1); /* not again and again */
	pairs(3);
	balance(3);
}
END_TEST

START_TEST(one_forced_flush_in_a_stall)
{
	backend_ready();
	b_table.flush = b_stuck_flush;
	b.pending = 1;
	core.flush_ms = 2;
	core.stall_ms = 50;
	ck_assert_int_eq(t_e->want(WANT_GPU), 0);
	ck_assert_int_eq(t_e->flush(400), -ETIMEDOUT);
	ck_assert_uint_gt(b.flushes, 20);
	ck_assert_uint_eq(b.forced, 1);
}
END_TEST

/* As fast as records come, others launch. */
static uint64_t b_racing_flush(bool force)
{
	b.flushes++;
	b.forced += force;
	b.launched += 2;
	return 2;
}

static uint64_t b_launched(void)
{
	return b.launched;
}

START_TEST(a_flush_waits_for_what_was_launched_before_it)
{
	backend_ready();
	b_table.flush = b_racing_flush;
	b_table.launched = b_launched;
	b.pending = 5; /* for ever */
	ck_assert_int_eq(t_e->want(WANT_GPU), 0);
	ck_assert_int_eq(t_e->flush(5000), 0);
	ck_assert_uint_ge(b.flushes, 3);
}
END_TEST

START_TEST(a_ring_drains)
{
	uint32_t flushes, drains;

	backend_ready();
	core.flush_ms = 3600000;
	ck_assert_int_eq(t_e->want(WANT_GPU), 0);
	ck_assert_int_eq(t_e->flush(1000), 0); /* one flush is over, the next is far */
	drains = b.drains; /* a ring of flush() may be answered after the flush */
	agent_ring();
	ck_assert_int_eq(
		t_e->flush(1000), 0); /* which runs after the ring was answered, or with it */
	flushes = b.flushes;
	for (int i = 0; i < 1000 && b.drains == drains; i++) {
		agent_ring();
		agent_wait(&core.flush_done, atomic_load(&core.flush_done), 10);
	}
	ck_assert_uint_gt(b.drains, drains);
	ck_assert_uint_le(b.flushes, flushes + 1);
}
END_TEST

/* Then the daemon, which this is here, makes room. */
static void b_waits(void)
{
	b.waits++;
	(void)view_walk(&t_v, NULL, NULL);
}

START_TEST(the_backend_knows_that_a_record_waits)
{
	backend_ready();
	b_table.waits = b_waits;
	b.pending = 5000; /* a lane is full of 1 024 */
	ck_assert_int_eq(t_e->want(WANT_GPU), 0);
	while (b.pending > 0)
		ck_assert_int_eq(t_e->flush(10000), 0);
	ck_assert_uint_ge(b.waits, 3);
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_eq(t_v.n[REC_KERNEL], 5000);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
}
END_TEST

static void all_delivered_fn(void *arg, const struct view *v, uint32_t at, const uint64_t *rec)
{
	const struct rec_delivered *r = (const void *)rec;

	(void)v;
	(void)at;
	*(uint32_t *)arg += REC_TYPE(*rec) == REC_DELIVERED && r->pending == 0;
}

/* Where the last flush came back, it says that nothing is pending any more. */
START_TEST(the_exit_handler_ends)
{
	uint32_t all = 0;

	backend_ready();
	core.flush_ms = 3600000;
	b.exits = _i != 0;
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert_int_eq(t_e->flush(1000), 0); /* one flush is over, the next is far */
	b.pending = 5;
	t_enter(A);
	(void)view_walk(&t_v, NULL, NULL);
	(*t_e->exit)();
	(void)view_walk(&t_v, all_delivered_fn, &all);
	ck_assert_uint_eq(all, b.exits);
	t_exit(); /* after the end: nothing, and no harm */
	t_enter(A);
	t_exit();
	ck_assert_int_eq(t_e->want(WANT_ALL), -ESHUTDOWN);
	balance(0);
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

static void worker(TCase *c)
{
	tcase_add_test(c, gpu_states);
	tcase_add_test(c, gpu_hints);
	tcase_add_test(c, gpu_that_cannot_start);
	tcase_add_test(c, one_forced_flush_in_a_stall);
	tcase_add_test(c, a_flush_waits_for_what_was_launched_before_it);
	tcase_add_test(c, a_ring_drains);
	tcase_add_test(c, the_backend_knows_that_a_record_waits);
	tcase_add_loop_test(c, the_exit_handler_ends, 0, 2);
}

Suite *suite(void)
{
	void (*const all[])(TCase *) = {lanes, worker, NULL};

	return t_suite("job_lane", all);
}
