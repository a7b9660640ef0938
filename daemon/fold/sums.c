/* SPDX-License-Identifier: MIT. sums.c: what threads added up where their lanes had no room: how much
 * of each sum is counted, and what is more. A sum is seen again and again while it grows, and once when
 * it is final; all of it counts at the clock at which it was opened.
 *
 * No number of a sum falls but a total's: one that does breaks a law, and is counted as it was. */
#include "sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "counted.h"
#include "hist.h"
#include "ids.h"
#include "loss.h"
#include "metric.h"
#include "part.h"
#include "process.h"
#include "ring.h"
#include "state.h"
#include "tree.h"

static bool same_place(const void *arg, uint32_t at)
{
	const void *const *k = arg;
	const struct open_sum *have = (const struct open_sum *)k[0] + at, *key = k[1];

	return have->pos == key->pos && have->lane == key->lane;
}

static uint32_t place_hash(const struct open_sum *x)
{
	return table_mix(x->pos, x->lane);
}

static uint32_t find(const struct process *p, const struct open_sum *key)
{
	const void *k[2] = {p->sum, key};

	return table_find(&p->sum_by_place, place_hash(key), same_place, k);
}

bool sums_put(struct process *p, const struct open_sum *x)
{
	int r;

	if (!ROOM_FOR(p->sum, p->cap_sums, p->n_sums)) {
		p->fold->no_memory = true;
		return false;
	}
	r = table_add(&p->sum_by_place, place_hash(x), p->n_sums);
	p->fold->no_memory |= r == -ENOMEM;
	if (r < 0)
		return false;
	p->sum[p->n_sums++] = *x;
	return true;
}

static void forget_one(struct process *p, uint32_t at)
{
	const uint32_t last = p->n_sums - 1;

	table_del(&p->sum_by_place, place_hash(&p->sum[at]), at);
	p->n_sums = last;
	if (at == last)
		return;
	table_del(&p->sum_by_place, place_hash(&p->sum[last]), last);
	p->sum[at] = p->sum[last];
	p->fold->no_memory |= table_add(&p->sum_by_place, place_hash(&p->sum[at]), at) < 0;
}

void sums_forget(struct process *p)
{
	free(p->sum);
	table_fini(&p->sum_by_place);
	p->sum = NULL;
	p->n_sums = p->cap_sums = 0;
}

/* What is known of it: nothing, or a place in p->sum. False: it is not to be counted, for what is
 * counted could not be remembered. */
static bool known(struct process *p, struct open_sum *key, bool final, uint32_t *ret_at)
{
	const uint32_t at = find(p, key);

	*ret_at = at;
	if (at != TABLE_NONE && p->sum[at].total == key->total) {
		*key = p->sum[at];
		return true;
	}
	if (at != TABLE_NONE) /* two records at one place */
		return false;
	return final || (p->n_sums < SUMS_OPEN_MAX && process_has_room(p));
}

static void count_on(struct process *p, const struct open_sum *now, uint32_t at, bool final)
{
	p->dirty = p->fold->news = true;
	if (final && at != TABLE_NONE)
		forget_one(p, at);
	else if (at != TABLE_NONE)
		p->sum[at] = *now;
	else if (!final)
		(void)sums_put(p, now);
}

static uint64_t span_ns(struct process *p, uint64_t clock, uint64_t from, uint64_t to)
{
	const uint64_t a = clockmap_ns(&p->clock, clock + from),
		       b = clockmap_ns(&p->clock, clock + to);

	return b > a ? b - a : 0;
}

/* Shortest and longest lie in the buckets that say how many there are. */
static void bounds(struct process *p, const struct rec_sum *r, struct sum_part *x)
{
	uint32_t low = 0, high = SUM_BUCKETS - 1;

	while (low < high && r->count[low] == 0)
		low++;
	while (high > low && r->count[high] == 0)
		high--;
	x->min_ns = span_ns(p, r->opened, 0, r->min);
	x->max_ns = span_ns(p, r->opened, 0, r->max);
	if (hist_bucket(x->min_ns) != x->first + low)
		x->min_ns = (uint64_t)hist_answer(x->first + low);
	if (hist_bucket(x->max_ns) != x->first + high)
		x->max_ns = (uint64_t)hist_answer(x->first + high);
	x->max_ns = x->max_ns < x->min_ns ? x->min_ns : x->max_ns;
}

/* Since it was last looked at. No law holds for `last`: a live reader may find it half there. */
static struct burst_part burst_of(
	const struct process *p, struct open_sum *now, uint64_t opened, uint64_t last)
{
	struct burst_part b = {.from = now->last > opened ? now->last : opened,
		.lane = &p->lane[now->lane],
		.lane_index = now->lane};

	b.to = last > b.from && last <= INT64_MAX ? last : b.from;
	now->last = b.to;
	return b;
}

/* Copied counts: what is more than was counted. False: one fell. */
static bool more_of(const struct rec_sum *r, const struct open_sum *was, struct sum_part *ret)
{
	uint32_t i;

	for (i = 0; i < SUM_BUCKETS; i++) {
		if (r->count[i] < was->count[i])
			return false;
		ret->count[i] = r->count[i] - was->count[i];
		ret->n += ret->count[i];
	}
	return r->time >= was->time;
}

static bool sum_is_lawful(const struct process *p, const struct rec_sum *r, uint32_t path)
{
	return path != PATH_ROOT && path != TABLE_NONE && !p->path[path].bad &&
	       r->first % SUM_BUCKETS == 0 && r->first / SUM_BUCKETS < SUM_PARTS &&
	       r->min <= r->max && r->opened <= INT64_MAX && r->time <= INT64_MAX &&
	       r->max <= INT64_MAX;
}

void sums_scopes(struct process *p, uint32_t lane, uint64_t pos, const uint8_t *rec, bool final)
{
	struct open_sum now = {.pos = pos, .lane = lane};
	struct sum_part x = {0};
	struct rec_sum r;
	uint32_t path, at, i;

	memcpy(&r, rec, sizeof(r));
	path = table_path(p, REC_ID(r.hdr));
	if (!known(p, &now, final, &at))
		return;
	if (!sum_is_lawful(p, &r, path) || !more_of(&r, &now, &x) ||
		loss_is_forged(p, p->events + x.n)) {
		loss_bad(p, 1);
		return;
	}
	x.path = path;
	x.opened = r.opened;
	x.first = r.first;
	x.ns = span_ns(p, r.opened, now.time, r.time);
	x.surplus = (REC_FLAGS(r.hdr) & SUM_SURPLUS) != 0;
	if (x.n != 0 || r.time != now.time) {
		bounds(p, &r, &x);
		x.burst = burst_of(p, &now, r.opened, r.last);
		p->events += x.n;
		for (i = 0; i < p->n_parts; i++)
			tree_sum(p->part[i], &x);
	}
	now.time = r.time;
	memcpy(now.count, r.count, sizeof(now.count));
	count_on(p, &now, at, final);
}

void sums_metrics(struct process *p, uint32_t lane, uint64_t pos, const uint8_t *rec, bool final)
{
	struct open_sum now = {.pos = pos, .lane = lane, .total = true};
	struct total_part x;
	struct rec_total r;
	uint32_t at, i;
	uint8_t flags;

	memcpy(&r, rec, sizeof(r));
	flags = REC_FLAGS(r.hdr) & (SUM_SURPLUS - 1);
	x = (struct total_part){.path = table_path(p, REC_ID(r.hdr)),
		.name = table_name(p, r.name),
		.opened = r.opened,
		.type = flags & METRIC_TYPE_BITS,
		.flags = flags,
		.sum = r.sum,
		.latest = r.latest,
		.surplus = (REC_FLAGS(r.hdr) & SUM_SURPLUS) != 0};
	if (x.type == METRIC_STR)
		x.latest = table_name(p, r.latest < TABLE_NONE ? (uint32_t)r.latest : TABLE_NONE);
	if (!known(p, &now, final, &at))
		return;
	if (x.type < METRIC_I64 || x.type > METRIC_STR || x.path == TABLE_NONE ||
		x.name == TABLE_NONE || (x.type == METRIC_STR && x.latest == TABLE_NONE) ||
		!counted_is_good(flags) || r.count < now.n || r.count > INT64_MAX ||
		loss_is_forged(p, p->events + r.count - now.n)) {
		loss_bad(p, 1);
		return;
	}
	x.n = r.count - now.n;
	x.before = now.sum;
	if (x.n != 0 || x.sum != x.before) {
		x.burst = burst_of(p, &now, r.opened, r.last);
		p->events += x.n;
		for (i = 0; i < p->n_parts; i++)
			if (counted_is_for(p->part[i], flags))
				tree_total(p->part[i], &x);
	}
	now.n = r.count;
	now.sum = r.sum;
	count_on(p, &now, at, final);
}
