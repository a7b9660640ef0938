/* SPDX-License-Identifier: MIT. facts.h: what rules judge a session by: sums of its tree, and what its
 * database has beside it. Numbers alone: what they mean is rules.h's. */
#ifndef PROTOND_VIEWER_FACTS_H
#define PROTOND_VIEWER_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "critical.h"
#include "device_sums.h"
#include "err.h"
#include "leak.h"
#include "profile.h"
#include "ranks.h"
#include "steps.h"
#include "waits.h"

struct fact_node {
	double cpu_ns, calls; /* its own; a scope's time holds its inner scopes' */
	/* With all below it. */
	double gpu_ns, gpu_count; /* kernels, copies and sets */
	double sync_ns,
		wait_ns; /* calls that wait: all; of these, not to get memory or to give it back */
	double alloc_ns, allocs, pin_ns,
		pins;       /* the others, of the GPU's and of the host's; and how many */
	const char *family; /* of a kernel: family.h; else NULL */
	uint32_t step;      /* the outermost step that it is or stands in; PROFILE_NONE */
};

/* What shares are of. */
enum facts_whole {
	WHOLE_NONE,    /* nothing took time */
	WHOLE_STEPS,   /* the steps of all processes, one behind the other */
	WHOLE_SESSION, /* the active time, once for each process */
	WHOLE_USED,    /* of each process that used a GPU from its first work on it to its last */
	WHOLE_GPU,     /* a file of a tree without scopes: the GPU's work */
};

struct facts {
	const struct profile *p; /* borrowed; with durations and configurations */
	struct fact_node *node;  /* [n_nodes of p] */
	const char *scope;       /* whose scopes count as steps; NULL: those that are named so */
	double every_ns;         /* windows of so long are the steps; 0: scopes are */
	bool is_part;            /* of a session: window.h */
	enum facts_whole whole;
	double whole_ns,
		session_ns; /* active, once for each process; of WHOLE_USED, and of parts then, that */
	bool has_gpu, has_sync, has_cpu, gpu_in_steps; /* the last: nearly all of it */
	bool lost_work; /* so much that what looks idle may have been work: idle, parts and waits are not known */
	/* How many there were; below: in them. Of a part without any the seconds of it, and all of it is in them: the rules
	 * that judge a loop by its time judge that. */
	double steps;
	/* step_ns: where a timeline tells which are warm (step_pace.h), with a median in place of each of those; whole_ns alike. */
	double step_ns, step_gpu_ns, step_gpu_count, step_wait_ns;
	/* How long its GPU had no work, and what it did meanwhile: of steps by the timeline, else by the
	 * tree; else of the session. share NAN: not known. */
	struct facts_idle {
		double share, ns;
		double count, work_ns; /* of GPU work in the same time */
		enum facts_whole of;
	} idle;
	/* Of the session's active time, mean of its GPUs; has_parts: all of them are known. */
	bool has_parts;
	double part[PART_MAX];
	/* Of the database; NULL: it has none. The facts'. */
	struct steps *step;
	struct waits *wait;
	struct ranks *rank;
	struct device_sums *device;
	struct leak leak;          /* of memory that the driver gave */
	struct critical *critical; /* of a whole session: its step of median length */
	bool stored;               /* there was a database */
	uint64_t gone; /* events that had left the timeline: it has the last steps alone */
	uint32_t
		sharing; /* processes on the GPU that most of this session share; 0 or 1: none do */
};

/* Of a tree alone, which window_read() has made that of s, where s is a part; NULL: it is all. p stays the caller's.
 * -ENOMEM. */
int facts_new(const struct profile *p, const struct profile_select *s, struct facts **ret);
/* Whether it has steps, not the seconds of a window. */
static inline bool facts_has_steps(const struct facts *f)
{
	return f->whole == WHOLE_STEPS;
}
/* Both of an open store. *ret_p: what f is of, the caller's also where it fails. -ENOMEM, -EBADMSG with words. */
int facts_load(struct facts **ret, struct profile **ret_p, struct sqlite3 *db, int64_t id,
	const struct profile_select *s, struct export_left *ret_left, struct err *e);
/* Adds what an open store has of the same session, between s->from_ns and s->to_ns of its timeline, whose zero is base_ns
 * (CLOCK_REALTIME); to_ns 0: all of it. -ENOMEM, -EBADMSG with words. */
int facts_read(struct facts *f, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	int64_t base_ns, struct export_left *ret_left, struct err *e);
void facts_free(struct facts *f); /* NULL is fine */

#endif
