/* SPDX-License-Identifier: MIT. protonctl_stack.h: what a process's threads stand in, and wait for. For
 * protonctl_where. */
#ifndef PROTOND_PROTONCTL_STACK_H
#define PROTOND_PROTONCTL_STACK_H

#include <stdint.h>
#include <stdio.h>

#include "term.h"
#include "text.h"

struct stack;

/* Read with the caller's own rights, while the process runs. NULL: out of memory. */
struct stack *stack_read(uint64_t pid);
void stack_free(struct stack *s);

/* A thread's lines. tid 0: those of all that were not put yet, under their own heads, and what is to be said of the
 * process. */
void stack_put(struct stack *s, const struct term *term, struct text *out, uint64_t tid);
/* {"pid", "more", "apart", "why", "threads": […]}; apart: threads of Python that are none of those. */
void stack_json(const struct stack *s, FILE *f);

#endif
