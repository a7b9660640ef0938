/* SPDX-License-Identifier: MIT. cupti_walk.h: activity records. cupti.c includes it. */
#ifndef PROTOND_CUPTI_WALK_H
#define PROTOND_CUPTI_WALK_H

#include <stdint.h>

struct cupti_buffer;

uint64_t cupti_walk(const struct cupti_buffer *b); /* [agent] records written */
uint64_t cupti_delivered(void);                    /* first records so far */
void cupti_walk_reset(void);                       /* a new epoch */

#endif
