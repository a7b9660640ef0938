/* SPDX-License-Identifier: MIT. futex.c: a futex, and a lock of one word for the cold paths; a
 * forked child frees it by storing 0. */
#include "futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "doorbell.h"

uint64_t pd_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

void pd_wake(_Atomic uint32_t *word)
{
	const int e = errno;

	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	errno = e;
}

bool pd_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t deadline)
{
	const uint64_t now = pd_now_ms(), left = deadline > now ? deadline - now : 0;
	const struct timespec ts = {
		.tv_sec = (time_t)(left / 1000), .tv_nsec = (long)(left % 1000) * 1000000};
	const int e = errno;
	bool signalled = false;

	if (left != 0 && syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &ts, NULL, 0) < 0)
		signalled = errno == EINTR;
	errno = e;
	return signalled;
}

void pd_changed(void)
{
	/* release: what changed is written; pairs with the acquire loads of `change` */
	atomic_fetch_add_explicit(&pd.change, 1, memory_order_release);
	pd_wake(&pd.change);
}

void pd_lock(_Atomic uint32_t *lock)
{
	uint32_t seen = 0;

	/* acquire, both: pair with the release in pd_unlock() */
	if (atomic_compare_exchange_strong_explicit(
		    lock, &seen, 1, memory_order_acquire, memory_order_relaxed))
		return;
	while (atomic_exchange_explicit(lock, 2, memory_order_acquire) != 0)
		pd_wait(lock, 2, pd_now_ms() + 1000);
}

void pd_unlock(_Atomic uint32_t *lock)
{
	/* release: pairs with the acquires in pd_lock() */
	if (atomic_exchange_explicit(lock, 0, memory_order_release) == 2)
		pd_wake(lock);
}
