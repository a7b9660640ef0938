/* SPDX-License-Identifier: MIT. shares.h: how many descriptors jobs, clients and exports that
 * somebody has open may take; the rest of the limit is our own. For the rooms of the daemon. Any
 * thread. */
#ifndef PROTOND_OS_SHARES_H
#define PROTOND_OS_SHARES_H

#include <stdint.h>

struct shares {
	uint32_t jobs, clients, lent;
};
struct shares shares_of_limit(void);

#endif
