/* SPDX-License-Identifier: MIT. occupancy.c: what an SM can hold. */
#include "occupancy.h"

#include <math.h>
#include <string.h>

#define WARP           32u
#define REGISTERS      65536u /* of an SM, of every architecture below */
#define REGISTERS_UNIT 256u   /* that a warp gets at a time */
#define SCHEDULERS     4u     /* of an SM: each has a quarter of its registers, and of its warps */

const char *const occupancy_words[OCCUPANCY_N] = {
#define X(name, words) words,
	OCCUPANCY_LIMITS(X)
#undef X
};

/* clang-format off */
/* Table "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide. shared: bytes an SM has at most
 * for blocks; unit: what a block gets at a time; own: what the driver takes of each. */
static const struct limits {
	uint32_t arch, warps, blocks, shared, unit, own;
} limits[] = {
	{ 61, 64, 32,  98304, 256,    0},
	{ 70, 64, 32,  98304, 256,    0},
	{ 72, 64, 32,  98304, 256,    0},
	{ 75, 32, 16,  65536, 256,    0},
	{ 80, 64, 32, 167936, 128, 1024},
	{ 86, 48, 16, 102400, 128, 1024},
	{ 87, 48, 16, 167936, 128, 1024},
	{ 89, 48, 24, 102400, 128, 1024},
	{ 90, 64, 32, 233472, 128, 1024},
	{100, 64, 32, 233472, 128, 1024},
	{103, 64, 32, 233472, 128, 1024},
	{120, 48, 24, 102400, 128, 1024},
	{121, 48, 24, 102400, 128, 1024},
};
/* clang-format on */

static const struct limits *limits_of(uint32_t arch)
{
	size_t i;

	for (i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		if (limits[i].arch == arch)
			return &limits[i];
	return NULL;
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static uint64_t by_registers(const struct profile_config *c, uint64_t warps)
{
	const uint64_t each = round_up((uint64_t)c->registers * WARP, REGISTERS_UNIT);

	if (c->registers == 0)
		return UINT64_MAX;
	/* A block's warps stand on all schedulers alike. */
	if (each * round_up(warps, SCHEDULERS) > REGISTERS)
		return 0;
	return REGISTERS / SCHEDULERS / each * SCHEDULERS / warps;
}

static uint64_t by_shared(const struct limits *l, const struct profile_config *c)
{
	const uint64_t each =
		round_up((uint64_t)c->static_shared + c->dynamic_shared + l->own, l->unit);

	return each > 0 ? l->shared / each : UINT64_MAX;
}

bool occupancy_of(
	const struct profile_device *d, const struct profile_config *c, struct occupancy *ret)
{
	const struct limits *l =
		d->type != NULL && strcmp(d->type, "CUDA") == 0 ? limits_of(d->arch) : NULL;
	const double threads = (double)c->block[0] * c->block[1] * c->block[2],
		     grid = (double)c->grid[0] * c->grid[1] * c->grid[2];
	uint64_t of[OCCUPANCY_N], warps;
	uint32_t i;

	/* No launch has more threads in a block; a file may. */
	if (l == NULL || d->num_sms == 0 || !(threads >= 1 && threads <= 1024) || !(grid >= 1))
		return false;
	warps = ((uint64_t)threads + WARP - 1) / WARP;
	of[OCCUPANCY_WARPS] = l->warps / warps;
	of[OCCUPANCY_REGISTERS] = by_registers(c, warps);
	of[OCCUPANCY_SHARED] = by_shared(l, c);
	of[OCCUPANCY_BLOCKS] = l->blocks;
	*ret = (struct occupancy){
		.limit = OCCUPANCY_WARPS, .waves = (double)NAN, .tail = (double)NAN};
	for (i = 1; i < OCCUPANCY_N; i++)
		if (of[i] < of[ret->limit])
			ret->limit = (enum occupancy_limit)i;
	ret->blocks = (uint32_t)of[ret->limit];
	ret->share = (double)(ret->blocks * warps) / l->warps;
	if (ret->blocks > 0) {
		ret->waves = grid / ((double)ret->blocks * (double)d->num_sms);
		ret->tail = 1 - ret->waves / ceil(ret->waves);
	}
	return true;
}

const struct profile_device *occupancy_device(const struct profile *p)
{
	const struct profile_device *ret = NULL, *d;
	bool known = false; /* which worked */

	for (d = p->device; d < p->device + p->n_devices; d++)
		known |= d->busy_ns > 0;
	for (d = p->device; d < p->device + p->n_devices; d++) {
		if (known && d->busy_ns == 0)
			continue;
		if (ret != NULL && (ret->arch != d->arch || ret->num_sms != d->num_sms))
			return NULL;
		ret = d;
	}
	return ret;
}
