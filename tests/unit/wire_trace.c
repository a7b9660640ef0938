/* SPDX-License-Identifier: MIT. wire_trace.c: chunks of the timeline: every field that is packed is
 * read again, and bytes that are damaged are refused or keep every place in range. */
#include "quick.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <zstd.h>

#include "draw.h"
#include "trace.h"
#include "trace_differ.h"

#define LISTS_MAX  400u
#define EVENTS_MAX 1500u
#define BURSTS_MAX 60u
#define RAW_LIMIT  (16u << 20) /* a reader takes no more */
#define COUNT(v)   (sizeof(v) / sizeof((v)[0]))

/* --- what a chunk shall hold */

struct model {
	struct trace_chunk c; /* points to the rest */
	uint8_t node[LISTS_MAX][16];
	struct trace_thread thread[LISTS_MAX];
	struct trace_stream stream[LISTS_MAX];
	struct trace_config config[LISTS_MAX];
	const char *text[LISTS_MAX];
	struct trace_scope scope[EVENTS_MAX];
	struct trace_op op[EVENTS_MAX];
	struct trace_metric metric[EVENTS_MAX];
	struct trace_burst burst[BURSTS_MAX];
};

static struct model model_a, model_b;
static uint64_t any64(void)
{
	static const uint64_t edge[] = {0, 1, 127, 128, UINT32_MAX, 1ull << 32, INT64_MAX,
		1ull << 63, UINT64_MAX - 1, UINT64_MAX};

	return below(3) == 0 ? edge[below(COUNT(edge))] : draw() >> below(64);
}

static uint32_t any32(void)
{
	return (uint32_t)any64();
}

/* Far apart, or close together and often backwards; some in one moment. */
static void any_times(uint64_t *ret_begin, uint64_t *ret_end)
{
	uint64_t a = below(2) == 0 ? any64() : 1700000000000000000u + below(1000);
	uint64_t b = below(2) == 0 ? any64() : a + below(9);

	*ret_begin = a < b ? a : b;
	*ret_end = a < b ? b : a;
}

static void make_lists(struct model *m, uint32_t n)
{
	static const char *const texts[] = {"", "a", "a kernel<float, 4>(int)::operator()",
		"µs → 漢字 🙂", "\xff\xfe\x80 is not UTF-8", "\t\n\"\\\x01\x7f"};
	uint32_t i, x;

	for (i = 0; i < n; i++) {
		for (x = 0; x < 16; x++)
			m->node[i][x] = (uint8_t)any32();
		m->thread[i] = (struct trace_thread){any32(), below(n)};
		if (below(3) == 0)
			m->thread[i].name = TRACE_NONE;
		m->stream[i] = (struct trace_stream){any32(), any32(), any32()};
		m->config[i] = (struct trace_config){{any32(), any32(), any32()},
			{any32(), any32(), any32()}, any32(), any32(), any32()};
		m->text[i] = texts[below(COUNT(texts))];
	}
}

#define NO_CALL                      \
	{                            \
		.stream = UINT32_MAX \
	}

static void make_op(struct trace_op *o, uint32_t n)
{
	*o = (struct trace_op){any64(), 0, 0, 0, any32(), below(n), below(n), any32(), below(n),
		TRACE_NONE, (uint8_t)(1 + below(CLASS_OTHER)), (uint8_t)any32()};
	any_times(&o->start, &o->end);
	if (!gpu_class_is_kernel(o->class))
		o->bytes = any64();
	else if (below(3) > 0)
		o->config = below(n);
	if ((o->flags & TRACE_UNLAUNCHED) != 0) {
		o->launched = o->correlation = 0;
		o->thread = TRACE_NONE;
	}
}

static void make_bursts(struct model *m, uint32_t lists, uint32_t n)
{
	for (; m->c.n_bursts < n; m->c.n_bursts++) {
		struct trace_burst *b = &m->burst[m->c.n_bursts];

		*b = (struct trace_burst){0, 0, any64(), below(lists), any32()};
		any_times(&b->begin, &b->end);
	}
}

static const struct trace_chunk *make(
	struct model *m, uint64_t from, uint32_t lists, uint32_t events)
{
	uint32_t i;

	seed = from * 0x9e3779b97f4a7c15; /* not 0 */
	make_lists(m, lists);
	for (i = 0; i < events; i++) {
		m->scope[i] = (struct trace_scope){
			0, 0, below(lists), below(lists), any32(), (uint8_t)any32(), NO_CALL};
		any_times(&m->scope[i].begin, &m->scope[i].end);
		if ((m->scope[i].flags & TRACE_CALL) != 0)
			m->scope[i].call = (struct trace_call){any64(), any32(), any32(),
				(uint8_t)(CLASS_STREAM_SYNC +
					  below(CLASS_MAX - CLASS_STREAM_SYNC))};
		make_op(&m->op[i], lists);
		m->metric[i] = (struct trace_metric){any64(), any64(), below(lists), below(lists),
			any32(), below(lists), (uint8_t)(VALUE_I64 + below(4))};
		if (m->metric[i].type == VALUE_STR)
			m->metric[i].bits = below(lists);
	}
	m->c = (struct trace_chunk){{0}, m->node, m->thread, m->stream, m->config, m->text,
		m->scope, m->op, m->metric, m->burst, 0, NULL, false};
	if (lists > 4 && from % 2 == 1)
		make_bursts(m, lists, 1 + below(BURSTS_MAX));
	for (i = 0; i < TRACE_COUNT_MAX; i++)
		m->c.n[i] = i <= TRACE_N_TEXTS ? lists : events;
	return &m->c;
}

/* Four of each list and two of each kind of event. Its numbers take one byte each, but times. */
static const struct trace_chunk *make_known(struct model *m)
{
	static const char *const words[] = {"one", "two", "", "four"};
	uint32_t i;

	(void)make(m, 4, 4, 2);
	for (i = 0; i < 4; i++) {
		m->text[i] = words[i];
		m->thread[i] = (struct trace_thread){100 + i, i};
		m->stream[i] = (struct trace_stream){i, 1, 7};
		m->config[i] = (struct trace_config){{i, 2, 1}, {32, 1, 1}, 16, 0, 127};
	}
	for (i = 0; i < 2; i++) {
		m->scope[i] = (struct trace_scope){90, 100, i, i, 0, TRACE_SPAN, NO_CALL};
		m->op[i] = (struct trace_op){
			50, 1000, 1010, 0, 10, i, i, 0, i, i, CLASS_COMPUTE, TRACE_GRAPH};
		m->metric[i] = (struct trace_metric){70, i, i, i, 0, i, VALUE_STR};
	}
	m->scope[1].flags = TRACE_CALL;
	m->scope[1].call = (struct trace_call){5, 6, 7, CLASS_STREAM_SYNC};
	m->op[1].class = CLASS_H2D;
	m->op[1].bytes = 4096;
	m->op[1].config = TRACE_NONE;
	return &m->c;
}

/* --- from the model to bytes */

/* What an op does not have is full of nonsense, and none of it arrives. */
static bool add_op(struct trace_pack *k, struct trace_op o)
{
	if (gpu_class_is_kernel(o.class))
		o.bytes = 0x5a5a5a5a5a;
	else
		o.config = 0x5a5a5a;
	if ((o.flags & TRACE_UNLAUNCHED) != 0) {
		o.launched = o.correlation = 0x5a5a5a;
		o.thread = 0xffffff;
	}
	return trace_pack_op(k, &o);
}

static bool add(struct trace_pack *k, const struct trace_chunk *c, uint32_t kind, uint32_t i)
{
	if (kind == TRACE_N_NODES)
		return trace_pack_node(k, c->node[i]);
	if (kind == TRACE_N_THREADS)
		return trace_pack_thread(k, &c->thread[i]);
	if (kind == TRACE_N_STREAMS)
		return trace_pack_stream(k, &c->stream[i]);
	if (kind == TRACE_N_CONFIGS)
		return trace_pack_config(k, &c->config[i]);
	if (kind == TRACE_N_TEXTS)
		return trace_pack_text(k, c->text[i], (uint32_t)strlen(c->text[i]));
	if (kind == TRACE_N_SCOPES)
		return trace_pack_scope(k, &c->scope[i]);
	return kind == TRACE_N_OPS ? add_op(k, c->op[i]) : trace_pack_metric(k, &c->metric[i]);
}

/* The next of a kind; past the model's end it begins anew. */
static void add_next(struct trace_pack *k, const struct trace_chunk *c, uint32_t kind)
{
	uint32_t n = k->n[kind];

	ck_assert(add(k, c, kind, n % c->n[kind]) && k->n[kind] == n + 1);
}

static void add_lists(struct trace_pack *k, const struct trace_chunk *c, uint32_t n)
{
	uint32_t i;

	for (i = TRACE_N_NODES; i <= TRACE_N_TEXTS; i++)
		while (k->n[i] < n && k->n[i] < c->n[i])
			add_next(k, c, i);
}

/* `late`: the lists grow as far as an event needs them, as they do in a session. */
static void pack(struct trace_pack *k, const struct trace_chunk *c, bool late)
{
	const uint32_t all = c->n[TRACE_N_SCOPES] + c->n[TRACE_N_OPS] + c->n[TRACE_N_METRICS];
	uint32_t kind, i, place;

	add_lists(k, c, late ? 0 : UINT32_MAX);
	while (trace_pack_events(k) < all) {
		do
			kind = TRACE_N_SCOPES + below(3);
		while (k->n[kind] >= c->n[kind]);
		i = k->n[kind];
		place = kind == TRACE_N_SCOPES ? c->scope[i].thread : c->metric[i].thread;
		if (kind == TRACE_N_OPS) {
			add_lists(k, c, c->op[i].stream + 1);
			place = c->op[i].thread; /* TRACE_NONE + 1 is 0 */
		}
		add_lists(k, c, place + 1);
		add_next(k, c, kind);
	}
	add_lists(k, c, UINT32_MAX);
	for (i = 0; i < c->n_bursts; i++)
		ck_assert(trace_pack_burst(k, &c->burst[i]));
}

struct bytes {
	uint8_t *p;
	uint32_t n;
};

/* What a test need not give back itself. */
static struct trace_pack pack_a, pack_b;
static void *kept[16];
static uint32_t n_kept;

static void give_back(void)
{
	trace_pack_fini(&pack_a);
	trace_pack_fini(&pack_a); /* twice is fine */
	trace_pack_fini(&pack_b);
	while (n_kept > 0)
		free(kept[--n_kept]);
}

static struct bytes seal(const struct trace_pack *k)
{
	struct bytes b;
	void *p = NULL;

	ck_assert(n_kept < COUNT(kept) && trace_pack_seal(k, &p, &b.n) == 0 && p != NULL);
	kept[n_kept++] = p;
	b.p = p;
	return b;
}

static struct bytes packed(const struct trace_chunk *c)
{
	trace_pack_fini(&pack_b);
	pack(&pack_b, c, false);
	return seal(&pack_b);
}

static bool same_bytes(const struct bytes *a, const struct bytes *b)
{
	return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

/* --- from bytes to a chunk */

/* From a copy of exact size, for sanitizers, that is gone when the chunk is looked at. */
static int read_exact(const void *bytes, size_t n, struct trace_chunk *ret)
{
	struct trace_chunk before;
	struct err e = {.code = 0};
	uint8_t *copy = malloc(n);
	int r;

	if (n > 0)
		memcpy(copy, bytes, n);
	memset(&before, 0xa5, sizeof(before));
	memcpy(ret, &before, sizeof(before));
	r = trace_chunk_read(copy, n, ret, &e);
	free(copy);
	if (r < 0 && (r != -EBADMSG || e.code != r || e.text[0] == '\0' ||
			     memcmp(ret, &before, sizeof(before)) != 0))
		ck_abort_msg("refused in a wrong way: %d, %s", r, e.text);
	return r;
}

static bool op_in_range(const uint32_t *n, const struct trace_op *o)
{
	const bool launched = (o->flags & TRACE_UNLAUNCHED) == 0;

	if (launched ? o->thread >= n[TRACE_N_THREADS] : o->thread != TRACE_NONE)
		return false;
	if (o->config != TRACE_NONE &&
		(o->config >= n[TRACE_N_CONFIGS] || !gpu_class_is_kernel(o->class)))
		return false;
	return o->node < n[TRACE_N_NODES] && o->stream < n[TRACE_N_STREAMS] &&
	       o->class > CLASS_CPU && o->class < CLASS_MAX && o->start <= o->end;
}

static bool metric_in_range(const uint32_t *n, const struct trace_metric *m)
{
	return m->thread < n[TRACE_N_THREADS] && m->node < n[TRACE_N_NODES] &&
	       m->name < n[TRACE_N_TEXTS] && m->type >= VALUE_I64 && m->type <= VALUE_STR &&
	       (m->type != VALUE_STR || m->bits < n[TRACE_N_TEXTS]);
}

/* What is not as a caller may rely on; NULL: nothing. */
static const char *out_of_range(const struct trace_chunk *c)
{
	const struct trace_scope *s = c->scope;
	const uint32_t *n = c->n;
	uint32_t i;

	for (i = 0; i < TRACE_COUNT_MAX; i++)
		if (n[i] > TRACE_COUNT_LIMIT)
			return "a count";
	for (i = 0; i < n[TRACE_N_SCOPES]; i++, s++)
		if (s->thread >= n[TRACE_N_THREADS] || s->node >= n[TRACE_N_NODES] ||
			s->begin > s->end)
			return "a scope";
	for (i = 0; i < n[TRACE_N_OPS]; i++)
		if (!op_in_range(n, &c->op[i]))
			return "an op";
	for (i = 0; i < n[TRACE_N_METRICS]; i++)
		if (!metric_in_range(n, &c->metric[i]))
			return "a metric";
	for (i = 0; i < c->n_bursts; i++)
		if (c->burst[i].thread >= n[TRACE_N_THREADS] || c->burst[i].begin > c->burst[i].end)
			return "a burst";
	for (i = 0; i < n[TRACE_N_THREADS]; i++)
		if (c->thread[i].name != TRACE_NONE && c->thread[i].name >= n[TRACE_N_TEXTS])
			return "a thread's name";
	for (i = 0; i < n[TRACE_N_TEXTS]; i++)
		if (strlen(c->text[i]) > RAW_LIMIT)
			return "a text";
	return NULL;
}

/* Refused, or sane. */
static int try(const void *bytes, size_t n)
{
	struct trace_chunk c;
	int r = read_exact(bytes, n, &c);

	if (r == 0) {
		ck_assert_msg(out_of_range(&c) == NULL, "out of range: %s", out_of_range(&c));
		trace_chunk_fini(&c);
	}
	return r;
}

static void check_holds(const struct bytes *b, const struct trace_chunk *want)
{
	struct trace_chunk c;

	ck_assert_int_eq(read_exact(b->p, b->n, &c), 0);
	ck_assert_msg(differ(want, &c) == NULL, "differs: %s", differ(want, &c));
	trace_chunk_fini(&c);
	ck_assert(c.memory == NULL && c.n[0] == 0);
}

/* Seals it as it is now, which may be a lie, and reads that. */
static int try_pack(const struct trace_pack *k)
{
	struct bytes b = seal(k);
	int r = try(b.p, b.n);

	free(kept[--n_kept]);
	return r;
}

static uint8_t *number_put(uint8_t *p, uint64_t v) /* as the chunk has them */
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

/* --- what is packed is read */

START_TEST(round_trip)
{
	const uint32_t lists = _i % 3 == 0 ? 1 + (uint32_t)_i / 3 : LISTS_MAX - (uint32_t)_i;
	const uint32_t events = _i % 2 == 0 ? 2 * (uint32_t)_i : EVENTS_MAX - (uint32_t)_i;
	const struct trace_chunk *c = make(&model_a, (uint64_t)_i * 1000 + 1, lists, events);
	struct bytes late, early;

	pack(&pack_a, c, true);
	ck_assert_uint_eq(trace_pack_events(&pack_a), 3 * events);
	late = seal(&pack_a);
	check_holds(&late, c);
	early = packed(c); /* when the lists grew does not matter */
	ck_assert(same_bytes(&early, &late));
}
END_TEST

/* One thread and one stream through the worst neighbours that a difference can have. */
START_TEST(neighbours)
{
	static const uint64_t clock[] = {0, UINT64_MAX, 0, 1, UINT64_MAX - 1, 1ull << 63, INT64_MAX,
		5, 5, 4, UINT64_MAX, UINT64_MAX, 0};
	static const uint32_t number[] = {UINT32_MAX, 0, UINT32_MAX, 1, 5, 3, 3, 1u << 31,
		INT32_MAX, UINT32_MAX - 1, UINT32_MAX, 2, 0};
	const struct trace_chunk *c = make(&model_a, 9, 2, COUNT(clock));
	struct bytes b;
	uint32_t i;

	for (i = 0; i < COUNT(clock); i++) {
		model_a.scope[i] = (struct trace_scope){clock[i], clock[i], 1, 0, number[i], 255,
			{clock[i], number[i], number[i], CLASS_REGISTER}};
		model_a.op[i] = (struct trace_op){clock[i], clock[i], clock[i], 0, number[i], 1, 0,
			number[i], 1, TRACE_NONE, CLASS_COMM, TRACE_GRAPH};
		model_a.metric[i] =
			(struct trace_metric){clock[i], clock[i], 1, 0, number[i], 1, VALUE_F64};
	}
	model_a.scope[2].end = model_a.op[2].end = UINT64_MAX; /* from 0: all of time */
	b = packed(c);
	check_holds(&b, c);
}
END_TEST

START_TEST(long_text)
{
	const uint32_t n = TRACE_TEXT_MAX;
	struct trace_chunk c;
	struct bytes b;
	char *text = malloc(n + 1);
	uint8_t *at = (uint8_t *)text;

	memset(text, 'x', n + 1); /* no NUL behind it */
	ck_assert(trace_pack_text(&pack_a, text, 0) &&
		  trace_pack_text(&pack_a, text, UINT32_MAX) && /* cut */
		  trace_pack_text(&pack_a, text, 1));
	b = seal(&pack_a);
	ck_assert_int_eq(read_exact(b.p, b.n, &c), 0);
	ck_assert(c.n[TRACE_N_TEXTS] == 3 && c.text[0][0] == '\0' && strcmp(c.text[2], "x") == 0);
	ck_assert(strlen(c.text[1]) == n && memcmp(c.text[1], text, n) == 0);
	trace_chunk_fini(&c);
	memcpy(text, b.p, b.n); /* its last column, empty, says that all together have no bytes */
	at = number_put(number_put(at + b.n - 2, 0 - (uint64_t)(n + 4)), 0);
	ck_assert_int_eq(try(text, (size_t)(at - (uint8_t *)text)), -EBADMSG);
	free(text);
}
END_TEST

START_TEST(clear_is_as_new)
{
	const struct trace_chunk *a = make(&model_a, 21, 40, 300), *b = make(&model_b, 22, 70, 90);
	const struct trace_chunk *const turn[] = {a, b, a, b, b};
	struct bytes want, got;
	uint32_t i;

	for (i = 0; i < COUNT(turn); i++) {
		want = packed(turn[i]);
		pack(&pack_a, turn[i], true);
		got = seal(&pack_a);
		ck_assert_msg(same_bytes(&want, &got), "turn %u", i);
		check_holds(&got, turn[i]);
		trace_pack_clear(&pack_a);
	}
}
END_TEST

START_TEST(seal_and_go_on)
{
	const struct trace_chunk *c = make(&model_a, 33, 5, 40);
	struct trace_chunk half = *c;
	struct bytes first, second, third, whole = packed(c);
	uint32_t i;

	for (i = TRACE_N_SCOPES; i <= TRACE_N_METRICS; i++)
		half.n[i] = 20;
	pack(&pack_a, &half, false);
	first = seal(&pack_a);
	second = seal(&pack_a);
	ck_assert(same_bytes(&first, &second));
	for (i = TRACE_N_SCOPES; i <= TRACE_N_METRICS; i++)
		while (pack_a.n[i] < c->n[i])
			add_next(&pack_a, c, i);
	third = seal(&pack_a);
	ck_assert(same_bytes(&third, &whole));
	check_holds(&first, &half);
	check_holds(&third, c);
}
END_TEST

START_TEST(nothing_is_a_chunk)
{
	struct trace_chunk none = {.memory = NULL};
	struct bytes b = seal(&pack_a), again;

	ck_assert(!trace_pack_is_full(&pack_a) && trace_pack_events(&pack_a) == 0);
	check_holds(&b, &none);
	trace_chunk_fini(&none);
	add_lists(&pack_a, make_known(&model_a), 4);
	trace_pack_clear(&pack_a);
	again = seal(&pack_a);
	ck_assert(same_bytes(&b, &again));
}
END_TEST

/* --- ceilings */

START_TEST(full_of_one_kind)
{
	const uint32_t want = _i <= TRACE_N_TEXTS ? TRACE_COUNT_LIMIT / 2 : TRACE_EVENTS_MAX;
	const struct trace_chunk *c = make_known(&model_a);

	add_lists(&pack_a, c, 4);
	for (; pack_a.n[_i] < want; add_next(&pack_a, c, (uint32_t)_i))
		ck_assert_msg(!trace_pack_is_full(&pack_a), "full at %u", pack_a.n[_i]);
	ck_assert(trace_pack_is_full(&pack_a));
	ck_assert_int_eq(try_pack(&pack_a), 0);
	while (pack_a.n[_i] < TRACE_COUNT_LIMIT) /* as much as a reader takes, and one more */
		add_next(&pack_a, c, (uint32_t)_i);
	ck_assert_int_eq(try_pack(&pack_a), 0);
	add_next(&pack_a, c, (uint32_t)_i);
	ck_assert_int_eq(try_pack(&pack_a), -EBADMSG);
}
END_TEST

START_TEST(full_of_all_kinds_and_of_bytes)
{
	char text[4095];
	const struct trace_chunk *c = make_known(&model_a);
	uint32_t i;

	memset(text, 't', sizeof(text)); /* a NUL comes behind it */
	add_lists(&pack_a, c, 4);
	for (i = 0; i < TRACE_EVENTS_MAX; i++) {
		ck_assert(!trace_pack_is_full(&pack_a) && trace_pack_events(&pack_a) == i);
		add_next(&pack_a, c, TRACE_N_SCOPES + i % 3);
	}
	ck_assert(trace_pack_is_full(&pack_a));
	trace_pack_clear(&pack_a);
	for (i = 0; i < TRACE_RAW_MAX / 4096; i++) {
		ck_assert(!trace_pack_is_full(&pack_a));
		ck_assert(trace_pack_text(&pack_a, text, sizeof(text)));
	}
	ck_assert(trace_pack_is_full(&pack_a));
}
END_TEST

static const struct trace_chunk *some_chunk(int i)
{
	return i == 0 ? make_known(&model_a) : make(&model_a, (uint64_t)i, 6, 12);
}

START_TEST(prefixes_and_more)
{
	struct bytes b = packed(some_chunk(_i));
	uint8_t more[8192] = {0};
	uint32_t n;

	for (n = 0; n < b.n; n++)
		ck_assert_msg(try(b.p, n) == -EBADMSG, "the first %u of %u", n, b.n);
	ck_assert(b.n < sizeof(more) && try(b.p, b.n) == 0);
	memcpy(more, b.p, b.n);
	ck_assert_int_eq(try(more, b.n + 1), -EBADMSG);
	memset(more + 4, 0xff, sizeof(more) - 4); /* a number without an end */
	ck_assert_int_eq(try(more, sizeof(more)), -EBADMSG);
}
END_TEST

START_TEST(flipped_bytes)
{
	struct bytes b = packed(some_chunk(_i));
	uint32_t i, x, all = _i == 0 ? 40 : 12; /* magic, counts and some columns; magic, counts */

	for (i = 0; i < b.n; i++)
		for (x = 1; x < 256; x += i < all ? 1 : 1 + below(100)) {
			b.p[i] ^= (uint8_t)x;
			if (try(b.p, b.n) == 0 && i < 4)
				ck_abort_msg("the magic is not looked at");
			b.p[i] ^= (uint8_t)x;
		}
	ck_assert_int_eq(try(b.p, b.n), 0);
}
END_TEST

/* What the pack holds is damaged, so that the damage gets behind the compression. */
START_TEST(flipped_behind_compression)
{
	static const uint8_t flip[] = {0x01, 0x04, 0x80, 0xff};
	uint32_t i, n, x;

	pack(&pack_a, some_chunk(_i), false);
	for (i = 0; i < TRACE_COLUMN_MAX; i++)
		for (n = 0; n < pack_a.column[i].n; n++)
			for (x = 0; x < COUNT(flip); x++) {
				pack_a.column[i].p[n] ^= flip[x];
				(void)try_pack(&pack_a);
				pack_a.column[i].p[n] ^= flip[x];
			}
	ck_assert_int_eq(try_pack(&pack_a), 0);
}
END_TEST

START_TEST(columns_too_short)
{
	uint32_t i, n;

	pack(&pack_a, make_known(&model_a), false);
	for (i = 0; i < TRACE_COUNT_MAX; i++) { /* more than the columns hold */
		pack_a.n[i]++;
		ck_assert_msg(try_pack(&pack_a) == -EBADMSG, "count %u", i);
		pack_a.n[i]--;
	}
	for (i = 0; i < TRACE_COLUMN_MAX; i++) {
		n = pack_a.column[i].n;
		while (pack_a.column[i].n-- > 0)
			ck_assert_msg(try_pack(&pack_a) == -EBADMSG, "%u of column %u", n, i);
		pack_a.column[i].n = n;
	}
	ck_assert_int_eq(try_pack(&pack_a), 0);
}
END_TEST

/* One number of one column, told as another: one that is taken, and the next that is not. */
/* clang-format off */
static const struct {
	enum trace_column_id column;
	uint32_t at;
	uint64_t good, bad;
} lies[] = {
	{TRACE_THREADS, 0, UINT32_MAX, 1ull << 32}, {TRACE_THREADS, 7, 4, 5},
	{TRACE_STREAMS, 0, UINT32_MAX, 1ull << 32}, {TRACE_STREAMS, 10, UINT32_MAX, UINT64_MAX},
	{TRACE_CONFIGS, 0, UINT32_MAX, 1ull << 32}, {TRACE_CONFIGS, 35, UINT32_MAX, 1ull << 32},
	{TRACE_SCOPE_THREAD, 1, 3, 4}, {TRACE_SCOPE_NODE, 1, 3, 4},
	{TRACE_SCOPE_SEGMENT, 0, UINT32_MAX, 1ull << 32}, {TRACE_SCOPE_FLAGS, 0, 255 - TRACE_CALL, 255},
	{TRACE_SCOPE_LENGTH, 1, 100, 101}, {TRACE_SCOPE_LENGTH, 0, 0, UINT64_MAX},
	{TRACE_OP_THREAD, 1, 3, 4}, {TRACE_OP_NODE, 0, 3, 4}, {TRACE_OP_STREAM, 1, 3, 4},
	{TRACE_OP_SEGMENT, 1, UINT32_MAX, 1ull << 63}, {TRACE_OP_CLASS, 1, CLASS_OTHER, CLASS_MAX},
	{TRACE_OP_FLAGS, 0, TRACE_GRAPH, 256}, {TRACE_OP_CONFIG, 0, 4, 5},
	{TRACE_OP_CORRELATION, 0, 2ull * UINT32_MAX, 2ull << 32},
	{TRACE_OP_CORRELATION, 1, 0, 1}, /* -1 */
	{TRACE_OP_LENGTH, 1, UINT64_MAX - 1000, UINT64_MAX - 999}, /* until the end of 64 bits */
	{TRACE_METRIC_THREAD, 0, 3, 4}, {TRACE_METRIC_NODE, 0, 3, 4}, {TRACE_METRIC_NAME, 1, 3, 4},
	{TRACE_METRIC_SEGMENT, 1, UINT32_MAX, 1ull << 32}, {TRACE_METRIC_BITS, 1, 3, 4},
	{TRACE_METRIC_TYPE, 0, VALUE_I64, VALUE_STR + 1}, {TRACE_METRIC_TYPE, 0, VALUE_U64, VALUE_NONE},
	{TRACE_OP_CLASS, 1, CLASS_OTHER, CLASS_CPU}, {TRACE_SCOPE_FLAGS, 0, 1, 256},
	{TRACE_CALLS, 0, CLASS_MAX - 1, CLASS_MAX}, {TRACE_CALLS, 0, CLASS_STREAM_SYNC, CLASS_OTHER},
	{TRACE_CALLS, 1, UINT32_MAX, 1ull << 32}, {TRACE_CALLS, 2, UINT32_MAX, 1ull << 32},
};

static const struct {
	uint32_t count;
	uint64_t n;
	uint32_t one, two; /* columns; two: and all behind it */
	uint64_t raw_one, raw_two, packed_one;
} promises[] = {
	{TRACE_N_SCOPES, TRACE_COUNT_LIMIT, 0, 0, 0, 0, 0}, {TRACE_N_OPS, UINT32_MAX, 0, 0, 0, 0, 0},
	{TRACE_N_OPS, TRACE_COUNT_LIMIT + 1, 0, 0, 0, 0, 0}, {TRACE_N_NODES, UINT64_MAX, 0, 0, 0, 0, 0},
	{TRACE_N_TEXTS, 1ull << 32, 0, 0, 0, 0, 0}, /* 0 in 32 bits */
	{0, 0, 1, 2, RAW_LIMIT, RAW_LIMIT, 0}, {0, 0, 28, 29, 1, UINT64_MAX, 0}, /* 0 in 64 bits */
	{0, 0, 2, 0, RAW_LIMIT, 0, 0}, {0, 0, 4, 0, RAW_LIMIT + 1, 0, 0}, {0, 0, 9, 0, 1ull << 32, 0, 0},
	{0, 0, 2, 0, 1ull << 40, 0, 0}, {0, 0, 29, 0, UINT64_MAX, 0, 0}, {0, 0, 29, 0, 0, 0, 1},
	{0, 0, 0, 1, 0, 0, UINT64_MAX}, {0, 0, 0, 1, 1, 0, UINT64_MAX},
	{TRACE_N_THREADS, 1, TRACE_BURSTS, 0, RAW_LIMIT, 0, 0},
};
/* clang-format on */

START_TEST(numbers_out_of_range)
{
	struct trace_column *c = &pack_a.column[lies[_i].column];
	uint8_t rest[64], *to;
	uint32_t good, n, at = lies[_i].at;

	for (good = 0; good < 2; good++) {
		trace_pack_clear(&pack_a);
		pack(&pack_a, make_known(&model_a), false);
		n = c->n - at - 1;
		ck_assert(c->n > at && n < sizeof(rest) && c->cap >= c->n + 10);
		memcpy(rest, c->p + at + 1, n);
		to = number_put(c->p + at, good != 0 ? lies[_i].good : lies[_i].bad);
		memcpy(to, rest, n);
		c->n = (uint32_t)(to - c->p) + n;
		ck_assert_int_eq(try_pack(&pack_a), good != 0 ? 0 : -EBADMSG);
	}
}
END_TEST

/* They cost a chunk without them nothing, grow where they stand, and are a chunk by themselves. */
START_TEST(bursts)
{
	const struct trace_chunk *c = make_known(&model_a);
	const struct trace_burst one = {100, 200, 7, 3, 2};
	struct bytes without = packed(c), with;
	struct trace_chunk k;

	add_lists(&pack_a, c, 4);
	ck_assert(trace_pack_is_empty(&pack_a));
	ck_assert(trace_pack_burst(&pack_a, &one));
	ck_assert(!trace_pack_is_empty(&pack_a) && trace_pack_events(&pack_a) == 0);
	pack_a.burst[0].end = UINT64_MAX;
	pack_a.burst[0].n = UINT64_MAX;
	with = seal(&pack_a);
	ck_assert_int_eq(read_exact(with.p, with.n, &k), 0);
	ck_assert(k.n_bursts == 1 && k.burst[0].begin == 100 && k.burst[0].end == UINT64_MAX &&
		  k.burst[0].n == UINT64_MAX && k.burst[0].thread == 3 && k.burst[0].segment == 2);
	trace_chunk_fini(&k);
	trace_pack_clear(&pack_a);
	pack(&pack_a, c, false);
	with = seal(&pack_a);
	ck_assert(same_bytes(&with, &without));
	while (!trace_pack_is_full(&pack_a))
		ck_assert(trace_pack_burst(&pack_a, &one));
	ck_assert_uint_eq(pack_a.n_bursts, TRACE_BURSTS_MAX);
	ck_assert_int_eq(try_pack(&pack_a), 0);
	with = seal(&pack_a);
	ck_assert_uint_le(with.n, without.n + 100); /* alike ones take nothing */
}
END_TEST

/* A thread that is none, an end before its begin, and a column with more or less in it than it says. */
START_TEST(bursts_that_lie)
{
	const struct trace_chunk *c = make_known(&model_a);
	const struct trace_burst lie[] = {
		{100, 200, 7, 4, 0}, {200, 100, 7, 0, 0}, {1, UINT64_MAX, 7, TRACE_NONE, 0}};
	uint8_t raw[] = {2, 0, 0, 20, 5, 9, 1, 1, 0, 0, 9}, *at;
	struct bytes b;
	uint32_t i, n;

	pack(&pack_a, c, false);
	for (i = 0; i < COUNT(lie); i++) {
		pack_a.n_bursts = 0;
		ck_assert(trace_pack_burst(&pack_a, &lie[i]));
		ck_assert_int_eq(try_pack(&pack_a), -EBADMSG);
	}
	pack_a.n_bursts = 0;
	b = seal(&pack_a); /* has a column of calls */
	for (n = 0; n <= sizeof(raw); n++)
		for (i = 0; i < 5; i++) {
			uint8_t *more = malloc(b.n + 64);

			raw[0] = (uint8_t)i;
			memcpy(more, b.p, b.n);
			more[3] = '2';
			at = number_put(more + b.n, n);
			*at = (uint8_t)(n > 0 ? ZSTD_compress(at + 1, 62, raw, n, 1) : 0);
			ck_assert_int_eq(try(more, (size_t)(at - more) + 1 + *at),
				n == 0 || (n == 1 && i == 0) || (n == 6 && i == 1) ||
						(n == 11 && i == 2)
					? 0
					: -EBADMSG);
			free(more);
		}
}
END_TEST

/* A frame that holds more or less than the chunk says of it, and what is none. */
START_TEST(frames_that_lie)
{
	struct bytes b;
	uint32_t i, at = 4 + TRACE_COUNT_MAX + 2 * TRACE_TEXTS; /* one byte for each number */

	ck_assert(trace_pack_text(&pack_a, "text", 4));
	b = seal(&pack_a);
	ck_assert(b.p[at] == 5 && b.p[at + 1] > 5);
	for (i = 0; i < 128; i++) {
		b.p[at] = (uint8_t)i;
		ck_assert_int_eq(try(b.p, b.n), i == 5 ? 0 : -EBADMSG);
	}
	b.p[at] = 5;
	memset(b.p + at + 2, 0, b.p[at + 1]);
	ck_assert_int_eq(try(b.p, b.n), -EBADMSG);
}
END_TEST

/* Little memory and little time, whatever is promised. */
START_TEST(huge_promises)
{
	uint8_t bytes[1024], *at = bytes + 4;
	struct rlimit old, some;
	unsigned long pages = 0;
	clock_t from = clock();
	FILE *f = fopen("/proc/self/statm", "r");
	uint64_t raw;
	uint32_t i;

	memcpy(bytes, "PTC2", 4); /* with all columns */
	for (i = 0; i < TRACE_COUNT_MAX; i++)
		at = number_put(at, i == promises[_i].count ? promises[_i].n : 0);
	for (i = 0; i < TRACE_COLUMN_MAX; i++) {
		raw = i >= promises[_i].two ? promises[_i].raw_two : 0;
		at = number_put(at, i == promises[_i].one ? promises[_i].raw_one : raw);
		at = number_put(at, i == promises[_i].one ? promises[_i].packed_one : 0);
	}
	ck_assert(f != NULL && fscanf(f, "%lu", &pages) == 1 && fclose(f) == 0);
	ck_assert(getrlimit(RLIMIT_AS, &old) == 0 && getrlimit(RLIMIT_AS, &some) == 0);
#ifndef __SANITIZE_ADDRESS__ /* which needs room of its own */
	some.rlim_cur = pages * 4096 + (64u << 20);
#endif
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &some), 0);
	for (i = 0; i < 50; i++)
		ck_assert_int_eq(try(bytes, (size_t)(at - bytes)), -EBADMSG);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &old), 0);
	ck_assert(clock() - from < 2 * CLOCKS_PER_SEC);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("wire_trace");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, NULL, give_back);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, round_trip, 0, 32);
	tcase_add_test(t, neighbours);
	tcase_add_test(t, long_text);
	tcase_add_test(t, clear_is_as_new);
	tcase_add_test(t, seal_and_go_on);
	tcase_add_test(t, nothing_is_a_chunk);
	tcase_add_loop_test(t, full_of_one_kind, 0, TRACE_COUNT_MAX);
	tcase_add_test(t, full_of_all_kinds_and_of_bytes);
	tcase_add_loop_test(t, prefixes_and_more, 0, 3);
	tcase_add_loop_test(t, flipped_bytes, 0, 2);
	tcase_add_loop_test(t, flipped_behind_compression, 0, 2);
	tcase_add_test(t, columns_too_short);
	tcase_add_loop_test(t, numbers_out_of_range, 0, (int)COUNT(lies));
	tcase_add_test(t, bursts);
	tcase_add_test(t, bursts_that_lie);
	tcase_add_test(t, frames_that_lie);
	tcase_add_loop_test(t, huge_promises, 0, (int)COUNT(promises));
	suite_add_tcase(s, t);
	return s;
}
