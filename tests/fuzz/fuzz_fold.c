/* SPDX-License-Identifier: MIT. fuzz_fold.c: any bytes as the entries of a journal, after a
 * plausible beginning. Nothing crashes, what is counted was there to be counted, and a fold
 * restored from what was collected is collected to nothing new.
 *
 * The input is a chain of {type, ring, u16 bytes, u32 time, payload}; bit 7 of the type asks that
 * the records of a LANE payload get the lap and the position of their lane, so that the walk gets
 * far. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fold.h"
#include "record.h"
#include "ring.h"

#define MUST(e) ((e) ? (void)0 : (void)(fprintf(stderr, "not true: %s\n", #e), abort()))
#define LAP     RING_LANE_BYTES_MIN

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

struct game {
	struct fold *fold;
	uint64_t ns, from[2][4];
};

static int apply(struct game *g, uint8_t type, uint8_t ring, const void *payload, size_t bytes)
{
	size_t whole = sizeof(struct journal_entry) + ((bytes + 7) & ~(size_t)7);
	struct journal_entry *e = calloc(1, whole);
	int r;

	MUST(e != NULL);
	e->magic = JOURNAL_MAGIC;
	e->type = type;
	e->bytes = (uint32_t)whole;
	e->mono_ns = g->ns;
	memset(e->ring, ring + 1, 16);
	if (bytes > 0)
		memcpy(e + 1, payload, bytes);
	r = fold_apply(g->fold, e);
	free(e);
	return r;
}

static void begin(struct game *g)
{
	static const char text[] =
		"\1\0\0\0a\0\0\0\4\0\0\0nccl\5\0\0\0m(pt)\0\0\0\1\0\0\0\xff\0\0\0";
	struct {
		struct j_table t;
		uint8_t bytes[sizeof(text)];
	} names = {{TABLE_NAMES, 2, 4, sizeof(text) - 1}, {0}};
	struct {
		struct j_table t;
		struct ring_path path[3];
	} paths = {{TABLE_PATHS, 2, 3, 0},
		{{0, 2, PATH_KIND_SCOPE, 1, 0}, {2, 5, PATH_KIND_SCOPE, 2, 0},
			{2, 2, PATH_KIND_OP, 2, 0}}};
	struct j_process p = {
		.clock = RING_CLOCK_TSC, .n_lanes = 4, .lane_bytes = LAP, .created_clock = 1};
	struct j_verb v = {
		.verb = VERB_START, .match = MATCH_USER, .switches = UINT8_MAX, .mono_ns = 10};
	uint8_t ring;

	memcpy(names.bytes, text, sizeof(text));
	for (ring = 0; ring < 2; ring++) {
		MUST(apply(g, J_PROCESS, ring, &p, sizeof(p)) == 0);
		MUST(apply(g, J_TABLE, ring, &names, sizeof(names)) == 0);
		MUST(apply(g, J_TABLE, ring, &paths, sizeof(paths)) == 0);
	}
	v.session[0] = 1;
	MUST(apply(g, J_VERB, 0, &v, sizeof(v)) == 0);
}

/* Makes the walk believe: each record's lap; where its lane stands. */
static void make_plausible(struct game *g, uint8_t type, uint8_t ring, uint8_t *payload, size_t n)
{
	struct j_lane l;
	uint64_t hdr, at;
	uint32_t i, bytes;

	if (n < sizeof(l))
		return;
	memcpy(&l, payload, sizeof(l));
	l.lane %= 4;
	l.from = g->from[ring][l.lane];
	l.bytes = (uint32_t)(n - sizeof(l)) & ~7u;
	for (i = 0; i + 8 <= l.bytes; i += bytes) {
		at = l.from + i;
		memcpy(&hdr, payload + sizeof(l) + i, 8);
		bytes = REC_BYTES(hdr) == 0 ? 8 : REC_BYTES(hdr);
		hdr = (hdr & ~0xff0000ull) | (at / LAP & 0xff) << 16;
		memcpy(payload + sizeof(l) + i, &hdr, 8);
	}
	if (type != J_SUMS) /* those are open */
		g->from[ring][l.lane] += l.bytes;
	memcpy(payload, &l, sizeof(l));
}

static void check(const struct batch *b)
{
	uint64_t events = 0, counted = 0;
	uint32_t i;

	for (i = 0; i < b->process.n; i++)
		events += b->process.row[i].counters[0];
	for (i = 0; i < b->cell.n; i++) {
		if (b->cell.row[i].session == 1)
			counted += b->cell.row[i].count;
		MUST(b->cell.row[i].sum_ns <= INT64_MAX && b->cell.row[i].bytes <= INT64_MAX);
		MUST(b->cell.row[i].class < CLASS_MAX &&
			b->cell.row[i].untimed <= b->cell.row[i].count);
		MUST(b->cell.row[i].count == 0 || b->cell.row[i].min_ns <= b->cell.row[i].max_ns);
	}
	MUST(counted <= events);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct game g = {.ns = 1000}, again = {.ns = 0};
	struct fold_limits small = {.nodes = 32, .launches = 16, .sessions = 8, .processes = 4};
	struct batch b = {0};
	uint8_t payload[4096];
	uint16_t len;
	uint32_t dt;

	MUST(fold_new(&small, &g.fold) == 0 && fold_new(&small, &again.fold) == 0);
	begin(&g);
	while (n >= 8) {
		memcpy(&len, bytes + 2, 2);
		memcpy(&dt, bytes + 4, 4);
		len = (uint16_t)(len % sizeof(payload) < n - 8 ? len % sizeof(payload) : n - 8);
		g.ns += dt;
		memcpy(payload, bytes + 8, len);
		if ((bytes[0] & 0x80) != 0)
			make_plausible(&g, bytes[0] & 0x7f, bytes[1] & 1, payload, len);
		MUST(apply(&g, (bytes[0] & 0x7f) % (J_MAX + 1), bytes[1] & 1, payload, len) !=
			-ENOMEM);
		bytes += 8 + len;
		n -= 8u + len;
	}
	MUST(fold_collect(g.fold, &b) == 0);
	check(&b);
	MUST(fold_restore(again.fold, &b) == 0 && !fold_is_dirty(again.fold));
	batch_free(&b);
	MUST(fold_collect(again.fold, &b) == 0);
	MUST(b.cell.n == 0 && b.process.n == 0 && b.session.n == 0 && b.loss.n == 0);
	batch_free(&b);
	fold_free(g.fold);
	fold_free(again.fold);
	return 0;
}
