/* SPDX-License-Identifier: MIT. now.h: what each thread of a process is in. */
#ifndef PROTOND_NOW_H
#define PROTOND_NOW_H

#include <stdint.h>

struct j_now;
struct process;

#define NOW_SCOPES_MAX 65536u /* of one process */

void process_now(struct process *p, const struct j_now *now, uint32_t n);
/* A piece of what is open gets cells. Only when the lanes were read after what it was said with: a
 * scope may be in the phase that a record begins which was not read yet. */
void process_now_see(struct process *p);
void process_now_set(struct process *p, struct j_now *take, uint32_t n); /* its lanes are there */
void process_now_moved(struct process *p, uint32_t lane, uint32_t tid);  /* it is there now */
void process_now_left(struct process *p, uint32_t lane, uint32_t path, uint64_t begin);
void process_now_forget(struct process *p);

#endif
