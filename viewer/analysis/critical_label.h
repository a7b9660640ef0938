/* SPDX-License-Identifier: MIT. critical_label.h: what the edges of the critical path's graph are called. */
#ifndef PROTOND_VIEWER_CRITICAL_LABEL_H
#define PROTOND_VIEWER_CRITICAL_LABEL_H

#include "critical_graph.h"
#include "table.h"

struct critical_labels {
	const struct known *known; /* names of nodes */
	struct table at;           /* g's labels by node and part; the caller's to table_fini() */
	bool failed;               /* out of memory, since the first that found none */
};

/* The label of a node's part, which g then has. node UINT32_MAX: no name. */
uint32_t critical_label(struct critical_labels *l, struct critical_graph *g,
	enum critical_part part, uint32_t node);
/* The same name in several places is one, also in g's edges. 0, or -ENOMEM. */
int critical_labels_merge(struct critical_graph *g);

#endif
