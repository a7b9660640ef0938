/* SPDX-License-Identifier: MIT. intern.h: the insert-only tables of the ring, by the names that
 * libprotond gives. The engine's files include it; a backend has agent_name() and its like. */
#ifndef PROTOND_AGENT_TABLE_H
#define PROTOND_AGENT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

int table_init(void);
uint32_t table_name_of(uint32_t local);        /* [any] ring name of a process-local name */
uint32_t table_context_path(uint64_t context); /* [any] path of a context handle */
/* [any] As agent_path_child for a scope, and says whether the answer may be remembered: an (other)
 * may not, so that each scope that goes there is counted. */
uint32_t table_scope(uint32_t parent, uint32_t local, bool *ret_keep);

#endif
