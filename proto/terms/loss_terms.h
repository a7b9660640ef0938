/* SPDX-License-Identifier: MIT. loss_terms.h: the causes of loss: nothing is lost silently. Anybody
 * may include it. A new cause is a row here and the place that counts it. */
#ifndef PROTOND_TERMS_LOSS_TERMS_H
#define PROTOND_TERMS_LOSS_TERMS_H

#include <stdbool.h>
#include <stdint.h>

/* clang-format off */
/* The numbers stand in LOST records and in loss.cause of the database. */
#define LOST_CAUSES(X) /* name     number  words for people */                              \
        X(LANE_FULL,   1, "the lane was full, and none was left for sums: the daemon was slow or away, or too many threads") \
        X(NESTED,      2, "inside a signal handler that interrupted the agent")             \
        X(NO_LANE,     3, "the thread got no lane: too many threads, or too little tmpfs or memory") \
        X(GPU_DROPPED, 4, "CUPTI dropped records")                                          \
        X(GPU_REFUSED, 5, "times that no activity buffer was free: more GPU work at once than could be written down (PROTOND_CUPTI_BUFFERS)") \
        X(GPU_INVALID, 6, "CUPTI gave no usable times")                                     \
        X(GPU_UNKNOWN, 7, "records of a kind that this agent cannot walk")                  \
        X(PATHS,       8, "there was no room for the path: counted under (other)")          \
        X(NAMES,       9, "there was no room for the name: shown as (other)")               \
        X(BAD,        10, "records that broke the ring's laws")                             \
        X(LAUNCHES,   11, "launches without a GPU record")                                  \
        X(NODES,      12, "tree nodes over a ceiling, the session's or memory_mb: counted under (other)")       \
        X(SKIPPED,    13, "an entry of the journal was left out: it had ended the daemon twice")            \
        X(CHILDREN,   14, "forked children whose events did not reach protond")                 \
        X(GIVEN_UP,   15, "lanes of ended jobs, given up: too much memory of one user waited to be read")            \
        X(JOURNAL,    16, "lost with a damaged journal: guessed, one for 24 bytes of records")                \
        X(CAPTURED,   17, "numbers of a CUDA graph's capture: too many, or not read in time")                \
        X(NVTX,       18, "values of NVTX ranges: more than there is room for, of an unknown schema, or of a kind that is not read") \
        X(SAMPLES,    19, "looks at threads that came late: so many threads are looked at less than 50 times a second, each look counts for longer") \
        X(FLIGHT,     20, "launches, or GPU records, let go before their other half came: too many were in flight (memory_mb, or 1 048 576 of a process)") \
        X(UNDELIVERED, 21, "launches whose GPU records CUPTI still held when the process ended (killed, _exit, exec, or a last flush that took too long): end the session before that, or synchronize and return from main")
/* clang-format on */

enum lost_cause {
#define X(name, number, words) LOST_##name = (number),
	LOST_CAUSES(X)
#undef X
		LOST_CAUSE_MAX
};

/* It is in the launches that have no record, where these are counted by themselves. */
static inline bool loss_is_unmatched(uint32_t cause)
{
	return cause == LOST_LAUNCHES || cause == LOST_FLIGHT || cause == LOST_UNDELIVERED;
}

/* The same, as CUPTI has it: its words of records that it let go. Such a launch counts in both. */
static inline bool loss_is_record(uint32_t cause)
{
	return cause == LOST_GPU_DROPPED || cause == LOST_GPU_REFUSED;
}

/* For people. */
static inline const char *loss_words(uint32_t cause)
{
	switch (cause) {
#define X(name, number, words) \
	case number:           \
		return words;
		LOST_CAUSES(X)
#undef X
	default:
		return "for a cause unknown to this version";
	}
}

#endif
