/* SPDX-License-Identifier: MIT. ring_name.h: names of files below rings/. For daemon/. */
#ifndef PROTOND_JOBS_RING_NAME_H
#define PROTOND_JOBS_RING_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define RING_NAME_BYTES_TEXT 40u

/* The uuid in hex, without a suffix. */
void ring_name(const uint8_t uuid[16], char ret[RING_NAME_BYTES_TEXT]);
/* "32 hex digits" and that suffix, nothing else. */
bool ring_name_uuid(const char *name, const char *suffix, uint8_t ret[16]);

#endif
