/* SPDX-License-Identifier: MIT. daemon_sums.c: sums that a test opens behind a tail, into a real journal
 * and a real fold: when they are taken, how often they count, and what becomes of those that lie. */
#include <fcntl.h>
#include <stdio.h>

#include "adopt.h"
#include "daemon_fake.h"
#include "drain.h"
#include "drain_sums.h"
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
static uint64_t looked;

static void start_session(void)
{
	struct j_verb v = {.verb = VERB_START, .match = MATCH_USER, .uid = (uint32_t)geteuid()};

	v.session[0] = 1;
	ck_assert_int_eq(entry_put(&p.entries, J_VERB, NULL, &v, sizeof(v)), 0);
}

static void setup(void)
{
	const struct reader_expect x = {
		.uid = (uint32_t)geteuid(), .store = fake_store, .boot_id = fake_boot};
	const struct ring_origin o = {NULL, 0, "test"};
	struct err e = {0};

	memset(&p, 0, sizeof(p));
	protond_bind(&p);
	(void)snprintf(dir, sizeof(dir), "/dev/shm/protond-sums-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	p.d.runtime_fd = open(dir, O_RDONLY | O_DIRECTORY);
	p.d.rings_fd = -1;
	p.drain.ns = 3600ull * 1000000000u;
	p.drain.arena = malloc(DRAIN_BYTES + READER_PIECE);
	ck_assert_msg(journal_open(p.d.runtime_fd, &p.d.journal, &e) == 0, "%s", e.text);
	ck_assert_int_eq(fold_new(NULL, &p.d.fold), 0);
	f = fake_new_sized(FAKE_BYTES);
	fake_tables(&f);
	(void)fake_path(&f, 0, fake_name(&f, "step")); /* 2 */
	ring = ring_add(&p.rings, f.h.uuid);
	ck_assert_msg(ring_open(ring, dup(f.fd), &x, &e) == 0, "%s", e.text);
	ck_assert_int_eq(ring_adopt(ring, &o), 0);
	start_session();
	log_set_level(LOG_ERR);
}

static void teardown(void)
{
	char path[96];

	rings_free(&p.rings);
	fold_free(p.d.fold);
	journal_close(p.d.journal);
	free(p.drain.arena);
	fake_free(&f);
	(void)snprintf(path, sizeof(path), "%s/journal.1", dir);
	(void)unlink(path);
	(void)close(p.d.runtime_fd);
	(void)rmdir(dir);
}

/* Behind the lane's tail: n scopes of 20 ns. Returns where. */
static struct rec_sum *open_one(uint32_t lane, uint32_t n)
{
	struct ring_lane *l = fake_lane(&f, lane);
	const uint64_t tail = l->tail, at = l->sums > tail ? l->sums : tail;
	struct rec_sum r = {.hdr = REC_HDR(sizeof(r), REC_SUM, 0, 0, 2),
		.opened = mono_ns(),
		.time = 20 * n,
		.min = 20,
		.max = 20,
		.count[20] = n};

	l->tail = at;
	fake_put(&f, lane, &r, sizeof(r));
	l->sums = l->tail;
	l->tail = tail;
	return (struct rec_sum *)(void *)fake_at(&f, lane, at);
}

static void add(struct rec_sum *r, uint32_t n)
{
	r->count[20] += n;
	r->time += 20 * n;
}

static void close_all(uint32_t lane)
{
	fake_lane(&f, lane)->tail = fake_lane(&f, lane)->sums;
}

static int64_t drain(void)
{
	bool more;
	const int64_t n = drain_ring(ring, &more);

	ck_assert(n < 0 || !more);
	return n;
}

static int count_sums(void *arg, const struct journal_entry *e)
{
	*(uint32_t *)arg += e->type == J_SUMS;
	return 0;
}

/* SUMS entries since the last call. */
static uint32_t journaled(void)
{
	uint32_t n = 0;
	int gap;

	ck_assert(entry_flush(&p.entries));
	ck_assert_int_eq(journal_replay(p.d.journal, looked, count_sums, &n, &gap), 0);
	looked = journal_position(p.d.journal);
	return n;
}

struct top {
	uint64_t count, sum_ns;
};

static void top_cell(void *arg, const struct fold_cell *c)
{
	((struct top *)arg)->count += c->count;
	((struct top *)arg)->sum_ns += c->sum_ns;
}

static uint64_t counted(void)
{
	const uint8_t session[16] = {1};
	struct top t = {0};

	fold_top(p.d.fold, session, &(struct fold_top_wish){.n = 8}, top_cell, &t);
	ck_assert_uint_eq(t.sum_ns, 20 * t.count);
	return t.count;
}

/* As if that were long ago: they are due again. */
static void later(void)
{
	ring->sums_ns -= SUMS_NS;
}

START_TEST(grow_and_end)
{
	struct rec_sum *r = open_one(0, 5);
	uint32_t visit;

	ck_assert_int_eq(drain(), 0);
	ck_assert_uint_eq(journaled(), 1);
	ck_assert_uint_eq(counted(), 5);
	visit = ring->visit;
	later();
	ck_assert_int_eq(drain(), 0);
	ck_assert_uint_eq(journaled(), 0); /* nothing new */
	ck_assert_uint_eq(ring->visit, visit + 1);
	add(r, 100);
	ck_assert_int_eq(drain(), 0);
	ck_assert_uint_eq(journaled(), 0); /* not yet due */
	later();
	ck_assert_int_eq(drain(), 0);
	ck_assert_uint_eq(journaled(), 1);
	ck_assert_uint_eq(counted(), 105);
	add(r, 1);
	close_all(0);
	fake_scope(&f, 0, 2, r->opened, r->opened + 20);
	ck_assert_int_eq(drain(), sizeof(*r) + 24);
	ck_assert_uint_eq(counted(), 107);
	ck_assert_uint_eq(ring->reader.lane[0].bad, 0);
}
END_TEST

/* Who waits has them at once, and only when a window that began after it asked has taken them. */
START_TEST(waited_for)
{
	struct rec_sum *r = open_one(0, 5);
	uint64_t asked;

	ck_assert_int_eq(drain(), 0);
	add(r, 1);
	asked = mono_ns();
	ck_assert(!drain_is_past(ring, asked));
	fake_scope(&f, 1, 2, 10, 30);
	p.entries.stuck = true;
	ck_assert_int_eq(drain(), -ENOSPC);
	ck_assert(!drain_is_past(ring, asked));
	p.entries.stuck = false;
	ck_assert_int_eq(drain(), 24);
	ck_assert(drain_is_past(ring, asked));
	ck_assert_uint_eq(counted(), 7);
}
END_TEST

/* Lane bytes alone are not all that was there. */
START_TEST(whole_without_sums)
{
	struct rec_sum *r = open_one(0, 5);
	uint64_t asked;

	ck_assert_int_eq(drain(), 0);
	add(r, 1);
	asked = mono_ns();
	fake_scope(&f, 1, 2, 10, 30);
	ck_assert_int_eq(drain(), 24); /* nobody has asked, and it is not time */
	ck_assert_uint_gt(ring->whole_ns, asked);
	ck_assert(!drain_is_past(ring, asked));
	ck_assert_int_eq(drain(), 0);
	ck_assert(drain_is_past(ring, asked));
	ck_assert_uint_eq(counted(), 7);
}
END_TEST

/* It died when it had added to the count, and not to the time. */
START_TEST(dead)
{
	struct rec_sum *first = open_one(0, 1), *r = open_one(0, 5);
	struct ring_lane *l = fake_lane(&f, 0);

	ck_assert_int_eq(drain(), 0);
	l->redo.count = 20ull << 32 | 6;
	l->redo.sum = 120;
	l->redo.value = 20;
	l->redo.last = 7;
	l->redo.pos = l->tail + sizeof(*first) + 1;
	r->count[20]++;
	ring->state = RING_GONE;
	ck_assert_int_eq(drain(), 0);
	ck_assert_uint_eq(counted(), 7);
	ck_assert_int_eq(drain(), 0);
	ck_assert_uint_eq(counted(), 7);
	/* where no sum begins, or beyond the lane: nothing */
	add(first, 1);
	l->redo.pos += 8;
	ck_assert_int_eq(drain(), 0);
	l->redo.pos = UINT64_MAX;
	add(first, 1);
	ck_assert_int_eq(drain(), 0);
	ck_assert_uint_eq(counted(), 9);
}
END_TEST

/* Of a ring that is given up, they are among what is lost. */
START_TEST(given_up)
{
	(void)open_one(0, 5);
	ring->state = RING_GONE;
	ck_assert_int_eq(drain_give_up(ring), 0);
	ck_assert(ring->reader.lane[0].quarantined);
	ck_assert(!ring->reader.lane[1].quarantined);
	ck_assert_uint_eq(counted(), 0);
}
END_TEST

static const struct lie {
	const char *label;
	uint64_t sums, word; /* word: of the record, 0: as it is */
	bool bad;            /* it costs the lane */
} lies[] = {
	{"not aligned", 196, 0, false},
	{"beyond the lane", FAKE_BYTES + 8, 0, false},
	{"half a record", 96, 0, true},
	{"another lap", 192, REC_HDR(192, REC_SUM, 1, 0, 2), true},
	{"too short for its type", 192, REC_HDR(64, REC_SUM, 0, 0, 2), true},
	{"no length", 192, REC_HDR(0, REC_SUM, 0, 0, 2), true},
};

START_TEST(lying)
{
	const struct lie *c = &lies[_i];
	struct rec_sum *r = open_one(0, 5);
	int i;

	if (c->word != 0)
		r->hdr = c->word;
	fake_lane(&f, 0)->sums = c->sums;
	for (i = 0; i < (int)READER_BAD_TICKS; i++) {
		later();
		ck_assert_int_ge(drain(), 0);
	}
	ck_assert_msg(ring->reader.lane[0].quarantined == c->bad, "%s", c->label);
	ck_assert_uint_eq(counted(), 0);
	(void)open_one(1, 3); /* the others go on */
	later();
	ck_assert_int_eq(drain(), 0);
	ck_assert_uint_eq(counted(), 3);
}
END_TEST

/* A thread is killed when its sum has the scope, and it still says that it is in it. */
START_TEST(summed_and_still_open)
{
	const uint64_t begin = mono_ns();
	struct ring_lane *l = fake_lane(&f, 0), *s = fake_lane(&f, 1);
	struct j_now now[4];

	fake_scope(&f, 0, 2, 10, 30);
	(void)open_one(1, 5);
	s->state = LANE_SUMS;
	s->tid = l->tid;
	l->now.depth = 1;
	l->now.frame[0].path = 2;
	l->now.frame[0].begin = begin;
	s->redo.last = begin + 20;
	s->redo.value = _i == 0 ? 20 : 19;
	ck_assert_int_ge(drain(), 0);
	ck_assert_int_eq(drain_now_block(ring), 0);
	ck_assert_int_eq(fold_open_scopes(p.d.fold, f.h.uuid, now, 4), _i);
}
END_TEST

/* --- an entry is applied in one go: of a ring in many sessions it is small --- */

struct sizes {
	uint32_t n, most, starts; /* starts: in entries that go on behind one */
};

static int measure(void *arg, const struct journal_entry *e)
{
	const struct j_lane *l = (const void *)(e + 1);
	const uint8_t *b = (const uint8_t *)(l + 1);
	struct sizes *s = arg;
	uint32_t at;
	uint64_t h;

	if (e->type != J_SUMS && e->type != J_LANE)
		return 0;
	s->n++;
	s->most = l->bytes > s->most ? l->bytes : s->most;
	for (at = 0; at < l->bytes; at += REC_BYTES(h)) {
		memcpy(&h, b + at, 8);
		s->starts += REC_TYPE(h) == REC_SESSION && REC_FLAGS(h) == SESSION_START &&
			     at + REC_BYTES(h) < l->bytes;
	}
	return 0;
}

static struct sizes measured(void)
{
	struct sizes s = {0};
	int gap;

	ck_assert(entry_flush(&p.entries));
	ck_assert_int_eq(journal_replay(p.d.journal, looked, measure, &s, &gap), 0);
	looked = journal_position(p.d.journal);
	return s;
}

static void join_many(uint32_t sessions)
{
	struct j_verb v = {
		.verb = VERB_START, .uid = (uint32_t)geteuid(), .mono_ns = 1, .match = MATCH_USER};
	uint32_t i;

	for (i = 2; i <= sessions; i++) {
		v.session[0] = (uint8_t)i;
		ck_assert_int_eq(entry_put(&p.entries, J_VERB, NULL, &v, sizeof(v)), 0);
	}
	(void)measured();
}

static const struct cut {
	uint32_t sessions, most;
} cuts[] = {{1, 16384}, {8, 16384}, {16, 8192}, {64, 2048}};

START_TEST(small_entries)
{
	const struct cut *c = &cuts[_i];
	struct sizes s;
	uint32_t i;

	join_many(c->sessions);
	ck_assert_uint_eq(drain_entry_bytes(ring), c->most);
	for (i = 0; i < 2000; i++)
		fake_scope(&f, 0, 2, 10 + i, 30 + i);
	ck_assert_int_eq(drain(), 48000);
	s = measured();
	ck_assert_uint_le(s.most, c->most);
	ck_assert_uint_eq(s.n, (2000 + c->most / 24 - 1) / (c->most / 24));
	ck_assert_uint_eq(counted(), 2000);
	for (i = 0; i < 300; i++)
		(void)open_one(1, 5);
	later();
	ck_assert_int_eq(drain(), 0);
	s = measured();
	ck_assert_uint_le(s.most, c->most);
	ck_assert_uint_eq(s.n, (300 + c->most / 192 - 1) / (c->most / 192));
	ck_assert_uint_eq(counted(), 3500);
	later();
	ck_assert_int_eq(drain(), 0);
	ck_assert_uint_eq(measured().n, 0); /* nothing new */
	ck_assert_uint_eq(ring->reader.lane[1].bad, 0);
}
END_TEST

/* Whatever the clocks say: those that are later than the look are not marks of the window. */
START_TEST(one_start_an_entry)
{
	struct sizes s;
	uint32_t i;

	for (i = 0; i < 40; i++) {
		fake_scope(&f, 0, 2, 10, 30);
		fake_session(&f, 0, SESSION_START, i, 2, _i != 0 ? UINT64_MAX / 4 : 50 + i);
		fake_session(&f, 0, SESSION_FINALIZE, i, 2, _i != 0 ? UINT64_MAX / 4 : 51 + i);
	}
	ck_assert_int_eq(drain(), 40 * (24 + 2 * 64));
	s = measured();
	ck_assert_uint_eq(s.n, 41);
	ck_assert_uint_eq(s.starts, 0);
	ck_assert_uint_eq(counted(), 40);
}
END_TEST

/* A thread adds while the pieces of a lane are taken one by one, in later ticks. */
START_TEST(sums_go_on)
{
	struct rec_sum *r[300];
	uint32_t i, n = 0, ticks = 0;
	bool more = true;

	join_many(64);
	fake_scope(&f, 1, 2, 10, 30);
	ck_assert_int_eq(drain(), 24); /* and the tables, which take their time */
	for (i = 0; i < 300; i++)
		r[i] = open_one(0, 5);
	later();
	for (p.drain.ns = 0; more; ticks++) {
		ck_assert_int_eq(drain_ring(ring, &more), 0);
		add(r[ticks % 300], 1);
		n++;
	}
	ck_assert_uint_gt(ticks, 25);
	later();
	p.drain.ns = 3600ull * 1000000000u;
	ck_assert_int_eq(drain(), 0);
	ck_assert_uint_eq(counted(), 1501 + n);
	close_all(0);
	ck_assert_int_eq(drain(), 300 * sizeof(struct rec_sum));
	ck_assert_uint_eq(counted(), 1501 + n);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_sums");
	TCase *t = tcase_create("sums");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, grow_and_end);
	tcase_add_test(t, waited_for);
	tcase_add_test(t, whole_without_sums);
	tcase_add_test(t, dead);
	tcase_add_test(t, given_up);
	tcase_add_loop_test(t, summed_and_still_open, 0, 2);
	tcase_add_loop_test(t, small_entries, 0, (int)(sizeof(cuts) / sizeof(cuts[0])));
	tcase_add_loop_test(t, one_start_an_entry, 0, 2);
	tcase_add_test(t, sums_go_on);
	tcase_add_loop_test(t, lying, 0, (int)(sizeof(lies) / sizeof(lies[0])));
	return s;
}
