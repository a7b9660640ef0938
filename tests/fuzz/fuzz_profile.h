/* SPDX-License-Identifier: MIT. fuzz_profile.h: what holds of every profile, whatever it was read
 * from. */
#ifndef FUZZ_PROFILE_H
#define FUZZ_PROFILE_H

#include <stdio.h>
#include <stdlib.h>

#include "must.h"
#include "profile.h"

static void check_tree(const struct profile *p)
{
	uint32_t i, m;

	MUST(p->n_nodes >= 1 && p->n_nodes <= PROFILE_NODES_MAX &&
		p->n_metrics <= PROFILE_METRICS_MAX);
	MUST(p->node[0].parent == PROFILE_NONE && p->node[0].depth == 0);
	for (i = 1; i < p->n_nodes; i++) {
		MUST(p->node[i].parent < i && p->node[i].name != NULL);
		MUST(p->node[i].depth == p->node[p->node[i].parent].depth + 1);
		MUST(p->node[i].depth <= PROFILE_DEPTH_MAX);
		for (m = 0; m < p->n_metrics; m++)
			MUST(profile_value(p, i, m)->type <= VALUE_VECTOR);
	}
	for (i = 0; i < p->n_configs; i++)
		MUST(p->config[i].node < p->n_nodes);
}

#endif
