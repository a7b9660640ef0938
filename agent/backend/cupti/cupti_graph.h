/* SPDX-License-Identifier: MIT. cupti_graph.h: graph nodes and the paths they were captured
 * under. The files of agent/backend/cupti include it. */
#ifndef PROTOND_CUPTI_GRAPH_H
#define PROTOND_CUPTI_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

int cupti_graph_init(void);
void cupti_node_created(uint64_t node, uint32_t graph, uint32_t path);    /* [any] */
void cupti_node_cloned(uint64_t node, uint64_t original, uint32_t graph); /* [any] */
void cupti_node_gone(uint64_t node);                                      /* [any] */
void cupti_graph_gone(uint32_t graph);                                    /* [any] */
uint32_t cupti_node_path(uint64_t node); /* [agent] PATH_ROOT: unknown */
/* [agent] Frees what was destroyed before the previous call, or, unless `idle`, 60 s ago. */
void cupti_graph_reap(bool idle);
void cupti_graph_clear(void);     /* nobody watches graphs any more: forget them all */
uint32_t cupti_graph_nodes(void); /* live */

#endif
