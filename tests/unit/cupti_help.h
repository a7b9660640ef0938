/* SPDX-License-Identifier: MIT. cupti_help.h: the CUPTI backend over a small core, and callbacks as CUPTI makes
 * them. cupti_callback.c, cupti_call.c and cupti_walk.c include it. */
#ifndef CUPTI_HELP_H
#define CUPTI_HELP_H

#include "quick.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cupti_call.h"
#include "cupti_callback.h"
#include "cupti_graph.h"
#include "cupti_name.h"
#include "cupti_walk.h"

#include "../replay/fake_core.c" /* the engine's core, for the backend alone */

#define HELP static inline __attribute__((unused))

enum cbid { LAUNCH = 307, GRAPH_LAUNCH = 514, H2D = 277, SET8 = 216, BEGIN = 539, END = 497 };

HELP int node_id(void *node, uint64_t *ret)
{
	*ret = (uint64_t)(uintptr_t)node;
	return 0;
}

HELP int graph_id(void *graph, uint32_t *ret)
{
	*ret = (uint32_t)(uintptr_t)graph;
	return 0;
}

static uint32_t n_enabled; /* callbacks asked for */
HELP int enable_callback(uint32_t on, void *subscriber, uint32_t domain, uint32_t cbid)
{
	(void)subscriber;
	(void)domain;
	(void)cbid;
	n_enabled += on;
	return 0;
}

HELP void setup(void)
{
	cupti.api.enable_callback = enable_callback;
	ck_assert_int_eq(cupti_name_init(), 0);
	ck_assert_int_eq(cupti_graph_init(), 0);
	cupti.api.graph_node_id = node_id;
	cupti.api.graph_id = graph_id;
	cupti.api.graph_exec_id = graph_id;
	atomic_store(&cupti.epoch, 3);
	atomic_store(&cupti.level, LEVEL_ON);
}

HELP void driver(uint32_t cbid, enum cupti_site site, uint32_t correlation, int32_t ret)
{
	static _Thread_local uint64_t data;
	const struct cupti_callback d = {.site = site,
		.symbol = cbid == LAUNCH ? "a_kernel" : NULL,
		.ret_value = &ret,
		.correlation_data = &data,
		.correlation = correlation};

	cupti_on_callback(NULL, DOMAIN_DRIVER, cbid, &d);
}

HELP void api(uint32_t cbid, uint32_t correlation)
{
	driver(cbid, SITE_ENTER, correlation, 0);
	driver(cbid, SITE_EXIT, correlation, 0);
}

HELP void resource(uint32_t cbid, uintptr_t node, uintptr_t original, uintptr_t graph)
{
	struct cupti_graph g = {.graph = (void *)graph,
		.node = (void *)node,
		.original_node = (void *)original,
		.exec = (void *)graph};
	const struct cupti_resource r = {.descriptor = &g};

	cupti_on_callback(NULL, DOMAIN_RESOURCE, cbid, &r);
}

HELP void captured(uint32_t correlation, uintptr_t node)
{
	driver(LAUNCH, SITE_ENTER, correlation, 0);
	resource(RES_NODE_CREATED, node, 0, 1);
	driver(LAUNCH, SITE_EXIT, correlation, 0);
}

/* As the driver tells it: created in the executable graph, then a copy. */
HELP void cloned(uintptr_t node, uintptr_t original, uintptr_t graph)
{
	resource(RES_NODE_CREATED, node, 0, graph);
	resource(RES_NODE_CLONED, node, original, graph);
}

#endif
