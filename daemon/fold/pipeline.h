/* SPDX-License-Identifier: MIT. pipeline.h: drain → correlate → tree. */
#ifndef PROTOND_PIPELINE_H
#define PROTOND_PIPELINE_H

#include <stdint.h>

struct j_lane;
struct process;

/* Of sums that are open, as they stand; behind the lane's head. */
void pipeline_sums(struct process *p, const struct j_lane *l, const uint8_t *bytes);
/* l->bytes of them, taken at mono_ns. */
void pipeline_lane(
	struct process *p, const struct j_lane *l, const uint8_t *bytes, uint64_t mono_ns);

#endif
