/* SPDX-License-Identifier: MIT. liar_ring.h: lies that a job tells in its own ring. */
#ifndef LIAR_RING_H
#define LIAR_RING_H

#include "liar.h"

static inline uint8_t *byte_at(const struct liar *l, uint64_t lane, uint64_t pos)
{
	return l->mem + l->at.data + lane % l->h.n_lanes * l->h.lane_bytes +
	       (pos & (l->h.lane_bytes - 1));
}

static inline bool has_room(const struct liar *l, uint64_t lane, uint64_t bytes)
{
	const uint64_t head =
		atomic_load_explicit(&l->ctl->lane[lane % l->h.n_lanes].head, memory_order_acquire);

	return lane_of(l, lane)->tail + bytes - head <= l->h.lane_bytes;
}

/* One record, with the lap that belongs there and a pad where the lap ends. False: no room. */
static inline bool put(const struct liar *l, uint64_t lane, const void *rec, uint32_t bytes)
{
	struct ring_lane *t = lane_of(l, lane);
	const uint64_t cap = l->h.lane_bytes, left = cap - (t->tail & (cap - 1)),
		       pad = left < bytes ? left : 0;
	uint64_t tail = t->tail, h;

	if (tail % 8 != 0 || !has_room(l, lane, pad + bytes))
		return false;
	if (pad != 0) {
		h = REC_HDR(0, REC_PAD, tail / cap, 0, pad);
		memcpy(byte_at(l, lane, tail), &h, 8);
		tail += pad;
	}
	memcpy(byte_at(l, lane, tail), rec, bytes);
	memcpy(&h, rec, 8);
	h = (h & ~0xff0000ull) | (uint64_t)(uint8_t)(tail / cap) << 16;
	memcpy(byte_at(l, lane, tail), &h, 8);
	if (t->generation == 0) {
		t->generation = 1;
		t->tid = (uint32_t)getpid();
		t->state = LANE_LIVE;
	}
	atomic_store_explicit(&t->tail, tail + bytes, memory_order_release);
	return true;
}

static inline uint32_t bytes_of(unsigned type)
{
	static const uint8_t bytes[] = {
#define X(name, number, b, ...) [number] = (b),
		RECORDS(X)
#undef X
	};

	return type < REC_MAX ? bytes[type] : 8 + 8 * (uint32_t)below(REC_BYTES_MAX / 8);
}

/* Any record: two small numbers in a word, or a time, or anything. */
static inline bool put_any(const struct liar *l, uint64_t lane, unsigned type)
{
	uint64_t rec[REC_BYTES_MAX / 8 + 1];
	const uint32_t bytes = type == REC_PAD ? 8 : bytes_of(type);

	for (uint32_t i = 1; i < bytes / 8; i++)
		rec[i] = one_in(2) ? below(8) << 32 | below(PATHS) : one_in(2) ? odd_time() : odd();
	rec[0] = REC_HDR(bytes, type, 0, one_in(3) ? below(256) : below(8),
		one_in(4) ? odd() : below(PATHS));
	return put(l, lane, rec, bytes);
}

static inline void lie_records(struct liar *l)
{
	const uint64_t lane = below(4);

	for (int i = 0; i < 500; i++)
		(void)put_any(l, lane, 1 + (unsigned)below(REC_MAX + 2));
}

static inline void lie_times(struct liar *l)
{
	static const uint64_t edge[] = {0, 1, INT64_MAX, 1ull << 63, UINT64_MAX - 1, UINT64_MAX};

	for (int i = 0; i < 500; i++) {
		const uint64_t a = one_in(2) ? edge[below(COUNT(edge))] : odd_time(),
			       b = one_in(2) ? edge[below(COUNT(edge))] : odd_time();
		const struct rec_scope s = {
			REC_HDR(sizeof(s), REC_SCOPE, 0, below(8), below(PATHS)), a, b};
		const struct rec_clock c = {
			REC_HDR(sizeof(c), REC_CLOCK, 0, 0, 0), a, b, odd(), odd()};
		const struct rec_lost lost = {
			REC_HDR(sizeof(lost), REC_LOST, 0, 0, below(LOST_CAUSE_MAX + 1)), odd(), a,
			b};

		(void)put(l, 0, &s, sizeof(s));
		if (one_in(8))
			(void)put(l, 1, &c, sizeof(c));
		if (one_in(8))
			(void)put(l, 2, &lost, sizeof(lost));
	}
}

static inline void lie_metrics(struct liar *l)
{
	for (int i = 0; i < 500; i++) {
		struct rec_metric m = {
			.hdr = REC_HDR(sizeof(m), REC_METRIC, 0, below(6), below(PATHS)),
			.clock = odd_time(),
			.value = odd(),
			.name = (uint32_t)(one_in(8) ? odd() : below(NAMES))};

		if (one_in(8)) /* infinities and no numbers */
			m.value = 0x7ff0000000000000u | (rnd() & 0x8008000000000001u);
		(void)put(l, i % 4 == 0, &m, sizeof(m));
	}
}

static inline void lie_sessions(struct liar *l)
{
	for (int i = 0; i < 20; i++) {
		const uint32_t number = one_in(2) ? l->session : (uint32_t)odd();
		struct rec_session s = {.hdr = REC_HDR(sizeof(s), REC_SESSION, 0, below(8),
						one_in(8) ? SESSION_ALL : number),
			.clock = odd_time(),
			.name = (uint32_t)below(NAMES + 4),
			.backend = (uint32_t)below(NAMES),
			.mode = (uint32_t)below(NAMES),
			.hook = (uint32_t)below(NAMES),
			.data = (uint8_t)below(5),
			.context = (uint8_t)below(5),
			.cpu = (uint8_t)below(4),
			.switches =
				(uint8_t)below(16), /* those that there are, and one that is not */
			.format = (uint32_t)below(NAMES),
			.flags = odd()};

		(void)put(l, below(3), &s, sizeof(s));
		l->session += one_in(2);
		(void)put_any(l, 0, REC_SCOPE);
	}
}

/* Few correlation ids, so that launches and records meet, twice or in the wrong order. */
static inline void lie_gpu(struct liar *l)
{
	const uint64_t now = now_ns();

	for (int i = 0; i < 300; i++) {
		const bool ends = one_in(2); /* with and without the bit that says so */
		const uint32_t bytes =
			ends ? sizeof(struct rec_launch_ended) : sizeof(struct rec_launch);
		struct rec_launch_ended a = {
			.launch = {.hdr = REC_HDR(bytes, REC_LAUNCH, 0, below(128), below(PATHS)),
				.clock = odd_time(),
				.correlation = (uint32_t)(one_in(8) ? odd() : below(64)),
				.name = (uint32_t)below(NAMES + 1),
				.python = (uint32_t)below(PATHS + 1),
				.epoch = (uint16_t)below(3)},
			.end = odd_time()};
		struct rec_overhead o = {
			.hdr = REC_HDR(sizeof(o), REC_OVERHEAD, 0, 0, below(GPU_IDS + 1)),
			.start = one_in(4) ? odd() : now,
			.end = one_in(4) ? odd() : now + below(1000000),
			.correlation = (uint32_t)below(64),
			.tid = (uint32_t)odd(),
			.epoch = (uint16_t)below(3)};
		struct rec_call c = {
			.hdr = REC_HDR(sizeof(c), REC_CALL, 0, below(16), below(PATHS + 1)),
			.begin = odd_time(),
			.end = odd_time(),
			.correlation = (uint32_t)below(64),
			.stream = (uint32_t)below(9),
			.python = (uint32_t)below(PATHS + 1),
			.epoch = (uint16_t)below(3),
			.kind = (uint8_t)below(GPU_IDS + 1),
			.name = (uint32_t)(one_in(8) ? odd() : below(NAMES + 1))};
		struct rec_called s = {
			.hdr = REC_HDR(sizeof(s), REC_CALLED, 0, below(16), below(PATHS + 1)),
			.begin = odd_time(),
			.took = (uint32_t)odd(),
			.name = (uint32_t)(one_in(8) ? odd() : below(NAMES + 1))};
		struct rec_named g = {.hdr = REC_HDR(sizeof(g), REC_NAMED, 0, 0, below(NAMES + 1)),
			.ordinal = (uint32_t)(one_in(8) ? odd() : below(100)),
			.stream = (uint32_t)(one_in(4) ? odd() : below(9))};
		struct rec_kernel k = {
			.hdr = REC_HDR(sizeof(k), REC_KERNEL + below(3), 0, below(8), below(NAMES)),
			.start = one_in(4) ? odd() : now,
			.end = one_in(4) ? odd() : now + below(1000000),
			.correlation = (uint32_t)below(64),
			.epoch = (uint16_t)below(3),
			.device = (uint16_t)below(one_in(8) ? 65536 : 3),
			.captured = (uint32_t)below(PATHS + 1),
			.config = (uint32_t)(one_in(8) ? odd() : below(5))};

		(void)put(l, 0, &a, bytes);
		if (!one_in(4))
			(void)put(l, 1, &k, sizeof(k));
		if (one_in(4))
			(void)put(l, 1, &o, sizeof(o));
		if (one_in(4))
			(void)put(l, 1, &c, sizeof(c));
		if (one_in(4))
			(void)put(l, 1, &s, sizeof(s));
		if (one_in(16))
			(void)put(l, 1, &g, sizeof(g));
	}
	(void)put_any(l, 2, one_in(2) ? REC_DELIVERED : REC_GPU);
}

/* Few addresses and ids: given twice, freed twice, freed first, and sums that run over. */
static inline void lie_memory(struct liar *l)
{
	for (int i = 0; i < 300; i++) {
		struct rec_call c = {.hdr = REC_HDR(sizeof(c), REC_CALL, 0, below(3), below(PATHS)),
			.begin = odd_time(),
			.end = odd_time(),
			.correlation = (uint32_t)below(64),
			.python = (uint32_t)below(PATHS + 1),
			.epoch = (uint16_t)below(3),
			.kind = (uint8_t)(4 + below(5))};
		struct rec_memory m = {.hdr = REC_HDR(sizeof(m), REC_MEMORY, 0,
					       below(MEMORY_OP_MAX + 1), below(HELD_MAX + 1)),
			.time = one_in(4) ? odd() : now_ns(),
			.address = one_in(8) ? odd() : below(40),
			.bytes = one_in(4) ? odd() >> below(64) : below(1u << 20),
			.pool = below(3),
			.reserved = one_in(4) ? odd() >> below(64) : below(1u << 20),
			.used = odd() >> below(64),
			.correlation = (uint32_t)below(64),
			.epoch = (uint16_t)below(3),
			.device = (uint16_t)(one_in(8) ? odd() : below(3))};

		(void)put(l, 0, &c, sizeof(c));
		(void)put(l, 1, &m, sizeof(m));
		if (one_in(30))
			(void)put_any(l, 1, REC_DELIVERED);
	}
}

/* As many records as a lane holds, of a few graphs or of none, and then their launches, some twice.
 */
static inline void lie_late(struct liar *l)
{
	const uint64_t now = now_ns();
	const uint8_t flag = one_in(4) ? 0 : GPU_FLAG_GRAPH;
	const uint64_t ids = 1 + below(4);
	struct rec_kernel k = {.start = now, .end = now + 1000};
	struct rec_launch a = {.clock = now};

	do {
		k.hdr = REC_HDR(sizeof(k), REC_KERNEL, 0, one_in(64) ? odd() : flag, below(NAMES));
		k.correlation = (uint32_t)below(ids);
		k.captured = (uint32_t)below(PATHS);
	} while (put(l, 1, &k, sizeof(k)));
	for (unsigned i = 0; i < 8; i++) {
		a.hdr = REC_HDR(
			sizeof(a), REC_LAUNCH, 0, flag != 0 ? LAUNCH_GRAPH : 0, below(PATHS));
		a.correlation = (uint32_t)below(ids);
		(void)put(l, 0, &a, sizeof(a));
	}
}

/* A session of its own ends with as much in flight as there is room for. */
static inline void lie_leave(struct liar *l)
{
	const uint64_t now = now_ns();
	struct rec_session s = {
		.hdr = REC_HDR(sizeof(s), REC_SESSION, 0, SESSION_START, l->session),
		.clock = now,
		.name = 5};
	struct rec_kernel k = {.start = now, .end = now + 1000};
	struct rec_launch a = {.clock = now};
	bool room = put(l, 0, &s, sizeof(s));

	for (int i = 0; room && i < 1 << 16; i++) {
		k.hdr = REC_HDR(sizeof(k), REC_KERNEL, 0, 0, below(NAMES));
		k.correlation = (uint32_t)rnd();
		a.hdr = REC_HDR(sizeof(a), REC_LAUNCH, 0, 0, below(PATHS));
		a.correlation = (uint32_t)rnd();
		room = put(l, 1, &k, sizeof(k)) && put(l, 2, &a, sizeof(a));
	}
	s.hdr = REC_HDR(sizeof(s), REC_SESSION, 0, SESSION_FINALIZE, l->session);
	l->session += one_in(64) && put(l, 0, &s, sizeof(s));
}

/* First words that break a law, below a tail that says that they are there. */
static inline void lie_torn(struct liar *l)
{
	const uint64_t lane = below(4), cap = l->h.lane_bytes;
	struct ring_lane *t = lane_of(l, lane);
	uint64_t h;

	if (!put_any(l, lane, REC_SCOPE) || !has_room(l, lane, 4096))
		return;
	h = REC_HDR(one_in(3) ? 0 : 8 * below(256), below(20), (one_in(2) ? t->tail / cap : odd()),
		below(256), one_in(2) ? cap - (t->tail & (cap - 1)) : odd());
	memcpy(byte_at(l, lane, t->tail), &h, 8);
	t->generation = 1;
	t->tail += one_in(8) ? below(4096) : 8 * (1 + below(200));
}

static inline void lie_tails(struct liar *l)
{
	struct ring_lane *t = lane_of(l, below(8));
	const uint64_t tail = t->tail;

	t->generation = 1;
	switch (below(6)) {
	case 0:
		t->tail = tail - 8 * below(1000);
		break;
	case 1:
		t->tail = tail + (1ull << 63);
		break;
	case 2:
		t->tail = tail + l->h.lane_bytes * below(3) + 8 * below(100);
		break;
	case 3:
		t->tail = tail + below(16);
		break;
	default:
		t->tail = odd();
	}
}

static inline void scatter(uint8_t *at, uint64_t bytes)
{
	for (int i = 0; i < 64; i++) {
		const uint64_t v = odd(), to = below(bytes / 8) * 8;

		memcpy(at + to, &v, one_in(2) ? 8 : 4);
	}
}

static inline void lie_header(struct liar *l)
{
	scatter(l->mem, sizeof(struct ring_header));
	if (one_in(8)) /* lawful again, with other sizes */
		shape((struct ring_header *)(void *)l->mem);
}

static inline void lie_counts(struct liar *l)
{
	scatter(l->mem + l->at.counts, sizeof(struct ring_counts));
}

static inline void lie_lanes(struct liar *l)
{
	struct ring_lane *t = lane_of(l, below(8));
	const uint64_t tail = t->tail;

	scatter((uint8_t *)t, 64);
	t->tail = tail;
	(void)put_any(l, below(8), 1 + (unsigned)below(REC_MAX - 1));
}

static inline void lie_now(struct liar *l)
{
	struct ring_lane *t = lane_of(l, below(4));

	scatter((uint8_t *)&t->now, sizeof(t->now));
	t->now.seq = (uint32_t)odd();
	t->now.depth = (uint32_t)(one_in(2) ? odd() : below(NOW_FRAMES + 2));
	t->state = LANE_LIVE;
	(void)put_any(l, below(4), REC_SCOPE);
}

/* Parents that are younger, each other's, or nobody; depths and kinds that cannot be. */
static inline void lie_paths(struct liar *l)
{
	struct ring_counts *c = counts_of(l);
	struct ring_path *p = (struct ring_path *)(void *)(l->mem + l->at.paths);
	const uint32_t first = c->paths < PATHS ? PATHS : c->paths % l->h.path_cap;

	for (uint32_t i = first; i < first + 50 && i < l->h.path_cap; i++)
		p[i] = (struct ring_path){one_in(2) ? i + (uint32_t)below(3) : (uint32_t)odd(),
			(uint32_t)(one_in(2) ? odd() : below(NAMES)), (uint16_t)below(9),
			(uint16_t)(one_in(2) ? odd() : below(300)), 0};
	c->paths = first + 50;
	for (int i = 0; i < 100; i++)
		(void)put_any(l, 0, one_in(2) ? REC_SCOPE : REC_LAUNCH);
	if (one_in(4)) /* what was told before changes */
		scatter((uint8_t *)p, PATHS * sizeof(*p));
}

static inline void lie_names(struct liar *l)
{
	struct ring_counts *c = counts_of(l);
	struct ring_name *n = (struct ring_name *)(void *)(l->mem + l->at.names);
	const uint32_t first = c->names % l->h.name_cap;

	for (uint32_t i = first; i < first + 50 && i < l->h.name_cap; i++)
		n[i] = (struct ring_name){(uint32_t)odd(), (uint32_t)odd(), odd()};
	c->names = first + 50;
	c->name_bytes = (uint32_t)odd();
	for (int i = 0; i < 100; i++)
		(void)put_any(l, 0, one_in(2) ? REC_THREAD : REC_METRIC);
	scatter(l->mem + l->at.bytes, 4096);
}

/* Tables up to the ceiling, long names that share their bytes, and each path counted. */
static inline void lie_full(struct liar *l)
{
	struct ring_counts *c = counts_of(l);
	struct ring_name *n = (struct ring_name *)(void *)(l->mem + l->at.names);
	uint32_t i;

	fill(l->mem + l->at.bytes, 1u << 20);
	for (i = NAMES; i < l->h.name_cap; i++)
		n[i] = (struct ring_name){
			(uint32_t)below(1u << 19), (uint32_t)below(NAME_BYTES_MAX + 1), 0};
	c->names = l->h.name_cap;
	while (c->paths < l->h.path_cap)
		add_path(l, (uint32_t)below(100), (uint32_t)below(c->names));
	for (i = 0; i < l->h.path_cap; i++) {
		const uint64_t now = now_ns();
		const struct rec_scope s = {REC_HDR(sizeof(s), REC_SCOPE, 0, 0, i), now - 1, now};

		while (!put(l, i % 8, &s, sizeof(s)) && !racer)
			if (!nudge(l))
				return;
	}
}

/* All lanes full, of records that cost little to write and more to read. */
static inline void lie_firehose(struct liar *l)
{
	const uint32_t lanes = l->h.n_lanes < 32 ? l->h.n_lanes : 32;
	uint64_t rec[REC_BYTES_MAX / 8] = {REC_HDR(REC_BYTES_MAX, 200, 0, 0, 0)};
	const struct rec_scope s = {
		REC_HDR(sizeof(s), REC_SCOPE, 0, 0, below(PATHS)), now_ns() - 10, now_ns()};
	const bool cheap = one_in(2);

	for (uint32_t i = 0; i < lanes; i++)
		while (cheap ? put(l, i, rec, REC_BYTES_MAX) : put(l, i, &s, sizeof(s)))
			;
}

static inline void lie_scribble(struct liar *l)
{
	static uint64_t word;
	const uint64_t lane = below(l->h.n_lanes);

	for (int i = 0; i < 4096; i++, word = odd())
		memcpy(l->mem + below(l->at.file_bytes / 8) * 8, &word, 8);
	scatter(l->mem + l->at.counts, l->at.paths - l->at.counts);
	scatter(byte_at(l, lane, 0), 4096);
}

/* All that a lane holds is asked to be exported, again and again. */
static inline void lie_exports(struct liar *l)
{
	struct rv_export x = {
		.session = l->session, .timeout_ms = (uint32_t)odd(), .phase = (uint32_t)below(3)};
	struct rec_session s = {
		.hdr = REC_HDR(sizeof(s), REC_SESSION, 0, SESSION_START, l->session),
		.clock = now_ns(),
		.name = 5};

	(void)put(l, 0, &s, sizeof(s));
	lie_firehose(l);
	(void)snprintf(x.format, sizeof(x.format), "%s", one_in(2) ? "hatchet" : "chrome_trace");
	for (int i = 0; i < 8; i++) {
		x.request = (uint32_t)i;
		(void)say(l->sock, &x, sizeof(x), RV_EXPORT, NULL, 0);
	}
	s.hdr = REC_HDR(sizeof(s), REC_SESSION, 0, SESSION_FINALIZE, l->session++);
	(void)put(l, 0, &s, sizeof(s));
}

#endif
