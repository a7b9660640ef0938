/* SPDX-License-Identifier: MIT. holder_rows.h: the stored holders of memory of a session, process by process, and
 * their curves value by value. */
#ifndef PROTOND_SESSION_HOLDER_ROWS_H
#define PROTOND_SESSION_HOLDER_ROWS_H

#include "holders.h"

struct sqlite3;

#define HOLDER_NAME 96u

struct holder_row {
	int64_t process, pid, rank; /* process: its number in the store; rank -1: none */
	int64_t base_ns;            /* CLOCK_MONOTONIC: when it began, about */
	int64_t ahead_ns;           /* CLOCK_REALTIME less that */
	struct holders *h; /* devices as CUDA numbers them; whoever takes it leaves an empty one */
};

/* fn for each that has some, its error ends it. process: a rank, or "pid:N"; NULL: all. A database of before has
 * none. -EBADMSG with words: damaged; -ENOMEM. */
typedef int holder_fn(void *arg, const struct holder_row *r);
int holder_each(struct sqlite3 *db, int64_t session, const char *process, holder_fn *fn, void *arg,
	struct err *e);

/* [n_owners] "a/b", "" of the root, "(other)"; to be freed, of a failure too. -ENOMEM, -EBADMSG. */
int holder_scopes(struct sqlite3 *db, const struct holders *h, char ***ret, struct err *e);
void holder_scopes_free(const struct holders *h, char **scope);

/* "cuda:0", "host". */
void holder_device(const struct held_account *a, char ret[16]);
/* "pid 12 cuda:0 device memory (bytes)"; returns its length. */
size_t holder_name(const struct holder_row *r, const struct held_account *a, char ret[HOLDER_NAME]);
/* Its points as one value each, or two where they are of several: the most, then the last. */
typedef int holder_value_fn(void *arg, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes);
int holder_values(const struct held_account *a, holder_value_fn *fn, void *arg);

#endif
