/* SPDX-License-Identifier: MIT. runs.h: sorting what is nearly in order. */
#ifndef PROTOND_BASE_RUNS_H
#define PROTOND_BASE_RUNS_H

#include <stddef.h>

/* As qsort(), and what is equal stays in its order. What is in order already costs n comparisons, what is of a few pieces
 * that are so a few times as much. Without memory for them, or of too many, it is left to qsort(). */
void runs_sort(void *v, size_t n, size_t bytes, int (*order)(const void *, const void *));

#endif
