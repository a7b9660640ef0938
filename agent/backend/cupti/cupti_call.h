/* SPDX-License-Identifier: MIT. cupti_call.h: calls that wait for the GPU. cupti_callback.c and
 * cupti.c include it. */
#ifndef PROTOND_CUPTI_CALL_H
#define PROTOND_CUPTI_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_dump.h"
#include "cupti_state.h"

/* [any] A callback of the driver's domain or the runtime's, of whatever call. */
void cupti_call(uint32_t domain, uint32_t cbid, const struct cupti_callback *d);
/* [any] While WANT_API, of any id below CBID_MAX: the same for most calls, with little work. False:
 * cupti_call() is to do it. */
bool cupti_call_usual(uint32_t domain, uint32_t cbid, const struct cupti_callback *d);
/* [any] At the EXIT of a copy that began at `begin`: flags of its LAUNCH, and its name there. */
uint32_t cupti_copy_took(uint32_t cbid, uint64_t begin, uint32_t *ret_name);
/* Inside agent_enter(). The number that records give to a stream of the driver's or the runtime's; the
 * default ones are the context's. of_thread: 0 is the thread's default one. False: CUPTI does not say. */
bool cupti_stream_id(void *context, void *stream, bool of_thread, uint32_t *ret);
/* Likewise: of which stream and event a call is that ends, for the raw dump. False: of neither. */
bool cupti_call_params(
	uint32_t domain, uint32_t cbid, const struct cupti_callback *d, struct cupti_dump_ids *ret);
void cupti_call_enable(void); /* their callbacks, of the present subscriber */

#endif
