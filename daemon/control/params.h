/* SPDX-License-Identifier: MIT. params.h: parameters that several verbs take, and values that
 * several answer with. */
#ifndef PROTOND_CONTROL_PARAMS_H
#define PROTOND_CONTROL_PARAMS_H

#include "request.h"

/* Finds params.session, then calls then(q) with q->session filled in; or refuses the request. */
void param_session(struct request *q, verb_fn *then);
/* params.pid into *ret, unchanged when there is none. False: the request is refused. */
bool param_pid(struct request *q, uint32_t *ret, const char *next);

#define TEXT_SHOWN 1024u
void kv_text(struct wire_buf *b, const char *key, const char *text); /* cut; NULL is "" */
void kv_uuid(struct wire_buf *b, const char *key, const uint8_t uuid[16]);
void kv_session(struct wire_buf *b, const struct session_ref *s); /* which, and how it stands */

#endif
