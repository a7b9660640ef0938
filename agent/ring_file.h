/* SPDX-License-Identifier: MIT. ring_file.h: the file behind the ring, as its maker sees it. The
 * engine's files include it; the layout is ring.h's. */
#ifndef PROTOND_AGENT_RING_FILE_H
#define PROTOND_AGENT_RING_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct engine_open;

int ring_make(const struct engine_open *o, char *text);
void ring_unmake(void); /* before anybody has seen it: the file too */
void ring_budget(void); /* when no further lane was to be had: perhaps there is room again */
/* Backs a range of the ring file with memory, so that a store to it cannot fault. -ENOSPC, -EBADF.
 */
int ring_back(uint64_t offset, uint64_t bytes);
void ring_unback(uint64_t offset, uint64_t bytes); /* gives that memory back */
int ring_control(int fd, uint32_t n_lanes);
/* Gives a ring that is whole the name by which it is found when its job is dead: one that was
 * killed before leaves nothing. */
void ring_name(void);
bool ring_reopen(void); /* the application has closed its descriptor: another, by its name */
void ring_forget(void); /* in a forked child: puts private zeroes where the parent's ring was */
/* In a forked child: its parent's counts are what it has of its parent; its own are yet to come. */
void ring_descend(void);
void ring_child_lost(int32_t n); /* counts in the parent's ring */

#endif
