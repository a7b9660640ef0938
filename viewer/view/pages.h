/* SPDX-License-Identifier: MIT. pages.h: an SQLite file read page by page, as its format is written
 * down (sqlite.org/fileformat2.html), for when SQLite refuses it. Nothing in it is believed and
 * nothing of it is run: each page is read once at most, each record is checked against its page. */
#ifndef PROTOND_VIEWER_PAGES_H
#define PROTOND_VIEWER_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define PAGES_FIELDS_MAX 64 /* of a record; more are not looked at */

struct pages; /* opaque: only pages.c looks inside */

enum field_type { FIELD_NULL, FIELD_I64, FIELD_F64, FIELD_TEXT, FIELD_BLOB };

struct field {
	enum field_type type;
	int64_t i;
	double f;
	const uint8_t *p; /* n bytes, valid during the call */
	uint32_t n;
};

struct record {
	bool has_rowid;
	int64_t rowid;
	struct field field[PAGES_FIELDS_MAX];
	uint32_t n;
};

/* What a walk finds, in the order of keys. */
struct pages_visit {
	int (*row)(void *arg, const struct record *r); /* < 0 ends the walk */
	void (*lack)(void *arg, bool page); /* a page, or a record, that cannot be read */
	void *arg;
};

/* With the committed part of a -wal beside it; neither is changed. -EBADMSG: its first page is no
 * SQLite's, in words. */
int pages_open(const char *path, struct pages **ret, struct err *e);
void pages_close(struct pages *p); /* NULL is fine */
uint32_t pages_application(const struct pages *p);
uint32_t pages_user_version(const struct pages *p);

/* A b-tree. 0, -ENOMEM, or what row() said. */
int pages_walk(struct pages *p, uint32_t root, const struct pages_visit *v);
/* The next page, from *at on, that was in no walk and is in use. False: there is none. */
bool pages_orphan(struct pages *p, uint32_t *at);

#endif
