/* SPDX-License-Identifier: MIT. rules_launch.c: how kernels are launched, and what that leaves of a GPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bottlenecks.h"
#include "launches.h"
#include "metrics.h"

#define BUSY 0.5  /* of the whole: a GPU with less work is not what a job waits for */
#define LOW  0.25 /* of an SM's warps: too few to hide what they wait for */
#define FULL 4    /* waves: of so many the tail does not matter */
#define FEW \
	4u /* configurations of a kernel that come and go: fewer are the first step's, or a last batch's */

#define UNKNOWN \
	"the GPUs that worked differ, or the limits of their architecture are not known here"

static bool is_busy(const struct facts *f)
{
	return f->idle.share <= 1 - BUSY; /* not of NAN */
}

static double of_whole(const struct facts *f, double ns)
{
	return f->whole_ns > 0 ? fmin(ns / f->whole_ns, 1) : (double)NAN;
}

/* By design they hold few warps, and keep tensor cores full with them. */
static bool by_design(const char *family)
{
	return family != NULL && (strcmp(family, "gemm") == 0 || strcmp(family, "conv") == 0 ||
					 strcmp(family, "attention") == 0);
}

/* A node's configurations, and what of its time each has: by count. */
struct node_configs {
	uint32_t node, from, to;
	double count, ns; /* launches: of which so many have a configuration; its GPU time */
	double known;
};

/* The next node of p->config; false: there is none. Zero-initialise. */
static bool next_node(const struct facts *f, struct node_configs *n)
{
	const struct profile *p = f->p;
	uint32_t i;

	if (n->to >= p->n_configs)
		return false;
	*n = (struct node_configs){.node = p->config[n->to].node, .from = n->to, .to = n->to};
	for (; n->to < p->n_configs && p->config[n->to].node == n->node; n->to++)
		;
	for (i = n->from; i < n->to; i++)
		n->known += (double)p->config[i].count;
	n->count = fmax(f->node[n->node].gpu_count, n->known);
	n->ns = f->node[n->node].gpu_ns;
	return true;
}

static double config_ns(const struct node_configs *n, const struct profile_config *c)
{
	return n->count > 0 ? n->ns * (double)c->count / n->count : 0;
}

struct found {
	double ns, lost_ns, most_ns;
	uint32_t node;              /* with the most; PROFILE_NONE: none */
	struct occupancy occupancy; /* its */
	bool judged;                /* the limits of an SM are known */
};

static void add_found(
	struct found *x, uint32_t node, double ns, double lost, const struct occupancy *o)
{
	x->ns += ns;
	x->lost_ns += lost;
	if (x->node != PROFILE_NONE && ns <= x->most_ns)
		return;
	x->node = node;
	x->most_ns = ns;
	x->occupancy = *o;
}

/* tail: what the last wave leaves empty; else too few warps. */
static struct found find(const struct facts *f, bool tail)
{
	const struct profile_device *d = occupancy_device(f->p);
	struct found x = {.node = PROFILE_NONE};
	struct node_configs n = {0};
	struct occupancy o;
	uint32_t i;

	while (d != NULL && next_node(f, &n))
		for (i = n.from; i < n.to; i++) {
			const double ns = config_ns(&n, &f->p->config[i]);

			if (!occupancy_of(d, &f->p->config[i], &o))
				continue;
			x.judged = true;
			if (o.blocks == 0 || !(ns > 0))
				continue;
			if (tail && o.waves >= 1 && o.waves < FULL && o.tail > 0)
				add_found(&x, n.node, ns, ns * o.tail, &o);
			if (!tail && o.share < LOW && !by_design(f->node[n.node].family))
				add_found(&x, n.node, ns, 0, &o);
		}
	return x;
}

void rule_low_occupancy(struct judge *j)
{
	const struct facts *f = j->f;
	const struct found x = find(f, false);
	const double all = f->node[0].gpu_ns;

	if (!x.judged)
		judge_unsure(j, UNKNOWN);
	if (!is_busy(f) || x.node == PROFILE_NONE || 100 * x.ns < j->threshold * all)
		return;
	judge_say(j,
		(struct verdict){
			.node = x.node, .share = of_whole(f, x.ns), .gain_ns = (double)NAN},
		"%.1f%% of the GPU's work is in kernels of which an SM holds less than a quarter "
		"of its "
		"warps: of the largest %.0f%%, held back by %s%s.",
		100 * x.ns / all, 100 * x.occupancy.share, occupancy_words[x.occupancy.limit],
		strcmp(occupancy_words[x.occupancy.limit], "shared") == 0 ? " memory" : "");
}

void rule_tail_effect(struct judge *j)
{
	const struct facts *f = j->f;
	const struct found x = find(f, true);
	const double all = f->node[0].gpu_ns;

	if (!x.judged)
		judge_unsure(j, UNKNOWN);
	if (!is_busy(f) || x.node == PROFILE_NONE || 100 * x.lost_ns < j->threshold * all)
		return;
	judge_say(j,
		(struct verdict){
			.node = x.node, .share = of_whole(f, x.lost_ns), .gain_ns = x.lost_ns},
		"%.1f%% of the GPU's work is room that the last wave of blocks leaves empty: the "
		"largest kernel has %.2f waves.",
		100 * x.lost_ns / all, x.occupancy.waves);
}

struct sizes {
	double count, ns; /* launched in sizes that come and go */
	uint32_t kinds;
	bool more; /* kinds than are told apart */
};

/* Of a node's sizes the first CONFIGS_A_NODE are told apart. Where some of those come and go, so does what it was launched
 * in since. */
static struct sizes rare_sizes(const struct facts *f, const struct node_configs *n)
{
	struct sizes s = {.kinds = 0};
	uint32_t i, kinds = 0;
	double rare = 0;

	for (i = n->from; i < n->to; i++)
		if ((double)f->p->config[i].count < f->steps / 2) {
			rare += (double)f->p->config[i].count;
			kinds++;
		}
	if (kinds < FEW)
		return s;
	s.kinds = n->to - n->from;
	s.more = s.kinds >= CONFIGS_A_NODE && n->known < n->count;
	s.count = rare + (s.more ? n->count - n->known : 0);
	s.ns = n->ns * s.count / n->count;
	return s;
}

/* What a program does in each step it launches in each step alike: a configuration that is in fewer than half of them comes
 * and goes. Launches are counted, not their time: the largest kernels, of matrices, have a block for each SM whatever the
 * size. */
void rule_shape_varies(struct judge *j)
{
	const struct facts *f = j->f;
	struct node_configs n = {0};
	struct sizes s, most = {.ns = 0};
	double all = 0, count = 0, ns = 0;
	uint32_t node = PROFILE_NONE;

	while (next_node(f, &n)) {
		if (f->node[n.node].step == PROFILE_NONE || n.count < f->steps)
			continue;
		s = rare_sizes(f, &n);
		all += n.count;
		count += s.count;
		ns += s.ns;
		if (s.ns > most.ns) {
			node = n.node;
			most = s;
		}
	}
	if (node == PROFILE_NONE || 100 * count < j->threshold * all)
		return;
	judge_say(j,
		(struct verdict){.node = node, .share = of_whole(f, ns), .gain_ns = (double)NAN},
		"%.1f%% of the launches are of sizes that are in fewer than half of the steps, the "
		"largest kernel's in "
		"%s%u of them.",
		100 * count / all, most.more ? "more than " : "", most.kinds);
}

/* Kernels that do nothing but turn one order of axes into another. */
void rule_memory_layout(struct judge *j)
{
	static const char *const words[] = {
		"nchwToNhwc", "nhwcToNchw", "nchw2nhwc", "nhwc2nchw", "transpose", "permute"};
	const struct facts *f = j->f;
	const struct profile *p = f->p;
	double ns = 0;
	uint32_t i, k, most = PROFILE_NONE;

	for (i = 1; i < p->n_nodes; i++) {
		if (p->node[i].kind != NODE_KERNEL || f->node[i].gpu_ns == 0 ||
			p->node[i].first_child != PROFILE_NONE || by_design(f->node[i].family))
			continue;
		for (k = 0; k < sizeof(words) / sizeof(*words); k++)
			if (strcasestr(p->node[i].name, words[k]) != NULL)
				break;
		if (k == sizeof(words) / sizeof(*words))
			continue;
		ns += f->node[i].gpu_ns;
		if (most == PROFILE_NONE || f->node[i].gpu_ns > f->node[most].gpu_ns)
			most = i;
	}
	if (!is_busy(f) || most == PROFILE_NONE || 100 * ns < j->threshold * f->node[0].gpu_ns)
		return;
	judge_say(j, (struct verdict){.node = most, .share = of_whole(f, ns), .gain_ns = ns},
		"%.1f%% of the GPU's work turns one order of axes into another.",
		100 * ns / f->node[0].gpu_ns);
}
