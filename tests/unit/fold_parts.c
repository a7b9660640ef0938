/* SPDX-License-Identifier: MIT. fold_parts.c: the small parts that the fold stands on, each against
 * known values or against the slow and plain way of doing it. */
#include "fold_help.h"

#include "busy.h"
#include "clockmap.h"
#include "draw.h"
#include "gpu_terms.h"
#include "nodehash.h"
#include "table.h"
#include "window.h"
#include "words.h"

static uint32_t pick(uint32_t n)
{
	return (uint32_t)(draw() >> 33) % n;
}

/* --- hashes: what Python's hashlib.blake2s(…, digest_size=16) gives */

static void hex_of(const uint8_t h[16], char out[33])
{
	uint32_t i;

	for (i = 0; i < 16; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", h[i]);
}

START_TEST(hashes)
{
	static const struct {
		uint32_t bytes;
		const char *want;
	} plain[] = {
		{0, "64550d6ffe2c0a01a14aba1eade0200c"},
		{47, "c7c4dbfdf0c3f654396c51688246d95f"},
		{64, "dc66ca8f03865801b0ffe06ed8a1a90e"},
	};
	uint8_t count[64], none[16] = {0}, root[16], h[16];
	char text[33], longest[1000];
	struct blake2s b;
	uint32_t i;

	for (i = 0; i < 64; i++)
		count[i] = (uint8_t)i;
	for (i = 0; i < 3; i++) {
		blake2s_init(&b);
		blake2s_add(&b, count, plain[i].bytes / 2);
		blake2s_add(&b, count + plain[i].bytes / 2, plain[i].bytes - plain[i].bytes / 2);
		blake2s_done(&b, h);
		hex_of(h, text);
		ck_assert_str_eq(text, plain[i].want);
	}
	node_hash(none, NODE_ROOT, "ROOT", 4, root);
	hex_of(root, text);
	ck_assert_str_eq(text, "bdba4d0ede5d265cc2945e0f08bb2f31");
	node_hash(root, NODE_SCOPE, "forward", 7, h);
	hex_of(h, text);
	ck_assert_str_eq(text, "d99e331d9329d25bbc222f34f4424570");
	memset(longest, 'k', sizeof(longest));
	node_hash(root, NODE_KERNEL, longest, sizeof(longest), h);
	hex_of(h, text);
	ck_assert_str_eq(text, "158806af6f10e009a00fc41899f53c19");
}
END_TEST

/* --- text */

#define BAD "\xef\xbf\xbd"

static const struct clean_case {
	const char *in;
	uint32_t n;
	const char *want;
} clean_cases[] = {
	{"plain", 5, "plain"}, {"", 0, ""}, {"tab\tnl\n\x01", 8, "tab\tnl\n\x01"},
	{"nul\0in", 6, "nul" BAD "in"},
	{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
	{"\xff\xfe", 2, BAD BAD}, {"\xc3", 1, BAD}, {"a\xc3(", 3, "a" BAD "("},
	{"\xc0\xaf", 2, BAD BAD},         /* overlong / */
	{"\xe0\x80\xaf", 3, BAD BAD BAD}, /* likewise */
	{"\xed\xa0\x80", 3, BAD BAD BAD}, /* a surrogate */
	{"\xf4\x90\x80\x80", 4, BAD BAD BAD BAD}, {"\xf0\x9f\x98", 3, BAD BAD BAD}, /* cut */
};

START_TEST(cleaning)
{
	const struct clean_case *c = &clean_cases[_i];
	char out[64];

	ck_assert_uint_eq(words_clean(out, sizeof(out), c->in, c->n), strlen(c->want));
	ck_assert_str_eq(out, c->want);
}
END_TEST

static const struct clean_case plain_cases[] = {
	{"plain text, \xc3\xa9", 14, "plain text, \xc3\xa9"},
	{"a\x1b]0;x\x07 b", 10, "a" BAD "]0;x" BAD " b"},
	{"\x7f", 1, BAD},
	{"\xc2\x9b", 2, BAD},        /* CSI */
	{"\xc2\xa0", 2, "\xc2\xa0"}, /* the first behind C1 */
	{"\xe2\x80\xae"
	 "abc",
		6, BAD "abc"}, /* U+202E */
	{"\xe2\x81\xa6", 3, BAD},
	{"\xe2\x80\xa8", 3, BAD},
	{"\xff\n", 2, BAD BAD},
	{"eight by\x01", 9, "eight by" BAD},
};

START_TEST(cleaning_of_what_is_only_read)
{
	const struct clean_case *c = &plain_cases[_i];
	char out[64];

	ck_assert_uint_eq(words_plain(out, sizeof(out), c->in, c->n), strlen(c->want));
	ck_assert_str_eq(out, c->want);
}
END_TEST

/* Eight bytes go at once: whatever stands where, and wherever there is no room any more. */
START_TEST(cleaning_a_bad_byte_anywhere)
{
	static const char bad[] = {'\0', '\x80', '\xff', '\x7f', '\x01'};
	char in[26], out[64], want[64];
	const size_t at = (size_t)_i;

	for (size_t b = 0; b < sizeof(bad); b++) {
		memset(in, 'a', sizeof(in));
		in[at] = bad[b];
		(void)snprintf(want, sizeof(want), "%.*s%s%.*s", (int)at, in,
			b < 3 ? BAD : (const char[]){bad[b], '\0'}, (int)(sizeof(in) - at - 1),
			in + at + 1);
		ck_assert_uint_eq(words_clean(out, sizeof(out), in, sizeof(in)), strlen(want));
		ck_assert_str_eq(out, want);
		for (size_t cap = 1; cap <= at; cap++)
			ck_assert_uint_eq(words_clean(out, cap, in, sizeof(in)), cap - 1);
	}
}
END_TEST

START_TEST(cleaning_cuts_between_characters)
{
	char out[6];

	ck_assert_uint_eq(words_clean(out, 6, "aa\xe2\x82\xac", 5), 5);
	ck_assert_uint_eq(words_clean(out, 5, "aa\xe2\x82\xac", 5), 2);
	ck_assert_str_eq(out, "aa");
	ck_assert_uint_eq(words_clean(out, 1, "aa", 2), 0);
}
END_TEST

static const struct glob_case {
	const char *glob, *text;
	bool match;
} glob_cases[] = {
	{"", "", true},
	{"", "a", false},
	{"*", "", true},
	{"*", "abc", true},
	{"a*c", "abbbc", true},
	{"a*c", "abbb", false},
	{"*a*b*", "xxaxxbxx", true},
	{"*ab", "aab", true},
	{"?", "", false},
	{"??", "ab", true},
	{"[a-c]x", "bx", true},
	{"[a-c]x", "dx", false},
	{"[!a-c]x", "dx", true},
	{"[^a]", "a", false},
	{"[]]", "]", true},
	{"[a", "[a", true},
	{"[a-]", "-", true},
	{"\\*", "*", true},
	{"\\*", "a", false},
	{"a\\", "a\\", true},
	{"python*train.py*", "python3 -u train.py --x", true},
	{"*[", "a[", true},
};

START_TEST(globs)
{
	const struct glob_case *c = &glob_cases[_i];

	ck_assert_msg(words_match(c->glob, c->text) == c->match, "'%s' '%s'", c->glob, c->text);
}
END_TEST

/* What takes fnmatch() longer than a life. */
START_TEST(globs_are_linear)
{
	char text[4000];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ck_assert(!words_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}
END_TEST

static const struct name_case {
	const char *in, *name;
	uint8_t kind;
} name_cases[] = {
	{"flops8", "flops8", KIND_INCLUSIVE},
	{"flops8 (inc)", "flops8", KIND_INCLUSIVE},
	{"cpu_time (ns)(exc)", "cpu_time (ns)", KIND_EXCLUSIVE},
	{"loss (pty)", "loss", KIND_PROPERTY},
	{"(pty) x", "x", KIND_PROPERTY},
	{"a (exc) b", "a  b", KIND_EXCLUSIVE},
	{"(exc)", "", KIND_EXCLUSIVE},
};

START_TEST(metric_names)
{
	const struct name_case *c = &name_cases[_i];
	struct metric_words w;

	words_metric(c->in, &w);
	ck_assert_str_eq(w.name, c->name);
	ck_assert_uint_eq(w.n, strlen(c->name));
	ck_assert_uint_eq(w.kind, c->kind);
}
END_TEST

START_TEST(comm_kernels)
{
	ck_assert(gpu_kernel_is_comm("ncclDevKernel_AllReduce_Sum_bf16_RING_LL"));
	ck_assert(gpu_kernel_is_comm("void cross_device_reduce_1stage<float, 8>"));
	ck_assert(!gpu_kernel_is_comm("ampere_sgemm_128x64_nn"));
}
END_TEST

/* --- the index, against an array */

static bool same(const void *arg, uint32_t at)
{
	const uint32_t *key = arg;

	return key[0] == key[at + 1];
}

START_TEST(index_finds_what_is_in)
{
	uint32_t keys[513] = {0}, i, n, step, at;
	bool in[512] = {false};
	struct table t = {0};

	for (i = 0; i < 512; i++)
		keys[i + 1] = _i == 0 ? i * 7919 : i / 8 * 977; /* also: eight of one hash */
	for (step = 0, n = 0; step < 20000; step++) {
		i = pick(512);
		if (in[i])
			table_del(&t, keys[i + 1], i);
		else
			ck_assert_int_eq(table_add(&t, keys[i + 1], i), 0);
		in[i] = !in[i];
		n += in[i] ? 1 : UINT32_MAX;
		ck_assert_uint_eq(t.n, n);
		i = pick(512);
		keys[0] = keys[i + 1];
		at = table_find(&t, keys[0], same, keys);
		if (_i == 0)
			ck_assert_uint_eq(at, in[i] ? i : TABLE_NONE);
		else if (in[i])
			ck_assert_uint_eq(keys[at + 1], keys[i + 1]);
	}
	table_fini(&t);
}
END_TEST

START_TEST(index_refuses_a_crowd)
{
	struct table t = {0};
	uint32_t i;

	for (i = 0; i < 1000 && table_add(&t, 42, i) == 0; i++)
		;
	ck_assert_uint_gt(i, TABLE_PROBES / 2);
	ck_assert_uint_le(i, TABLE_PROBES + 1);
	ck_assert_int_eq(table_add(&t, 42, i), -ENOSPC);
	ck_assert_int_eq(table_add(&t, 42 + 1000, i), 0);
	table_fini(&t);
}
END_TEST

/* --- busy, against a second-by-second map */

static void work(struct busy *b, enum gpu_part part, uint64_t begin, uint64_t end,
	uint64_t launched, uint64_t known)
{
	ck_assert(busy_add(b, &(struct busy_work){begin, end, launched, part}, known, true));
}

static uint64_t busy_of(struct busy *b)
{
	uint64_t part[PART_MAX];

	return busy_parts(b, part);
}

START_TEST(busy_against_a_map)
{
	static struct busy b;
	bool on[4000] = {false};
	uint32_t i, n = 0, at = 10, k;
	uint64_t begin, end;

	memset(&b, 0, sizeof(b));
	for (i = 0; i < 300; i++) { /* fewer spans than are kept: exact in any order */
		at = pick(3900);
		begin = 1 + at;
		end = begin + pick(90);
		work(&b, PART_COMPUTE, begin, end, 0, 0);
		for (k = (uint32_t)begin; k < end; k++)
			on[k] = true;
	}
	for (k = 0; k < 4000; k++)
		n += on[k];
	ck_assert_uint_eq(busy_of(&b), n);
	busy_fini(&b);
}
END_TEST

/* Each nanosecond by itself: what runs at it, else the work that begins next. */
static void parts_by_hand(const uint8_t *on, const uint64_t *launched, uint32_t n, uint8_t *of)
{
	uint32_t k, next, from = 0;
	uint64_t l;

	memset(of, PART_HOST, n);
	while (from < n && on[from] == 0)
		from++; /* what lies before the first is the host's */
	for (k = from, next = 0; k < n; k++) {
		if (on[k] != 0) {
			of[k] = on[k] & 1 ? PART_COMPUTE : on[k] & 2 ? PART_COMM : PART_COPY;
			from = k + 1; /* the last end so far */
			continue;
		}
		for (next = next > k ? next : k; next < n && on[next] == 0; next++)
			;
		if (next == n)
			break;
		l = launched[next];
		if (l == 0)
			of[k] = PART_UNKNOWN;
		else if (l >= from)
			of[k] = k >= l ? PART_LAUNCH : PART_HOST;
		else
			of[k] = next - from < PART_GAP_NS ? PART_GAP : PART_QUEUED;
	}
}

static void window_of(
	const struct busy *b, const uint64_t *reach, const struct span *v, uint64_t part[PART_MAX])
{
	struct busy_window w;
	uint32_t i = 0;

	while (i < b->n && reach[i] <= v->begin)
		i++;
	busy_window_open(&w, v, i > 0 ? reach[i - 1] : 0);
	while (i < b->n && busy_window_add(&w, &b->work[i]))
		i++;
	busy_window_close(&w, part);
}

/* Any window: what the map has there; all windows that a time is cut into: that time. */
static void windows_against(struct busy *b, const uint8_t *of, uint32_t n)
{
	static uint64_t reach[256];
	uint64_t want[PART_MAX], got[PART_MAX], cut[PART_MAX] = {0}, all[PART_MAX] = {0}, sum;
	struct span v = {0, 0};
	uint32_t i, k;

	busy_sort(b);
	for (i = 0; i < b->n; i++)
		reach[i] = i > 0 && reach[i - 1] > b->work[i].end ? reach[i - 1] : b->work[i].end;
	for (i = 0; i < 200; i++) {
		v.begin = pick(n - 1);
		v.end = v.begin + 1 + pick((uint32_t)(n - v.begin));
		memset(want, 0, sizeof(want));
		memset(got, 0, sizeof(got));
		for (k = (uint32_t)v.begin; k < v.end; k++)
			want[of[k]]++;
		window_of(b, reach, &v, got);
		for (k = 0, sum = 0; k < PART_MAX; k++) {
			ck_assert_msg(got[k] == want[k], "%lu..%lu, part %u: %lu, not %lu", v.begin,
				v.end, k, got[k], want[k]);
			sum += got[k];
		}
		ck_assert_uint_eq(sum, v.end - v.begin);
	}
	for (v.end = 0; v.end < n;) {
		v.begin = v.end;
		v.end = v.begin + 1 + pick(n / 50);
		v.end = v.end < n ? v.end : n;
		window_of(b, reach, &v, cut);
	}
	window_of(b, reach, &(struct span){0, n}, all);
	ck_assert_mem_eq(cut, all, sizeof(all));
}

START_TEST(parts_against_a_map)
{
	enum { N = 600000 };
	static struct busy b;
	static uint8_t on[N], of[N];
	static uint64_t launched[N];
	uint64_t want[PART_MAX] = {0}, got[PART_MAX], begin, end, l, sum = 0;
	uint32_t i, k;
	enum gpu_part part;

	memset(&b, 0, sizeof(b));
	for (i = 0; i < 250; i++) {
		begin = 1 + pick(N - 400);
		end = begin + 1 + pick(300);
		part = (enum gpu_part)pick(PART_IDLE);
		if (launched[begin] != 0)
			continue; /* of two that begin at once, either launch may be meant */
		l = pick(8) == 0 ? 0 : begin - pick((uint32_t)(begin < 30000 ? begin : 30000));
		for (k = (uint32_t)begin; k < end; k++)
			on[k] |= (uint8_t)(1u << part);
		launched[begin] = l;
		work(&b, part, begin, end, l, 0);
	}
	parts_by_hand(on, launched, N, of);
	for (k = 0; k < N; k++)
		want[of[k]]++;
	busy_parts(&b, got);
	for (i = 0; i < PART_HOST; i++) {
		ck_assert_msg(got[i] == want[i], "part %u: %lu, not %lu", i, got[i], want[i]);
		ck_assert_msg(i == PART_UNKNOWN || want[i] > 0, "part %u does not occur", i);
		sum += got[i];
	}
	ck_assert_uint_le(sum, b.last_ns - b.first_ns);
	windows_against(&b, of, N);
	busy_fini(&b);
}
END_TEST

/* Settled in between, stored, and read again: the same. */
START_TEST(parts_settle_and_restore)
{
	static struct busy b, again;
	uint64_t part[PART_MAX], got[PART_MAX], i;

	memset(&b, 0, sizeof(b));
	for (i = 1; i <= 10000; i++) /* 10 us each: 6 of a kernel, 1 of launching */
		work(&b, i % 2 != 0 ? PART_COMPUTE : PART_COMM, 10000 * i, 10000 * i + 6000,
			10000 * i - 1000, 10000 * i - 5000);
	busy_parts(&b, part);
	ck_assert_uint_eq(part[PART_COMPUTE], 5000 * 6000);
	ck_assert_uint_eq(part[PART_COMM], 5000 * 6000);
	ck_assert_uint_eq(part[PART_LAUNCH], 9999 * 1000);
	ck_assert_uint_eq(part[PART_GAP] + part[PART_QUEUED] + part[PART_UNKNOWN], 0);
	memset(&again, 0, sizeof(again));
	busy_restore(&again, part, busy_of(&b), b.first_ns, b.last_ns);
	busy_parts(&again, got);
	ck_assert_mem_eq(got, part, sizeof(part));
	work(&again, PART_COPY, b.last_ns + 2000, b.last_ns + 3000, b.last_ns - 1, 0);
	busy_parts(&again, got);
	ck_assert_uint_eq(got[PART_COPY], 1000);
	ck_assert_uint_eq(got[PART_GAP], 2000);
	part[PART_COMPUTE]--; /* as if stored by who knew no parts */
	busy_restore(&again, part, busy_of(&b), b.first_ns, b.last_ns);
	busy_parts(&again, got);
	for (i = 0; i < PART_MAX; i++)
		ck_assert_uint_eq(got[i], 0);
	busy_fini(&b);
	busy_fini(&again);
}
END_TEST

/* What lies before what is known is added up and forgotten, without end; behind it any order is right. */
START_TEST(busy_forgets_what_is_known)
{
	static struct busy b;
	uint64_t i;

	memset(&b, 0, sizeof(b));
	for (i = 1; i <= 200000; i++) /* pairs the wrong way round */
		work(&b, PART_COMPUTE, 10 * (i ^ 1), 10 * (i ^ 1) + 5, 0, 10 * i - 100);
	ck_assert_uint_le(b.cap, 256);
	ck_assert_uint_eq(busy_of(&b), 1000000);
	work(&b, PART_COMPUTE, 20, 25, 0, 0); /* before what was added up: not again */
	ck_assert_uint_eq(busy_of(&b), 1000000);
	busy_fini(&b);
	memset(&b, 0, sizeof(b)); /* two threads' buffers, one after the other */
	for (i = 0; i < 20000; i++)
		work(&b, PART_COMPUTE, 10 + 20 * i, 20 + 20 * i, 0, 0);
	for (i = 0; i < 20000; i++)
		work(&b, PART_COPY, 20 + 20 * i, 30 + 20 * i, 0, 0);
	ck_assert_uint_eq(busy_of(&b), 400000);
	busy_fini(&b);
	memset(&b, 0, sizeof(b)); /* nothing is ever known: a ceiling */
	for (i = 1; i <= 300000; i++)
		work(&b, PART_COMPUTE, 10 * i, 10 * i + 5, 0, 0);
	ck_assert_uint_eq(b.cap, BUSY_WORK_MAX);
	ck_assert_uint_eq(busy_of(&b), 1500000);
	busy_fini(&b);
}
END_TEST

/* --- windows, against a map */

START_TEST(window_against_a_map)
{
	struct clockmap m = {0};
	struct window w = {0};
	bool on[3000] = {false};
	uint64_t forgotten = 0, n;
	uint32_t i, k, begin, end;

	clockmap_use(&m, NULL, 0);
	for (i = 10; i < 2900; i = end + pick(50)) {
		end = i + pick(60);
		ck_assert_int_eq(window_open(&w, &m, i, WINDOW_ACTIVE_MAX, &forgotten), 0);
		window_close(&w, end);
		for (k = i; k < end; k++)
			on[k] = true;
	}
	for (i = 0; i < 5000; i++) {
		begin = pick(3000);
		end = begin + pick(3000 - begin);
		for (k = begin, n = 0; k < end; k++)
			n += on[k];
		ck_assert_uint_eq(window_overlap(&w, &m, begin, end), n);
		ck_assert(window_has(&w, begin) == on[begin]);
	}
	window_fini(&w);
}
END_TEST

START_TEST(window_forgets_the_oldest)
{
	struct clockmap m = {0};
	struct window w = {0};
	uint64_t forgotten = 0, i;

	clockmap_use(&m, NULL, 0);
	for (i = 1; i <= WINDOW_ACTIVE_MAX + 1; i++) {
		ck_assert_int_eq(window_open(&w, &m, 10 * i, WINDOW_ACTIVE_MAX, &forgotten), 0);
		window_close(&w, 10 * i + 4);
		ck_assert_int_eq(window_segment_add(&w, 10 * i), 0);
	}
	ck_assert_uint_eq(forgotten, WINDOW_ACTIVE_MAX / 4);
	ck_assert_uint_le(w.n_active, WINDOW_ACTIVE_MAX);
	/* From a kept begin on nothing is missing. */
	ck_assert_uint_eq(
		window_overlap(&w, &m, w.active[0].begin, UINT64_MAX / 8), 4ull * w.n_active);
	ck_assert_uint_eq(window_segment(&w, UINT64_MAX / 8), WINDOW_ACTIVE_MAX);
	ck_assert_uint_eq(window_segment(&w, w.segment[1]), w.first_segment + 1);
	window_fini(&w);
}
END_TEST

/* --- clocks */

START_TEST(clock_pieces)
{
	struct anchor v[8];
	struct anchors a = {.v = v, .cap = 8};
	struct clockmap m = {0};

	clockmap_use(&m, &a, 2000000); /* no anchor: 2 GHz from 0 */
	ck_assert_uint_eq(clockmap_ns(&m, 4000), 2000);
	anchors_add(&a, &(struct anchor){1000, 5000, 0, 0});
	clockmap_use(&m, &a, 2000000); /* one: from there */
	ck_assert_uint_eq(clockmap_ns(&m, 3000), 6000);
	ck_assert_uint_eq(clockmap_ns(&m, 0), 4500);
	anchors_add(&a, &(struct anchor){1000 + 3 * SECOND, 5000 + SECOND, 0, 0});
	anchors_add(&a, &(struct anchor){1000 + 5 * SECOND, 5000 + 2 * SECOND, 0, 0});
	clockmap_use(&m, &a, 2000000);
	ck_assert_uint_eq(clockmap_ns(&m, 1000 + 3 * SECOND), 5000 + SECOND);
	ck_assert_uint_eq(clockmap_ns(&m, 1000 + 4 * SECOND), 5000 + 3 * SECOND / 2);
	ck_assert_uint_eq(clockmap_ns(&m, 1000 + 7 * SECOND), 5000 + 3 * SECOND); /* beyond */
	ck_assert_uint_eq(clockmap_ns(&m, 0), 5000 - 333);                        /* before */
	ck_assert_uint_eq(clockmap_ns(&m, UINT64_MAX), CLOCK_NS_MAX);
	ck_assert_uint_eq(clockmap_clock(&m, 5000 + 3 * SECOND), 1000 + 7 * SECOND);
	ck_assert_uint_eq(clockmap_clock(&m, 5000 + 3 * SECOND / 2), 1000 + 4 * SECOND);
	anchors_add(&a, &(struct anchor){17, 20, 0, 0}); /* another boot */
	ck_assert_uint_eq(a.n, 1);
}
END_TEST

START_TEST(clock_goes_both_ways)
{
	struct anchor v[64];
	struct anchors a = {.v = v, .cap = 64};
	struct clockmap m = {0};
	uint64_t clock = 1000000, ns = 500000, x, back;
	uint32_t i;

	for (i = 0; i < 500; i++) { /* more than are kept */
		clock += 2900000000u + pick(100000);
		ns += SECOND + pick(100);
		anchors_add(&a, &(struct anchor){clock, ns, 0, 0});
	}
	ck_assert_uint_le(a.n, 64);
	clockmap_use(&m, &a, 0);
	for (i = 0; i < 5000; i++) {
		x = ((uint64_t)pick(UINT32_MAX / 2) << 9) % (ns + 10 * SECOND);
		back = clockmap_ns(&m, clockmap_clock(&m, x));
		ck_assert_uint_le(back > x ? back - x : x - back, 2);
	}
	for (i = 1; i < a.n; i++)
		ck_assert_uint_gt(a.v[i].clock, a.v[i - 1].clock);
}
END_TEST

START_TEST(wall_clock_of_the_nearest_anchor)
{
	struct anchor v[4];
	struct anchors a = {.v = v, .cap = 4};

	ck_assert_int_eq(anchors_offset(&a, 5), 0);
	anchors_add(&a, &(struct anchor){1, 1, 1001, 0});
	anchors_add(&a, &(struct anchor){101, 101, 2101, 0}); /* stepped by 1 000 */
	ck_assert_int_eq(anchors_offset(&a, 900), 1000);
	ck_assert_int_eq(anchors_offset(&a, 1500), 1000);
	ck_assert_int_eq(anchors_offset(&a, 1600), 2000);
	ck_assert_int_eq(anchors_offset(&a, 9999), 2000);
}
END_TEST

static uint64_t away(const struct anchors *a, uint32_t from, uint32_t end, uint64_t real)
{
	const uint64_t first = from == 0 ? 0
					 : a->v[from].real_ns -
						   (a->v[from].mono_ns - a->v[from - 1].mono_ns),
		       last = a->v[end - 1].real_ns + 2ull * SECOND;

	return real < first ? first - real : real > last ? real - last : 0;
}

/* Found by halves where the time of day only went on; where it went back, in the last piece that has it. */
START_TEST(wall_clock_against_a_list)
{
	struct anchor v[64], x = {.clock = 1};
	struct anchors a = {.v = v, .cap = 64};
	uint64_t real, far, least, best;
	uint32_t i, k, at, from, end, to = 0;
	int64_t want;

	for (i = 0; i < 100; i++) {
		x.clock = x.mono_ns += 1 + pick(1000);
		x.real_ns = 100000 + x.mono_ns + i / 10 * 700;
		if (_i == 1 && i / 10 % 3 == 2)
			x.real_ns -= 9000;
		anchors_add(&a, &x);
	}
	for (i = 0; i < 20000; i++) {
		real = 90000 + pick(80000);
		best = UINT64_MAX;
		from = end = a.n;
		for (k = a.n; k-- > 0;) { /* pieces, the last one first */
			if (k > 0 && a.v[k].real_ns >= a.v[k - 1].real_ns)
				continue;
			if (away(&a, k, end, real) < best) {
				best = away(&a, k, end, real);
				from = k;
				to = end;
			}
			end = k;
		}
		at = from;
		for (k = from; k < to; k++) { /* the nearest of the piece, of two the one before */
			far = real > a.v[k].real_ns ? real - a.v[k].real_ns : a.v[k].real_ns - real;
			least = real > a.v[at].real_ns ? real - a.v[at].real_ns
						       : a.v[at].real_ns - real;
			at = far < least ? k : at;
		}
		want = (int64_t)(a.v[at].real_ns - a.v[at].mono_ns);
		ck_assert_int_eq(anchors_offset(&a, real), want);
	}
	ck_assert_int_eq(a.n_back > 0, _i);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("fold_parts");
	TCase *c = tcase_create("parts");

#define N(a) (int)(sizeof(a) / sizeof(a[0]))
	tcase_add_test(c, hashes);
	tcase_add_loop_test(c, cleaning, 0, N(clean_cases));
	tcase_add_loop_test(c, cleaning_of_what_is_only_read, 0, N(plain_cases));
	tcase_add_loop_test(c, cleaning_a_bad_byte_anywhere, 0, 26);
	tcase_add_test(c, cleaning_cuts_between_characters);
	tcase_add_loop_test(c, globs, 0, N(glob_cases));
	tcase_add_test(c, globs_are_linear);
	tcase_add_loop_test(c, metric_names, 0, N(name_cases));
	tcase_add_test(c, comm_kernels);
	tcase_add_loop_test(c, index_finds_what_is_in, 0, 2);
	tcase_add_test(c, index_refuses_a_crowd);
	tcase_add_test(c, busy_against_a_map);
	tcase_add_test(c, busy_forgets_what_is_known);
	tcase_add_test(c, parts_against_a_map);
	tcase_add_test(c, parts_settle_and_restore);
	tcase_add_test(c, window_against_a_map);
	tcase_add_test(c, window_forgets_the_oldest);
	tcase_add_test(c, clock_pieces);
	tcase_add_test(c, clock_goes_both_ways);
	tcase_add_test(c, wall_clock_of_the_nearest_anchor);
	tcase_add_loop_test(c, wall_clock_against_a_list, 0, 2);
	suite_add_tcase(s, c);
	return s;
}
