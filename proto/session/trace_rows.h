/* SPDX-License-Identifier: MIT. trace_rows.h: what overlaps, side by side: each stream is in as many rows as
 * it takes that no two operations of one row overlap, for viewers drop what overlaps. */
#ifndef PROTOND_SESSION_TRACE_ROWS_H
#define PROTOND_SESSION_TRACE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#define LANES_MAX   64u /* rows of a stream; what overlaps in more than these does so in the last */
#define STREAMS_MAX 4096u /* further ones share the last one's rows */

struct lane_set { /* of one stream: when each of its rows is free again */
	uint32_t device, stream, n;
	uint64_t *end;
};

/* The first row that is free at `start`, and taken until `end`. false: out of memory. */
bool lane_place(struct lane_set *s, uint64_t start, uint64_t end, uint32_t *ret_row);
/* The set of a stream, which is made; NULL: out of memory. */
struct lane_set *lane_of(
	struct lane_set **v, uint32_t *n, uint32_t *cap, uint32_t device, uint32_t stream);
/* Forgets all; the array stays. */
void lanes_clear(struct lane_set *v, uint32_t *n);

#define THREAD_NAME_MAX 24u

/* A thread's own name; where it has none (NULL), or its program's: "main thread", "thread TID". */
const char *thread_name(
	const char *command, int64_t pid, uint32_t tid, const char *own, char ret[THREAD_NAME_MAX]);

#endif
