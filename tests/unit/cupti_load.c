/* SPDX-License-Identifier: MIT. cupti_load.c: the choice of the library, the stride oracle, the
 * words. */
#include "quick.h"
#include <stdlib.h>
#include <string.h>

#include "cupti_find.h"
#include "cupti_load.h"
#include "cupti_state.h"

#include "../replay/fake_core.c" /* the engine's core, for the backend alone */

/* clang-format off */
/* Strides that libraries were seen to have: kinds 1, 2, 3, 10, 22. */
static const struct row {
	const char *library;
	uint16_t copy, set, kernel, peer;
} rows[] = {
	{"10.2", 64, 64, 144, 72},   {"11.0", 72, 72, 160, 80},   {"11.1", 80, 80, 160, 88},
	{"11.2-11.4", 80, 80, 168, 88}, {"11.6", 88, 88, 176, 96}, {"11.7", 88, 88, 176, 96},
	{"11.8", 88, 88, 200, 96},   {"12.4", 88, 88, 208, 96},   {"13.0", 96, 88, 216, 96},
};
/* clang-format on */

static const struct row *playing;
static int lie; /* 1: steps of 12 bytes, 2: stands still, 3: runs away */

static int stride_now(uint32_t kind)
{
	if (lie != 0)
		return lie == 1 ? 12 : lie == 2 ? 0 : 100000;
	switch (kind) {
	case 1:
		return playing->copy;
	case 2:
		return playing->set;
	case 3:
	case 10:
		return playing->kernel;
	case 22:
		return playing->peer;
	default:
		return -1;
	}
}

static int next(uint8_t *buffer, size_t bytes, void **record)
{
	uint32_t kind;

	(void)bytes;
	memcpy(&kind, buffer, sizeof(kind));
	if (stride_now(kind) < 0)
		return CUPTI_INVALID_KIND;
	*record = *record == NULL ? buffer : (uint8_t *)*record + stride_now(kind);
	return CUPTI_OK;
}

START_TEST(oracle_finds_strides)
{
	uint16_t s[KIND_MAX];
	uint32_t k;

	playing = &rows[_i];
	cupti_strides(next, s);
	for (k = 0; k < KIND_MAX; k++)
		ck_assert_int_eq(s[k], k == 0 || stride_now(k) < 0 ? 0 : stride_now(k));
}
END_TEST

START_TEST(oracle_believes_no_nonsense)
{
	uint16_t s[KIND_MAX];
	uint32_t k;

	lie = _i;
	cupti_strides(next, s);
	for (k = 0; k < KIND_MAX; k++)
		ck_assert_int_eq(s[k], 0);
}
END_TEST

START_TEST(errors_say_what_to_do)
{
	static const struct {
		int result;
		const char *word;
	} want[] = {{39, "torch.profiler"}, {999, "nvidia-smi"}, {15, "too old"}, {35, "NVreg_"},
		{7, "CUPTI error 7"}};
	struct backend_error e = {0};

	ck_assert_int_lt(cupti_error(&e, want[_i].result, "cuptiSubscribe"), 0);
	ck_assert_int_eq(e.code, want[_i].result);
	ck_assert_ptr_nonnull(strstr(e.text, want[_i].word));
	ck_assert_ptr_nonnull(strstr(e.text, "scopes go on"));
	ck_assert_uint_lt(strlen(e.text), sizeof(e.text) - 1);
}
END_TEST

START_TEST(named_library_must_load)
{
	struct backend_status s;
	struct backend_error e = {0};

	(void)setenv("PROTOND_CUPTI_PATH", "/nonexistent/libcupti.so", 1);
	ck_assert_int_lt(backend_cupti.probe(&s, &e), 0);
	ck_assert_ptr_nonnull(strstr(e.text, "PROTOND_CUPTI_PATH"));
	ck_assert_int_lt(backend_cupti.start(false, false, &e), 0);
	ck_assert_uint_eq(backend_cupti.flush(true), 0);
}
END_TEST

/* What the CUPTI that is installed here says, if there is one. */
START_TEST(real_library)
{
	struct backend_error e = {0};
	bool residual;
	int r;

	(void)unsetenv("PROTOND_CUPTI_PATH");
	if (cupti_load(&e) < 0) { /* none here: then that is what is said, with what to do */
		ck_assert_ptr_nonnull(strstr(e.text, "PROTOND_CUPTI_PATH"));
		return;
	}
	ck_assert(!cupti.replay);
	ck_assert_uint_gt(cupti.version, 12);
	if (cupti.version == 130000 || cupti.version == 130001) {
		ck_assert_uint_eq(cupti.stride[KIND_MEMCPY], 96);
		ck_assert_uint_eq(cupti.stride[KIND_MEMSET], 88);
		ck_assert_uint_eq(cupti.stride[KIND_KERNEL], 216);
		ck_assert_uint_eq(cupti.stride[KIND_CONCURRENT_KERNEL], 216);
		ck_assert_uint_eq(cupti.stride[KIND_MEMCPY_PEER], 96);
		ck_assert_uint_eq(cupti.stride[4], 40);
		ck_assert_uint_eq(cupti.stride[8], 184);
		ck_assert_uint_eq(cupti.stride[9], 32);
		ck_assert_uint_eq(cupti.stride[51], 56);
		ck_assert_uint_eq(cupti.stride[6], 0); /* removed in 13.0 */
	}
	r = backend_cupti.start(false, false, &e);
	if (r < 0 && cupti.driver == 0) {
		ck_assert_int_eq(e.code, CUPTI_UNKNOWN);
		ck_assert_ptr_nonnull(strstr(e.text, "no usable NVIDIA driver"));
		ck_assert_int_eq(
			backend_cupti.start(true, false, &e), r); /* again: the same answer */
	}
	ck_assert_int_eq(backend_cupti.stop(false, &residual), 0);
}
END_TEST

/* A forked child calls nothing of CUPTI. */
START_TEST(forked_child_is_silent)
{
	struct backend_error e = {0};
	bool residual = true;

	backend_cupti.forked();
	ck_assert_int_lt(backend_cupti.start(false, false, &e), 0);
	ck_assert_uint_eq(backend_cupti.flush(true), 0);
	ck_assert_int_eq(backend_cupti.stop(true, &residual), 0);
	ck_assert(!residual);
	backend_cupti.exit(10);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("cupti_load");
	TCase *t = tcase_create("load");

	tcase_add_loop_test(t, oracle_finds_strides, 0, (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_loop_test(t, oracle_believes_no_nonsense, 1, 4);
	tcase_add_loop_test(t, errors_say_what_to_do, 0, 5);
	tcase_add_test(t, named_library_must_load);
	tcase_add_test(t, real_library);
	tcase_add_test(t, forked_child_is_silent);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return s;
}
