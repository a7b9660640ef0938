/* SPDX-License-Identifier: MIT. formats.h: what a session can be written as: one table for the
 * library, Python, the daemon and the tools. A file is NAME.FORMAT unless its caller says
 * otherwise. Each is a file of its name in proto/export, which has its functions. */
#ifndef PROTOND_TERMS_FORMATS_H
#define PROTOND_TERMS_FORMATS_H

#include <stdbool.h>
#include <string.h>

/* clang-format off */
#define FORMATS(X) /* written from a TREE or a TIMELINE; read BACK or NOT; a further ending of files */ \
	X(hatchet,         TREE,     BACK, "") \
	X(hatchet_msgpack, TREE,     BACK, "") \
	X(chrome_trace,    TIMELINE, NOT,  "json")

/* For messages; a test holds them against the list. */
#define FORMAT_WORDS "hatchet, hatchet_msgpack or chrome_trace"
#define FORMAT_FILES ".hatchet, .hatchet_msgpack, or .chrome_trace or .json for the timeline"
/* clang-format on */

#define X(name, ...) FORMAT_##name,
enum format { FORMATS(X) FORMAT_COUNT };
#undef X

#define X(name, ...) [FORMAT_##name] = #name,
static const char *const format_names[FORMAT_COUNT] = {FORMATS(X)};
#undef X

/* FORMAT_COUNT: not known. */
static inline enum format format_of(const char *name)
{
	unsigned f = 0;

	while (f < FORMAT_COUNT && strcmp(format_names[f], name) != 0)
		f++;
	return (enum format)f;
}

/* By what the name ends in. */
static inline enum format format_of_file(const char *path)
{
#define X(name, from, read, also) [FORMAT_##name] = (also),
	static const char *const others[FORMAT_COUNT] = {FORMATS(X)};
#undef X
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash != NULL ? slash : path, '.');
	unsigned f = 0;

	while (dot != NULL && f < FORMAT_COUNT && strcmp(format_names[f], dot + 1) != 0 &&
		(others[f][0] == '\0' || strcmp(others[f], dot + 1) != 0))
		f++;
	return dot != NULL ? (enum format)f : FORMAT_COUNT;
}

/* Whether a session must have been recorded with data=trace for it. */
static inline bool format_needs_timeline(enum format f)
{
	enum { FORMAT_FROM_TREE, FORMAT_FROM_TIMELINE };
#define X(name, from, ...) [FORMAT_##name] = FORMAT_FROM_##from,
	static const char from[FORMAT_COUNT] = {FORMATS(X)};
#undef X

	return f < FORMAT_COUNT && from[f] == FORMAT_FROM_TIMELINE;
}

#endif
