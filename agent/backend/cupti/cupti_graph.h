/* SPDX-License-Identifier: MIT. cupti_graph.h: graph nodes and the paths they were captured
 * under. The files of agent/backend/cupti include it. */
#ifndef PROTOND_CUPTI_GRAPH_H
#define PROTOND_CUPTI_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

int cupti_graph_init(void);
/* [any] given: what the thread that captures gave, for a kernel node; 0: none. It is the map's now. */
void cupti_node_created(uint64_t node, uint32_t graph, uint32_t path, bool kernel, uint32_t given);
/* [any] Gives that to the kernel node that was created last of all. */
void cupti_node_give(uint32_t given);
void cupti_node_cloned(uint64_t node, uint64_t original, uint32_t graph); /* [any] */
void cupti_node_gone(uint64_t node);                                      /* [any] */
void cupti_graph_gone(uint32_t graph);                                    /* [any] */
struct cupti_node {
	uint32_t path;  /* PATH_ROOT: unknown */
	uint32_t given; /* good until the next cupti_graph_reap() */
};
struct cupti_node cupti_node(uint64_t node); /* [agent] */
/* [agent] Frees what was destroyed before the previous call, or, unless `idle`, 60 s ago. */
void cupti_graph_reap(bool idle);
void cupti_graph_clear(void);     /* nobody watches graphs any more: forget them all */
uint32_t cupti_graph_nodes(void); /* live */

#endif
