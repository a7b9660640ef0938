/* SPDX-License-Identifier: MIT. member.h: a process joins a session, is recorded, and leaves it. */
#ifndef PROTOND_MEMBER_H
#define PROTOND_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

struct part;
struct process;
struct session;

/* NEW ── attach ──► attached: takes events ── detach ──► kept for its numbers ── free */
struct part *part_new(struct session *s, struct process *p); /* NULL: out of memory */
void part_free(struct part *part);
bool part_attach(struct part *part); /* false: the process has PARTS_MAX */
void part_attach_at(struct part *part, uint8_t slot);
void part_detach(struct part *part, uint64_t clock); /* open scopes up to clock, launches lost */
void part_set_active(struct part *part, bool active, uint64_t clock);
void part_set_switches(struct part *part); /* as its session says */
void part_set_picks(struct part *part);    /* after what it may leave out has changed */
void part_set_segment(struct part *part, uint64_t clock); /* the next one begins */

#endif
