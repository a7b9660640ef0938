/* SPDX-License-Identifier: MIT. process_terms.h: what the daemon says of a process beside its job's own
 * RV_ATTACH flags: bits of j_process.flags and of process.flags of the database. Anybody may include
 * it. */
#ifndef PROTOND_TERMS_PROCESS_TERMS_H
#define PROTOND_TERMS_PROCESS_TERMS_H

#define PROCESS_CUTS   (1u << 16) /* its ABI has RING_ABI_CUTS */
#define PROCESS_JOINS  (1u << 17) /* its parent's automatic session is its own, too */
#define PROCESS_FORGED (1u << 18) /* it says that it did or lost more than there was time for */

#endif
