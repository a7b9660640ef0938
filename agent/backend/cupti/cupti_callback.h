/* SPDX-License-Identifier: MIT. cupti_callback.h: what the application's threads run. cupti.c
 * includes it. */
#ifndef PROTOND_CUPTI_CALLBACK_H
#define PROTOND_CUPTI_CALLBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_state.h"

cupti_callback_fn cupti_on_callback; /* [any] */
/* The callbacks of a level; from LEVEL_ON, for a new subscriber. */
void cupti_enable(enum cupti_level from, enum cupti_level to);
/* Unsubscribe and finalize at the end of an API call, as CUPTI wants it. False: no call came within
 * timeout_ms, and the subscriber is still there, to be unsubscribed. */
bool cupti_finalize_in_call(uint32_t timeout_ms);

#endif
