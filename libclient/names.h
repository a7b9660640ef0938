/* SPDX-License-Identifier: MIT. names.h: process-local names and contexts; lock-free. The files of
 * libclient include it. */
#ifndef PROTOND_NAME_H
#define PROTOND_NAME_H

#include <stdint.h>

#define NAME_OTHER_OP 1u /* "(other)" where 0 means none */

uint32_t pd_intern(const char *text, uint32_t bytes);
const char *pd_name(uint32_t id, uint32_t *ret_bytes);
uint64_t pd_context_child(uint64_t parent, uint32_t name);
uint32_t pd_context_name(uint64_t context, uint64_t *ret_parent);

#endif
