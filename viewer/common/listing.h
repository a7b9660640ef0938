/* SPDX-License-Identifier: MIT. listing.h: which sessions there are, from a daemon or from a
 * database, and which of them are wanted: the same for protonctl and protonview. */
#ifndef PROTOND_VIEWER_LISTING_H
#define PROTOND_VIEWER_LISTING_H

#include "pick.h"
#include "source.h"

#define LISTING_ROWS 40u /* that are shown unless told otherwise */

/* clang-format off */
/* Which are wanted: options of both tools, in the columns of protonview_options.h. */
#define LISTING_FILTERS(X, verbs) \
	X(NAME,  0, "name",  "GLOB",  verbs, "only sessions with this name; * matches any text, ? any character") \
	X(USER,  0, "user",  "USER",  verbs, "only this user's, by name or number") \
	X(SINCE, 0, "since", "AGE",   verbs, "only those that began at most so long ago: 30d, 12h, 90m") \
	X(STATE, 0, "state", "STATE", verbs, "only those that are active, inactive, finalizing, finalized, interrupted, recovered or incomplete") \
	X(TAG,   0, "tag",   "TAG",   verbs, "only those that have this tag")
/* clang-format on */

enum listing_filter {
#define X(id, letter, name, arg, verbs, help) FILTER_##id,
	LISTING_FILTERS(X, )
#undef X
		FILTER_MAX
};

struct listing_wish {
	const char *db; /* this file; NULL: the daemon's, or the usual one */
	bool ask;       /* a daemon that runs, even where its database can be read */
	bool all;       /* also what is over with nothing in it */
	uint32_t rows;  /* so many, the newest; 0: all */
	const char *filter[FILTER_MAX]; /* as the user gave them; NULL: any */
};

struct listing {
	struct pick_row *row; /* newest first; what they point to is the listing's */
	uint32_t n;
	uint32_t empty, older; /* left out: with nothing in them; beyond `rows` */
	uint64_t more;         /* that the daemon could not put into its answer */
	bool filtered, users;  /* users: there are several users' */
	struct listing_of *of; /* the reading */
};

/* -EINVAL: a filter that means nothing; else as rpc_call() and source_open_db(). *how: whether that
 * is all of it. */
int listing_read(
	const struct listing_wish *w, struct listing *ret, struct source *how, struct err *e);
void listing_free(struct listing *l); /* zeroed and freed ones are fine */

/* "30d", "12h", "90m" in seconds. */
bool listing_age(const char *text, uint64_t *ret_s);

#endif
