/* SPDX-License-Identifier: MIT. notes.h: what else people must know to believe a tree: sentences
 * of a session, and counts kept per session and process, whose words stand behind the number. A new
 * count is a row here and the place that calls note_count(). */
#ifndef PROTOND_NOTES_H
#define PROTOND_NOTES_H

#include <stdint.h>

#define NOTES_MAX     256u
#define NOTES_COUNTED 1000u /* numbers of notes that are counts start here */

/* clang-format off */
#define NOTES(X) /* name  words behind the count */                                               \
        X(NO_LAUNCH, "GPU records came without their launch: under (no launch)")                      \
        X(WIDENED,   "metric values mixed integers and floats: summed as floats")                     \
        X(TEXT,      "text values of a summed metric were left out: text is for (pty)")               \
        X(FORGOTTEN, "of the oldest activations forgotten: scopes across them miss that time")        \
        X(HIST,      "paths have no quantiles: the daemon's memory_mb is used up")  \
        X(SUMMED,    "events came too fast to be kept one by one: they are in the tree, not in the timeline") \
        X(JOURNAL,   "bytes of records were lost with a damaged journal")                             \
        X(STEPS,     "numbers of steps are in the tree alone: over 16 names, 64 at once, NaN, a step without end") \
        X(EARLY,     "launches had begun their work before their call came back: their delay counts as 0") \
        X(NO_FRAMES, "samples without frames: this Python's cannot be read (3.11 to 3.13 can, but no free-threaded build)") \
        X(SCALED,   "counter values are estimates, or 0: more counters were asked for than the CPU has free, so each had it for a part of the time, or never") \
        X(NO_NATIVE, "samples of threads on a CPU without native frames: perf_event_open is refused (sysctl kernel.perf_event_paranoid=2, ulimit -l, or in a container --cap-add PERFMON helps), or it is no x86-64")
/* clang-format on */
enum note_kind {
#define X(name, words) NOTE_##name,
	NOTES(X)
#undef X
		NOTE_MAX
};

struct note {
	int64_t process;
	uint64_t ns;
	char text[256];
};

#endif
