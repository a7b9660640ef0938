/* SPDX-License-Identifier: MIT. verbs.h: the table of verbs. A verb is a row of WIRE_VERBS and a
 * function verb_<id> in a file of this room, which parses parameters, asks daemon/query and renders
 * what it says. */
#ifndef PROTOND_CONTROL_VERBS_H
#define PROTOND_CONTROL_VERBS_H

#include "request.h"

#define X(id, method, who, help) verb_fn verb_##id;
WIRE_VERBS(X)
#undef X

extern verb_fn *const verb_table[WIRE_VERB_MAX];

#endif
