/* SPDX-License-Identifier: MIT. step_series.h: how long each step of a process took, and which numbers it was told:
 * what the tree adds up, step by step. Rows of STEP_ROW_POINTS points; after STEP_ROWS of them a point is of two
 * steps, then of four, and so on: a session of any length has a bounded number of rows.
 *
 * A step is a scope that step_name.h knows and that stands in no other. What is told in it, or in scopes below
 * it, is the step's, by the metric's kind: a property's last value, else the sum. A number that another thread
 * was told there (autograd's, of a backward) is the step's that ends next. */
#ifndef PROTOND_STEP_SERIES_H
#define PROTOND_STEP_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "step_row.h"
#include "tables.h"

struct batch;
struct lane;
struct part;

#define STEP_ROWS 256u /* of one width: 8 192 steps */
#define STEP_TOLD_MAX \
	64u /* numbers of steps that go on, of all threads; further ones are in the tree alone */
#define STEP_LANES 16u /* threads with steps of their own */
#define STEP_SEALED \
	32u /* full rows that wait for a collect; then points hold more steps than they should */

enum node_step { STEP_NO, STEP_IS, STEP_BELOW }; /* of a node */

struct step_told {
	double v;
	uint64_t clock; /* of the last time */
	uint32_t lane;
	uint8_t name, kind; /* name: place in steps.names */
};

struct step_series {     /* of a part, once it has a step or a number in one */
	uint64_t ended;  /* steps so far */
	uint32_t number; /* of the row that grows */
	uint32_t n, n_told, n_lanes;
	struct step_point next; /* not yet as wide as it must be; n 0: nothing */
	struct step_point point[STEP_ROW_POINTS];
	struct row_step sealed[STEP_SEALED]; /* their bytes are owned */
	uint32_t n_sealed;
	struct step_told told[STEP_TOLD_MAX];
	uint32_t lane[STEP_LANES];
	uint32_t name[STEP_NAMES]; /* of process.metric_name */
	uint32_t n_names;
	double total[STEP_NAMES]; /* of those that are added up, of all steps that ended here */
	bool dirty;
};

/* A number at a node that is no STEP_NO; kind as enum metric_kind. */
struct step_number {
	double v;
	uint64_t clock;
	uint32_t lane, name; /* name: of process.metric_name */
	uint8_t kind;
};
void step_series_tell(struct part *part, const struct step_number *x);
/* A scope of a node that is STEP_IS ended; clocks of the ring and their CLOCK_MONOTONIC. */
struct step_ended {
	uint64_t begin, begin_ns, end_ns, ns; /* ns: how long, within the session */
	uint32_t lane;
};
void step_series_end(struct part *part, const struct step_ended *x);
void step_series_skip(struct part *part, uint64_t n); /* so many came too fast to be told apart */
/* A row was stored: later ones follow it. */
void step_series_restore(struct part *part, uint32_t number, uint64_t ended);
bool step_series_put(const struct part *part, struct batch *b); /* false: no memory */
void step_series_clean(struct part *part);                      /* after step_series_put() */
void step_series_free(struct part *part);

#endif
