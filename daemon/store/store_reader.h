/* SPDX-License-Identifier: MIT. store_reader.h: a thread that reads the database with a connection of
 * its own: in WAL mode a reader waits neither for whoever stores nor for whoever deletes. For store.c.
 *
 * CONTRACT (MUST): opened, closed and put to on the thread that opened the store; an item is the
 * reader's until `work` has it. */
#ifndef PROTOND_STORE_READER_H
#define PROTOND_STORE_READER_H

#include "err.h"

struct item;
struct sqlite3;
struct store_reader;

/* On its thread, one after the other, as they were put. */
typedef void store_reader_fn(void *arg, struct sqlite3 *db, struct item *i);
/* -EAGAIN: no thread; -EIO: the database cannot be opened. */
int store_reader_open(const char *path, store_reader_fn *work, void *arg, struct store_reader **ret,
	struct err *e);
void store_reader_put(struct store_reader *r, struct item *i);
void store_reader_close(struct store_reader *r); /* when it has worked on all; NULL is fine */

#endif
