/* SPDX-License-Identifier: MIT. event.h: metrics, spans, session marks. engine.c includes it. */
#ifndef PROTOND_AGENT_EVENT_H
#define PROTOND_AGENT_EVENT_H

#include <stdint.h>

#include "engine.h"

void event_metric(struct pd_thread *t, uint32_t name, uint32_t type, uint64_t bits);
void event_span(struct pd_thread *t, uint64_t context, uint64_t begin);
int event_session(struct pd_thread *t, uint32_t verb, uint32_t session, uint32_t name,
	const struct session_options *o);

#endif
