/* SPDX-License-Identifier: MIT. store.c: the store's thread: batches and calls in order, results
 * back on the loop. Owns the queue; the worker alone touches the database while it runs.
 *
 *   loop: submit, call ──► queue ──► worker: transaction or work ──► finished ──► loop: done()
 *                                        │ failed (no space, I/O)
 *                                        ▼
 *                                      kept: tried again, oldest first, before whatever comes next
 * and once a second; a batch never overtakes another, a call may run while batches are kept (a
 * prune may be what makes room)
 *
 *   question ──► one of the readers (store_reader.h) ──► finished: it waits for no transaction
 *
 *   a prune, and what leaves by itself ──► a piece of it after each item, and while there is none
 *
 * INVARIANT: an item is in at most one of queue, kept, prunes and a reader, and told exactly once. It is freed by
 * whoever comes second: the loop that told done(), or the worker that settled it. The worker reads
 * a batch that others may read too, and lets go of it when it is stored.
 */
#include "store.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "sink.h"
#include "store_int.h"
#include "store_item.h"
#include "store_reader.h"
#include "store_wal.h"

#define RETRY_NS 1000000000u
#define TELL_NS  1000000u /* for done() in one turn of the loop */

#define STORE_MAGIC 0x53544f52u
#define WAKE_MAGIC  0x57414b45u

/* The handle outlives the store: libuv gives it back in a later turn of the loop. */
struct wake {
	uint32_t magic;
	uv_async_t async;
	struct store *store;
};

struct store {
	uint32_t magic;
	pthread_t loop;     /* whose thread opened it */
	struct store_db db; /* the worker's while it runs */
	uint8_t uuid[16];
	struct wake *wake;
	uint32_t untold; /* loop thread: the loop is kept alive while there are any */
	uint64_t stored; /* likewise: batches told to be */
	struct err last; /* likewise: the last failure */
	bool closing;    /* likewise: nothing is submitted any more */
	uv_thread_t thread;
	_Atomic uint32_t n_items;
	_Atomic bool leaving;
	struct store_wal *wal;
	struct store_reader *reader[STORE_READERS];
	uint64_t failed_ns; /* worker: a piece did; it rests for a second */
	bool waits;         /* worker: the last piece did, for a checkpoint */

	uv_mutex_t lock; /* all below */
	uv_cond_t more, settled;
	struct list queue, kept, prunes, finished; /* finished: linked by next_told */
	struct store_limits limits;
	bool limited;       /* they are news */
	bool checked;       /* a checkpoint has ended */
	struct err trouble; /* of what leaves by itself; code 0: none */
	struct err refused; /* rows refused in a batch that had been told already */
	bool stopping;
};

/* Every call from outside, but for those that any thread may make. */
static void check(const struct store *s)
{
	MUST(s != NULL && s->magic == STORE_MAGIC);
	MUST(pthread_equal(s->loop, pthread_self()));
}

static void told_add(struct list *l, struct item *i)
{
	i->next_told = NULL;
	*l->tail = i;
	l->tail = &i->next_told;
}

static void item_free(struct store *s, struct item *i)
{
	MUST(i->magic == ITEM_MAGIC);
	batch_unref(i->batch);
	i->magic = 0;
	free(i);
	(void)atomic_fetch_sub(&s->n_items, 1);
}

/* --- worker --- */

/* Hands an item to the loop. The lock is held. */
static void tell(struct store *s, struct item *i)
{
	MUST(i->magic == ITEM_MAGIC && !i->told && !i->waited);
	told_add(&s->finished, i);
	(void)uv_async_send(&s->wake->async);
}

/* Stores what is kept, oldest first. 0, or why the oldest cannot be stored; it stays. */
static int store_kept(struct store *s, struct err *e)
{
	struct item *i;
	bool told;
	int r;

	for (;;) {
		uv_mutex_lock(&s->lock);
		i = s->kept.head;
		uv_mutex_unlock(&s->lock);
		if (i == NULL)
			return 0;
		*e = (struct err){0};
		r = store_rows_put(&s->db, i->batch, e);
		if (r < 0)
			return r;
		uv_mutex_lock(&s->lock);
		(void)list_take(&s->kept);
		if (e->code != 0)
			s->refused = *e;
		MUST(!i->settled);
		i->settled = true;
		told = i->told;
		uv_mutex_unlock(&s->lock);
		if (told)
			item_free(s, i);
	}
}

/* `late`: why kept batches still cannot be stored, so that this one cannot either. */
static void work_batch(struct store *s, struct item *i, int late, const struct err *why)
{
	i->r = late;
	if (late < 0)
		i->err = *why;
	else
		i->r = store_rows_put(&s->db, i->batch, &i->err);
	if (i->r == 0) {
		batch_unref(i->batch);
		i->batch = NULL;
	}
	uv_mutex_lock(&s->lock);
	i->settled = i->r == 0;
	if (i->r < 0)
		list_add(&s->kept, i);
	if (i->r == 0 && i->err.code == 0 && s->refused.code != 0) {
		i->err = s->refused;
		s->refused.code = 0;
	}
	tell(s, i);
	uv_mutex_unlock(&s->lock);
}

/* On the worker, or on a reader's thread with its connection. */
static void work_call(void *arg, sqlite3 *db, struct item *i)
{
	struct store *s = arg;

	MUST(s->magic == STORE_MAGIC);
	i->r = i->work(db, i->work_arg, &i->err);
	if (sqlite3_get_autocommit(db) == 0) /* it forgot to end its transaction */
		(void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	uv_mutex_lock(&s->lock);
	i->settled = true;
	if (i->waited)
		uv_cond_broadcast(&s->settled);
	else
		tell(s, i);
	uv_mutex_unlock(&s->lock);
}

/* --- what leaves, in pieces --- */

static bool has_pieces(const struct store *s)
{
	return s->prunes.head != NULL || atomic_load(&s->leaving);
}

/* Nothing of it can be done now: it waits for a checkpoint, or failed a moment ago. */
static bool rests(const struct store *s)
{
	return s->waits ? !s->checked
			: s->prunes.head == NULL && s->failed_ns != 0 &&
				  store_now_ns() - s->failed_ns < RETRY_NS;
}

/* The next item; NULL: none now, but kept ones to try, or a piece; *ret_end: none any more. */
static struct item *next_item(struct store *s, bool *ret_end)
{
	struct item *i;

	uv_mutex_lock(&s->lock);
	while (s->queue.head == NULL && !s->stopping && (rests(s) || !has_pieces(s))) {
		if (s->kept.head == NULL && !has_pieces(s))
			uv_cond_wait(&s->more, &s->lock);
		else if (uv_cond_timedwait(&s->more, &s->lock, RETRY_NS) == UV_ETIMEDOUT)
			break;
	}
	s->checked = false;
	i = list_take(&s->queue);
	*ret_end = i == NULL && s->stopping;
	uv_mutex_unlock(&s->lock);
	return i;
}

static void take_limits(struct store *s)
{
	uv_mutex_lock(&s->lock);
	if (s->limited) {
		s->db.limits = s->limits;
		s->db.leave.look = true;
		s->limited = false;
	}
	uv_mutex_unlock(&s->lock);
}

static void end_prune(struct store *s, struct item *i, int r)
{
	uv_mutex_lock(&s->lock);
	(void)list_take(&s->prunes);
	i->r = r;
	i->settled = true;
	tell(s, i);
	uv_mutex_unlock(&s->lock);
}

static int prune_piece(struct store *s, struct item *i)
{
	struct err e = {0};
	const int r = store_prune_piece(&s->db, i->prune, &e);

	if (r <= 0) {
		i->err = e;
		end_prune(s, i, r);
	}
	return r < 0 ? PIECE_OVER : r;
}

static int leave_piece(struct store *s)
{
	struct err e = {0};
	const int r = store_leave_piece(&s->db, &e);

	s->failed_ns = r < 0 ? store_now_ns() : 0;
	uv_mutex_lock(&s->lock);
	s->trouble = e;
	uv_mutex_unlock(&s->lock);
	return r < 0 ? PIECE_MORE : r;
}

/* One, unless the WAL is long: what stores goes before. */
static void piece(struct store *s)
{
	struct item *prune;
	int r;

	take_limits(s);
	s->waits = false;
	if (rests(s))
		return;
	uv_mutex_lock(&s->lock);
	prune = s->prunes.head;
	uv_mutex_unlock(&s->lock);
	if (!store_wal_has_room(s->wal)) {
		s->waits = true;
		if (prune != NULL && store_prune_is_over(prune->prune))
			end_prune(s, prune, 0);
		return;
	}
	r = prune != NULL ? prune_piece(s, prune) : leave_piece(s);
	s->waits = r == PIECE_WAITS;
	uv_mutex_lock(&s->lock);
	atomic_store(&s->leaving, r != PIECE_OVER || prune != NULL || s->limited);
	uv_mutex_unlock(&s->lock);
}

/* What is left of them goes at the next start. */
static void cancel_prunes(struct store *s)
{
	struct item *i;

	while ((i = s->prunes.head) != NULL) {
		(void)err_set(&i->err, -ECANCELED, "protond ends; what was chosen goes later");
		end_prune(s, i, -ECANCELED);
	}
}

static void worker(void *arg)
{
	struct store *s = arg;
	struct item *i;
	struct err why = {0};
	bool end = false;
	int late;

	MUST(s->magic == STORE_MAGIC);
	s->db.owner = pthread_self();
	(void)pthread_setname_np(pthread_self(), "protond-store");
	while (!end) {
		i = next_item(s, &end);
		late = store_kept(s, &why);
		if (i != NULL && i->prune != NULL) {
			uv_mutex_lock(&s->lock);
			list_add(&s->prunes, i);
			uv_mutex_unlock(&s->lock);
		} else if (i != NULL && i->work != NULL) {
			work_call(s, s->db.db, i);
		} else if (i != NULL) {
			work_batch(s, i, late, &why);
		}
		if (store_wal_pages(s->wal) > WAL_MOST)
			(void)store_wal_now(s->wal);
		if (!end)
			piece(s);
	}
	cancel_prunes(s);
}

/* On the thread of the checkpoints. */
static void on_checkpoint(void *arg)
{
	struct store *s = arg;

	uv_mutex_lock(&s->lock);
	s->checked = true;
	uv_cond_signal(&s->more);
	uv_mutex_unlock(&s->lock);
}

/* --- loop --- */

static struct item *finished_take(struct store *s)
{
	struct item *i;

	uv_mutex_lock(&s->lock);
	i = s->finished.head;
	if (i != NULL && (s->finished.head = i->next_told) == NULL)
		list_init(&s->finished);
	uv_mutex_unlock(&s->lock);
	return i;
}

/* At least one. The others wait for the loop's next turn: what they are told may be long to answer.
 */
static void deliver(struct store *s)
{
	const uint64_t until = uv_hrtime() + TELL_NS;
	struct item *i;
	bool settled;

	while ((i = finished_take(s)) != NULL) {
		MUST(i->magic == ITEM_MAGIC && !i->told && s->untold > 0);
		s->untold--;
		if (i->work == NULL && i->prune == NULL && i->r == 0)
			s->stored++;
		if (i->work == NULL && i->prune == NULL && i->r < 0)
			s->last = i->err;
		if (i->done != NULL)
			i->done(i->arg, i->r, &i->err);
		uv_mutex_lock(&s->lock);
		i->told = true;
		settled = i->settled;
		uv_mutex_unlock(&s->lock);
		if (settled)
			item_free(s, i);
		if (uv_hrtime() >= until) {
			(void)uv_async_send(&s->wake->async);
			return;
		}
	}
}

static void on_wake(uv_async_t *async)
{
	struct wake *w = async->data;

	MUST(w->magic == WAKE_MAGIC);
	if (w->store == NULL)
		return;
	check(w->store);
	deliver(w->store);
	if (w->store->untold == 0)
		uv_unref((uv_handle_t *)async);
}

static void on_wake_closed(uv_handle_t *h)
{
	free(h->data);
}

/* What was to be stored is in the journal: better to start again from there than to go on with a
 * hole that the next position would cover up. */
static _Noreturn void no_memory(void)
{
	(void)fprintf(stderr, "protond: out of memory: ends; the journal has everything, and the "
			      "next start goes on\n");
	_exit(EXIT_FAILURE);
}

static struct item *item_new(void)
{
	struct item *i = calloc(1, sizeof(*i));

	if (i == NULL)
		no_memory();
	i->magic = ITEM_MAGIC;
	return i;
}

/* `reader` NULL: for the worker. */
static void enqueue(struct store *s, struct item *i, struct store_reader *reader)
{
	check(s);
	(void)atomic_fetch_add(&s->n_items, 1);
	if (s->untold++ == 0)
		uv_ref((uv_handle_t *)&s->wake->async);
	uv_mutex_lock(&s->lock);
	if (s->closing) { /* a call by the done() of another one: nobody works any more */
		i->r = err_set(&i->err, -ECANCELED, "protond ends");
		i->settled = true;
		tell(s, i);
	} else if (reader != NULL) {
		store_reader_put(reader, i);
	} else {
		list_add(&s->queue, i);
		uv_cond_signal(&s->more);
	}
	uv_mutex_unlock(&s->lock);
}

const struct batch *store_share(struct batch *take)
{
	const struct batch *b = batch_share(take);

	if (b == NULL)
		no_memory();
	return b;
}

void store_put(struct store *s, const struct batch *shared, store_done_fn *done, void *arg)
{
	struct item *i = item_new();

	check(s);
	MUST(!s->closing);
	i->batch = batch_ref(shared);
	i->done = done;
	i->arg = arg;
	enqueue(s, i, NULL);
}

void store_submit(struct store *s, struct batch *take, store_done_fn *done, void *arg)
{
	const struct batch *b = store_share(take);

	store_put(s, b, done, arg);
	batch_unref(b);
}

static struct item *call_new(store_work_fn *work, void *arg, store_done_fn *done)
{
	struct item *i = item_new();

	MUST(work != NULL);
	i->work = work;
	i->work_arg = arg;
	i->done = done;
	i->arg = arg;
	return i;
}

void store_call(struct store *s, store_work_fn *work, void *arg, store_done_fn *done)
{
	enqueue(s, call_new(work, arg, done), NULL);
}

void store_ask(struct store *s, enum store_reader_kind kind, store_work_fn *work, void *arg,
	store_done_fn *done)
{
	enqueue(s, call_new(work, arg, done), s->reader[kind]);
}

void store_prune(struct store *s, struct store_prune *p, store_done_fn *done, void *arg)
{
	struct item *i = item_new();

	memset(&p->went, 0, sizeof(p->went));
	p->more = false;
	p->until_ns = p->chosen_ns = 0;
	i->prune = p;
	i->done = done;
	i->arg = arg;
	enqueue(s, i, NULL);
}

void store_limit(struct store *s, const struct store_limits *l)
{
	check(s);
	uv_mutex_lock(&s->lock);
	s->limits = *l;
	s->limited = true;
	atomic_store(&s->leaving, true);
	uv_cond_signal(&s->more);
	uv_mutex_unlock(&s->lock);
}

bool store_is_leaving(const struct store *s)
{
	return atomic_load(&s->leaving);
}

bool store_leave_trouble(struct store *s, struct err *ret)
{
	check(s);
	uv_mutex_lock(&s->lock);
	*ret = s->trouble;
	uv_mutex_unlock(&s->lock);
	return ret->code != 0;
}

void store_state(const struct store *s, struct sink_state *ret)
{
	check(s);
	*ret = (struct sink_state){.name = "sqlite",
		.must_have = true,
		.queued = store_queued(s),
		.put = s->stored,
		.last = s->last};
}

uint32_t store_queued(const struct store *s)
{
	return atomic_load(&s->n_items);
}

struct load {
	struct store_db *db;
	struct batch *ret;
};

static int load_work(sqlite3 *db, void *arg, struct err *e)
{
	struct load *l = arg;

	(void)db;
	return store_rows_load(l->db, l->ret, e);
}

static int wait_for(struct store *s, struct item *i)
{
	check(s);
	MUST(!s->closing);
	i->magic = ITEM_MAGIC;
	i->waited = true;
	uv_mutex_lock(&s->lock);
	list_add(&s->queue, i);
	uv_cond_signal(&s->more);
	while (!i->settled)
		uv_cond_wait(&s->settled, &s->lock);
	uv_mutex_unlock(&s->lock);
	return i->r;
}

int store_load(struct store *s, struct batch *ret, struct err *e)
{
	struct load l = {&s->db, ret};
	struct item i = {.work = load_work, .work_arg = &l};

	if (wait_for(s, &i) < 0)
		(void)err_set(e, i.r, "%s", i.err.text);
	return i.r;
}

struct ended {
	struct store_db *db;
	const uint8_t *ring;
};

/* 1: yes. */
static int ended_work(sqlite3 *db, void *arg, struct err *e)
{
	const struct ended *x = arg;
	sqlite3_stmt *q = x->db->q[SQL_PROCESS_ENDED];
	int rc;

	(void)db;
	(void)e;
	(void)sqlite3_bind_blob(q, 1, x->ring, 16, SQLITE_STATIC);
	rc = sqlite3_step(q);
	(void)sqlite3_reset(q);
	return rc == SQLITE_ROW;
}

bool store_has_ended(struct store *s, const uint8_t ring[16])
{
	struct ended x = {&s->db, ring};
	struct item i = {.work = ended_work, .work_arg = &x};

	return wait_for(s, &i) == 1;
}

/* --- open, close --- */

static int read_uuid(struct store *s, struct err *e)
{
	sqlite3_stmt *q = s->db.q[SQL_META_GET];
	bool found;

	(void)sqlite3_bind_text(q, 1, "store_uuid", -1, SQLITE_STATIC);
	found = sqlite3_step(q) == SQLITE_ROW && sqlite3_column_bytes(q, 0) == sizeof(s->uuid);
	if (found)
		memcpy(s->uuid, sqlite3_column_blob(q, 0), sizeof(s->uuid));
	(void)sqlite3_reset(q);
	return found ? 0
		     : err_set(e, -EUCLEAN,
			       "%s has no store_uuid: it is damaged; move it away with "
			       "`mv %s %s.damaged`",
			       s->db.path, s->db.path, s->db.path);
}

/* Signals are the loop thread's: the worker blocks them all (SIGXFSZ too, so that a file size limit
 * is an error and not an end). */
static int start_worker(struct store *s)
{
	sigset_t all, old;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &old);
	r = uv_thread_create(&s->thread, worker, s);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

static int wake_new(struct store *s, uv_loop_t *loop)
{
	struct wake *w = calloc(1, sizeof(*w));
	int r;

	if (w == NULL)
		return -ENOMEM;
	w->magic = WAKE_MAGIC;
	w->store = s;
	w->async.data = w;
	r = uv_async_init(loop, &w->async, on_wake);
	if (r < 0) {
		free(w);
		return r;
	}
	uv_unref((uv_handle_t *)&w->async);
	s->wake = w;
	return 0;
}

static int readers_open(struct store *s, struct err *e)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < STORE_READERS && r == 0; i++)
		r = store_reader_open(s->db.path, work_call, s, &s->reader[i], e);
	return r;
}

/* What was asked is answered. */
static void readers_close(struct store *s)
{
	uint32_t i;

	for (i = 0; i < STORE_READERS; i++) {
		store_reader_close(s->reader[i]);
		s->reader[i] = NULL;
	}
}

/* The worker has ended, or never ran. */
static void store_free(struct store *s)
{
	struct item *i;

	s->db.owner = pthread_self();
	while ((i = list_take(&s->kept)) != NULL)
		item_free(s, i);
	if (s->wake != NULL) {
		s->wake->store = NULL;
		uv_close((uv_handle_t *)&s->wake->async, on_wake_closed);
	}
	readers_close(s);
	store_wal_close(s->wal);
	s->db.wal = NULL;
	store_db_close(&s->db);
	uv_cond_destroy(&s->settled);
	uv_cond_destroy(&s->more);
	uv_mutex_destroy(&s->lock);
	s->magic = 0;
	free(s);
}

int store_open(const char *path, uv_loop_t *loop, struct store **ret, struct err *e)
{
	struct store *s = calloc(1, sizeof(*s));
	int r;

	if (s == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	s->magic = STORE_MAGIC;
	s->loop = pthread_self();
	r = store_db_open(path, &s->db, e);
	if (r < 0) {
		free(s);
		return r;
	}
	list_init(&s->queue);
	list_init(&s->kept);
	list_init(&s->prunes);
	list_init(&s->finished);
	atomic_store(&s->leaving, true); /* the worker looks once */
	if (uv_mutex_init(&s->lock) < 0 || uv_cond_init(&s->more) < 0 ||
		uv_cond_init(&s->settled) < 0)
		abort(); /* libuv does not fail here on Linux */
	r = read_uuid(s, e);
	if (r == 0)
		r = store_wal_open(s->db.db, on_checkpoint, s, &s->wal, e);
	if (r == 0) {
		s->db.wal = s->wal;
		r = readers_open(s, e);
	}
	if (r == 0) {
		r = wake_new(s, loop);
		if (r == 0)
			r = start_worker(s);
		if (r < 0)
			(void)err_set(e, r, "cannot start the store's thread: %s", uv_strerror(r));
	}
	if (r < 0) {
		store_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

/* The loop must turn once more to give back the handle, as for every handle of libuv. */
void store_close(struct store *s)
{
	if (s == NULL)
		return;
	check(s);
	s->closing = true;
	uv_mutex_lock(&s->lock);
	s->stopping = true;
	uv_cond_signal(&s->more);
	uv_mutex_unlock(&s->lock);
	(void)uv_thread_join(&s->thread);
	readers_close(s);
	while (s->untold > 0)
		deliver(s);
	store_free(s);
}

const char *store_path(const struct store *s)
{
	return s->db.path;
}

void store_uuid(const struct store *s, uint8_t ret[16])
{
	memcpy(ret, s->uuid, sizeof(s->uuid));
}
