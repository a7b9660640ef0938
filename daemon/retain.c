/* SPDX-License-Identifier: MIT. retain.c: how long sessions are kept: retention_days, retention_mb.
 */
#include "retain.h"

#include <stdlib.h>

#include "config.h"
#include "host_clock.h"
#include "log.h"
#include "store.h"

#define SECOND_NS 1000000000ull
#define HOUR_NS   3600000000000ull

static void prune_on_done(void *arg, int r, const struct err *e)
{
	char quoted[600];

	if (r < 0)
		log_line(LOG_WARN, "prune_failed", "error=%d text=%s", -r,
			log_quote(quoted, sizeof(quoted), e->text));
	free(arg);
}

struct prune {
	int64_t now_ns, before_ns;
	uint64_t bytes;
	struct store_pruned gone;
};

static int prune_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct prune *x = arg;
	bool lasts;
	int r = store_clock_lasts(db, x->now_ns, &lasts, e);

	return r < 0 ? r : store_prune(db, lasts ? x->before_ns : 0, x->bytes, &x->gone, e);
}

/* Retention, once an hour. */
void retain_if_due(const struct daemon_config *c, struct store *s, uint64_t *last_ns, uint64_t now)
{
	struct prune *x;

	if ((c->retention_days == 0 && c->retention_mb == 0) ||
		(*last_ns != 0 && now - *last_ns < HOUR_NS))
		return;
	*last_ns = now;
	x = calloc(1, sizeof(*x));
	if (x == NULL)
		return;
	x->now_ns = real_ns();
	if (c->retention_days != 0 && c->retention_days < 100000)
		x->before_ns = x->now_ns - (int64_t)c->retention_days * 86400 * (int64_t)SECOND_NS;
	if (c->retention_mb < UINT64_MAX >> 20)
		x->bytes = c->retention_mb << 20;
	store_call(s, prune_work, x, prune_on_done);
}
