/* SPDX-License-Identifier: MIT. critical_graph.h: the events of a time as a graph, whose edges lead to what could not begin
 * or end before. Pure; for critical.c.
 *
 * After HTA's critical path (Meta, HolisticTraceAnalysis, critical_path_analysis): edges are the order of the host's threads,
 * launches, the order of a stream, waits of the host for the GPU, waits of a stream for an event. An edge that was the last to
 * be waited for has the time that was waited, another has 0: so the longest path is as long as the whole, and its edges add up
 * to it, to the nanosecond. Threads that launch work in it count as one, of which the scope that began last has the time:
 * torch's backward thread works while another waits. */
#ifndef PROTOND_VIEWER_CRITICAL_GRAPH_H
#define PROTOND_VIEWER_CRITICAL_GRAPH_H

#include "critical.h"
#include "events.h"
#include "longest.h"

struct critical_label {   /* of edges */
	const char *name; /* of events.known; "": none */
	uint32_t node;    /* one that is called so */
	enum critical_part part;
};

struct critical_graph { /* critical_graph_fini() */
	uint32_t n_nodes, n_edges, n_labels;
	uint32_t *first; /* [n_nodes + 1], as longest.first */
	struct longest_edge *edge;
	struct critical_label *label;
	uint32_t end;       /* the node that all is about: the host's last moment */
	bool waits;         /* some call that waits for the GPU is in it */
	uint32_t behind;    /* pieces of work that were launched in it and ended after it, */
	uint64_t behind_ns; /* the last of them so long */
	uint32_t cap_edges, cap_labels;
};

/* Of [begin_ns, end_ns), until its thread tid is at the end; tid 0: until all of it is done. With the threads that launch.
 * Moves e's work where the GPU's clock is behind the host's. -ENOMEM. */
int critical_graph_new(const struct events *e, uint64_t begin_ns, uint64_t end_ns, uint32_t tid,
	struct critical_graph *ret);
void critical_graph_fini(struct critical_graph *g);

#endif
