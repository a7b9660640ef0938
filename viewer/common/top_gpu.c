/* SPDX-License-Identifier: MIT. top_gpu.c: what the GPUs of a live session did between two looks, and what
 * protond-device reads of them now. */
#include <math.h>
#include <stdio.h>

#include "top_look.h"

/* How much a part grew. Work that was told late is counted where it belongs, so another may have shrunk. */
static double grown(const struct look_device *was, const struct look_device *d, uint32_t k)
{
	const uint64_t before = was != NULL ? was->part_ns[k] : 0;

	return d->part_ns[k] > before ? (double)(d->part_ns[k] - before) : 0;
}

bool look_parts(const struct look *before, const struct look *now, double ret[PART_MAX])
{
	const double all = look_seconds(before, now) * 1e9 * now->n_devices;
	double sum = 0;
	uint32_t i, k;

	for (k = 0; k < PART_MAX; k++)
		ret[k] = 0;
	for (i = 0; i < now->n_devices; i++) {
		const struct look_device *d = &now->device[i], *was = look_device_in(before, d);

		if (!d->has_parts || (was != NULL && !was->has_parts))
			return false;
		for (k = 0; k < PART_HOST; k++)
			ret[k] += grown(was, d, k);
	}
	for (k = 0; k < PART_HOST; k++)
		sum += ret[k];
	if (all <= 0 || sum <= 0)
		return false;
	for (k = 0; k < PART_HOST; k++)
		ret[k] /= sum > all ? sum : all;
	ret[PART_HOST] = sum < all ? 1 - sum / all : 0;
	return true;
}

/* --- readings of all devices, as one */

struct over { /* of a quantity */
	double sum, least, most;
	uint32_t n;
};

static struct over over(const struct look *l, enum device_quantity q)
{
	struct over o = {0, HUGE_VAL, -HUGE_VAL, 0};
	uint32_t i;

	for (i = 0; i < l->n_devices; i++) {
		const double v = l->device[i].reading[q];

		if (!isfinite(v))
			continue;
		o.sum += v;
		o.least = v < o.least ? v : o.least;
		o.most = v > o.most ? v : o.most;
		o.n++;
	}
	return o;
}

static bool reading_words(const struct look *l, look_word_fn *fn, void *arg)
{
	static const double GIB = 1073741824;
	struct over o = over(l, DEVICE_power), all;
	char word[64];

	(void)snprintf(word, sizeof(word), "%.0f W", o.sum);
	if (o.n > 0 && !fn(arg, word))
		return false;
	o = over(l, DEVICE_sm_clock);
	if (o.most - o.least < 1)
		(void)snprintf(word, sizeof(word), "%.0f MHz", o.most);
	else
		(void)snprintf(word, sizeof(word), "%.0f to %.0f MHz", o.least, o.most);
	if (o.n > 0 && !fn(arg, word))
		return false;
	o = over(l, DEVICE_sm_active);
	(void)snprintf(word, sizeof(word), "SMs %.0f%%", o.n > 0 ? o.sum / o.n : 0);
	if (o.n > 0 && !fn(arg, word))
		return false;
	o = over(l, DEVICE_memory_used);
	all = over(l, DEVICE_memory_total);
	if (all.n == o.n)
		(void)snprintf(word, sizeof(word), "%.1f of %.1f GiB", o.sum / GIB, all.sum / GIB);
	else
		(void)snprintf(word, sizeof(word), "%.1f GiB", o.sum / GIB);
	if (o.n > 0 && !fn(arg, word))
		return false;
	o = over(l, DEVICE_temperature);
	(void)snprintf(word, sizeof(word), "%.0f C", o.most);
	return o.n == 0 || fn(arg, word);
}

void look_gpu_words(const struct look *before, const struct look *now, look_word_fn *fn, void *arg)
{
	static const char *const heads[PART_MAX] = {
#define X(name, column, head, words) head,
		GPU_PARTS(X)
#undef X
	};
	double part[PART_MAX];
	char word[64];
	uint32_t k;

	for (k = 0; k < PART_MAX && look_parts(before, now, part); k++) {
		(void)snprintf(word, sizeof(word), "%s %.1f%%", heads[k], part[k] * 100);
		if (part[k] >= 0.0005 && !fn(arg, word))
			return;
	}
	(void)reading_words(now, fn, arg);
}
