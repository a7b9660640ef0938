/* SPDX-License-Identifier: MIT. store_wal.h: who brings the WAL into the database: a thread with a
 * connection of its own, so that nobody waits for a disk's sync who wants to read or store. For the
 * files of the store.
 *
 *   worker ── commit ──► WAL ── so many pages ──► this thread ── checkpoint, synced ──► database
 *
 * The WAL begins anew when all of it is in the database and the next writer comes. What may wait
 * (a prune) does not write while it is long: store_wal_has_room().
 *
 * CONTRACT (MUST): opened and closed by whoever opened the database, while nobody works with it;
 * the rest on the worker. */
#ifndef PROTOND_STORE_WAL_H
#define PROTOND_STORE_WAL_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

#define WAL_SOME 1000u  /* pages: into the database */
#define WAL_MUCH 4096u  /* pages: a prune waits */
#define WAL_MOST 16384u /* pages: everybody waits */

struct sqlite3;
struct store_wal;

typedef void store_wal_fn(void *arg); /* one has ended; on its thread */

/* `db`: the writer's connection, open. -EAGAIN: no thread. */
int store_wal_open(
	struct sqlite3 *db, store_wal_fn *told, void *arg, struct store_wal **ret, struct err *e);
void store_wal_close(struct store_wal *w); /* waits for the one that runs; NULL is fine */

/* Worker. All of it is in the database, or there is not much of it; asks for more of it. */
bool store_wal_has_room(struct store_wal *w);
/* Likewise, to the last page. False: it is asked for, or a reader holds it up for now. */
bool store_wal_is_in(struct store_wal *w);
/* Worker. Waits for one checkpoint: where there is no space, or far too much. SQLITE_…. */
int store_wal_now(struct store_wal *w);
uint32_t store_wal_pages(const struct store_wal *w); /* as of the last commit; worker */

#endif
