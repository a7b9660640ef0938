/* SPDX-License-Identifier: MIT. daemon_must.c: callers that break the contracts of the loop and of
 * the room that reads rings: each ends the daemon, in release builds too. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "adopt.h"
#include "daemon_fake.h"
#include "drain.h"
#include "entry.h"
#include "fold.h"
#include "journal.h"
#include "leave.h"
#include "log.h"
#include "loop.h"
#include "reader.h"
#include "rings.h"

static struct protond p;
static struct fake f;
static struct ring *ring;
static char dir[64];

static const struct reader_expect *expected(void)
{
	static struct reader_expect x;

	x = (struct reader_expect){
		.uid = (uint32_t)geteuid(), .store = fake_store, .boot_id = fake_boot};
	return &x;
}

/* A ring that is open, and not adopted. */
static void setup(void)
{
	const struct rlimit none = {0, 0};
	struct err e = {0};

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)snprintf(dir, sizeof(dir), "/dev/shm/protond-must-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	p = (struct protond){.drain.ns = 1000000000u};
	protond_bind(&p);
	p.d.runtime_fd = open(dir, O_RDONLY | O_DIRECTORY);
	p.d.rings_fd = -1;
	p.drain.arena = malloc(DRAIN_BYTES + READER_PIECE);
	ck_assert_msg(journal_open(p.d.runtime_fd, &p.d.journal, &e) == 0, "%s", e.text);
	(void)unlinkat(p.d.runtime_fd, "journal.1", 0); /* whoever aborts cleans up nothing */
	(void)rmdir(dir);
	ck_assert_int_eq(fold_new(NULL, &p.d.fold), 0);
	f = fake_new();
	fake_tables(&f);
	ring = ring_add(&p.rings, f.h.uuid);
	ck_assert_msg(ring_open(ring, dup(f.fd), expected(), &e) == 0, "%s", e.text);
	log_set_level(LOG_ERR);
}

static void teardown(void)
{
	rings_free(&p.rings);
	fold_free(p.d.fold);
	journal_close(p.d.journal);
	free(p.drain.arena);
	fake_free(&f);
	(void)close(p.d.runtime_fd);
}

START_TEST(a_lawful_caller_passes)
{
	const struct ring_origin o = {NULL, 0, "test"};
	uint64_t word;
	bool more;

	ck_assert_int_eq(ring_adopt(ring, &o), 0);
	ck_assert_int_ge(drain_ring(ring, &more), 0);
	ck_assert_int_eq(reader_copy(&ring->reader, 0, 0, sizeof(word), &word), 0);
}
END_TEST

START_TEST(the_end_of_an_entry_that_was_not_begun)
{
	(void)entry_end(&p.entries, 0);
}
END_TEST

static void *flush(void *arg)
{
	(void)entry_flush(arg);
	return NULL;
}

START_TEST(another_thread_than_the_loops)
{
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, flush, &p.entries), 0);
	(void)pthread_join(t, NULL);
}
END_TEST

START_TEST(lanes_drained_before_their_process)
{
	bool more;

	(void)drain_ring(ring, &more);
}
END_TEST

START_TEST(a_ring_opened_twice)
{
	struct err e;

	(void)ring_open(ring, dup(f.fd), expected(), &e);
}
END_TEST

START_TEST(the_end_of_a_process_that_lives)
{
	ring_leave(&p, ring);
}
END_TEST

START_TEST(a_lane_that_is_none)
{
	uint64_t word;

	(void)reader_copy(&ring->reader, ring->reader.h.n_lanes, 0, sizeof(word), &word);
}
END_TEST

START_TEST(a_reader_that_is_not_open)
{
	struct reader closed = {.fd = -1};
	bool moved;

	(void)reader_lanes(&closed, true, &moved);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_must");
	TCase *t = tcase_create("contracts");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_lawful_caller_passes);
	tcase_add_test_raise_signal(t, the_end_of_an_entry_that_was_not_begun, SIGABRT);
	tcase_add_test_raise_signal(t, another_thread_than_the_loops, SIGABRT);
	tcase_add_test_raise_signal(t, lanes_drained_before_their_process, SIGABRT);
	tcase_add_test_raise_signal(t, a_ring_opened_twice, SIGABRT);
	tcase_add_test_raise_signal(t, the_end_of_a_process_that_lives, SIGABRT);
	tcase_add_test_raise_signal(t, a_lane_that_is_none, SIGABRT);
	tcase_add_test_raise_signal(t, a_reader_that_is_not_open, SIGABRT);
	return s;
}
