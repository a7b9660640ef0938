/* SPDX-License-Identifier: MIT. fair.c: whose request is next. */
#include "fair.h"

#include <errno.h>
#include <stdlib.h>

#include "must.h"

struct fair_user {
	struct fair_user *next;
	struct fair *f;         /* NULL: is gone */
	uint32_t uid, n, begun; /* who joined; requests, of those and of who has left */
	struct fair_place *waiting, **last;
};

/* The place of that user, or of the end of the list. */
static struct fair_user **user_at(struct fair_user **at, uint32_t uid)
{
	while (*at != NULL && (*at)->uid != uid)
		at = &(*at)->next;
	return at;
}

static struct fair_user *user_new(struct fair *f, struct fair_user **at, uint32_t uid)
{
	struct fair_user *u = calloc(1, sizeof(*u));

	if (u == NULL)
		return NULL;
	u->f = f;
	u->uid = uid;
	u->last = &u->waiting;
	*at = u;
	return u;
}

int fair_join(struct fair *f, struct fair_place *p, uint32_t uid)
{
	struct fair_user **at = user_at(&f->first, uid);
	struct fair_user *u = *at != NULL ? *at : user_new(f, at, uid);

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

static void user_check(struct fair_user *u)
{
	struct fair_user **at;

	if (u->n > 0 || u->begun > 0)
		return;
	if (u->f != NULL) {
		at = user_at(&u->f->first, u->uid);
		*at = u->next;
	}
	free(u);
}

void fair_leave(struct fair_place *p)
{
	struct fair_user *u = p->user;

	MUST(u != NULL && u->n > 0);
	if (p->waits)
		user_drop(u, p);
	p->user = NULL;
	u->n--;
	user_check(u);
}

struct fair_user *fair_begin(struct fair_place *p)
{
	struct fair_user *u = p->user;

	MUST(u != NULL && u->f != NULL);
	u->begun++;
	u->f->begun++;
	return u;
}

struct fair *fair_end(struct fair_user *u)
{
	struct fair *f = u->f;

	MUST(u->begun > 0);
	u->begun--;
	if (f != NULL)
		f->begun--;
	user_check(u);
	return f;
}

void fair_fini(struct fair *f)
{
	struct fair_user *u;

	while ((u = f->first) != NULL) {
		f->first = u->next;
		u->f = NULL;
		user_check(u);
	}
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

	while ((u = *at) != NULL &&
		(u->waiting == NULL || share_room(&f->share, f->begun, u->begun, 1) < 0))
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
