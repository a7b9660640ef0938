/* SPDX-License-Identifier: MIT. named.h: threads, GPUs and their objects that the program gave a name. The
 * engine's files include it; a backend has agent_thread_named() and its like. */
#ifndef PROTOND_AGENT_NAMED_H
#define PROTOND_AGENT_NAMED_H

#include <stdint.h>

const char *named_thread(uint32_t tid, uint32_t *ret_bytes); /* [any] NULL: none was given */
void named_forget(uint32_t tid); /* [any] at the thread's end: its number is used again */

void named_tell(void); /* [agent] GPUs and their objects, to this recording */

#endif
