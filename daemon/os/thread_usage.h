/* SPDX-License-Identifier: MIT. thread_usage.h: what the kernel says that a thread has had of a CPU, waited for one, and faulted,
 * since it began. Of /proc, two small files. Any thread. */
#ifndef PROTOND_THREAD_USAGE_H
#define PROTOND_THREAD_USAGE_H

#include <stdbool.h>
#include <stdint.h>

struct thread_usage {
	uint64_t cpu_ns, run_queue_ns; /* ran; was ready, and others ran */
	uint64_t minor_faults, major_faults;
};

/* pid, tid: as this process sees them. false: they are gone, or may not be seen. */
bool thread_usage_read(uint32_t pid, uint32_t tid, struct thread_usage *ret);
/* Of the two files' texts. */
bool thread_usage_parse(const char *schedstat, const char *stat, struct thread_usage *ret);

#endif
