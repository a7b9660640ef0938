/* SPDX-License-Identifier: MIT. control.h: the server of control.sock. Loop thread. */
#ifndef PROTOND_CONTROL_H
#define PROTOND_CONTROL_H

#include "request.h"

struct control;

/* verbs: the handlers by enum wire_verb; borrowed. */
int control_new(
	struct daemon *d, verb_fn *const verbs[WIRE_VERB_MAX], struct control **ret, struct err *e);
/* Stops listening and closes every client. The memory goes when the loop has run the close
 * callbacks: the owner runs the loop once more afterwards. NULL is fine. */
void control_free(struct control *c);
uint32_t control_clients(const struct control *c);
int control_fd(const struct control *c); /* where they come in */

#endif
