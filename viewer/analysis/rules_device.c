/* SPDX-License-Identifier: MIT. rules_device.c: what GPUs and host say of themselves, and what recording cost and lost. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bottlenecks.h"

/* The share of its time that a counter of nanoseconds rose in, on the GPU or host with the most. */
static double held_share(const struct facts *f, enum device_quantity q, uint32_t *ret_at)
{
	double most = 0;
	uint32_t i;

	*ret_at = 0;
	for (i = 0; i < f->device->n; i++) {
		const struct device_sum *s = &f->device->one[i].of[q];

		if (s->known_ns > 0 && s->sum / s->known_ns > most) {
			most = s->sum / s->known_ns;
			*ret_at = i;
		}
	}
	return fmin(most, 1);
}

static struct verdict seen(double share, double gain_ns)
{
	return (struct verdict){
		.node = PROFILE_NONE, .share = share, .gain_ns = gain_ns, .view = VIEW_series};
}

#define AT_LIMIT  0.97 /* of the power limit */
#define LOW_CLOCK 0.9  /* of the highest */
#define HARMLESS  0.01 /* of the highest: what is held so little costs nothing */

/* A run too short for the counters of held clocks: what the readings show all the same. */
static void judge_power(struct judge *j)
{
	const struct device_sums *s = j->f->device;
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		const struct device_sum *of = s->one[i].of;
		const double most = of[DEVICE_sm_clock_max].last, clock = of[DEVICE_sm_clock].mean;
		const double lost = 1 - clock / most;

		if (of[DEVICE_held_by_power].known_ns > 0 || of[DEVICE_power_limit].last <= 0 ||
			most <= 0 || of[DEVICE_sm_clock].known_ns == 0 ||
			clock > LOW_CLOCK * most ||
			of[DEVICE_power].mean < AT_LIMIT * of[DEVICE_power_limit].last)
			continue;
		judge_say(j, seen(lost, lost * j->f->whole_ns),
			"A GPU took %.0f W of the %.0f W it may take, and its clocks were %.0f MHz "
			"of %.0f on average.",
			of[DEVICE_power].mean, of[DEVICE_power_limit].last, clock, most);
		return;
	}
}

void rule_clock_throttle(struct judge *j)
{
	static const struct {
		enum device_quantity q;
		const char *words;
	} causes[] = {{DEVICE_held_by_power, "its power limit"}, {DEVICE_held_by_heat, "heat"},
		{DEVICE_held_by_sync, "sync boost"}, {DEVICE_held_by_board, "the board's limit"},
		{DEVICE_held_by_reliability, "its voltage's reliability"}};
	const struct device_of_sums *d;
	double most = 0, share, lost = 1;
	char clocks[64] = ".";
	uint32_t i, at, of = 0, cause = 0;

	for (i = 0; i < sizeof(causes) / sizeof(*causes); i++) {
		share = held_share(j->f, causes[i].q, &at);
		if (share > most) {
			most = share;
			of = at;
			cause = i;
		}
	}
	if (most == 0)
		judge_power(j);
	if (100 * most < j->threshold || most == 0)
		return;
	d = &j->f->device->one[of];
	if (d->of[DEVICE_sm_clock].known_ns > 0 && d->of[DEVICE_sm_clock_max].last > 0) {
		lost = fmax(0, 1 - d->of[DEVICE_sm_clock].mean / d->of[DEVICE_sm_clock_max].last);
		snprintf(clocks, sizeof(clocks), "; they were %.0f MHz of %.0f on average.",
			d->of[DEVICE_sm_clock].mean, d->of[DEVICE_sm_clock_max].last);
	}
	if (lost < HARMLESS) {
		judge_note(j,
			"for %.1f%% of the time the clocks of a GPU were held by %s%s Harmless",
			100 * most, causes[cause].words, clocks);
		return;
	}
	lost = fmin(most, lost); /* neither more than it was held, nor more than the clock is low */
	judge_say(j, seen(lost, lost * j->f->whole_ns),
		"For %.1f%% of the time the clocks of a GPU were held by %s%s", 100 * most,
		causes[cause].words, clocks);
}

void rule_mem_pressure(struct judge *j)
{
	const struct device_sums *s = j->f->device;
	double most = 0;
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->one[i].of[DEVICE_memory_total].last > 0)
			most = fmax(most, s->one[i].of[DEVICE_memory_used].most /
						  s->one[i].of[DEVICE_memory_total].last);
	if (100 * most < j->threshold || most == 0)
		return;
	judge_say(j, seen((double)NAN, (double)NAN),
		"%.1f%% of a GPU's memory was in use, by all processes.", 100 * most);
}

void rule_gpu_errors(struct judge *j)
{
	const struct device_sums *s = j->f->device;
	struct verdict v = seen((double)NAN, (double)NAN);
	double xid = 0, ecc = 0;
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		xid += s->one[i].of[DEVICE_xid_errors].sum;
		ecc += s->one[i].of[DEVICE_ecc_uncorrected].sum;
	}
	if (xid + ecc == 0 || xid + ecc < j->threshold)
		return;
	v.severity = SEVERITY_HIGH;
	judge_say(j, v,
		"%.0f errors that the driver reported (Xid), %.0f that ECC could not correct.", xid,
		ecc);
}

static void judge_pressure(struct judge *j, enum device_quantity q, const char *what)
{
	uint32_t at;
	const double share = held_share(j->f, q, &at);

	if (100 * share >= j->threshold && share > 0)
		judge_say(j, seen(share, (double)NAN),
			"For %.1f%% of the time some task of the host waited for %s.", 100 * share,
			what);
}

void rule_io_wait(struct judge *j)
{
	judge_pressure(j, DEVICE_io_wait, "a disk");
}

void rule_host_pressure(struct judge *j)
{
	judge_pressure(j, DEVICE_cpu_wait, "a CPU");
	judge_pressure(j, DEVICE_memory_wait, "memory");
}

/* --- recording */

void rule_dropped_records(struct judge *j)
{
	const struct profile_head *h = &j->f->p->head;
	const double lost = (double)profile_lost(h, false);
	double kept = j->f->node[0].gpu_count, share;
	uint32_t i;

	for (i = 1; i < j->f->p->n_nodes; i++)
		kept += j->f->node[i].calls;
	if (lost == 0)
		return;
	share = lost / (lost + kept);
	if (100 * share < j->threshold)
		return;
	judge_say(j,
		(struct verdict){.node = PROFILE_NONE,
			.share = (double)NAN,
			.gain_ns = (double)NAN,
			.view = VIEW_summary,
			.severity = share >= 0.01 ? SEVERITY_MEDIUM : SEVERITY_LOW},
		"%.0f events were lost, %.2f%% of all.", lost, 100 * share);
}

void rule_own_overhead(struct judge *j)
{
	const struct profile_head *h = &j->f->p->head;
	const struct verdict v = {
		.node = PROFILE_NONE, .view = VIEW_summary, .gain_ns = (double)NAN};

	if (isnan(h->recording_cost) && isnan(h->overhead)) {
		judge_unsure(j, "what recording it cost was not measured");
		return;
	}
	if (!isnan(h->recording_cost) && 100 * h->recording_cost >= j->threshold) {
		struct verdict cost = v;

		cost.share = h->recording_cost;
		judge_say(j, cost, "A step whose GPU work is recorded takes %.1f%% longer.",
			100 * h->recording_cost);
	}
	if (!isnan(h->overhead) && 100 * h->overhead >= j->threshold) {
		struct verdict core = v;

		core.share = (double)NAN; /* of a core that the job may not need */
		judge_say(j, core, "protond and its agents took %.1f%% of a core.",
			100 * h->overhead);
	}
}
