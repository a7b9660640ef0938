/* SPDX-License-Identifier: MIT. domains.h: NVTX domains that a session leaves out. The fold's files
 * include it. Loop thread. */
#ifndef PROTOND_DOMAINS_H
#define PROTOND_DOMAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "part.h"
#include "process.h"

/* Is a scope with this path, or a number of it, not for this session? */
bool domains_leave_out(struct part *part, uint32_t path);

/* Does the session stand otherwise in this path than others? */
static inline bool domains_matter(const struct part *part, uint32_t path)
{
	return part->domains != NULL && part->process->path[path].domains;
}

#endif
