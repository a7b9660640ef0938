/* SPDX-License-Identifier: MIT. view_hist.c: quantiles of durations, from the buckets to the rows of
 * `flat`, against the true ones; and of databases whose buckets are wider. */
#include "view_help.h"

#include "flat.h"
#include "hist.h"

#define BOUND     (1.0 / 35 + 1e-12)
#define BOUND_OLD 0.22
#define MANY      20000u

/* The lowest duration of a bucket, by asking; 2^59 - 1 counts as the last one's. */
static uint64_t lowest(uint32_t bucket)
{
	uint64_t low = 0, high = HIST_TOP + 1, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (mid == HIST_TOP + 1 || hist_bucket(mid) >= bucket)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

START_TEST(every_bucket_is_within_the_bound)
{
	uint64_t a = 0, b, ns;
	uint32_t i;
	double says;

	for (ns = 0; ns < 32; ns++)
		ck_assert_double_eq(hist_answer(hist_bucket(ns)), (double)ns);
	for (i = 0; i < HIST_BUCKETS; i++, a = b + 1) {
		b = i + 1 == HIST_BUCKETS ? HIST_TOP : lowest(i + 1) - 1;
		if (b + 1 == a)
			continue; /* below 32 ns a bucket may have no whole number */
		ck_assert_uint_eq(hist_bucket(a), i);
		ck_assert_uint_eq(hist_bucket(b), i);
		says = hist_answer(i);
		ck_assert_double_le(says - (double)a, BOUND * (double)a);
		ck_assert_double_le((double)b - says, BOUND * (double)b);
	}
	ck_assert_uint_eq(a, HIST_TOP + 1);
	ck_assert_uint_eq(hist_bucket(UINT64_MAX), HIST_BUCKETS - 1);
}
END_TEST

/* --- bytes --- */

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
	return *x;
}

START_TEST(packed_and_back)
{
	static uint8_t bytes[HIST_PACKED_MAX(HIST_BUCKETS)];
	static struct hist_counts h, got;
	uint64_t x = 88172645463325252u, k;
	uint32_t i, b;
	size_t n;

	for (i = 0; i < 2000; i++) {
		h.first = (uint32_t)(next_random(&x) % HIST_BUCKETS);
		h.n = (uint32_t)(next_random(&x) % (HIST_BUCKETS - h.first + 1));
		h.coarse = next_random(&x) % 2;
		for (b = h.first; b < h.first + h.n; b++) {
			k = next_random(&x);
			h.count[b] = k % 3 == 0 ? 0 : next_random(&x) >> k % 64;
		}
		n = hist_pack(&h, bytes);
		ck_assert_uint_le(n, HIST_PACKED_MAX(h.n));
		ck_assert(hist_unpack(bytes, n, &got));
		for (b = 0; b < HIST_BUCKETS; b++)
			ck_assert_uint_eq(b - got.first < got.n ? got.count[b] : 0,
				b - h.first < h.n ? h.count[b] : 0);
		ck_assert(n == 0 || (got.coarse == h.coarse && got.count[got.first] != 0 &&
					    got.count[got.first + got.n - 1] != 0));
	}
}
END_TEST

START_TEST(anybodys_bytes)
{
	static const struct {
		const char *bytes;
		size_t n;
		bool good;
	} cases[] = {
		{"", 0, true},
		{"\x02\x05", 2, true},  /* 5 in bucket 1 */
		{"\x02\x85", 2, false}, /* ends inside of a number */
		{"\x02\x00", 2, false}, /* zeros without how many */
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9, false},
		{"\xf0\x0e\x01", 3, false},     /* bucket 952 */
		{"\xee\x0e\x01", 3, true},      /* the last one */
		{"\xee\x0e\x01\x01", 4, false}, /* and one behind it */
		{"\x02\x00\xff\xff\xff\xff\xff\x0f\x01", 9, false},
	};
	static struct hist_counts h;
	uint64_t x = 1;
	uint8_t any[16];
	uint32_t i, b;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ck_assert_msg(
			hist_unpack(cases[i].bytes, cases[i].n, &h) == cases[i].good, "%u", i);
		ck_assert(cases[i].good || h.n == 0);
	}
	for (i = 0; i < 100000; i++) {
		for (b = 0; b < sizeof(any); b++)
			any[b] = (uint8_t)(next_random(&x) >> 20 & (b < 3 ? 0x0f : 0x83));
		(void)hist_unpack(any, next_random(&x) % sizeof(any), &h);
		ck_assert_uint_le(h.first + h.n, HIST_BUCKETS);
	}
}
END_TEST

/* --- a session of several processes --- */

static double normal(uint64_t *x)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < 12; i++)
		sum += (double)(next_random(x) >> 11) * 0x1p-53;
	return sum - 6;
}

typedef uint64_t draw_fn(uint64_t *x);

static uint64_t draw_uniform(uint64_t *x)
{
	return next_random(x) % 1000000;
}

static uint64_t draw_lognormal(uint64_t *x)
{
	return (uint64_t)(50e3 * exp(1.5 * normal(x)));
}

static uint64_t draw_bimodal(uint64_t *x)
{
	return next_random(x) % 50 == 0 ? 9000000 + next_random(x) % 1000
					: 900 + next_random(x) % 100;
}

static uint64_t draw_one_bucket(uint64_t *x)
{
	return 1000000 + next_random(x) % 100;
}

static uint64_t draw_one(uint64_t *x)
{
	return next_random(x) % 1 + 777;
}

static uint64_t draw_zero(uint64_t *x)
{
	return next_random(x) % 1;
}

static uint64_t draw_long(uint64_t *x)
{
	return ((uint64_t)1 << 37) + next_random(x) % ((uint64_t)1 << 50);
}

static uint64_t draw_any(uint64_t *x)
{
	return next_random(x) >> (8 + next_random(x) % 56);
}

static uint64_t draw_short(uint64_t *x)
{
	return next_random(x) % 70;
}

static draw_fn *const draws[] = {draw_uniform, draw_lognormal, draw_bimodal, draw_one_bucket,
	draw_one, draw_zero, draw_long, draw_any, draw_short};
#define DRAWS ((int)(sizeof(draws) / sizeof(draws[0])))

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Halves of an octave, as databases of before have them. */
static uint32_t old_bucket(uint64_t ns)
{
	uint32_t octave = ns < 32 ? 5 : 63u - (uint32_t)__builtin_clzll(ns);

	if (ns < 32)
		return 0;
	return octave >= 37 ? 63 : (octave - 5) * 2 + (uint32_t)(ns >> (octave - 1) & 1);
}

/* A cell of these durations on node `node` of process `process`; `old`: with cell.hist. */
static void put_cell(sqlite3 *db, int process, int node, const uint64_t *ns, uint32_t n, bool old)
{
	static uint8_t bytes[HIST_PACKED_MAX(HIST_BUCKETS)];
	static struct hist_counts h;
	uint8_t wide[256] = {0};
	uint64_t min = UINT64_MAX, max = 0, sum = 0;
	sqlite3_stmt *q;
	uint32_t i;

	h.n = 0;
	for (i = 0; i < n; i++) {
		min = ns[i] < min ? ns[i] : min;
		max = ns[i] > max ? ns[i] : max;
		sum += ns[i];
		hist_reach(&h, hist_bucket(ns[i]), hist_bucket(ns[i]) + 1);
		h.count[hist_bucket(ns[i])]++;
		if (++wide[old_bucket(ns[i]) * 4] == 0)
			wide[old_bucket(ns[i]) * 4 + 1]++;
	}
	ck_assert_int_eq(sqlite3_prepare_v2(db,
				 "INSERT INTO cell(session,process,segment,node,device,class,count,"
				 "sum_ns,min_ns,max_ns,bytes,untimed,open,hist,buckets) "
				 "VALUES(1,?1,0,?2,-1,0,?3,?4,?5,?6,0,0,0,?7,?8)",
				 -1, &q, NULL),
		SQLITE_OK);
	(void)sqlite3_bind_int(q, 1, process);
	(void)sqlite3_bind_int(q, 2, node);
	(void)sqlite3_bind_int64(q, 3, n);
	(void)sqlite3_bind_int64(q, 4, (int64_t)sum);
	(void)sqlite3_bind_int64(q, 5, (int64_t)min);
	(void)sqlite3_bind_int64(q, 6, (int64_t)max);
	if (old)
		(void)sqlite3_bind_blob(q, 7, wide, sizeof(wide), SQLITE_STATIC);
	else
		(void)sqlite3_bind_blob(q, 8, bytes, (int)hist_pack(&h, bytes), SQLITE_STATIC);
	ck_assert_int_eq(sqlite3_step(q), SQLITE_DONE);
	(void)sqlite3_finalize(q);
}

/* A session of two processes; nodes 1 and 2 have one name, on two paths. */
static sqlite3 *session(void)
{
	sqlite3 *db = help_db(":memory:");

	help_process(db, 1, 4242, "0", "'exited'", 0, "");
	help_process(db, 2, 4243, "1", "'exited'", 0, "");
	help_session(db, 1, "durations", "run", "none");
	help_exec(db, "INSERT INTO member VALUES(1,1),(1,2);"
		      "INSERT INTO node VALUES(1,x'01',0,1,'step'),(2,x'02',3,1,'step'),"
		      "(3,x'03',0,1,'other')");
	return db;
}

static struct flat *flat_with(
	sqlite3 *db, enum flat_by by, struct profile **ret_p, struct view **ret_v)
{
	struct flat *f = NULL;
	struct err e = {0};

	ck_assert_msg(profile_load(db, 1, NULL, ret_p, &e) == 0, "%s", e.text);
	ck_assert_int_eq(view_new(*ret_p, ret_v), 0);
	ck_assert_int_eq(flat_new(*ret_v, by, &f), 0);
	ck_assert_uint_ge(f->n, 1);
	return f;
}

static struct flat *flat_of(sqlite3 *db, struct profile **ret_p, struct view **ret_v)
{
	struct flat *f = flat_with(db, FLAT_BY_name, ret_p, ret_v);

	ck_assert_str_eq(f->row[0].name, "step");
	return f;
}

static double exact(const uint64_t *sorted, uint32_t n, double q)
{
	return (double)sorted[(uint32_t)ceil(q * n) - 1];
}

static void near(double got, double want, double bound)
{
	ck_assert_msg(fabs(got - want) <= bound * want, "%f instead of %f", got, want);
}

/* Whatever the durations are, merged over paths and processes, of which one may have few. */
START_TEST(quantiles_are_within_3_percent)
{
	static const uint32_t sizes[] = {1, 2, 3, 10, 101, 1000, MANY};
	static uint64_t ns[MANY];
	const struct flat_row *r;
	struct profile *p;
	struct view *v;
	struct flat *f;
	sqlite3 *db;
	uint64_t x = 88172645463325252u + (uint64_t)_i;
	uint32_t k, i, n, a, b;

	for (k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
		n = sizes[k];
		for (i = 0; i < n; i++)
			ns[i] = draws[_i](&x);
		db = session();
		a = n / 2;
		b = n - n / 5;
		put_cell(db, 1, 1, ns, a, false);
		put_cell(db, 2, 1, ns + a, b - a, false);
		put_cell(db, 2, 2, ns + b, n - b, false);
		f = flat_of(db, &p, &v);
		r = &f->row[0];
		qsort(ns, n, sizeof(*ns), by_value);
		ck_assert_double_eq(r->count, n);
		near(r->p50_ns, exact(ns, n, 0.5), BOUND);
		near(r->p99_ns, exact(ns, n, 0.99), BOUND);
		ck_assert_double_eq(r->min_ns, (double)ns[0]);
		ck_assert_double_eq(r->max_ns, (double)ns[n - 1]);
		ck_assert(!f->coarse);
		flat_free(f);
		view_free(v);
		profile_free(p);
		(void)sqlite3_close(db);
	}
}
END_TEST

/* What stands in a scope of the same name is in its time already. */
START_TEST(the_share_has_a_recursive_scope_once)
{
	static const uint64_t outer[] = {100}, other[] = {900}, inner[] = {80};
	struct profile *p;
	struct view *v;
	struct flat *f;
	sqlite3 *db = session();

	help_exec(db, "UPDATE node SET parent = 1 WHERE id = 2");
	put_cell(db, 1, 1, outer, 1, false);
	put_cell(db, 1, 2, inner, 1, false);
	put_cell(db, 1, 3, other, 1, false);
	f = flat_with(db, FLAT_BY_name, &p, &v);
	ck_assert_double_eq(f->total_ns, 1000);
	ck_assert_str_eq(f->row[1].name, "step");
	ck_assert_double_eq(f->row[1].sum_ns, 180);
	ck_assert_double_eq(f->row[1].share, 0.1);
	flat_free(f);
	view_free(v);
	profile_free(p);
	(void)sqlite3_close(db);
}
END_TEST

/* Kernels of one family are one row, with the quantiles of all their durations. */
START_TEST(a_family_is_as_one_name)
{
	static uint64_t ns[1000];
	struct profile *p;
	struct view *v;
	struct flat *f;
	uint64_t x = 42;
	sqlite3 *db = session();
	uint32_t i;

	for (i = 0; i < 1000; i++)
		ns[i] = draw_lognormal(&x);
	put_cell(db, 1, 1, ns, 300, false);
	put_cell(db, 2, 2, ns + 300, 600, false);
	put_cell(db, 2, 3, ns + 900, 100, false);
	help_exec(db, "UPDATE cell SET class=1,device=0;"
		      "UPDATE node SET parent=0,kind=3,name=iif(id=3,'ampere_sgemm','cublas_'||id);"
		      "INSERT INTO node VALUES(4,x'04',0,3,'adam')");
	put_cell(db, 1, 4, ns, 1, false);
	help_exec(db, "UPDATE cell SET class=1,device=0");
	f = flat_with(db, FLAT_BY_family, &p, &v);
	ck_assert_uint_eq(f->n, 2);
	ck_assert_str_eq(f->row[0].name, "gemm");
	ck_assert_uint_eq(f->row[0].names, 3);
	ck_assert_double_eq(f->row[0].count, 1000);
	ck_assert_str_eq(f->row[1].name, "optimizer");
	ck_assert_uint_eq(f->row[1].names, 1);
	qsort(ns, 1000, sizeof(*ns), by_value);
	near(f->row[0].p50_ns, exact(ns, 1000, 0.5), BOUND);
	near(f->row[0].p99_ns, exact(ns, 1000, 0.99), BOUND);
	ck_assert_double_eq(f->row[0].max_ns, (double)ns[999]);
	flat_free(f);
	view_free(v);
	profile_free(p);
	(void)sqlite3_close(db);
}
END_TEST

/* Two processes and a third that has all of it have the same buckets. */
START_TEST(merged_is_as_of_all)
{
	static uint64_t ns[1000];
	const struct profile_durations *merged, *all;
	struct profile *p;
	struct err e = {0};
	uint64_t x = 42 + (uint64_t)_i;
	sqlite3 *db = session();
	uint32_t i;

	for (i = 0; i < 1000; i++)
		ns[i] = draws[_i](&x);
	put_cell(db, 1, 1, ns, 300, false);
	put_cell(db, 2, 1, ns + 300, 700, false);
	put_cell(db, 1, 3, ns, 1000, false);
	ck_assert_int_eq(profile_load(db, 1, NULL, &p, &e), 0);
	merged = &p->durations[help_node(p, "step")];
	all = &p->durations[help_node(p, "other")];
	ck_assert_uint_eq(merged->n, all->n);
	ck_assert_uint_eq(merged->first, all->first);
	ck_assert_uint_eq(merged->n_buckets, all->n_buckets);
	ck_assert_mem_eq(merged->count, all->count, all->n_buckets * sizeof(*all->count));
	ck_assert_uint_eq(merged->min_ns, all->min_ns);
	ck_assert_uint_eq(merged->max_ns, all->max_ns);
	profile_free(p);
	(void)sqlite3_close(db);
}
END_TEST

/* --- what an older protond stored --- */

/* Each of the old buckets, answered for its lowest and its highest. */
START_TEST(every_old_bucket_is_within_22_percent)
{
	struct hist_counts *h = malloc(sizeof(*h));
	uint64_t a = 48, b;
	uint8_t wide[256];
	uint32_t i;
	double says;

	ck_assert_ptr_nonnull(h);
	for (i = 1; i < 63; i++, a = b + 1) {
		b = (i & 1 ? (uint64_t)4 << (i / 2 + 4) : (uint64_t)3 << (i / 2 + 4)) - 1;
		ck_assert_uint_eq(old_bucket(a), i);
		ck_assert_uint_eq(old_bucket(b), i);
		memset(wide, 0, sizeof(wide));
		wide[i * 4 + 1] = 1;
		hist_unpack_old(wide, sizeof(wide), 0, UINT64_MAX, h);
		ck_assert(h->coarse);
		ck_assert_uint_eq(h->count[h->first], 256);
		says = hist_quantile(h, 0.5);
		ck_assert_double_le(says - (double)a, BOUND_OLD * (double)a);
		ck_assert_double_le((double)b - says, BOUND_OLD * (double)b);
	}
	free(h);
}
END_TEST

/* Old cells, and old ones beside new ones: in the wider bound, and it is said. */
START_TEST(old_and_new_in_one_row)
{
	static uint64_t ns[1000];
	struct profile *p;
	struct view *v;
	struct flat *f;
	uint64_t x = 7;
	sqlite3 *db = session();
	uint32_t i;

	for (i = 0; i < 1000; i++)
		ns[i] = 48 + draw_lognormal(&x);
	put_cell(db, 1, 1, ns, 500, true);
	put_cell(db, 2, 1, ns + 500, 500, _i == 0);
	f = flat_of(db, &p, &v);
	qsort(ns, 1000, sizeof(*ns), by_value);
	near(f->row[0].p50_ns, exact(ns, 1000, 0.5), BOUND_OLD);
	near(f->row[0].p99_ns, exact(ns, 1000, 0.99), BOUND_OLD);
	ck_assert(f->coarse);
	ck_assert_ptr_nonnull(strstr(flat_accuracy(f), "within 22%"));
	flat_free(f);
	view_free(v);
	profile_free(p);
	(void)sqlite3_close(db);
}
END_TEST

/* Of a cell that had no room for its histogram, or that an older daemon went on with: a quantile of
 * the others would be anything. */
START_TEST(no_quantile_of_some)
{
	static const char *const spoil[] = {"UPDATE cell SET buckets=NULL WHERE process=2",
		"UPDATE cell SET count=count+1 WHERE process=2",
		"UPDATE cell SET buckets=x'0285' WHERE process=2"};
	const uint64_t ns[] = {100, 200, 300};
	struct profile *p;
	struct view *v;
	struct flat *f;
	sqlite3 *db = session();

	put_cell(db, 1, 1, ns, 3, false);
	put_cell(db, 2, 1, ns, 3, false);
	help_exec(db, spoil[_i]);
	f = flat_of(db, &p, &v);
	ck_assert(isnan(f->row[0].p50_ns) && isnan(f->row[0].p99_ns));
	ck_assert_double_eq(f->row[0].max_ns, 300);
	flat_free(f);
	view_free(v);
	profile_free(p);
	(void)sqlite3_close(db);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("view_hist");
	TCase *t = tcase_create("view_hist");

	tcase_add_test(t, every_bucket_is_within_the_bound);
	tcase_add_test(t, packed_and_back);
	tcase_add_test(t, anybodys_bytes);
	tcase_add_loop_test(t, quantiles_are_within_3_percent, 0, DRAWS);
	tcase_add_test(t, the_share_has_a_recursive_scope_once);
	tcase_add_test(t, a_family_is_as_one_name);
	tcase_add_loop_test(t, merged_is_as_of_all, 0, DRAWS);
	tcase_add_test(t, every_old_bucket_is_within_22_percent);
	tcase_add_loop_test(t, old_and_new_in_one_row, 0, 2);
	tcase_add_loop_test(t, no_quantile_of_some, 0, 3);
	suite_add_tcase(s, t);
	return s;
}
