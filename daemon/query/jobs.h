/* SPDX-License-Identifier: MIT. jobs.h: which jobs there are: the fold's processes, and those
 * attached that have no ring yet, of which nothing is recorded. Answered at once. */
#ifndef PROTOND_QUERY_JOBS_H
#define PROTOND_QUERY_JOBS_H

#include "ask.h"
#include "fold.h"

/* Every attached job, whoever asks: for matching, not for showing. */
struct live_job {
	uint32_t pid, uid;
	const uint8_t *ring; /* NULL: it has none yet */
	const char *command; /* valid during the call, both */
};
typedef void live_job_fn(void *arg, const struct live_job *j);
void jobs_each_live(const struct daemon *d, live_job_fn *fn, void *arg);
/* Those of that pid that live and that the asker may see, of one user. Returns how many; ret_uid:
 * whose. What a dead process left may name any pid. */
uint32_t jobs_of_pid(
	const struct daemon *d, const struct asker *a, uint32_t pid, uint32_t *ret_uid);

/* A job as it is shown; texts are valid during the call. */
struct job_view {
	const struct fold_process
		*process; /* NULL: it has no ring yet, only what follows is known */
	uint32_t pid, uid, gpu_state;
	int64_t rank; /* -1: none */
	const char *command, *cwd;
	const char *gpu_text;    /* NULL: none */
	const int64_t *sessions; /* ids of those that it is in and that the asker may see */
	uint32_t n_sessions;
};
typedef void job_view_fn(void *arg, const struct job_view *j);
/* Jobs that the asker may see; all: those that have ended and are still in the fold, too. -ENOMEM:
 * fn was not called. */
int query_jobs(struct daemon *d, const struct asker *a, bool all, job_view_fn *fn, void *arg);

#endif
