/* SPDX-License-Identifier: MIT. rules_gpu.c: what the GPU spends its time on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bottlenecks.h"
#include "metrics.h"

#define BUSY     0.5     /* of the whole: a GPU with less work is not what a job waits for */
#define SHORT_NS 20000.0 /* of a piece of work */
#define TENSOR   0.03 /* of the time in which SMs work: copies through them, and what is tuned once */
#define SOME     0.05 /* of the time: GPUs with less are not compared */

static double gpu_ns(const struct facts *f)
{
	return f->node[0].gpu_ns;
}

/* Shares of the GPU's work cost so much of the whole. */
static double of_whole(const struct facts *f, double ns)
{
	return f->whole_ns > 0 ? fmin(ns / f->whole_ns, 1) : (double)NAN;
}

static bool is_busy(const struct facts *f)
{
	return f->idle.share <= 1 - BUSY; /* not of NAN */
}

/* The leaf of a class with the most time. */
static uint32_t most_of_class(const struct facts *f, bool comm)
{
	const struct profile *p = f->p;
	uint32_t i, most = PROFILE_NONE;

	for (i = 1; i < p->n_nodes; i++) {
		const bool is = comm ? p->node[i].class == CLASS_COMM
				     : gpu_classes[p->node[i].class].counts == COUNTS_COPY;

		if (is && p->node[i].first_child == PROFILE_NONE &&
			(most == PROFILE_NONE || f->node[i].gpu_ns > f->node[most].gpu_ns))
			most = i;
	}
	return most;
}

/* --- parts of the time */

/* Of steps on a timeline how much of them was a part, as the page's Steps has it; false: not known. */
static bool part_of_steps(const struct facts *f, enum gpu_part part, double *ret)
{
	double all = 0, ns = 0;
	uint32_t i;

	if (f->whole != WHOLE_STEPS || f->step == NULL || part == PART_QUEUED)
		return false;
	for (i = 0; i < f->step->n; i++) {
		const struct step *s = &f->step->step[i];

		const double whole = step_parts(s, 0, PART_MAX);

		if (s->part_ns[PART_UNKNOWN] > 0)
			return false;
		if (s->warm || s->open)
			continue;
		all += whole > 0 ? whole : (double)(s->end_ns - s->begin_ns);
		ns += (double)s->part_ns[part];
	}
	*ret = all > 0 ? ns / all : *ret;
	return all > 0;
}

static void judge_part(struct judge *j, enum gpu_part part, uint32_t node, const char *words)
{
	const struct facts *f = j->f;
	double share = f->part[part];
	const bool steps = part_of_steps(f, part, &share);
	const enum facts_whole of = steps                    ? WHOLE_STEPS
				    : f->whole == WHOLE_USED ? WHOLE_USED
							     : WHOLE_SESSION;

	if (100 * share < j->threshold || share == 0)
		return;
	judge_say(j,
		(struct verdict){.node = node,
			.of = of,
			.share = share,
			.gain_ns = share * whole_ns_of(f, of),
			.view = node == PROFILE_NONE ? VIEW_summary : VIEW_tree},
		"%.1f%% %s %s.", 100 * share, whole_words(of), words);
}

void rule_queued_wait(struct judge *j)
{
	if (100 * j->f->part[PART_QUEUED] < j->threshold &&
		100 * (j->f->part[PART_QUEUED] + j->f->part[PART_UNKNOWN]) >= j->threshold)
		judge_unsure(j,
			"%.1f%% %s the GPU was idle, and when the next work was launched is not "
			"known",
			100 * j->f->part[PART_UNKNOWN],
			whole_words(j->f->whole == WHOLE_USED ? WHOLE_USED : WHOLE_SESSION));
	judge_part(j, PART_QUEUED, PROFILE_NONE,
		"the GPU ran nothing although the next work was in its queue for 5 us or more");
}

void rule_exposed_comm(struct judge *j)
{
	judge_part(j, PART_COMM, most_of_class(j->f, true),
		"the GPU communicated, and no kernel computed beside it");
}

void rule_exposed_copy(struct judge *j)
{
	judge_part(j, PART_COPY, most_of_class(j->f, false),
		"the GPU copied or set memory, and no kernel ran beside it");
}

void rule_small_copies(struct judge *j)
{
	static const double small = 65536;
	const struct facts *f = j->f;
	const struct profile *p = f->p;
	const uint32_t bytes = profile_find_metric(p, "copy_bytes");
	uint32_t i, most = PROFILE_NONE;
	double n = 0, ns = 0, b;

	for (i = 1; i < p->n_nodes && bytes != PROFILE_NONE; i++) {
		const uint8_t class = p->node[i].class;

		b = value_number(profile_value(p, i, bytes));
		if (f->node[i].step == PROFILE_NONE || f->node[i].gpu_count == 0 ||
			(class != CLASS_H2D && class != CLASS_D2D) ||
			!(b < small * f->node[i].gpu_count))
			continue;
		n += f->node[i].gpu_count;
		ns += f->node[i].gpu_ns;
		if (most == PROFILE_NONE || f->node[i].gpu_count > f->node[most].gpu_count)
			most = i;
	}
	if (most == PROFILE_NONE || n < j->threshold * f->steps)
		return;
	judge_say(j, (struct verdict){.node = most, .share = of_whole(f, ns), .gain_ns = ns},
		"%.1f copies a step of less than 64 KiB on average.", n / f->steps);
}

/* --- launch configurations */

/* Of a configuration's kernel the share that had it, by count. */
static double config_ns(const struct facts *f, uint32_t i, const double *launches)
{
	const struct profile_config *c = &f->p->config[i];

	return launches[c->node] > 0
		       ? f->node[c->node].gpu_ns * (double)c->count / launches[c->node]
		       : 0;
}

static double *launches_of(const struct profile *p)
{
	double *n = calloc(p->n_nodes, sizeof(*n));
	uint32_t i;

	for (i = 0; n != NULL && i < p->n_configs; i++)
		n[p->config[i].node] += (double)p->config[i].count;
	return n;
}

static uint64_t most_sms(const struct profile *p)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < p->n_devices; i++)
		n = p->device[i].busy_ns > 0 && (n == 0 || p->device[i].num_sms < n)
			    ? p->device[i].num_sms
			    : n;
	return n;
}

struct share {
	double ns, lost_ns, most_ns;
	uint32_t most;
};

static bool is_optimizer(const char *name)
{
	return strncmp(name, "optimizer.step", 14) == 0;
}

/* Of a closure, which an optimizer may call: a pass over the model, not its own work. */
static bool is_pass(const char *name)
{
	return strcmp(name, "forward") == 0 || strcmp(name, "backward") == 0;
}

/* The optimizer whose work it is; PROFILE_NONE: of none. */
static uint32_t optimizer_of(const struct profile *p, uint32_t node)
{
	while (node != PROFILE_NONE && !is_optimizer(p->node[node].name) &&
		!is_pass(p->node[node].name))
		node = p->node[node].parent;
	return node != PROFILE_NONE && !is_pass(p->node[node].name) ? node : PROFILE_NONE;
}

/* lost: what share of its time a configuration wastes; 0: it does not count. */
static bool add_configs(const struct facts *f,
	double (*lost)(const struct profile_config *, double), struct share *s)
{
	double *launches = launches_of(f->p), ns, part;
	const double sms = (double)most_sms(f->p);
	uint32_t i;

	*s = (struct share){.most = PROFILE_NONE};
	for (i = 0; launches != NULL && i < f->p->n_configs; i++) {
		part = lost(&f->p->config[i], sms);
		/* A collective takes few SMs, to leave the others to what it hides behind; an optimizer's
		 * are unfused_optimizer's. */
		if (!(part > 0) || f->p->node[f->p->config[i].node].class == CLASS_COMM ||
			optimizer_of(f->p, f->p->config[i].node) != PROFILE_NONE)
			continue;
		ns = config_ns(f, i, launches);
		s->ns += ns;
		s->lost_ns += ns * part;
		if (s->most == PROFILE_NONE || ns > s->most_ns) {
			s->most = f->p->config[i].node;
			s->most_ns = ns;
		}
	}
	free(launches);
	return s->most != PROFILE_NONE;
}

static double blocks_of(const struct profile_config *c)
{
	return (double)c->grid[0] * c->grid[1] * c->grid[2];
}

static double lost_to_grid(const struct profile_config *c, double sms)
{
	return blocks_of(c) > 0 && blocks_of(c) < sms ? 1 - blocks_of(c) / sms : 0;
}

static double lost_to_block(const struct profile_config *c, double sms)
{
	const uint64_t threads = (uint64_t)c->block[0] * c->block[1] * c->block[2];

	(void)sms;
	return threads % 32 != 0 ? (double)(32 - threads % 32) / (double)((threads / 32 + 1) * 32)
				 : 0;
}

static void judge_configs(
	struct judge *j, double (*lost)(const struct profile_config *, double), const char *words)
{
	const struct facts *f = j->f;
	struct share s;

	if (!add_configs(f, lost, &s) || 100 * s.lost_ns < j->threshold * gpu_ns(f))
		return;
	judge_say(j,
		(struct verdict){
			.node = s.most, .share = of_whole(f, s.lost_ns), .gain_ns = s.lost_ns},
		"%.1f%% of the GPU's work is in kernels %s.", 100 * s.ns / gpu_ns(f), words);
}

void rule_small_grid(struct judge *j)
{
	if (is_busy(j->f))
		judge_configs(j, lost_to_grid,
			"with fewer blocks than it has SMs, so that some have nothing to do");
}

void rule_odd_blocks(struct judge *j)
{
	if (is_busy(j->f))
		judge_configs(j, lost_to_block, "whose blocks are no multiple of 32 threads");
}

/* --- by what kernels do */

static bool is_in(const char *family, const char *const *of)
{
	for (; *of != NULL; of++)
		if (strcmp(family, *of) == 0)
			return true;
	return false;
}

static double family_ns(const struct facts *f, const char *const *of, uint32_t *ret_most)
{
	const struct profile *p = f->p;
	double ns = 0;
	uint32_t i;

	*ret_most = PROFILE_NONE;
	for (i = 1; i < p->n_nodes; i++) {
		if (f->node[i].family == NULL || f->node[i].gpu_ns == 0 ||
			p->node[i].first_child != PROFILE_NONE || !is_in(f->node[i].family, of))
			continue;
		ns += f->node[i].gpu_ns;
		if (*ret_most == PROFILE_NONE || f->node[i].gpu_ns > f->node[*ret_most].gpu_ns)
			*ret_most = i;
	}
	return ns;
}

void rule_memory_bound(struct judge *j)
{
	static const char *const moving[] = {
		"elementwise", "norm", "softmax", "reduce", "index", "embedding", "pool", NULL};
	const struct facts *f = j->f;
	uint32_t most;
	const double ns = family_ns(f, moving, &most);

	if (!is_busy(f) || most == PROFILE_NONE || 100 * ns < j->threshold * gpu_ns(f))
		return;
	judge_say(j,
		(struct verdict){.node = most, .share = of_whole(f, ns), .gain_ns = (double)NAN},
		"%.1f%% of the GPU's work is in kernels that by their names compute little for "
		"what "
		"they read and write.",
		100 * ns / gpu_ns(f));
}

struct optimizer {
	double count, ns, cpu_ns; /* its own: without the passes of a closure */
};

static struct optimizer *optimizers_of(const struct facts *f)
{
	const struct profile *p = f->p;
	struct optimizer *o = calloc(p->n_nodes, sizeof(*o));
	uint32_t i, of;

	for (i = 1; o != NULL && i < p->n_nodes; i++) { /* a parent comes before its children */
		const struct fact_node *n = &f->node[i];

		if (is_optimizer(p->node[i].name))
			o[i] = (struct optimizer){n->gpu_count, n->gpu_ns, n->cpu_ns};
		of = is_pass(p->node[i].name) ? optimizer_of(p, p->node[i].parent) : PROFILE_NONE;
		if (of == PROFILE_NONE)
			continue;
		o[of].count -= n->gpu_count;
		o[of].ns -= n->gpu_ns;
		o[of].cpu_ns = fmax(0, o[of].cpu_ns - n->cpu_ns);
	}
	return o;
}

void rule_unfused_optimizer(struct judge *j)
{
	const struct facts *f = j->f;
	struct optimizer *o = optimizers_of(f), most = {0};
	uint32_t i, at = PROFILE_NONE;

	for (i = 1; o != NULL && i < f->p->n_nodes; i++) {
		if (o[i].count < fmax(1, j->threshold * f->node[i].calls) ||
			f->node[i].calls <= 0 || o[i].ns >= SHORT_NS * o[i].count ||
			(at != PROFILE_NONE && o[i].cpu_ns <= most.cpu_ns))
			continue;
		at = i;
		most = o[i];
	}
	free(o);
	if (at == PROFILE_NONE)
		return;
	judge_say(j,
		(struct verdict){.node = at,
			.share = of_whole(f, most.cpu_ns),
			.gain_ns = isnan(f->idle.ns) ? (double)NAN : fmin(most.cpu_ns, f->idle.ns)},
		"Each call launches %.0f pieces of work, of %.1f us on average.",
		most.count / f->node[at].calls, most.ns / most.count / 1e3);
}

void rule_no_tensor_cores(struct judge *j)
{
	static const char *const matrices[] = {"gemm", "conv", "attention", NULL};
	const struct facts *f = j->f;
	uint32_t i, most, known = 0;
	double tensor = 0, active = 0;
	const double ns = family_ns(f, matrices, &most);

	for (i = 0; i < f->device->n; i++) {
		const struct device_sum *of = f->device->one[i].of;

		if (of[DEVICE_tensor_active].known_ns == 0 || of[DEVICE_sm_active].known_ns == 0)
			continue;
		known++;
		tensor = fmax(tensor, of[DEVICE_tensor_active].mean);
		active = fmax(active, of[DEVICE_sm_active].mean);
	}
	if (known == 0 || tensor >= TENSOR * active || !is_busy(f) || most == PROFILE_NONE ||
		100 * ns < j->threshold * gpu_ns(f))
		return;
	judge_say(j,
		(struct verdict){.node = most, .share = of_whole(f, ns), .gain_ns = (double)NAN},
		"%.1f%% of the GPU's work multiplies matrices or convolves, and while SMs worked "
		"tensor cores did for %.2f%% of the time.",
		100 * ns / gpu_ns(f), 100 * tensor / active);
}

/* --- several GPUs */

void rule_uneven_gpus(struct judge *j)
{
	const struct profile *p = j->f->p;
	double least = (double)NAN, most = 0, v;
	uint32_t i, n = 0;

	for (i = 0; i < p->n_devices && p->head.duration_ns > 0; i++) {
		if (p->device[i].busy_ns == 0)
			continue;
		v = (double)p->device[i].busy_ns / (double)p->head.duration_ns;
		n++;
		least = fmin(least, v);
		most = fmax(most, v);
	}
	if (n < 2 || most < SOME || 100 * (most - least) < j->threshold * most)
		return;
	judge_say(j,
		(struct verdict){.node = PROFILE_NONE,
			.share = most - least,
			.gain_ns = (double)NAN,
			.view = VIEW_summary},
		"Of %u GPUs one is busy for %.1f%% of the time, another for %.1f%%.", n, 100 * most,
		100 * least);
}

void rule_shared_gpu(struct judge *j)
{
	if (j->f->sharing < 2 || j->f->sharing < j->threshold)
		return;
	judge_say(j,
		(struct verdict){.node = PROFILE_NONE,
			.share = (double)NAN,
			.gain_ns = (double)NAN,
			.view = VIEW_ranks},
		"%u processes of this session worked on one GPU.", j->f->sharing);
}
