/* SPDX-License-Identifier: MIT. proxy.h: what threads are in that have said nothing since the
 * recording began. scope.c, worker.c and engine.c include it.
 *
 * A thread that entered scopes and then blocked makes no call from which a lane of its own could
 * come. So the agent writes its now block for it, into a lane that has no memory for records, which
 * is LEFT and never gets a tail. With its first event the thread gets a lane of its own, and the
 * proxy is over.
 */
#ifndef PROTOND_AGENT_PROXY_H
#define PROTOND_AGENT_PROXY_H

#include <stdint.h>

struct pd_thread;

void proxy_forget(void); /* [agent] a new ring */
void proxy_look(void);   /* [agent] at all threads: once a recording begins, and once a second */
/* [agent] Where such a thread is. */
uint32_t proxy_path(const struct pd_thread *t);
void proxy_end(uint32_t tid); /* [any] that thread speaks for itself now */

#endif
