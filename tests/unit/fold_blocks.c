/* SPDX-License-Identifier: MIT. fold_blocks.c: who holds torch's memory, against a simulation: threads allocate and
 * others free, and their lanes are read in any order. */
#include "quick.h"

#include "allocs.h"
#include "holders.h"
#include "part.h"
#include "process.h"
#include "session.h"
#include "state.h"

#include "fold_job.h"

#define BASE   (20 * SECOND)
#define MOST   500u
#define SCOPES 2u
#define SLACK  (SECOND / 2) /* behind it all from before has counted */

static uint64_t seed, ns;
static struct kit_lane other;
static const uint32_t scope_path[SCOPES] = {P_A, P_AB};
static const char *const scope_words[SCOPES] = {"ROOT/a", "ROOT/a/b"};

static uint32_t pick(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static struct sim {
	struct {
		uint64_t address, bytes;
		uint32_t scope;
	} block[MOST];
	uint32_t n;
	uint64_t live, peak, allocs, frees, given, taken, reserved, most_reserved;
	uint64_t held[SCOPES], at_peak[SCOPES];
} sim;

/* Of the lane, at the next ns, which the clock of the kit is. */
static void tell(
	struct kit_lane *l, enum block_op op, uint32_t path, uint64_t address, uint64_t bytes)
{
	struct rec_block r = {.clock = ++ns,
		.address = address,
		.bytes = bytes,
		.reserved = sim.reserved,
		.active = sim.live,
		.requested = sim.live / 2};

	lane_put(l, REC_BLOCK, op, path, &r, sizeof(r));
}

static void sim_grown(void)
{
	if (sim.live <= sim.peak)
		return;
	sim.peak = sim.live;
	memcpy(sim.at_peak, sim.held, sizeof(sim.held));
}

static void sim_alloc(struct kit_lane *l)
{
	const uint32_t s = pick(SCOPES);
	const uint64_t guess = 512 * (1 + pick(9)),
		       bytes = guess + (pick(8) == 0 ? 512 * pick(99) : 0);
	const uint64_t address = 0x10000 + ns * 16;

	if (sim.live + bytes > sim.reserved) {
		sim.reserved += 2 << 20;
		sim.most_reserved =
			sim.reserved > sim.most_reserved ? sim.reserved : sim.most_reserved;
		tell(l, BLOCK_SEGMENT, scope_path[s], address, 2 << 20);
	}
	tell(l, BLOCK_ALLOC, scope_path[s], address, guess);
	if (bytes > guess) /* whoever comes next says so */
		tell(pick(2) == 0 ? &lane : &other, BLOCK_SIZE, P_CAP, address, bytes);
	sim.block[sim.n].address = address;
	sim.block[sim.n].bytes = bytes;
	sim.block[sim.n++].scope = s;
	sim.live += bytes;
	sim.held[s] += bytes;
	sim.given += bytes;
	sim.allocs++;
	sim_grown();
}

static void sim_free(struct kit_lane *l, uint32_t at)
{
	sim.live -= sim.block[at].bytes;
	sim.held[sim.block[at].scope] -= sim.block[at].bytes;
	sim.taken += sim.block[at].bytes;
	sim.frees++;
	tell(l, BLOCK_FREE, P_CAP, sim.block[at].address, 1);
	sim.block[at] = sim.block[--sim.n];
}

static const struct holders *held(void)
{
	return allocs_held(f->session[0]->part[0]);
}

static const struct held_account *account(uint32_t kind)
{
	uint32_t i;

	for (i = 0; i < held()->n_accounts; i++)
		if (held()->account[i]->kind == kind)
			return held()->account[i];
	return NULL;
}

static const struct held_owner *owner(const struct batch *b, const char *path)
{
	const struct holders *h = held();
	char words[4096];
	uint32_t i;

	for (i = 0; i < h->n_owners; i++) {
		if (h->account[h->owner[i].account] != account(HELD_TORCH) ||
			h->owner[i].node == HELD_NOBODY)
			continue;
		node_words(b, h->owner[i].hash, words, sizeof(words));
		if (strcmp(words, path) == 0)
			return &h->owner[i];
	}
	return NULL;
}

/* All from before has counted. */
static void settled(void)
{
	ns += SLACK;
	put_delivered(&gpu, ns, 0);
	drain(&gpu, ns);
}

static void begin(uint8_t switches)
{
	tape_verb(&t, VERB_START, 1, 10 * SECOND)->switches = switches;
	fold_take(f, &t);
	other = (struct kit_lane){.lane = 1};
	memset(&sim, 0, sizeof(sim));
	ns = BASE;
}

START_TEST(as_a_simulation_has_it)
{
	struct batch b;
	uint32_t round, i, s;

	seed = (uint64_t)_i;
	begin(SWITCH_ALLOC);
	for (round = 0; round < 60; round++) {
		for (i = 0; i < 40; i++, ns += pick(2000)) {
			struct kit_lane *l = pick(2) == 0 ? &lane : &other;

			if (sim.n > 0 && (sim.n == MOST || pick(9) < 4))
				sim_free(l, pick(sim.n));
			else
				sim_alloc(l);
		}
		ns += pick(SECOND / 5);
		drain(pick(2) == 0 ? &other : &lane, ns);
		drain(&lane, ns);
		drain(&other, ns);
	}
	tell(&lane, BLOCK_STATE, P_A, 0, 0);
	drain(&lane, ns);
	settled();
	b = collect();
	ck_assert_uint_eq(account(HELD_TORCH)->live, sim.live);
	ck_assert_uint_eq(account(HELD_TORCH)->peak, sim.peak);
	ck_assert_uint_eq(account(HELD_TORCH)->allocs, sim.allocs);
	ck_assert_uint_eq(account(HELD_TORCH)->frees, sim.frees);
	ck_assert_uint_eq(account(HELD_TORCH)->alloc_bytes, sim.given);
	ck_assert_uint_eq(account(HELD_TORCH)->free_bytes, sim.taken);
	ck_assert_uint_eq(account(HELD_TORCH)->unknown + account(HELD_TORCH)->unseen, 0);
	ck_assert_uint_eq(account(HELD_TORCH_RESERVED)->live, sim.reserved);
	ck_assert_uint_eq(account(HELD_TORCH_RESERVED)->peak, sim.most_reserved);
	ck_assert_uint_eq(account(HELD_TORCH_ACTIVE)->live, sim.live);
	ck_assert_uint_eq(account(HELD_TORCH_REQUESTED)->live, sim.live / 2);
	for (s = 0; s < SCOPES; s++) {
		ck_assert_uint_eq(owner(&b, scope_words[s])->live, sim.held[s]);
		ck_assert_uint_eq(held_at_peak(held(), owner(&b, scope_words[s])), sim.at_peak[s]);
	}
	ck_assert_uint_gt(account(HELD_TORCH)->n_frames, 30);
	batch_free(&b);
}
END_TEST

/* What was there before is nobody's, and goes by the sizes that frees tell. */
START_TEST(what_was_there_before)
{
	struct batch b;

	begin(SWITCH_ALLOC);
	tell(&lane, BLOCK_BEFORE, P_A, 3, 3000); /* three blocks */
	tell(&lane, BLOCK_ALLOC, P_A, 0x900, 512);
	tell(&lane, BLOCK_FREE, P_A, 0x100, 1000);
	drain(&lane, ns);
	settled();
	ck_assert_uint_eq(account(HELD_TORCH)->live, 2512);
	ck_assert_uint_eq(account(HELD_TORCH)->blocks, 3);
	tell(&lane, BLOCK_BEFORE, P_A, 1, 700); /* anew: 0x900 went unseen */
	tell(&lane, BLOCK_FREE, P_A, 0x900, 700);
	tell(&lane, BLOCK_FREE, P_A, 0x900, 5);
	tell(&lane, BLOCK_OOM, P_AB, 0, 1 << 30);
	drain(&lane, ns);
	settled();
	b = collect();
	ck_assert_uint_eq(account(HELD_TORCH)->live + account(HELD_TORCH)->blocks, 0);
	ck_assert_uint_eq(account(HELD_TORCH)->unknown, 1);
	batch_free(&b);
}
END_TEST

/* The driver's block and torch's first one in it have one address. */
START_TEST(segments_and_blocks_are_apart)
{
	const struct rec_memory r = {.time = BASE + 1, .address = 0x700, .bytes = 2 << 20};

	begin(SWITCH_ALLOC);
	put_memory(&gpu, MEMORY_ALLOC, HELD_DEVICE, &r);
	put_delivered(&gpu, BASE + SECOND, 0);
	put_delivered(&gpu, BASE + 2 * SECOND, 0);
	drain(&gpu, BASE + 2 * SECOND);
	tell(&lane, BLOCK_ALLOC, P_A, 0x700, 512);
	tell(&lane, BLOCK_FREE, P_A, 0x700, 512);
	drain(&lane, ns);
	settled();
	ck_assert_uint_eq(account(HELD_DEVICE)->live, 2 << 20);
	ck_assert_uint_eq(account(HELD_TORCH)->live + account(HELD_TORCH)->unseen, 0);
	ck_assert_uint_eq(account(HELD_TORCH)->frees, 1);
}
END_TEST

START_TEST(what_is_in_ram)
{
	uint32_t i;

	begin(SWITCH_ALLOC);
	for (i = 1; i < 4; i++) {
		((struct j_resident *)tape_add(
			 &t, J_RESIDENT, job.ring, BASE + i * SECOND, sizeof(struct j_resident)))
			->bytes = i == 2 ? 9000 : 4096 * i;
		fold_take(f, &t);
	}
	ck_assert_uint_eq(account(HELD_RESIDENT)->live, 12288);
	ck_assert_uint_eq(account(HELD_RESIDENT)->peak_ns, BASE + 3 * SECOND);
	ck_assert_uint_eq(account(HELD_RESIDENT)->n_points, 3);
	ck_assert_uint_eq(account(HELD_RESIDENT)->device, HELD_HOST);
}
END_TEST

/* Bytes of a job's: counted, and nothing else. */
START_TEST(what_cannot_be)
{
	begin(SWITCH_ALLOC);
	tell(&lane, BLOCK_ALLOC, 999999, 1, 512);
	tell(&lane, (enum block_op)0, P_A, 1, 512);
	tell(&lane, BLOCK_OP_MAX, P_A, 1, 512);
	tell(&lane, BLOCK_ALLOC, P_A, 1, 1ull << 51);
	drain(&lane, ns);
	ck_assert_ptr_null(held());
	ck_assert_uint_eq(f->process[0]->bad, 4);
}
END_TEST

START_TEST(off_it_is_nothing)
{
	begin(0);
	tell(&lane, BLOCK_ALLOC, P_A, 1, 512);
	drain(&lane, ns);
	ck_assert_ptr_null(held());
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("fold_blocks");
	TCase *c = tcase_create("fold");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, as_a_simulation_has_it, 0, 6);
	tcase_add_test(c, what_was_there_before);
	tcase_add_test(c, segments_and_blocks_are_apart);
	tcase_add_test(c, what_is_in_ram);
	tcase_add_test(c, what_cannot_be);
	tcase_add_test(c, off_it_is_nothing);
	suite_add_tcase(s, c);
	return s;
}
