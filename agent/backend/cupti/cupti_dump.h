/* SPDX-License-Identifier: MIT. cupti_dump.h: PROTOND_RAW_DUMP. The files of agent/backend/cupti
 * include it. */
#ifndef PROTOND_CUPTI_DUMP_H
#define PROTOND_CUPTI_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_state.h"

void cupti_dump_init(void);
uint64_t cupti_dump_seq(void); /* [any] */
struct cupti_dump_ids {
	uint64_t node, original;
	uint32_t graph, exec;
}; /* of a graph's callback; of a call, as DUMP_PARAMS */
void cupti_dump_callback(uint32_t domain, uint32_t cbid, const struct cupti_callback *d,
	const struct cupti_dump_ids *g);              /* [any]; d or g may be NULL */
void cupti_dump_buffer(const struct cupti_buffer *b); /* [agent] */
void cupti_dump_flush(bool force, bool begin);        /* [agent] */
void cupti_dump_level(enum cupti_level level);
void cupti_dump_device(const struct ring_device *d); /* [agent] */
void cupti_dump_sync(void);                          /* what is buffered goes to the file */

#endif
