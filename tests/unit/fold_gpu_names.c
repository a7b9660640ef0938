/* SPDX-License-Identifier: MIT. fold_gpu_names.c: names that a program gave to its GPUs and their
 * streams. */
#include "gpu_label.h"
#include "state.h"

#include "fold_job.h"
#include "fold_shop.h"

static void device_told(void)
{
	const struct ring_device d = {
		.uuid = {1}, .ordinal = 3, .type = DEVICE_CUDA, .name = "H200"};

	tape_table(&t, job.ring, TABLE_DEVICES, 0, 1, &d, sizeof(d));
	fold_take(f, &t);
}

static void named(uint32_t name, uint32_t ordinal, uint32_t stream)
{
	struct rec_named r = {.ordinal = ordinal, .stream = stream};

	lane_put(&gpu, REC_NAMED, 0, name, &r, sizeof(r));
}

static void is(const struct batch *b, const char *label, const char *streams)
{
	ck_assert_uint_eq(b->device.n, 1);
	ck_assert_str_eq(b->device.row[0].label, label);
	ck_assert_str_eq(b->device.row[0].streams, streams);
	ck_assert_str_eq(b->device.row[0].name, "H200");
}

/* Before its device is known, after, once more, and of another GPU; a daemon that comes back knows
 * them. */
START_TEST(of_a_gpu_and_its_streams)
{
	struct shop shop = {0};
	struct batch b;

	start(1, 10);
	named(N_A, 3, NAMED_GPU);
	named(N_B, 3, 7);
	named(N_OP, 4, 7);
	drain(&gpu, 20);
	b = collect();
	ck_assert_uint_eq(b.device.n, 0);
	batch_free(&b);
	device_told();
	b = collect();
	is(&b, "a", "7 b\n");
	batch_free(&b);
	named(N_KERN, 3, 17);
	named(N_OP, 3, 7);
	drain(&gpu, 30);
	b = collect();
	is(&b, "a", "17 kern\n7 op\n");
	shop_put(&shop, &b);
	fold_free(f);
	f = fold_of(NULL);
	b = shop_load(&shop, true);
	ck_assert_int_eq(fold_restore(f, &b), 0);
	batch_free(&b);
	device_told(); /* it is read again, and its row is written again */
	b = collect();
	is(&b, "a", "17 kern\n7 op\n");
	batch_free(&b);
	shop_free(&shop);
}
END_TEST

static void object_named(uint32_t name, uint32_t ordinal, uint64_t object)
{
	struct rec_named r = {.ordinal = ordinal, .stream = NAMED_OBJECT, .object = object};

	lane_put(&gpu, REC_NAMED, 0, name, &r, sizeof(r));
}

/* Contexts and events stand beside streams, whatever number they have. */
START_TEST(of_contexts_and_events)
{
	char words[GPU_LABEL_BYTES];
	struct batch b;

	start(1, 10);
	device_told();
	named(N_A, 3, 7);
	object_named(N_B, 3, GPU_CONTEXT(7));
	object_named(N_OP, 3, GPU_EVENT(7));
	object_named(N_OP, 3, 3ull << 56 | 7); /* of what kind? */
	drain(&gpu, 20);
	b = collect();
	is(&b, "", "7 a\nc7 b\ne7 op\n");
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 1);
	gpu_object_name(b.device.row[0].streams, GPU_EVENT(7), words);
	ck_assert_str_eq(words, "op");
	gpu_object_name(b.device.row[0].streams, GPU_EVENT(0x77), words);
	ck_assert_str_eq(words, "");
	batch_free(&b);
}
END_TEST

START_TEST(of_no_name)
{
	struct batch b;

	start(1, 10);
	named(1u << 20, 3, 7);
	named(NAME_NONE, 3, 7);
	drain(&gpu, 20);
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 2);
	batch_free(&b);
}
END_TEST

/* So many streams have no room, nor so many GPUs: counted. */
START_TEST(more_than_there_is_room_for)
{
	struct batch b;
	uint32_t i, n = 0;

	start(1, 10);
	device_told();
	for (i = 0; i < 1000; i++) {
		named(N_NCCL, 3, 100000 + i);
		n += (i + 1) * strlen("100000 ncclAllReduce\n") >= GPU_STREAMS_BYTES;
	}
	for (i = 0; i<100; i++, n += 3 + i> RING_DEVICES_MAX + 2)
		named(N_A, 4 + i, NAMED_GPU);
	drain(&gpu, 20);
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_NVTX), n);
	ck_assert_uint_lt(strlen(b.device.row[0].streams), GPU_STREAMS_BYTES);
	batch_free(&b);
}
END_TEST

START_TEST(text_of_streams)
{
	char s[GPU_STREAMS_BYTES] = "", words[GPU_STREAM_WORDS];
	size_t n;

	ck_assert_ptr_null(gpu_object_label(s, 7, &n));
	ck_assert_ptr_null(gpu_object_label(NULL, 7, &n));
	ck_assert_ptr_null(gpu_object_label("7", 7, &n));
	ck_assert_ptr_null(gpu_object_label("7 ", 7, &n));
	ck_assert(gpu_object_label_put(s, 17, "copies"));
	ck_assert(gpu_object_label_put(s, 7, "two\nlines"));
	ck_assert_str_eq(s, "17 copies\n7 two lines\n");
	ck_assert(gpu_object_label_put(s, 17, ""));
	ck_assert_str_eq(s, "7 two lines\n17 \n");
	gpu_stream_words(s, 7, 0, words);
	ck_assert_str_eq(words, "stream 7: two lines");
	gpu_stream_words(s, 7, 2, words);
	ck_assert_str_eq(words, "stream 7: two lines, 3");
	gpu_stream_words(s, 17, 1, words);
	ck_assert_str_eq(words, "stream 17, 2");
	memset(words, 'x', 62);
	(void)snprintf(words + 62, 8, "\xc3\xa9yy");
	ck_assert(gpu_object_label_put(s, 9, words)); /* no character is cut in two */
	ck_assert_ptr_nonnull(gpu_object_label(s, 9, &n));
	ck_assert_uint_eq(n, 62);
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
	Suite *s = suite_create("gpu_names");
	TCase *c = tcase_create("gpu_names");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, of_a_gpu_and_its_streams);
	tcase_add_test(c, of_contexts_and_events);
	tcase_add_test(c, of_no_name);
	tcase_add_test(c, more_than_there_is_room_for);
	tcase_add_test(c, text_of_streams);
	suite_add_tcase(s, c);
	return s;
}
