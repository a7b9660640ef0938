/* SPDX-License-Identifier: MIT. relabel.h: another name, note or tag for a session, live or stored. */
#ifndef PROTOND_QUERY_RELABEL_H
#define PROTOND_QUERY_RELABEL_H

#include "ask.h"
#include "find.h"
#include "label.h"

/* The text is one that may be (label.h). *s of the answer has it. -EEXIST: another live session has
 * that name; -ENOSPC: no more tags. */
void query_relabel(struct daemon *d, const struct session_ref *s, enum label_kind kind,
	const char *text, session_found_fn *done, void *arg);

#endif
