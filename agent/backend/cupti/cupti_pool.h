/* SPDX-License-Identifier: MIT. cupti_pool.h: activity buffers. cupti.c includes it. */
#ifndef PROTOND_CUPTI_POOL_H
#define PROTOND_CUPTI_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_state.h"

int cupti_pool_init(void);           /* prefaults; idempotent */
cupti_request_fn cupti_on_request;   /* [cupti] */
cupti_complete_fn cupti_on_complete; /* [cupti] */
void cupti_pool_forcing(bool on);
/* [agent] Calls walk() on each completed buffer, oldest first, then zeroes and returns it. */
uint64_t cupti_pool_drain(uint64_t (*walk)(const struct cupti_buffer *));
void cupti_pool_grow(void);    /* [agent] makes more buffers when half of them are out */
bool cupti_pool_pressed(void); /* [agent] half of them are out and none can be made */
void cupti_pool_idle(void);    /* gives the memory back; while unsubscribed */

#endif
