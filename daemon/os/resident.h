/* SPDX-License-Identifier: MIT. resident.h: the memory of a process that is in RAM. Any thread. */
#ifndef PROTOND_OS_RESIDENT_H
#define PROTOND_OS_RESIDENT_H

#include <stdint.h>

uint64_t resident_bytes(uint32_t pid); /* 0: no such process, or it is not shown to us */

#endif
