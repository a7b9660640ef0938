/* SPDX-License-Identifier: MIT. rules_steps.c: what steps, ranks and memory do over time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bottlenecks.h"
#include "growth.h"
#include "late_rank.h"
#include "metrics.h"
#include "spread.h"
#include "step_name.h"
#include "step_pace.h"

#define FEW      0.1
#define FIRST    3u /* steps that compile, tune and allocate */
#define APART    1.25
#define HARMLESS 0.01 /* of the steps */

/* --- steps of a process */

struct pace {
	uint32_t first, n; /* of the timeline's steps */
	double median;
};

/* The next process with steps enough; false: there is none. */
static bool next_pace(const struct steps *s, struct pace *p)
{
	uint32_t end;

	for (p->first += p->n; p->first < s->n; p->first = end) {
		const struct steps_process *of = &s->process[s->step[p->first].process];

		for (end = p->first;
			end < s->n && s->step[end].process == s->step[p->first].process; end++)
			;
		p->n = end - p->first;
		p->median = of->median_ns;
		if (!isnan(p->median))
			return true;
	}
	return false;
}

struct excess {
	double ns, all_ns, worst_ns, idle_ns;
	uint32_t n, steps, worst, at; /* worst: its number; at: its place, from 1 */
};

/* How long its GPUs were idle in it, one with another. */
static double idle_of(const struct step *s)
{
	const double all = step_parts(s, 0, PART_MAX);

	return step_ns(s) * (all > 0 ? step_parts(s, PART_IDLE, PART_MAX) / all : 1);
}

/* What may be a hang, or may only have been stopped. */
static void note_cut(struct judge *j, const struct step *s, double median)
{
	struct time_words took;

	if (j->id == RULE_slow_steps)
		judge_note(j, "step %u was cut off after %s, %.1f times the median", s->number,
			time_words(step_ns(s), &took), step_ns(s) / median);
}

/* Of steps beyond the limit, or of the first ones, what they take over the median. */
static bool add_excess(struct judge *j, bool warm, struct excess *x)
{
	const struct facts *f = j->f;
	struct pace p = {0};
	uint32_t i;

	*x = (struct excess){0};
	while (next_pace(f->step, &p)) {
		for (i = 0; i < p.n; i++) {
			const struct step *s = &f->step->step[p.first + i];
			const double more = step_ns(s) - p.median;

			if (s->cut) {
				if (step_ns(s) > f->step->process[s->process].limit_ns)
					note_cut(j, s, p.median);
				continue;
			}
			x->steps++;
			x->all_ns += step_ns(s);
			if (warm ? !s->warm : !pace_is_slow(f->step, s))
				continue;
			x->n++;
			x->ns += more;
			x->idle_ns += idle_of(s);
			if (more > x->worst_ns) {
				x->worst_ns = more;
				x->worst = s->number;
				x->at = p.first + i + 1;
			}
		}
	}
	if (x->steps == 0)
		judge_unsure(j, "no process has %u steps%s: too few to tell", STEP_WARM_LEAST,
			j->f->gone > 0 ? " left in the timeline (trace_mb, trace_s)" : "");
	return x->n > 0;
}

void rule_slow_steps(struct judge *j)
{
	struct time_words more;
	struct excess x;

	/* Of many slow ones jitter speaks. */
	if (!add_excess(j, false, &x) || x.n > FEW * x.steps ||
		100 * x.ns < j->threshold * x.all_ns)
		return;
	judge_say(j,
		(struct verdict){.node = PROFILE_NONE,
			.share = x.ns / x.all_ns,
			.gain_ns = x.ns,
			.step = x.at,
			.view = VIEW_steps},
		"%u of %u steps take much longer than the median, %s more on average; the slowest "
		"is "
		"step %u.",
		x.n, x.steps, time_words(x.ns / x.n, &more), x.worst);
}

/* The first steps compile what there is; what compiles later does it again, for something that changed. */
void rule_recompiles(struct judge *j)
{
	const struct steps *s = j->f->step;
	double ns = 0, all_ns = 0;
	uint32_t i, n = 0, in = 0, later = 0;

	for (i = 0; i < s->n; i++) {
		if (s->step[i].open)
			continue;
		all_ns += step_ns(&s->step[i]);
		if (s->step[i].number <= FIRST)
			continue;
		later++;
		n += s->step[i].compiles;
		in += s->step[i].compiles > 0;
		ns += (double)s->step[i].compile_ns;
	}
	if (n < 2 || 100 * ns < j->threshold * all_ns)
		return;
	judge_say(j,
		(struct verdict){.node = PROFILE_NONE,
			.of = WHOLE_STEPS,
			.share = ns / all_ns,
			.gain_ns = ns / all_ns * whole_ns_of(j->f, WHOLE_STEPS),
			.view = VIEW_steps},
		"Behind step %u something was compiled in %u of %u steps, %u times: %.1f%% of the "
		"steps.",
		FIRST, in, later, n, 100 * ns / all_ns);
}

void rule_warm_up(struct judge *j)
{
	struct time_words more;
	struct excess x;
	char which[32];

	if (j->f->gone > 0)
		judge_unsure(j, "the first steps had left the timeline (trace_mb, trace_s)");
	if (j->f->gone > 0 || !add_excess(j, true, &x) || 100 * x.ns < j->threshold * x.all_ns)
		return;
	(void)snprintf(which, sizeof(which), x.n == 1 ? "step takes" : "%u steps take", x.n);
	judge_say(j,
		(struct verdict){.node = PROFILE_NONE,
			.share = x.ns / x.all_ns,
			.gain_ns = (double)NAN,
			.step = x.at,
			.view = VIEW_steps},
		"The first %s over 1.5 times the median, %s%s more.", which,
		x.n == 1 ? "" : "together ", time_words(x.ns, &more));
}

struct half_and_tenth { /* how long half of the steps take at most, and a tenth at least */
	double p50, p90;
	double sum, more; /* of all; what they take over p50, those of the tenth as p90 */
	uint64_t n;
};

static struct half_and_tenth of_histograms(const struct facts *f)
{
	struct half_and_tenth q = {0};
	struct spread *s = malloc(sizeof(*s));
	uint32_t i;

	if (s == NULL)
		return q;
	spread_init(s);
	for (i = 1; i < f->p->n_nodes; i++)
		if (f->node[i].step == i)
			spread_add(s, f->p, i);
	q.n = s->n;
	q.sum = f->step_ns;
	q.p50 = s->h.coarse ? (double)NAN : spread_quantile(s, 0.5);
	q.p90 = spread_quantile(s, 0.9);
	q.more = q.sum - q.p50 * (double)q.n;
	free(s);
	return q;
}

/* Without the warm ones. */
static struct half_and_tenth of_timeline(const struct steps *s)
{
	struct half_and_tenth q = {0};
	double *v = malloc((s->n + (size_t)1) * sizeof(*v));
	uint32_t i, n = 0;

	for (i = 0; v != NULL && i < s->n; i++)
		if (!s->step[i].warm && !s->step[i].cut)
			q.sum += v[n++] = step_ns(&s->step[i]);
	if (n > 0) {
		(void)step_median(v, n);
		q.n = n;
		q.p50 = v[(n + 1) / 2 - 1];
		q.p90 = v[(9 * (uint64_t)n + 9) / 10 - 1];
		for (i = 0; i < n; i++)
			q.more += fmin(v[i], q.p90) - q.p50;
	}
	free(v);
	return q;
}

/* The 90th percentile, so that a few slow ones are not meant. Where the GPU has work all the time it is the host alone whose
 * steps are uneven, as of one that runs ahead and waits now and then: that costs nothing. */
void rule_jitter(struct judge *j)
{
	const struct facts *f = j->f;
	const bool all = f->step != NULL && f->step->left_out == 0 && f->step->n >= f->steps;
	const struct half_and_tenth q =
		all || f->p->durations == NULL ? of_timeline(f->step) : of_histograms(f);
	const double more = fmax(0, isnan(f->idle.ns) ? q.more : fmin(q.more, f->idle.ns));
	struct time_words half, tenth;

	if (q.n < 2 * STEP_WARM_LEAST) {
		judge_unsure(
			j, "there are fewer than %u steps: too few to tell", 2 * STEP_WARM_LEAST);
		return;
	}
	if (!(q.p90 > q.p50) || 100 * (q.p90 - q.p50) < j->threshold * q.p50)
		return;
	time_words(q.p50, &half);
	time_words(q.p90, &tenth);
	if (more < HARMLESS * q.sum)
		judge_note(j,
			"half of the steps take the host up to %s, a tenth %s or more, and %s: "
			"harmless",
			half.text, tenth.text,
			q.more < HARMLESS * q.sum ? "others are shorter by as much"
						  : "the GPU had work all the time");
	else
		judge_say(j,
			(struct verdict){.node = PROFILE_NONE,
				.share = more / q.sum,
				.gain_ns = more,
				.view = f->step != NULL ? VIEW_steps : VIEW_summary},
			"Half of the steps take up to %s, a tenth %s or more.", half.text,
			tenth.text);
}

/* --- memory */

/* Bytes there are on the largest GPU that was measured; 0: not known. */
static double memory_of(const struct facts *f)
{
	double most = 0;
	uint32_t i;

	for (i = 0; f->device != NULL && i < f->device->n; i++)
		most = fmax(most, f->device->one[i].of[DEVICE_memory_total].last);
	return most;
}

/* site: the tree's node, PROFILE_NONE: not known. */
static void say_leak(
	struct judge *j, const struct growth *g, uint32_t rank, uint32_t n, uint32_t site)
{
	static const double mb = 1e6;
	const double room = memory_of(j->f) - g->last;
	const double left = memory_of(j->f) > 0 ? fmax(room, 0) / g->slope : (double)NAN;
	const bool soon = left < 10.0 * n || g->slope > 10 * j->threshold * mb;
	const struct verdict v = {.node = site,
		.share = (double)NAN,
		.gain_ns = (double)NAN,
		.view = VIEW_series,
		.severity = soon ? SEVERITY_HIGH : SEVERITY_MEDIUM};
	char end[96] = "", by[80] = "";

	if (isnan(left))
		(void)snprintf(end, sizeof(end), ", process %u of the session", rank + 1);
	else
		(void)snprintf(end, sizeof(end),
			"; at that rate the GPU's memory is used up in %.0f steps", left);
	if (site != PROFILE_NONE)
		(void)snprintf(by, sizeof(by), "; %.0f%% of what stays was allocated here",
			100 * j->f->leak.share);
	judge_say(j, v, "Memory leak: %.2f MB a step (95%%: %.2f to %.2f), %.0f MB at the end%s%s.",
		g->slope / mb, g->low / mb, g->high / mb, g->last / mb, end, by);
}

/* Of each process the numbers that track() gives its steps. */
static bool of_torch(
	const struct judge *j, struct growth *worst, uint32_t *ret_rank, uint32_t *ret_n)
{
	const struct steps *s = j->f->step;
	uint32_t k, first, end;
	bool known = false;
	struct growth g;

	for (k = 0; s != NULL && k < s->n_values; k++) {
		if (strcmp(s->value_name[k], "allocated (bytes)") != 0)
			continue;
		for (first = 0; first < s->n; first = end) {
			for (end = first;
				end < s->n && s->step[end].process == s->step[first].process; end++)
				;
			g = growth_of(s->value[k] + first, end - first);
			known |= g.known;
			if (!g.grows || g.slope < j->threshold * 1e6 || g.slope <= worst->slope)
				continue;
			*worst = g;
			*ret_rank = s->step[first].process;
			*ret_n = end - first;
		}
	}
	return known;
}

/* What torch's tensors take, else what the driver gave: an allocator takes that in pieces, and late. */
void rule_memory_leak(struct judge *j)
{
	const struct leak *l = &j->f->leak;
	struct growth worst = {0};
	uint32_t rank = 0, n = 0;
	bool known = of_torch(j, &worst, &rank, &n);

	if (!known && l->known && l->g.grows && l->g.slope >= j->threshold * 1e6)
		say_leak(j, &l->g, l->process, l->steps, l->node);
	else if (worst.grows)
		say_leak(j, &worst, rank, n, l->node);
	else if (!known && !l->known)
		judge_unsure(j, "no process has %u steps: too few to tell",
			GROWTH_WARM_UP + GROWTH_LEAST);
}

/* --- ranks */

static double more_of(const struct ranks_row *row)
{
	return (double)row->max_ns - (double)row->median_ns;
}

static bool holds(const struct profile *p, uint32_t outer, uint32_t inner)
{
	for (; inner != PROFILE_NONE && inner != outer; inner = p->node[inner].parent)
		;
	return inner == outer;
}

/* Half of what it has more it waited in something inside. What DDP's backward waits for over gloo has
 * no name. */
static bool waited(const struct ranks *r, const struct ranks_row *row)
{
	double sum = 0;
	uint32_t k;

	if (strcmp(r->p->node[row->node].name, "backward") == 0)
		return true;
	for (k = 0; k < r->n_rows; k++)
		if (r->row[k].slowest == row->slowest && rank_meets(&r->p->node[r->row[k].node]) &&
			holds(r->p, row->node, r->row[k].node))
			sum += more_of(&r->row[k]);
	return sum > more_of(row) / 2;
}

static uint32_t depth_of(const struct ranks *r, const struct ranks_row *row)
{
	return r->p->node[row->node].depth;
}

static const struct ranks_row *slowest_row(const struct ranks *r, double threshold)
{
	const struct ranks_row *most = NULL, *in = NULL;
	uint32_t k, ranks = 0;
	bool *own = calloc(r->n_rows + 1u, sizeof(*own));

	for (k = 0; k < r->n; k++)
		ranks += r->process[k].total_ns > 0; /* a launcher has nothing */
	for (k = 0; own != NULL && k < r->n_rows && ranks > 1; k++) {
		const struct ranks_row *row = &r->row[k];

		own[k] = row->in == ranks && (double)row->max_ns > APART * (double)row->median_ns &&
			 100 * more_of(row) >=
				 threshold * (double)r->process[row->slowest].total_ns &&
			 !waited(r, row);
		if (own[k] && (most == NULL || more_of(row) > more_of(most)))
			most = row;
	}
	/* Of those that have nearly all of the most, the innermost. */
	for (k = 0; most != NULL && k < r->n_rows; k++)
		if (own[k] && more_of(&r->row[k]) > 0.9 * more_of(most) &&
			r->row[k].slowest == most->slowest &&
			(in == NULL || depth_of(r, &r->row[k]) > depth_of(r, in)))
			in = &r->row[k];
	free(own);
	return in;
}

/* The same node of the tree of all: by names. */
static uint32_t node_of(const struct profile *p, const struct ranks *r, uint32_t node)
{
	uint32_t up[PROFILE_DEPTH_MAX + 1], n = 0, at = 0, child;

	for (; node != 0 && n <= PROFILE_DEPTH_MAX; node = r->p->node[node].parent)
		up[n++] = node;
	while (n-- > 0) {
		for (child = p->node[at].first_child; child != PROFILE_NONE;
			child = p->node[child].next_sibling)
			if (strcmp(p->node[child].name, r->p->node[up[n]].name) == 0)
				break;
		if (child == PROFILE_NONE)
			return PROFILE_NONE;
		at = child;
	}
	return at;
}

static const char *rank_word(const struct ranks_process *p, int64_t *ret)
{
	*ret = p->rank >= 0 ? p->rank : p->pid;
	return p->rank >= 0 ? "Rank" : "Process";
}

/* By collectives on the GPU. False: there are none, or nobody waits long in them. */
static bool say_late_rank(struct judge *j)
{
	const struct ranks *r = j->f->rank;
	struct late_rank l;
	struct time_words wait, more;
	char since[48] = "", what[96] = "";
	const char *word;
	int64_t number;

	if (!late_rank_find(r, j->f->step, &l) || 100 * l.share < j->threshold)
		return false;
	word = rank_word(&r->process[l.at], &number);
	if (l.since > 0)
		snprintf(since, sizeof(since), " from step %u on", l.since);
	if (l.node != PROFILE_NONE)
		snprintf(what, sizeof(what), " It has %s%s more here than they, %s.",
			time_words(l.by_steps ? l.more_ns / l.steps : l.more_ns, &more),
			l.by_steps ? " a step" : "", l.host ? "on the host" : "on its GPU");
	judge_say(j,
		(struct verdict){
			.node = l.node == PROFILE_NONE ? PROFILE_NONE : node_of(j->f->p, r, l.node),
			.share = l.share,
			.gain_ns = l.share * j->f->whole_ns,
			.severity = (l.by_steps && l.node != PROFILE_NONE) || l.share < 0.1
					    ? SEVERITY_NONE
					    : SEVERITY_MEDIUM,
			.view = VIEW_ranks},
		"%s %lld comes last where ranks meet: the others wait %s%s for it in "
		"collectives%s.%s",
		word, (long long)number, time_words(l.by_steps ? l.step_wait_ns : l.wait_ns, &wait),
		l.by_steps ? " a step" : " in all, the start included,", since, what);
	return true;
}

/* Workers of a pool or a server do not wait for each other. */
static bool may_meet(const struct ranks *r)
{
	uint32_t i, ranks = 0;

	for (i = 0; i < r->p->n_nodes; i++)
		if (rank_meets(&r->p->node[i]) || timeline_is_step(r->p->node[i].name))
			return true;
	for (i = 0; i < r->n; i++)
		ranks += r->process[i].rank >= 0;
	return ranks > 1;
}

void rule_slow_rank(struct judge *j)
{
	const struct ranks *r = j->f->rank;
	const struct ranks_row *row = slowest_row(r, j->threshold);
	const struct ranks_process *p;
	struct time_words more;
	const char *word;
	int64_t number;
	double share, whole;

	if (ranks_worked(r) < 2)
		judge_unsure(j, "fewer than two processes have anything to compare");
	else if (!may_meet(r))
		judge_unsure(
			j, "nothing says that its processes meet: no rank, collective or step");
	if (say_late_rank(j) || row == NULL || !may_meet(r))
		return;
	p = &r->process[row->slowest];
	word = rank_word(p, &number);
	/* Without steps what a rank did may be next to nothing of its time. */
	whole = j->f->whole == WHOLE_SESSION ? (double)j->f->p->head.duration_ns : 0;
	share = fmin(1, more_of(row) / fmax(fmax((double)p->total_ns, whole), 1));
	if (100 * share < j->threshold)
		return;
	judge_say(j,
		(struct verdict){.node = node_of(j->f->p, r, row->node),
			.share = share,
			.gain_ns = share * j->f->whole_ns, /* of each rank's time */
			.view = VIEW_ranks},
		"%s %lld takes %.1f times the median here, %s more. Where ranks meet, the others "
		"wait for it.",
		word, (long long)number, (double)row->max_ns / fmax((double)row->median_ns, 1),
		time_words(more_of(row), &more));
}
