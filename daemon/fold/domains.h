/* SPDX-License-Identifier: MIT. domains.h: NVTX domains that a session leaves out. The fold's files
 * include it. Loop thread. */
#ifndef PROTOND_DOMAINS_H
#define PROTOND_DOMAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "part.h"
#include "process.h"

bool domains_ask(struct part *part, uint32_t domain); /* a name's id */

/* Is a scope with this path, or a number of it, not for this session? */
static inline bool domains_leave_out(struct part *part, uint32_t path)
{
	return part->domains != NULL && part->process->path[path].domain != 0 &&
	       domains_ask(part, part->process->path[path].domain);
}

/* Does the session stand otherwise in this path than others? */
static inline bool domains_matter(const struct part *part, uint32_t path)
{
	return part->domains != NULL && part->process->path[path].domains;
}

#endif
