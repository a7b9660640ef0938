/* SPDX-License-Identifier: MIT. rules_host.c: what the host does while the GPU waits. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bottlenecks.h"

#define PLACES   3u       /* that one rule names */
#define WORTH    0.1      /* of the whole: less idle time is not worth a word */
#define GAP_NS   100000.0 /* of idle time a launch: more is no launch, but something else */
#define SHORT_NS 20000.0
#define RECORDED                                                                                \
	"Look at the verdicts beside this one for the cause; without one, at the timeline and " \
	"`protonview critical`: `-s cpu` shows what Python does meanwhile."

static double idle_of(const struct facts *f)
{
	return isnan(f->idle.share) ? 0 : f->idle.share;
}

/* It cannot give back more than the GPU was idle. */
static double at_most(const struct facts *f, double ns)
{
	return isnan(f->idle.ns) ? (double)NAN : fmin(ns, f->idle.ns);
}

static bool is_below(const struct profile *p, uint32_t node, const uint32_t *of, uint32_t n)
{
	uint32_t k;

	for (; node != PROFILE_NONE; node = p->node[node].parent)
		for (k = 0; k < n; k++)
			if (of[k] == node)
				return true;
	return false;
}

/* As torch's DataLoader is called, by us and by torch's own profiler. */
static bool is_loader(const char *name)
{
	return strcmp(name, "dataloader") == 0 || strncmp(name, "enumerate(DataLoader)#", 22) == 0;
}

/* How long the steps wait for their loader, and where the most. */
static double loader_ns(const struct facts *f, uint32_t *ret_most)
{
	const struct profile *p = f->p;
	double all = 0;
	uint32_t i;

	*ret_most = PROFILE_NONE;
	for (i = 1; i < p->n_nodes; i++) {
		if (f->node[i].step == PROFILE_NONE || !is_loader(p->node[i].name) ||
			is_loader(p->node[p->node[i].parent].name))
			continue;
		all += f->node[i].cpu_ns;
		if (*ret_most == PROFILE_NONE || f->node[i].cpu_ns > f->node[*ret_most].cpu_ns)
			*ret_most = i;
	}
	return all;
}

void rule_data_loader(struct judge *j)
{
	const struct facts *f = j->f;
	uint32_t most;
	const double all = loader_ns(f, &most), gain = f->has_gpu ? at_most(f, all) : all;

	if (most == PROFILE_NONE || all == 0 || 100 * all < j->threshold * f->step_ns)
		return;
	judge_say(j,
		(struct verdict){.node = most,
			.share = isnan(gain) ? all / f->step_ns : gain / f->step_ns,
			.gain_ns = gain},
		"The loop waits %.1f%% %s for its batches.", 100 * all / f->step_ns,
		whole_words(f->whole));
}

/* --- waiting for the GPU */

/* The node that a site of a timeline is in the tree: by names from the top. */
static uint32_t node_of(const struct facts *f, const struct waits *w, uint32_t site)
{
	const struct profile *p = f->p;
	uint32_t up[PROFILE_DEPTH_MAX], n = 0, at = 0, child;

	for (; site != PROFILE_NONE && site < w->n && n < PROFILE_DEPTH_MAX;
		site = w->site[site].parent)
		up[n++] = site;
	while (n-- > 0) {
		for (child = p->node[at].first_child; child != PROFILE_NONE;
			child = p->node[child].next_sibling)
			if (strcmp(p->node[child].name, w->site[up[n]].name) == 0)
				break;
		if (child == PROFILE_NONE)
			return PROFILE_NONE;
		at = child;
	}
	return at;
}

/* Sites that stand in a step, the worst first. */
static uint32_t worst_sites(
	const struct facts *f, uint32_t ret[PLACES], double *ret_sure, double *ret_blocked)
{
	const struct waits *w = f->wait;
	uint32_t i, k, m, n = 0;

	*ret_sure = *ret_blocked = 0;
	for (i = 0; i < w->n; i++) {
		const uint32_t node = w->site[i].calls > 0 ? node_of(f, w, i) : PROFILE_NONE;

		if (node == PROFILE_NONE || f->node[node].step == PROFILE_NONE)
			continue;
		*ret_sure += (double)w->site[i].sure_ns;
		*ret_blocked += (double)w->site[i].blocked_ns;
		for (k = 0; k < n && w->site[ret[k]].sure_ns >= w->site[i].sure_ns; k++)
			;
		if (k == PLACES)
			continue;
		n += n < PLACES;
		for (m = n - 1; m > k; m--)
			ret[m] = ret[m - 1];
		ret[k] = i;
	}
	return n;
}

static void say_sites(struct judge *j)
{
	const struct facts *f = j->f;
	uint32_t site[PLACES], n, k;
	double sure, blocked;

	n = worst_sites(f, site, &sure, &blocked);
	if (100 * sure < j->threshold * f->step_ns) {
		if (blocked >= WORTH * f->step_ns)
			judge_note(j,
				"the host waits %.1f%% %s, and %.1f%% behind that the GPU was "
				"idle: harmless",
				100 * blocked / f->step_ns, whole_words(f->whole),
				100 * sure / f->step_ns);
		return;
	}
	for (k = 0; k < n; k++) {
		const struct wait_site *s = &f->wait->site[site[k]];
		const double calls = (double)s->calls;
		struct time_words each, bubble;

		if ((double)s->sure_ns < 0.1 * sure)
			continue;
		judge_say(j,
			(struct verdict){.node = node_of(f, f->wait, site[k]),
				.share = (double)s->sure_ns / f->step_ns,
				.gain_ns = (double)s->gain_ns},
			"%.1f times %s the host waits for the GPU, %s each; behind that "
			"the GPU has nothing to do for %s.",
			calls / f->steps, each_words(f),
			time_words((double)s->blocked_ns / calls, &each),
			time_words((double)s->bubble_ns / calls, &bubble));
	}
}

/* The scope with the most waiting right below it. */
static uint32_t most_waiting(const struct facts *f)
{
	const struct profile *p = f->p;
	uint32_t i, most = PROFILE_NONE;

	for (i = 1; i < p->n_nodes; i++)
		if (f->node[i].step != PROFILE_NONE && p->node[i].first_child == PROFILE_NONE &&
			f->node[i].wait_ns > (most == PROFILE_NONE ? 0 : f->node[most].wait_ns))
			most = i;
	return most;
}

void rule_cpu_gpu_sync(struct judge *j)
{
	const struct facts *f = j->f;
	const double share = f->step_wait_ns / f->step_ns, idle = idle_of(f);
	const uint32_t most = most_waiting(f);

	if (f->wait != NULL && f->wait->left_out == 0) {
		say_sites(j);
		return;
	}
	if (100 * share < j->threshold || most == PROFILE_NONE)
		return;
	if (isnan(f->idle.share)) {
		judge_unsure(j, "the host waits %.1f%% %s, and how idle the GPU was is not known",
			100 * share, whole_words(f->whole));
		return;
	}
	if (idle < WORTH) {
		judge_note(j,
			"the host waits %.1f%% %s, and the GPU had work nearly all of the "
			"time: harmless",
			100 * share, whole_words(f->whole));
		return;
	}
	judge_say(j,
		(struct verdict){.node = most,
			.share = fmin(share, idle),
			.gain_ns = at_most(f, f->step_wait_ns)},
		"The host waits %.1f%% %s for the GPU, which is idle for %.1f%%.", 100 * share,
		whole_words(f->whole), 100 * idle);
}

void rule_result_fetch(struct judge *j)
{
	const struct facts *f = j->f;
	const struct profile *p = f->p;
	uint32_t i, most = PROFILE_NONE;
	double n = 0;

	for (i = 1; i < p->n_nodes; i++) {
		if (f->node[i].step == PROFILE_NONE || f->node[i].gpu_count == 0 ||
			p->node[i].class != CLASS_D2H || p->node[i].first_child != PROFILE_NONE)
			continue;
		n += f->node[i].gpu_count;
		if (most == PROFILE_NONE || f->node[i].gpu_count > f->node[most].gpu_count)
			most = i;
	}
	if (most == PROFILE_NONE || n < j->threshold * f->steps)
		return;
	/* What the waits cost is measured; where it is little, and the GPU waits all the same, it is for
	 * the loop that fetches. */
	if (f->has_sync &&
		(j->to->rule[RULE_cpu_gpu_sync].state == RULE_FOUND || idle_of(f) < 2 * WORTH)) {
		judge_note(j, "%.1f results a step are fetched; cpu_gpu_sync says what they cost",
			n / f->steps);
		return;
	}
	judge_say(j,
		(struct verdict){.node = most,
			.share = (double)NAN,
			.gain_ns = (double)NAN,
			.severity = idle_of(f) >= 2 * WORTH ? SEVERITY_MEDIUM : SEVERITY_LOW},
		"%.1f times a step a result is fetched from the GPU%s.", n / f->steps,
		idle_of(f) >= 2 * WORTH ? ", which is idle much of the time" : "");
}

/* --- calls of the driver that do not belong in a loop */

static uint32_t most_of(const struct facts *f, bool pins)
{
	const struct profile *p = f->p;
	uint32_t i, most = PROFILE_NONE;

	for (i = 1; i < p->n_nodes; i++) {
		const double v = pins ? f->node[i].pins : f->node[i].alloc_ns;

		if (f->node[i].step != PROFILE_NONE && p->node[i].first_child == PROFILE_NONE &&
			v > (most == PROFILE_NONE ? 0
				    : pins        ? f->node[most].pins
						  : f->node[most].alloc_ns))
			most = i;
	}
	return most;
}

/* Sums over the outermost steps. */
static double in_steps(const struct facts *f, double (*of)(const struct fact_node *))
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < f->p->n_nodes; i++)
		sum += f->node[i].step == i ? of(&f->node[i]) : 0;
	return sum;
}

static double alloc_ns_of(const struct fact_node *n)
{
	return n->alloc_ns;
}

static double allocs_of(const struct fact_node *n)
{
	return n->allocs;
}

static double pin_ns_of(const struct fact_node *n)
{
	return n->pin_ns;
}

static double pins_of(const struct fact_node *n)
{
	return n->pins;
}

void rule_alloc_in_loop(struct judge *j)
{
	const struct facts *f = j->f;
	const double ns = in_steps(f, alloc_ns_of), n = in_steps(f, allocs_of);
	const uint32_t most = most_of(f, false);

	if (n < f->steps || most == PROFILE_NONE || 100 * ns < j->threshold * f->step_ns)
		return;
	judge_say(j,
		(struct verdict){.node = most,
			.share = at_most(f, ns) / f->step_ns,
			.gain_ns = at_most(f, ns)},
		"%.1f times %s device memory is allocated or freed: %.1f%% %s.", n / f->steps,
		each_words(f), 100 * ns / f->step_ns, whole_words(f->whole));
}

void rule_pin_in_loop(struct judge *j)
{
	const struct facts *f = j->f;
	const double n = in_steps(f, pins_of), ns = in_steps(f, pin_ns_of);
	const uint32_t most = most_of(f, true);

	if (most == PROFILE_NONE || n == 0 || n < j->threshold * f->steps)
		return;
	judge_say(j,
		(struct verdict){.node = most,
			.share = at_most(f, ns) / f->step_ns,
			.gain_ns = at_most(f, ns)},
		"%.1f times a step host memory is pinned or unpinned.", n / f->steps);
}

/* --- the host alone */

/* As other profilers' files have them, as scopes: what they launch stands beside them. */
static bool is_call_of_gpu(const char *name)
{
	size_t n = strncmp(name, "cuda", 4) == 0 ? 4 : strncmp(name, "hip", 3) == 0 ? 3 : 2;

	return (n > 2 || strncmp(name, "cu", 2) == 0) && isupper((unsigned char)name[n]);
}

static bool is_alone(const struct facts *f, uint32_t i)
{
	const struct fact_node *n = &f->node[i];
	const struct profile_node *node = &f->p->node[i];

	return n->step != PROFILE_NONE && n->step != i && n->gpu_count == 0 &&
	       n->calls * 2 >= f->steps && node->kind != NODE_CALL && !is_loader(node->name) &&
	       !is_call_of_gpu(node->name) && n->sync_ns * 2 < n->cpu_ns;
}

/* The next by time below `most`; an outer scope before one in it. PROFILE_NONE: none is left. */
static uint32_t next_alone(const struct facts *f, double least, const uint32_t *said, uint32_t n)
{
	uint32_t i, most = PROFILE_NONE;

	for (i = 1; i < f->p->n_nodes; i++)
		if (f->node[i].cpu_ns >= least && is_alone(f, i) &&
			(most == PROFILE_NONE || f->node[i].cpu_ns > f->node[most].cpu_ns) &&
			!is_below(f->p, i, said, n))
			most = i;
	return most;
}

void rule_host_alone(struct judge *j)
{
	const struct facts *f = j->f;
	const double least = fmax(j->threshold / 100 * f->step_ns, 1);
	uint32_t said[PLACES], n, at;

	/* Work that stands outside of the steps may be launched while a scope in them waits. */
	if (idle_of(f) < 2 * WORTH || f->idle.of != f->whole || !f->gpu_in_steps)
		return;
	for (n = 0; n < PLACES; n++) {
		at = next_alone(f, least, said, n);
		if (at == PROFILE_NONE)
			return;
		said[n] = at;
		judge_say(j,
			(struct verdict){.node = at,
				.share = fmin(f->node[at].cpu_ns / f->step_ns, idle_of(f)),
				.gain_ns = at_most(f, f->node[at].cpu_ns)},
			"The host alone works here for %.1f%% %s, and launches nothing; the GPU is "
			"idle for %.1f%%.",
			100 * f->node[at].cpu_ns / f->step_ns, whole_words(f->whole),
			100 * idle_of(f));
	}
}

/* --- launches */

/* How many steps launch the same number of pieces as the one before. */
static double alike(const struct facts *f)
{
	uint32_t i, n = 0, same = 0;

	for (i = 1; f->step != NULL && i < f->step->n; i++) {
		const struct step *s = &f->step->step[i];

		if (s[-1].process != s->process || s->ops == 0)
			continue;
		n++;
		same += s[-1].ops == s->ops;
	}
	return n < 10 ? 0 : (double)same / n;
}

/* Of the steps' idle time, what other rules have the cause of. */
static double explained_ns(const struct facts *f)
{
	uint32_t said[PLACES], n, at;
	double ns = loader_ns(f, &at), gain = 0, blocked;

	if (f->idle.of != f->whole)
		return 0;
	if (f->wait != NULL && f->wait->left_out == 0)
		(void)worst_sites(f, said, &gain, &blocked);
	ns += gain;
	for (n = 0; n < PLACES && f->gpu_in_steps; n++) {
		at = next_alone(f, fmax(WORTH * f->step_ns, 1), said, n);
		if (at == PROFILE_NONE)
			break;
		said[n] = at;
		ns += f->node[at].cpu_ns;
	}
	return ns;
}

/* Much idle time in small pieces, one for each launch, of short work. */
void rule_launch_bound(struct judge *j)
{
	const struct facts_idle *i = &j->f->idle;
	const double ns = fmax(0, i->ns - explained_ns(j->f)), whole = whole_ns_of(j->f, i->of);

	if (i->count < 100 || whole == 0 || 100 * ns < j->threshold * whole ||
		ns > GAP_NS * i->count || i->work_ns > SHORT_NS * i->count)
		return;
	judge_say(j, (struct verdict){.node = 0, .of = i->of, .share = ns / whole, .gain_ns = ns},
		"The GPU is idle for %.1f%% %s, in small pieces: %.1f us for each of %.0f "
		"launches, whose work takes %.1f us.%s",
		100 * ns / whole, whole_words(i->of), ns / i->count / 1e3, i->count,
		i->work_ns / i->count / 1e3,
		alike(j->f) > 0.9 ? " Steps launch alike, so a CUDA graph can hold one." : "");
}

/* Half of it is another verdict's. */
static bool is_explained(const struct judge *j)
{
	uint32_t k;

	for (k = 0; k < j->to->n; k++)
		if (j->to->verdict[k].gain_ns >= j->f->idle.ns / 2) /* not of NAN */
			return true;
	return false;
}

/* Of the scopes of this name in steps the one with the most time. */
static uint32_t scope_of(const struct facts *f, const char *name)
{
	uint32_t i, most = PROFILE_NONE;

	for (i = 1; i < f->p->n_nodes; i++)
		if (f->node[i].step != PROFILE_NONE && strcmp(f->p->node[i].name, name) == 0 &&
			(most == PROFILE_NONE || f->node[i].cpu_ns > f->node[most].cpu_ns))
			most = i;
	return most;
}

/* Of a step of median length. What the loader has of it data_loader says. */
void rule_critical_host(struct judge *j)
{
	const struct critical *c = j->f->critical;
	const struct critical_row *row = NULL;
	double whole, host;
	uint32_t i;

	if (c == NULL) {
		judge_unsure(j, j->f->gone > 0
					? "the steps had left the timeline (trace_mb, trace_s)"
					: "the path is of a whole session's steps");
		return;
	}
	whole = (double)(c->end_ns - c->begin_ns);
	host = (double)(c->part_ns[CRITICAL_HOST] + c->part_ns[CRITICAL_CALL] +
			c->part_ns[CRITICAL_NOTHING]);
	for (i = 0; i < c->n_rows && row == NULL; i++)
		if (c->row[i].part == CRITICAL_HOST)
			row = &c->row[i];
	if (!(100 * j->f->idle.share >= j->set->threshold[RULE_gpu_idle]) || row == NULL ||
		100 * host < j->threshold * whole)
		return;
	judge_say(j,
		(struct verdict){.node = scope_of(j->f, row->name),
			.share = host / whole,
			.gain_ns = (double)NAN,
			.view = VIEW_steps},
		"The host is %.1f%% of the critical path of step %u, one of median length; with "
		"its "
		"largest part, %.1f%%, a tenth faster the step would be %.1f%% shorter.",
		100 * host / whole, c->step, 100 * (double)row->ns / whole,
		100 * row->gain_ns / whole);
}

void rule_gpu_idle(struct judge *j)
{
	const struct facts_idle *i = &j->f->idle;

	if (100 * i->share < j->threshold)
		return;
	judge_say(j,
		(struct verdict){.node = 0,
			.of = i->of,
			.share = i->share,
			.gain_ns = (double)NAN,
			.severity = is_explained(j) ? SEVERITY_LOW : SEVERITY_MEDIUM,
			.advice = j->f->step != NULL && j->f->has_sync ? RECORDED : NULL,
			.view = j->f->step != NULL ? VIEW_steps : VIEW_summary},
		"%s the GPU had work for %.1f%% of the time.",
		i->of == WHOLE_STEPS  ? "During the steps"
		: i->of == WHOLE_USED ? "From the GPU's first work to its last"
				      : "While this was recorded",
		100 * (1 - i->share));
}
