/* SPDX-License-Identifier: MIT. domains.c: NVTX domains that a session leaves out. The job records
 * them for whoever wants them, and says with each path which domain its scope is of. */
#include "domains.h"

#include "range_name.h"
#include "ring.h"

bool domains_leave_out(struct part *part, uint32_t path)
{
	const struct process *p = part->process;
	const uint32_t domain = p->path[path].domain;

	if (part->domains == NULL || domain == NAME_NONE)
		return false;
	if (part->domain_asked != domain) { /* one after the other they are mostly the same */
		part->domain_asked = domain;
		part->domain_out = !range_domain_is_in(
			part->domains, p->name[domain].text, p->name[domain].bytes);
	}
	return part->domain_out;
}
