/* SPDX-License-Identifier: MIT. cupti_callback.c: what the backend makes of CUPTI's callbacks, and
 * names. */
#include <semaphore.h>
#include <sys/mman.h>

#include "cupti_help.h"
#include "cupti_peek.h"

START_TEST(one_record_per_launch)
{
	static const struct {
		uint32_t cbid, flags;
	} calls[] = {{LAUNCH, 0}, {GRAPH_LAUNCH, LAUNCH_GRAPH}, {H2D, LAUNCH_COPY},
		{SET8, LAUNCH_SET}, {776, LAUNCH_COPY | LAUNCH_GRAPH}};
	const struct rec_launch *l;
	size_t i;

	fake_enter(PATH_KIND_SCOPE, "outer");
	for (i = 0; i < 5; i++) {
		api(calls[i].cbid, 100 + (uint32_t)i);
		ck_assert_uint_eq(core.recs, i + 1);
		l = &core.rec[i].u.launch;
		ck_assert_uint_eq(REC_TYPE(l->hdr), REC_LAUNCH);
		ck_assert_uint_eq(REC_FLAGS(l->hdr), calls[i].flags);
		ck_assert_uint_eq(REC_ID(l->hdr), me.path);
		ck_assert_uint_eq(l->correlation, 100 + i);
		ck_assert_uint_eq(l->epoch, 3);
		ck_assert_uint_eq(l->api, calls[i].cbid);
		ck_assert_uint_ne(l->clock, 0);
		ck_assert_str_eq(fake_name(l->name), i == 0 ? "a_kernel" : "");
	}
	ck_assert_uint_eq(agent_launched(), 5);
	api(1, 7);    /* not a launch */
	api(5000, 8); /* of a newer library */
	ck_assert_uint_eq(core.recs, 5);
	fake_exit();
}
END_TEST

START_TEST(what_moves_nothing_is_no_launch)
{
	static const uint32_t calls[] = {H2D, SET8, 281, 306, 423, 430};
	const struct {
		uint64_t to, from;
		size_t count;
	} nothing = {1, 2, 0}, one = {1, 2, 1};
	uint64_t data;
	int32_t ret = 0;
	struct cupti_callback d = {.ret_value = &ret, .correlation_data = &data};
	size_t i, k;

	for (i = 0; i < 12; i++) {
		if (i == 6)
			api(BEGIN, 1); /* of any stream: launches are written at EXIT */
		for (k = 0; k < 2; k++) {
			d.params = k == 0 ? (const void *)&nothing : (const void *)&one;
			for (d.site = SITE_ENTER; d.site <= SITE_EXIT; d.site++)
				cupti_on_callback(NULL, DOMAIN_DRIVER, calls[i % 6], &d);
			ck_assert_uint_eq(fake_records(REC_LAUNCH), i + k);
		}
	}
	ck_assert_uint_eq(agent_launched(), 12);
	d.params = &nothing; /* a kernel's parameters are other ones */
	for (d.site = SITE_ENTER; d.site <= SITE_EXIT; d.site++)
		cupti_on_callback(NULL, DOMAIN_DRIVER, LAUNCH, &d);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 13);
	api(288, 9); /* nor those of a copy in two dimensions */
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 14);
}
END_TEST

START_TEST(copies_are_timed)
{
	const struct rec_launch *l;

	atomic_store(&cupti.waits, true);
	driver(H2D, SITE_ENTER, 1, 0);
	ck_assert_uint_eq(core.recs, 0);
	driver(H2D, SITE_EXIT, 1, 0);
	ck_assert_uint_eq(core.recs, 1);
	l = &core.rec[0].u.launch;
	ck_assert_uint_eq(REC_FLAGS(l->hdr), LAUNCH_COPY | LAUNCH_TIMED);
	ck_assert_uint_lt(l->name, UINT32_MAX);
	api(276, 2); /* comes back when it is done */
	ck_assert_uint_eq(
		REC_FLAGS(core.rec[1].u.launch.hdr), LAUNCH_COPY | LAUNCH_TIMED | LAUNCH_BLOCKS);
	driver(H2D, SITE_ENTER, 3, 0);
	driver(H2D, SITE_EXIT, 3, 1); /* failed */
	api(LAUNCH, 4);
	ck_assert_uint_eq(core.recs, 3);
	ck_assert_uint_eq(REC_FLAGS(core.rec[2].u.launch.hdr), 0);
	ck_assert_uint_eq(agent_launched(), 3);
}
END_TEST

/* Written when the call is back, with its end; what fails or makes a node is none; off: as ever. */
START_TEST(launches_that_end)
{
	const struct rec_launch_ended *l;

	cupti_set_odd(ODD_QUEUE, true);
	driver(LAUNCH, SITE_ENTER, 1, 0);
	ck_assert_uint_eq(core.recs, 0);
	driver(LAUNCH, SITE_EXIT, 1, 0);
	ck_assert_uint_eq(core.recs, 1);
	l = (const struct rec_launch_ended *)(const void *)&core.rec[0].u;
	ck_assert_uint_eq(REC_FLAGS(l->launch.hdr), LAUNCH_ENDS);
	ck_assert_uint_eq(REC_BYTES(l->launch.hdr), sizeof(*l));
	ck_assert(l->launch.clock != 0 && l->end >= l->launch.clock);
	ck_assert_uint_eq(l->launch.correlation, 1);
	ck_assert_uint_eq(l->launch.epoch, 3);
	driver(LAUNCH, SITE_ENTER, 2, 0);
	driver(LAUNCH, SITE_EXIT, 2, 1); /* failed */
	ck_assert_uint_eq(core.recs, 1);
	atomic_store(&cupti.waits, true); /* a copy says both */
	api(H2D, 3);
	ck_assert_uint_eq(
		REC_FLAGS(core.rec[1].u.launch.hdr), LAUNCH_COPY | LAUNCH_TIMED | LAUNCH_ENDS);
	driver(LAUNCH, SITE_ENTER, 4, 0);
	cupti_set_odd(ODD_QUEUE, false); /* meanwhile */
	driver(LAUNCH, SITE_EXIT, 4, 0);
	driver(LAUNCH, SITE_ENTER, 5, 0);
	ck_assert_uint_eq(core.recs, 4);
	cupti_set_odd(ODD_QUEUE, true);
	driver(LAUNCH, SITE_EXIT, 5, 0);
	ck_assert_uint_eq(core.recs, 4);
	ck_assert_uint_eq(REC_BYTES(core.rec[2].u.launch.hdr), sizeof(struct rec_launch));
	ck_assert_uint_eq(REC_BYTES(core.rec[3].u.launch.hdr), sizeof(struct rec_launch));
	ck_assert_uint_eq(agent_launched(), 4);
	cupti_set_odd(ODD_QUEUE, false);
}
END_TEST

START_TEST(op_is_told)
{
	fake_enter(PATH_KIND_OP, "op");
	api(LAUNCH, 1);
	ck_assert_uint_eq(REC_FLAGS(core.rec[0].u.launch.hdr), LAUNCH_OP);
	fake_exit();
}
END_TEST

START_TEST(captured_launches_are_none)
{
	api(BEGIN, 1);
	captured(2, 501);
	api(LAUNCH, 3); /* on another stream meanwhile: a real one, at its exit */
	driver(LAUNCH, SITE_ENTER, 4, 0);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 1);
	driver(LAUNCH, SITE_EXIT, 4, 1); /* failed */
	api(END, 5);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 1);
	ck_assert_uint_eq(core.rec[0].u.launch.correlation, 3);
	driver(LAUNCH, SITE_ENTER, 6, 0); /* no capture is open: at once */
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 2);
	driver(LAUNCH, SITE_EXIT, 6, 0);
	ck_assert_uint_eq(agent_launched(), 2);
}
END_TEST

START_TEST(failed_end_does_not_end)
{
	api(BEGIN, 1);
	driver(END, SITE_EXIT, 2, CUDA_ILLEGAL_STATE); /* of a stream that does not capture */
	captured(3, 501);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 0);
	driver(END, SITE_EXIT, 4, 901); /* invalidated: over */
	driver(LAUNCH, SITE_ENTER, 5, 0);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 1);
	driver(END, SITE_EXIT, 6, 0); /* one too many changes nothing */
	driver(LAUNCH, SITE_ENTER, 7, 0);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 2);
}
END_TEST

START_TEST(unseen_capture_costs_one_launch)
{
	captured(1, 501); /* the capture began before we looked */
	captured(2, 502);
	captured(3, 503);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 1);
	ck_assert_uint_eq(agent_launched(), 0); /* and nobody waits for it */
	api(END, 4);
	driver(LAUNCH, SITE_ENTER, 5, 0);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 2);
}
END_TEST

START_TEST(failed_launch_is_not_pending)
{
	driver(LAUNCH, SITE_ENTER, 1, 0);
	driver(LAUNCH, SITE_EXIT, 1, 700);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 1);
	ck_assert_uint_eq(agent_launched(), 0);
}
END_TEST

START_TEST(nodes_keep_their_path)
{
	uint32_t path;

	fake_enter(PATH_KIND_SCOPE, "layer");
	path = me.path;
	api(BEGIN, 1);
	captured(2, 501);
	api(END, 3);
	fake_exit();
	cloned(900, 501, 77);
	ck_assert_uint_eq(cupti_node(900).path, path);
	resource(RES_EXEC_DESTROY_STARTING, 0, 0, 77);
	cupti_graph_reap(true);
	cupti_graph_reap(true);
	ck_assert_uint_eq(cupti_node(900).path, PATH_ROOT);
	ck_assert_uint_eq(cupti_node(501).path, path);
}
END_TEST

/* What is given in a capture is of the next kernel node, and of its copies; what comes after the last
 * one is of that. */
START_TEST(nodes_take_what_is_given)
{
	api(BEGIN, 1);
	ck_assert_uint_eq(core.captures, 1);
	captured(2, 501);
	core.given = 7;
	captured(3, 502);
	captured(4, 503);
	cloned(902, 502, 77);
	cloned(903, 502, 78);
	core.given = 9;
	api(END, 5);
	ck_assert_uint_eq(core.captures, 0);
	ck_assert_uint_eq(cupti_node(501).given, 0);
	ck_assert_uint_eq(cupti_node(502).given, 7);
	ck_assert_uint_eq(cupti_node(503).given, 9);
	ck_assert_uint_eq(cupti_node(902).given, 7);
	ck_assert_uint_eq(cupti_node(903).given, 7);
	ck_assert_uint_eq(
		core.held, 3); /* of 7; the fake counts no hold for what is left at the end */
	resource(RES_EXEC_DESTROY_STARTING, 0, 0, 77);
	cupti_graph_reap(true);
	cupti_graph_reap(true);
	ck_assert_uint_eq(core.held, 2);
	core.given = 11; /* and nobody is there to take it */
	resource(RES_GRAPH_DESTROY_STARTING, 0, 0, 1);
	api(BEGIN, 6);
	api(END, 7);
	ck_assert_uint_eq(core.given_lost, 11);
}
END_TEST

START_TEST(reentry_is_refused)
{
	int saved;

	ck_assert(agent_enter(&saved));
	api(LAUNCH, 1);
	agent_leave(saved);
	ck_assert_uint_eq(core.recs, 0);
}
END_TEST

/* A handler's launch that is refused leaves alone what is known of the call that it interrupted. */
START_TEST(refused_call_inside_of_another)
{
	int saved;

	setup();
	driver(LAUNCH, SITE_ENTER, 1, 0);
	ck_assert(agent_enter(&saved)); /* in the callback of the node */
	api(LAUNCH, 2);
	agent_leave(saved);
	resource(RES_NODE_CREATED, 11, 0, 1);
	driver(LAUNCH, SITE_EXIT, 1, 0);
	ck_assert_uint_eq(agent_launched(), 0);
	ck_assert_int_eq(cupti.captures, 1);
	api(LAUNCH, 3); /* waits until it is known to be none, and is one */
	ck_assert_uint_eq(agent_launched(), 1);
}
END_TEST

START_TEST(fatal_error_silences)
{
	const struct cupti_state s = {.result = 12};

	cupti_on_callback(NULL, DOMAIN_STATE, STATE_FATAL_ERROR, &s);
	api(LAUNCH, 1);
	ck_assert_uint_eq(core.recs, 0);
	(void)backend_cupti.flush(false);
	(void)backend_cupti.flush(false);
	ck_assert_uint_eq(core.recs, 1); /* told once */
	ck_assert_uint_eq(REC_TYPE(core.rec[0].u.launch.hdr), REC_GPU);
	ck_assert_uint_eq(REC_FLAGS(core.rec[0].u.launch.hdr), GPU_FAILED);
}
END_TEST

START_TEST(names_follow_modules)
{
	char text[32] = "first";
	const uint32_t first = cupti_symbol(text);

	ck_assert_str_eq(fake_name(first), "first");
	ck_assert_uint_eq(cupti_kernel_name(text, 0), first);
	memcpy(text, "other", 5);
	ck_assert_uint_eq(cupti_symbol(text), first); /* same module: the address is enough */
	ck_assert_uint_eq(cupti_kernel_name(text, 0), first);
	cupti_on_callback(
		NULL, DOMAIN_RESOURCE, RES_MODULE_UNLOAD_STARTING, &(struct cupti_resource){0});
	ck_assert_str_eq(fake_name(cupti_symbol(text)), "other");
	ck_assert_uint_eq(cupti_kernel_name(text, 0), first); /* delivered before the unload */
	ck_assert_str_eq(fake_name(cupti_kernel_name(text, 1)), "other");
}
END_TEST

/* A kernel's name whose module is gone by the time its record is read. */
START_TEST(gone_text_does_not_crash)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char buf[64];
	uint32_t id;

	ck_assert_ptr_ne(p, MAP_FAILED);
	memcpy(p + 4090, "crosses_a_page", 15);
	ck_assert_uint_eq(cupti_peek(p + 4090, buf, sizeof(buf)), 14);
	ck_assert_str_eq(buf, "crosses_a_page");
	ck_assert_uint_eq(cupti_peek(p + 4090, buf, 8), 7);
	ck_assert_str_eq(buf, "crosses");
	id = cupti_kernel_name(p + 4090, 0);
	ck_assert_str_eq(fake_name(id), "crosses_a_page");
	ck_assert_int_eq(munmap(p, 8192), 0);
	ck_assert_uint_eq(cupti_kernel_name(p + 4090, 1), id); /* the last that was known */
	ck_assert_uint_eq(cupti_kernel_name(p + 100, 1), NAME_NONE);
	ck_assert_uint_eq(cupti_kernel_name(NULL, 1), NAME_NONE);
}
END_TEST

START_TEST(crowded_symbols_stay_right)
{
	static char text[40000][8];
	uint32_t i;

	for (i = 0; i < 40000; i++)
		(void)snprintf(text[i], sizeof(text[i]), "k%u", i % 50);
	for (i = 0; i < 40000; i++)
		ck_assert_str_eq(fake_name(cupti_symbol(text[i])), text[i]);
}
END_TEST

#define PER_THREAD 20000u
static void *launcher(void *arg)
{
	uint32_t i;

	for (i = 0; i < PER_THREAD; i++)
		api(LAUNCH, i);
	return arg;
}

START_TEST(threads_lose_no_count)
{
	pthread_t t[4];
	uint32_t i;

	for (i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, launcher, NULL), 0);
	for (i = 0; i < 4; i++)
		(void)pthread_join(t[i], NULL);
	ck_assert_uint_eq(agent_launched(), 4 * PER_THREAD);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 4 * PER_THREAD);
}
END_TEST

/* --- taking CUPTI out --- */

static sem_t wanted;
static _Atomic uint32_t finalized;

static int f_callback(uint32_t on, void *s, uint32_t domain, uint32_t cbid)
{
	(void)on, (void)s, (void)domain, (void)cbid;
	return 0;
}

static int f_domain(uint32_t on, void *s, uint32_t domain)
{
	(void)s;
	ck_assert_uint_eq(domain, DOMAIN_RUNTIME);
	if (on != 0)
		(void)sem_post(&wanted);
	return 0;
}

static int f_unsubscribe(void *s)
{
	(void)s;
	return 0;
}

static int f_finalize(void)
{
	atomic_fetch_add(&finalized, 1);
	return 0;
}

static void *leaver(void *arg)
{
	*(bool *)arg = cupti_finalize_in_call(*(bool *)arg ? 60000 : 1);
	return NULL;
}

static pthread_t leave(bool *waits_then_done)
{
	pthread_t t;

	cupti.api.enable_callback = f_callback;
	cupti.api.enable_domain = f_domain;
	cupti.api.unsubscribe = f_unsubscribe;
	cupti.api.finalize = f_finalize;
	atomic_store(&cupti.level, LEVEL_NONE);
	ck_assert_int_eq(sem_init(&wanted, 0, 0), 0);
	ck_assert_int_eq(pthread_create(&t, NULL, leaver, waits_then_done), 0);
	ck_assert_int_eq(sem_wait(&wanted), 0);
	return t;
}

static void left(pthread_t t, const bool *done, uint32_t times)
{
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert(*done);
	ck_assert_uint_eq(atomic_load(&finalized), times);
	core.recs = 0;
	atomic_store(&cupti.level, LEVEL_ON);
	api(LAUNCH, 9); /* records as before */
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 1);
}

static void runtime(enum cupti_site site)
{
	const struct cupti_callback d = {.site = site};

	cupti_on_callback(NULL, DOMAIN_RUNTIME, 211, &d);
}

/* At the end of a call inside of another, CUPTI would never see the other's end. */
START_TEST(taken_out_at_the_end_of_an_outermost_call)
{
	bool done = true;
	pthread_t t = leave(&done);
	int i;

	runtime(SITE_ENTER);
	for (i = 0; i < 100; i++)
		api(LAUNCH, 1);
	ck_assert_uint_eq(atomic_load(&finalized), 0);
	runtime(SITE_EXIT);
	left(t, &done, 1);

	done = true; /* the runtime's call had begun before anybody looked */
	t = leave(&done);
	driver(LAUNCH, SITE_EXIT, 1, 0);
	api(LAUNCH, 1);
	api(LAUNCH, 1);
	ck_assert_uint_eq(atomic_load(&finalized), 1);
	runtime(SITE_EXIT);
	left(t, &done, 2);

	done = true; /* a program without the runtime */
	t = leave(&done);
	for (i = 0; i < 16 && atomic_load(&finalized) == 2; i++)
		api(LAUNCH, 1);
	left(t, &done, 3);

	done = false; /* nobody calls */
	t = leave(&done);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert(!done);
	ck_assert_uint_eq(atomic_load(&finalized), 3);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("cupti_callback");
	TCase *t = tcase_create("callback");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, one_record_per_launch);
	tcase_add_test(t, what_moves_nothing_is_no_launch);
	tcase_add_test(t, copies_are_timed);
	tcase_add_test(t, launches_that_end);
	tcase_add_test(t, op_is_told);
	tcase_add_test(t, captured_launches_are_none);
	tcase_add_test(t, failed_end_does_not_end);
	tcase_add_test(t, unseen_capture_costs_one_launch);
	tcase_add_test(t, refused_call_inside_of_another);
	tcase_add_test(t, failed_launch_is_not_pending);
	tcase_add_test(t, nodes_keep_their_path);
	tcase_add_test(t, nodes_take_what_is_given);
	tcase_add_test(t, reentry_is_refused);
	tcase_add_test(t, fatal_error_silences);
	tcase_add_test(t, names_follow_modules);
	tcase_add_test(t, gone_text_does_not_crash);
	tcase_add_test(t, crowded_symbols_stay_right);
	tcase_add_test(t, threads_lose_no_count);
	tcase_add_test(t, taken_out_at_the_end_of_an_outermost_call);
	tcase_set_timeout(t, 120);
	suite_add_tcase(s, t);
	return s;
}
