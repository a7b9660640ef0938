/* SPDX-License-Identifier: MIT. inquire.c: questions to the database, users in turn. */
#include "inquire.h"

#include <stdbool.h>
#include <stdlib.h>

#include "daemon.h"
#include "must.h"

#define INQUIRY_MAGIC 0x494e5155u

/* INVARIANT: of each user who has any on the list one is under way, the first. */
struct inquiry {
	uint32_t magic, uid;
	struct inquiry *next; /* in the order of asking */
	struct daemon *d;
	store_work_fn *work;
	store_done_fn *done;
	void *arg;
};

static struct inquiry *inquiry_of(void *p)
{
	struct inquiry *q = p;

	MUST(q != NULL && q->magic == INQUIRY_MAGIC);
	return q;
}

/* The place of that user's first one, or of the end of the list. */
static struct inquiry **first_at(struct inquiry **at, uint32_t uid)
{
	while (*at != NULL && (*at)->uid != uid)
		at = &(*at)->next;
	return at;
}

/* On the store's thread. */
static int inquiry_work(struct sqlite3 *db, void *arg, struct err *e)
{
	const struct inquiry *q = inquiry_of(arg);

	return q->work(db, q->arg, e);
}

static void inquiry_on_done(void *arg, int r, const struct err *e);

static void begin(struct inquiry *q)
{
	store_ask(q->d->store, STORE_QUESTION, inquiry_work, q, inquiry_on_done);
}

static void inquiry_on_done(void *arg, int r, const struct err *e)
{
	struct inquiry *q = inquiry_of(arg), **at = first_at(&q->d->inquiries, q->uid), *next;

	MUST(*at == q);
	*at = q->next;
	next = *first_at(at, q->uid);
	if (next != NULL)
		begin(next);
	q->done(q->arg, r, e);
	q->magic = 0;
	free(q);
}

void inquire(struct daemon *d, uint32_t uid, store_work_fn *work, void *arg, store_done_fn *done)
{
	struct inquiry *q = malloc(sizeof(*q)), **at = first_at(&d->inquiries, uid);
	const bool waits = *at != NULL;

	if (q == NULL) { /* out of turn */
		store_ask(d->store, STORE_QUESTION, work, arg, done);
		return;
	}
	*q = (struct inquiry){
		.magic = INQUIRY_MAGIC, .uid = uid, .d = d, .work = work, .done = done, .arg = arg};
	while (*at != NULL)
		at = &(*at)->next;
	*at = q;
	if (!waits)
		begin(q);
}
