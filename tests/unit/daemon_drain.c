/* SPDX-License-Identifier: MIT. daemon_drain.c: from a ring that a test writes into a real journal
 * and a real fold: what comes, in which order, and what becomes of a lane that lies. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "adopt.h"
#include "daemon_fake.h"
#include "drain.h"
#include "drained.h"
#include "engine.h"
#include "entry.h"
#include "fold.h"
#include "host_clock.h"
#include "journal.h"
#include "log.h"
#include "loop.h"
#include "rings.h"

static struct protond p;
static struct ring *ring;
static struct fake f;
static char dir[64];

struct seen {
	uint16_t type;
	uint32_t lane, bytes, n; /* n: of a TABLE entry */
	uint64_t from;
	uint32_t which;
	uint32_t sessions, losses, first_id; /* records in a LANE entry */
};
static struct seen seen[4096];
static uint32_t n_seen;
static uint64_t looked;

static void look(void);

static void setup_sized(uint32_t lane_bytes)
{
	const struct reader_expect x = {
		.uid = (uint32_t)geteuid(), .store = fake_store, .boot_id = fake_boot};
	const struct ring_origin o = {NULL, 0, "test"};
	struct err e = {0};

	memset(&p, 0, sizeof(p));
	protond_bind(&p);
	looked = 0;
	(void)snprintf(dir, sizeof(dir), "/dev/shm/protond-drain-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	p.d.runtime_fd = open(dir, O_RDONLY | O_DIRECTORY);
	p.d.rings_fd = -1;
	p.drain.ns = 3600ull * 1000000000u; /* no test hangs on how busy the machine is */
	p.drain.arena = malloc(DRAIN_BYTES + READER_PIECE);
	ck_assert_msg(journal_open(p.d.runtime_fd, &p.d.journal, &e) == 0, "%s", e.text);
	ck_assert_int_eq(fold_new(NULL, &p.d.fold), 0);
	f = fake_new_sized(lane_bytes);
	fake_tables(&f);
	(void)fake_path(&f, 0, fake_name(&f, "step"));    /* 2 */
	(void)fake_path(&f, 2, fake_name(&f, "forward")); /* 3 */
	ring = ring_add(&p.rings, f.h.uuid);
	ck_assert_msg(ring_open(ring, dup(f.fd), &x, &e) == 0, "%s", e.text);
	ck_assert_int_eq(ring_adopt(ring, &o), 0);
	log_set_level(LOG_ERR);
	look();
}

static void setup(void)
{
	setup_sized(FAKE_BYTES);
}

static void setup_large(void)
{
	setup_sized(1u << 20);
}

static void teardown(void)
{
	char cmd_path[96];

	rings_free(&p.rings);
	fold_free(p.d.fold);
	journal_close(p.d.journal);
	free(p.drain.arena);
	fake_free(&f);
	(void)snprintf(cmd_path, sizeof(cmd_path), "%s/journal.1", dir);
	(void)unlink(cmd_path);
	(void)snprintf(cmd_path, sizeof(cmd_path), "%s/journal.2", dir);
	(void)unlink(cmd_path);
	(void)close(p.d.runtime_fd);
	(void)rmdir(dir);
}

static int note(void *arg, const struct journal_entry *e)
{
	const struct j_lane *l = (const void *)(e + 1);
	const struct j_table *t = (const void *)(e + 1);
	const uint8_t *b = (const uint8_t *)(l + 1);
	struct seen *s = &seen[n_seen++];
	uint32_t at, n;
	uint64_t h;

	(void)arg;
	*s = (struct seen){.type = e->type};
	if (e->type == J_TABLE) {
		s->which = t->which;
		s->n = t->n;
	}
	if (e->type == J_NOW)
		s->n = (e->bytes - (uint32_t)sizeof(*e)) / (uint32_t)sizeof(struct j_now);
	if (e->type != J_LANE)
		return 0;
	s->lane = l->lane;
	s->bytes = l->bytes;
	s->from = l->from;
	for (at = 0; at < l->bytes; at += n) {
		memcpy(&h, b + at, 8);
		if (at == 0)
			s->first_id = REC_ID(h);
		n = REC_TYPE(h) == REC_PAD ? REC_ID(h) : REC_BYTES(h);
		ck_assert_uint_gt(n, 0); /* walkable, always */
		s->sessions += REC_TYPE(h) == REC_SESSION;
		s->losses += REC_TYPE(h) == REC_LOST && REC_ID(h) == LOST_BAD;
	}
	ck_assert_uint_eq(at, l->bytes);
	return 0;
}

/* Everything in the journal since the last look. */
static void look(void)
{
	int gap;

	ck_assert(entry_flush(&p.entries));
	n_seen = 0;
	ck_assert_int_eq(journal_replay(p.d.journal, looked, note, NULL, &gap), 0);
	looked = journal_position(p.d.journal);
}

static int64_t drain(bool *more)
{
	const int64_t n = drain_ring(ring, more);

	look();
	return n;
}

/* The entries of one kind, in order. */
static uint32_t pick(uint16_t type, const struct seen **ret, uint32_t n)
{
	uint32_t i, k = 0;

	for (i = 0; i < n_seen && k < n; i++) {
		if (seen[i].type == type)
			ret[k++] = &seen[i];
	}
	return k;
}

/* --- what comes, and in which order --- */

START_TEST(test_tables_before_lanes)
{
	const struct seen *t[4], *l[4];
	bool more;

	fake_scope(&f, 0, 3, 10, 20);
	ck_assert_int_eq(drain(&more), 24);
	ck_assert(!more);
	ck_assert_uint_eq(pick(J_TABLE, t, 4), 2);
	ck_assert_uint_eq(t[0]->which, TABLE_NAMES); /* a path names a name */
	ck_assert_uint_eq(t[0]->n, 4);
	ck_assert_uint_eq(t[1]->which, TABLE_PATHS);
	ck_assert_uint_eq(pick(J_LANE, l, 4), 1);
	ck_assert(l[0] > t[1]);
	/* Once only: nothing new, nothing written. */
	ck_assert_int_eq(drain(&more), 0);
	ck_assert_uint_eq(n_seen, 0);
	(void)fake_path(&f, 3, fake_name(&f, "late"));
	fake_scope(&f, 0, 4, 30, 40);
	ck_assert_int_eq(drain(&more), 24);
	ck_assert_uint_eq(pick(J_TABLE, t, 4), 2);
	ck_assert_uint_eq(t[0]->n, 1);
	ck_assert_uint_eq(pick(J_LANE, l, 4), 1);
	ck_assert_uint_eq(l[0]->from, 24);
}
END_TEST

/* A thread starts a session, then another one, lower in the table, records: the start comes first.
 */
START_TEST(test_session_first)
{
	const struct seen *l[8];
	uint32_t i;
	bool more;

	for (i = 0; i < 10; i++)
		fake_scope(&f, 0, 2, 100 + i, 200 + i);
	fake_scope(&f, 7, 2, 1, 2);
	fake_session(&f, 7, SESSION_START, 0, 2, 50);
	fake_scope(&f, 7, 3, 60, 70);
	ck_assert_int_eq(drain(&more), 10 * 24 + 24 + 64 + 24);
	ck_assert_uint_eq(pick(J_LANE, l, 8), 3);
	ck_assert_uint_eq(l[0]->lane, 7);
	ck_assert_uint_eq(l[0]->bytes, 24 + 64);
	ck_assert_uint_eq(l[0]->sessions, 1);
	ck_assert_uint_eq(l[1]->lane, 0);
	ck_assert_uint_eq(l[2]->lane, 7);
	ck_assert_uint_eq(l[2]->from, 88);
	ck_assert(p.entries.saw_session);
}
END_TEST

/* The tick that takes a session's record says so, not one before it that found the record: the loop
 * looks at the sessions once. */
START_TEST(test_session_said_when_taken)
{
	const struct seen *l[8];
	uint32_t i, n, taken = 0;
	bool more;

	fake_scope(&f, 0, 2, 1, 2);
	(void)drain(&more); /* the tables, too, which no tick without time would take */
	fake_scope(&f, 0, 2, 3, 4);
	fake_session(&f, 0, SESSION_START, 0, 2, 50);
	fake_scope(&f, 1, 2, 60, 70);
	fake_session(&f, 1, SESSION_FINALIZE, 0, 2, 80);
	p.drain.ns = 0; /* one step a tick */
	do {
		p.entries.saw_session = false;
		ck_assert_int_ge(drain(&more), 0);
		n = pick(J_LANE, l, 8);
		for (i = 0; i < n; i++) {
			taken += l[i]->sessions;
			ck_assert(l[i]->sessions == 0 || p.entries.saw_session);
		}
	} while (more);
	ck_assert_uint_eq(taken, 2);
}
END_TEST

struct piece {
	uint32_t lane, bytes;
};

/* In that order; small: one step a tick. */
static void taken_as(const struct piece *want, size_t n, bool small)
{
	const struct seen *l[8];
	bool more;

	if (small)
		p.drain.ns = 0;
	do {
		ck_assert_int_ge(drain_ring(ring, &more), 0);
	} while (more);
	look();
	ck_assert_uint_eq(pick(J_LANE, l, 8), n);
	for (size_t i = 0; i < n; i++) {
		ck_assert_uint_eq(l[i]->lane, want[i].lane);
		ck_assert_uint_eq(l[i]->bytes, want[i].bytes);
	}
}

/* One thread starts what another ends, and they take turns: in the order in which they did so,
 * whatever their lanes are, also where the arena has none of it. */
START_TEST(test_sessions_in_order)
{
	static const struct piece want[] = {
		{7, 24 + 64}, {2, 24 + 64}, {7, 64}, {5, 64 + 24 + 64}, {2, 24 + 64}, {2, 24}};
	bool more = false;

	for (uint32_t lane = 0; lane < 8; lane++)
		fake_scope(&f, lane, 2, 1, 2);
	(void)drain(&more); /* the tables, too, which no tick without time would take */
	fake_scope(&f, 2, 2, 1, 2);
	fake_session(&f, 2, SESSION_FINALIZE, 0, 2, 60);
	fake_scope(&f, 2, 2, 81, 82);
	fake_session(&f, 2, SESSION_FINALIZE, 1, 2, 90);
	fake_scope(&f, 2, 2, 91, 92);
	fake_session(&f, 5, SESSION_ACTIVATE, 1, 2, 75);
	fake_scope(&f, 5, 2, 76, 77);
	fake_session(&f, 5, SESSION_PHASE, 1, 2, 80);
	fake_scope(&f, 7, 2, 1, 2);
	fake_session(&f, 7, SESSION_START, 0, 2, 50);
	fake_session(&f, 7, SESSION_START, 1, 2, 70);
	taken_as(want, sizeof(want) / sizeof(want[0]), _i == 1);
}
END_TEST

/* A thread that goes from lane 5 to 2 to 7 and back to 5. */
START_TEST(test_a_burst_in_order)
{
	static const struct piece want[] = {{5, 48}, {2, 72}, {7, 48}, {2, 24}, {5, 24}};
	bool more = false;

	for (uint32_t lane = 0; lane < 8; lane++)
		fake_scope(&f, lane, 2, 1, 2);
	(void)drain(&more); /* the tables, too, which no tick without time would take */
	fake_scope(&f, 5, 2, 1, 2);
	fake_goes_on(&f, 5, 10);
	fake_scope(&f, 5, 2, 31, 32);
	fake_scope(&f, 2, 2, 11, 12);
	fake_scope(&f, 2, 2, 13, 14);
	fake_goes_on(&f, 2, 20);
	fake_scope(&f, 2, 2, 15, 16); /* another thread, that came here since */
	fake_scope(&f, 7, 2, 21, 22);
	fake_goes_on(&f, 7, 30);
	taken_as(want, sizeof(want) / sizeof(want[0]), _i == 1);
}
END_TEST

static void thread_goes_on(uint32_t lane, uint32_t tid, uint64_t clock)
{
	const struct rec_thread r = {.hdr = REC_HDR(sizeof(r), REC_THREAD, 0, THREAD_GOES_ON, 0),
		.clock = clock,
		.tid = tid};

	fake_put(&f, lane, &r, sizeof(r));
}

/* Threads 1 and 2 left lanes 0 and 1 full, and thread 1 lane 2, too. What is before their marks comes by turns, but for
 * lane 2, which comes behind lane 0; where the window has a SESSION, one lane after the other. */
START_TEST(test_threads_take_turns)
{
	const struct seen *l[32];
	const bool session = _i == 1;
	uint32_t i, n, turns = 0, last0 = 0, first2 = UINT32_MAX;
	bool more = false;

	for (uint32_t lane = 0; lane < 8; lane++)
		fake_scope(&f, lane, 2, 1, 2);
	(void)drain(&more);
	for (i = 0; i < 2000; i++) {
		fake_scope(&f, 0, 2, 1, 2);
		fake_scope(&f, 1, 2, 1, 2);
		fake_scope(&f, 2, 2, 1, 2);
	}
	thread_goes_on(0, 1, 20);
	thread_goes_on(1, 2, 30);
	thread_goes_on(2, 1, 40);
	if (session)
		fake_session(&f, 3, SESSION_START, 0, 2, 50);
	do {
		ck_assert_int_ge(drain_ring(ring, &more), 0);
	} while (more);
	look();
	n = pick(J_LANE, l, 32);
	for (i = 0; i < n; i++) {
		turns += i > 0 && l[i]->lane != l[i - 1]->lane;
		last0 = l[i]->lane == 0 ? i : last0;
		first2 = l[i]->lane == 2 && first2 == UINT32_MAX ? i : first2;
	}
	ck_assert_uint_lt(last0, first2);
	if (session)
		ck_assert_uint_eq(turns, 3);
	else
		ck_assert_uint_ge(turns, 5);
}
END_TEST

/* What comes before a mark that was made after the first look may be in a lane that was looked at
 * before. */
START_TEST(test_a_later_mark_waits)
{
	const struct seen *l[4];
	bool more = false;

	fake_scope(&f, 2, 2, 1, 2);
	fake_scope(&f, 5, 2, 3, 4);
	fake_goes_on(&f, 5, UINT64_MAX);
	ck_assert_int_ge(drain(&more), 0);
	ck_assert_uint_eq(pick(J_LANE, l, 4), 2);
	ck_assert_uint_eq(l[0]->lane, 2);
}
END_TEST

static void now_at(uint32_t lane, uint32_t state, uint32_t tid, uint32_t moves, uint32_t depth)
{
	struct ring_lane *l = fake_lane(&f, lane);

	fake_scope(&f, lane, 2, 1, 2);
	l->state = state;
	l->tid = tid;
	l->moves = moves;
	l->now.depth = depth;
	for (uint32_t i = 0; i < depth; i++)
		l->now.frame[i].path = 2;
}

/* However it was killed on its way, a thread is in one lane: the one that it came to last. */
START_TEST(test_now_of_a_burst)
{
	bool more;

	now_at(0, LANE_LIVE, 70, 1, 1); /* killed before it left this one for 2 */
	now_at(1, LANE_LEFT, 70, 0, 3);
	now_at(2, LANE_LIVE, 70, 2, 2);
	now_at(3, LANE_LEFT, 71, 4, 1); /* the daemon saw lane 4 before it was taken */
	now_at(4, LANE_LEFT, 71, 3, 3);
	now_at(5, LANE_EXITED, 72, 0, 3);
	now_at(6, LANE_LIVE, 73, 0, 1); /* one that never moved */
	ck_assert_int_ge(drain(&more), 0);
	ck_assert_int_eq(drain_now_block(ring), 0);
	look();
	ck_assert_uint_eq(n_seen, 1);
	ck_assert_uint_eq(seen[0].type, J_NOW);
	ck_assert_uint_eq(seen[0].n, 4);
}
END_TEST

/* Many laps, never a byte twice and never one missing. */
START_TEST(test_laps)
{
	struct seen *s;
	uint64_t at = 0, wrote = 0;
	uint32_t i, k;
	bool more;

	for (k = 0; k < 300; k++) {
		for (i = 0; i < 1 + k * 37 % 1300; i++) {
			fake_scope(&f, 1, 2 + i % 2, wrote, wrote + 1);
			wrote++;
		}
		do { /* a tick has 2 ms, which a busy machine may use up */
			ck_assert_int_ge(drain(&more), 0);
			for (s = seen; s < seen + n_seen; s++) {
				if (s->type != J_LANE)
					continue;
				ck_assert_uint_eq(s->from, at);
				at += s->bytes;
			}
		} while (more);
		ck_assert_uint_eq(at, fake_lane(&f, 1)->tail);
		ck_assert_uint_eq(ring->reader.lane[1].head, at);
	}
	ck_assert_uint_gt(at / FAKE_BYTES, 20);
}
END_TEST

/* --- lanes that lie --- */

/* A good part, then a record that breaks a law: the good part comes, the lane gets its tries, is
 * then given up and counted, and its neighbour never notices. */
START_TEST(test_quarantine)
{
	const struct seen *l[8];
	bool more;
	uint64_t bad = 0;
	uint32_t i;

	fake_scope(&f, 0, 2, 1, 2);
	fake_scope(&f, 0, 2, 3, 4);
	memcpy(fake_at(&f, 0, 24), &bad, 8);
	fake_scope(&f, 1, 2, 1, 2);
	ck_assert_int_eq(drain(&more), 48);
	ck_assert_uint_eq(ring->reader.lane[0].head, 24);
	for (i = 0; i < READER_BAD_TICKS; i++) {
		ck_assert(!ring->reader.lane[0].quarantined);
		fake_scope(&f, 1, 2, 1, 2);
		ck_assert_int_eq(drain(&more), 24);
	}
	ck_assert(ring->reader.lane[0].quarantined);
	ck_assert_uint_eq(pick(J_LANE, l, 8), 2);
	ck_assert_uint_eq(l[0]->lane, 0);
	ck_assert_uint_eq(l[0]->losses, 1);
	ck_assert_uint_eq(l[0]->from, 24);
	fake_scope(&f, 0, 2, 5, 6);
	ck_assert_int_eq(drain(&more), 0); /* for ever */
	ck_assert_uint_eq(n_seen, 0);
}
END_TEST

/* A former daemon took the lane up to `gone`, and its journal lost that from `head` on. What the ring
 * still has is taken; once the job wrote over it, the lane goes on behind it. */
START_TEST(test_gone)
{
	const uint32_t lap = f.h.lane_bytes, n = lap / 24 / 2;
	struct reader_lane *l = &ring->reader.lane[0];
	const struct seen *s[8];
	uint32_t i;
	bool more;

	for (i = 0; i < n; i++)
		fake_scope(&f, 0, 2, 1, 2);
	l->gone = 24ull * (n - 1);
	ck_assert_int_eq(drain(&more), 24 * n);
	for (i = 0; i < n; i++)
		fake_scope(&f, 0, 2, 1, 2);
	l->gone = fake_lane(&f, 0)->tail;
	for (i = 0; i < n + n / 2; i++)
		fake_scope(&f, 0, 2, 3, 4);
	for (i = 0; i < 2 && drain(&more) == 0; i++) {
		ck_assert_uint_eq(pick(J_LANE, s, 8), 1);
		ck_assert_uint_eq(s[0]->from, l->gone);
		ck_assert_uint_eq(s[0]->bytes, 0);
	}
	ck_assert_uint_eq(i, 1);
	ck_assert_uint_eq(l->head, fake_lane(&f, 0)->tail);
	ck_assert(!l->quarantined);
}
END_TEST

/* It may be half written over where it can still be read. */
START_TEST(test_nearly_gone)
{
	const uint32_t n = f.h.lane_bytes / 24;
	struct reader_lane *l = &ring->reader.lane[0];
	bool more;
	uint32_t i;

	for (i = 0; i < n; i++)
		fake_scope(&f, 0, 2, 1, 2);
	l->gone = 24ull * (n - 1);
	ck_assert_int_eq(drain(&more), 0);
	ck_assert_uint_eq(l->head, l->gone);
	ck_assert_int_eq(drain(&more), 24);
}
END_TEST

START_TEST(test_bad_tail)
{
	bool more;
	uint32_t i;

	fake_scope(&f, 0, 2, 1, 2);
	ck_assert_int_eq(drain(&more), 24);
	fake_lane(&f, 0)->tail = UINT64_MAX - 7;
	for (i = 0; i < READER_BAD_TICKS; i++)
		ck_assert_int_eq(drain(&more), 0);
	ck_assert(ring->reader.lane[0].quarantined);
	ck_assert_uint_eq(ring->reader.lane[0].head, 24);
}
END_TEST

/* It heals within its tries: nothing is lost. */
START_TEST(test_heals)
{
	bool more;

	fake_scope(&f, 0, 2, 1, 2);
	fake_lane(&f, 0)->tail = 20;
	ck_assert_int_eq(drain(&more), 0);
	ck_assert_int_eq(drain(&more), 0);
	fake_lane(&f, 0)->tail = 24;
	ck_assert_int_eq(drain(&more), 24);
	ck_assert_int_eq(ring->reader.lane[0].bad, 0);
}
END_TEST

/* --- budget --- */

/* Twenty full lanes are more than one tick may take, in a window that is finished in later ticks; a
 * START at the very end of the last lane still comes before what the others recorded. */
START_TEST(test_budget)
{
	uint64_t total = 0, got = 0;
	uint32_t lane, ticks = 0, i;
	bool more = true, first = true;
	int64_t n;

	for (lane = 0; lane < FAKE_LANES; lane++) {
		while (fake_lane(&f, lane)->tail + 24 + 64 <= f.h.lane_bytes)
			fake_scope(&f, lane, 2, 1, 2);
		if (lane == FAKE_LANES - 1)
			fake_session(&f, lane, SESSION_START, 0, 2, 50);
		total += fake_lane(&f, lane)->tail;
	}
	while (more) {
		memset(p.drain.arena, 0xff, DRAIN_BYTES); /* what other rings left there */
		n = drain(&more);
		ck_assert_int_ge(n, 0);
		ck_assert_int_le(n, DRAIN_BYTES + READER_PIECE);
		got += (uint64_t)n;
		ticks++;
		for (i = 0; i < n_seen && first; i++) {
			if (seen[i].type != J_LANE)
				continue;
			ck_assert_uint_eq(seen[i].lane, FAKE_LANES - 1);
			first = seen[i].sessions == 0;
		}
		ck_assert_uint_lt(ticks, 1000);
	}
	ck_assert_uint_eq(got, total);
	ck_assert(!first);
	ck_assert_uint_gt(ticks, 5);
}
END_TEST

/* At the end all that is there comes, in as many pieces, while there is time. */
START_TEST(test_whole)
{
	const struct seen *s[4];
	uint32_t lane;

	for (lane = 0; lane < FAKE_LANES; lane++) {
		while (fake_lane(&f, lane)->tail + 24 <= f.h.lane_bytes)
			fake_scope(&f, lane, 2, 1, 2);
	}
	p.drain.behind = true;
	ck_assert_uint_eq(drained_whole(&p, mono_ns()), 1);
	ck_assert_uint_eq(ring->whole_ns, 0);
	ck_assert_uint_eq(drained_whole(&p, UINT64_MAX), 0);
	for (lane = 0; lane < FAKE_LANES; lane++)
		ck_assert_uint_eq(ring->reader.lane[lane].head, fake_lane(&f, lane)->tail);
	look();
	ck_assert_uint_eq(pick(J_COUNTS, s, 4), 1);
}
END_TEST

/* A graph whose records came first is counted a piece at a time: it goes on though nothing comes,
 * and ends. */
START_TEST(test_joining)
{
	const struct rec_launch launch = {
		.hdr = REC_HDR(sizeof(launch), REC_LAUNCH, 0, LAUNCH_GRAPH, 2), .correlation = 7};
	const struct rec_kernel kernel = {
		.hdr = REC_HDR(sizeof(kernel), REC_KERNEL, 0, GPU_FLAG_GRAPH, 0),
		.start = 1,
		.end = 2,
		.correlation = 7};
	const struct seen *s[8];
	uint32_t i;
	bool more;

	for (i = 0; i < 20000; i++) {
		fake_put(&f, 1, &kernel, sizeof(kernel));
		if (i % 1000 == 999)
			ck_assert_int_gt(drain(&more), 0);
	}
	fake_put(&f, 0, &launch, sizeof(launch));
	ck_assert_int_gt(drain(&more), 0);
	ck_assert(fold_is_joining(p.d.fold, f.h.uuid));
	for (i = 0; fold_is_joining(p.d.fold, f.h.uuid); i++) {
		ck_assert_uint_lt(i, 10);
		more = false;
		ck_assert_int_eq(drain(&more), 0);
		ck_assert(more);
		ck_assert_uint_eq(pick(J_COUNTS, s, 8), 1);
	}
	ck_assert_uint_ge(i, 2);
	ck_assert_int_eq(drain(&more), 0);
	ck_assert(!more);
	ck_assert_uint_eq(n_seen, 0);
}
END_TEST

/* --- GPU work, ahead --- */

#define GPU_LANE 4u

static void put_launch(uint32_t k)
{
	const struct rec_launch r = {
		.hdr = REC_HDR(sizeof(r), REC_LAUNCH, 0, 0, 2), .clock = 1, .correlation = k + 1};

	fake_put(&f, k % 4, &r, sizeof(r));
}

static void put_kernel(uint32_t k)
{
	const struct rec_kernel r = {.hdr = REC_HDR(sizeof(r), REC_KERNEL, 0, 0, 0),
		.start = 1,
		.end = 2,
		.correlation = k + 1};

	fake_put(&f, GPU_LANE, &r, sizeof(r));
}

static uint32_t taken_of(uint32_t lane, uint32_t bytes)
{
	return (uint32_t)(ring->reader.lane[lane].head / bytes);
}

/* Four threads left 120 000 launches, and the agent's lane is full of their kernels, of which more come as there is
 * room: in one window all of them come, and no more than some are in flight at any time. */
START_TEST(test_gpu_work_comes_ahead)
{
	enum { N = 120000, FLIGHT = 30000 };
	uint32_t k = 0, i, launches, kernels = 0, early = 0;
	bool more = true;

	fake_scope(&f, 0, 2, 1, 2);
	(void)drain(&more); /* the tables, too, which no tick without time would take */
	p.drain.ns = 0;     /* one step a tick */
	more = true;
	for (i = 0; i < N; i++)
		put_launch(i);
	while (more) {
		while (k < N &&
			fake_lane(&f, GPU_LANE)->tail + 128 - ring->reader.lane[GPU_LANE].head <=
				f.h.lane_bytes)
			put_kernel(k++);
		ck_assert_int_ge(drain_ring(ring, &more), 0);
		for (launches = i = 0; i < 4; i++)
			launches += taken_of(i, sizeof(struct rec_launch));
		kernels = taken_of(GPU_LANE, sizeof(struct rec_kernel));
		early = fold_early(p.d.fold, f.h.uuid) > early ? fold_early(p.d.fold, f.h.uuid)
							       : early;
		ck_assert_uint_lt(launches, kernels + FLIGHT);
	}
	ck_assert_uint_gt(kernels, N - FLIGHT);
	ck_assert_uint_lt(early, FLIGHT);
}
END_TEST

/* It goes no further than to a record of another kind, which comes with its window. */
START_TEST(test_gpu_work_waits_behind_others)
{
	const struct rec_lost other = {
		.hdr = REC_HDR(sizeof(other), REC_LOST, 0, 0, LOST_GPU_DROPPED)};
	bool more = true;
	uint32_t i;

	fake_scope(&f, 0, 2, 1, 2);
	(void)drain(&more); /* the tables, too, which no tick without time would take */
	p.drain.ns = 0;     /* one step a tick */
	for (i = 0; i < 8000; i++)
		put_launch(i);
	put_kernel(0);
	(void)drain_ring(ring, &more);
	put_kernel(1);
	fake_put(&f, GPU_LANE, &other, sizeof(other));
	put_kernel(2);
	while (more)
		ck_assert_int_ge(drain_ring(ring, &more), 0);
	ck_assert_uint_eq(taken_of(GPU_LANE, sizeof(struct rec_kernel)), 2);
	do {
		ck_assert_int_ge(drain_ring(ring, &more), 0);
	} while (more);
	ck_assert_uint_eq(ring->reader.lane[GPU_LANE].head, fake_lane(&f, GPU_LANE)->tail);
	look();
}
END_TEST

/* --- NOW, COUNTS --- */

START_TEST(test_now_and_counts)
{
	const struct seen *s[4];
	struct ring_lane *l = fake_lane(&f, 0);
	bool more;

	fake_scope(&f, 0, 2, 1, 2);
	ck_assert_int_eq(drain(&more), 24);
	(void)fake_path(&f, 3, fake_name(&f, "open"));
	l->now.frame[0].path = 4;
	l->now.depth = 1;
	ck_assert_int_eq(drain_now_block(ring), 0);
	look();
	ck_assert_uint_eq(pick(J_TABLE, s, 4), 2); /* the words of what is open come before it */
	ck_assert_uint_eq(pick(J_NOW, s, 4), 1);
	ck_assert_int_eq(drain_counts(ring), 0);
	look();
	ck_assert_uint_eq(pick(J_COUNTS, s, 4), 1);
	ck_assert_int_eq(drain_counts(ring), 0); /* nothing changed */
	look();
	ck_assert_uint_eq(n_seen, 0);
	l->drop_full = 5;
	ck_assert_int_eq(drain_counts(ring), 0);
	look();
	ck_assert_uint_eq(pick(J_COUNTS, s, 4), 1);
}
END_TEST

static uint32_t nows(void)
{
	const struct seen *s[4];

	look();
	return pick(J_NOW, s, 4);
}

/* What threads are in is said again only when it changed, or when the fold may have another idea of
 * it since; and that they are in nothing is said, too. */
START_TEST(test_now_unchanged)
{
	struct ring_lane *l = fake_lane(&f, 0);
	bool more;

	l->generation = 1;
	l->state = LANE_LIVE;
	l->now.frame[0].path = 2;
	l->now.depth = 1;
	ck_assert_int_eq(drain(&more), 0);
	ck_assert_int_eq(drain_now_block(ring), 0);
	ck_assert_uint_eq(nows(), 1);
	ck_assert_int_eq(drain_now_block(ring), 0);
	ck_assert_uint_eq(nows(), 0);
	fake_scope(&f, 0, 2, 0, 2); /* it is left, and entered again */
	ck_assert_int_eq(drain(&more), 24);
	ck_assert_int_eq(drain_now_block(ring), 0);
	ck_assert_uint_eq(nows(), 1);
	l->now.depth = 0;
	ck_assert_int_eq(drain_now_block(ring), 0);
	ck_assert_uint_eq(nows(), 1);
	ck_assert_int_eq(drain_now_block(ring), 0);
	ck_assert_uint_eq(nows(), 0);
}
END_TEST

/* --- who waits --- */

static uint32_t called;

static void on_drained(void *arg, bool ends)
{
	(void)arg;
	(void)ends;
	called++;
}

static void ask(int64_t uid)
{
	called = 0;
	p.turn.stopping = true; /* there is no loop to hurry */
	ck_assert_int_eq(daemon_when_drained(&p.d, uid, 3600 * 1000, on_drained, NULL), 0);
}

/* Nobody waits for another user's jobs, nor has them looked through. */
START_TEST(test_asks_for_own)
{
	ask((int64_t)ring->uid + 1);
	ck_assert_uint_eq(ring->note_ns, 0);
	drained_check(&p);
	ck_assert_uint_eq(called, 1);
}
END_TEST

START_TEST(test_asks)
{
	const struct seen *s[4];
	bool more;

	fake_scope(&f, 0, 2, 1, 2);
	ask(_i == 0 ? -1 : (int64_t)ring->uid);
	ck_assert(ring->note_ns != 0 && ring->asked_ns != 0); /* one tick brings both */
	drained_check(&p);
	ck_assert_int_eq(drain(&more), 24);
	drained_check(&p);
	ck_assert_uint_eq(called, 0);
	ck_assert(drain_notes(&p.rings));
	drained_check(&p);
	ck_assert_uint_eq(called, 1);
	look();
	ck_assert_uint_eq(pick(J_COUNTS, s, 4), 1);
	ck_assert(drain_notes(&p.rings)); /* nobody waits any more */
	look();
	ck_assert_uint_eq(n_seen, 0);
}
END_TEST

/* A tick takes as much as its time is for, and another user's ring before the next of the same,
 * though that one took all the time. */
START_TEST(test_notes_in_turn)
{
	struct ring other[3];
	const uint64_t now = mono_ns();
	uint32_t i;

	ck_assert_int_eq(drain_now_block(ring), 0); /* the tables are read */
	for (i = 0; i < 3; i++) {
		other[i] = *ring;
		other[i].uid = 4711 + i / 2; /* 4711, 4711, 4712 */
		other[i].now_sum = other[i].noted_ns = 0;
		other[i].next = i < 2 ? &other[i + 1] : NULL;
		ck_assert(!drain_is_noted(&other[i], now + i));
	}
	ring->next = other;
	p.drain.ns = 0;
	ck_assert(!drain_notes(&p.rings));
	ck_assert(other[0].noted_ns != 0 && other[1].noted_ns == 0 && other[2].noted_ns != 0);
	ck_assert(drain_notes(&p.rings));
	ck_assert(other[1].noted_ns != 0 && ring->noted_ns == 0);
	ring->next = NULL;
}
END_TEST

/* The journal's disk is full: nothing is taken, nothing is lost, later all of it comes. */
START_TEST(test_journal_stuck)
{
	bool more;

	fake_scope(&f, 0, 2, 1, 2);
	p.entries.stuck = true;
	ck_assert_int_eq(drain_ring(ring, &more), -ENOSPC);
	ck_assert_uint_eq(ring->reader.lane[0].head, 0);
	p.entries.stuck = false;
	ck_assert_int_eq(drain_ring(ring, &more), 24);
	ck_assert_uint_eq(ring->reader.lane[0].head, 24);
}
END_TEST

/* What a caller waits for is there with the window that began after it asked, and not before. */
START_TEST(test_past)
{
	const uint64_t asked = mono_ns();
	bool more;

	fake_scope(&f, 0, 2, 1, 2);
	ck_assert(!drain_is_past(ring, asked));
	ck_assert_int_eq(drain_ring(ring, &more), 24);
	ck_assert(drain_is_past(ring, asked));
	ck_assert(!drain_is_past(ring, mono_ns()));
	ring->unreadable = true;
	ck_assert(drain_is_past(ring, mono_ns()));
}
END_TEST

/* While the store is behind, no ring is taken from faster than at a rate; the rest comes later. */
START_TEST(test_behind)
{
	const uint32_t n = 20000;
	int64_t taken;
	uint32_t i;
	bool more;

	for (i = 0; i < n; i++)
		fake_scope(&f, 0, 2, i, i + 1);
	p.drain.behind = true;
	ring->taken_ns = mono_ns();
	taken = drain_ring(ring, &more);
	ck_assert_int_lt(taken, n * 24);
	ck_assert(more);
	p.drain.behind = false;
	taken += drain_ring(ring, &more);
	ck_assert_int_eq(taken, n * 24);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_drain");
	TCase *t = tcase_create("drain");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_tables_before_lanes);
	tcase_add_test(t, test_session_first);
	tcase_add_test(t, test_session_said_when_taken);
	tcase_add_loop_test(t, test_sessions_in_order, 0, 2);
	tcase_add_loop_test(t, test_a_burst_in_order, 0, 2);
	tcase_add_test(t, test_a_later_mark_waits);
	tcase_add_test(t, test_now_of_a_burst);
	tcase_add_test(t, test_laps);
	tcase_add_test(t, test_quarantine);
	tcase_add_test(t, test_gone);
	tcase_add_test(t, test_nearly_gone);
	tcase_add_test(t, test_bad_tail);
	tcase_add_test(t, test_heals);
	tcase_add_test(t, test_now_and_counts);
	tcase_add_test(t, test_now_unchanged);
	tcase_add_test(t, test_asks_for_own);
	tcase_add_loop_test(t, test_asks, 0, 2);
	tcase_add_test(t, test_notes_in_turn);
	tcase_add_test(t, test_journal_stuck);
	tcase_add_test(t, test_past);
	t = tcase_create("large");
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup_large, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_budget);
	tcase_add_test(t, test_whole);
	tcase_add_test(t, test_joining);
	tcase_add_loop_test(t, test_threads_take_turns, 0, 2);
	tcase_add_test(t, test_gpu_work_comes_ahead);
	tcase_add_test(t, test_gpu_work_waits_behind_others);
	tcase_add_test(t, test_behind);
	return s;
}
