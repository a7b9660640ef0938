/* SPDX-License-Identifier: MIT. steps.h: the steps of a session's timeline, and what the GPU did in
 * each: scopes named step, step N or ProfilerStep#N. */
#ifndef PROTOND_VIEWER_STEPS_H
#define PROTOND_VIEWER_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "part_terms.h"
#include "profile.h"

struct export_left;
struct sqlite3;

#define STEPS_MAX        262144u /* later ones are counted only */
#define STEPS_VALUES_MAX 32u     /* names of numbers that steps have */

struct step {
	uint32_t process; /* place in steps.process */
	uint32_t number;  /* from 1, within the process, as they began */
	uint32_t tid;
	bool warm; /* a slow one at the begin: step_pace.h */
	bool cut; /* it began before, or did not end, as by a kill: nobody knows how long it takes */
	bool open;                 /* the latter: the tree has its time, and does not count it */
	uint64_t begin_ns, end_ns; /* since the timeline's zero */
	uint32_t of;               /* of stored ones: so many steps, */
	double took_ns; /* which took so long together; of at most 1: they are its own times */
	uint64_t
		part_ns[PART_MAX]; /* of its process' GPUs together: parts.h. All 0: it used none */
	uint32_t ops;              /* that began in it */
	uint32_t compiles;         /* that took time in it, */
	uint64_t compile_ns;       /* so much */
};

/* Of a step's GPUs together, the time of parts [from, end). */
static inline double step_parts(const struct step *s, enum gpu_part from, enum gpu_part end)
{
	uint64_t ns = 0;

	for (; from < end; from++)
		ns += s->part_ns[from];
	return (double)ns;
}

struct steps_process {
	int64_t pid, rank; /* rank -1: none */
	double median_ns;  /* of its steps; NAN: there are too few */
	double limit_ns;   /* beyond it one is slow; NAN likewise */
};

struct steps {
	struct step *step; /* process by process, as they began */
	uint32_t n, left_out;
	uint32_t told_left_out; /* numbers that steps were told */
	struct steps_process *process;
	uint32_t n_processes;
	/* Numbers that steps carry: value[k][i] of step i, NAN where it has none. */
	uint32_t n_values;
	const char *value_name[STEPS_VALUES_MAX];
	double *value[STEPS_VALUES_MAX];
	struct profile *texts; /* has the names */
	bool stored;  /* as they are stored beside the tree: without what the GPU did in each */
	bool thinned; /* of which some stand for several */
};

/* Of a session in an open store; as export_timeline_fn, but those that lie in from_ns to to_ns wholly, and what s->scope
 * or s->every_ns says is a step. -ENODATA: it kept no timeline. */
int steps_read(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct steps **ret, struct err *e);
/* Faster: nothing of what GPUs did in them. */
int steps_read_times(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct steps **ret, struct err *e);
/* The same of a session without a timeline: what is stored of its steps. -ENODATA: nothing is. */
int steps_stored(struct sqlite3 *db, int64_t id, const struct profile_select *s, struct steps **ret,
	struct err *e);
/* The number of that name; STEPS_VALUES_MAX: there is no room for it, or no memory (-ENOMEM to *status). */
uint32_t steps_value(struct steps *s, const char *name, int *status);
void steps_free(struct steps *s); /* NULL is fine */

#endif
