/* SPDX-License-Identifier: MIT. btree.h: an SQLite file read page by page, as its format is written
 * down (sqlite.org/fileformat2.html): for when SQLite refuses it, and for many rows, which take
 * SQLite's machine three times as long. Nothing in it is believed and nothing of it is run: a walk reads
 * each page once at most, each record is checked against its page. */
#ifndef PROTOND_SESSION_BTREE_H
#define PROTOND_SESSION_BTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define BTREE_FIELDS_MAX 64 /* of a record; more are not looked at */

struct sqlite3;
struct btree; /* opaque: only btree.c looks inside */

enum field_type { FIELD_NULL, FIELD_I64, FIELD_F64, FIELD_TEXT, FIELD_BLOB };

struct field {
	enum field_type type;
	uint32_t n;
	union {
		int64_t i;
		double f;
		const uint8_t *p; /* n bytes, valid during the call */
	};
};

struct record {
	bool has_rowid;
	int64_t rowid;
	struct field field[BTREE_FIELDS_MAX]; /* those that are wanted */
	uint32_t n;
};

/* What a walk finds, in the order of keys. */
struct btree_visit {
	uint64_t want;                           /* fields, a bit each */
	int (*row)(void *arg, struct record *r); /* < 0 ends the walk */
	void (*lack)(void *arg, bool page);      /* a page, or a record, that cannot be read */
	/* Where a record is by its row id, or by the first two fields of its key: < 0 before what is wanted, > 0 behind it.
	 * NULL: all of a tree is wanted, of whose pages no other walk was. */
	int (*side)(void *arg, const struct record *r);
	void *arg;
};

/* With the committed part of a -wal beside it; neither is changed. -EBADMSG: its first page is no
 * SQLite's, in words. */
int btree_open(const char *path, struct btree **ret, struct err *e);
/* What SQLite itself reads, by its own descriptors, until the transaction ends that db has begun and in which nothing was
 * read yet. -EAGAIN: only SQLite can: it is no file, or somebody wrote just now. -ENOMEM. */
int btree_of(struct sqlite3 *db, struct btree **ret);
void btree_close(struct btree *p); /* NULL is fine */
uint32_t btree_application(const struct btree *p);
uint32_t btree_user_version(const struct btree *p);

/* A b-tree. 0, -ENOMEM, or what row() said. */
int btree_walk(struct btree *p, uint32_t root, const struct btree_visit *v);
/* The next page, from *at on, that was in no walk and is in use. False: there is none. */
bool btree_orphan(struct btree *p, uint32_t *at);

#endif
