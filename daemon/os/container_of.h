/* SPDX-License-Identifier: MIT. container_of.h: from a handle to what it is embedded in. For the
 * rooms of the daemon. */
#ifndef PROTOND_OS_CONTAINER_OF_H
#define PROTOND_OS_CONTAINER_OF_H

#include <stddef.h>

#define container_of(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

#endif
