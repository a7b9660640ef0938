/* SPDX-License-Identifier: MIT. cupti_find.h: candidates for the library. cupti_load.c includes
 * it. */
#ifndef PROTOND_CUPTI_FIND_H
#define PROTOND_CUPTI_FIND_H

#include <stdint.h>

struct cupti_found {
	void *handle;
	char path[256];
	char tried[160]; /* where it was looked for, for people */
};
/* driver_major 0: unknown. 0, -ENOENT, or -ELIBBAD when the one asked for does not load. */
int cupti_find(uint32_t driver_major, struct cupti_found *ret);

#endif
