/* SPDX-License-Identifier: MIT. holding.h: who holds memory, of the processes of a session: what a row of `memory` has,
 * with the words of its scopes and devices, and how it grows from step to step. Prints nothing. */
#ifndef PROTOND_VIEWER_HOLDING_H
#define PROTOND_VIEWER_HOLDING_H

#include <stdbool.h>
#include <stdint.h>

#include "growth.h"
#include "holder_rows.h"
#include "profile.h"

struct sqlite3;

#define HOLDING_WARM_UP 4u     /* steps that are not looked at: allocators and optimizers fill */
#define HOLDING_LEAST   8u     /* behind those: fewer have no slope */
#define HOLDING_STEPS   65536u /* points of steps that are read; later ones are left out */

/* What protond.memory told of torch's allocator at the ends of steps; -1: nothing. */
struct holding_torch {
	double allocated, reserved, peak; /* bytes: of the last step; the most of all */
};

struct holding_step {
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t first;            /* from 1 */
	uint32_t n;
	double allocated; /* by torch, as above; of several the last but about */
};

struct holding {
	struct holder_row row;
	const struct holders *h; /* its own */
	uint64_t end_ns;         /* of the newest event */
	char **scope;            /* [h->n_owners] "a/b"; "" of ROOT; "(other)" */
	struct holding_torch torch;
	struct holding_step *step;
	uint32_t n_steps, cap_steps;
};

/* How an account grows: over its steps from `first` to `last` (0: all), bytes a step. */
struct holding_growth {
	struct growth g;
	double slope, error; /* by least squares, and the standard error of it, bytes a step */
	uint32_t all, steps; /* with a value; of these behind those in which programs warm up */
	uint64_t at_first, at_last; /* bytes: at the end of the first and the last */
	uint64_t most;              /* between them */
};

/* fn for each process that has some; its error ends it. process: as of struct profile_select. -EBADMSG, -ENOMEM. */
typedef int holding_fn(void *arg, const struct holding *x);
int holding_each(struct sqlite3 *db, int64_t session, const char *process, holding_fn *fn,
	void *arg, struct err *e);
void holding_growth(const struct holding *x, const struct held_account *a, uint32_t first,
	uint32_t last, struct holding_growth *ret);
/* The same of what torch allocated; false: it told nothing. */
bool holding_torch_growth(
	const struct holding *x, uint32_t first, uint32_t last, struct holding_growth *ret);
/* Bytes that were held at an instant, as far as points tell. */
uint64_t holding_at(const struct held_account *a, uint64_t ns);

#endif
