/* SPDX-License-Identifier: MIT. life.h: processes come, and go. */
#ifndef PROTOND_LIFE_H
#define PROTOND_LIFE_H

#include <stdint.h>

struct fold;
struct j_end;
struct j_process;
struct j_state;
struct journal_entry;
struct process;
struct row_process;

/* -ENOMEM; -ENOSPC: there are as many as may be. */
int process_adopt(
	struct fold *f, const struct journal_entry *e, const struct j_process *j, uint32_t bytes);
void process_state(struct process *p, const struct j_state *s);
void process_end(struct process *p, const struct j_end *e, uint64_t mono_ns);
/* Likewise, without a look at what may have ended the daemon in it. */
void process_end_instead(struct process *p, const struct j_end *e, uint64_t mono_ns);
void process_evict(struct fold *f, uint32_t keep); /* ended, stored ones, the oldest first */

struct process *process_new(struct fold *f, const struct row_process *row); /* takes its strings */
void process_free(struct process *p);

#endif
