/* SPDX-License-Identifier: MIT. pending.c: the fold's own encoding of what is in flight, so that
 * a restart goes on exactly where it was: launches and records that wait, windows in the ring's
 * clock, open scopes, counters already charged. Numbers are 7 bits a byte, low bits first; a
 * version comes first of all. */
#include "pending.h"

#include <stdlib.h>
#include <string.h>

#include "correlate.h"
#include "journal.h"
#include "leb.h"
#include "loss_terms.h"
#include "member.h"
#include "now.h"
#include "part.h"
#include "process.h"
#include "record.h"
#include "ring.h"
#include "session.h"
#include "state.h"
#include "sums.h"
#include "tree.h"

/* 1: without a launch's thread, a record's context and a lane's name; 2: without LIST_JOINED;
 * 3: without put_near(), and records by their number; 4: CAUSES_BEFORE_5; 5: without a counter
 * that waits; 6: without sums; 7: without a launch's executable graph, of busy time the first union
 * only, and all open scopes have cells; 8: without the end of a launch's call, of sums not when the
 * last event was */
#define PENDING_VERSION 9u
#define NOTES_BEFORE_7  5u  /* notes that were packed without their number */
#define CAUSES_BEFORE_5 13u /* causes of loss that were packed without their number */
#define PENDING_MAX     (256u << 20)

struct last { /* values that the next ones are likely to be near */
	uint64_t clock, seen_ns, start;
	uint32_t correlation, tid;
};

struct pack {
	uint8_t *p;
	uint32_t n, cap;
	struct last last;
	bool failed;
};

/* False: out of memory with no buffer at all. After any failure what was packed is void. */
static bool pack_grow(struct pack *k)
{
	const uint32_t want = k->cap == 0 ? 1024 : k->cap * 2;
	uint8_t *grown = want > PENDING_MAX ? NULL : realloc(k->p, want);

	if (grown == NULL) {
		k->failed = true;
		k->n = 0;
		return k->cap != 0;
	}
	k->p = grown;
	k->cap = want;
	return true;
}

static void put_long(struct pack *k, uint64_t v)
{
	if (k->cap - k->n < LEB_MAX && !pack_grow(k))
		return;
	k->n = (uint32_t)(leb_put(k->p + k->n, v) - k->p);
}

/* Most numbers take one byte. */
static inline void put(struct pack *k, uint64_t v)
{
	if (v < 0x80 && k->n < k->cap)
		k->p[k->n++] = (uint8_t)v;
	else
		put_long(k, v);
}

/* The difference to the last one, its sign in the lowest bit. */
static void put_near(struct pack *k, uint64_t v, uint64_t *last)
{
	const uint64_t d = v - *last;

	put(k, d << 1 ^ (d >> 63 != 0 ? UINT64_MAX : 0));
	*last = v;
}

static void put_near32(struct pack *k, uint32_t v, uint32_t *last)
{
	uint64_t wide = *last;

	put_near(k, v, &wide);
	*last = v;
}

static int pack_done(struct pack *k, void **ret_bytes, uint32_t *ret_n)
{
	void *fitting;

	if (k->failed) {
		free(k->p);
		return -ENOMEM;
	}
	fitting = realloc(k->p, k->n);
	*ret_bytes = fitting != NULL ? fitting : k->p;
	*ret_n = k->n;
	return 0;
}

struct unpack {
	const uint8_t *at, *end;
	uint32_t version;
	struct last last;
	bool bad, no_memory;
};

static uint64_t get(struct unpack *u)
{
	return leb_get(&u->at, u->end, &u->bad);
}

static uint32_t get32(struct unpack *u)
{
	uint64_t v = get(u);

	u->bad |= v > UINT32_MAX;
	return (uint32_t)v;
}

static uint64_t get_near(struct unpack *u, uint64_t *last)
{
	const uint64_t v = get(u);

	if (u->version < 4)
		return v;
	*last += v >> 1 ^ ((v & 1) != 0 ? UINT64_MAX : 0);
	return *last;
}

static uint32_t get_near32(struct unpack *u, uint32_t *last)
{
	uint64_t wide = *last, v = get_near(u, &wide);

	u->bad |= v > UINT32_MAX;
	return *last = (uint32_t)v;
}

/* A count of things that take at least a byte each. */
static uint32_t get_count(struct unpack *u)
{
	uint32_t n = get32(u);

	if (n > (uint64_t)(u->end - u->at))
		u->bad = true;
	return u->bad ? 0 : n;
}

static bool get_version(struct unpack *u)
{
	u->version = get32(u);
	return !u->bad && u->version >= 1 && u->version <= PENDING_VERSION;
}

/* --- one launch, one record --- */

static void put_gpu(struct pack *k, const struct gpu *g)
{
	uint64_t start = g->start;

	put_near(k, g->start, &k->last.start);
	put_near(k, g->end, &start);
	put(k, g->bytes);
	put(k, g->name);
	put(k, g->captured);
	put(k, g->config);
	put(k, g->stream);
	put(k, g->context);
	put(k, g->device);
	put(k, g->type);
	put(k, g->flags);
	put(k, g->id);
}

/* Name and path ids are judged when they are used: the tables come after this. */
static void get_gpu(struct unpack *u, const struct launch *l, struct gpu *g)
{
	uint64_t start = get_near(u, &u->last.start);

	*g = (struct gpu){.start = start, .correlation = l->correlation, .epoch = l->epoch};
	g->end = get_near(u, &start);
	g->bytes = get(u);
	g->name = get32(u);
	g->captured = get32(u);
	g->config = get32(u);
	g->stream = get32(u);
	g->context = u->version > 1 ? get32(u) : 0;
	g->device = (uint16_t)get(u);
	g->type = (uint8_t)get(u);
	g->flags = (uint8_t)get(u);
	g->id = (uint8_t)get(u);
	g->class = gpu_class_of(g->type, g->id);
	u->bad |= g->device >= RING_DEVICES_MAX;
	u->bad |= gpu_is_metric(g->type) ? g->id < METRIC_I64 || g->id > METRIC_STR
					 : g->class == CLASS_CPU;
}

static void put_launch(struct pack *k, const struct flight *c, const struct launch *l)
{
	uint32_t at, next;

	put_near(k, l->clock, &k->last.clock);
	put(k, l->parts);
	put_near(k, l->seen_ns, &k->last.seen_ns);
	put_near32(k, l->correlation, &k->last.correlation);
	put(k, l->path);
	put(k, l->name);
	put(k, l->python);
	put(k, l->epoch);
	put(k, l->flags);
	put(k, l->round);
	put_near32(k, l->tid, &k->last.tid);
	put(k, l->graph_exec);
	if ((l->flags & LAUNCH_ENDS) != 0)
		put(k, l->end - l->clock);
	for (at = l->records; at != 0; at = next) { /* scattered in memory: one pass only */
		next = c->gpu[at - 1].next;
		if (next != 0)
			__builtin_prefetch(&c->gpu[next - 1]);
		put(k, 1);
		put_gpu(k, &c->gpu[at - 1].gpu);
	}
	put(k, 0);
}

/* gpu_keep() puts each in front; this restores the order in which they were packed. */
static void chain_reverse(struct flight *c, struct launch *l)
{
	uint32_t at = l->records, done = 0, next;

	for (; at != 0; at = next) {
		next = c->gpu[at - 1].next;
		c->gpu[at - 1].next = done;
		c->gpu[at - 1].n = flight_records(c, done) + 1;
		done = at;
	}
	l->records = done;
}

static void get_launch(struct unpack *u, struct process *p, uint32_t list, uint64_t slots)
{
	struct launch l = {.clock = get_near(u, &u->last.clock), .list = (uint8_t)list}, *to;
	const bool old = u->version < 4;
	struct gpu g;
	uint64_t n;

	l.parts = get(u) & slots;
	l.seen_ns = get_near(u, &u->last.seen_ns);
	l.correlation = get_near32(u, &u->last.correlation);
	l.path = get32(u);
	l.name = get32(u);
	l.python = get32(u);
	l.epoch = (uint16_t)get(u);
	l.flags = (uint8_t)get(u);
	l.round = get32(u);
	l.tid = u->version > 1 ? get_near32(u, &u->last.tid) : 0;
	l.graph_exec = u->version > 7 ? get32(u) : 0;
	if (u->version < 9)
		l.flags &= (uint8_t)~LAUNCH_ENDS;
	if ((l.flags & LAUNCH_ENDS) != 0)
		l.end = l.clock + get(u);
	to = u->bad ? NULL : correlate_put(p, &l);
	u->bad |= to == NULL;
	for (n = old ? get_count(u) : get(u); n > 0 && !u->bad; n = old ? n - 1 : get(u)) {
		get_gpu(u, &l, &g);
		if (!u->bad && !correlate_put_gpu(p, to, &g))
			return;
	}
	if (to != NULL)
		chain_reverse(&p->flight, to);
}

static void put_correlate(struct pack *k, const struct flight *c)
{
	const struct launch *l;
	uint32_t list;

	put(k, c->delivered_clock);
	put(k, c->idle_clock);
	put(k, c->rounds);
	put(k, c->epoch);
	for (list = 0; list < LIST_FREE; list++) {
		put(k, c->list[list].n);
		for (l = flight_first(c, list); l != NULL; l = flight_next(c, l))
			put_launch(k, c, l);
	}
}

static void get_correlate(struct unpack *u, struct process *p, uint64_t slots)
{
	struct flight *c = &p->flight;
	uint32_t list, n;

	c->delivered_clock = get(u);
	c->idle_clock = get(u);
	c->rounds = get32(u);
	c->epoch = (uint16_t)get(u);
	for (list = 0; list < LIST_FREE; list++) {
		if (list == LIST_JOINED && u->version < 3)
			continue;
		for (n = get_count(u); n > 0 && !u->bad && !p->fold->no_memory; n--)
			get_launch(u, p, list, slots);
	}
}

/* --- one part --- */

static void put_busy(struct pack *k, struct busy *b)
{
	const struct busy_sums *d = &b->done;
	const struct busy_work *w;
	uint64_t before = 0;
	uint32_t i;

	busy_sort(b);
	put(k, b->device);
	put(k, d->until);
	put(k, d->kernel_until);
	put(k, d->compute_until);
	for (i = 0; i < PART_MAX; i++)
		put(k, d->part[i]);
	put(k, b->no_parts);
	put(k, b->first_ns);
	put(k, b->last_ns);
	put(k, b->n);
	for (w = b->work; w < b->work + b->n; w++) {
		put(k, w->begin - before);
		put(k, w->end - w->begin);
		put(k, w->part);
		before = w->begin;
		put_near(k, w->launched, &before); /* 0 is near nothing, and rare */
		before = w->begin;
	}
}

static void put_part(struct pack *k, const struct part *part)
{
	const struct window *w = &part->window;
	uint32_t i, device;

	put(k, (uint64_t)part->session->row.id);
	put(k, part->slot);
	put(k, w->n_active);
	for (i = 0; i < w->n_active; i++) {
		put(k, w->active[i].begin);
		put(k, w->active[i].end + 1); /* open: 0 */
		put(k, w->active[i].before_ns);
	}
	put(k, w->first_segment);
	put(k, w->n_segments);
	for (i = 0; i < w->n_segments; i++)
		put(k, w->segment[i]);
	put(k, NOTE_MAX);
	for (i = 0; i < NOTE_MAX; i++) {
		put(k, part->counted[i]);
		put(k, part->counted_ns[i]);
	}
	put(k, part->tree.n_busy);
	for (device = 0; device < RING_DEVICES_MAX; device++) /* the same order after a restart */
		for (i = 0; i < part->tree.n_busy; i++)
			if (part->tree.busy[i]->device == device)
				put_busy(k, part->tree.busy[i]);
}

static void get_window(struct unpack *u, struct window *w)
{
	uint32_t i, n = get_count(u);

	u->bad |= n > WINDOW_ACTIVE_MAX;
	for (i = 0; i < n && !u->bad; i++) {
		if (!ROOM_FOR(w->active, w->cap_active, i)) {
			u->bad = u->no_memory = true;
			return;
		}
		w->active[i].begin = get(u);
		w->active[i].end = get(u) - 1;
		w->active[i].before_ns = get(u);
		w->n_active = i + 1;
	}
	w->first_segment = get32(u);
	n = get_count(u);
	u->bad |= n > WINDOW_SEGMENTS_MAX;
	for (i = 0; i < n && !u->bad; i++) {
		if (!ROOM_FOR(w->segment, w->cap_segments, i)) {
			u->bad = u->no_memory = true;
			return;
		}
		w->segment[i] = get(u);
		w->n_segments = i + 1;
	}
}

/* Of version 7 and before: spans of one union. */
static void get_old_busy(struct unpack *u, struct busy *b)
{
	uint64_t all = get(u);
	uint32_t n;

	(void)get(u); /* its mark */
	b->first_ns = get(u);
	b->last_ns = get(u);
	for (n = get_count(u); n > 0 && !u->bad; n--) {
		(void)get(u); /* the gap before it */
		all += get(u);
	}
	busy_restore(b, (const uint64_t[PART_MAX]){0}, all, b->first_ns, b->last_ns);
}

static void get_work(struct unpack *u, struct busy *b)
{
	uint64_t begin = 0, before, part;
	uint32_t n = get_count(u);
	struct busy_work w;

	u->bad |= n > BUSY_WORK_MAX;
	for (; n > 0 && !u->bad; n--) {
		begin += get(u);
		w = (struct busy_work){.begin = begin, .end = begin + get(u)};
		part = get(u);
		u->bad |= part >= PART_IDLE || w.end < w.begin;
		w.part = (enum gpu_part)part;
		before = begin;
		w.launched = get_near(u, &before);
		if (!u->bad && !busy_add(b, &w, 0, true))
			u->bad = u->no_memory = true;
	}
}

static void get_new_busy(struct unpack *u, struct busy *b)
{
	struct busy_sums *d = &b->done;
	uint32_t i;

	d->until = get(u);
	d->kernel_until = get(u);
	d->compute_until = get(u);
	for (i = 0; i < PART_MAX; i++)
		d->part[i] = get(u);
	b->no_parts = get(u) != 0;
	b->first_ns = get(u);
	b->last_ns = get(u);
	get_work(u, b);
	b->dirty = false;
}

/* part NULL: its session is gone, and this is read past. */
static void get_busy(struct unpack *u, struct part *part)
{
	uint32_t device = get32(u);
	struct busy skip = {0}, *b = part == NULL || u->bad ? NULL : tree_busy(part, device);

	u->bad |= device >= RING_DEVICES_MAX;
	b = b == NULL ? &skip : b;
	if (u->version >= 8)
		get_new_busy(u, b);
	else
		get_old_busy(u, b);
	if (b != &skip)
		part_grew(part, b->cap * sizeof(*b->work));
	busy_fini(&skip);
}

/* The bit of its slot, or 0 if its session is gone. */
static uint64_t get_part(struct unpack *u, struct process *p)
{
	struct session *s = session_by_id(p->fold, (int64_t)get(u));
	struct part *part = s != NULL && session_is_current(s) ? session_part(s, p) : NULL;
	uint8_t slot = (uint8_t)get(u);
	struct window skip = {0};
	uint64_t n, ns;
	uint32_t i, n_notes;

	u->bad |= slot >= PARTS_MAX || (!u->bad && slot < PARTS_MAX && p->slot[slot] != NULL);
	if (part != NULL && (u->bad || part->attached || p->n_parts == PARTS_MAX))
		part = NULL;
	get_window(u, part != NULL ? &part->window : &skip);
	window_fini(&skip);
	n_notes = u->version < 7 ? NOTES_BEFORE_7 : get_count(u);
	for (i = 0; i < n_notes && !u->bad; i++) {
		n = get(u);
		ns = get(u);
		if (part != NULL && i < NOTE_MAX) {
			part->counted[i] = n;
			part->counted_ns[i] = ns;
		}
	}
	for (i = get_count(u); i > 0 && !u->bad; i--)
		get_busy(u, part);
	if (part == NULL || u->bad)
		return 0;
	part_attach_at(part, slot);
	return 1ull << slot;
}

/* --- one process --- */

static void put_told(struct pack *k, const struct told *t)
{
	put(k, t->told);
	put(k, t->charged);
	put(k, t->seen);
}

static void get_told(struct unpack *u, struct told *t)
{
	t->told = get(u);
	t->charged = get(u);
	t->seen = u->version < 6 ? 0 : get(u);
}

static bool lane_is_plain(const struct lane *l)
{
	const struct told *a = &l->full, *b = &l->nested;

	return (a->told | a->charged | a->seen | b->told | b->charged | b->seen) == 0 &&
	       l->tid == 0 && l->generation == 0 && !l->sums;
}

static void put_lanes(struct pack *k, const struct process *p)
{
	uint32_t i, n = 0;

	for (i = 0; i < p->cap_lanes; i++)
		n += !lane_is_plain(&p->lane[i]);
	put(k, n);
	for (i = 0; i < p->cap_lanes; i++) {
		if (lane_is_plain(&p->lane[i]))
			continue;
		put(k, i);
		put_told(k, &p->lane[i].full);
		put_told(k, &p->lane[i].nested);
		put(k, p->lane[i].tid);
		put(k, p->lane[i].generation);
		put(k, p->lane[i].name);
		put(k, p->lane[i].sums);
	}
}

static void get_lanes(struct unpack *u, struct process *p)
{
	uint32_t n, i;

	for (n = get_count(u); n > 0 && !u->bad; n--) {
		i = get32(u);
		if (i >= p->row.n_lanes) {
			u->bad = true;
			return;
		}
		if (!process_lanes(p, i + 1)) {
			u->no_memory = true;
			return;
		}
		get_told(u, &p->lane[i].full);
		get_told(u, &p->lane[i].nested);
		p->lane[i].tid = get32(u);
		p->lane[i].generation = get32(u);
		p->lane[i].name = u->version > 1 ? get32(u) : NAME_NONE;
		p->lane[i].sums = u->version > 6 && get(u) != 0;
	}
}

/* The process's own are at least all lanes'; older daemons kept none. */
static void sum_lanes(struct process *p)
{
	struct told *full = &p->cause[LOST_LANE_FULL], *nested = &p->cause[LOST_NESTED];
	uint32_t i;

	if ((p->row.flags & PROCESS_CUTS) == 0)
		return;
	full->told = nested->told = 0;
	for (i = 0; i < p->cap_lanes; i++) {
		full->told += p->lane[i].full.charged;
		nested->told += p->lane[i].nested.charged;
	}
	full->charged = full->charged > full->told ? full->charged : full->told;
	nested->charged = nested->charged > nested->told ? nested->charged : nested->told;
}

static void put_now(struct pack *k, const struct process *p)
{
	uint32_t i, n = 0, seen = 0;

	for (i = 0; i < p->n_now; i++)
		n += p->now[i].path < p->n_paths;
	put(k, n);
	for (i = 0; i < p->n_now; i++) {
		if (p->now[i].path >= p->n_paths)
			continue;
		put(k, p->now[i].lane);
		put(k, p->now[i].tid);
		put(k, p->now[i].depth);
		put(k, p->now[i].path);
		put(k, p->now[i].begin);
		seen += i < p->now_seen;
	}
	if (n > 0)
		put(k, seen);
}

static void get_now(struct unpack *u, struct process *p)
{
	uint32_t n = get_count(u), seen, i;
	struct j_now *now;

	if (n == 0 || n > NOW_SCOPES_MAX)
		return;
	now = calloc(n, sizeof(*now));
	for (i = 0; i < n && now != NULL && !u->bad; i++) {
		now[i].lane = get32(u);
		now[i].tid = get32(u);
		now[i].depth = get32(u);
		now[i].path = get32(u);
		now[i].begin = get(u);
		u->bad |= now[i].lane >= p->row.n_lanes;
		u->no_memory |= !u->bad && !process_lanes(p, now[i].lane + 1);
	}
	u->no_memory |= now == NULL;
	seen = u->version > 7 ? get32(u) : n;
	u->bad |= seen > n;
	if (!u->bad && !u->no_memory) {
		process_now_set(p, now, n); /* takes it */
		p->now_seen = seen;
	} else {
		free(now);
	}
}

static void put_sum(struct pack *k, const struct open_sum *x)
{
	uint32_t i;

	put(k, x->lane);
	put(k, x->pos);
	put(k, x->last);
	put(k, x->total);
	if (x->total) {
		put(k, x->n);
		put(k, x->sum);
		return;
	}
	put(k, x->time);
	for (i = 0; i < SUM_BUCKETS; i++)
		put(k, x->count[i]);
}

static void put_sums(struct pack *k, const struct process *p)
{
	uint32_t i;

	put(k, p->n_sums);
	for (i = 0; i < p->n_sums; i++)
		put_sum(k, &p->sum[i]);
}

static void get_sums(struct unpack *u, struct process *p)
{
	struct open_sum x;
	uint32_t n = u->version > 6 ? get_count(u) : 0, i;

	for (; n > 0 && !u->bad && !p->fold->no_memory; n--) {
		x = (struct open_sum){.lane = get32(u)};
		x.pos = get(u);
		x.last = u->version > 8 ? get(u) : 0;
		x.total = get(u) != 0;
		if (x.total) {
			x.n = get(u);
			x.sum = get(u);
		} else {
			x.time = get(u);
		}
		for (i = 0; i < SUM_BUCKETS && !x.total; i++)
			x.count[i] = get32(u);
		u->bad |= x.lane >= p->row.n_lanes || p->n_sums >= SUMS_OPEN_MAX;
		if (!u->bad)
			u->bad |= !sums_put(p, &x);
	}
}

int pending_pack(const struct process *p, void **ret_bytes, uint32_t *ret_n)
{
	struct pack k = {0};
	uint32_t i;

	put(&k, PENDING_VERSION);
	put(&k, p->own.n);
	for (i = 0; i < p->own.n; i++) {
		put(&k, p->own.v[i].clock);
		put(&k, p->own.v[i].mono_ns);
		put(&k, p->own.v[i].real_ns);
		put(&k, p->own.v[i].error_ns);
	}
	put(&k, LOST_CAUSE_MAX);
	for (i = 0; i < LOST_CAUSE_MAX; i++)
		put_told(&k, &p->cause[i]);
	put_lanes(&k, p);
	put_now(&k, p);
	put(&k, p->n_parts);
	for (i = 0; i < p->n_parts; i++)
		put_part(&k, p->part[i]);
	put_correlate(&k, &p->flight);
	put_sums(&k, p);
	return pack_done(&k, ret_bytes, ret_n);
}

static void get_own_anchors(struct unpack *u, struct process *p)
{
	uint32_t n = get_count(u);
	struct anchor a;

	p->own.n = 0;
	while (n-- > 0 && !u->bad) {
		a.clock = get(u);
		a.mono_ns = get(u);
		a.real_ns = get(u);
		a.error_ns = get(u);
		anchors_add(&p->own, &a);
	}
}

int pending_unpack(struct process *p, const void *bytes, uint32_t n)
{
	struct unpack u = {.at = bytes, .end = (const uint8_t *)bytes + n};
	struct told of_newer;
	uint64_t slots = 0;
	uint32_t i, n_causes;

	if (!get_version(&u))
		return -EBADMSG;
	get_own_anchors(&u, p);
	n_causes = u.version < 5 ? CAUSES_BEFORE_5 : get_count(&u);
	for (i = 0; i < n_causes; i++)
		get_told(&u, i < LOST_CAUSE_MAX ? &p->cause[i] : &of_newer);
	get_lanes(&u, p);
	sum_lanes(p);
	get_now(&u, p);
	for (i = get_count(&u); i > 0 && !u.bad; i--)
		slots |= get_part(&u, p);
	get_correlate(&u, p, slots);
	get_sums(&u, p);
	p->fold->no_memory |= u.no_memory;
	if (p->fold->no_memory)
		return -ENOMEM;
	return u.bad ? -EBADMSG : 0;
}

/* --- of no process --- */

int pending_pack_fold(const struct fold *f, void **ret_bytes, uint32_t *ret_n)
{
	struct pack k = {0};

	put(&k, PENDING_VERSION);
	put(&k, f->now_ns);
	put(&k, f->cost_ns);
	return pack_done(&k, ret_bytes, ret_n);
}

int pending_unpack_fold(struct fold *f, const void *bytes, uint32_t n)
{
	struct unpack u = {.at = bytes, .end = (const uint8_t *)bytes + n};

	if (!get_version(&u))
		return -EBADMSG;
	f->now_ns = get(&u);
	f->cost_ns = get(&u);
	f->cost_known = true;
	return u.bad ? -EBADMSG : 0;
}
