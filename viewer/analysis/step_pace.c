/* SPDX-License-Identifier: MIT. step_pace.c: medians of steps, and the slow ones at the begin. */
#include "step_pace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Of the n steps of a process, without those that are cut; v: room for 2 n. */
static void mark(struct steps_process *p, struct step *step, uint32_t n, double *v)
{
	uint32_t i, k, whole = 0, warm;

	for (i = 0; i < n; i++)
		if (!step[i].cut)
			v[whole++] = step_ns(&step[i]);
	warm = step_warm(v, whole, v + n, &p->median_ns);
	for (i = k = 0; i < n; i++) {
		step[i].warm = !step[i].cut && k < warm;
		k += !step[i].cut;
	}
	if (isnan(p->median_ns))
		return;
	for (k = 0; k < whole; k++)
		v[k] = fabs(v[k] - p->median_ns);
	p->limit_ns = fmax(STEP_WARM_SLOW * p->median_ns,
		p->median_ns + PACE_MADS * PACE_NORMAL * step_median(v, whole));
}

int pace_mark(struct steps *s)
{
	double *v = malloc((s->n + (size_t)1) * 2 * sizeof(*v));
	uint32_t first, end, i;

	if (v == NULL)
		return -ENOMEM;
	for (i = 0; i < s->n_processes; i++)
		s->process[i].median_ns = s->process[i].limit_ns = (double)NAN;
	for (first = 0; first < s->n; first = end) {
		for (end = first; end < s->n && s->step[end].process == s->step[first].process;
			end++)
			;
		mark(&s->process[s->step[first].process], &s->step[first], end - first, v);
	}
	free(v);
	return 0;
}

uint32_t pace_warm_most(const struct steps *s)
{
	uint32_t i, most = 0;

	for (i = 0; i < s->n; i++)
		if (s->step[i].warm && s->step[i].number > most)
			most = s->step[i].number;
	return most;
}

double pace_warm_ns(const struct steps *s)
{
	double ns = 0;
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->step[i].warm)
			ns += step_ns(&s->step[i]) - s->process[s->step[i].process].median_ns;
	return ns;
}
