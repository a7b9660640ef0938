/* SPDX-License-Identifier: MIT. kineto_syncs.h: a session's calls that wait as rows cuda_sync. For kineto.c. */
#ifndef PROTOND_EXPORT_KINETO_SYNCS_H
#define PROTOND_EXPORT_KINETO_SYNCS_H

#include "chrome_events.h"
#include "sorted.h"

struct recorded { /* where an event was recorded last */
	uint64_t event;
	uint32_t process, stream, correlation;
};

struct kineto_syncs {
	struct recorded *recorded;
	uint32_t n_recorded, cap_recorded;
	struct table by_event;
	int64_t *named; /* [n_threads]: the pid that its row was named under last */
};

bool kineto_syncs_init(struct kineto_syncs *k, uint32_t n_threads); /* false: out of memory */
void kineto_syncs_fini(struct kineto_syncs *k);
/* x: gpu_class_is_sync(), in order of time. ordinals: GPUs are processes by their number. */
void kineto_sync(struct kineto_syncs *k, struct chrome *c, struct sorted *s,
	const struct sorted_scope *x, bool ordinals);

#endif
