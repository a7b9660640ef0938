/* SPDX-License-Identifier: MIT. occupancy.h: how many blocks of a kernel an SM can hold at once, and what they leave empty:
 * theoretical occupancy, waves and tail, without a counter. NVIDIA's GPUs; docs/analyses.md has the formulas and their source.
 * Pure. */
#ifndef PROTOND_VIEWER_OCCUPANCY_H
#define PROTOND_VIEWER_OCCUPANCY_H

#include <stdbool.h>

#include "profile.h"

/* What holds them back. */
#define OCCUPANCY_LIMITS(X)       \
	X(WARPS, "threads")       \
	X(REGISTERS, "registers") \
	X(SHARED, "shared")       \
	X(BLOCKS, "block"         \
		  "s")
enum occupancy_limit {
#define X(name, words) OCCUPANCY_##name,
	OCCUPANCY_LIMITS(X)
#undef X
		OCCUPANCY_N
};
extern const char *const occupancy_words[OCCUPANCY_N];

struct occupancy {
	uint32_t blocks; /* that an SM holds at once; 0: it cannot be launched there */
	double share;    /* of the warps that an SM can hold, 0 to 1 */
	enum occupancy_limit limit;
	double waves; /* grid ÷ what all SMs hold at once */
	double tail; /* of the time of all waves, as far as the last one is not full: 1 − waves ÷ ⌈waves⌉ */
};

/* Of a launch on a device. false: its architecture, or its number of SMs, is not known. */
bool occupancy_of(
	const struct profile_device *d, const struct profile_config *c, struct occupancy *ret);
/* The one of a session that did work (of all, where that is not known), where these are alike; NULL. */
const struct profile_device *occupancy_device(const struct profile *p);

#endif
