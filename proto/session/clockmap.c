/* SPDX-License-Identifier: MIT. clockmap.c: what a ring's clock is in nanoseconds of
 * CLOCK_MONOTONIC. */
#include "clockmap.h"

#include <string.h>

#define SLOPE_ONE (1ull << 32)
#define SLOPE_MAX \
	(1ull << 44) /* 4096 ns a tick: no clock is that slow, and products stay in range */
#define GOES_ON_NS   2000000000ull /* behind the last anchor, of which there is one a second */
#define APART_MIN_NS 100000000ull  /* anchors closer than this give no slope to go far with */

static void note_back(struct anchors *a, uint32_t i)
{
	if (i == 0 || a->v[i].real_ns >= a->v[i - 1].real_ns)
		return;
	if (a->n_back == ANCHORS_BACK_MAX)
		memmove(a->back, a->back + 1, --a->n_back * sizeof(*a->back));
	a->back[a->n_back++] = i;
}

void anchors_add(struct anchors *a, const struct anchor *x)
{
	const struct anchor *last = a->n > 0 ? &a->v[a->n - 1] : NULL;
	uint32_t i, keep;

	if (x->mono_ns > CLOCK_NS_MAX || x->real_ns > CLOCK_NS_MAX)
		return;
	if (last != NULL && (x->clock < last->clock || x->mono_ns < last->mono_ns)) {
		a->n = a->n_back = 0;
		last = NULL;
	}
	if (last != NULL && (x->clock == last->clock || x->mono_ns == last->mono_ns))
		return;
	if (a->n == a->cap) { /* every second one of the older half goes: old pieces grow longer */
		keep = a->cap / 2;
		for (i = 0; i < keep / 2; i++)
			a->v[i] = a->v[2 * i];
		memmove(a->v + keep / 2, a->v + keep, (a->cap - keep) * sizeof(*a->v));
		a->n = a->cap - (keep - keep / 2);
		for (a->n_back = i = 0; i < a->n; i++)
			note_back(a, i);
	}
	a->v[a->n++] = *x;
	note_back(a, a->n - 1);
	a->changes++;
}

/* Not before the middle between it and the one before. */
static bool is_near(const struct anchors *a, uint32_t i, uint64_t real_ns)
{
	return real_ns >= a->v[i].real_ns ||
	       (real_ns > a->v[i - 1].real_ns &&
		       real_ns - a->v[i - 1].real_ns > a->v[i].real_ns - real_ns);
}

/* How far it is from what the clock showed while it ran on from v[from] to v[end - 1]: it may have been set right
 * behind the anchor before, and went on behind the last one. */
static uint64_t outside(const struct anchors *a, uint32_t from, uint32_t end, uint64_t real_ns)
{
	const struct anchor *v = &a->v[from];
	const uint64_t since = from > 0 ? v->mono_ns - v[-1].mono_ns : v->real_ns,
		       first = v->real_ns > since ? v->real_ns - since : 0,
		       last = a->v[end - 1].real_ns + GOES_ON_NS;

	return real_ns < first ? first - real_ns : real_ns > last ? real_ns - last : 0;
}

uint32_t anchors_near(const struct anchors *a, uint64_t real_ns)
{
	uint32_t low = 0, high = a->n, k, mid;
	uint64_t least = UINT64_MAX, far;

	if (a->n == 0)
		return 0;
	for (k = a->n_back + 1; a->n_back > 0 && k-- > 0 && least > 0;) {
		const uint32_t from = k > 0 ? a->back[k - 1] : 0,
			       end = k < a->n_back ? a->back[k] : a->n;

		far = outside(a, from, end, real_ns);
		if (far >= least)
			continue;
		least = far;
		low = from;
		high = end;
	}
	for (high--; low < high;) { /* the last near one */
		mid = low + (high - low + 1) / 2;
		if (is_near(a, mid, real_ns))
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

int64_t anchors_offset(const struct anchors *a, uint64_t real_ns)
{
	const struct anchor *at = a->n == 0 ? NULL : &a->v[anchors_near(a, real_ns)];

	return at == NULL ? 0 : (int64_t)(at->real_ns - at->mono_ns);
}

void clockmap_use(struct clockmap *m, const struct anchors *a, uint32_t khz)
{
	if (m->anchors == a && m->khz == khz && (a == NULL || m->changes == a->changes) &&
		m->slope != 0)
		return;
	m->anchors = a;
	m->khz = khz;
	m->changes = a == NULL ? 0 : a->changes;
	clockmap_find(m, a == NULL || a->n == 0 ? 0 : a->v[a->n - 1].clock);
}

static uint64_t slope_of(const struct anchor *a, const struct anchor *b)
{
	i128 s = ((i128)(b->mono_ns - a->mono_ns) << 32) / (b->clock - a->clock);

	return s == 0 ? 1 : s > SLOPE_MAX ? SLOPE_MAX : (uint64_t)s;
}

static uint64_t slope_of_khz(uint32_t khz)
{
	uint64_t s = khz == 0 ? SLOPE_ONE : (1000000ull << 32) / khz;

	return s == 0 ? 1 : s > SLOPE_MAX ? SLOPE_MAX : s;
}

/* The slope beyond the last anchor: from the newest one that is far enough from it. */
static uint64_t slope_beyond(const struct anchors *a)
{
	const struct anchor *last = &a->v[a->n - 1];
	uint32_t i = a->n - 2;

	while (i > 0 && last->mono_ns - a->v[i].mono_ns < APART_MIN_NS)
		i--;
	return slope_of(&a->v[i], last);
}

static void piece_set(struct clockmap *m, const struct anchor *at, uint64_t slope)
{
	m->clock0 = at->clock;
	m->ns0 = at->mono_ns;
	m->slope = slope;
}

/* The first anchor whose clock is above; n when none is. */
static uint32_t above(const struct anchors *a, uint64_t clock)
{
	uint32_t low = 0, high = a->n, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (a->v[mid].clock > clock)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

void clockmap_find(struct clockmap *m, uint64_t clock)
{
	static const struct anchor zero;
	const struct anchors *a = m->anchors;
	uint32_t i;

	m->low = 0;
	m->width = UINT64_MAX;
	if (a == NULL || a->n == 0) {
		piece_set(m, &zero, a == NULL ? SLOPE_ONE : slope_of_khz(m->khz));
		return;
	}
	if (a->n == 1) {
		piece_set(m, &a->v[0], slope_of_khz(m->khz));
		return;
	}
	i = above(a, clock);
	if (i == 0) { /* before the first anchor: backwards along the first piece */
		m->width = a->v[0].clock;
		piece_set(m, &a->v[0], slope_of(&a->v[0], &a->v[1]));
	} else if (i == a->n) {
		m->low = a->v[i - 1].clock;
		m->width = UINT64_MAX - m->low;
		piece_set(m, &a->v[i - 1], slope_beyond(a));
	} else {
		m->low = a->v[i - 1].clock;
		m->width = a->v[i].clock - m->low;
		piece_set(m, &a->v[i - 1], slope_of(&a->v[i - 1], &a->v[i]));
	}
}

static i128 clock_of(const struct clockmap *m, uint64_t mono_ns)
{
	return (i128)m->clock0 +
	       (((i128)mono_ns - (i128)m->ns0) * ((i128)1 << 32)) / (i128)m->slope;
}

uint64_t clockmap_clock(struct clockmap *m, uint64_t mono_ns)
{
	const struct anchors *a = m->anchors;
	uint32_t low = 0, high = a == NULL ? 0 : a->n, mid;
	i128 clock;

	mono_ns = mono_ns > CLOCK_NS_MAX ? CLOCK_NS_MAX : mono_ns;
	while (low < high) { /* the piece by its ns: anchors grow in both */
		mid = low + (high - low) / 2;
		if (a->v[mid].mono_ns > mono_ns)
			high = mid;
		else
			low = mid + 1;
	}
	if (low > 0)
		clockmap_find(m, a->v[low - 1].clock);
	else
		clockmap_find(m, 0);
	clock = clock_of(m, mono_ns);
	if (clock < 0)
		return 0;
	return clock >= (i128)UINT64_MAX ? UINT64_MAX - 1 : (uint64_t)clock;
}
