/* SPDX-License-Identifier: MIT. holders.c: who holds memory: what moves in the books, and they as bytes: "PDM1", then one
 * zstd frame of numbers: how many of each there are, then each. */
#include "holders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "framed.h"
#include "gpu_terms.h"
#include "leb.h"
#include "table.h"

static const char magic[4] = "PDM1";

/* Numbers of one of them, so many at most; the hash of an owner is as long as two. */
#define ACCOUNT_NUMBERS 16u
#define OWNER_NUMBERS   8u
#define EVENT_NUMBERS   11u
#define TORCH_NUMBERS   10u
#define RAW_MAX                                                                            \
	(LEB_MAX * (16u + HELD_ACCOUNTS * (ACCOUNT_NUMBERS + 4u * HELD_POINTS) +           \
			   (HELD_OWNERS + HELD_POOLS) * OWNER_NUMBERS + 4u * HELD_BLOCKS + \
			   3u * HELD_WAITING * EVENT_NUMBERS +                             \
			   HELD_ACCOUNTS * HELD_FRAMES * (2u + 2u * HELD_TOP)))

void holders_fini(struct holders *h)
{
	while (h->n_accounts > 0)
		free(h->account[--h->n_accounts]);
	free(h->owner);
	free(h->block);
	free(h->event);
	free(h->call);
	free(h->torch);
	*h = (struct holders){0};
}

/* --- points */

static void merge(struct held_point *p, const struct held_point *next)
{
	p->least = next->least < p->least ? next->least : p->least;
	p->most = next->most > p->most ? next->most : p->most;
	p->last = next->last;
}

/* Half of them at most stay: each is of so much more time. */
static void thin(struct held_account *a)
{
	const uint64_t all = a->point[a->n_points - 1].ns - a->point[0].ns;
	uint32_t i, n = 1;

	a->width_ns = all / (HELD_POINTS / 2) + 1;
	for (i = 1; i < a->n_points; i++)
		if (a->point[i].ns - a->point[n - 1].ns < a->width_ns)
			merge(&a->point[n - 1], &a->point[i]);
		else
			a->point[n++] = a->point[i];
	a->n_points = n;
}

void held_point_add(struct held_account *a, uint64_t ns)
{
	const struct held_point now = {ns, a->live, a->live, a->live};
	const struct held_point *last = &a->point[a->n_points - (a->n_points > 0)];

	if (a->n_points > 0 && (ns <= last->ns || ns - last->ns < a->width_ns)) {
		merge(&a->point[a->n_points - 1], &now);
		return;
	}
	if (a->n_points == HELD_POINTS)
		thin(a);
	a->point[a->n_points++] = now;
}

/* --- frames */

#define FRAME_NS 1000000u /* no two are nearer */

static void frame_take(const struct holders *h, const struct held_account *a, struct held_frame *f)
{
	uint32_t i, k;

	f->n = 0;
	for (i = 0; i < h->n_owners; i++) {
		const struct held_owner *o = &h->owner[i];

		if (h->account[o->account] != a || o->live == 0 ||
			(f->n == HELD_TOP && o->live <= f->live[HELD_TOP - 1]))
			continue;
		k = f->n < HELD_TOP ? f->n++ : HELD_TOP - 1;
		for (; k > 0 && f->live[k - 1] < o->live; k--) {
			f->live[k] = f->live[k - 1];
			f->owner[k] = f->owner[k - 1];
		}
		f->live[k] = o->live;
		f->owner[k] = i;
	}
}

void held_frame_add(const struct holders *h, struct held_account *a, uint64_t ns)
{
	struct held_frame *f;
	uint32_t i;

	if (a->n_frames > 0 && (ns <= a->frame[a->n_frames - 1].ns ||
				       ns - a->frame[a->n_frames - 1].ns < a->frame_ns))
		return;
	if (a->n_frames == HELD_FRAMES) {
		for (i = 1; i < HELD_FRAMES / 2; i++)
			a->frame[i] = a->frame[2 * i];
		a->n_frames = HELD_FRAMES / 2;
		a->frame_ns = (a->frame[a->n_frames - 1].ns - a->frame[0].ns) / (HELD_FRAMES / 2);
	}
	a->frame_ns = a->frame_ns > FRAME_NS ? a->frame_ns : FRAME_NS;
	f = &a->frame[a->n_frames++];
	f->ns = ns;
	frame_take(h, a, f);
}

/* --- what moves */

uint64_t held_plus(uint64_t a, uint64_t b)
{
	return a + b < HELD_BYTES_MAX ? a + b : HELD_BYTES_MAX;
}

uint64_t held_minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void held_move(struct holders *h, uint32_t owner, uint64_t bytes, uint64_t blocks, bool more)
{
	struct held_owner *o = &h->owner[owner];
	struct held_account *a = h->account[o->account];

	if (o->version != a->version) {
		o->peak = o->live;
		o->peak_blocks = o->blocks;
		o->version = a->version;
	}
	o->live = more ? held_plus(o->live, bytes) : held_minus(o->live, bytes);
	o->blocks = more ? held_plus(o->blocks, blocks) : held_minus(o->blocks, blocks);
	o->most = o->live > o->most ? o->live : o->most;
	a->live = more ? held_plus(a->live, bytes) : held_minus(a->live, bytes);
	a->blocks = more ? held_plus(a->blocks, blocks) : held_minus(a->blocks, blocks);
}

void held_changed(struct holders *h, struct held_account *a, uint64_t ns)
{
	if (a->live > a->peak) {
		a->peak = a->live;
		a->peak_ns = ns;
		a->version++;
	}
	held_point_add(a, ns);
	held_frame_add(h, a, ns);
}

void held_set(struct holders *h, struct held_account *a, uint64_t bytes, uint64_t ns)
{
	if (bytes == a->live)
		return;
	held_move(h, a->other, bytes > a->live ? bytes - a->live : a->live - bytes, 0,
		bytes > a->live);
	held_changed(h, a, ns);
}

/* --- writing */

struct writer {
	uint8_t *p;
	size_t n, cap;
	bool failed;
};

static void put(struct writer *w, uint64_t v)
{
	uint8_t *grown;

	if (w->cap - w->n < LEB_MAX && !w->failed) {
		w->cap = w->cap == 0 ? 4096 : 2 * w->cap;
		grown = realloc(w->p, w->cap);
		w->failed = grown == NULL;
		w->p = grown != NULL ? grown : w->p;
	}
	if (!w->failed)
		w->n = (size_t)(leb_put(w->p + w->n, v) - w->p);
}

static void put_account(struct writer *w, const struct held_account *a)
{
	uint64_t before = 0;
	uint32_t i;

	put(w, a->device);
	put(w, a->kind);
	put(w, a->other);
	put(w, a->live);
	put(w, a->blocks);
	put(w, a->peak);
	put(w, a->peak_ns);
	put(w, a->allocs);
	put(w, a->alloc_bytes);
	put(w, a->frees);
	put(w, a->free_bytes);
	put(w, a->unknown);
	put(w, a->unseen);
	put(w, a->loose);
	put(w, a->width_ns);
	put(w, a->n_points);
	for (i = 0; i < a->n_points; i++) {
		const struct held_point *p = &a->point[i];

		put(w, p->ns - before);
		put(w, p->least);
		put(w, p->most - p->least);
		put(w, p->last - p->least);
		before = p->ns;
	}
}

static void put_hash(struct writer *w, const uint8_t hash[16])
{
	uint32_t half[4], i;

	memcpy(half, hash, sizeof(half));
	for (i = 0; i < 4; i++)
		put(w, half[i]);
}

static void put_owners(struct writer *w, const struct holders *h)
{
	const struct held_owner *o;

	put(w, h->n_owners);
	for (uint32_t at = 0; at < h->n_owners; at++) {
		o = &h->owner[at];
		put_hash(w, o->hash);
		put(w, o->account);
		put(w, o->live);
		put(w, o->blocks);
		put(w, held_at_peak(h, o));
		put(w, held_blocks_at_peak(h, o));
		put(w, o->most);
	}
}

static void put_blocks(struct writer *w, const struct holders *h)
{
	const struct held_block *b;

	put(w, h->n_blocks);
	for (uint32_t at = 0; at < h->n_blocks; at++) {
		b = &h->block[at];
		put(w, b->address);
		put(w, b->bytes);
		put(w, b->ns);
		put(w, b->owner);
	}
}

static void put_waiting(struct writer *w, const struct holders *h)
{
	const struct held_event *v;
	const struct held_call *c;

	put(w, h->n_events);
	for (uint32_t at = 0; at < h->n_events; at++) {
		v = &h->event[at];
		put(w, v->ns);
		put(w, v->address);
		put(w, v->bytes);
		put(w, v->pool);
		put(w, v->reserved);
		put(w, v->used);
		put(w, v->correlation);
		put(w, v->device);
		put(w, v->epoch);
		put(w, v->op);
		put(w, v->kind);
	}
	put(w, h->n_calls);
	for (uint32_t at = 0; at < h->n_calls; at++) {
		c = &h->call[at];
		put(w, c->clock);
		put(w, c->ns);
		put(w, c->correlation);
		put(w, c->path);
		put(w, c->python);
		put(w, c->epoch);
	}
}

/* What came later than the first form: behind all else. */
static void put_torch(struct writer *w, const struct holders *h)
{
	const struct held_block_event *v;

	put(w, h->n_torch);
	for (uint32_t at = 0; at < h->n_torch; at++) {
		v = &h->torch[at];
		put(w, v->ns);
		put(w, v->address);
		put(w, v->bytes);
		put(w, v->reserved);
		put(w, v->active);
		put(w, v->split);
		put(w, v->requested);
		put(w, v->path);
		put(w, v->device);
		put(w, v->op);
	}
}

static void put_frames(struct writer *w, const struct held_account *a)
{
	const struct held_frame *f;
	uint32_t i;

	put(w, a->frame_ns);
	put(w, a->n_frames);
	for (uint32_t at = 0; at < a->n_frames; at++) {
		f = &a->frame[at];
		put(w, f->ns);
		put(w, f->n);
		for (i = 0; i < f->n; i++) {
			put(w, f->owner[i]);
			put(w, f->live[i]);
		}
	}
}

int holders_pack(const struct holders *h, void **ret, uint32_t *ret_n)
{
	struct writer w = {0};
	uint32_t i;
	int r = -ENOMEM;

	put(&w, h->events);
	put(&w, h->unplaced);
	put(&w, h->refused);
	put(&w, h->n_accounts);
	for (i = 0; i < h->n_accounts; i++)
		put_account(&w, h->account[i]);
	put_owners(&w, h);
	put(&w, h->n_pools);
	for (i = 0; i < h->n_pools; i++) {
		put(&w, h->pool[i].address);
		put(&w, h->pool[i].reserved);
		put(&w, h->pool[i].used);
		put(&w, h->pool[i].device);
	}
	put_blocks(&w, h);
	put_waiting(&w, h);
	put_torch(&w, h);
	for (i = 0; i < h->n_accounts; i++)
		put_frames(&w, h->account[i]);
	if (!w.failed)
		r = framed_pack(magic, w.p, w.n, ret, ret_n);
	free(w.p);
	return r;
}

/* --- reading */

struct reader {
	const uint8_t *at, *end;
	bool bad, no_memory;
};

/* At most `most`. */
static uint64_t get_most(struct reader *r, uint64_t most)
{
	const uint64_t v = leb_get(&r->at, r->end, &r->bad);

	r->bad |= v > most;
	return r->bad ? 0 : v;
}

static uint64_t get(struct reader *r)
{
	return get_most(r, HELD_BYTES_MAX);
}

static uint32_t get32(struct reader *r)
{
	return (uint32_t)get_most(r, UINT32_MAX);
}

/* So many of at least `least` bytes each; below `most`. */
static uint32_t get_count(struct reader *r, uint32_t most, uint32_t least)
{
	const uint32_t n = (uint32_t)get_most(r, most);

	r->bad |= n > (uint64_t)(r->end - r->at) / least;
	return r->bad ? 0 : n;
}

static void get_points(struct reader *r, struct held_account *a)
{
	uint64_t before = 0;
	uint32_t i;

	for (i = 0; i < a->n_points && !r->bad; i++) {
		struct held_point *p = &a->point[i];

		p->ns = before + get(r);
		p->least = get(r);
		p->most = p->least + get(r);
		p->last = p->least + get(r);
		r->bad |= p->last > p->most || p->ns > HELD_BYTES_MAX || p->most > HELD_BYTES_MAX;
		before = p->ns;
	}
}

static void get_account(struct reader *r, struct holders *h)
{
	struct held_account *a = calloc(1, sizeof(*a));

	if (a == NULL) {
		r->bad = r->no_memory = true;
		return;
	}
	h->account[h->n_accounts++] = a;
	a->device = get32(r);
	a->kind = (uint8_t)get_most(r, HELD_MAX - 1);
	a->other = get32(r);
	a->live = get(r);
	a->blocks = get(r);
	a->peak = get(r);
	a->peak_ns = get(r);
	a->allocs = get(r);
	a->alloc_bytes = get(r);
	a->frees = get(r);
	a->free_bytes = get(r);
	a->unknown = get(r);
	a->unseen = get(r);
	a->loose = get(r);
	a->width_ns = get(r);
	a->n_points = get_count(r, HELD_POINTS, 4);
	get_points(r, a);
}

static void get_owners(struct reader *r, struct holders *h)
{
	uint32_t n = get_count(r, HELD_OWNERS, 10), i, half[4];
	struct held_owner *o;

	for (; n > 0 && !r->bad; n--) {
		if (!ROOM_FOR(h->owner, h->cap_owners, h->n_owners)) {
			r->bad = r->no_memory = true;
			return;
		}
		o = &h->owner[h->n_owners++];
		for (i = 0; i < 4; i++)
			half[i] = get32(r);
		*o = (struct held_owner){.account = get32(r), .node = HELD_NOBODY};
		memcpy(o->hash, half, sizeof(half));
		o->live = get(r);
		o->blocks = get(r);
		o->peak = get(r);
		o->peak_blocks = get(r);
		o->most = get(r);
		r->bad |= o->account >= h->n_accounts;
	}
	for (i = 0; i < h->n_accounts && !r->bad; i++)
		r->bad |= h->account[i]->other >= h->n_owners ||
			  h->owner[h->account[i]->other].account != i;
}

static void get_pools(struct reader *r, struct holders *h)
{
	uint32_t n = get_count(r, HELD_POOLS, 4);

	for (; n > 0 && !r->bad; n--) {
		struct held_pool *p = &h->pool[h->n_pools++];

		p->address = get_most(r, UINT64_MAX);
		p->reserved = get(r);
		p->used = get(r);
		p->device = get32(r);
	}
}

static void get_blocks(struct reader *r, struct holders *h)
{
	uint32_t n = get_count(r, HELD_BLOCKS, 4);
	struct held_block *b;

	for (; n > 0 && !r->bad; n--) {
		if (!ROOM_FOR(h->block, h->cap_blocks, h->n_blocks)) {
			r->bad = r->no_memory = true;
			return;
		}
		b = &h->block[h->n_blocks++];
		*b = (struct held_block){.address = get_most(r, UINT64_MAX)};
		b->bytes = get(r);
		b->ns = get(r);
		b->owner = get32(r);
		r->bad |= b->owner >= h->n_owners;
	}
}

static void get_events(struct reader *r, struct holders *h)
{
	uint32_t n = get_count(r, HELD_WAITING, EVENT_NUMBERS);
	struct held_event *v;

	for (; n > 0 && !r->bad; n--) {
		if (!ROOM_FOR(h->event, h->cap_events, h->n_events)) {
			r->bad = r->no_memory = true;
			return;
		}
		v = &h->event[h->n_events++];
		*v = (struct held_event){.ns = get(r)};
		v->address = get_most(r, UINT64_MAX);
		v->bytes = get(r);
		v->pool = get_most(r, UINT64_MAX);
		v->reserved = get(r);
		v->used = get(r);
		v->correlation = get32(r);
		v->device = get32(r);
		v->epoch = (uint16_t)get_most(r, UINT16_MAX);
		v->op = (uint8_t)get_most(r, UINT8_MAX);
		v->kind = (uint8_t)get_most(r, HELD_MAX - 1);
	}
}

static void get_calls(struct reader *r, struct holders *h)
{
	uint32_t n = get_count(r, HELD_WAITING, 6);
	struct held_call *c;

	for (; n > 0 && !r->bad; n--) {
		if (!ROOM_FOR(h->call, h->cap_calls, h->n_calls)) {
			r->bad = r->no_memory = true;
			return;
		}
		c = &h->call[h->n_calls++];
		*c = (struct held_call){.clock = get_most(r, UINT64_MAX)};
		c->ns = get(r);
		c->correlation = get32(r);
		c->path = get32(r);
		c->python = get32(r);
		c->epoch = (uint16_t)get_most(r, UINT16_MAX);
	}
}

static void get_torch(struct reader *r, struct holders *h)
{
	uint32_t n = get_count(r, HELD_WAITING, TORCH_NUMBERS);
	struct held_block_event *v;

	for (; n > 0 && !r->bad; n--) {
		if (!ROOM_FOR(h->torch, h->cap_torch, h->n_torch)) {
			r->bad = r->no_memory = true;
			return;
		}
		v = &h->torch[h->n_torch++];
		*v = (struct held_block_event){.ns = get(r)};
		v->address = get_most(r, UINT64_MAX);
		v->bytes = get(r);
		v->reserved = get(r);
		v->active = get(r);
		v->split = get(r);
		v->requested = get(r);
		v->path = get32(r);
		v->device = get32(r);
		v->op = (uint8_t)get_most(r, UINT8_MAX);
	}
}

static void get_frames(struct reader *r, const struct holders *h, struct held_account *a)
{
	struct held_frame *f;
	uint32_t i;

	a->frame_ns = get(r);
	a->n_frames = get_count(r, HELD_FRAMES, 2);
	for (uint32_t at = 0; at < a->n_frames && !r->bad; at++) {
		f = &a->frame[at];
		f->ns = get(r);
		f->n = get_count(r, HELD_TOP, 2);
		for (i = 0; i < f->n && !r->bad; i++) {
			f->owner[i] = get32(r);
			f->live[i] = get(r);
			r->bad |= f->owner[i] >= h->n_owners;
		}
	}
}

static void get_all(struct reader *r, struct holders *h)
{
	uint32_t n;

	h->events = get(r);
	h->unplaced = get(r);
	h->refused = get(r);
	for (n = get_count(r, HELD_ACCOUNTS, ACCOUNT_NUMBERS); n > 0 && !r->bad; n--)
		get_account(r, h);
	get_owners(r, h);
	get_pools(r, h);
	get_blocks(r, h);
	get_events(r, h);
	get_calls(r, h);
	if (r->at != r->end) { /* of the first form nothing follows */
		get_torch(r, h);
		for (n = 0; n < h->n_accounts && !r->bad; n++)
			get_frames(r, h, h->account[n]);
	}
	r->bad |= r->at != r->end;
}

int holders_unpack(const void *bytes, size_t n, struct holders *ret, struct err *e)
{
	const size_t room = framed_room(bytes, n, RAW_MAX);
	uint8_t *raw = malloc(room + 1);
	struct reader r = {0};
	size_t got;

	*ret = (struct holders){0};
	if (raw == NULL)
		return err_set(e, -ENOMEM, "out of memory for who holds memory");
	got = framed_unpack(magic, bytes, n, raw, room);
	r = (struct reader){.at = raw, .end = raw + got, .bad = got == 0};
	if (!r.bad)
		get_all(&r, ret);
	free(raw);
	if (!r.bad)
		return 0;
	holders_fini(ret);
	return r.no_memory ? err_set(e, -ENOMEM, "out of memory for who holds memory")
			   : err_set(e, -EBADMSG, "a row of memory is damaged");
}
