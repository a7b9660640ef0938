/* SPDX-License-Identifier: MIT. fold_help.h: journal entries and lanes made in memory, and a store
 * that is a batch, for the tests of the fold. Header-only: each test is one program. */
#ifndef FOLD_HELP_H
#define FOLD_HELP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quick.h"

#include "fold.h"
#include "record.h"
#include "ring.h"

#define HELP       static inline __attribute__((unused))
#define KIT_LANES  4u
#define KIT_LAP    RING_LANE_BYTES_MIN
#define UID        1000u
#define SECOND     1000000000ull
#define REAL_AHEAD (1000000 * SECOND) /* CLOCK_REALTIME − CLOCK_MONOTONIC in these tests */

/* --- a journal */

struct tape {
	struct journal_entry **entry;
	uint32_t n, cap;
};

HELP void *must(void *p)
{
	if (p == NULL)
		abort();
	return p;
}

HELP void tape_free(struct tape *t)
{
	uint32_t i;

	for (i = 0; i < t->n; i++)
		free(t->entry[i]);
	free(t->entry);
	*t = (struct tape){0};
}

/* An entry with room for its payload, which is returned zeroed. */
HELP void *tape_add(
	struct tape *t, uint16_t type, const uint8_t ring[16], uint64_t mono_ns, size_t bytes)
{
	size_t whole = sizeof(struct journal_entry) + ((bytes + 7) & ~(size_t)7);
	struct journal_entry *e = must(calloc(1, whole));

	*e = (struct journal_entry){
		.magic = JOURNAL_MAGIC, .bytes = (uint32_t)whole, .type = type, .mono_ns = mono_ns};
	if (ring != NULL)
		memcpy(e->ring, ring, 16);
	if (t->n == t->cap) {
		t->cap = t->cap == 0 ? 64 : t->cap * 2;
		t->entry = must(realloc(t->entry, t->cap * sizeof(*t->entry)));
	}
	t->entry[t->n++] = e;
	return e + 1;
}

struct kit_process {
	uint8_t ring[16];
	uint32_t pid, uid, clock, khz, flags;
	uint64_t created_clock, created_ns;
	const char *info;
	uint32_t info_bytes;
};

HELP struct kit_process kit_process(uint8_t number)
{
	struct kit_process k = {.pid = 100u + number,
		.uid = UID,
		.clock = RING_CLOCK_MONOTONIC,
		.created_clock = SECOND,
		.created_ns = SECOND,
		.info = "command=python train.py\0rank=3\0host=node1",
		.info_bytes = sizeof("command=python train.py\0rank=3\0host=node1")};

	memset(k.ring, number, 16);
	return k;
}

HELP void tape_process(struct tape *t, const struct kit_process *k)
{
	struct j_process *j =
		tape_add(t, J_PROCESS, k->ring, k->created_ns, sizeof(*j) + k->info_bytes);

	j->pid = j->ns_pid = k->pid;
	j->uid = k->uid;
	j->clock = k->clock;
	j->tsc_khz = k->khz;
	j->flags = k->flags;
	j->n_lanes = KIT_LANES;
	j->lane_bytes = KIT_LAP;
	j->created_clock = k->created_clock;
	j->created_monotonic_ns = k->created_ns;
	j->created_realtime_ns = k->created_ns + REAL_AHEAD;
	j->info_bytes = k->info_bytes;
	memcpy(j + 1, k->info, k->info_bytes);
}

HELP void tape_names_raw(struct tape *t, const uint8_t ring[16], uint32_t first, uint32_t n,
	const uint32_t *bytes, const char *const *text)
{
	struct j_table *j;
	uint8_t *at;
	uint32_t i, whole = 0;

	for (i = 0; i < n; i++)
		whole += 4 + ((bytes[i] + 3) & ~3u);
	j = tape_add(t, J_TABLE, ring, 0, sizeof(*j) + whole);
	*j = (struct j_table){TABLE_NAMES, first, n, whole};
	at = (uint8_t *)(j + 1);
	for (i = 0; i < n; i++) {
		memcpy(at, &bytes[i], 4);
		memcpy(at + 4, text[i], bytes[i]);
		at += 4 + ((bytes[i] + 3) & ~3u);
	}
}

/* names: "" and "(other)" are 0 and 1 everywhere; these begin at `first`. */
HELP void tape_names(
	struct tape *t, const uint8_t ring[16], uint32_t first, uint32_t n, const char *const *text)
{
	uint32_t bytes[256], i;

	for (i = 0; i < n && i < 256; i++)
		bytes[i] = (uint32_t)strlen(text[i]);
	tape_names_raw(t, ring, first, n, bytes, text);
}

HELP void tape_table(struct tape *t, const uint8_t ring[16], uint32_t which, uint32_t first,
	uint32_t n, const void *entries, size_t each)
{
	struct j_table *j = tape_add(t, J_TABLE, ring, 0, sizeof(*j) + n * each);

	*j = (struct j_table){which, first, n, 0};
	memcpy(j + 1, entries, n * each);
}

HELP void tape_paths(struct tape *t, const uint8_t ring[16], uint32_t first, uint32_t n,
	const struct ring_path *p)
{
	tape_table(t, ring, TABLE_PATHS, first, n, p, sizeof(*p));
}

HELP struct j_verb *tape_verb(struct tape *t, uint32_t verb, uint8_t session, uint64_t ns)
{
	struct j_verb *v = tape_add(t, J_VERB, NULL, ns, sizeof(*v));

	v->verb = verb;
	v->uid = UID;
	memset(v->session, session, 16);
	v->mono_ns = ns;
	v->realtime_ns = (int64_t)(ns + REAL_AHEAD);
	v->source = SOURCE_CONTROL;
	v->match = MATCH_USER;
	(void)snprintf(v->name, sizeof(v->name), "s%u", session);
	return v;
}

HELP void tape_anchor(struct tape *t, uint32_t kind, uint64_t clock, uint64_t ns, uint64_t real)
{
	struct j_anchor *a = tape_add(t, J_ANCHOR, NULL, ns, sizeof(*a));

	*a = (struct j_anchor){clock, ns, real, 30, kind, 0};
}

HELP void tape_end(
	struct tape *t, const uint8_t ring[16], uint64_t ns, uint32_t reason, int32_t status)
{
	struct j_end *e = tape_add(t, J_END, ring, ns, sizeof(*e));

	*e = (struct j_end){reason, status};
}

HELP void tape_now(
	struct tape *t, const uint8_t ring[16], uint64_t ns, uint32_t n, const struct j_now *now)
{
	struct j_now *to = tape_add(t, J_NOW, ring, ns, n * sizeof(*to));

	if (n > 0)
		memcpy(to, now, n * sizeof(*to));
}

/* --- a lane */

struct kit_lane {
	uint32_t lane;
	uint64_t from;
	uint32_t n;
	uint8_t bytes[KIT_LAP];
};

HELP void lane_raw(struct kit_lane *l, const void *record, uint32_t bytes)
{
	ck_assert_uint_le(l->n + bytes, sizeof(l->bytes)); /* else: drain in between */
	memcpy(l->bytes + l->n, record, bytes);
	l->n += bytes;
}

/* The record's first word is made here; a pad before it where it would cross the lap. */
HELP void lane_put(
	struct kit_lane *l, uint8_t type, uint8_t flags, uint32_t id, void *record, uint32_t bytes)
{
	uint64_t at = l->from + l->n, left = KIT_LAP - at % KIT_LAP, hdr;

	if (left < bytes) {
		hdr = REC_HDR(0, REC_PAD, at / KIT_LAP, 0, left);
		lane_raw(l, &hdr, sizeof(hdr));
		memset(l->bytes + l->n, 0xee, left - 8);
		l->n += (uint32_t)left - 8;
		at = l->from + l->n;
	}
	hdr = REC_HDR(bytes, type, at / KIT_LAP, flags, id);
	memcpy(record, &hdr, sizeof(hdr));
	lane_raw(l, record, bytes);
}

HELP void tape_lane(struct tape *t, const uint8_t ring[16], uint64_t ns, struct kit_lane *l)
{
	struct j_lane *j = tape_add(t, J_LANE, ring, ns, sizeof(*j) + l->n);

	*j = (struct j_lane){l->lane, l->n, l->from, 1, 77};
	memcpy(j + 1, l->bytes, l->n);
	l->from += l->n;
	l->n = 0;
}

/* What stands there as open sums: the lane does not go on. */
HELP void tape_sums(struct tape *t, const uint8_t ring[16], uint64_t ns, struct kit_lane *l)
{
	struct j_lane *j = tape_add(t, J_SUMS, ring, ns, sizeof(*j) + l->n);

	*j = (struct j_lane){l->lane, l->n, l->from, 1, 77};
	memcpy(j + 1, l->bytes, l->n);
	l->n = 0;
}

HELP void put_scope(struct kit_lane *l, uint32_t path, uint64_t begin, uint64_t end)
{
	struct rec_scope r = {.begin = begin, .end = end};

	lane_put(l, REC_SCOPE, 0, path, &r, sizeof(r));
}

HELP void put_launch(
	struct kit_lane *l, uint32_t path, uint64_t clock, uint32_t corr, uint8_t flags)
{
	struct rec_launch r = {.clock = clock, .correlation = corr, .epoch = 1};

	lane_put(l, REC_LAUNCH, flags, path, &r, sizeof(r));
}

HELP void put_launch_ended(struct kit_lane *l, uint32_t path, uint64_t begin, uint64_t end,
	uint32_t corr, uint8_t flags)
{
	struct rec_launch_ended r = {
		.launch = {.clock = begin, .correlation = corr, .epoch = 1}, .end = end};

	lane_put(l, REC_LAUNCH, (uint8_t)(flags | LAUNCH_ENDS), path, &r, sizeof(r));
}

/* start and length as in put_kernel(). */
HELP void put_overhead(
	struct kit_lane *l, uint32_t kind, uint64_t start, uint64_t ns, uint32_t corr)
{
	struct rec_overhead r = {.start = start + REAL_AHEAD,
		.end = start + ns + REAL_AHEAD,
		.correlation = corr,
		.tid = 7,
		.epoch = 1};

	lane_put(l, REC_OVERHEAD, 0, kind, &r, sizeof(r));
}

HELP void put_call(struct kit_lane *l, uint32_t path, uint64_t begin, uint64_t end, uint8_t kind)
{
	struct rec_call r = {.begin = begin,
		.end = end,
		.event = 0xe1,
		.correlation = 9,
		.stream = 7,
		.epoch = 1,
		.kind = kind};

	lane_put(l, REC_CALL, 0, path, &r, sizeof(r));
}

/* A call that allocates or frees, of that correlation id. */
HELP void put_memory_call(
	struct kit_lane *l, uint32_t path, uint64_t begin, uint64_t end, uint32_t corr)
{
	struct rec_call r = {.begin = begin,
		.end = end,
		.correlation = corr,
		.stream = UINT32_MAX,
		.epoch = 1,
		.kind = 5};

	lane_put(l, REC_CALL, CALL_ONLY_MEMORY, path, &r, sizeof(r));
}

/* Its time is CLOCK_MONOTONIC here. */
HELP void put_memory(
	struct kit_lane *l, enum memory_op op, enum held_kind kind, const struct rec_memory *r)
{
	struct rec_memory to = *r;

	to.time += REAL_AHEAD;
	to.epoch = 1;
	lane_put(l, REC_MEMORY, (uint8_t)op, kind, &to, sizeof(to));
}

HELP void put_api(struct kit_lane *l, uint32_t path, uint64_t begin, uint64_t end, uint32_t name,
	uint8_t kind, uint8_t flags)
{
	struct rec_call r = {.begin = begin,
		.end = end,
		.correlation = 9,
		.stream = UINT32_MAX,
		.epoch = 1,
		.kind = kind,
		.name = name};

	lane_put(l, REC_CALL, flags, path, &r, sizeof(r));
}

/* The short one. */
HELP void put_called(
	struct kit_lane *l, uint32_t path, uint64_t begin, uint32_t took, uint32_t name)
{
	struct rec_called r = {
		.begin = begin, .took = took, .correlation = 9, .name = name, .epoch = 1};

	lane_put(l, REC_CALLED, 0, path, &r, sizeof(r));
}

/* start and length: CLOCK_MONOTONIC ns, told as CLOCK_REALTIME. */
HELP void put_kernel(struct kit_lane *l, uint32_t name, uint64_t start, uint64_t ns, uint32_t corr,
	uint8_t flags)
{
	struct rec_kernel r = {.start = start + REAL_AHEAD,
		.end = start + ns + REAL_AHEAD,
		.correlation = corr,
		.epoch = 1,
		.stream = 7,
		.config = UINT32_MAX};

	if ((flags & GPU_FLAG_RUNNING) != 0)
		r.end = 0;
	lane_put(l, REC_KERNEL, flags, name, &r, sizeof(r));
}

HELP void put_metric(struct kit_lane *l, uint32_t path, uint64_t clock, uint32_t name, uint8_t type,
	uint64_t bits)
{
	struct rec_metric r = {.clock = clock, .value = bits, .name = name};

	lane_put(l, REC_METRIC, type, path, &r, sizeof(r));
}

/* A number of a graph's capture, for one run. */
HELP void put_captured(struct kit_lane *l, uint32_t path, uint64_t start, uint32_t name,
	uint8_t type, uint64_t bits, uint32_t corr)
{
	struct rec_captured r = {.start = start + REAL_AHEAD,
		.value = bits,
		.correlation = corr,
		.epoch = 1,
		.name = name};

	lane_put(l, REC_CAPTURED, type, path, &r, sizeof(r));
}

HELP void put_session(
	struct kit_lane *l, uint8_t verb, uint32_t number, uint64_t clock, uint32_t name)
{
	struct rec_session r = {.clock = clock, .name = name};

	lane_put(l, REC_SESSION, verb, number, &r, sizeof(r));
}

HELP void put_delivered(struct kit_lane *l, uint64_t clock, uint64_t pending)
{
	struct rec_delivered r = {.clock = clock, .pending = pending};

	lane_put(l, REC_DELIVERED, 0, 1, &r, sizeof(r));
}

HELP void put_gpu_state(struct kit_lane *l, uint64_t clock, uint16_t state)
{
	struct rec_gpu r = {.clock = clock, .epoch = 1};

	lane_put(l, REC_GPU, (uint8_t)state, 0, &r, sizeof(r));
}

/* --- a fold and what it says */

HELP struct fold *fold_of(const struct fold_limits *l)
{
	struct fold *f;

	ck_assert_int_eq(fold_new(l, &f), 0);
	return f;
}

HELP void fold_play(struct fold *f, const struct tape *t, uint32_t from, uint32_t to)
{
	uint32_t i;

	for (i = from; i < to && i < t->n; i++)
		ck_assert_int_eq(fold_apply(f, t->entry[i]), 0);
}

/* Plays all of it and forgets it, so that a test goes on with the next entries. */
HELP void fold_take(struct fold *f, struct tape *t)
{
	fold_play(f, t, 0, t->n);
	tape_free(t);
}

HELP const struct row_node *node_named(const struct batch *b, const uint8_t hash[16])
{
	uint32_t i;

	for (i = 0; i < b->node.n; i++)
		if (memcmp(b->node.row[i].hash, hash, 16) == 0)
			return &b->node.row[i];
	return NULL;
}

/* "ROOT/a/b" of a node. */
HELP void node_words(const struct batch *b, const uint8_t hash[16], char *buf, size_t n)
{
	const struct row_node *node = node_named(b, hash);
	static const uint8_t none[16];
	size_t at;

	ck_assert_ptr_nonnull(node);
	if (memcmp(node->parent, none, 16) == 0) {
		(void)snprintf(buf, n, "%s", node->name);
		return;
	}
	node_words(b, node->parent, buf, n);
	at = strlen(buf);
	(void)snprintf(buf + at, n - at, "/%s", node->name);
}

/* The cell at this path, whatever its session and process; segment and class as given. NULL: none.
 */
HELP const struct row_cell *cell_at(
	const struct batch *b, int64_t session, uint32_t segment, uint8_t class, const char *path)
{
	char words[4096];
	uint32_t i;

	for (i = 0; i < b->cell.n; i++) {
		if (b->cell.row[i].session != session || b->cell.row[i].class != class ||
			b->cell.row[i].segment != segment)
			continue;
		node_words(b, b->cell.row[i].node, words, sizeof(words));
		if (strcmp(words, path) == 0)
			return &b->cell.row[i];
	}
	return NULL;
}

HELP uint64_t loss_of(const struct batch *b, int64_t session, uint32_t cause)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < b->loss.n; i++)
		if (b->loss.row[i].session == session && b->loss.row[i].cause == cause)
			n += b->loss.row[i].count;
	return n;
}

#endif
