/* SPDX-License-Identifier: MIT. sync.h: a futex, and the lock of the engine's cold paths. The
 * engine's files include it. */
#ifndef PROTOND_AGENT_SYNC_H
#define PROTOND_AGENT_SYNC_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

void agent_lock_tables(sigset_t *ret_mask); /* core.table_lock, and no signal meanwhile */
void agent_unlock_tables(const sigset_t *mask);
bool agent_lock_for(_Atomic uint32_t *lock, uint32_t timeout_ms);
void agent_unlock(_Atomic uint32_t *lock);
void agent_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ms);    /* < 0: for ever */
void agent_wait_ns(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns); /* likewise */
void agent_wake(_Atomic uint32_t *word);

#endif
