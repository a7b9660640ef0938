/* SPDX-License-Identifier: MIT. where.h: what each thread of a running job is in and which launches
 * are in flight, from what its ring says anyway: a job is asked nothing. Of the rings the fold has it: a
 * question reads none. */
#ifndef PROTOND_QUERY_WHERE_H
#define PROTOND_QUERY_WHERE_H

#include "ask.h"
#include "find.h"
#include "fold.h"
#include "thread_usage.h"

#define WHERE_JOBS     256u
#define WHERE_SCOPES   4096u /* open scopes of one job */
#define WHERE_LAUNCHES 16u
#define WHERE_USAGES   256u /* threads of an answer that the kernel is asked about */

struct where_wish {
	uint32_t pid;                      /* 0: any */
	const struct session_ref *session; /* its jobs; NULL: any */
};

struct where_job {
	uint8_t ring[16];
	uint32_t pid;
	int32_t rank;
	bool in_namespace; /* its thread ids are not ours */
	uint64_t delivered_ns, open_launches;
	char command[256];
};
/* An open scope. Those of one thread (lane and tid) follow each other, outermost first. */
struct where_scope {
	uint32_t lane, tid, depth, path;
	uint64_t since_ns; /* CLOCK_MONOTONIC; 0: not known */
};

struct where {
	struct daemon *d;
	uint64_t now_ns;   /* what since_ns is to be compared with */
	uint32_t left_out; /* jobs beyond WHERE_JOBS */
	uint32_t n, n_usages;
	struct where_job job[WHERE_JOBS]; /* that run, and that the asker may see */
	struct where_scope scope[WHERE_SCOPES];
	struct fold_launch launch[WHERE_LAUNCHES];
};
/* In done() the jobs are there; scopes and launches are read job by job. */
typedef void where_fn(void *arg, const struct refusal *no, struct where *w);
/* Without a session it waits as LOOK_MS allows until what jobs wrote before is in the fold;
 * whoever has a session has waited. */
void query_where(struct daemon *d, const struct asker *a, const struct where_wish *wish,
	where_fn *done, void *arg);
/* Fills in w->scope, or w->launch, of one of its jobs. Returns how many there are. */
uint32_t where_scopes(struct where *w, const struct where_job *j);
uint32_t where_launches(struct where *w, const struct where_job *j);
/* What the kernel says of one of its threads. false: nothing, or it was asked about WHERE_USAGES. */
bool where_usage(
	struct where *w, const struct where_job *j, uint32_t tid, struct thread_usage *ret);
/* The words of a path of that job, root first: "a/b/c", cut to fit. Returns the bytes in buf. */
size_t where_path(
	const struct where *w, const struct where_job *j, uint32_t path, char *buf, size_t n);

/* Likewise what such scopes said last of themselves. */
size_t where_properties(
	const struct where *w, const struct where_job *j, uint32_t path, char *buf, size_t n);

#endif
