/* SPDX-License-Identifier: MIT. trace_rows.c: what overlaps, side by side; threads by name. */
#include "trace_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

#define COMM_MAX 15u /* bytes of a thread's name */

bool lane_place(struct lane_set *s, uint64_t start, uint64_t end, uint32_t *ret_row)
{
	uint64_t *grown;
	uint32_t i;

	for (i = 0; i < s->n && i + 1 < LANES_MAX && s->end[i] > start; i++)
		;
	if (i == s->n) {
		grown = reallocarray(s->end, i + 1, sizeof(*grown));
		if (grown == NULL)
			return false;
		s->end = grown;
		s->n++;
	}
	s->end[i] = end;
	*ret_row = i;
	return true;
}

struct lane_set *lane_of(
	struct lane_set **v, uint32_t *n, uint32_t *cap, uint32_t device, uint32_t stream)
{
	uint32_t i;

	for (i = 0; i < *n; i++)
		if (i + 1 == STREAMS_MAX || ((*v)[i].device == device && (*v)[i].stream == stream))
			return &(*v)[i];
	if (!room_for((void **)v, cap, *n, sizeof(**v)))
		return NULL;
	(*v)[*n] = (struct lane_set){.device = device, .stream = stream};
	return &(*v)[(*n)++];
}

void lanes_clear(struct lane_set *v, uint32_t *n)
{
	while (*n > 0)
		free(v[--*n].end);
}

/* What a thread is called that has no name of its own: the kernel cuts it. */
static bool is_program(const char *command, const char *name)
{
	const char *end = strchrnul(command, ' '),
		   *slash = memrchr(command, '/', (size_t)(end - command)),
		   *base = slash != NULL ? slash + 1 : command;
	const size_t n = (size_t)(end - base) < COMM_MAX ? (size_t)(end - base) : COMM_MAX;

	return strlen(name) == n && memcmp(base, name, n) == 0;
}

const char *thread_name(
	const char *command, int64_t pid, uint32_t tid, const char *own, char ret[THREAD_NAME_MAX])
{
	if (own != NULL && !is_program(command, own))
		return own;
	if (tid == pid)
		return "main thread";
	(void)snprintf(ret, THREAD_NAME_MAX, "thread %u", tid);
	return ret;
}
