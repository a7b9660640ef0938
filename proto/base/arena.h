/* SPDX-License-Identifier: MIT. arena.h: memory that is given back all at once. One thread takes;
 * any may hold, read what it was handed, and free. */
#ifndef PROTOND_BASE_ARENA_H
#define PROTOND_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena;

struct arena *arena_new(void);             /* NULL: out of memory */
struct arena *arena_hold(struct arena *a); /* one more owner */
void arena_free(
	struct arena *a); /* the last owner's, with everything taken from it; NULL is fine */
size_t arena_bytes(const struct arena *a);       /* that it holds */
bool arena_is_shared(const struct arena *a);     /* it has another owner */
void *arena_take(struct arena *a, size_t bytes); /* zeroed, 16-byte aligned; NULL: out of memory */
char *arena_text(
	struct arena *a, const char *s, size_t bytes); /* copied, NUL-terminated; NULL likewise */

#endif
