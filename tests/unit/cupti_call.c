/* SPDX-License-Identifier: MIT. cupti_call.c: calls that wait, that allocate, and with the switch api every one. */
#include "cupti_help.h"

static char here; /* the context that calls are in; streams are of another one */

/* A default stream is the context's that is given; any other must be of that, or none is given. */
static int stream_id(void *context, void *stream, uint8_t thread, uint32_t *ret)
{
	if (stream == NULL ? context != &here : context != NULL || thread != 0)
		return CUPTI_INVALID_STREAM;
	*ret = stream != NULL ? 100 + (uint32_t)(uintptr_t)stream : 7u + 2 * thread;
	return 0;
}

/* One call: ENTER and EXIT of this domain's callback with these parameters. */
static void enter_exit(
	uint32_t domain, uint32_t cbid, struct cupti_callback d, enum cupti_site from, int to)
{
	int site;

	for (site = (int)from; site <= to; site++) {
		d.site = (uint32_t)site;
		cupti_on_callback(NULL, domain, cbid, &d);
	}
}

START_TEST(calls_that_wait)
{
	static const struct {
		uint32_t domain, cbid;
		uint64_t params[2];
		uint32_t kind, stream;
		uint64_t event;
	} calls[] = {{DOMAIN_DRIVER, 126, {5, 0}, 0, 105, 0},
		{DOMAIN_RUNTIME, 131, {5, 0}, 0, 105, 0},
		{DOMAIN_RUNTIME, 137, {0xe1, 0}, 1, UINT32_MAX, 0xe1},
		{DOMAIN_RUNTIME, 165, {0, 0}, 2, UINT32_MAX, 0},
		{DOMAIN_RUNTIME, 147, {6, 0xe2}, 3, 106, 0xe2},
		{DOMAIN_DRIVER, 119, {0xe3, 4}, 4, 104, 0xe3},
		{DOMAIN_DRIVER, 243, {1, 2}, 5, UINT32_MAX, 0},
		{DOMAIN_RUNTIME, 22, {1, 0}, 6, UINT32_MAX, 0},
		{DOMAIN_DRIVER, 379, {1, 0}, 7, UINT32_MAX, 0},
		{DOMAIN_DRIVER, 126, {0, 0}, 0, 7, 0}, /* default streams from here on */
		{DOMAIN_DRIVER, 126, {1, 0}, 0, 7, 0}, {DOMAIN_DRIVER, 126, {2, 0}, 0, 9, 0},
		{DOMAIN_RUNTIME, 131, {0, 0}, 0, 7, 0},
		{DOMAIN_RUNTIME, 239, {0, 0}, 0, 9, 0}, /* _ptsz */
		{DOMAIN_RUNTIME, 239, {1, 0}, 0, 7, 0}, {DOMAIN_RUNTIME, 239, {5, 0}, 0, 105, 0},
		{DOMAIN_RUNTIME, 147, {0, 0xe2}, 3, 7, 0xe2},
		{DOMAIN_RUNTIME, 135, {0xe3, 0}, 4, 7, 0xe3},
		{DOMAIN_DRIVER, 441, {0xe3, 0}, 4, 9, 0xe3}};
	const struct rec_call *r;
	struct cupti_callback d = {.context_uid = 2, .context = &here};
	uint32_t i;

	cupti.api.stream_id = stream_id;
	fake_enter(PATH_KIND_SCOPE, "outer");
	d.params = calls[0].params;
	enter_exit(DOMAIN_DRIVER, 126, d, SITE_ENTER, SITE_EXIT);
	ck_assert_uint_eq(core.recs, 0); /* off: nothing */
	atomic_store(&cupti.waits, true);
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		d.correlation = 100 + i;
		d.params = calls[i].params;
		d.function = calls[i].cbid == 239   ? "cudaStreamSynchronize_ptsz_v7000"
			     : calls[i].cbid == 441 ? "cuEventRecord_ptsz"
						    : "any";
		enter_exit(calls[i].domain, calls[i].cbid, d, SITE_ENTER, SITE_EXIT);
		ck_assert_uint_eq(core.recs, i + 1);
		r = &core.rec[i].u.call;
		ck_assert_uint_eq(REC_TYPE(r->hdr), REC_CALL);
		ck_assert_uint_eq(REC_ID(r->hdr), me.path);
		ck_assert_uint_eq(r->kind, calls[i].kind);
		ck_assert_uint_eq(r->stream, calls[i].stream);
		ck_assert_uint_eq(r->event, calls[i].event);
		ck_assert_uint_eq(r->correlation, 100 + i);
		ck_assert_uint_eq(r->context, 2);
		ck_assert_uint_eq(r->epoch, 3);
		ck_assert(r->begin != 0 && r->end >= r->begin);
	}
	fake_exit();
}
END_TEST

START_TEST(a_call_inside_of_another_is_part_of_it)
{
	struct cupti_callback d = {.correlation = 9};

	atomic_store(&cupti.waits, true);
	enter_exit(DOMAIN_RUNTIME, 22, d, SITE_ENTER, SITE_ENTER); /* cudaFree waits, then frees */
	enter_exit(DOMAIN_DRIVER, 17, d, SITE_ENTER, SITE_EXIT);
	enter_exit(DOMAIN_DRIVER, 245, d, SITE_ENTER, SITE_EXIT);
	ck_assert_uint_eq(core.recs, 0);
	enter_exit(DOMAIN_RUNTIME, 22, d, SITE_EXIT, SITE_EXIT);
	ck_assert_uint_eq(fake_records(REC_CALL), 1);
	ck_assert_uint_eq(core.rec[0].u.call.kind, 6);
	d.correlation = 10; /* one whose beginning came before the switch */
	enter_exit(DOMAIN_RUNTIME, 165, d, SITE_EXIT, SITE_EXIT);
	enter_exit(DOMAIN_DRIVER, 5000, d, SITE_ENTER, SITE_EXIT); /* of a newer library */
	enter_exit(DOMAIN_RUNTIME, 5000, d, SITE_ENTER, SITE_EXIT);
	ck_assert_uint_eq(core.recs, 1);
}
END_TEST

static void called_is(uint32_t correlation, const char *name)
{
	const struct rec_called *r = &core.rec[core.recs - 1].u.called;

	ck_assert_uint_eq(REC_TYPE(r->hdr), REC_CALLED);
	ck_assert_uint_eq(REC_ID(r->hdr), me.path);
	ck_assert_uint_eq(r->correlation, correlation);
	ck_assert_uint_eq(r->epoch, 3);
	ck_assert_uint_ne(r->begin, 0);
	ck_assert_str_eq(fake_name(r->name), name);
}

/* Every call once, the outermost; launches, captures and calls that wait among them. */
START_TEST(with_api_every_call_is_a_record)
{
	static const struct {
		uint32_t domain, cbid;
		const char *function, *name;
		int32_t result;
		uint32_t kind, flags;
	} calls[] = {
		{DOMAIN_RUNTIME, 17, "cudaGetDevice_v3020", "cudaGetDevice", 0, 8, CALL_API},
		{DOMAIN_RUNTIME, 131, "cudaStreamSynchronize_v3020", "cudaStreamSynchronize", 0, 0,
			CALL_API},
		{DOMAIN_RUNTIME, 373, "cudaMallocAsync_v11020", "cudaMallocAsync", 2, 5,
			CALL_API | CALL_FAILED | CALL_ONLY_MEMORY},
		{DOMAIN_RUNTIME, 239, "cudaStreamSynchronize_ptsz_v7000",
			"cudaStreamSynchronize_ptsz", 0, 0, CALL_API},
		{DOMAIN_RUNTIME, 10, "cudaGetLastError_v3020", "cudaGetLastError", 2, 8, CALL_API},
		{DOMAIN_DRIVER, 126, "cuStreamSynchronize", "cuStreamSynchronize", 0, 0, CALL_API},
		{DOMAIN_DRIVER, 243, "cuMemAlloc_v2", "cuMemAlloc_v2", 2, 5,
			CALL_API | CALL_FAILED},
		{DOMAIN_DRIVER, 117, "cuLaunchGridAsync", "cuLaunchGridAsync", 0, 8, CALL_API},
		{DOMAIN_DRIVER, 119, "cuEventRecord", "cuEventRecord", 600, 4, CALL_API},
		{DOMAIN_DRIVER, 496, "cuStreamBeginCapture_ptsz", "cuStreamBeginCapture_ptsz", 1, 8,
			CALL_API | CALL_FAILED},
		{DOMAIN_DRIVER, CBID_MAX - 1, "cuNewest_v12030", "cuNewest", 0, 8, CALL_API},
		{DOMAIN_DRIVER, CBID_MAX, "cuBeyond", NULL, 0, 8, CALL_API},
		{DOMAIN_RUNTIME, 18, NULL, NULL, 0, 8, CALL_API},
	};
	uint64_t own = 0;
	struct cupti_callback d = {.context_uid = 2, .correlation_data = &own};
	const struct rec_call *r;
	uint32_t i, n = 0, k;

	cupti_set_odd(ODD_API, true);
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		d.correlation = 100 + i;
		d.function = calls[i].function;
		d.ret_value = &calls[i].result;
		for (k = 0; k < 2; k++, n++) { /* the second time its name is known */
			enter_exit(calls[i].domain, calls[i].cbid, d, SITE_ENTER, SITE_EXIT);
			ck_assert_uint_eq(fake_records(REC_CALL) + fake_records(REC_CALLED), n + 1);
			if (k == 1 && calls[i].kind == 8 && calls[i].flags == CALL_API &&
				calls[i].result == 0 && calls[i].name != NULL) {
				called_is(100 + i, calls[i].name);
				continue;
			}
			r = &core.rec[core.recs - 1].u.call;
			ck_assert_uint_eq(REC_TYPE(r->hdr), REC_CALL);
			ck_assert_uint_eq(r->kind, calls[i].kind);
			ck_assert_uint_eq(REC_FLAGS(r->hdr), calls[i].flags);
			ck_assert_uint_eq(r->correlation, 100 + i);
			ck_assert(r->begin != 0 && r->end >= r->begin);
			if (calls[i].name != NULL)
				ck_assert_str_eq(fake_name(r->name), calls[i].name);
			else
				ck_assert_uint_eq(r->name, NAME_NONE);
		}
	}
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 2);
	d.function = "cudaLaunchKernel_v7000"; /* what is inside of it is part of it */
	d.ret_value = NULL;
	enter_exit(DOMAIN_RUNTIME, 211, d, SITE_ENTER, SITE_ENTER);
	enter_exit(DOMAIN_DRIVER, 307, d, SITE_ENTER, SITE_EXIT);
	enter_exit(DOMAIN_RUNTIME, 211, d, SITE_EXIT, SITE_EXIT);
	ck_assert_uint_eq(fake_records(REC_CALL) + fake_records(REC_CALLED), n + 1);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 3);
	cupti_set_odd(ODD_API, false); /* off: nothing, though its callbacks still come */
	enter_exit(DOMAIN_RUNTIME, 17, d, SITE_ENTER, SITE_EXIT);
	ck_assert_uint_eq(core.recs, n + 4);
}
END_TEST

/* A call that waits, inside of one that is api's alone: sync and alloc have what they have without. */
START_TEST(with_api_a_call_inside_of_another_is_still_the_others)
{
	struct cupti_callback d = {
		.correlation = 8, .context_uid = 2, .function = "cudaElse_v3020"};
	const struct rec_call *r;
	bool waits = _i != 0;

	cupti_set_odd(ODD_API, true);
	atomic_store(&cupti.waits, waits);
	enter_exit(DOMAIN_RUNTIME, 17, d, SITE_ENTER, SITE_ENTER);
	enter_exit(DOMAIN_DRIVER, 126, d, SITE_ENTER, SITE_ENTER); /* cuStreamSynchronize */
	enter_exit(DOMAIN_DRIVER, 121, d, SITE_ENTER, SITE_EXIT);  /* its part */
	enter_exit(DOMAIN_DRIVER, 126, d, SITE_EXIT, SITE_EXIT);
	enter_exit(
		DOMAIN_DRIVER, 599, d, SITE_ENTER, SITE_EXIT); /* cuMemAllocAsync: alloc is off */
	ck_assert_uint_eq(fake_records(REC_CALL), waits);
	enter_exit(DOMAIN_RUNTIME, 17, d, SITE_EXIT, SITE_EXIT);
	ck_assert_uint_eq(fake_records(REC_CALL), waits + 1u);
	r = &core.rec[core.recs - 1].u.call;
	ck_assert(r->kind == 8 && REC_FLAGS(r->hdr) == CALL_API);
	if (waits) {
		r = &core.rec[core.recs - 2].u.call;
		ck_assert(r->kind == 0 && REC_FLAGS(r->hdr) == 0);
	}
}
END_TEST

/* While it is off, the callbacks of other calls are not even asked for. */
START_TEST(callbacks_are_asked_for_when_they_are_wanted)
{
	cupti_call_enable();
	ck_assert_uint_eq(n_enabled, 0);
	atomic_store(&cupti.waits, true);
	cupti_call_enable();
	ck_assert_uint_gt(n_enabled, 30);
	ck_assert_uint_lt(n_enabled, 60);
	cupti_set_odd(ODD_API, true);
	n_enabled = 0;
	cupti_call_enable();
	ck_assert_uint_eq(n_enabled, 2 * CBID_MAX - 10); /* what only reads */
}
END_TEST

/* With alloc alone: calls that allocate or free, whether they wait or not, and no other. */
START_TEST(calls_of_memory)
{
	static const struct {
		uint32_t domain, cbid, kind, flags;
	} calls[] = {{DOMAIN_RUNTIME, 20, 5, 0}, {DOMAIN_RUNTIME, 22, 6, 0},
		{DOMAIN_RUNTIME, 27, 7, 0}, {DOMAIN_RUNTIME, 373, 5, CALL_ONLY_MEMORY},
		{DOMAIN_DRIVER, 600, 6, CALL_ONLY_MEMORY}, {DOMAIN_DRIVER, 243, 5, 0}};
	struct cupti_callback d = {.correlation = 1};
	uint32_t i;

	fake_enter(PATH_KIND_SCOPE, "outer");
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		enter_exit(calls[i].domain, calls[i].cbid, d, SITE_ENTER, SITE_EXIT);
	ck_assert_uint_eq(core.recs, 0);
	atomic_store(&cupti.allocs, true);
	enter_exit(DOMAIN_DRIVER, 126, d, SITE_ENTER, SITE_EXIT); /* cuStreamSynchronize */
	api(H2D, 1);                                              /* is not timed */
	ck_assert_uint_eq(core.recs, 1);
	ck_assert_uint_eq(REC_FLAGS(core.rec[0].u.launch.hdr), LAUNCH_COPY);
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		d.correlation = 100 + i;
		enter_exit(calls[i].domain, calls[i].cbid, d, SITE_ENTER, SITE_EXIT);
		ck_assert_uint_eq(core.recs, i + 2);
		ck_assert_uint_eq(core.rec[i + 1].u.call.kind, calls[i].kind);
		ck_assert_uint_eq(REC_FLAGS(core.rec[i + 1].u.call.hdr), calls[i].flags);
		ck_assert_uint_eq(REC_ID(core.rec[i + 1].u.call.hdr), me.path);
	}
	atomic_store(&cupti.allocs, false);
	atomic_store(&cupti.waits, true); /* what waits for nothing is not of sync */
	enter_exit(DOMAIN_RUNTIME, 373, d, SITE_ENTER, SITE_EXIT);
	ck_assert_uint_eq(core.recs, 7);
	fake_exit();
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("cupti_call");
	TCase *t = tcase_create("calls");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, calls_that_wait);
	tcase_add_test(t, a_call_inside_of_another_is_part_of_it);
	tcase_add_test(t, with_api_every_call_is_a_record);
	tcase_add_loop_test(t, with_api_a_call_inside_of_another_is_still_the_others, 0, 2);
	tcase_add_test(t, callbacks_are_asked_for_when_they_are_wanted);
	tcase_add_test(t, calls_of_memory);
	suite_add_tcase(s, t);
	return s;
}
