/* SPDX-License-Identifier: MIT. export.h: a stored session as text of a foreign format. */
#ifndef PROTOND_QUERY_EXPORT_H
#define PROTOND_QUERY_EXPORT_H

#include <stdint.h>

#include "err.h"

struct daemon;

/* Stored session → text of `format` in a sealed memfd of at most 1 GiB, lent to uid; done on the
 * loop with the descriptor (the caller closes it) and the size in *x. Commits first. phases: 0 all,
 * else that phase, from 1. */
struct export_result {
	int fd;
	uint64_t bytes;
	char name[128];
};
typedef void export_done_fn(void *arg, int r, const struct err *e, const struct export_result *x);
void export_session(struct daemon *d, uint32_t uid, const uint8_t session[16], const char *format,
	uint32_t phases, export_done_fn *done, void *arg);
/* The daemon ends: so do those that are being written; their done() is called. Turns the loop. */
void export_stop(struct daemon *d);

#endif
