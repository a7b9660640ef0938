/* SPDX-License-Identifier: MIT. roofline.c: flops and bytes against peaks. */
#include "roofline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"
#include "metrics_peak.h"
#include "occupancy.h"

#define WIDTHS 4u

const char *const roofline_words[] = {"", "compute", "memory"};

static const struct {
	const char *name;
	uint32_t bits;
} widths[WIDTHS] = {{"flops8", 8}, {"flops16", 16}, {"flops32", 32}, {"flops64", 64}};

struct sum { /* of a node and all below it */
	double flops, plain, bytes, ns;
	double compute_ns, memory_ns; /* NAN: some of it has no peak */
	bool told;
};

struct reading {
	const struct profile *p;
	struct roofline *to;
	uint32_t flops[WIDTHS], plain, bytes, time, copy; /* metrics */
};

static void find(struct reading *r)
{
	uint32_t k;

	for (k = 0; k < WIDTHS; k++)
		r->flops[k] = profile_find_metric(r->p, widths[k].name);
	r->plain = profile_find_metric(r->p, "flops");
	r->bytes = profile_find_metric(r->p, "bytes");
	r->time = profile_find_metric(r->p, "time (ns)");
	r->copy = profile_find_metric(r->p, "copy_time (ns)");
}

static double number(const struct reading *r, uint32_t node, uint32_t metric)
{
	const double v =
		metric == PROFILE_NONE ? 0 : value_number(profile_value(r->p, node, metric));

	return v > 0 ? v : 0;
}

static double at_flops(struct reading *r, const struct profile_device *d, uint32_t k, double flops)
{
	double peak;

	if (flops == 0)
		return 0;
	if (d == NULL || peak_flops(d, widths[k].bits, &peak, &r->to->peaks) < 0 || !(peak > 0))
		return (double)NAN;
	return flops / peak * 1e9;
}

static double at_bytes(struct reading *r, const struct profile_device *d, double bytes)
{
	double peak;

	if (bytes == 0)
		return 0;
	if (d == NULL || peak_bytes(d, &peak, &r->to->peaks) < 0 || !(peak > 0))
		return (double)NAN;
	return bytes / peak * 1e9;
}

static struct sum own(struct reading *r, uint32_t node)
{
	struct sum s = {.plain = number(r, node, r->plain),
		.bytes = number(r, node, r->bytes),
		.ns = number(r, node, r->time) + number(r, node, r->copy)};
	const struct profile_device *d = NULL;
	double flops[WIDTHS];
	uint32_t k;

	for (k = 0; k < WIDTHS; k++) {
		flops[k] = number(r, node, r->flops[k]);
		s.flops += flops[k];
	}
	s.told = s.flops + s.plain + s.bytes > 0;
	if (s.told)
		d = metric_device(r->p, node);
	if (s.told && d == NULL)
		d = r->to->device;
	for (k = 0; k < WIDTHS; k++)
		s.compute_ns += at_flops(r, d, k, flops[k]);
	s.memory_ns = at_bytes(r, d, s.bytes);
	s.flops += s.plain;
	return s;
}

/* A parent comes before its children. */
static struct sum *sums_of(struct reading *r)
{
	const struct profile *p = r->p;
	struct sum *v = calloc(p->n_nodes, sizeof(*v)), *up;
	uint32_t i;

	for (i = 0; v != NULL && i < p->n_nodes; i++)
		v[i] = own(r, i);
	for (i = p->n_nodes; v != NULL && i-- > 1;) {
		up = &v[p->node[i].parent];
		up->flops += v[i].flops;
		up->plain += v[i].plain;
		up->bytes += v[i].bytes;
		up->ns += v[i].ns;
		up->compute_ns += v[i].compute_ns;
		up->memory_ns += v[i].memory_ns;
	}
	return v;
}

static struct roofline_row row_of(const struct sum *s, uint32_t node)
{
	struct roofline_row row = {.node = node,
		.flops = s->flops,
		.bytes = s->bytes,
		.ns = s->ns,
		.compute_ns = s->compute_ns > 0 ? s->compute_ns : (double)NAN,
		.memory_ns = s->memory_ns > 0 ? s->memory_ns : (double)NAN};
	const double least = fmax(row.compute_ns, row.memory_ns); /* NAN only of both */

	if (!isnan(row.compute_ns) && !isnan(row.memory_ns))
		row.bound = row.memory_ns > row.compute_ns ? BOUND_MEMORY : BOUND_COMPUTE;
	row.util = s->ns > 0 ? least / s->ns : (double)NAN;
	return row;
}

/* ROOT stays where it is. */
static int by_time(const void *a, const void *b)
{
	const struct roofline_row *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static double mfu_of(const struct roofline *r, const struct profile *p)
{
	const double ns = (double)p->head.duration_ns * r->gpus;

	return ns > 0 ? r->row[0].compute_ns / ns : (double)NAN;
}

static int fill(struct roofline *r, const struct profile *p, const struct sum *sum)
{
	uint32_t i;

	r->row[r->n++] = row_of(&sum[0], 0);
	for (i = 1; i < p->n_nodes; i++)
		if (sum[i].told)
			r->row[r->n++] = row_of(&sum[i], i);
	for (i = 0; i < p->n_devices; i++)
		r->gpus += p->device[i].busy_ns > 0;
	if (r->n > 2)
		qsort(r->row + 1, r->n - 1, sizeof(*r->row), by_time);
	r->unsized = sum[0].plain > 0;
	r->mfu = mfu_of(r, p);
	return r->n > 1 || sum[0].told ? 0 : -ENODATA;
}

int roofline_new(const struct profile *p, struct roofline **ret)
{
	struct reading r = {.p = p, .to = calloc(1, sizeof(*r.to))};
	struct sum *sum = NULL;
	int status = -ENOMEM;

	if (r.to != NULL) {
		r.to->device = occupancy_device(p);
		r.to->row = calloc(p->n_nodes, sizeof(*r.to->row));
		find(&r);
		sum = sums_of(&r);
	}
	if (sum != NULL && r.to->row != NULL)
		status = fill(r.to, p, sum);
	free(sum);
	if (status < 0)
		roofline_free(r.to);
	else
		*ret = r.to;
	return status;
}

void roofline_free(struct roofline *r)
{
	if (r == NULL)
		return;
	free(r->row);
	free(r);
}
