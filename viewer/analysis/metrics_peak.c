/* SPDX-License-Identifier: MIT. metrics_peak.c: peak arithmetic and memory rates of devices, with
 * the figures that Proton uses, so that `util` means the same in both. */
#include "metrics_peak.h"

#include <string.h>

static double hertz(const struct profile_device *d)
{
	return (double)d->clock_khz * 1e3;
}

static double sm80(const struct profile_device *d)
{
	(void)d;
	return 624e12;
}

static double sm89(const struct profile_device *d)
{
	(void)d;
	return 330.3e12;
}

/* 1513e12 is the figure of 114 SMs at 1755 MHz. */
static double sm90(const struct profile_device *d)
{
	return (double)d->num_sms / 114 * ((double)d->clock_khz / 1755e3) * 1513e12;
}

static double sm100(const struct profile_device *d)
{
	return (double)d->num_sms * 16384 * hertz(d);
}

static double gfx90a(const struct profile_device *d)
{
	return 1024 * (double)d->num_sms * hertz(d);
}

static double gfx942(const struct profile_device *d)
{
	return 4096 * (double)d->num_sms * hertz(d);
}

static double gfx950(const struct profile_device *d)
{
	return 8192 * (double)d->num_sms * hertz(d);
}

static const struct peak {
	const char *type, *arch;
	double (*flops8)(
		const struct profile_device *d); /* at 8 bits; other widths in proportion */
	double bytes;                            /* 0: from bus and memory clock */
} peaks[] = {
	{"CUDA", "80", sm80, 0},
	{"CUDA", "89", sm89, 0},
	{"CUDA", "90", sm90, 0},
	{"CUDA", "100", sm100, 0},
	{"HIP", "gfx90a", gfx90a, 3.2e12},
	{"HIP", "gfx942", gfx942, 5.3e12},
	{"HIP", "gfx950", gfx950, 8.0e12},
};

static const struct peak *find(const struct profile_device *d)
{
	size_t i;

	for (i = 0; i < sizeof(peaks) / sizeof(peaks[0]); i++)
		if (strcmp(peaks[i].type, d->type) == 0 && strcmp(peaks[i].arch, d->arch_text) == 0)
			return &peaks[i];
	return NULL;
}

static int unknown(const struct profile_device *d, struct err *e)
{
	return err_set(e, -ENOTSUP,
		"util: no peak figures for architecture '%s' of %s device %s (known: CUDA 80, 89, "
		"90, 100; "
		"HIP gfx90a, gfx942, gfx950)",
		d->arch_text, d->type, d->id);
}

int peak_flops(
	const struct profile_device *d, uint32_t width_bits, double *ret_per_s, struct err *e)
{
	const struct peak *k = find(d);

	if (k == NULL)
		return unknown(d, e);
	*ret_per_s = k->flops8(d) / (width_bits / 8.0);
	return 0;
}

int peak_bytes(const struct profile_device *d, double *ret_per_s, struct err *e)
{
	const struct peak *k = find(d);

	if (strcmp(d->type, "CUDA") == 0) {
		*ret_per_s = 2.0 * (double)d->bus_width * ((double)d->memory_clock_khz * 1e3) / 8;
		return 0;
	}
	if (k == NULL)
		return unknown(d, e);
	*ret_per_s = k->bytes;
	return 0;
}
