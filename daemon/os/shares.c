/* SPDX-License-Identifier: MIT. shares.c: how many descriptors are for whom. */
#include "shares.h"

#include <sys/resource.h>

#define FDS_OWN     24u /* sockets, loop, journal, database, directories */
#define FDS_EXPORTS 1024u

struct shares shares_of_limit(void)
{
	struct rlimit l;
	uint32_t n = 1u << 20, exports, rest;
	struct shares s;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < n)
		n = (uint32_t)l.rlim_cur;
	s.clients = n / 8;
	exports = n / 16 < FDS_EXPORTS ? n / 16 : FDS_EXPORTS;
	s.lent = exports < 4 ? 2 : exports / 2; /* one in the making takes three */
	rest = FDS_OWN + s.clients + exports;
	s.jobs = n > rest ? n - rest : 0;
	return s;
}
