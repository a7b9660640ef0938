/* SPDX-License-Identifier: MIT. futex.h: a futex and a lock. The files of libclient include it. */
#ifndef PROTOND_FUTEX_H
#define PROTOND_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

uint64_t pd_now_ms(void);
void pd_lock(_Atomic uint32_t *lock);
void pd_unlock(_Atomic uint32_t *lock);
void pd_changed(void);
void pd_wake(_Atomic uint32_t *word); /* whoever waits for it */
/* Until *word differs from seen or deadline (pd_now_ms()) has passed; or (true) a signal's handler
 * has run on this thread. */
bool pd_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t deadline);

#endif
