/* SPDX-License-Identifier: MIT. pages.h: large pages, for memory that will be filled. No state. */
#ifndef PROTOND_BASE_PAGES_H
#define PROTOND_BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGES_LARGE ((size_t)2 << 20)

/* What lies between is mapped by the kernel 2 MiB at a time, where it does so: advice alone. */
static inline void pages_large(void *p, size_t bytes)
{
	const uintptr_t from = ((uintptr_t)p + PAGES_LARGE - 1) & ~(PAGES_LARGE - 1),
			to = ((uintptr_t)p + bytes) & ~(PAGES_LARGE - 1);

	if (from < to)
		(void)madvise((char *)p + (from - (uintptr_t)p), to - from, MADV_HUGEPAGE);
}

#endif
