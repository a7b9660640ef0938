/* SPDX-License-Identifier: MIT. cupti_pool.c: activity buffers go round, and none is lost or given
 * twice. */
#include "quick.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cupti_pool.h"

#include "../replay/fake_core.c" /* the engine's core, for the backend alone */

#define BUFFER (1u << 20)

static uint64_t drained_bytes, bad_bytes;
static uint32_t order[64], n_order;

static uint64_t walk(const struct cupti_buffer *b)
{
	uint64_t i;

	for (i = 0; i < b->valid; i++)
		bad_bytes += b->bytes[i] != b->bytes[0];
	if (n_order < 64 && b->valid > 0)
		order[n_order++] = b->bytes[0];
	drained_bytes += b->valid;
	return b->valid;
}

static uint8_t *take(size_t *ret_bytes)
{
	uint8_t *p = NULL;
	size_t records = 1;

	cupti_on_request(&p, ret_bytes, &records);
	ck_assert_ptr_nonnull(p);
	ck_assert_uint_eq((uintptr_t)p % 8, 0);
	ck_assert_uint_eq(records, 0);
	return p;
}

static void setup(void)
{
	(void)setenv("PROTOND_CUPTI_BUFFERS", "4", 1);
	ck_assert_int_eq(cupti_pool_init(), 0);
	cupti.stride[KIND_CONCURRENT_KERNEL] = 216;
}

START_TEST(comes_zeroed_and_in_order)
{
	uint32_t round, i;
	size_t bytes, k;
	uint8_t *p;

	for (round = 0; round < 5; round++) {
		n_order = 0;
		for (i = 0; i < 4; i++) {
			p = take(&bytes);
			ck_assert_uint_eq(bytes, BUFFER);
			for (k = 0; k < bytes; k++)
				ck_assert_uint_eq(p[k], 0);
			memset(p, (int)i + 1, 1000);
			cupti_on_complete(NULL, 0, p, bytes, 1000);
		}
		ck_assert_uint_eq(cupti_pool_drain(walk), 4000);
		for (i = 0; i < 4; i++)
			ck_assert_uint_eq(order[i], i + 1);
	}
	ck_assert_uint_eq(bad_bytes, 0);
}
END_TEST

START_TEST(empty_pool_is_counted)
{
	const uint32_t kind = KIND_CONCURRENT_KERNEL;
	size_t bytes, at;
	uint8_t *p;
	uint32_t i;

	for (i = 0; i < 4; i++)
		(void)take(&bytes);
	p = take(&bytes);
	ck_assert_uint_lt(bytes, BUFFER);
	ck_assert_uint_eq(agent_counts()->gpu_refused, 1);
	for (at = 0; at < 10 * 216; at += 216)
		memcpy(p + at, &kind, sizeof(kind));
	cupti_on_complete(NULL, 0, p, bytes, at);
	ck_assert_uint_eq(agent_counts()->gpu_dropped, 10);
	ck_assert_uint_eq(cupti_pool_drain(walk), 0); /* its records are not read as data */
	for (i = 0; i < 100; i++) /* beyond the spares too something can be written to */
		memset(take(&bytes), 0, 1);
	ck_assert_uint_eq(agent_counts()->gpu_refused, 101);
}
END_TEST

START_TEST(grows_under_pressure_up_to_a_ceiling)
{
	size_t bytes;
	uint32_t i, whole = 0;

	for (i = 0; i < 40; i++) {
		(void)take(&bytes);
		whole += bytes == BUFFER;
		cupti_pool_grow();
	}
	ck_assert_uint_eq(whole, 16); /* four times the four it began with */
	ck_assert(cupti_pool_pressed());
}
END_TEST

/* They are no more free than what CUPTI has: the agent's thread waits for the daemon, and others launch. */
START_TEST(completed_ones_that_wait_make_it_grow)
{
	uint8_t *p[4];
	size_t bytes;
	uint32_t i;

	for (i = 0; i < 4; i++)
		p[i] = take(&bytes);
	for (i = 0; i < 4; i++)
		cupti_on_complete(NULL, 0, p[i], BUFFER, 64);
	cupti_pool_grow();
	for (i = 0; i < 8; i++) {
		(void)take(&bytes);
		ck_assert_uint_eq(bytes, BUFFER);
	}
	ck_assert_uint_eq(agent_counts()->gpu_refused, 0);
	ck_assert_uint_eq(cupti_pool_drain(walk), 4 * 64);
}
END_TEST

START_TEST(foreign_buffers_are_left_alone)
{
	static uint8_t mine[64];

	cupti_on_complete(NULL, 0, mine, sizeof(mine), sizeof(mine));
	ck_assert_uint_eq(cupti_pool_drain(walk), 0);
}
END_TEST

START_TEST(lying_length_is_cut)
{
	size_t bytes;
	uint8_t *p = take(&bytes);

	cupti_on_complete(NULL, 0, p, bytes, (size_t)1 << 40);
	ck_assert_uint_eq(cupti_pool_drain(walk), BUFFER);
}
END_TEST

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 200u /* the walk looks at a whole buffer each time */
#else
#define ROUNDS 20000u
#endif
static _Atomic uint64_t sent;
static _Atomic uint32_t left;

static void *user(void *arg)
{
	size_t bytes, records;
	uint8_t *p;
	uint32_t i;

	for (i = 0; i < ROUNDS; i++) {
		cupti_on_request(&p, &bytes, &records);
		if (bytes == BUFFER) { /* ours alone: nobody else writes it meanwhile */
			memset(p, (int)(intptr_t)arg, 128);
			atomic_fetch_add(&sent, 128);
		}
		cupti_on_complete(NULL, 0, p, bytes, bytes == BUFFER ? 128 : 0);
	}
	atomic_fetch_sub(&left, 1);
	return NULL;
}

START_TEST(many_threads)
{
	pthread_t t[4];
	intptr_t i;

	atomic_store(&left, 4);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, user, (void *)(i + 1)), 0);
	while (atomic_load(&left) > 0)
		(void)cupti_pool_drain(walk);
	for (i = 0; i < 4; i++)
		(void)pthread_join(t[i], NULL);
	(void)cupti_pool_drain(walk);
	ck_assert_uint_eq(drained_bytes, atomic_load(&sent));
	ck_assert_uint_eq(bad_bytes, 0);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("cupti_pool");
	TCase *t = tcase_create("pool");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, comes_zeroed_and_in_order);
	tcase_add_test(t, empty_pool_is_counted);
	tcase_add_test(t, grows_under_pressure_up_to_a_ceiling);
	tcase_add_test(t, completed_ones_that_wait_make_it_grow);
	tcase_add_test(t, foreign_buffers_are_left_alone);
	tcase_add_test(t, lying_length_is_cut);
	tcase_add_test(t, many_threads);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return s;
}
