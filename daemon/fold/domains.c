/* SPDX-License-Identifier: MIT. domains.c: NVTX domains that a session leaves out. The job records
 * them for whoever wants them, and says with each path which domain its scope is of. */
#include "domains.h"

#include "range_name.h"

bool domains_ask(struct part *part, uint32_t domain)
{
	const struct process *p = part->process;

	if (part->domain_asked != domain) { /* one after the other they are mostly the same */
		part->domain_asked = domain;
		part->domain_out = !range_domain_is_in(
			part->domains, p->name[domain].text, p->name[domain].bytes);
	}
	return part->domain_out;
}
