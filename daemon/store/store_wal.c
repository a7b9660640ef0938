/* SPDX-License-Identifier: MIT. store_wal.c: checkpoints, on a thread and a connection of their own.
 */
#include "store_wal.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sqlite3.h>
#include <uv.h>

#include "must.h"
#include "store_int.h"

#define WAL_MAGIC 0x53574131u
#define AGAIN_NS  1000000000u /* a reader holds it up, or the disk does */

struct store_wal {
	uint32_t magic;
	sqlite3 *db; /* its own, the thread's */
	store_wal_fn *told;
	void *arg;
	pthread_t thread;
	uint32_t pages;    /* worker: in the WAL, as its last commit says */
	uint64_t tried_ns; /* worker: when it last asked in vain */

	pthread_mutex_t lock; /* all below */
	pthread_cond_t more, done;
	uint64_t asked, ran; /* how many */
	int rc;              /* of the last one; and how far it came: */
	uint32_t in;
	bool held; /* a reader kept it from coming further, or the disk did */
	bool stopping;
};

static void lock(struct store_wal *w)
{
	MUST(w->magic == WAL_MAGIC && pthread_mutex_lock(&w->lock) == 0);
}

static void unlock(struct store_wal *w)
{
	MUST(pthread_mutex_unlock(&w->lock) == 0);
}

/* --- its thread --- */

static void *wal_main(void *arg)
{
	struct store_wal *w = arg;
	uint64_t asked;
	int rc, all = 0, in = 0;

	lock(w);
	for (;;) {
		while (w->asked == w->ran && !w->stopping)
			MUST(pthread_cond_wait(&w->more, &w->lock) == 0);
		if (w->stopping)
			break;
		asked = w->asked;
		unlock(w);
		rc = sqlite3_wal_checkpoint_v2(w->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &all, &in);
		lock(w);
		w->ran = asked;
		w->rc = rc;
		w->in = rc == SQLITE_OK && in > 0 ? (uint32_t)in : 0;
		w->held = rc != SQLITE_OK || in < all;
		(void)pthread_cond_broadcast(&w->done);
		unlock(w);
		w->told(w->arg);
		lock(w);
	}
	unlock(w);
	return NULL;
}

/* --- the worker --- */

static void ask(struct store_wal *w)
{
	lock(w);
	if (w->asked == w->ran)
		w->asked++;
	(void)pthread_cond_signal(&w->more);
	unlock(w);
}

/* A shorter WAL than before has begun anew. */
static int on_commit(void *arg, sqlite3 *db, const char *name, int pages)
{
	struct store_wal *w = arg;

	(void)db;
	(void)name;
	MUST(w->magic == WAL_MAGIC);
	if ((uint32_t)pages < w->pages) {
		lock(w);
		w->in = 0;
		unlock(w);
	}
	w->pages = (uint32_t)pages;
	if (w->pages >= WAL_SOME)
		ask(w);
	return SQLITE_OK;
}

/* How it stands with what is not in the database yet. */
enum how { HOW_IN, HOW_BUSY, HOW_HELD, HOW_MORE };

static enum how how_far(struct store_wal *w)
{
	enum how how;

	lock(w);
	if (w->in >= w->pages)
		how = HOW_IN;
	else if (w->asked != w->ran)
		how = HOW_BUSY;
	else
		how = w->held ? HOW_HELD : HOW_MORE;
	unlock(w);
	return how;
}

/* True: it was asked for once more, after a second. */
static bool ask_again(struct store_wal *w)
{
	const uint64_t now = store_now_ns();

	if (now - w->tried_ns < AGAIN_NS)
		return false;
	w->tried_ns = now;
	ask(w);
	return true;
}

bool store_wal_is_in(struct store_wal *w)
{
	switch (how_far(w)) {
	case HOW_IN:
		return true;
	case HOW_HELD:
		(void)ask_again(w);
		return false;
	case HOW_MORE:
		ask(w);
		return false;
	case HOW_BUSY:
	default:
		return false;
	}
}

/* Where a reader keeps it long, a piece a second goes on all the same. */
bool store_wal_has_room(struct store_wal *w)
{
	enum how how;

	if (w->pages < WAL_MUCH)
		return true;
	how = how_far(w);
	if (how == HOW_MORE)
		ask(w);
	return how == HOW_IN || (how == HOW_HELD && ask_again(w) && w->pages < WAL_MOST);
}

int store_wal_now(struct store_wal *w)
{
	uint64_t mine;
	int rc;

	lock(w);
	mine = w->ran + 1 + (w->asked != w->ran); /* one that runs may have begun too early */
	while (w->ran < mine) {
		w->asked = mine;
		(void)pthread_cond_signal(&w->more);
		MUST(pthread_cond_wait(&w->done, &w->lock) == 0);
	}
	rc = w->rc;
	unlock(w);
	return rc;
}

uint32_t store_wal_pages(const struct store_wal *w)
{
	return w->pages;
}

/* --- open, close --- */

static void wal_free(struct store_wal *w)
{
	(void)sqlite3_close_v2(w->db);
	(void)pthread_cond_destroy(&w->done);
	(void)pthread_cond_destroy(&w->more);
	(void)pthread_mutex_destroy(&w->lock);
	w->magic = 0;
	free(w);
}

static int wal_connect(struct store_wal *w, const char *path, struct err *e)
{
	int keep = 1,
	    rc = sqlite3_open_v2(path, &w->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

	if (rc == SQLITE_OK) /* closing it brings nothing anywhere */
		rc = sqlite3_db_config(w->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, &keep);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(w->db,
			"PRAGMA wal_autocheckpoint=0;PRAGMA synchronous=NORMAL;PRAGMA "
			"cache_size=-64",
			NULL, NULL, NULL);
	return rc == SQLITE_OK ? 0 : store_fail(w->db, rc, e);
}

static int wal_start(struct store_wal *w)
{
	sigset_t all, old;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &old); /* signals are the loop thread's */
	r = -pthread_create(&w->thread, NULL, wal_main, w);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r == 0)
		(void)pthread_setname_np(w->thread, "protond-wal");
	return r;
}

int store_wal_open(
	struct sqlite3 *db, store_wal_fn *told, void *arg, struct store_wal **ret, struct err *e)
{
	struct store_wal *w = calloc(1, sizeof(*w));
	int r;

	if (w == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	w->magic = WAL_MAGIC;
	w->told = told;
	w->arg = arg;
	(void)pthread_mutex_init(&w->lock, NULL); /* these three do not fail on Linux */
	(void)pthread_cond_init(&w->more, NULL);
	(void)pthread_cond_init(&w->done, NULL);
	r = wal_connect(w, sqlite3_db_filename(db, "main"), e);
	if (r == 0 && (r = wal_start(w)) < 0)
		(void)err_set(e, r, "cannot start the store's thread: %s", uv_strerror(r));
	if (r < 0) {
		wal_free(w);
		return r;
	}
	(void)sqlite3_wal_hook(db, on_commit, w);
	*ret = w;
	return 0;
}

void store_wal_close(struct store_wal *w)
{
	if (w == NULL)
		return;
	lock(w);
	w->stopping = true;
	(void)pthread_cond_signal(&w->more);
	unlock(w);
	(void)pthread_join(w->thread, NULL);
	wal_free(w);
}
