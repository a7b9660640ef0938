/* SPDX-License-Identifier: MIT. apis.h: calls of the vendor's library, of the switch api, added up: by call,
 * by call and scope, by call and thread. */
#ifndef PROTOND_VIEWER_APIS_H
#define PROTOND_VIEWER_APIS_H

#include <stdint.h>

#include "err.h"
#include "profile.h"

struct sqlite3;
struct export_left;

#define APIS_ROWS_MAX 4096u /* by thread; calls beyond are counted only */

#define APIS_BY(X) X(call) X(scope) X(thread)
enum apis_by {
#define X(word) APIS_BY_##word,
	APIS_BY(X)
#undef X
};
#define APIS_BY_WORDS "call, scope, thread"

struct apis_row {
	const char *call;
	const char *in; /* scopes around it, the outermost first, or the thread; "": none */
	uint64_t calls, errors, total_ns;
	double p50_ns, p99_ns, max_ns; /* NAN: not known */
};

struct apis {
	struct apis_row *row; /* by total_ns, the highest first */
	uint32_t n;
	uint64_t left_out;
	struct profile *texts;
};

int apis_by(const char *word); /* -EINVAL */
/* By call, or by scope, of a whole profile. -ENOMEM. */
int apis_of_tree(const struct profile *p, enum apis_by by, struct apis **ret);
/* By thread, of a session in an open store; as export_timeline_fn. -ENODATA: it kept no timeline. */
int apis_of_timeline(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct apis **ret, struct err *e);
void apis_free(struct apis *a); /* NULL is fine */

#endif
