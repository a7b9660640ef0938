/* SPDX-License-Identifier: MIT. steps.h: the steps of a session's timeline, and what the GPU did in
 * each: scopes named step, step N or ProfilerStep#N. */
#ifndef PROTOND_VIEWER_STEPS_H
#define PROTOND_VIEWER_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "profile.h"

struct sqlite3;

#define STEPS_MAX        262144u    /* later ones are counted only */
#define STEPS_OPS_MAX    (2u << 20) /* of a process; what its GPU did later is not known */
#define STEPS_VALUES_MAX 32u        /* names of numbers that steps have */

/* A step's duration is compute + comm + copy + idle. What overlaps counts as the first of them. */
struct step {
	uint32_t process; /* place in steps.process */
	uint32_t number;  /* from 1, within the process, as they began */
	uint32_t tid;
	uint64_t begin_ns, end_ns; /* since the timeline's zero */
	uint64_t compute_ns, comm_ns,
		copy_ns; /* in which some kernel ran; else communication; else a copy or set */
	uint32_t ops;    /* that began in it */
	bool unknown;    /* of its GPU work not all is known: STEPS_OPS_MAX */
};

struct steps_process {
	int64_t pid, rank; /* rank -1: none */
};

struct steps {
	struct step *step; /* process by process, as they began */
	uint32_t n, left_out;
	struct steps_process *process;
	uint32_t n_processes;
	/* Numbers that steps carry: value[k][i] of step i, NAN where it has none. */
	uint32_t n_values;
	const char *value_name[STEPS_VALUES_MAX];
	double *value[STEPS_VALUES_MAX];
	struct profile *texts; /* has the names */
};

/* Of a session in an open store; as export_timeline_fn. -ENODATA: it kept no timeline. */
int steps_read(struct sqlite3 *db, int64_t id, const struct profile_select *s, uint64_t *ret_gone,
	struct steps **ret, struct err *e);
void steps_free(struct steps *s); /* NULL is fine */

#endif
