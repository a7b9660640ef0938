/* SPDX-License-Identifier: MIT. spans.h: the times of a session that were asked for: a window, a phase, steps, or while a scope was
 * open. For what reads a whole timeline and judges a part of it. */
#ifndef PROTOND_VIEWER_SPANS_H
#define PROTOND_VIEWER_SPANS_H

#include "err.h"
#include "parts.h"
#include "profile.h"

#define SPANS_MAX (1u << 20) /* times a scope was open, of a process */

struct spans {                               /* spans_begin(), spans_fini() */
	const struct profile_select *select; /* what was asked; borrowed */
	struct parts_spans window;           /* of the session; the others lie in it */
	struct parts_spans of; /* of the process at hand: in order, apart, once it is settled */
	uint32_t times, most_steps; /* steps or scopes of all processes; the most that one has */
	bool failed, many;
};

/* Whether it is a part of a session at all. */
bool spans_asked(const struct profile_select *s);
/* -EINVAL with words: these do not go together. */
int spans_check(const struct profile_select *s, struct err *e);
void spans_begin(struct spans *sp, const struct profile_select *s);
/* The same without its times: what is idle may begin before a window, and end behind it. */
struct profile_select spans_whole(const struct profile_select *s);

/* In the order of a timeline's form. */
void spans_open(struct spans *sp, struct timeline *w);
void spans_process(struct spans *sp);
void spans_scope(struct spans *sp, struct timeline *w, const struct timeline_scope *s);
/* sp->of is the process'. Returns how many steps or scopes that were; 0 also of a window without them. */
uint32_t spans_settle(struct spans *sp);

/* How much of [begin, end) lies in sp->of. */
uint64_t spans_clip(const struct spans *sp, uint64_t begin, uint64_t end);
/* 0, or why nothing was found: -ENOENT, -E2BIG with words. found: some of the session lay there. */
int spans_verdict(const struct spans *sp, bool found, struct err *e);
void spans_fini(struct spans *sp);

#endif
