/* SPDX-License-Identifier: MIT. storm_tls.c: somebody else's library, whose thread-local memory has
 * to stand where a thread's stack begins, as ours has. There is little room for that after the
 * start of a program. */
#include <stddef.h>

#ifndef BYTES
#define BYTES 64
#endif

static __thread unsigned char mine[BYTES] __attribute__((tls_model("initial-exec"), aligned(8)));

unsigned char *storm_tls(size_t i);

unsigned char *storm_tls(size_t i)
{
	return &mine[i % BYTES];
}
