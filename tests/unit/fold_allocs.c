/* SPDX-License-Identifier: MIT. fold_allocs.c: who holds memory, against a simulation that keeps
 * everything. */
#include "quick.h"

#include "allocs.h"
#include "framed.h"
#include "holders.h"
#include "part.h"
#include "session.h"
#include "state.h"

#include "fold_job.h"

#define BASE    (20 * SECOND)
#define SCOPES  3u
#define DEVICES 2u
#define KINDS   2u /* HELD_DEVICE, HELD_PINNED */
#define MOST    600u

static uint64_t seed;

static uint32_t pick(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static const uint32_t scope_path[SCOPES] = {P_A, P_AB, P_CAP};
static const char *const scope_words[SCOPES] = {"ROOT/a", "ROOT/a/b", "ROOT/cap"};

/* All there is, by the book. */
static struct sim {
	struct {
		uint64_t address, bytes;
		uint32_t device, kind, scope;
	} block[MOST];
	uint32_t n;
	uint64_t live[DEVICES][KINDS], peak[DEVICES][KINDS], peak_ns[DEVICES][KINDS];
	uint64_t allocs[DEVICES][KINDS], frees[DEVICES][KINDS], unknown;
	uint64_t held[DEVICES][KINDS][SCOPES], at_peak[DEVICES][KINDS][SCOPES];
	uint64_t given[SCOPES], taken[SCOPES]; /* bytes, by the scope that called */
	uint64_t most[DEVICES][KINDS][SCOPES];
} sim;

static void sim_give(
	uint64_t ns, uint64_t address, uint64_t bytes, uint32_t d, uint32_t k, uint32_t s)
{
	sim.block[sim.n].address = address;
	sim.block[sim.n].bytes = bytes;
	sim.block[sim.n].device = d;
	sim.block[sim.n].kind = k;
	sim.block[sim.n++].scope = s;
	sim.live[d][k] += bytes;
	sim.held[d][k][s] += bytes;
	sim.allocs[d][k]++;
	sim.given[s] += bytes;
	if (sim.held[d][k][s] > sim.most[d][k][s])
		sim.most[d][k][s] = sim.held[d][k][s];
	if (sim.live[d][k] > sim.peak[d][k]) {
		sim.peak[d][k] = sim.live[d][k];
		sim.peak_ns[d][k] = ns;
		memcpy(sim.at_peak[d][k], sim.held[d][k], sizeof(sim.held[d][k]));
	}
}

static uint64_t sim_take(uint32_t at, uint32_t s)
{
	const uint32_t d = sim.block[at].device, k = sim.block[at].kind;
	const uint64_t address = sim.block[at].address;

	sim.live[d][k] -= sim.block[at].bytes;
	sim.held[d][k][sim.block[at].scope] -= sim.block[at].bytes;
	sim.frees[d][k]++;
	sim.taken[s] += sim.block[at].bytes;
	sim.block[at] = sim.block[--sim.n];
	return address;
}

static struct allocs_step { /* as it is told */
	struct rec_memory r;
	enum memory_op op;
	uint32_t scope, kind;
} step[64];

/* One random operation at ns: in the simulation at once, and in *to as it is told. */
static void step_make(struct allocs_step *to, uint64_t ns, uint32_t corr)
{
	const uint32_t s = pick(SCOPES), d = pick(DEVICES), k = pick(KINDS);
	uint64_t address, bytes = 1 + pick(5000);
	uint32_t at;

	*to = (struct allocs_step){.scope = s, .kind = k};
	to->r = (struct rec_memory){.time = ns, .correlation = corr, .device = (uint16_t)d};
	if (pick(40) == 0) { /* of before the session */
		to->op = MEMORY_FREE;
		to->r.address = 7;
		sim.unknown++;
	} else if (sim.n > 0 && (sim.n == MOST || pick(9) < 4)) {
		at = pick(sim.n);
		to->r.device = (uint16_t)sim.block[at].device;
		to->kind = sim.block[at].kind;
		to->op = MEMORY_FREE;
		to->r.address = sim_take(at, s);
	} else {
		address = 4096u * (2 + pick(1u << 20));
		for (at = 0; at < sim.n; at++)
			if (sim.block[at].address == address)
				address += 4096, at = UINT32_MAX;
		to->op = MEMORY_ALLOC;
		to->r.address = address;
		to->r.bytes = bytes;
		sim_give(ns, address, bytes, d, k, s);
	}
}

/* A batch as CUPTI brings it: calls by lane, records buffer by buffer, each out of order to the others; sometimes a
 * call is read behind its record. */
static void steps_tell(uint32_t n, uint64_t ns)
{
	uint32_t order[64], i, k, swap;
	const bool late = pick(3) == 0;

	for (i = 0; i < n; i++)
		order[i] = i;
	for (i = n; i > 1; i--) {
		k = pick(i);
		swap = order[i - 1];
		order[i - 1] = order[k];
		order[k] = swap;
	}
	for (i = 0; i < n && !late; i++)
		put_memory_call(&lane, scope_path[step[i].scope], step[i].r.time - 5,
			step[i].r.time + 5, step[i].r.correlation);
	drain(&lane, ns);
	for (i = 0; i < n; i++)
		put_memory(&gpu, step[order[i]].op, (enum held_kind)step[order[i]].kind,
			&step[order[i]].r);
	put_delivered(&gpu, ns, 0);
	drain(&gpu, ns);
	for (i = 0; i < n && late; i++)
		put_memory_call(&lane, scope_path[step[i].scope], step[i].r.time - 5,
			step[i].r.time + 5, step[i].r.correlation);
	drain(&lane, ns);
}

static const struct holders *held(void)
{
	return allocs_held(f->session[0]->part[0]);
}

static const struct held_account *account(uint32_t device, uint32_t kind)
{
	const struct holders *h = held();
	uint32_t i;

	for (i = 0; i < h->n_accounts; i++)
		if (h->account[i]->device == device && h->account[i]->kind == kind)
			return h->account[i];
	return NULL;
}

static const struct held_owner *owner(
	const struct batch *b, const struct held_account *a, const char *path)
{
	const struct holders *h = held();
	char words[4096];
	uint32_t i;

	for (i = 0; i < h->n_owners; i++) {
		if (h->account[h->owner[i].account] != a || h->owner[i].node == HELD_NOBODY)
			continue;
		node_words(b, h->owner[i].hash, words, sizeof(words));
		if (strcmp(words, path) == 0)
			return &h->owner[i];
	}
	return NULL;
}

static uint64_t metric_at(const struct batch *b, const char *name, const char *path)
{
	char words[4096];
	uint32_t i;

	for (i = 0; i < b->metric.n; i++) {
		node_words(b, b->metric.row[i].node, words, sizeof(words));
		if (strcmp(b->metric.row[i].name, name) == 0 && strcmp(words, path) == 0)
			return b->metric.row[i].bits;
	}
	return 0;
}

static void compare(const struct batch *b)
{
	uint32_t d, k, s;

	for (d = 0; d < DEVICES; d++) {
		for (k = 0; k < KINDS; k++) {
			const struct held_account *a = account(d, k);

			ck_assert_ptr_nonnull(a);
			ck_assert_uint_eq(a->live, sim.live[d][k]);
			ck_assert_uint_eq(a->peak, sim.peak[d][k]);
			ck_assert_uint_eq(a->peak_ns, sim.peak_ns[d][k]);
			ck_assert_uint_eq(a->allocs, sim.allocs[d][k]);
			ck_assert_uint_eq(a->frees, sim.frees[d][k]);
			ck_assert_uint_eq(a->unseen + a->loose, 0);
			for (s = 0; s < SCOPES; s++) {
				const struct held_owner *o = owner(b, a, scope_words[s]);

				ck_assert_uint_eq(o == NULL ? 0 : o->live, sim.held[d][k][s]);
				ck_assert_uint_eq(o == NULL ? 0 : held_at_peak(held(), o),
					sim.at_peak[d][k][s]);
				ck_assert_uint_eq(o == NULL ? 0 : o->most, sim.most[d][k][s]);
			}
		}
	}
	ck_assert_uint_eq(held()->n_blocks, sim.n);
	ck_assert_uint_eq(held()->unplaced, 0);
	for (s = 0; s < SCOPES; s++) {
		ck_assert_uint_eq(metric_at(b, "alloc (bytes)", scope_words[s]), sim.given[s]);
		ck_assert_uint_eq(metric_at(b, "free (bytes)", scope_words[s]), sim.taken[s]);
	}
}

START_TEST(as_a_simulation_has_it)
{
	struct batch b;
	uint64_t ns = BASE, unknown = 0;
	uint32_t round, i, n, corr = 0, k, d;

	seed = (uint64_t)_i;
	memset(&sim, 0, sizeof(sim));
	tape_verb(&t, VERB_START, 1, 10 * SECOND)->switches = SWITCH_ALLOC;
	start(2, 10 * SECOND);
	ck_assert_uint_eq(fold_want(f, job.ring) & WANT_SWITCHES, WANT_ALLOC);
	for (round = 0; round < 100; round++) {
		n = 1 + pick(sizeof(step) / sizeof(step[0]) - 1);
		for (i = 0; i < n; i++)
			step_make(&step[i], ns += 100 + pick(1000), ++corr);
		steps_tell(n, ns += 1000);
	}
	ck_assert(allocs_wait(f->session[0]->part[0])); /* the last batch does */
	put_delivered(&gpu, ns + 1000, 0);
	put_delivered(&gpu, ns + 2000, 0);
	drain(&gpu, ns + 2000);
	ck_assert(!allocs_wait(f->session[0]->part[0]));
	b = collect();
	compare(&b);
	for (d = 0; d < DEVICES; d++)
		for (k = 0; k < KINDS; k++)
			unknown += account(d, k)->unknown;
	ck_assert_uint_eq(unknown, sim.unknown);
	ck_assert_ptr_null(allocs_held(f->session[1]->part[0]));
	batch_free(&b);
}
END_TEST

static void tell(enum memory_op op, enum held_kind kind, const struct rec_memory *r)
{
	if (gpu.n > KIT_LAP / 2)
		drain(&gpu, r->time);
	put_memory(&gpu, op, kind, r);
}

static void told(uint64_t ns)
{
	put_delivered(&gpu, ns, 0);
	put_delivered(&gpu, ns, 0);
	drain(&gpu, ns);
}

static void begin(void)
{
	tape_verb(&t, VERB_START, 1, 10 * SECOND)->switches = SWITCH_ALLOC;
	fold_take(f, &t);
}

/* More blocks than are told apart: sums stay exact, and (other) has what is over. */
START_TEST(more_blocks_than_there_is_room_for)
{
	const uint32_t n = HELD_BLOCKS + 100;
	struct rec_memory r = {.time = BASE, .bytes = 10};
	const struct held_account *a;
	uint32_t i;

	begin();
	for (i = 0; i < n; i++, r.time++) {
		r.address = 1000 + i;
		tell(MEMORY_ALLOC, HELD_DEVICE, &r);
	}
	told(r.time + 1);
	a = account(0, HELD_DEVICE);
	ck_assert_uint_eq(held()->n_blocks, HELD_BLOCKS);
	ck_assert_uint_eq(a->live, n * 10ull);
	ck_assert_uint_eq(a->loose, 100);
	ck_assert_uint_eq(held()->owner[a->other].live, 1000);
	ck_assert_uint_eq(held()->unplaced, n); /* no call came */
	for (i = 0; i < n; i++, r.time++) {
		r.address = 1000 + n - 1 - i;
		tell(MEMORY_FREE, HELD_DEVICE, &r);
	}
	told(r.time + 1);
	ck_assert_uint_eq(a->live + a->loose + a->unknown, 0);
	ck_assert_uint_eq(a->frees, n);
	ck_assert_uint_eq(a->peak, n * 10ull);
	ck_assert_uint_le(a->n_points, HELD_POINTS);
	ck_assert_uint_eq(a->point[a->n_points - 1].last, 0);
}
END_TEST

/* An address that is given again was freed where nobody saw it. */
START_TEST(an_address_given_again)
{
	struct rec_memory r = {.time = BASE, .address = 64, .bytes = 10};
	const struct held_account *a;

	begin();
	tell(MEMORY_ALLOC, HELD_DEVICE, &r);
	r.time++;
	r.bytes = 30;
	r.device = 1;
	tell(MEMORY_ALLOC, HELD_PINNED, &r);
	told(r.time + 1);
	a = account(0, HELD_DEVICE);
	ck_assert(a->live == 0 && a->unseen == 1 && a->frees == 0);
	ck_assert_uint_eq(account(1, HELD_PINNED)->live, 30);
}
END_TEST

/* A launch that is open may hold a buffer back: what is of about its time waits, but not for ever. */
START_TEST(an_open_launch)
{
	struct rec_memory r = {.time = BASE, .address = 64, .bytes = 10};
	uint64_t ns;

	begin();
	put_launch(&lane, P_A, BASE - 1000, 1, 0);
	drain(&lane, BASE);
	tell(MEMORY_ALLOC, HELD_DEVICE, &r);
	for (ns = BASE + 100; ns < BASE + SECOND; ns += SECOND / 10)
		put_delivered(&gpu, ns, 1);
	drain(&gpu, ns);
	ck_assert(allocs_wait(f->session[0]->part[0]));
	put_kernel(&gpu, N_KERN, BASE, 50, 1, 0);
	told(ns + 1);
	ck_assert(!allocs_wait(f->session[0]->part[0]));
	put_launch(&lane, P_A, ns, 2, 0);
	drain(&lane, ns);
	r.time = ns + 5;
	r.address = 96;
	tell(MEMORY_ALLOC, HELD_DEVICE, &r);
	put_delivered(&gpu, ns + SECOND, 1);
	put_delivered(&gpu, ns + 2 * SECOND, 1);
	drain(&gpu, ns + 2 * SECOND);
	ck_assert(allocs_wait(f->session[0]->part[0]));
	put_delivered(&gpu, ns + 11 * SECOND, 1);
	put_delivered(&gpu, ns + 12 * SECOND, 1);
	drain(&gpu, ns + 12 * SECOND);
	ck_assert(!allocs_wait(f->session[0]->part[0]));
}
END_TEST

/* The clocks of call and record differ: a call is kept for a while. */
START_TEST(a_record_behind_its_call)
{
	const struct rec_memory r = {
		.time = BASE + SECOND / 2, .address = 64, .bytes = 10, .correlation = 5};

	begin();
	put_memory_call(&lane, P_AB, BASE - 5, BASE, 5);
	drain(&lane, BASE);
	told(BASE + SECOND / 4);
	tell(MEMORY_ALLOC, HELD_DEVICE, &r);
	told(BASE + SECOND);
	ck_assert_uint_eq(held()->unplaced, 0);
	ck_assert_uint_eq(account(0, HELD_DEVICE)->live, 10);
	told(BASE + 3 * SECOND);
	ck_assert_uint_eq(held()->n_calls, 0);
}
END_TEST

/* What pools have is what the last event of each said. */
START_TEST(pools)
{
	struct rec_memory r = {
		.time = BASE, .address = 64, .bytes = 10, .pool = 5, .reserved = 100};
	const struct held_account *a;

	begin();
	tell(MEMORY_ALLOC, HELD_POOL, &r);
	r.time++;
	r.pool = 6;
	r.address = 96;
	r.reserved = 300;
	tell(MEMORY_ALLOC, HELD_POOL, &r);
	r.time++;
	r.address = r.bytes = 0;
	r.reserved = 50;
	tell(MEMORY_POOL_TRIMMED, HELD_RESERVED, &r);
	told(r.time + 1);
	a = account(0, HELD_RESERVED);
	ck_assert(a->live == 150 && a->peak == 400 && a->blocks == 2);
	ck_assert_uint_eq(account(0, HELD_POOL)->live, 20);
	r.time++;
	tell(MEMORY_POOL_GONE, HELD_RESERVED, &r);
	told(r.time + 1);
	ck_assert(a->live == 100 && a->blocks == 1);
}
END_TEST

/* A session that ends has what waited, and its process need say no more. */
START_TEST(the_end_takes_what_waits)
{
	const struct rec_memory r = {.time = BASE, .address = 64, .bytes = 10};
	struct batch b;

	begin();
	tell(MEMORY_ALLOC, HELD_DEVICE, &r);
	drain(&gpu, BASE + 1);
	verb(VERB_FINALIZE, 1, BASE + 2);
	ck_assert(!fold_is_settled(f, f->session[0]->row.uuid));
	verb(VERB_FINALIZED, 1, BASE + 3);
	b = collect();
	ck_assert_uint_eq(b.memory.n, 1);
	ck_assert_uint_eq(account(0, HELD_DEVICE)->live, 10);
	batch_free(&b);
}
END_TEST

/* --- bytes */

static struct holders *made(void)
{
	static struct holders h;
	uint32_t i, k;

	memset(&h, 0, sizeof(h));
	for (i = 0; i < 2; i++) {
		h.account[i] = calloc(1, sizeof(*h.account[i]));
		ck_assert_ptr_nonnull(h.account[i]);
		h.account[i]->kind = (uint8_t)i;
		h.account[i]->other = i;
		for (k = 0; k < 3000; k++) {
			h.account[i]->live = 1 + pick(100000);
			held_point_add(h.account[i], BASE + k * 1000);
		}
	}
	h.n_accounts = h.n_owners = 2;
	h.owner = calloc(2, sizeof(*h.owner));
	h.block = calloc(3, sizeof(*h.block));
	h.event = calloc(1, sizeof(*h.event));
	h.call = calloc(1, sizeof(*h.call));
	h.owner[1].account = 1;
	h.owner[1].hash[3] = 9;
	h.owner[1].live = 77;
	h.n_blocks = 3;
	h.block[2] = (struct held_block){UINT64_MAX, 5, BASE, 1};
	h.n_events = h.n_calls = h.n_pools = 1;
	h.torch = calloc(1, sizeof(*h.torch));
	h.n_torch = 1;
	h.torch[0].requested = 11;
	h.account[1]->live = 77;
	for (k = 0; k < 1000; k++)
		held_frame_add(&h, h.account[1], BASE + k * SECOND / 50);
	h.event[0].correlation = 8;
	h.call[0].path = 4;
	h.pool[0].reserved = 3;
	return &h;
}

START_TEST(bytes_and_back)
{
	struct holders *h = made(), got;
	void *bytes, *again;
	uint32_t n, m, i;
	struct err e;

	ck_assert_uint_le(h->account[0]->n_points, HELD_POINTS);
	ck_assert_uint_gt(h->account[0]->n_points, HELD_POINTS / 4);
	ck_assert_uint_eq(
		h->account[0]->point[h->account[0]->n_points - 1].last, h->account[0]->live);
	ck_assert_uint_le(h->account[1]->n_frames, HELD_FRAMES);
	ck_assert_uint_gt(h->account[1]->n_frames, HELD_FRAMES / 4);
	ck_assert_int_eq(holders_pack(h, &bytes, &n), 0);
	ck_assert_int_eq(holders_unpack(bytes, n, &got, &e), 0);
	ck_assert(got.n_torch == 1 && got.torch[0].requested == 11);
	ck_assert(got.account[1]->frame[3].n == 1 && got.account[1]->frame[3].live[0] == 77);
	ck_assert(got.n_blocks == 3 && got.block[2].address == UINT64_MAX);
	ck_assert(got.owner[1].hash[3] == 9 && got.event[0].correlation == 8);
	ck_assert_int_eq(holders_pack(&got, &again, &m), 0);
	ck_assert_uint_eq(n, m);
	ck_assert_mem_eq(bytes, again, n);
	holders_fini(&got);
	for (i = 0; i < n; i += 1 + i / 8) /* cut off */
		ck_assert_int_eq(holders_unpack(bytes, i, &got, &e), -EBADMSG);
	holders_fini(h);
	free(bytes);
	free(again);
}
END_TEST

/* A row of before there were torch's blocks, and instants: it ends where those begin. */
START_TEST(bytes_of_before)
{
	static uint8_t raw[1 << 16];
	struct holders *h = made(), got;
	void *bytes;
	size_t raw_n;
	struct err e;
	uint32_t n, i;

	h->n_torch = h->account[1]->n_frames = 0;
	h->account[1]->frame_ns = 0;
	ck_assert_int_eq(holders_pack(h, &bytes, &n), 0);
	raw_n = framed_unpack("PDM1", bytes, n, raw, sizeof(raw));
	free(bytes);
	for (i = 0; i < 2; i++) { /* then one byte less, which is damage */
		ck_assert_int_eq(framed_pack("PDM1", raw, raw_n - 5 - i, &bytes, &n), 0);
		ck_assert_int_eq(holders_unpack(bytes, n, &got, &e), i == 0 ? 0 : -EBADMSG);
		ck_assert_uint_eq(got.n_calls, i == 0 ? 1 : 0);
		holders_fini(&got);
		free(bytes);
	}
	holders_fini(h);
}
END_TEST

/* Any bytes in a good frame: refused, or read within every ceiling. */
START_TEST(bytes_of_a_stranger)
{
	static uint8_t raw[1 << 16];
	struct holders got;
	void *bytes, *made_bytes;
	uint32_t n, i, k, some;
	size_t raw_n;
	struct err e;

	seed = (uint64_t)_i;
	ck_assert_int_eq(holders_pack(made(), &made_bytes, &n), 0);
	raw_n = framed_unpack("PDM1", made_bytes, n, raw, sizeof(raw));
	ck_assert_uint_gt(raw_n, 100);
	free(made_bytes);
	for (i = 0; i < 300; i++) {
		for (some = 1 + pick(4), k = 0; k < some; k++)
			raw[pick((uint32_t)raw_n)] = (uint8_t)pick(256);
		ck_assert_int_eq(framed_pack("PDM1", raw, raw_n - pick(2), &bytes, &n), 0);
		if (holders_unpack(bytes, n, &got, &e) == 0) {
			for (k = 0; k < got.n_blocks; k++)
				ck_assert_uint_lt(got.block[k].owner, got.n_owners);
			for (k = 0; k < got.n_owners; k++)
				ck_assert_uint_lt(got.owner[k].account, got.n_accounts);
			for (k = 0; k < got.n_accounts; k++)
				ck_assert_uint_le(got.account[k]->n_frames, HELD_FRAMES);
		}
		holders_fini(&got);
		free(bytes);
	}
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("fold_allocs");
	TCase *c = tcase_create("fold"), *b = tcase_create("bytes");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, as_a_simulation_has_it, 0, 8);
	tcase_add_test(c, more_blocks_than_there_is_room_for);
	tcase_add_test(c, an_address_given_again);
	tcase_add_test(c, an_open_launch);
	tcase_add_test(c, a_record_behind_its_call);
	tcase_add_test(c, pools);
	tcase_add_test(c, the_end_takes_what_waits);
	suite_add_tcase(s, c);
	tcase_add_test(b, bytes_and_back);
	tcase_add_test(b, bytes_of_before);
	tcase_add_loop_test(b, bytes_of_a_stranger, 0, 4);
	suite_add_tcase(s, b);
	return s;
}
