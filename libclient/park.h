/* SPDX-License-Identifier: MIT. park.h: the parked thread. thread.c, session.c, export.c and
 * inject.c include it. */
#ifndef PROTOND_PARK_H
#define PROTOND_PARK_H

struct protond_host;

/* Starts it; idempotent. host: what an engine that it opens may ask. */
int pd_park(const struct protond_host *host);
void pd_ring(void); /* the bell: it looks at pd */
int pd_bell_make(void);

#endif
