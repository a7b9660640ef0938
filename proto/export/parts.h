/* SPDX-License-Identifier: MIT. parts.h: what GPUs did in a window of a timeline: the parts of part_terms.h,
 * by the rule of busy.h. For what walks a timeline: it hands on the operations of a process, and asks once
 * all of them are there.
 *
 * A timeline must be whole for it: not one of a window, of steps or of a phase. */
#ifndef PROTOND_EXPORT_PARTS_H
#define PROTOND_EXPORT_PARTS_H

#include "busy.h"
#include "timeline.h"
#include "works.h"

/* Operations of a process; from the first beyond on all is unknown. */
#define PARTS_WORK_MAX (2u << 20)
#define PARTS_GPUS_MAX 1024u /* of a process; further ones count as the last */

struct parts_gpu {
	uint32_t device; /* as gpu_seen, whose place may change */
	struct works works;
};

struct parts_spans { /* in order, apart from each other, since the timeline's zero */
	struct span *v;
	uint32_t n, cap;
};

struct parts {         /* zero-initialise, then parts_open(); parts_fini() */
	bool together; /* all GPUs of a process as one */
	struct parts_gpu *gpu;
	uint32_t n_gpus, cap_gpus;
	struct parts_spans active; /* of the session; end UINT64_MAX: it goes on */
	uint32_t n_work;
	uint64_t known_ns; /* where unknown work begins */
	uint64_t last_ns;  /* where the process' last event ends */
	bool gone;         /* what lies before the first operation has left the timeline */
};

/* -ENOMEM, -EIO with words in the timeline's. */
int parts_open(struct parts *p, struct timeline *w);
/* When the session was in a phase; to->v is the caller's. */
int parts_phase(struct parts_spans *to, struct timeline *w, uint32_t phase);
void parts_process(struct parts *p);                         /* the next one */
bool parts_op(struct parts *p, const struct timeline_op *o); /* false: out of memory */
void parts_seen(struct parts *p, uint64_t end_ns);           /* some other event */
/* The process has no further operation. false: out of memory. */
bool parts_settle(struct parts *p, const struct timeline *w);
/* Adds what v is made of, as far as the session was active; returns how long that was: the sum of what
 * was added. */
uint64_t parts_window(const struct parts *p, const struct parts_gpu *g, const struct span *v,
	uint64_t part[PART_MAX]);
void parts_fini(struct parts *p);

#endif
