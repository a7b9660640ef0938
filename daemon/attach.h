/* SPDX-License-Identifier: MIT. attach.h: what the messages of a job do. For intake.c. Loop thread.
 * */
#ifndef PROTOND_DAEMON_ATTACH_H
#define PROTOND_DAEMON_ATTACH_H

#include <stddef.h>

#include "err.h"

struct conn;

/* One packet. Takes *fd when it has a use for it (then -1). e->code < 0: refuse and close. */
void attach_message(struct conn *c, const void *packet, size_t n, int *fd, struct err *e);

#endif
