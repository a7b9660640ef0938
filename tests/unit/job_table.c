/* SPDX-License-Identifier: MIT. job_table.c: tests of the ring's tables and their laws. */
#include "job_engine.h"

static void ready(void)
{
	t_open(NULL, true);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
}

static uint32_t named(const char *prefix, uint32_t i)
{
	char s[64];

	return agent_name(s, (size_t)snprintf(s, sizeof(s), "%s %u", prefix, i));
}

START_TEST(names_are_interned)
{
	static char big[65536];
	uint32_t a, b;

	ready();
	ck_assert_uint_eq(agent_name("", 0), NAME_NONE);
	ck_assert_uint_eq(agent_name("(other)", 7), NAME_OTHER);
	a = agent_name("a\0b", 3);
	ck_assert_uint_ne(a, agent_name("a\0c", 3));
	ck_assert_uint_eq(a, agent_name("a\0b", 3));
	memset(big, 'x', sizeof(big));
	a = agent_name(big, sizeof(big));
	big[40000] = 'y';
	b = agent_name(big, sizeof(big));
	ck_assert_uint_ne(a, b);
	ck_assert_uint_eq(t_v.c->names_cut, 2);
	ck_assert_uint_eq(strlen(view_name(&t_v, a)), NAME_BYTES_MAX);
	ck_assert_int_eq(view_name(&t_v, a)[NAME_BYTES_MAX - 17], '~');
	ck_assert_uint_ne(agent_name(big, NAME_BYTES_MAX), b);
	ck_assert_uint_eq(t_v.c->names_cut, 2);
}
END_TEST

START_TEST(names_for_ever)
{
	ready();
	for (uint32_t i = 0; i < 70000; i++)
		(void)named("step", i);
	ck_assert_uint_eq(t_v.c->names, RING_NAMES);
	ck_assert_uint_ge(t_v.c->names_refused, 70000 - RING_NAMES);
	ck_assert_uint_eq(named("step", 70001), NAME_OTHER);
	ck_assert_uint_ne(named("step", 7), NAME_OTHER);
	view_check_tables(&t_v);
}
END_TEST

START_TEST(text_runs_out)
{
	static char text[NAME_BYTES_MAX];
	uint32_t full = 0;

	ready();
	memset(text, 't', sizeof(text));
	for (uint32_t i = 0; i < RING_NAME_BYTES / NAME_BYTES_MAX + 10; i++) {
		memcpy(text, &i, sizeof(i));
		full += agent_name(text, sizeof(text)) == NAME_OTHER;
	}
	ck_assert_uint_ge(full, 10);
	ck_assert_uint_le(t_v.c->name_bytes, RING_NAME_BYTES);
	ck_assert_uint_eq(t_v.c->names_refused, full);
}
END_TEST

START_TEST(too_many_children)
{
	uint32_t parent, other = 0;

	ready();
	parent = agent_path_child(PATH_ROOT, PATH_KIND_SCOPE, agent_name("p", 1));
	for (uint32_t i = 0; i < PATH_CHILDREN_MAX + 100; i++)
		other = agent_path_child(parent, PATH_KIND_SCOPE, named("step", i));
	ck_assert_str_eq(view_where(&t_v, other), "p/(other)");
	ck_assert_uint_eq(t_v.c->paths_refused, 100);
	/* below it the tree goes on, and other parents are as before */
	other = agent_path_child(other, PATH_KIND_SCOPE, agent_name("x", 1));
	ck_assert_str_eq(view_where(&t_v, other), "p/(other)/x");
	ck_assert_str_eq(
		view_where(&t_v, agent_path_child(PATH_ROOT, PATH_KIND_STATE, NAME_NONE)), "[]");
	view_check_tables(&t_v);
}
END_TEST

/* Once a parent, or the table, is full, what finds no place takes no lock. */
START_TEST(surplus_takes_no_lock)
{
	uint32_t parent, beside, other, n;
	sigset_t mask;

	ready();
	parent = agent_path_child(PATH_ROOT, PATH_KIND_SCOPE, agent_name("p", 1));
	beside = agent_path_child(PATH_ROOT, PATH_KIND_SCOPE, agent_name("q", 1));
	for (uint32_t i = 0; i < PATH_CHILDREN_MAX; i++)
		n = agent_path_child(parent, PATH_KIND_SCOPE, named("step", i));
	other = agent_path_child(parent, PATH_KIND_SCOPE, agent_name("x", 1));
	agent_lock_tables(&mask); /* whoever asks for it now waits for ever */
	ck_assert_uint_eq(agent_path_child(parent, PATH_KIND_SCOPE, agent_name("q", 1)), other);
	ck_assert_uint_eq(agent_path_child(parent, PATH_KIND_STATE, NAME_NONE), other);
	ck_assert_uint_eq(
		agent_path_child(parent, PATH_KIND_SCOPE, named("step", PATH_CHILDREN_MAX - 1)), n);
	agent_unlock_tables(&mask);
	ck_assert_uint_eq(t_v.c->paths_refused, 3);
	for (n = beside; t_v.c->paths_refused == 3; n = parent)
		for (uint32_t i = 0; i < PATH_CHILDREN_MAX && t_v.c->paths_refused == 3; i++) {
			const uint32_t at = agent_path_child(n, PATH_KIND_SCOPE, named("step", i));

			parent = i == 0 ? at : parent;
		}
	other = agent_path_child(beside, PATH_KIND_STATE, NAME_NONE);
	ck_assert_str_eq(view_where(&t_v, other), "q/(other)");
	ck_assert_uint_eq(agent_path_child(other, PATH_KIND_STATE, NAME_NONE), other);
	agent_lock_tables(&mask);
	ck_assert_uint_eq(agent_path_child(beside, PATH_KIND_OP, NAME_NONE), other);
	ck_assert_uint_eq(agent_path_child(other, PATH_KIND_OP, NAME_NONE), other);
	agent_unlock_tables(&mask);
	view_check_tables(&t_v);
}
END_TEST

START_TEST(paths_for_ever)
{
	uint32_t p = PATH_ROOT, last = 0;

	ready();
	for (uint32_t i = 0; i < 40; i++) {
		p = agent_path_child(PATH_ROOT, PATH_KIND_SCOPE, named("parent", i));
		for (uint32_t j = 0; j < 2000; j++)
			last = agent_path_child(p, PATH_KIND_SCOPE, named("child", j));
	}
	ck_assert_uint_le(t_v.c->paths, RING_PATHS);
	ck_assert_str_eq(view_where(&t_v, last), "(other)");
	ck_assert_uint_gt(t_v.c->paths_refused, 10000);
	/* in a full table each parent still gets its (other), and an (other) none of its own */
	for (uint32_t id = 2; id < RING_PATHS - PATH_OTHER_RESERVE; id += 15)
		last = agent_path_child(id, PATH_KIND_SCOPE, agent_name("new", 3));
	ck_assert_uint_gt(t_v.c->paths, RING_PATHS - PATH_OTHER_RESERVE + 3500);
	ck_assert_uint_eq(agent_path_child(last, PATH_KIND_SCOPE, agent_name("new", 3)), last);
	for (uint32_t id = 2; id < RING_PATHS - PATH_OTHER_RESERVE; id++)
		last = agent_path_child(id, PATH_KIND_SCOPE, agent_name("newer", 5));
	ck_assert_uint_eq(t_v.c->paths, RING_PATHS);
	ck_assert_uint_eq(
		agent_path_child(2, PATH_KIND_SCOPE, agent_name("newest", 6)) < RING_PATHS, 1);
	view_check_tables(&t_v);
}
END_TEST

START_TEST(deepest)
{
	uint32_t p = PATH_ROOT;

	ready();
	for (uint32_t i = 0; i < PATH_DEPTH_MAX + 20; i++)
		p = agent_path_child(p, PATH_KIND_SCOPE, named("d", i));
	ck_assert_uint_eq(view_path(&t_v, p)->depth, PATH_DEPTH_MAX);
	ck_assert_uint_eq(agent_path_child(p, PATH_KIND_OP, NAME_NONE), p);
	ck_assert_uint_eq(agent_path_child(UINT32_MAX, PATH_KIND_SCOPE, named("d", 0)),
		agent_path_child(PATH_ROOT, PATH_KIND_SCOPE, named("d", 0)));
	view_check_tables(&t_v);
}
END_TEST

START_TEST(configurations_and_devices)
{
	struct ring_config c = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
	struct ring_device d = {.ordinal = 1, .type = DEVICE_CUDA};

	ready();
	ck_assert_uint_eq(agent_config(&c), 0);
	for (uint32_t i = 1; i < RING_CONFIGS; i++) {
		c.grid[0] = i + 1;
		ck_assert_uint_eq(agent_config(&c), i);
	}
	c.grid[0] = 1;
	ck_assert_uint_eq(agent_config(&c), 0);
	c.grid[0] = 1u << 20;
	ck_assert_uint_eq(agent_config(&c), UINT32_MAX);
	for (uint8_t i = 0; i < RING_DEVICES; i++) {
		d.uuid[0] = i;
		ck_assert_uint_eq(agent_device(&d), i);
	}
	d.uuid[0] = 3;
	ck_assert_uint_eq(agent_device(&d), 3);
	d.uuid[1] = 1;
	ck_assert_uint_eq(agent_device(&d), UINT16_MAX);
}
END_TEST

/* --- several threads at the same tables --- */

enum { SAME = 3000 };
static uint32_t got[4][SAME];

static void *inserts(void *p)
{
	uint32_t *mine = p;

	for (uint32_t i = 0; i < SAME; i++)
		mine[i] = agent_path_child(PATH_ROOT, PATH_KIND_SCOPE, named("same", i));
	return NULL;
}

START_TEST(threads_agree)
{
	pthread_t th[4];

	ready();
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&th[i], NULL, inserts, got[i]), 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_join(th[i], NULL), 0);
	for (int i = 1; i < 4; i++)
		ck_assert_mem_eq(got[i], got[0], sizeof(got[0]));
	ck_assert_uint_eq(t_v.c->paths, 2 + SAME);
	view_check_tables(&t_v);
}
END_TEST

/* --- scopes that find the tables full: counted each time --- */

START_TEST(surplus_scopes_are_counted)
{
	struct seen s[] = {{"(other)", 50, 0}, {NULL, 0, 0}};
	uint32_t name;

	ready();
	for (uint32_t i = 0; i < PATH_CHILDREN_MAX; i++)
		(void)agent_path_child(PATH_ROOT, PATH_KIND_SCOPE, named("step", i));
	ck_assert_uint_eq(t_v.c->paths_refused, 0);
	name = t_new("surplus");
	for (int i = 0; i < 40; i++) {
		t_enter(name);
		t_exit();
	}
	for (int i = 0; i < 10; i++) {
		t_enter(0); /* the process-local table was full */
		t_exit();
	}
	s[0].count = 0;
	(void)view_walk(&t_v, seen_fn, s);
	ck_assert_uint_eq(s[0].count, 50);
	ck_assert_uint_eq(t_v.c->paths_refused, 40);
	ck_assert_uint_eq(t_v.c->names_refused, 10);
}
END_TEST

static void tables(TCase *c)
{
	tcase_add_test(c, names_are_interned);
	tcase_add_test(c, names_for_ever);
	tcase_add_test(c, text_runs_out);
	tcase_add_test(c, too_many_children);
	tcase_add_test(c, surplus_takes_no_lock);
	tcase_add_test(c, paths_for_ever);
	tcase_add_test(c, deepest);
	tcase_add_test(c, configurations_and_devices);
	tcase_add_test(c, threads_agree);
	tcase_add_test(c, surplus_scopes_are_counted);
}

Suite *suite(void)
{
	void (*const all[])(TCase *) = {tables, NULL};

	return t_suite("job_table", all);
}
