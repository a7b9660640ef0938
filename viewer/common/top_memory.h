/* SPDX-License-Identifier: MIT. top_memory.h: what a look says of memory. For top_look.c and who shows it. */
#ifndef PROTOND_VIEWER_TOP_MEMORY_H
#define PROTOND_VIEWER_TOP_MEMORY_H

#include "top_look.h"

int look_memory_take(struct look *l, const msgpack_object *answer); /* -ENOMEM */
/* Words for the RAM of its jobs, and for each device with allocations; fn's false ends it. */
void look_memory_words(const struct look *l, look_word_fn *fn, void *arg);

#endif
