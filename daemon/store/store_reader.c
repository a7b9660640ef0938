/* SPDX-License-Identifier: MIT. store_reader.c: questions in order, on a thread and a connection of
 * their own. */
#include "store_reader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "must.h"
#include "store_ask.h"
#include "store_item.h"

#define READER_MAGIC 0x52454144u

struct store_reader {
	uint32_t magic;
	sqlite3 *db; /* its thread's while it runs */
	store_reader_fn *work;
	void *arg;
	pthread_t thread;

	pthread_mutex_t lock; /* all below */
	pthread_cond_t more;
	struct list queue;
	bool stopping;
};

static struct item *next_item(struct store_reader *r)
{
	struct item *i;

	MUST(pthread_mutex_lock(&r->lock) == 0);
	while (r->queue.head == NULL && !r->stopping)
		MUST(pthread_cond_wait(&r->more, &r->lock) == 0);
	i = list_take(&r->queue);
	MUST(pthread_mutex_unlock(&r->lock) == 0);
	return i;
}

static void *reader_main(void *arg)
{
	struct store_reader *r = arg;
	struct item *i;

	MUST(r->magic == READER_MAGIC);
	while ((i = next_item(r)) != NULL)
		r->work(r->arg, r->db, i);
	return NULL;
}

static int reader_start(struct store_reader *r)
{
	sigset_t all, old;
	int x;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &old); /* signals are the loop thread's */
	x = -pthread_create(&r->thread, NULL, reader_main, r);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (x == 0)
		(void)pthread_setname_np(r->thread, "protond-reader");
	return x;
}

static void reader_free(struct store_reader *r)
{
	store_ask_close(r->db);
	(void)pthread_cond_destroy(&r->more);
	(void)pthread_mutex_destroy(&r->lock);
	r->magic = 0;
	free(r);
}

int store_reader_open(const char *path, store_reader_fn *work, void *arg, struct store_reader **ret,
	struct err *e)
{
	struct store_reader *r = calloc(1, sizeof(*r));
	int x;

	if (r == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	r->magic = READER_MAGIC;
	r->work = work;
	r->arg = arg;
	list_init(&r->queue);
	(void)pthread_mutex_init(&r->lock, NULL); /* neither fails on Linux */
	(void)pthread_cond_init(&r->more, NULL);
	x = store_ask_open(path, &r->db, e);
	if (x == 0 && (x = reader_start(r)) < 0)
		(void)err_set(e, x, "cannot start the store's thread: %s", strerror(-x));
	if (x < 0) {
		reader_free(r);
		return x;
	}
	*ret = r;
	return 0;
}

void store_reader_put(struct store_reader *r, struct item *i)
{
	MUST(r != NULL && r->magic == READER_MAGIC);
	MUST(pthread_mutex_lock(&r->lock) == 0);
	list_add(&r->queue, i);
	(void)pthread_cond_signal(&r->more);
	MUST(pthread_mutex_unlock(&r->lock) == 0);
}

void store_reader_close(struct store_reader *r)
{
	if (r == NULL)
		return;
	MUST(pthread_mutex_lock(&r->lock) == 0);
	r->stopping = true;
	(void)pthread_cond_signal(&r->more);
	MUST(pthread_mutex_unlock(&r->lock) == 0);
	(void)pthread_join(r->thread, NULL);
	reader_free(r);
}
