/* SPDX-License-Identifier: MIT. framed.h: a stored row's bytes: four letters that say what it is, then one zstd frame. */
#ifndef PROTOND_SESSION_FRAMED_H
#define PROTOND_SESSION_FRAMED_H

#include <stddef.h>
#include <stdint.h>

/* The caller frees *ret. -ENOMEM. */
int framed_pack(const char magic[4], const void *raw, size_t n, void **ret, uint32_t *ret_n);
/* How many bytes there are in raw[room]; 0: it is none of these, is damaged, or has no room. */
size_t framed_unpack(const char magic[4], const void *bytes, size_t n, void *raw, size_t room);

/* Room that unpacking takes, as the frame says, which may lie: it is refused then. At most `most`. */
size_t framed_room(const void *bytes, size_t n, size_t most);

#endif
