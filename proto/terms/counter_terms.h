/* SPDX-License-Identifier: MIT. counter_terms.h: what a CPU and its kernel count of a thread, for the switch
 * `counters`. Anybody may include it.
 *
 * A number stands in COUNTERS records and never changes; a new counter is a row at the end. Its word is its metric
 * without the unit. type and config are those of perf_event_open().
 */
#ifndef PROTOND_TERMS_COUNTER_TERMS_H
#define PROTOND_TERMS_COUNTER_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COUNTER_WORDS                                                               \
	"instructions cycles cache_references cache_misses branches branch_misses " \
	"task_clock page_faults major_faults context_switches migrations"
#define COUNTERS_DEFAULT "instructions,cycles,cache_misses,branch_misses"
#define COUNTERS_AT_ONCE 8u

/* clang-format off */
/* kernel: it happens in the kernel, which may be for root alone; of all others what happens in the program counts. */
#define CPU_COUNTERS(X) /* name          number  metric              type config kernel */ \
        X(INSTRUCTIONS,     0, "instructions",     0, 1, false) \
        X(CYCLES,           1, "cycles",           0, 0, false) \
        X(CACHE_REFERENCES, 2, "cache_references", 0, 2, false) \
        X(CACHE_MISSES,     3, "cache_misses",     0, 3, false) \
        X(BRANCHES,         4, "branches",         0, 4, false) \
        X(BRANCH_MISSES,    5, "branch_misses",    0, 5, false) \
        X(TASK_CLOCK,       6, "task_clock (ns)",  1, 1, false) \
        X(PAGE_FAULTS,      7, "page_faults",      1, 2, false) \
        X(MAJOR_FAULTS,     8, "major_faults",     1, 6, false) \
        X(CONTEXT_SWITCHES, 9, "context_switches", 1, 3, true)  \
        X(MIGRATIONS,      10, "migrations",       1, 4, true)
/* clang-format on */

enum cpu_counter {
#define X(name, number, metric, type, config, kernel) COUNTER_##name = (number),
	CPU_COUNTERS(X)
#undef X
		COUNTER_MAX
};

struct cpu_counter_row {
	const char *metric;
	uint32_t type;
	uint64_t config;
	bool kernel;
};

static inline const struct cpu_counter_row *cpu_counter(uint32_t number)
{
	static const struct cpu_counter_row row[COUNTER_MAX] = {
#define X(name, number, metric, type, config, kernel) \
	[number] = {(metric), (type), (config), (kernel)},
		CPU_COUNTERS(X)
#undef X
	};

	return &row[number];
}

/* The numbers of "instructions,page_faults", in that order, each once. 0: one of these words is none, or they are more
 * than COUNTERS_AT_ONCE. */
static inline uint32_t counters_read(const char *words, uint8_t ret[COUNTERS_AT_ONCE])
{
	uint32_t n = 0, seen = 0, i;
	size_t bytes;

	for (;; words += bytes + 1) {
		bytes = strcspn(words, ",");
		for (i = 0; i < COUNTER_MAX; i++)
			if (strcspn(cpu_counter(i)->metric, " ") == bytes &&
				strncmp(cpu_counter(i)->metric, words, bytes) == 0)
				break;
		if (i == COUNTER_MAX || ((seen >> i & 1) == 0 && n == COUNTERS_AT_ONCE))
			return 0;
		if ((seen >> i & 1) == 0)
			ret[n++] = (uint8_t)i;
		seen |= 1u << i;
		if (words[bytes] == '\0')
			return n;
	}
}

#endif
