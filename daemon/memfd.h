/* SPDX-License-Identifier: MIT. memfd.h: results too long for a message, as files in memory that
 * nobody can change once they are sealed. Any thread. */
#ifndef PROTOND_MEMFD_H
#define PROTOND_MEMFD_H

#include <stddef.h>

int memfd_new(void);    /* empty; a descriptor, or -errno */
int memfd_seal(int fd); /* read-only from here on, and at its beginning; -errno */
int memfd_of(const void *bytes, size_t n); /* these bytes, sealed; a descriptor, or -errno */

#endif
