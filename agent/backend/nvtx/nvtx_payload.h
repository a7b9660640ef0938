/* SPDX-License-Identifier: MIT. nvtx_payload.h: numbers in the payloads of NVTX's extension, by the
 * schemas that a program registers. nvtx.c includes it. [any], all of it. */
#ifndef PROTOND_NVTX_PAYLOAD_H
#define PROTOND_NVTX_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "agent.h"

struct payload_data { /* nvtxPayloadData_t */
	uint64_t schema;
	size_t bytes; /* SIZE_MAX: as many as the schema has */
	const void *at;
};

struct payload_entry { /* nvtxPayloadSchemaEntry_t */
	uint64_t flags, type;
	const char *name, *description;
	uint64_t detail, offset;
	const void *semantics, *reserved;
};

struct payload_schema { /* nvtxPayloadSchemaAttr_t */
	uint64_t fields;
	const char *name;
	uint64_t type, flags;
	const struct payload_entry *entry;
	size_t entries, bytes, pack;
	uint64_t id;
	const void *extension;
};

/* The schema's id, of this domain; 0: it is none, or the table is full. Kept for ever. */
uint64_t nvtx_schema(
	const struct protond_host *host, const void *domain, const struct payload_schema *s);
/* The message that stands in a payload; NULL: none does. */
const char *nvtx_payload_message(const void *domain, const struct payload_data *p, size_t n);
/* Its numbers become metrics of where the thread stands: sizes and fractions sums, others
 * properties. */
void nvtx_payload_give(
	struct pd_thread *t, const void *domain, const struct payload_data *p, size_t n);

#endif
