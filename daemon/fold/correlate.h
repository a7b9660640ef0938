/* SPDX-License-Identifier: MIT. correlate.h: launches and the GPU's records of them, joined by
 * (epoch, correlation id), whichever comes first. One per process; owns what waits. */
#ifndef PROTOND_CORRELATE_H
#define PROTOND_CORRELATE_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

struct flight;
struct gpu;
struct launch;
struct part;
struct process;

/* CLASS_CPU: no record of GPU work is of this type and id. */
static inline uint8_t gpu_class_of(uint8_t type, uint32_t id)
{
	static const uint8_t class[REC_NONE + 1][GPU_IDS] = {
#define X(name, n, word, record, id, ...) [REC_##record][id] = (n),
		GPU_CLASSES(X)
#undef X
	};

	return type < REC_NONE && id < GPU_IDS ? class[type][id] : CLASS_CPU;
}

/* CAPTURED comes the way of the others: what its launch is in decides. */
static inline bool gpu_is_metric(uint8_t type)
{
	return type == REC_CAPTURED;
}

/* Of OVERHEAD, too; neither is an answer to its launch. */
static inline bool gpu_is_work(uint8_t type)
{
	return !gpu_is_metric(type) && type != REC_OVERHEAD;
}

void correlate_fini(struct flight *c);
void correlate_begin(struct process *p); /* an entry with records */
/* end: of LAUNCH_ENDS. */
void correlate_launch(struct process *p, const struct rec_launch *r, uint64_t end, uint32_t tid);
void correlate_gpu(struct process *p, const struct gpu *g);
void correlate_delivered(struct process *p, const struct rec_delivered *r, uint16_t epoch);
/* The agent stopped recording the GPU at clock, and has said all before: nothing more comes. */
void correlate_gpu_off(struct process *p, uint64_t clock);
void correlate_sweep(struct process *p); /* time has gone on */
/* The part leaves: what it has in flight is lost, counted. */
void correlate_detach(struct process *p, struct part *part);
void correlate_leave(struct process *p); /* nothing more comes: some of what waits leaves */
bool correlate_has_many(const struct process *p);
void correlate_end(struct process *p); /* all that waits; before the parts leave */

/* For restore: at the end of its list. NULL: out of memory or refused. */
struct launch *correlate_put(struct process *p, const struct launch *l);
bool correlate_put_gpu(struct process *p, struct launch *l, const struct gpu *g);

#endif
