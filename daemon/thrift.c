/* SPDX-License-Identifier: MIT. thrift.c: whether the daemon takes more of the machine than it should.
 * Pure. */
#include "thrift.h"

bool thrift_look(struct thrift *t, uint64_t now_ns, uint64_t cpu_ns, uint64_t percent)
{
	const uint64_t ns = now_ns - t->at_ns, cpu = cpu_ns - t->cpu_ns;
	const bool was = t->over, first = t->at_ns == 0;

	t->at_ns = now_ns;
	t->cpu_ns = cpu_ns;
	if (percent == 0) {
		t->over = true;
	} else if (!first && cpu * 100 > ns * percent) {
		t->over = true;
		t->over_ns = now_ns;
	} else if (!first && cpu * 200 > ns * percent) {
		t->over_ns = now_ns;
	} else if (now_ns - t->over_ns >= THRIFT_NS) {
		t->over = false;
	}
	return t->over != was;
}
