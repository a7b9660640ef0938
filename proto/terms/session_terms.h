/* SPDX-License-Identifier: MIT. session_terms.h: the words and numbers of sessions, jobs and their
 * GPU: one list each, for records, journal, database, wire and people. Anybody may include it.
 *
 * A number stands in records, the journal and the fold; its word in the database, on the wire and
 * on screens. Neither ever changes; a new one is a row.
 */
#ifndef PROTOND_TERMS_SESSION_TERMS_H
#define PROTOND_TERMS_SESSION_TERMS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* clang-format off */
#define SESSION_STATES(X) /* name  number  word */                                           \
        X(ACTIVE,     1, "active")                                                           \
        X(INACTIVE,   2, "inactive")                                                         \
        X(FINALIZING, 3, "finalizing") /* finalize was said; waits for launches in flight */ \
        X(FINALIZED,  4, "finalized")                                                        \
        X(INTERRUPTED, 5, "interrupted") /* over, as that: whoever would end it was killed */
#define SESSION_SOURCES(X) /* who asked for it */ \
        X(JOB, 1, "job") X(CONTROL, 2, "control") X(RUN, 3, "run") X(AUTO, 4, "auto") X(IMPORT, 5, "import")
/* Where what is known of a process comes from: its GPU, a recording of one, another profiler's file
 * (a session out of several has the first such word). */
#define PROCESS_SOURCES(X)                                              \
        X(LIVE, 0, "live") X(REPLAY, 1, "replay") X(KINETO, 2, "kineto") \
        X(CHROME, 3, "chrome") X(NSYS, 4, "nsys") X(HATCHET, 5, "hatchet")
#define SESSION_DATAS(X)    X(TREE, 0, "tree") X(TRACE, 1, "trace") X(BOTH, 2, "both")
#define SESSION_CONTEXTS(X) X(SHADOW, 0, "shadow") X(PYTHON, 1, "python")
#define SESSION_CPUS(X)     X(ON, 0, "on") X(OFF, 1, "off")
#define SESSION_GPUS(X)     X(WANTED, 0, "on") X(ARMED, 1, "armed") X(NONE, 2, "none")
#define SESSION_HOOKS(X)    X(NONE, 0, "none") X(TRITON, 1, "triton") X(TORCH, 2, "torch")
/* What else is recorded: bits, off unless asked for, each with a cost of its own. */
#define SWITCH_WORDS "sync, overhead, queue, api, cpu, alloc, ops, counters"
#define SESSION_SWITCHES(X) /* name  bit  word  what it records */ \
        X(SYNC,     1, "sync",     "calls that wait for the GPU") \
        X(OVERHEAD, 2, "overhead", "what the driver and CUPTI spend on themselves") \
        X(QUEUE,    4, "queue",    "time in launches, and from there to the GPU") \
        X(API,      8, "api",      "every call of the CUDA runtime and driver but those that only read, as cudaGetDevice") \
        X(CPU_SAMPLES, 16, "cpu", "what threads are in, about 100 times a second") \
        X(ALLOC,   32, "alloc",    "memory that the driver and torch give, and who holds it") \
        X(OPS,     64, "ops",      "operators of PyTorch, as scopes") \
        X(COUNTERS, 128, "counters", "what the CPU counts in scopes: instructions, cycles, misses")
/* Whose its files are. Of a session with a word here they hold what Triton's Proton would have put
 * there and no more, of which 3.6 has the kernels alone in a timeline. */
#define SESSION_MODES(X) X(NONE, 0, "") X(PROTON, 1, "proton") X(PROTON_36, 2, "proton-3.6")
/* Which jobs are in it. A word that ends in a colon goes on with what is matched. */
#define SESSION_MATCHES(X) \
        X(PID, 1, "pid:") X(TOKEN, 2, "token") X(USER, 3, "all") X(COMMAND, 4, "command:") X(RING, 5, "ring")
/* How a process ended. */
#define END_REASONS(X) \
        X(EXITED, 1, "exited") X(KILLED, 2, "killed") X(LOST, 3, "lost") X(EXEC, 4, "exec")
#define GPU_STATES(X)                                                                \
        X(NONE,     0, "none")     /* not subscribed */                              \
        X(ARMED,    1, "armed")    /* subscribed, graph callbacks only */            \
        X(ON,       2, "on")                                                         \
        X(FAILED,   3, "failed")   /* wanted, not to be had: with a code and words */ \
        X(ASIDE,    4, "aside")    /* let go for another tool */                     \
        X(RESIDUAL, 5, "residual") /* not subscribed, the vendor's library still costs */
#define DEVICE_TYPES(X) X(CUDA, 1, "CUDA") X(HIP, 2, "HIP")
/* clang-format on */

enum session_state {
#define X(name, number, word) SESSION_IS_##name = (number),
	SESSION_STATES(X)
#undef X
};
static inline int session_is_over(uint32_t state)
{
	return state >= SESSION_IS_FINALIZED;
}

enum session_source {
#define X(name, number, word) SOURCE_##name = (number),
	SESSION_SOURCES(X)
#undef X
};
enum process_source {
#define X(name, number, word) FROM_##name = (number),
	PROCESS_SOURCES(X)
#undef X
};
enum session_data {
#define X(name, number, word) SESSION_##name = (number),
	SESSION_DATAS(X)
#undef X
};
enum session_context {
#define X(name, number, word) SESSION_##name = (number),
	SESSION_CONTEXTS(X)
#undef X
};
enum session_cpu {
#define X(name, number, word) SESSION_CPU_##name = (number),
	SESSION_CPUS(X)
#undef X
};
enum session_gpu {
#define X(name, number, word) SESSION_GPU_##name = (number),
	SESSION_GPUS(X)
#undef X
};
enum session_mode {
#define X(name, number, word) MODE_##name = (number),
	SESSION_MODES(X)
#undef X
};
enum session_switch {
#define X(name, bit, word, help) SWITCH_##name = (bit),
	SESSION_SWITCHES(X)
#undef X
};
enum match_kind {
#define X(name, number, word) MATCH_##name = (number),
	SESSION_MATCHES(X)
#undef X
};
enum end_reason {
#define X(name, number, word) END_##name = (number),
	END_REASONS(X)
#undef X
};
enum gpu_state {
#define X(name, number, word) GPU_##name = (number),
	GPU_STATES(X)
#undef X
};

/* A list as its words by number; NULL where it has none. */
struct term_list {
	const char *const *word;
	uint32_t n;
};
#define X(name, number, text) [number] = (text),
/* clang-format off */
#define TERM_LIST(list, LIST)                                      \
        static const char *const list##_word[] = {LIST(X)};        \
        static const struct term_list list = {list##_word, sizeof(list##_word) / sizeof(*list##_word)}
TERM_LIST(term_session_states, SESSION_STATES);
TERM_LIST(term_session_sources, SESSION_SOURCES);
TERM_LIST(term_process_sources, PROCESS_SOURCES);
TERM_LIST(term_session_datas, SESSION_DATAS);
TERM_LIST(term_session_contexts, SESSION_CONTEXTS);
TERM_LIST(term_session_cpus, SESSION_CPUS);
TERM_LIST(term_session_gpus, SESSION_GPUS);
TERM_LIST(term_session_hooks, SESSION_HOOKS);
TERM_LIST(term_session_modes, SESSION_MODES);
TERM_LIST(term_session_matches, SESSION_MATCHES);
TERM_LIST(term_end_reasons, END_REASONS);
TERM_LIST(term_gpu_states, GPU_STATES);
TERM_LIST(term_device_types, DEVICE_TYPES);
/* clang-format on */
#undef X
#undef TERM_LIST

static const char *const switch_words[] = {
#define X(name, bit, word, help) word,
	SESSION_SWITCHES(X)
#undef X
};
static const uint8_t switch_bits[] = {
#define X(name, bit, word, help) (bit),
	SESSION_SWITCHES(X)
#undef X
};

/* The bits of "sync,api": words parted by commas. False: one of them is none. */
static inline bool switches_read(const char *words, uint8_t *ret)
{
	uint8_t bits = 0;
	size_t n, i;

	for (;; words += n + 1) {
		n = strcspn(words, ",");
		for (i = 0; i < sizeof(switch_bits); i++)
			if (strncmp(words, switch_words[i], n) == 0 && switch_words[i][n] == '\0')
				break;
		if (i == sizeof(switch_bits))
			return false;
		bits |= switch_bits[i];
		if (words[n] == '\0')
			break;
	}
	*ret = bits;
	return true;
}

/* The word of a number, or `other` where the list has none. */
static inline const char *term_word(const struct term_list *l, uint32_t number, const char *other)
{
	return number < l->n && l->word[number] != NULL ? l->word[number] : other;
}

/* The number of a word, or `other`; NULL is no word. */
static inline uint32_t term_number(const struct term_list *l, const char *word, uint32_t other)
{
	uint32_t i;

	for (i = 0; word != NULL && i < l->n; i++)
		if (l->word[i] != NULL && strcmp(l->word[i], word) == 0)
			return i;
	return other;
}

#endif
