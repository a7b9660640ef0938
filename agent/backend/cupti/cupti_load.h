/* SPDX-License-Identifier: MIT. cupti_load.h: the library: which one, its functions, its
 * strides, its errors. cupti.c includes it. */
#ifndef PROTOND_CUPTI_LOAD_H
#define PROTOND_CUPTI_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "cupti_abi.h"

struct backend_error;

/* 0, or -errno and words. Once loaded stays loaded. */
int cupti_load(struct backend_error *e);
/* -errno and the words for a CUptiResult that a start ended with. */
int cupti_error(struct backend_error *e, int result, const char *call);
/* Fills `ret_stride` by asking next_record() of one library; 0 for what it does not know. */
void cupti_strides(int (*next)(uint8_t *, size_t, void **), uint16_t ret_stride[KIND_MAX]);

#endif
