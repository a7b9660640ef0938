/* SPDX-License-Identifier: MIT. web_evidence.h: where in a timeline a verdict can be seen. For web_bottlenecks.c. */
#ifndef PROTOND_WEB_WEB_EVIDENCE_H
#define PROTOND_WEB_WEB_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

struct facts;
struct verdict;
struct zoom;

struct evidence {
	uint64_t t0, t1;   /* to look at; t1 0: nowhere */
	uint64_t from, to; /* what it is about, inside; to 0: all of it */
};
/* A step that shows it, and of its place in the tree the longest piece in that step; without steps the longest of all.
 * Bounded: one question to the timeline, two where a step lacks the name. */
void evidence_find(
	struct zoom *z, const struct facts *f, const struct verdict *v, struct evidence *ret);

#endif
