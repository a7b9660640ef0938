/* SPDX-License-Identifier: MIT. spool.h: taking up where a former daemon left off. For the loop.
 * Loop thread. */
#ifndef PROTOND_DAEMON_SPOOL_H
#define PROTOND_DAEMON_SPOOL_H

#include "err.h"

struct protond;

int spool_journal(struct protond *p, struct err *e); /* opens the journal, above all stored ones */
int spool_restore(
	struct protond *p, struct err *e); /* store, journal and rings/ of a former life */
void spool_scan(struct protond *p);        /* rings whose job died before it could say so */

#endif
