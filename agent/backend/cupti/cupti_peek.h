/* SPDX-License-Identifier: MIT. cupti_peek.h: text that may be gone. cupti_name.c and
 * cupti_dump.c include it. */
#ifndef PROTOND_CUPTI_PEEK_H
#define PROTOND_CUPTI_PEEK_H

#include <stddef.h>

/* [agent] Copies text that may be gone; bytes copied, 0 when unreadable. Ends in a NUL. */
size_t cupti_peek(const char *text, char *buf, size_t bytes);

#endif
