/* SPDX-License-Identifier: MIT. twice.h: rings that ended once. For the loop. Loop thread. */
#ifndef PROTOND_DAEMON_TWICE_H
#define PROTOND_DAEMON_TWICE_H

struct rings;

/* Once a second: of rings that a service saw for the first time, whether the store knows their end.
 * Such a one is refused, and nothing of it stored: its rows are another process's. */
void rings_ask_twice(struct rings *all);

#endif
