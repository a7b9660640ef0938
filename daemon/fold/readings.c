/* SPDX-License-Identifier: MIT. readings.c: readings of a session, in rows. */
#include "readings.h"

#include <stdlib.h>
#include <string.h>

#include "batch.h"

static struct readings_of *of_gpu(struct readings *all, uint32_t gpu)
{
	uint32_t i;

	for (i = 0; i < all->n; i++)
		if (all->of[i]->gpu == gpu)
			return all->of[i];
	all->of[i] = calloc(1, sizeof(*all->of[i]));
	if (all->of[i] == NULL)
		return NULL;
	all->of[i]->gpu = gpu;
	all->n++;
	return all->of[i];
}

static bool has_room(const struct readings *all, uint32_t gpu)
{
	uint32_t i;

	for (i = 0; i < all->n; i++)
		if (all->of[i]->gpu == gpu)
			return true;
	return all->n < READING_OF;
}

/* Two readings of one quantity, a of x ns and b of y ns. */
static double merged(enum device_merge m, double a, double x, double b, double y)
{
	switch (m) {
	case MERGE_MEAN:
		return (a * x + b * y) / (x + y);
	case MERGE_MAX:
		return a > b ? a : b;
	case MERGE_LAST:
		return b;
	case MERGE_SUM:
		return a + b;
	}
	return b;
}

static void add(struct reading_point *p, const struct device_reading *r)
{
	const double x = (double)(p->end_ns - p->begin_ns), y = (double)(r->end_ns - r->begin_ns);
	uint32_t q;

	for (q = 0; q < DEVICE_N; q++) {
		const bool has = (p->known >> q & 1) != 0;

		if ((r->known >> q & 1) == 0)
			continue;
		p->value[q] = (float)(has ? merged(device_words(q)->merge, (double)p->value[q], x,
						    r->value[q], y)
					  : r->value[q]);
		p->known |= 1ull << q;
	}
	p->begin_ns = p->end_ns == 0 ? r->begin_ns : p->begin_ns;
	p->end_ns = r->end_ns;
}

bool readings_take(struct readings *all, const struct device_reading *r)
{
	struct readings_of *o;
	uint32_t width;

	if (!has_room(all, r->gpu))
		return true;
	o = of_gpu(all, r->gpu);
	if (o == NULL)
		return false;
	if (o->next.end_ns > r->begin_ns) /* a clock that began anew, or a helper that lies */
		o->next = (struct reading_point){0};
	if (o->n > 0 && o->point[o->n - 1].end_ns > r->begin_ns)
		return true;
	o->name = (struct reading_gpu){r->pci_domain, r->pci_bus, r->pci_device, ""};
	memcpy(o->name.name, r->name, sizeof(o->name.name));
	add(&o->next, r);
	for (uint32_t q = 0; q < DEVICE_N; q++)
		if ((r->known >> q & 1) != 0)
			o->last.value[q] = (float)r->value[q];
	o->last.known |= r->known;
	o->last.end_ns = r->end_ns;
	o->dirty = true;
	width = o->number / READING_ROWS < 31 ? 1u << o->number / READING_ROWS : 1u << 31;
	if (++o->in_next < width || o->n == READINGS_MAX)
		return true;
	o->point[o->n++] = o->next;
	o->next = (struct reading_point){0};
	o->in_next = 0;
	return true;
}

bool readings_restore(struct readings *all, uint32_t gpu, uint32_t number)
{
	struct readings_of *o;

	if (!has_room(all, gpu) || number == UINT32_MAX)
		return true;
	o = of_gpu(all, gpu);
	if (o != NULL && number >= o->number)
		o->number = number + 1;
	return o != NULL;
}

/* With what is not yet as wide as it must be: nothing else has it after a restart. */
static bool put_one(const struct readings_of *o, struct batch *b, int64_t session)
{
	struct row_reading *row = batch_reading(b);
	struct reading_point point[READINGS_MAX];
	uint32_t n = o->n;

	if (row == NULL)
		return false;
	memcpy(point, o->point, n * sizeof(*point));
	if (o->in_next > 0 && n < READINGS_MAX)
		point[n++] = o->next;
	*row = (struct row_reading){.session = session,
		.gpu = o->gpu,
		.number = o->number,
		.begin_ns = point[0].begin_ns,
		.end_ns = point[n - 1].end_ns};
	return reading_pack(&o->name, point, n, &row->bytes, &row->n) == 0;
}

bool readings_put(const struct readings *all, struct batch *b, int64_t session)
{
	uint32_t i;

	for (i = 0; i < all->n; i++)
		if (all->of[i]->dirty && !put_one(all->of[i], b, session))
			return false;
	return true;
}

const struct readings_of *readings_find(
	const struct readings *all, uint32_t domain, uint32_t bus, uint32_t device)
{
	const struct readings_of *o;
	uint32_t i;

	for (i = 0; i < all->n; i++) {
		o = all->of[i];
		if (o->gpu != DEVICE_HOST && o->name.pci_domain == domain &&
			o->name.pci_bus == bus && o->name.pci_device == device)
			return o;
	}
	return NULL;
}

void readings_clean(struct readings *all)
{
	uint32_t i;

	for (i = 0; i < all->n; i++) {
		struct readings_of *o = all->of[i];

		o->dirty = false;
		if (o->n < READINGS_MAX)
			continue;
		o->n = 0;
		o->number++;
	}
}

void readings_fini(struct readings *all)
{
	while (all->n > 0)
		free(all->of[--all->n]);
}
