/* SPDX-License-Identifier: MIT. protonview_options.h: the one list of protonview's options:
 * parsing, --help, the man page and completion all come from it and from the verbs' (tool_verbs.h). */
#ifndef PROTOND_VIEWER_PROTONVIEW_OPTIONS_H
#define PROTOND_VIEWER_PROTONVIEW_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "apis.h"
#include "err.h"
#include "flat.h"
#include "formats.h"
#include "listing.h"
#include "operators.h"
#include "text.h"
#include "tool_verbs.h"

enum verb_id {
#define X(name, min, max, args, help) VERB_##name,
	VIEW_VERBS(X)
#undef X
		VERB_MAX
};

/* Which verbs an option goes with. */
enum {
#define X(name, min, max, args, help) ON_##name = 1 << VERB_##name,
	VIEW_VERBS(X)
#undef X
		ON_VIEWS = ON_tree | ON_flat | ON_diff,
	ON_PARTS = ON_breakdown | ON_bottlenecks | ON_critical | ON_launches | ON_streams |
		   ON_roofline | ON_steps | ON_sync,
	ON_SOURCES = ON_VIEWS | ON_PARTS | ON_export | ON_sql | ON_ops,
	ON_ALL = ON_SOURCES | ON_sessions | ON_series | ON_apis | ON_ranks | ON_memory,
	ON_DB = ON_ALL | ON_web | ON_report,
	ON_ANY = ON_DB | ON_import | ON_recover | ON_help,
};

/* clang-format off */
#define OPTIONS(X) /* id     short long           argument  verbs        help */                   \
	X(LIST,         'l', "list",         NULL,      ON_tree,     "list the metrics of the source and do nothing else") \
	X(METRICS,      'm', "metrics",      "M,...",   ON_VIEWS, "metrics to show: time/ms, avg_time/us, cpu_time/s, count, time/%, util, tflop16/s, gbyte/s, or any that -l lists; X/% is of ROOT's X, of an exclusive X (cpu_time) of the sum over all nodes, as in Proton") \
	X(INCLUDE,      'i', "include",      "REGEX",   ON_VIEWS | ON_ops, "only paths through a frame that matches (from its start, as Python's re.match)") \
	X(EXCLUDE,      'e', "exclude",      "REGEX",   ON_VIEWS | ON_ops, "without frames that match and all below them") \
	X(THRESHOLD,    't', "threshold",    "N[%]",    ON_tree,     "only nodes whose first metric is at least N, and their ancestors; N% is of ROOT's value, of an exclusive metric of the sum over all nodes, but of cpu_time and calls of the outermost scopes' sum") \
	X(DEPTH,        'd', "depth",        "N",       ON_tree | ON_diff, "show so many generations, of which ROOT is the first (100)") \
	X(FORMAT,       'f', "format",       "F",       ON_VIEWS | ON_export | ON_report, "frames as full, file_function_line, function_line or file_function; of an export " FORMAT_WORDS "; of a report html (the page, as without it), txt or json") \
	X(FLAVOUR,      0,   "flavour",      "NAME",    ON_export,   "of chrome_trace: kineto, with the names and args of PyTorch's profiler, which HTA and TensorBoard's plugin know (as -f kineto)") \
	X(SORTED,       0,   "print-sorted", NULL,      ON_tree,     "after the tree, all nodes sorted by the first metric") \
	X(DIFF_PROFILE, 0,   "diff-profile", "FILE",    ON_tree,     "show SOURCE minus FILE") \
	X(SORT,         's', "sort",         "KEY",     ON_VIEWS, "siblings by value (the costliest first), by name, or as they were first seen (the default); rows of flat by " FLAT_SORTS "; of flat -m by value (the default) or name") \
	X(BY,           0,   "by",           "WHAT",    ON_flat | ON_apis | ON_ops, "what is a row: a kernel's name (the default), or all GPU work of a family (gemm, norm, comm, ...) or a class (compute, h2d, ...), or a call (of the switches sync, queue, overhead, api); one of " FLAT_BY_WORDS "; of apis one of " APIS_BY_WORDS ": a call by itself, by the scope or by the thread that made it; of ops an operator's name with its inputs' dimensions (the default), its name alone, or both in each place that it is called from; one of " OPERATORS_BY_WORDS) \
	X(ROWS,         'n', "rows",         "N",       ON_tree | ON_flat | ON_sessions | ON_series | ON_sync | ON_apis | ON_critical | ON_launches | ON_streams | ON_roofline | ON_steps | ON_report | ON_ops | ON_ranks | ON_memory, "show so many rows: of a list the first; of a tree the nodes with the most, and what they stand in; 0: all") \
	X(WIDE,         'w', "wide",         NULL,      ON_flat,     "with launch configurations, where the source has them") \
	X(GATE,         'g', "gate",         "LIMIT",   ON_diff | ON_bottlenecks, "exit with 1 when the total, or a node of more than 1% of it, is worse by more than LIMIT percent, a new node by its share of the total before; of bottlenecks, when a verdict is HIGH, MEDIUM or LOW, as LIMIT says, or worse") \
	X(OUTPUT,       'o', "output",       "FILE",    ON_export | ON_report | ON_sql | ON_series | ON_import | ON_recover, "write to FILE, in the format that its name ends in (" FORMAT_FILES "; - is standard output), or the session that import makes, the copy that recover makes, or the rows of sql or series as CSV") \
	X(ALL,          'a', "all",          NULL,      ON_sessions | ON_bottlenecks, "also sessions that ended with nothing in them; of bottlenecks, also the rules that found nothing") \
	X(SET,          0,   "set",          "KEY=V,...", ON_bottlenecks | ON_report, "limits other than the table's (--all lists them): RULE.threshold, severity.high and severity.medium in percent, preset=strict (20, 5 and 5 MB a step); @FILE: a line for each. Before that lines `bottlenecks.KEY = V` of protond.conf count") \
	LISTING_FILTERS(X, ON_sessions) \
	X(FORCE,        0,   "force",        NULL,      ON_export | ON_report | ON_sql | ON_series | ON_import, "overwrite FILE") \
	X(AS,           0,   "as",           "NAME",    ON_import,   "the session's name (default: FILE's)") \
	X(DB,           0,   "db",           "FILE",    ON_DB,       "read this database; SOURCE is a session in it") \
	X(PROCESS,      0,   "process",      "P",       ON_SOURCES | ON_series | ON_apis | ON_memory, "one process of a session only: a rank, or pid:N") \
	X(RANK,         0,   "rank",         "N",       ON_SOURCES | ON_series | ON_apis | ON_memory, "as --process N") \
	X(PHASE,        0,   "phase",        "N",       ON_SOURCES | ON_apis, "one phase (segment) of a session only") \
	X(WINDOW,       0,   "window",       "A..B",    ON_export | ON_sql | ON_PARTS, "of a timeline, what runs between A and B: in seconds since it began, or with the unit ms, us or ns") \
	X(STEP,         0,   "step",         "N[..M]",  ON_export | ON_sql | ON_PARTS | ON_memory, "of a timeline, what runs during the step N, or N to M, from 1: scopes named step, step N or ProfilerStep#N; of steps, these; of memory, growth over these") \
	X(SCOPE,        0,   "scope",        "PATH",    ON_PARTS | ON_memory, "of a timeline, while scopes were open whose path ends in PATH, names between /; they count as steps, also for --step; of memory, scopes whose path has it") \
	X(EVERY,        0,   "every",        "T",       ON_export | ON_sql | ON_PARTS, "windows of T (1, 500ms, 20us) of the timeline, from its begin, count as steps, also for --step, which export and sql need beside it: of a server, a notebook, whatever has no steps of its own") \
	X(DEVICE,       0,   "device",       "D",       ON_memory,   "of this device alone: cuda:0, or 0; host") \
	X(QUEUES,       0,   "queues",       NULL,      ON_breakdown, "of each stream instead: how many launches were outstanding when each was called, the mean and the most, and how many found the queue of 1024 full; of a session with a timeline") \
	X(PORT,         0,   "port",         "N",       ON_web,      "listen there, or not at all; without it, on 8051 or the next that is free") \
	X(BIND,         0,   "bind",         "ADDR",    ON_web,      "listen at this address of the machine, or at unix:PATH, in place of 127.0.0.1: whoever reaches it reads along") \
	X(ALLOW_HOST,   0,   "allow-host",   "NAME,...", ON_web,     "further names that a browser may know it by: behind a proxy, JupyterHub") \
	X(NO_OPEN,      0,   "no-open",      NULL,      ON_web,      "start no browser, print the address alone") \
	X(PERFETTO,     0,   "perfetto",     NULL,      ON_web,      "open Perfetto's public page, ui.perfetto.dev, on SOURCE's timeline: the page comes from the network, the timeline goes from 127.0.0.1 into the browser, once, and to no other machine") \
	X(JSON,         0,   "json",         NULL,      ON_ALL | ON_report | ON_import | ON_recover | ON_help, "one JSON object on standard output, also for errors") \
	X(XLA_DUMP,     0,   "xla-dump",     "DIR",     ON_tree | ON_flat | ON_export | ON_report | ON_web, "operators of JAX by what the program called them, with file and line: DIR is what XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\" wrote") \
	X(FULL_NAMES,   0,   "full-names",   NULL,      ON_VIEWS,    "kernels' names whole: with their parameters, and not cut to the line") \
	X(COLOR,        0,   "color",        "WHEN",    ON_ALL, "auto, always or never; auto: on a terminal, unless NO_COLOR is set") \
	X(NO_COLOR,     0,   "no-color",     NULL,      ON_ALL, "as --color never") \
	X(HELP,         'h', "help",         NULL,      ON_ANY, "this text") \
	X(MAN,          0,   "man",          NULL,      ON_ANY, "the manual page's source") \
	X(VERSION,      'V', "version",      NULL,      ON_ANY, "the version")
/* clang-format on */

enum option_id {
#define X(id, letter, name, argument, verbs, help) OPT_##id,
	OPTIONS(X)
#undef X
		OPT_MAX
};

struct options {
	enum verb_id verb;
	bool implied;               /* tree, without the word */
	const char *value[OPT_MAX]; /* NULL: not given; a flag that was: "" */
	int n_args;
	char **args;
};

/* Prints what may follow these words, for a shell; `sessions` prints the sessions that begin
 * with a text. */
void options_complete(int n, char *const *word, void (*sessions)(const char *begin));

/* argv is rearranged. -EINVAL with words. -h and -V are left to the caller. */
int options_parse(int argc, char **argv, struct options *ret, struct err *e);
/* Two lines behind those words. */
void options_usage(FILE *f, enum verb_id verb);

/* verb NULL: all of it. -EINVAL with words: there is no such verb. */
int options_help(struct text *t, const char *verb, struct err *e);
void options_man(struct text *t); /* protonview(1), roff */

#endif
