/* SPDX-License-Identifier: MIT. discard.c: sessions that are wanted no more. */
#include "discard.h"

#include <stdlib.h>

#include "daemon.h"
#include "host_clock.h"
#include "must.h"

#define DISCARD_MAGIC 0x44495343u

struct discard {
	uint32_t magic;
	struct daemon *d;
	int64_t id;               /* delete */
	struct store_prune prune; /* prune */
	ready_fn *deleted;        /* one of the two */
	pruned_fn *pruned;
	void *arg;
};

static struct discard *discard_of(void *p)
{
	struct discard *x = p;

	MUST(x != NULL && x->magic == DISCARD_MAGIC);
	return x;
}

static struct discard *discard_new(struct daemon *d, void *arg)
{
	struct discard *x = calloc(1, sizeof(*x));

	if (x != NULL)
		*x = (struct discard){.magic = DISCARD_MAGIC, .d = d, .arg = arg};
	return x;
}

static void discard_end(struct discard *x, const struct refusal *no)
{
	if (x->deleted != NULL)
		x->deleted(x->arg, no);
	else
		x->pruned(x->arg, no, no == NULL ? &x->prune : NULL);
	x->magic = 0;
	free(x);
}

/* --- delete --- */

static int delete_work(struct sqlite3 *db, void *arg, struct err *e)
{
	return store_delete_session(db, discard_of(arg)->id, e);
}

static void delete_on_done(void *arg, int r, const struct err *e)
{
	const bool failed = r < 0 && r != -ENOENT; /* it was never stored, or somebody was faster */
	struct refusal no;

	if (failed)
		refuse_err(&no, e, NEXT_DOCTOR);
	discard_end(discard_of(arg), failed ? &no : NULL);
}

static void delete_on_commit(void *arg, int r, const struct err *e)
{
	struct discard *x = discard_of(arg);
	struct refusal no;

	if (r == 0) {
		store_call(x->d->store, delete_work, x, delete_on_done);
		return;
	}
	refuse_err(&no, e, NEXT_DOCTOR);
	discard_end(x, &no);
}

/* What is deleted while it lives is lost, and whoever waits for its end finds none. */
static int delete_live_refused(const struct session_ref *s, struct refusal *no)
{
	return refuse(no, -EBUSY, "finalize it first, or use `protonctl delete --force`",
		"session %ld '%s' %s", (long)s->id, s->name,
		s->state == SESSION_IS_ACTIVE ? "is still recording" : "has not been finalized");
}

void query_delete(
	struct daemon *d, const struct session_ref *s, bool force, ready_fn *done, void *arg)
{
	struct discard *x;
	struct refusal no;
	int r = 0;

	if (s->live && !session_is_over(s->state) && !force) {
		delete_live_refused(s, &no);
		done(arg, &no);
		return;
	}
	x = discard_new(d, arg);
	if (x == NULL)
		r = refuse_memory(&no);
	else if (s->live)
		r = change_apply_to(d, s, VERB_DELETE);
	if (r < 0) {
		if (x != NULL)
			change_failed(&no, r, "delete", s->name);
		free(x);
		done(arg, &no);
		return;
	}
	x->id = s->id;
	x->deleted = done;
	if (s->live)
		daemon_commit(d, delete_on_commit, x);
	else
		store_call(d->store, delete_work, x, delete_on_done);
}

/* --- prune --- */

static void prune_on_done(void *arg, int r, const struct err *e)
{
	struct discard *x = discard_of(arg);
	const uint32_t n = x->prune.went.n;
	struct refusal no;

	if (r < 0 && n > 0)
		refuse(&no, r, NEXT_DOCTOR, "%u session%s deleted before this failed: %.400s", n,
			n == 1 ? "" : "s", e->text);
	else if (r < 0)
		refuse_err(&no, e, NEXT_DOCTOR);
	discard_end(x, r < 0 ? &no : NULL);
}

int query_may_prune(const struct asker *a, const struct prune_wish *w, struct refusal *no)
{
	if (a->privileged || !w->all_users)
		return 0;
	return refuse(no, -EPERM, "without --all-users it deletes your own",
		"this would delete sessions of all users; only root, the daemon's own user and the "
		"group protond may do that");
}

static int64_t before(uint64_t older_than_s)
{
	const int64_t now_s = real_ns() / 1000000000;

	if (older_than_s == 0)
		return 0;
	return older_than_s < (uint64_t)now_s ? (now_s - (int64_t)older_than_s) * 1000000000 : 1;
}

/* What a private daemon has is one user's: of his sessions the size is the file's. */
void query_prune(struct daemon *d, const struct asker *a, const struct prune_wish *w,
	pruned_fn *done, void *arg)
{
	struct discard *x = discard_new(d, arg);
	struct refusal no;

	MUST(a->privileged || !w->all_users);
	if (x == NULL) {
		refuse_memory(&no);
		done(arg, &no, NULL);
		return;
	}
	x->prune.uid = w->all_users || d->private ? -1 : (int64_t)a->uid;
	x->prune.before_ns = before(w->older_than_s);
	if (w->older_than_s == 0 && w->max_bytes == 0)
		x->prune.before_ns = INT64_MAX;
	x->prune.max_bytes = w->max_bytes;
	x->prune.keep = w->keep;
	x->prune.dry = w->dry;
	x->prune.slice_ms = w->slice_ms;
	x->pruned = done;
	store_prune(d->store, &x->prune, prune_on_done, x);
}
