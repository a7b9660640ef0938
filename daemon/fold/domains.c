/* SPDX-License-Identifier: MIT. domains.c: scopes that a session leaves out: of NVTX domains, and, as if
 * they were one, PyTorch's operators. The job records them for whoever wants them, and says with each
 * path which domain its scope is of. */
#include "domains.h"

#include <string.h>

#include "op_terms.h"
#include "range_name.h"
#include "session_terms.h"

bool domains_are_operators(const struct process *p, uint32_t domain)
{
	return p->name[domain].bytes == sizeof(OP_DOMAIN) - 1 &&
	       memcmp(p->name[domain].text, OP_DOMAIN, sizeof(OP_DOMAIN) - 1) == 0;
}

bool domains_ask(struct part *part, uint32_t domain)
{
	const struct process *p = part->process;

	if (part->domain_asked != domain) { /* one after the other they are mostly the same */
		part->domain_asked = domain;
		part->domain_out =
			domains_are_operators(p, domain)
				? (part->switches & SWITCH_OPS) == 0
				: part->domains != NULL &&
					  !range_domain_is_in(part->domains, p->name[domain].text,
						  p->name[domain].bytes);
	}
	return part->domain_out;
}
