/* SPDX-License-Identifier: MIT. retain.c: how long sessions are kept: retention_days, retention_mb,
 * retention_mb_per_uid. */
#include "retain.h"

#include <errno.h>
#include <stdlib.h>

#include "config.h"
#include "host_clock.h"
#include "log.h"
#include "share.h"
#include "store.h"

#define SECOND_NS 1000000000ull
#define HOUR_NS   3600000000000ull

/* By whatever came between the two: a clock that is believed, and a prune. */
struct age {
	struct store *store;
	int64_t now_ns;
	bool lasts;
	struct store_prune prune;
};

static void say_failed(struct log_cause *cause, int r, const struct err *e)
{
	char quoted[600];

	log_cause(cause, LOG_WARN, "prune_failed", "error=%d text=%s", -r,
		log_quote(quoted, sizeof(quoted), e->text));
}

static void prune_on_done(void *arg, int r, const struct err *e)
{
	static struct log_cause cause;

	if (r < 0 && r != -ECANCELED)
		say_failed(&cause, r, e);
	free(arg);
}

static int clock_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct age *x = arg;

	return store_clock_lasts(db, x->now_ns, &x->lasts, e);
}

static void clock_on_done(void *arg, int r, const struct err *e)
{
	struct age *x = arg;

	if (r == 0 && x->lasts && x->prune.before_ns != 0)
		store_prune(x->store, &x->prune, prune_on_done, x);
	else
		prune_on_done(x, r, e);
}

struct store_limits retain_limits(const struct daemon_config *c, bool private)
{
	struct store_limits l = {0};

	if (c->retention_mb < UINT64_MAX >> 20)
		l.bytes = c->retention_mb << 20;
	if (c->retention_mb_per_uid != 0 && c->retention_mb_per_uid < UINT64_MAX >> 20)
		l.bytes_per_uid = c->retention_mb_per_uid << 20;
	else if (!private && l.bytes != 0)
		l.bytes_per_uid = share_of(l.bytes, false).user;
	return l;
}

void retain_limit(const struct daemon_config *c, bool private, struct store *s)
{
	const struct store_limits l = retain_limits(c, private);

	store_limit(s, &l);
}

void retain_if_due(const struct daemon_config *c, struct store *s, uint64_t *last_ns, uint64_t now)
{
	static struct log_cause cause;
	struct err e;
	struct age *x;

	if (store_leave_trouble(s, &e))
		say_failed(&cause, e.code, &e);
	if (c->retention_days == 0 || (*last_ns != 0 && now - *last_ns < HOUR_NS))
		return;
	*last_ns = now;
	x = calloc(1, sizeof(*x));
	if (x == NULL)
		return;
	x->store = s;
	x->now_ns = real_ns();
	x->prune.uid = -1;
	if (c->retention_days < 100000)
		x->prune.before_ns =
			x->now_ns - (int64_t)c->retention_days * 86400 * (int64_t)SECOND_NS;
	store_call(s, clock_work, x, clock_on_done);
}
