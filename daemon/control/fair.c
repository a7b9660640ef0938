/* SPDX-License-Identifier: MIT. fair.c: whose request is next. */
#include "fair.h"

#include <errno.h>
#include <stdlib.h>

#include "must.h"

struct fair_user {
	struct fair_user *next;
	uint32_t uid, n; /* n > 0: who joined */
	struct fair_place *waiting, **last;
};

/* The place of that user, or of the end of the list. */
static struct fair_user **user_at(struct fair_user **at, uint32_t uid)
{
	while (*at != NULL && (*at)->uid != uid)
		at = &(*at)->next;
	return at;
}

static struct fair_user *user_new(struct fair_user **at, uint32_t uid)
{
	struct fair_user *u = calloc(1, sizeof(*u));

	if (u == NULL)
		return NULL;
	u->uid = uid;
	u->last = &u->waiting;
	*at = u;
	return u;
}

int fair_join(struct fair *f, struct fair_place *p, uint32_t uid)
{
	struct fair_user **at = user_at(&f->first, uid);
	struct fair_user *u = *at != NULL ? *at : user_new(at, uid);

	if (u == NULL)
		return -ENOMEM;
	u->n++;
	*p = (struct fair_place){.user = u};
	return 0;
}

static void user_drop(struct fair_user *u, struct fair_place *p)
{
	struct fair_place **at = &u->waiting;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	if (u->last == &p->next)
		u->last = at;
	p->waits = false;
}

void fair_leave(struct fair *f, struct fair_place *p)
{
	struct fair_user *u = p->user, **at;

	MUST(u != NULL && u->n > 0);
	if (p->waits)
		user_drop(u, p);
	p->user = NULL;
	if (--u->n > 0)
		return;
	at = user_at(&f->first, u->uid);
	*at = u->next;
	free(u);
}

uint32_t fair_count(const struct fair *f, uint32_t uid)
{
	const struct fair_user *u = f->first;

	while (u != NULL && u->uid != uid)
		u = u->next;
	return u != NULL ? u->n : 0;
}

void fair_wait(struct fair_place *p)
{
	MUST(p->user != NULL);
	if (p->waits)
		return;
	p->waits = true;
	p->next = NULL;
	*p->user->last = p;
	p->user->last = &p->next;
}

struct fair_place *fair_next(struct fair *f)
{
	struct fair_user **at = &f->first, *u;
	struct fair_place *p;

	while ((u = *at) != NULL && u->waiting == NULL)
		at = &u->next;
	if (u == NULL)
		return NULL;
	*at = u->next;
	u->next = NULL;
	while (*at != NULL)
		at = &(*at)->next;
	*at = u;
	p = u->waiting;
	user_drop(u, p);
	return p;
}
