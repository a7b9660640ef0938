/* SPDX-License-Identifier: MIT. tool_verbs.h: the verbs of protonctl and of protonview, once. Each tool
 * makes its table of its own list, and knows by the other's whom somebody meant to ask. */
#ifndef PROTOND_VIEWER_TOOL_VERBS_H
#define PROTOND_VIEWER_TOOL_VERBS_H

#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
/* Of protonctl: its file, which has its code, its options and its words (command_NAME), and a name
 * here, as help lists them. Those of CTL_HIDDEN it does not: they are for the build and the shells. */
#define CTL_VERBS(X) \
	X(run) X(start) X(stop) X(activate) X(set) X(finalize) X(pause) X(resume) \
	X(sessions) X(jobs) X(where) X(top) X(status) X(env) X(backends) \
	X(tag) X(note) X(rename) X(doctor) X(delete) X(prune) X(daemon) X(shutdown) X(version) X(completion) X(help)
#define CTL_HIDDEN(X) X(man) X(complete)

/* Of protonview: view_NAME() in protonview_NAME.c of viewer/view or viewer/web, and a row here. */
#define VIEW_VERBS(X) /* verb    args  what is given, help */ \
	X(tree,     1, 1, "SOURCE", "the tree of scopes and kernels (also without the word `tree`)") \
	X(flat,     1, 1, "SOURCE", "one row for each kernel, over all its paths") \
	X(breakdown, 1, 1, "SOURCE", "what the time of each GPU is made of: computing, communication and copies that nothing hides, idle by cause; it adds up to the whole (also idle)") \
	X(steps,    1, 1, "SOURCE", "each step of each process: how long it took, what its GPUs did in it, what it was told; the slow ones, the warm-up, the pace, samples and tokens a second and MFU; with --scope or --every of what has no steps") \
	X(series,   1, 2, "SOURCE [NAME]", "numbers over time: what the job told, and what its GPUs and their host read; with NAME those whose name has it, point by point") \
	X(bottlenecks, 1, 1, "SOURCE", "what is slow, how much, where, what to do and what that gives back at most; --gate HIGH fails on such a verdict; docs/bottlenecks.md") \
	X(sync,     1, 1, "SOURCE", "calls that wait for the GPU (a stream, an event, all of it, a blocking copy; recorded with -d both -s sync), by where they are made: how long they blocked, and how long the GPU had nothing to do behind them") \
	X(ranks,    1, 1, "SOURCE", "the processes of a session side by side: which of them the others wait for in collectives, and the scopes and kernels in which they differ most") \
	X(memory,   1, 1, "SOURCE", "memory that the driver and PyTorch's allocator gave (recorded with -s alloc), by device and kind: how much is held, who held the peak, how it grows from step to step, and what is still held at the end") \
	X(ops,      1, 1, "SOURCE", "operators of PyTorch (recorded with -s ops), a row for each name and its inputs' dimensions: calls, time of GPU and CPU, TFLOP/s and GB/s") \
	X(critical, 1, 1, "SOURCE", "the critical path of a step: which host work, launches and GPU work lead to its end, and what the step would take with each a tenth faster; docs/analyses.md") \
	X(launches, 1, 1, "SOURCE", "kernels by how they are launched: grid, block, registers, shared memory, the occupancy that allows, waves of blocks and the tail of the last one, small kernels") \
	X(streams,  1, 1, "SOURCE", "each stream of each GPU (of a session with a timeline): how long it worked, how much of that beside others, its gaps, its efficiency") \
	X(roofline, 1, 1, "SOURCE", "what was given flops or bytes, against the peaks of its GPU: what bounds it, how much of the roof it reaches, and MFU") \
	X(apis,     1, 1, "SOURCE", "calls of the CUDA runtime and driver (recorded with -s api): how often, how long, how many failed; by scope or thread with --by") \
	X(diff,     2, 2, "BEFORE AFTER", "what changed from one to the other; --gate fails on a regression") \
	X(web,      0, 64, "[SOURCE...]", "look at them in a browser: a page of this machine's own, for this user; without any, at what the database holds; docs/web.md") \
	X(report,   1, 1, "SOURCE -o FILE", "the same page as one file of HTML with what there is to see inside: to be mailed, and opened anywhere; with -f txt or json, which need no FILE, a summary, what took the most, the bottlenecks, and what to do in which part of a step") \
	X(sessions, 0, 0, "", "what the database holds (also ls)") \
	X(export,   1, 1, "SOURCE -o FILE", "write FILE in the format that its name ends in, or that -f names") \
	X(sql,      2, 2, "SOURCE SELECT", "a SELECT over the session's tables: nodes, kernel_names, scopes, kernels, copies, launches, steps, ...; docs/sql.md") \
	X(import,   1, 128, "FILE... [-o NEW]", "another profiler's FILE as a session of its own, NEW (FILE.protond, here): PyTorch's profile and any Chrome trace (also .gz), nsys' SQLite export, .hatchet; a file of each rank: one session of all; docs/imports.md") \
	X(recover,  1, 1, "FILE [-o NEW]", "copy what can be read of a damaged database to NEW (FILE.recovered), which must not exist yet; says what is missing (also --recover)") \
	X(help,     0, 1, "[VERB|man]", "this text, or the manual page's source")
/* clang-format on */

extern const char *const verbs_of_ctl[], *const verbs_of_view[]; /* NULL behind the last */
bool verbs_have(const char *const *verbs, const char *word);
/* "; did you mean 'top'?", of one's own, or "; did you mean 'protonctl top'?" where that is nearer; or
 * "". */
struct verbs_question {
	char text[80];
};
struct verbs_question verbs_question(
	const char *word, const char *const *own, const char *tool, const char *const *other);
/* "TOOL WORD...", quoted where a shell needs it, of argv from 1 on; cut to fit. */
void verbs_line(const char *tool, int argc, char *const *argv, char *ret, size_t n);

#endif
