/* SPDX-License-Identifier: MIT. import.h: another profiler's file as a session of ours. A reader
 * knows one kind of file and hands what it finds to a stage (stage.h), which place.c makes a session
 * of. Believes no byte: every table has a ceiling, and what is left out is counted. */
#ifndef PROTOND_IMPORT_IMPORT_H
#define PROTOND_IMPORT_IMPORT_H

#include <stdint.h>

#include "err.h"

struct sqlite3;

/* clang-format off */
/* What of a file is not in the session, or not where it stood: X(name, words behind a number). */
#define IMPORT_LEFT(X)                                                                             \
	X(COUNTERS,    "counter samples: a session has no place for them")                         \
	X(INSTANTS,    "instants: they have no duration")                                          \
	X(FLOWS,       "arrows: launches are found by their correlation, where there is one")      \
	X(PROJECTIONS, "projections of scopes onto the GPU: the scopes themselves are here")       \
	X(WAITS,       "records of waiting and of events whose call the file does not have, and of the profiler's own work") \
	X(BROKEN,      "events without a usable time: missing, or not a time")     \
	X(UNNAMED,     "events of a kind that is not known")                                       \
	X(OPEN,        "scopes that began or ended, but not both")                                 \
	X(LONG,        "events of more than 1 MiB")                                                \
	X(NODES,       "events under (other): the file has more different paths than a session")   \
	X(THREADS,     "events of further threads or processes, taken for one: there are more than 65536 or 4096")   \
	X(CONFIGS,     "kernels without their launch configuration: there are more than 65536")    \
	X(VECTORS,     "values that are lists")                                                    \
	X(VALUES,      "metrics of GPU work, in the end of a scope, or within another value")      \
	X(OVERLAPS,    "scopes that overlap another of their thread in part: they stand in what is open over all of them") \
	X(PATHS,       "GPU operations whose launch the file does not have: they stand where it says, else at the top")
/* clang-format on */
enum import_left {
#define X(name, words) LEFT_##name,
	IMPORT_LEFT(X)
#undef X
		LEFT_MAX
};
extern const char *const import_left_words[LEFT_MAX];

struct import_taken {
	const char *source; /* the word in the session */
	uint64_t calls; /* of the scopes: that wait for the GPU, or say what is to be waited for */
	uint64_t events, scopes, values, blocks, kernels, copies;
	uint64_t matched, unmatched; /* launches */
	uint64_t left[LEFT_MAX];
};

struct import_input {
	int fd;           /* it begins at its first byte */
	const char *file; /* for notes and words */
};

struct import_options {
	const char *name;              /* the session's */
	const struct import_input *in; /* of one kind; of several each has processes of its own */
	uint32_t n_files;
	/* How far it is, from 0 to 1. NULL: nobody asks. */
	void (*progress)(void *arg, double part);
	void *progress_arg;
};

/* The files become the one session of `to`, an empty database. -EBADMSG with words: one is none of the
 * kinds, or damaged, and at which byte; -ENOSPC, -ENOMEM. */
int import_files(const struct import_options *o, struct sqlite3 *to, struct import_taken *ret,
	struct err *e);

#endif
