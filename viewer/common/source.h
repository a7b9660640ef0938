/* SPDX-License-Identifier: MIT. source.h: where a profile comes from: a .hatchet file, a portable
 * session file, a database, or a session of this user's daemon or of the database it left. */
#ifndef PROTOND_VIEWER_SOURCE_H
#define PROTOND_VIEWER_SOURCE_H

#include <stdbool.h>

#include "export_format.h"
#include "profile.h"

struct sqlite3;

struct source_options {
	const char *db; /* read this database and ask no daemon; NULL: the usual one */
	bool session;   /* ref is one, whatever file is called so */
	struct profile_select select;
	/* Not NULL: loads no profile, and is given the session for its timeline. As export_timeline_fn. */
	int (*timeline)(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
		struct export_left *ret_left, struct err *e);
	void *arg;
	/* Not NULL: is given the session of a database before any of it is read. */
	int (*prepare)(void *arg, struct sqlite3 *db, int64_t id, struct err *e);
	void *prepare_arg;
	bool keep; /* with `timeline`: the database stays open, and is the caller's */
};

struct source {
	struct profile *p;       /* the caller's; NULL: of a timeline */
	struct sqlite3 *db;      /* of one that is kept */
	struct export_left left; /* of a timeline */
	bool partial;            /* part of it could not be read */
	struct err away; /* code not 0: the daemon did not answer, this is from its database */
};

/* ref: a path, "-" (stdin), or a session. -ENOENT, -EINVAL, -EBADMSG, -ENOTCONN (a daemon that
 * holds the session did not answer). */
int source_open(const char *ref, const struct source_options *o, struct source *ret, struct err *e);

/* Whether source_open() would look into a file of this name first. */
bool source_is_file(const char *ref);

/* The database itself, for listings; brought up to date by the daemon when one runs. *ret_how:
 * whether that is all of it. */
int source_open_db(const char *db, struct sqlite3 **ret, struct source *ret_how, struct err *e);

/* Whether the user named another database than the daemon's. */
bool source_is_elsewhere(const char *daemons);

/* Ids repeat between databases: says, once, that the running daemon's is in no usual place. */
void source_say_unusual(const char *daemons);

/* The database that is read when no daemon runs; it need not be there. */
void source_usual_db(char *buf, size_t n);

#endif
