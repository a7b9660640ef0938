/* SPDX-License-Identifier: MIT. protonctl_complaints.h: what the daemon complains of between two
 * moments. For `run`. */
#ifndef PROTOND_PROTONCTL_COMPLAINTS_H
#define PROTOND_PROTONCTL_COMPLAINTS_H

#include <stdbool.h>

#include "rpc.h"

/* mismatch: it refused a libprotond of another version, or one whose halves are of two. */
typedef void complaint_fn(void *arg, const char *text, bool mismatch);

/* Its complaints of now; to be freed. A daemon that does not answer has none. */
void complaints_note(struct rpc *r, struct rpc_reply *ret);
/* Each that was not there before. */
void complaints_since(struct rpc *r, const struct rpc_reply *before, complaint_fn *each, void *arg);

#endif
