/* SPDX-License-Identifier: MIT. summary.c: what a chunk of the timeline looks like from afar.
 *
 * Bytes: "PTS1", or "PTS2" beside a chunk with calls; then in two frames of zstd, each with its bytes
 * before and after, the head, the tracks and all levels but the lowest; and the lowest. A level is its
 * columns, one after the other. */
#include "summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "leb.h"
#include "text.h"

#define MAGIC         "PTS1"
#define MAGIC_CALLS   "PTS2"
#define MAGIC_BYTES   4u
#define LEVEL         3
#define SHIFT_MAX     56u
#define READ_RAW_MAX  (8u << 20)
#define ITEMS_MAX     (2u * TRACE_COUNT_LIMIT) /* a chunk that is read has no more events */
#define COLUMN_NUMBER 10u

/* --- making */

struct tally { /* how often each node is there, in the item at hand */
	uint32_t *count, *seen, n;
};

struct run { /* the item at hand */
	struct trace_item item;
	uint64_t stretch, longest;
};

static uint32_t shift_of(const struct trace_track *t, uint32_t ns, uint32_t ticks)
{
	return t->kind == TRACK_STREAM ? ns : ticks;
}

static void tally_add(struct tally *y, uint32_t node)
{
	if (y->count[node]++ == 0)
		y->seen[y->n++] = node;
}

/* The most frequent; it is empty then. */
static uint32_t tally_take(struct tally *y)
{
	uint32_t best = y->seen[0], i;

	for (i = 1; i < y->n; i++)
		if (y->count[y->seen[i]] > y->count[best])
			best = y->seen[i];
	for (i = 0; i < y->n; i++)
		y->count[y->seen[i]] = 0;
	y->n = 0;
	return best;
}

static void run_add(struct run *run, const struct trace_item *v)
{
	struct trace_item *r = &run->item;

	if (r->count == 0) {
		*r = *v;
		run->longest = v->busy;
		return;
	}
	r->end = v->end > r->end ? v->end : r->end;
	r->busy += v->busy;
	r->count++;
	r->event = TRACE_NONE;
	if (r->thread == TRACE_NONE) {
		r->thread = v->thread;
		r->launched = v->launched;
	}
	if (v->busy > run->longest) {
		run->longest = v->busy;
		r->longest = v->node;
	}
}

static uint32_t run_put(struct run *run, struct tally *y, struct trace_item *out, uint32_t n)
{
	if (run->item.count == 0)
		return n;
	run->item.node = tally_take(y);
	out[n] = run->item;
	run->item.count = 0;
	return n + 1;
}

/* The items of a track at a width of 2^shift. */
static uint32_t track_items(const struct trace_item *v, uint32_t n_events, uint32_t shift,
	struct tally *y, struct trace_item *out)
{
	struct run run = {.stretch = 0};
	uint32_t i, n = 0;

	for (i = 0; i < n_events; i++) {
		const bool alone = v[i].busy >> shift != 0;

		if (alone || v[i].start >> shift != run.stretch)
			n = run_put(&run, y, out, n);
		run.stretch = v[i].start >> shift;
		run_add(&run, &v[i]);
		tally_add(y, v[i].node);
		if (alone)
			n = run_put(&run, y, out, n);
	}
	return run_put(&run, y, out, n);
}

/* An event begins an item at all widths below this: it or the one before stands alone there, or
 * they are of two stretches. */
static uint32_t begins_below(const struct trace_item *v, bool first)
{
	const uint64_t bits = first ? UINT64_MAX : v->busy | v[-1].busy | (v->start ^ v[-1].start);

	return bits == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(bits);
}

/* n[s]: items in all tracks where the lowest level's width is 2^s ns. */
static void count_items(const struct trace_tracks *t, int32_t apart, uint32_t n[65])
{
	uint32_t i, k, s;

	memset(n, 0, 65 * sizeof(*n));
	for (i = 0; i < t->n_tracks; i++) {
		const struct trace_item *v = t->item + t->track[i].first;
		const int32_t less = t->track[i].kind == TRACK_STREAM ? 0 : apart;

		for (k = 0; k < t->track[i].n; k++) {
			const int32_t below = (int32_t)begins_below(&v[k], k == 0) - less;

			n[k == 0 || below > 64 ? 64 : below > 0 ? below : 0]++;
		}
	}
	for (s = 64; s > 0; s--) /* those that begin one below a width, and below wider ones */
		n[s - 1] += n[s];
	memmove(n, n + 1, 64 * sizeof(*n));
}

/* most: items that it has at most. */
static int make_level(const struct trace_tracks *t, const struct summary *s, uint32_t most,
	struct tally *y, struct summary_level *ret)
{
	const uint32_t up = SUMMARY_FACTOR * s->n_levels;
	struct trace_item *grown;
	uint32_t i;

	ret->item = reallocarray(NULL, (size_t)most + 1, sizeof(*ret->item));
	if (ret->item == NULL)
		return -ENOMEM;
	for (i = 0; i < t->n_tracks; i++)
		ret->n += track_items(t->item + t->track[i].first, t->track[i].n,
			shift_of(&t->track[i], s->ns + up, s->ticks + up), y, ret->item + ret->n);
	grown = reallocarray(ret->item, (size_t)ret->n + 1, sizeof(*ret->item));
	ret->item = grown != NULL ? grown : ret->item;
	return 0;
}

/* Up to where there is little left to merge. */
static int make_levels(
	const struct trace_tracks *t, struct tally *y, uint32_t most, struct summary *s)
{
	int r = 0;

	do {
		struct summary_level *l = &s->level[s->n_levels];

		r = make_level(t, s, most, y, l);
		s->n_levels++;
		most = l->n;
	} while (r == 0 && s->n_levels < SUMMARY_LEVELS_MAX && most > 2 * t->n_tracks &&
		 s->ns + SUMMARY_FACTOR * s->n_levels <= SHIFT_MAX);
	return r;
}

/* log2, rounded: within [-3, 6]. */
static int32_t apart_of(double ticks)
{
	int32_t n = 0;

	for (; ticks >= 1.4142 && n < 6; ticks /= 2)
		n++;
	for (; ticks < 0.7071 && n > -3; ticks *= 2)
		n--;
	return n;
}

int summary_make(const struct trace_chunk *c, const struct trace_tracks *t, double ticks,
	uint32_t finest, struct summary *ret)
{
	const int32_t apart = apart_of(ticks);
	struct summary s = {.n_tracks = t->n_tracks,
		.n_nodes = c->n[TRACE_N_NODES],
		.n_threads = c->n[TRACE_N_THREADS],
		.calls = c->calls};
	struct tally y = {.count = calloc((size_t)s.n_nodes + 1, sizeof(*y.count)),
		.seen = calloc((size_t)s.n_nodes + 1, sizeof(*y.seen))};
	uint32_t n[65];
	int r = -ENOMEM;

	s.track = reallocarray(NULL, (size_t)t->n_tracks + 1, sizeof(*s.track));
	if (s.track != NULL && y.count != NULL && y.seen != NULL) {
		memcpy(s.track, t->track, t->n_tracks * sizeof(*s.track));
		count_items(t, apart, n);
		s.ns = finest < 4 ? 4 : finest;
		while (n[s.ns] > t->n_items >> SUMMARY_FACTOR && s.ns < SHIFT_MAX)
			s.ns++;
		s.ticks = (uint32_t)((int32_t)s.ns + apart);
		r = make_levels(t, &y, n[s.ns], &s);
	}
	free(y.count);
	free(y.seen);
	if (r < 0)
		summary_fini(&s);
	else
		*ret = s;
	return r;
}

void summary_fini(struct summary *s)
{
	uint32_t i;

	free(s->track);
	free(s->deepest);
	for (i = 0; i < SUMMARY_LEVELS_MAX; i++)
		free(s->level[i].item);
	*s = (struct summary){.n_tracks = 0};
}

/* --- writing */

static uint64_t fold_sign(uint64_t difference)
{
	return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static uint64_t unfold_sign(uint64_t v)
{
	return v >> 1 ^ (0 - (v & 1));
}

static void put(struct text *t, uint64_t v)
{
	uint8_t bytes[LEB_MAX];

	text_add(t, (const char *)bytes, (size_t)(leb_put(bytes, v) - bytes));
}

/* What an item is a difference to: the one before it in its track. */
struct before {
	uint32_t track, event;
	uint64_t end, launched;
};

static void renew(struct before *b, uint32_t track)
{
	if (b->track != track)
		*b = (struct before){.track = track};
}

/* Columns: a level's items, one column after the other, so that alike stands beside alike. */
enum {
	ITEM_START,
	ITEM_LENGTH,
	ITEM_COUNT,
	ITEM_IDLE, /* of several; length - busy */
	ITEM_NODE,
	ITEM_LONGEST, /* of several; 0: as node */
	ITEM_EVENT,   /* of one */
	ITEM_THREAD,  /* of a stream */
	ITEM_LAUNCHED /* where there is a thread */
};
_Static_assert(ITEM_LAUNCHED < COLUMN_NUMBER, "a column each");

static void put_item(struct text column[COLUMN_NUMBER], const struct trace_item *v, bool stream,
	struct before *b)
{
	put(&column[ITEM_START], fold_sign(v->start - b->end));
	put(&column[ITEM_LENGTH], v->end - v->start);
	put(&column[ITEM_COUNT], v->count);
	put(&column[ITEM_NODE], v->node);
	b->end = v->end;
	if (v->count > 1) {
		put(&column[ITEM_IDLE], fold_sign(v->end - v->start - v->busy));
		put(&column[ITEM_LONGEST], v->longest == v->node ? 0 : (uint64_t)v->longest + 1);
	} else {
		put(&column[ITEM_EVENT], fold_sign((uint64_t)((int64_t)v->event - b->event)));
		b->event = v->event;
	}
	if (!stream)
		return;
	put(&column[ITEM_THREAD], v->thread == TRACE_NONE ? 0 : (uint64_t)v->thread + 1);
	if (v->thread != TRACE_NONE) {
		put(&column[ITEM_LAUNCHED], fold_sign(v->launched - b->launched));
		b->launched = v->launched;
	}
}

static void put_level(struct text *to, const struct summary *s, const struct summary_level *l)
{
	struct text column[COLUMN_NUMBER] = {{.n = 0}};
	struct before b = {.track = TRACE_NONE};
	uint32_t i, *n = calloc((size_t)s->n_tracks + 1, sizeof(*n));

	to->failed |= n == NULL;
	for (i = 0; i < l->n && n != NULL; i++) {
		renew(&b, l->item[i].track);
		n[b.track]++;
		put_item(column, &l->item[i], s->track[b.track].kind == TRACK_STREAM, &b);
	}
	for (i = 0; i < s->n_tracks && n != NULL; i++)
		put(to, n[i]);
	for (i = 0; i < COLUMN_NUMBER; i++) {
		text_add(to, column[i].s, column[i].n);
		to->failed |= column[i].failed;
		text_fini(&column[i]);
	}
	free(n);
}

static void put_head(struct text *to, const struct summary *s)
{
	uint32_t i;

	put(to, s->ns);
	put(to, s->ticks);
	put(to, s->n_levels);
	for (i = 0; i < s->n_levels; i++)
		put(to, s->level[i].n);
	put(to, s->n_tracks);
	for (i = 0; i < s->n_tracks; i++) {
		put(to, s->track[i].kind);
		put(to, s->track[i].place);
		put(to, s->track[i].row);
	}
	for (i = 1; i < s->n_levels; i++)
		put_level(to, s, &s->level[i]);
	for (i = 0; s->deepest != NULL && i < s->n_streams; i++)
		put(to, s->deepest[i]);
}

static void put_frame(struct text *to, const struct text *raw)
{
	const size_t cap = ZSTD_compressBound(raw->n);
	void *packed = malloc(cap);
	const size_t n = packed == NULL ? 0 : ZSTD_compress(packed, cap, raw->s, raw->n, LEVEL);

	to->failed |= raw->failed || packed == NULL || ZSTD_isError(n);
	if (!to->failed) {
		put(to, raw->n);
		put(to, n);
		text_add(to, packed, n);
	}
	free(packed);
}

int summary_seal(const struct summary *s, void **ret_bytes, uint32_t *ret_n)
{
	struct text to = {.n = 0}, head = {.n = 0}, lowest = {.n = 0};
	char *bytes;
	size_t n;
	int r;

	put_head(&head, s);
	if (s->n_levels > 0)
		put_level(&lowest, s, &s->level[0]);
	text_add(&to, s->calls ? MAGIC_CALLS : MAGIC, MAGIC_BYTES);
	put_frame(&to, &head);
	put_frame(&to, &lowest);
	text_fini(&head);
	text_fini(&lowest);
	r = text_take(&to, &bytes, &n);
	text_fini(&to);
	if (r < 0)
		return r;
	*ret_bytes = bytes;
	*ret_n = (uint32_t)n;
	return 0;
}

uint16_t *summary_deepest(const struct trace_chunk *c, const uint16_t *depth)
{
	uint16_t *ret = calloc((size_t)c->n[TRACE_N_STREAMS] + 1, sizeof(*ret));
	uint32_t i;

	for (i = 0; ret != NULL && i < c->n[TRACE_N_OPS]; i++)
		if (depth[c->op[i].node] > ret[c->op[i].stream])
			ret[c->op[i].stream] = depth[c->op[i].node];
	return ret;
}

int summary_of(const struct trace_chunk *c, const uint16_t *depth, double ticks, size_t chunk_bytes,
	void **ret_bytes, uint32_t *ret_n)
{
	const uint32_t events = c->n[TRACE_N_SCOPES] + c->n[TRACE_N_OPS];
	const size_t most =
		chunk_bytes / (events < SUMMARY_SMALL ? SUMMARY_SMALL_PART : SUMMARY_PART);
	struct trace_tracks t;
	struct summary s;
	uint32_t finest = 0;
	int r;

	*ret_bytes = NULL;
	*ret_n = 0;
	if (events < SUMMARY_EVENTS_MIN)
		return 0;
	r = trace_tracks_make(c, depth, &t);
	while (r == 0 && finest <= SHIFT_MAX) {
		r = summary_make(c, &t, ticks, finest, &s);
		if (r < 0)
			break;
		finest = s.ns + 1;
		s.n_streams = c->n[TRACE_N_STREAMS];
		s.deepest = summary_deepest(c, depth);
		r = s.deepest == NULL ? -ENOMEM : summary_seal(&s, ret_bytes, ret_n);
		summary_fini(&s);
		if (r < 0 || *ret_n <= most)
			break;
		free(*ret_bytes);
		*ret_bytes = NULL;
		*ret_n = 0;
	}
	trace_tracks_fini(&t);
	return r == -EBADMSG ? 0 : r;
}

/* --- reading */

struct reading {
	const uint8_t *at, *end;
	const struct trace_chunk *lists;
	struct summary *s;
	uint32_t *n; /* a level's items by track */
	bool bad;
};

static uint64_t get(struct reading *g)
{
	return leb_get(&g->at, g->end, &g->bad);
}

static uint32_t get_below(struct reading *g, uint64_t limit)
{
	const uint64_t v = get(g);

	g->bad |= v >= limit;
	return v < limit ? (uint32_t)v : 0;
}

static uint8_t *unpack(const uint8_t **at, const uint8_t *end, size_t *ret_n)
{
	bool bad = false;
	const uint64_t raw = leb_get(at, end, &bad), packed = leb_get(at, end, &bad);
	uint8_t *bytes;
	size_t got;

	if (bad || raw > READ_RAW_MAX || packed > (size_t)(end - *at))
		return NULL;
	bytes = malloc(raw + 1);
	if (bytes == NULL)
		return NULL;
	got = ZSTD_decompress(bytes, raw, *at, packed);
	*at += packed;
	if (!ZSTD_isError(got) && got == raw) {
		*ret_n = raw;
		return bytes;
	}
	free(bytes);
	return NULL;
}

static int read_head(struct reading *g)
{
	const uint64_t events = (uint64_t)g->lists->n[TRACE_N_SCOPES] + g->lists->n[TRACE_N_OPS];
	struct summary *s = g->s;
	uint64_t all = 0; /* levels together have fewer items than there are events */
	uint32_t i;

	s->ns = get_below(g, SHIFT_MAX + 1);
	s->ticks = get_below(g, 64);
	s->n_levels = get_below(g, SUMMARY_LEVELS_MAX + 1);
	for (i = 0; i < s->n_levels; i++) {
		s->level[i].n = get_below(g, events - all + 1);
		all += s->level[i].n;
	}
	s->n_tracks = get_below(g, events + 1);
	g->bad |= s->ns + SUMMARY_FACTOR * s->n_levels >= 64 + SUMMARY_FACTOR ||
		  s->ticks + SUMMARY_FACTOR * s->n_levels >= 64 + SUMMARY_FACTOR;
	if (g->bad)
		return -EBADMSG;
	s->track = calloc((size_t)s->n_tracks + 1, sizeof(*s->track));
	g->n = calloc((size_t)s->n_tracks + 1, sizeof(*g->n));
	if (s->track == NULL || g->n == NULL)
		return -ENOMEM;
	for (i = 0; i < s->n_tracks && !g->bad; i++) {
		s->track[i].kind = (uint8_t)get_below(g, TRACK_KINDS);
		s->track[i].place = get_below(g, s->track[i].kind == TRACK_STREAM
							 ? g->lists->n[TRACE_N_STREAMS]
							 : g->lists->n[TRACE_N_THREADS]);
		s->track[i].row = (uint16_t)get_below(g, UINT16_MAX + 1u);
	}
	return g->bad ? -EBADMSG : 0;
}

static void read_track_numbers(struct reading *g, struct summary_level *l)
{
	uint32_t i, k, at = 0;

	for (i = 0; i < g->s->n_tracks && !g->bad; i++) {
		g->n[i] = get_below(g, (uint64_t)l->n - at + 1);
		for (k = 0; k < g->n[i]; k++)
			l->item[at + k].track = i;
		at += g->n[i];
	}
	g->bad |= at != l->n;
}

static void read_times(struct reading *g, struct summary_level *l)
{
	struct before b = {.track = TRACE_NONE};
	uint32_t i;

	for (i = 0; i < l->n && !g->bad; i++) {
		renew(&b, l->item[i].track);
		b.end += unfold_sign(get(g)); /* of its start, until its length is known */
		l->item[i].start = b.end;
		l->item[i].end = b.end;
		/* the end stands in the next column: what follows is mended there */
	}
}

static void read_lengths(struct reading *g, struct summary_level *l)
{
	struct before b = {.track = TRACE_NONE};
	uint64_t length, shift = 0;
	uint32_t i;

	for (i = 0; i < l->n && !g->bad; i++) {
		struct trace_item *v = &l->item[i];

		if (b.track != v->track)
			shift = 0;
		renew(&b, v->track);
		length = get(g);
		v->start += shift;
		v->end = v->start + length;
		v->busy = length;
		g->bad |= v->end < v->start;
		shift += length;
	}
}

static void read_counts(struct reading *g, struct summary_level *l)
{
	uint32_t i;

	for (i = 0; i < l->n && !g->bad; i++) {
		l->item[i].count = get_below(g, ITEMS_MAX + 1);
		g->bad |= l->item[i].count == 0;
	}
	for (i = 0; i < l->n && !g->bad; i++)
		if (l->item[i].count > 1)
			l->item[i].busy -= unfold_sign(get(g));
}

static void read_names(struct reading *g, struct summary_level *l)
{
	const uint32_t nodes = g->lists->n[TRACE_N_NODES];
	uint32_t i, v;

	for (i = 0; i < l->n && !g->bad; i++)
		l->item[i].longest = l->item[i].node = get_below(g, nodes);
	for (i = 0; i < l->n && !g->bad; i++) {
		if (l->item[i].count == 1)
			continue;
		v = get_below(g, (uint64_t)nodes + 1);
		l->item[i].longest = v == 0 ? l->item[i].node : v - 1;
	}
}

static void read_events(struct reading *g, struct summary_level *l)
{
	struct before b = {.track = TRACE_NONE};
	uint64_t at;
	uint32_t i;

	for (i = 0; i < l->n && !g->bad; i++) {
		renew(&b, l->item[i].track);
		l->item[i].event = TRACE_NONE;
		if (l->item[i].count > 1)
			continue;
		at = b.event + unfold_sign(get(g));
		g->bad |= at >= (uint64_t)g->lists->n[TRACE_N_SCOPES] + g->lists->n[TRACE_N_OPS];
		l->item[i].event = b.event = (uint32_t)at;
	}
}

static void read_launches(struct reading *g, struct summary_level *l)
{
	struct before b = {.track = TRACE_NONE};
	uint32_t i, v;

	for (i = 0; i < l->n && !g->bad; i++) {
		l->item[i].thread = TRACE_NONE;
		if (g->s->track[l->item[i].track].kind != TRACK_STREAM)
			continue;
		v = get_below(g, (uint64_t)g->lists->n[TRACE_N_THREADS] + 1);
		l->item[i].thread = v == 0 ? TRACE_NONE : v - 1;
	}
	for (i = 0; i < l->n && !g->bad; i++) {
		renew(&b, l->item[i].track);
		if (l->item[i].thread != TRACE_NONE)
			l->item[i].launched = b.launched += unfold_sign(get(g));
	}
}

static int read_level(struct reading *g, struct summary_level *l)
{
	l->item = calloc((size_t)l->n + 1, sizeof(*l->item));
	if (l->item == NULL)
		return -ENOMEM;
	read_track_numbers(g, l);
	read_times(g, l);
	read_lengths(g, l);
	read_counts(g, l);
	read_names(g, l);
	read_events(g, l);
	read_launches(g, l);
	return g->bad ? -EBADMSG : 0;
}

/* What the first summaries did not have. */
static int read_deepest(struct reading *g)
{
	struct summary *s = g->s;
	uint32_t i;

	if (g->at == g->end)
		return 0;
	s->n_streams = g->lists->n[TRACE_N_STREAMS];
	s->deepest = calloc((size_t)s->n_streams + 1, sizeof(*s->deepest));
	if (s->deepest == NULL)
		return -ENOMEM;
	for (i = 0; i < s->n_streams; i++)
		s->deepest[i] = (uint16_t)get_below(g, UINT16_MAX + 1u);
	return g->bad ? -EBADMSG : 0;
}

/* The lowest level stands in a frame of its own, so that it need not be unpacked. */
static int read_frames(struct reading *g, const uint8_t *head, size_t n_head, uint32_t lowest)
{
	struct summary *s = g->s;
	uint32_t i;
	int r;

	g->at = head;
	g->end = head + n_head;
	r = read_head(g);
	for (i = 1; i < s->n_levels && r == 0; i++)
		r = read_level(g, &s->level[i]);
	if (r == 0)
		r = read_deepest(g);
	if (r == 0 && g->at != g->end)
		r = -EBADMSG;
	for (i = 1; i < s->n_levels && i < lowest; i++) {
		free(s->level[i].item);
		s->level[i].item = NULL;
	}
	return r;
}

static int read_lowest(struct reading *g, const uint8_t **at, const uint8_t *end)
{
	size_t n;
	uint8_t *raw = unpack(at, end, &n);
	int r = raw == NULL ? -EBADMSG : 0;

	if (r == 0) {
		g->at = raw;
		g->end = raw + n;
		r = read_level(g, &g->s->level[0]);
	}
	if (r == 0 && g->at != g->end)
		r = -EBADMSG;
	free(raw);
	return r;
}

int summary_read(const void *bytes, size_t n, const struct trace_chunk *lists, uint32_t lowest,
	struct summary *ret)
{
	const uint8_t *at = bytes, *end = at + n;
	struct summary s = {
		.n_nodes = lists->n[TRACE_N_NODES], .n_threads = lists->n[TRACE_N_THREADS]};
	struct reading g = {.s = &s, .lists = lists};
	uint8_t *head;
	size_t n_head = 0;
	int r;

	s.calls = n >= MAGIC_BYTES && memcmp(at, MAGIC_CALLS, MAGIC_BYTES) == 0;
	if (n < MAGIC_BYTES || (!s.calls && (lists->calls || memcmp(at, MAGIC, MAGIC_BYTES) != 0)))
		return -EBADMSG;
	at += MAGIC_BYTES;
	head = unpack(&at, end, &n_head);
	if (head == NULL)
		return -EBADMSG;
	r = read_frames(&g, head, n_head, lowest);
	if (r == 0 && lowest == 0 && s.n_levels > 0)
		r = read_lowest(&g, &at, end);
	free(head);
	free(g.n);
	if (r < 0)
		summary_fini(&s);
	else
		*ret = s;
	return r;
}
