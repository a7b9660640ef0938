/* SPDX-License-Identifier: MIT. web_ask.h: one question of the page, and what answers share. For
 * web_*.c. */
#ifndef PROTOND_WEB_WEB_ASK_H
#define PROTOND_WEB_WEB_ASK_H

#include "web_api.h"
#include "web_json.h"

struct web_ask {
	struct web *w;
	const char *id;   /* of the session; NULL: it is about none */
	const char *rest; /* of export.REST */
	struct web_query q;
	struct run
		*run; /* as the tool's verbs have it: options, names, warnings, words of an error */
	struct web_answer *to;
	struct line *line; /* web_api.c's */
};

/* 0, or -errno with words in a->run->e. */
typedef int web_fn(struct web_ask *a);
/* clang-format off */
#define WEB_ANSWERS(X) /* name, of a session, pace (QUICK: a hand on the mouse waits for it); what it says */ \
	X(sessions, false, SLOW, "what the database holds")            \
	X(diff,     false, SLOW, "two sessions on one tree")           \
	X(meta,     true,  SLOW, "what a session is")                  \
	X(tree,     true,  SLOW, "its tree, with every metric")        \
	X(ops,      true,  SLOW, "its kernels, copies and sets, by name") \
	X(steps,    true,  WALK, "its steps, and what the GPU did in each") \
	X(ranks,    true,  SLOW, "its processes side by side")          \
	X(bottlenecks, true, WALK, "what is slow, where, and what to do") \
	X(series,   true,  WALK, "its numbers over time")              \
	X(memory,   true,  SLOW, "who holds memory, and did over time") \
	X(lanes,    true,  QUICK, "the lanes of its timeline")          \
	X(window,   true,  QUICK, "what is in some of them, in some time, at so many pixels: bytes") \
	X(arrows,   true,  QUICK, "from launches to what they launched") \
	X(event,    true,  QUICK, "all that is known of one")           \
	X(counters, true,  QUICK, "its numbers in a window, by pixel")    \
	X(sums,     true,  WALK, "what is in a box, by name")          \
	X(find,     true,  QUICK, "the next of a name")                 \
	X(export,   true,  WALK, "a file, by what its name ends in")
/* clang-format on */
#define X(name, of, pace, words) web_fn web_##name;
WEB_ANSWERS(X)
#undef X

/* The profile that is asked about, whole, with durations; borrowed until the next question. Its names are read. */
int web_profile(struct web_ask *a, const struct profile **ret);
/* What the tool's verbs call the source: for run->o.args. */
int web_ref(struct web_ask *a, const char **ret);
/* Another one, the caller's. */
int web_load(struct web_ask *a, const char *id, struct profile **ret);
/* fn gets the database and the session. -ENODATA: of a file that is none. */
typedef int web_db_fn(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e);
int web_db(struct web_ask *a, web_db_fn *fn, void *arg, struct export_left *ret_left);

/* A question of our own, about a session. NULL: out of memory. */
struct web_ask *web_ask_new(struct web *w, const char *id);
void web_ask_free(struct web_ask *a); /* NULL is fine */

uint64_t web_steps_done(const struct profile *p);

struct name_set;
/* "names":[…], as people read them, and "recorded":{"3":"_ZN…"}, where that is another text. */
void web_names(struct web_ask *a, const struct name_set *names);
/* The timeline that is asked about, open; borrowed until the next question. A live one is up to date. */
struct zoom;
int web_zoom(struct web_ask *a, struct zoom **ret);

/* What reads all of a timeline has the memory of its worker to itself: what was open there is closed. */
void web_alone(struct web_ask *a);

/* "warnings":[…] of the question. */
void web_warnings(struct web_ask *a);

#endif
