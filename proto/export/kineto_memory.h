/* SPDX-License-Identifier: MIT. kineto_memory.h: what torch's allocator held, as PyTorch's profiler says it.
 * kineto.c's. */
#ifndef PROTOND_EXPORT_KINETO_MEMORY_H
#define PROTOND_EXPORT_KINETO_MEMORY_H

struct chrome;
struct timeline;

/* At the end of what is walked. Events are added to c. -ENOMEM, -EBADMSG with words in w's. */
int kineto_memory(struct timeline *w, struct chrome *c);

#endif
