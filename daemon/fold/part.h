/* SPDX-License-Identifier: MIT. part.h: one process in one session: when the session recorded, and
 * what it got. member.c makes it, attaches it to its process and detaches it again. */
#ifndef PROTOND_PART_H
#define PROTOND_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "cells.h"
#include "loss_terms.h"
#include "must.h"
#include "notes.h"
#include "window.h"

struct allocs;
struct process;
struct session;
struct step_series;
struct timeline;

#define PART_MAGIC 0x54524150u /* "PART" */

struct part {
	struct session *session;
	struct process *process;
	struct part *next;     /* of the process, in whatever session */
	bool cpu, gpu, python; /* what it takes of events */
	uint8_t switches;      /* likewise: enum session_switch bits */
	const char *domains;   /* likewise: a list of NVTX's; NULL: all. The session's */
	uint32_t domain_asked; /* the last name that was looked for in it, and what came out */
	bool domain_out;
	bool picky;      /* it leaves scopes out: domains, or operators that it did not ask for */
	bool cpu_plain;  /* it takes scopes, and leaves none out */
	bool odd_places; /* a launch may stand elsewhere than in its path: python, picky */
	bool attached, stored; /* stored: the member row is */
	uint8_t slot;
	uint32_t n_open; /* launches in flight */
	uint32_t magic;
	struct window window;
	struct tree tree;
	struct timeline *timeline; /* NULL: none is kept */
	struct step_series *steps; /* NULL: there were none */
	struct allocs *allocs;     /* likewise */
	uint64_t loss[LOST_CAUSE_MAX], counted[NOTE_MAX], counted_ns[NOTE_MAX];
	uint32_t loss_dirty, counted_dirty; /* bits */
};

#define MUST_PART(part) MUST((part) != NULL && (part)->magic == PART_MAGIC)

void part_grew(struct part *part, uint64_t bytes); /* for the ceiling of memory */
bool part_is_clean(const struct part *part);       /* the store has all of it */

#endif
