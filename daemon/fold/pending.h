/* SPDX-License-Identifier: MIT. pending.h: the fold's own encoding of what is in flight. */
#ifndef PROTOND_PENDING_H
#define PROTOND_PENDING_H

#include <stdint.h>

struct fold;
struct process;

/* malloc()ed; -ENOMEM. */
int pending_pack(const struct process *p, void **ret_bytes, uint32_t *ret_n);
int pending_unpack(struct process *p, const void *bytes, uint32_t n); /* -EBADMSG, -ENOMEM */
/* What is of no process. */
int pending_pack_fold(const struct fold *f, void **ret_bytes, uint32_t *ret_n);
int pending_unpack_fold(struct fold *f, const void *bytes, uint32_t n); /* -EBADMSG */

#endif
