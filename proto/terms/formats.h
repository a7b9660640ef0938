/* SPDX-License-Identifier: MIT. formats.h: what a session can be written as: one table for the
 * library, Python, the daemon and the tools. A file is NAME.FORMAT unless its caller says
 * otherwise. Each is a file of its name in proto/export, which has its functions. */
#ifndef PROTOND_TERMS_FORMATS_H
#define PROTOND_TERMS_FORMATS_H

#include <stdbool.h>
#include <string.h>

/* clang-format off */
#define FORMATS(X) /* written from a TREE, a TIMELINE (as a FOLDER of files) or the SESSION as it is stored; read BACK or NOT; PROTONs or OURS; a file's usual ending; what reads it */ \
	X(hatchet,         TREE,     BACK, PROTONS, "hatchet",         "Proton's viewer, Hatchet, protonview")           \
	X(hatchet_msgpack, TREE,     BACK, PROTONS, "hatchet_msgpack", "likewise, smaller")                              \
	X(chrome_trace,    TIMELINE, NOT,  PROTONS, "json",            "ui.perfetto.dev, chrome://tracing")              \
	X(kineto,          TIMELINE, NOT,  OURS,    "pt.trace.json",   "HTA, TensorBoard's plugin: as PyTorch's profiler") \
	X(pftrace,         TIMELINE, NOT,  OURS,    "pftrace",         "ui.perfetto.dev, trace_processor: smaller")      \
	X(otf2,            FOLDER,   NOT,  OURS,    "otf2",            "Vampir, TAU, otf2-print; a folder")              \
	X(tensorboard,     TIMELINE, NOT,  OURS,    "tfevents",        "TensorBoard: scalars of each step")              \
	X(protond,         SESSION,  NOT,  OURS,    "protond",         "protonview, on any machine: the whole session")  \
	X(sqlite,          SESSION,  NOT,  OURS,    "sqlite",          "anything that reads SQLite: docs/sql.md")        \
	X(folded,          TREE,     NOT,  OURS,    "folded",          "flamegraph.pl, inferno, samply, speedscope")     \
	X(speedscope,      TREE,     NOT,  OURS,    "speedscope.json", "speedscope.app")                                 \
	X(pprof,           TREE,     NOT,  OURS,    "pb.gz",           "go tool pprof, Pyroscope, Parca")                \
	X(csv,             TREE,     NOT,  OURS,    "csv",             "a row a node: pandas, spreadsheets")             \
	X(csv_kernels,     TREE,     NOT,  OURS,    "kernels.csv",     "a row a kernel")                                 \
	X(json,            TREE,     NOT,  OURS,    "nodes.json",      "a row a node")                                   \
	X(json_kernels,    TREE,     NOT,  OURS,    "kernels.json",    "a row a kernel")                                 \
	X(svg,             TREE,     NOT,  OURS,    "svg",             "a flame graph: browsers, wikis, image viewers")  \
	X(svg_bars,        TREE,     NOT,  OURS,    "bars.svg",        "what took longest, as bars")
/* clang-format on */

/* For messages: "use " FORMAT_WORDS, "must end in " FORMAT_FILES. */
#define FORMAT_WORD_(name, ...)                                " " #name
#define FORMAT_FILE_(name, from, read, whose, ending, readers) " ." ending
#define FORMAT_WORDS                                           "one of" FORMATS(FORMAT_WORD_)
#define FORMAT_FILES                                           "one of" FORMATS(FORMAT_FILE_)
#define FORMAT_IS_FOLDER \
	"this format is a folder of files; `protonview export SESSION -o FOLDER` writes one"

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

/* By what the name ends in, an ending or a format's name: the longest, and of two alike the first in
 * the list. */
static inline enum format format_of_file(const char *path)
{
#define X(name, from, read, whose, ending, readers) [FORMAT_##name] = (ending),
	static const char *const endings[FORMAT_COUNT] = {FORMATS(X)};
#undef X
	const char *slash = strrchr(path, '/'), *dot = strchr(slash != NULL ? slash : path, '.');
	unsigned f;

	for (; dot != NULL; dot = strchr(dot + 1, '.'))
		for (f = 0; f < FORMAT_COUNT; f++)
			if (strcmp(format_names[f], dot + 1) == 0 ||
				strcmp(endings[f], dot + 1) == 0)
				return (enum format)f;
	return FORMAT_COUNT;
}

enum format_from {
	FORMAT_FROM_TREE,
	FORMAT_FROM_TIMELINE,
	FORMAT_FROM_FOLDER, /* a timeline, as a folder of files: protonview alone writes it */
	FORMAT_FROM_SESSION
};

static inline enum format_from format_from(enum format f)
{
#define X(name, from, ...) [FORMAT_##name] = FORMAT_FROM_##from,
	static const char from[FORMAT_COUNT] = {FORMATS(X)};
#undef X

	return f < FORMAT_COUNT ? (enum format_from)from[f] : FORMAT_FROM_TREE;
}

/* Proton writes it, too. */
static inline bool format_is_protons(enum format f)
{
#define IS_PROTONS                      true
#define IS_OURS                         false
#define X(name, from, read, whose, ...) [FORMAT_##name] = IS_##whose,
	static const bool protons[FORMAT_COUNT] = {FORMATS(X)};
#undef X
#undef IS_PROTONS
#undef IS_OURS

	return f < FORMAT_COUNT && protons[f];
}

/* Whether a session must have been recorded with data=trace for it. */
static inline bool format_needs_timeline(enum format f)
{
	return format_from(f) == FORMAT_FROM_TIMELINE || format_from(f) == FORMAT_FROM_FOLDER;
}

#endif
