/* SPDX-License-Identifier: MIT. formats.h: what a session can be written as: one table for the
 * library, Python, the daemon and the tools. A file is NAME.FORMAT unless its caller says
 * otherwise. */
#ifndef PROTOND_TERMS_FORMATS_H
#define PROTOND_TERMS_FORMATS_H

#include <string.h>

#define FORMATS(X) X(hatchet) X(hatchet_msgpack) X(chrome_trace)

/* for messages */
#define FORMAT_WORDS "hatchet, hatchet_msgpack or chrome_trace"
#define FORMAT_FILES ".hatchet, .hatchet_msgpack, or .chrome_trace or .json for the timeline"

#define X(name) FORMAT_##name,
enum format { FORMATS(X) FORMAT_COUNT };
#undef X

#define X(name) [FORMAT_##name] = #name,
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

/* By what the name ends in: .FORMAT, or .json, which readers of timelines look for. */
static inline enum format format_of_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash != NULL ? slash : path, '.');

	if (dot != NULL && strcmp(dot, ".json") == 0)
		return FORMAT_chrome_trace;
	return dot != NULL ? format_of(dot + 1) : FORMAT_COUNT;
}

#endif
