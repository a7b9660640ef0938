/* SPDX-License-Identifier: MIT. calls.h: what the names of a vendor's calls, of Kineto's records of
 * waiting and of copies say. For the readers and place.c. */
#ifndef PROTOND_IMPORT_CALLS_H
#define PROTOND_IMPORT_CALLS_H

#include <stdint.h>

/* Of gpu_class_is_sync(); CLASS_CPU: none. A name may end with its version: "_v3020", "_ptsz". */
uint8_t call_class(const char *name);
uint8_t record_class(const char *name); /* "Stream Sync": likewise */
uint8_t copy_class(const char *name);   /* "Memcpy HtoD (Pinned -> Device)", "MemcpyH2D" */

#endif
