/* SPDX-License-Identifier: MIT. must.h: assertions that stay on in release builds of the daemon and
 * its tools. Not for the agent or the library: a job is never ended by us.
 *
 * MUST(e) is about what we control: who calls, in which state, on which thread, who owns what. What
 * comes from a job, a client, a file or the network is checked and refused instead. */
#ifndef PROTOND_BASE_MUST_H
#define PROTOND_BASE_MUST_H

#define MUST(e) (__builtin_expect(!(e), 0) ? must_fail(#e, __FILE__, __LINE__, __func__) : (void)0)

/* Says on standard error what did not hold and where, then aborts: systemd starts the daemon again,
 * and the journal and the database have what it knew. */
_Noreturn void must_fail(const char *what, const char *file, int line, const char *function);

#endif
