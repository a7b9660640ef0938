/* SPDX-License-Identifier: MIT. throughput.c: how much of it, a second. */
#include "throughput.h"

#include <math.h>

#include "metrics_peak.h"
#include "occupancy.h"
#include "step_pace.h"

static const struct {
	enum step_rate rate;
	uint32_t bits;
} widths[] = {{RATE_FLOPS8, 8}, {RATE_FLOPS16, 16}, {RATE_FLOPS32, 32}, {RATE_FLOPS64, 64}};
#define WIDTHS (sizeof(widths) / sizeof(*widths))

static double told(const struct step_rates *r, enum step_rate k)
{
	return r->told[k] > 0 ? r->a_s[k] : (double)NAN;
}

/* Every GPU that worked, and each process has as many: a process alone has its share of them. */
static double gpus_of(const struct profile *p, const struct step_rates *r)
{
	uint32_t i, n = 0;

	for (i = 0; i < p->n_devices; i++)
		n += p->device[i].busy_ns > 0;
	return p->head.n_processes > 1 && r->told[RATE_STEPS] < p->head.n_processes
		       ? (double)n * r->told[RATE_STEPS] / p->head.n_processes
		       : n;
}

static double mfu_of(const struct profile *p, const struct step_rates *r, struct err *why)
{
	const struct profile_device *d = occupancy_device(p);
	const double gpus = gpus_of(p, r);
	double at_peak = 0, peak;
	uint32_t k;

	if (r->told[RATE_FLOPS] > 0)
		(void)err_set(why, -EINVAL,
			"`flops` have no width, and so no peak: give flops8, flops16, flops32 or "
			"flops64");
	else if (d == NULL || !(gpus > 0))
		(void)err_set(why, -ENODATA,
			p->n_devices > 0 ? "the GPUs that worked differ, or none did"
					 : "no GPU was recorded");
	for (k = 0; k < WIDTHS && why->code == 0; k++) {
		if (r->told[widths[k].rate] == 0)
			continue;
		if (peak_flops(d, widths[k].bits, &peak, why) < 0)
			break;
		at_peak += r->a_s[widths[k].rate] / peak;
	}
	return why->code == 0 ? at_peak / gpus : (double)NAN;
}

void throughput_of(const struct profile *p, const struct step_rates *r, struct throughput *ret)
{
	uint32_t k;

	*ret = (struct throughput){.iterations = told(r, RATE_STEPS),
		.samples = told(r, RATE_SAMPLES),
		.tokens = told(r, RATE_TOKENS),
		.flops = r->a_s[RATE_FLOPS],
		.mfu = (double)NAN};
	for (k = 0; k < WIDTHS; k++)
		ret->flops += r->a_s[widths[k].rate];
	if (ret->flops > 0)
		ret->mfu = mfu_of(p, r, &ret->why);
	else
		ret->flops = (double)NAN;
}

static void add_step(
	struct step_rate_sums *sums, const struct steps *s, uint32_t i, const enum step_rate *rate)
{
	const double n = s->step[i].of > 1 ? s->step[i].of : 1, ns = step_ns(&s->step[i]) * n;
	uint32_t k;

	sums->v[RATE_STEPS] += n;
	sums->ns[RATE_STEPS] += ns;
	for (k = 0; k < s->n_values; k++) {
		if (rate[k] == RATE_MAX || isnan(s->value[k][i]))
			continue;
		sums->v[rate[k]] += s->value[k][i] * n;
		sums->ns[rate[k]] += ns;
	}
}

void throughput_rates(const struct steps *s, uint32_t process, struct step_rates *ret)
{
	enum step_rate rate[STEPS_VALUES_MAX];
	struct step_rate_sums sums = {.until_ns = 0};
	uint32_t i, k;

	*ret = (struct step_rates){0};
	for (k = 0; k < s->n_values; k++)
		rate[k] = step_rate_of(s->value_name[k]);
	for (i = 0; i < s->n; i++) {
		const struct step *x = &s->step[i];
		const uint32_t n = x->of > 1 ? x->of : 1;

		if (process != UINT32_MAX && x->process != process)
			continue;
		ret->steps += x->cut ? 0 : n;
		ret->warm += x->warm ? n : 0;
		if (!x->warm && !x->cut) {
			add_step(&sums, s, i, rate);
			/* They are in the order of their begin: of a clock that runs back, of their end. */
			step_rates_went_on(&sums, ~x->end_ns, ~x->begin_ns);
		}
		if (i + 1 < s->n && s->step[i + 1].process == x->process)
			continue;
		step_rates_add(ret, &sums);
		sums = (struct step_rate_sums){.until_ns = 0};
	}
}
