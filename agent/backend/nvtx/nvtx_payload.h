/* SPDX-License-Identifier: MIT. nvtx_payload.h: values in the payloads of NVTX's extension, by the
 * schemas and enumerations that a program registers. nvtx.c includes it. [any], all of it. */
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

struct payload_word { /* nvtxPayloadEnum_t */
	const char *name;
	uint64_t value;
	int8_t is_flag;
};

struct payload_enum { /* nvtxPayloadEnumAttr_t */
	uint64_t fields;
	const char *name;
	const struct payload_word *word;
	size_t words, bytes;
	uint64_t id;
	const void *extension;
};

void nvtx_payloads_begin(const struct protond_host *host); /* before all others */

/* The schema's id, of this domain; 0: it is none, or the table is full. Kept for ever. */
uint64_t nvtx_schema(const void *domain, const struct payload_schema *s);
uint64_t nvtx_enum(const void *domain, const struct payload_enum *e); /* likewise */

/* The payloads of one event. */
struct payloads {
	const void *domain;
	const struct payload_data *at;
	size_t n;
};
/* The message that stands in one; NULL: none does. */
const char *nvtx_payload_message(const struct payloads *p);
/* Values become metrics of where the thread stands, or of `context`: sizes and fractions sums, others
 * properties. What cannot be read is counted as lost. */
void nvtx_payload_give(struct pd_thread *t, const struct payloads *p, uint64_t context);

#endif
