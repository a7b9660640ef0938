/* SPDX-License-Identifier: MIT. ring_name.h: names of files below rings/. For daemon/. */
#ifndef PROTOND_JOBS_RING_NAME_H
#define PROTOND_JOBS_RING_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define RING_NAME_BYTES_TEXT 96u

/* UUID, or uUID/UUID where another user's rings are, without a suffix. */
void ring_name(uint32_t uid, const uint8_t uuid[16], char ret[RING_NAME_BYTES_TEXT]);
/* "32 hex digits" and that suffix, nothing else. */
bool ring_name_uuid(const char *name, const char *suffix, uint8_t ret[16]);

#endif
