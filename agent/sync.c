/* SPDX-License-Identifier: MIT. sync.c: waiting: a futex, and the lock of the engine's cold paths.
 * The lock is one word, so a forked child makes it free by storing 0. The lock of the tables is
 * held with signals blocked: a handler on the same thread would wait for ever, and one that jumps
 * away would leave it held for ever. */
#include "sync.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "core.h"

#define SPINS 64

void agent_wait_ns(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns)
{
	const struct timespec ts = {
		.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
	const int e = errno;

	(void)syscall(
		SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, timeout_ns < 0 ? NULL : &ts, NULL, 0);
	errno = e;
}

void agent_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ms)
{
	agent_wait_ns(
		word, seen, timeout_ms > INT64_MAX / 1000000 ? INT64_MAX : timeout_ms * 1000000);
}

void agent_wake(_Atomic uint32_t *word)
{
	const int e = errno;

	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	errno = e;
}

/* 0 free, 1 held, 2 held and somebody waits. */
bool agent_lock_for(_Atomic uint32_t *lock, uint32_t timeout_ms)
{
	const uint64_t until = agent_monotonic_ns() + (uint64_t)timeout_ms * 1000000;
	uint32_t seen = 0;

	for (int i = 0; i < SPINS; i++) {
		seen = 0;
		/* acquire: pairs with the release in agent_unlock() */
		if (atomic_compare_exchange_weak_explicit(
			    lock, &seen, 1, memory_order_acquire, memory_order_relaxed))
			return true;
	}
	/* acquire: pairs with the release in agent_unlock() */
	while (atomic_exchange_explicit(lock, 2, memory_order_acquire) != 0) {
		const uint64_t now = agent_monotonic_ns();

		if (timeout_ms != UINT32_MAX && now >= until)
			return false;
		agent_wait(lock, 2,
			timeout_ms == UINT32_MAX ? -1 : (int64_t)((until - now) / 1000000 + 1));
	}
	return true;
}

void agent_lock_tables(sigset_t *ret_mask)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, ret_mask);
	(void)agent_lock_for(&core.table_lock, UINT32_MAX);
}

void agent_unlock_tables(const sigset_t *mask)
{
	agent_unlock(&core.table_lock);
	pthread_sigmask(SIG_SETMASK, mask, NULL);
}

void agent_unlock(_Atomic uint32_t *lock)
{
	/* release: pairs with the acquires in agent_lock_for() */
	if (atomic_exchange_explicit(lock, 0, memory_order_release) == 2)
		agent_wake(lock);
}
