/* SPDX-License-Identifier: MIT. domains.h: scopes that a session leaves out, by their domains. The fold's
 * files include it. Loop thread. */
#ifndef PROTOND_DOMAINS_H
#define PROTOND_DOMAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "part.h"
#include "process.h"

/* domain: a name's id */
bool domains_ask(struct part *part, uint32_t domain);
bool domains_are_operators(const struct process *p, uint32_t domain);

/* Is a scope with this path, or a number of it, not for this session? */
static inline bool domains_leave_out(struct part *part, uint32_t path)
{
	return part->picky && part->process->path[path].domain != 0 &&
	       domains_ask(part, part->process->path[path].domain);
}

/* Does the session stand otherwise in this path than others? */
static inline bool domains_matter(const struct part *part, uint32_t path)
{
	return part->picky && part->process->path[path].domains;
}

#endif
