/* SPDX-License-Identifier: MIT. sink.c: a bounded queue and a thread for every sink but the store.
 *
 *   loop: sinks_put ──┬─► store_put                        must have it
 *                     └─► lane's queue ──► thread: put()    or: no room, a gap
 *
 * INVARIANT: a batch is in at most one place of a lane, queue or put(), and holds a reference
 * there. A lane is freed by whoever comes second: the closer, or the thread.
 */
#include "sink.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arena.h"
#include "must.h"

#define LANE_MAGIC  0x4c414e45u
#define SINKS_MAGIC 0x53494e4bu

struct waiting {
	const struct batch *batch;
	uint64_t bytes, lost; /* lost: batches before it that had no room */
};

struct lane {
	uint32_t magic;
	struct sink sink;
	pthread_t thread;

	pthread_mutex_t lock; /* all below */
	pthread_cond_t more, ended;
	struct waiting *queue; /* a ring of sink.max_batches */
	uint32_t head, n;
	uint64_t bytes;
	uint64_t put, gaps, lost;
	uint64_t dropped; /* since the last batch that had room */
	bool failing;     /* the last put() failed: further ones are of the same gap */
	bool unsaid;      /* a gap that the thread found */
	struct err last;
	bool stopping, has_ended, left; /* left: the closer went away */
};

struct sinks {
	uint32_t magic;
	pthread_t loop;
	struct store *store;
	sink_say_fn *say;
	void *arg;
	uint32_t n;
	struct lane *lane[SINKS_MAX];
};

static void lock(struct lane *l)
{
	MUST(pthread_mutex_lock(&l->lock) == 0);
}

static void unlock(struct lane *l)
{
	MUST(pthread_mutex_unlock(&l->lock) == 0);
}

static void check(const struct sinks *s)
{
	MUST(s != NULL && s->magic == SINKS_MAGIC);
	MUST(pthread_equal(s->loop, pthread_self()));
}

static void lane_free(struct lane *l)
{
	MUST(l->n == 0);
	l->magic = 0;
	(void)pthread_cond_destroy(&l->ended);
	(void)pthread_cond_destroy(&l->more);
	(void)pthread_mutex_destroy(&l->lock);
	free(l->queue);
	free(l);
}

/* --- the thread --- */

/* The oldest; false: there is none, and none will come. The lock is held. */
static bool take(struct lane *l, struct waiting *ret)
{
	while (l->n == 0 && !l->stopping)
		MUST(pthread_cond_wait(&l->more, &l->lock) == 0);
	if (l->n == 0)
		return false;
	*ret = l->queue[l->head];
	l->head = (l->head + 1) % l->sink.max_batches;
	l->n--;
	l->bytes -= ret->bytes;
	return true;
}

/* The lock is held. */
static void settle(struct lane *l, int r, const struct err *e)
{
	if (r == 0) {
		l->put++;
		l->failing = false;
		return;
	}
	l->lost++;
	l->last = *e;
	l->last.code = r;
	if (!l->failing) {
		l->gaps++;
		l->unsaid = true;
	}
	l->failing = true;
}

static void *lane_main(void *arg)
{
	struct lane *l = arg;
	struct waiting w = {0};
	bool open = false, left;
	uint64_t failed = 0; /* lost in put() since the last that succeeded */
	int r;

	MUST(l->magic == LANE_MAGIC);
	lock(l);
	while (take(l, &w)) {
		struct err e = {0};

		unlock(l);
		r = open ? 0 : l->sink.open(l->sink.arg, &e);
		open = open || r == 0;
		if (r == 0)
			r = l->sink.put(l->sink.arg, w.batch, w.lost + failed, &e);
		failed = r == 0 ? 0 : failed + w.lost + 1;
		batch_unref(w.batch);
		lock(l);
		settle(l, r, &e);
	}
	unlock(l);
	if (open)
		l->sink.close(l->sink.arg);
	lock(l);
	l->has_ended = true;
	left = l->left;
	(void)pthread_cond_signal(&l->ended);
	unlock(l);
	if (left)
		lane_free(l);
	return NULL;
}

/* --- the loop --- */

/* What it keeps from being freed; names and texts may be somebody else's, too, and count in full.
 */
static uint64_t cost(const struct batch *b)
{
	uint64_t bytes = sizeof(*b) + batch_bytes(b);
	uint32_t i;

	for (i = 0; i < b->n_held; i++)
		bytes += arena_bytes(b->held[i]);
	return bytes;
}

static void state_of(const struct lane *l, struct sink_state *ret)
{
	*ret = (struct sink_state){.name = l->sink.name,
		.queued = l->n,
		.queued_bytes = l->bytes,
		.put = l->put,
		.gaps = l->gaps,
		.lost = l->lost,
		.in_gap = l->dropped > 0 || l->failing,
		.last = l->last};
}

/* True: a gap begins, or the thread found one. The lock is held. */
static bool offer(struct lane *l, const struct batch *b, uint64_t bytes)
{
	const bool room = l->n < l->sink.max_batches && bytes <= l->sink.max_bytes - l->bytes;
	bool news = l->unsaid;

	l->unsaid = false;
	if (room) {
		l->queue[(l->head + l->n++) % l->sink.max_batches] =
			(struct waiting){batch_ref(b), bytes, l->dropped};
		l->bytes += bytes;
		l->dropped = 0;
		(void)pthread_cond_signal(&l->more);
		return news;
	}
	l->lost++;
	if (l->dropped++ > 0)
		return news;
	l->gaps++;
	(void)err_set(&l->last, -ENOBUFS, "its queue is full: %u batches, %llu bytes wait for it",
		l->n, (unsigned long long)l->bytes);
	return true;
}

void sinks_put(struct sinks *s, struct batch *take, store_done_fn *done, void *arg)
{
	struct sink_state state;
	const struct batch *b;
	uint64_t bytes;
	bool news;
	uint32_t i;

	check(s);
	b = store_share(take);
	store_put(s->store, b, done, arg);
	bytes = s->n > 0 ? cost(b) : 0;
	for (i = 0; i < s->n; i++) {
		lock(s->lane[i]);
		news = offer(s->lane[i], b, bytes);
		state_of(s->lane[i], &state);
		unlock(s->lane[i]);
		if (news && s->say != NULL)
			s->say(s->arg, &state);
	}
	batch_unref(b);
}

uint32_t sinks_state(struct sinks *s, struct sink_state *ret, uint32_t n)
{
	uint32_t i;

	check(s);
	if (n > 0)
		store_state(s->store, &ret[0]);
	for (i = 0; i < s->n && i + 1 < n; i++) {
		lock(s->lane[i]);
		state_of(s->lane[i], &ret[i + 1]);
		unlock(s->lane[i]);
	}
	return s->n + 1;
}

/* --- open, close --- */

static int lane_start(struct lane *l)
{
	sigset_t all, old;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &old); /* signals are the loop thread's */
	r = -pthread_create(&l->thread, NULL, lane_main, l);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

static int lane_new(const struct sink *sink, struct lane **ret)
{
	struct lane *l = calloc(1, sizeof(*l));
	pthread_condattr_t clock;
	int r;

	if (l == NULL)
		return -ENOMEM;
	l->magic = LANE_MAGIC;
	l->sink = *sink;
	if (l->sink.max_batches == 0)
		l->sink.max_batches = 16;
	if (l->sink.max_bytes == 0)
		l->sink.max_bytes = 64ull << 20;
	l->queue = calloc(l->sink.max_batches, sizeof(*l->queue));
	(void)pthread_mutex_init(&l->lock, NULL); /* these four do not fail on Linux */
	(void)pthread_condattr_init(&clock);
	(void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&l->more, NULL);
	(void)pthread_cond_init(&l->ended, &clock);
	(void)pthread_condattr_destroy(&clock);
	r = l->queue == NULL ? -ENOMEM : lane_start(l);
	if (r < 0) {
		lane_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

int sinks_open(struct store *store, const struct sink *sink, uint32_t n, sink_say_fn *say,
	void *arg, struct sinks **ret, struct err *e)
{
	struct sinks *s = calloc(1, sizeof(*s));
	int r = 0;

	MUST(store != NULL && n <= SINKS_MAX);
	if (s == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	*s = (struct sinks){.magic = SINKS_MAGIC,
		.loop = pthread_self(),
		.store = store,
		.say = say,
		.arg = arg};
	while (r == 0 && s->n < n) {
		MUST(sink[s->n].open != NULL && sink[s->n].put != NULL && sink[s->n].close != NULL);
		r = lane_new(&sink[s->n], &s->lane[s->n]);
		s->n += r == 0;
	}
	if (r < 0) {
		(void)err_set(e, r, "cannot start the sink %s: %s", sink[s->n].name, strerror(-r));
		(void)sinks_close(s, 0);
		return r;
	}
	*ret = s;
	return 0;
}

static void drop_queue(struct lane *l)
{
	for (; l->n > 0; l->n--) {
		batch_unref(l->queue[l->head].batch);
		l->head = (l->head + 1) % l->sink.max_batches;
		l->lost++;
	}
	l->bytes = 0;
}

/* True: it ended in time. */
static bool lane_end(struct lane *l, const struct timespec *until)
{
	int r = 0;
	bool ended;

	lock(l);
	while (!l->has_ended && r == 0)
		r = pthread_cond_timedwait(&l->ended, &l->lock, until);
	drop_queue(l); /* the thread ends after the put() that it is in */
	ended = l->has_ended;
	l->left = !ended;
	if (!ended)
		(void)pthread_detach(l->thread);
	unlock(l);
	if (!ended)
		return false;
	(void)pthread_join(l->thread, NULL);
	lane_free(l);
	return true;
}

uint32_t sinks_close(struct sinks *s, uint32_t wait_ms)
{
	struct timespec until;
	uint32_t i, left = 0;

	if (s == NULL)
		return 0;
	check(s);
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += wait_ms % 1000 * 1000000l;
	until.tv_sec += until.tv_nsec / 1000000000l;
	until.tv_nsec %= 1000000000l;
	for (i = 0; i < s->n; i++) {
		lock(s->lane[i]);
		s->lane[i]->stopping = true;
		(void)pthread_cond_signal(&s->lane[i]->more);
		unlock(s->lane[i]);
	}
	for (i = 0; i < s->n; i++)
		left += !lane_end(s->lane[i], &until);
	s->magic = 0;
	free(s);
	return left;
}
