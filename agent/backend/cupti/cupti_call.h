/* SPDX-License-Identifier: MIT. cupti_call.h: calls that wait for the GPU. cupti_callback.c and
 * cupti.c include it. */
#ifndef PROTOND_CUPTI_CALL_H
#define PROTOND_CUPTI_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_state.h"

/* [any] A callback of the driver's domain or the runtime's, of whatever call. */
void cupti_call(uint32_t domain, uint32_t cbid, const struct cupti_callback *d);
/* [any] While WANT_API, of any id below CBID_MAX: the same for most calls, with little work. False:
 * cupti_call() is to do it. */
bool cupti_call_usual(uint32_t domain, uint32_t cbid, const struct cupti_callback *d);
/* [any] At the EXIT of a copy that began at `begin`: flags of its LAUNCH, and its name there. */
uint32_t cupti_copy_took(uint32_t cbid, uint64_t begin, uint32_t *ret_name);
void cupti_call_enable(void); /* their callbacks, of the present subscriber */

#endif
