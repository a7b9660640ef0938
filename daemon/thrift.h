/* SPDX-License-Identifier: MIT. thrift.h: whether the daemon takes more of the machine than it should.
 * Pure. */
#ifndef PROTOND_DAEMON_THRIFT_H
#define PROTOND_DAEMON_THRIFT_H

#include <stdbool.h>
#include <stdint.h>

struct thrift {
	uint64_t cpu_ns, at_ns; /* at the last look */
	uint64_t over_ns;       /* when it was last too much */
	bool over;
};

#define THRIFT_NS 10000000000ull /* of less than half, before it is enough */

/* Once a second or so. cpu_ns: that it took so far. True: `over` changed. */
bool thrift_look(struct thrift *t, uint64_t now_ns, uint64_t cpu_ns, uint64_t percent);

#endif
