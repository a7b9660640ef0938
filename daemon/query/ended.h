/* SPDX-License-Identifier: MIT. ended.h: what jobs that have ended left: how they did, and the
 * notes made of them. */
#ifndef PROTOND_QUERY_ENDED_H
#define PROTOND_QUERY_ENDED_H

#include <stddef.h>

#include "ask.h"

struct ended_job {
	int64_t pid, rank; /* rank -1: none */
	uint8_t ring[16];
	uint32_t ring_bytes;
	const char *command;
	const char *end; /* a word of END_REASONS; NULL: not known */
	const char *const *note;
	uint32_t n_notes;
	int64_t session; /* 0: it was in none that is stored */
	const char *session_name;
};
/* Newest first. */
struct ended_list {
	const struct ended_job *job;
	uint32_t n;
	bool more; /* not all are there */
};
typedef void ended_fn(void *arg, const struct refusal *no, const struct ended_list *l);
/* Of a session (its id; 0: any) and a pid (0: any), those that the asker may see. */
void query_ended(struct daemon *d, const struct asker *a, int64_t session, uint32_t pid,
	ended_fn *done, void *arg);

#endif
