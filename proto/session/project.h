/* SPDX-License-Identifier: MIT. project.h: which scopes GPU work is shown in: one rule, for a timeline by
 * window and for other tools' files. docs/trace.md has it, and why. Pure. */
#ifndef PROTOND_SESSION_PROJECT_H
#define PROTOND_SESSION_PROJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "trace_names.h"

enum projected_as {
	PROJECTED_OPEN,   /* the instance that was open when it was launched */
	PROJECTED_LAUNCH, /* it was captured in the scope: each launch of the graph is one */
	PROJECTED_RUN,    /* no instance is there: one as long as the lane's work stands in it,
			     and within one instance around it */
};

struct projected {             /* a scope; work of one lane that has it alike is in one slice */
	uint32_t node, thread; /* thread: whose instance it is, or stands in */
	uint8_t as;
	uint64_t key; /* its begin; the launch; RUN: the begin of what is around it */
	void *mine;   /* what `find` likes */
};

struct projecting {
	const struct trace_names *names;
	uint32_t node, thread, main; /* of the work; that launched it; the process's main thread */
	uint64_t launched;
	/* Whether a scope of that node was open on that thread then: key, thread and mine of it. */
	bool (*find)(void *arg, uint32_t thread, uint32_t node, uint64_t at, struct projected *ret);
	void *arg;
};

/* All scopes above, the innermost first; returns how many. Of work whose launch is known. */
uint32_t project_scopes(const struct projecting *p, struct projected ret[TRACE_DEPTH_MAX]);

static inline bool projected_alike(const struct projected *a, const struct projected *b)
{
	return a->node == b->node && a->as == b->as && a->key == b->key && a->thread == b->thread;
}

#endif
