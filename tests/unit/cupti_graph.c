/* SPDX-License-Identifier: MIT. cupti_graph.c: graph nodes keep the path of their capture while
 * needed. */
#include "quick.h"
#include <pthread.h>
#include <stdlib.h>

#include "cupti_graph.h"

#include "../replay/fake_core.c" /* the engine's core, for the backend alone */

static uint32_t path_of(uint64_t node)
{
	return cupti_node(node).path;
}

static void setup(void)
{
	ck_assert_int_eq(cupti_graph_init(), 0);
}

START_TEST(clone_has_its_originals_path)
{
	cupti_node_created(11, 1, 7, true, 0);
	cupti_node_cloned(22, 11, 901);
	cupti_node_cloned(23, 99, 901); /* of an original that nobody saw */
	ck_assert_uint_eq(path_of(11), 7);
	ck_assert_uint_eq(path_of(22), 7);
	ck_assert_uint_eq(path_of(23), PATH_ROOT);
	ck_assert_uint_eq(path_of(404), PATH_ROOT);
}
END_TEST

START_TEST(clone_outlives_its_graph)
{
	cupti_node_created(11, 1, 7, true, 0);
	cupti_node_cloned(22, 11, 901);
	cupti_graph_gone(1);
	cupti_graph_reap(true);
	cupti_graph_reap(true);
	ck_assert_uint_eq(path_of(11), PATH_ROOT);
	ck_assert_uint_eq(path_of(22), 7);
	ck_assert_uint_eq(cupti_graph_nodes(), 1);
}
END_TEST

/* Activity of a destroyed graph may still be under way: one whole flush must pass. */
START_TEST(destroyed_stays_until_delivered)
{
	cupti_node_created(11, 1, 7, true, 0);
	cupti_graph_gone(1);
	ck_assert_uint_eq(path_of(11), 7);
	cupti_graph_reap(false);
	cupti_graph_reap(false); /* launches are pending: not yet */
	ck_assert_uint_eq(path_of(11), 7);
	cupti_graph_reap(true);
	ck_assert_uint_eq(path_of(11), PATH_ROOT);
	ck_assert_uint_eq(cupti_graph_nodes(), 0);
}
END_TEST

START_TEST(single_node_gone)
{
	cupti_node_created(1, 5, 10, true, 0);
	cupti_node_created(2, 5, 20, true, 0);
	cupti_node_created(3, 5, 30, true, 0);
	cupti_node_gone(2);
	cupti_node_gone(2);
	cupti_graph_gone(5);
	cupti_graph_gone(5);
	cupti_graph_reap(true);
	cupti_graph_reap(true);
	ck_assert_uint_eq(cupti_graph_nodes(), 0);
}
END_TEST

START_TEST(id_used_again_while_the_old_one_dies)
{
	cupti_node_created(1, 5, 10, true, 0);
	cupti_graph_gone(5);
	cupti_node_created(1, 6, 60, true, 0);
	ck_assert_uint_eq(path_of(1), 60);
	cupti_graph_reap(true);
	cupti_graph_reap(true);
	ck_assert_uint_eq(path_of(1), 60);
	ck_assert_uint_eq(cupti_graph_nodes(), 1);
	cupti_graph_gone(6);
	cupti_graph_reap(true);
	cupti_graph_reap(true);
	ck_assert_uint_eq(cupti_graph_nodes(), 0);
}
END_TEST

/* Graphs come and go for ever: memory is used again. */
START_TEST(many_graphs_do_not_leak)
{
	uint32_t g;
	uint64_t n;

	for (g = 1; g <= 3000; g++) {
		for (n = 0; n < 1000; n++)
			cupti_node_created(g * 1000ull + n, g, (uint32_t)n + 2, true, 0);
		ck_assert_uint_eq(path_of(g * 1000ull + 500), 502);
		cupti_graph_gone(g);
		cupti_graph_reap(true);
	}
	cupti_graph_reap(true);
	ck_assert_uint_eq(cupti_graph_nodes(), 0);
	ck_assert_uint_eq(agent_counts()->paths_refused, 0);
}
END_TEST

START_TEST(full_table_is_counted)
{
	uint64_t n;

	for (n = 1; n <= (1u << 20) + 10; n++)
		cupti_node_created(n, 1, 3, true, 0);
	ck_assert_uint_eq(cupti_graph_nodes(), 1u << 20);
	ck_assert_uint_eq(agent_counts()->paths_refused, 10);
	cupti_graph_clear();
	ck_assert_uint_eq(cupti_graph_nodes(), 0);
	cupti_node_created(5, 1, 9, true, 0);
	ck_assert_uint_eq(path_of(5), 9);
}
END_TEST

static void *builder(void *arg)
{
	const uint32_t g = (uint32_t)(uintptr_t)arg;
	uint64_t n, round;

	for (round = 0; round < 200; round++) {
		for (n = 0; n < 50; n++)
			cupti_node_created(g * 1000ull + n, g, g, true, 0);
		cupti_graph_gone(g);
	}
	return NULL;
}

START_TEST(builders_beside_lookups)
{
	pthread_t t[3];
	uintptr_t i;
	uint32_t k, p;

	for (i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, builder, (void *)(i + 2)), 0);
	for (k = 0; k < 20000; k++) {
		p = path_of((k % 3 + 2) * 1000 + k % 50);
		ck_assert(p == PATH_ROOT || p == k % 3 + 2);
		if (k % 100 == 0)
			cupti_graph_reap(true);
	}
	for (i = 0; i < 3; i++)
		(void)pthread_join(t[i], NULL);
	cupti_graph_reap(true);
	cupti_graph_reap(true);
	ck_assert_uint_eq(cupti_graph_nodes(), 0);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("cupti_graph");
	TCase *t = tcase_create("graph");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, clone_has_its_originals_path);
	tcase_add_test(t, clone_outlives_its_graph);
	tcase_add_test(t, destroyed_stays_until_delivered);
	tcase_add_test(t, single_node_gone);
	tcase_add_test(t, id_used_again_while_the_old_one_dies);
	tcase_add_test(t, many_graphs_do_not_leak);
	tcase_add_test(t, full_table_is_counted);
	tcase_add_test(t, builders_beside_lookups);
	tcase_set_timeout(t, 120);
	suite_add_tcase(s, t);
	return s;
}
