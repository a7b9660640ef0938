/* SPDX-License-Identifier: MIT. inquire.h: questions to the database, users in turn: one of each user is
 * under way until it is answered, and his next ones wait for that, so that whoever asks a thousand at
 * once keeps nobody else from an answer. Loop thread. */
#ifndef PROTOND_QUERY_INQUIRE_H
#define PROTOND_QUERY_INQUIRE_H

#include <stdint.h>

#include "store.h"

struct daemon;

/* As store_ask() of a STORE_QUESTION, now or when that user's former ones have been answered. */
void inquire(struct daemon *d, uint32_t uid, store_work_fn *work, void *arg, store_done_fn *done);

#endif
