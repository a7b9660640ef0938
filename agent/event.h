/* SPDX-License-Identifier: MIT. event.h: metrics, spans, session marks. engine.c includes it. */
#ifndef PROTOND_AGENT_EVENT_H
#define PROTOND_AGENT_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

/* A number that this thread gives while it captures a CUDA graph: name and type as in agent_metric(),
 * `which` of those that the device writes. False: it captures none, or nothing is recorded. */
bool event_captured(struct pd_thread *t, uint32_t name, uint32_t type, uint64_t which);
void event_block(struct pd_thread *t, const struct engine_block *b); /* [any] */
/* [any] Where what is captured on `path` stands: below it, which sessions do not want it. */
uint32_t event_captured_path(uint32_t path);
void event_forked(void); /* in the child: it has no sessions */
int event_session(struct pd_thread *t, uint32_t verb, uint32_t session, uint32_t name,
	const struct session_options *o);

#endif
