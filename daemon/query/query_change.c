/* SPDX-License-Identifier: MIT. query_change.c: what the control socket does to stored sessions:
 * delete, prune, and one session as a portable file. The work runs on the store's worker. */
#include "control.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "memfd.h"

struct change {
	struct request *q;
	int64_t id;               /* of the session */
	int64_t before_ns;        /* prune */
	uint64_t max_bytes;       /* prune */
	struct store_pruned gone; /* prune */
	int fd;                   /* portable: the memfd */
	bool timeline;            /* portable: with it */
	int64_t bytes;
};

static struct change *change_new(struct request *q)
{
	struct change *c = calloc(1, sizeof(*c));
	struct err e;

	if (c == NULL) {
		(void)err_set(&e, -ENOMEM, "out of memory");
		request_fail(q, &e, "");
		return NULL;
	}
	c->q = q;
	c->id = q->session.id;
	c->fd = -1;
	q->work = c;
	return c;
}

/* --- delete
 * --------------------------------------------------------------------------------------- */

static int delete_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct change *c = arg;

	return store_delete_session(db, c->id, e);
}

static void delete_on_done(void *arg, int r, const struct err *e)
{
	struct change *c = arg;
	struct request *q = c->q;
	struct wire_buf *b;

	if (r < 0 && r != -ENOENT) { /* -ENOENT: it was never stored, or somebody was faster */
		request_fail(q, e, "protonctl doctor looks at the database");
		return;
	}
	b = request_result(q);
	wire_kv_i64(b, "id", q->session.id);
	wire_kv_str(b, "name", q->session.name);
	request_done(q, NULL);
}

void query_delete(struct request *q)
{
	struct change *c = change_new(q);

	if (c != NULL)
		store_call(q->d->store, delete_work, c, delete_on_done);
}

/* --- prune
 * ---------------------------------------------------------------------------------------- */

static int prune_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct change *c = arg;

	return store_prune(db, c->before_ns, c->max_bytes, &c->gone, e);
}

static void prune_on_done(void *arg, int r, const struct err *e)
{
	struct change *c = arg;
	struct request *q = c->q;
	struct wire_buf *b;
	struct err partly;
	uint32_t i;

	if (r < 0) {
		(void)err_set(&partly, r, "%u deleted, then: %.400s", c->gone.n, e->text);
		request_fail(
			q, c->gone.n > 0 ? &partly : e, "protonctl doctor looks at the database");
		return;
	}
	b = request_result(q);
	wire_kv_u64(b, "deleted", c->gone.n);
	wire_str(b, "sessions");
	wire_array(b);
	for (i = 0; i < c->gone.n && i < PRUNED_NAMED; i++) {
		wire_map(b);
		wire_kv_i64(b, "id", c->gone.first[i].id);
		wire_kv_str(b, "name", c->gone.first[i].name);
		wire_close(b);
	}
	wire_close(b);
	request_done(q, NULL);
}

void query_prune(struct request *q, uint64_t older_than_s, uint64_t max_bytes)
{
	struct change *c = change_new(q);
	const int64_t now_s = real_ns() / 1000000000;

	if (c == NULL)
		return;
	if (older_than_s > 0)
		c->before_ns = older_than_s < (uint64_t)now_s
				       ? (now_s - (int64_t)older_than_s) * 1000000000
				       : 1;
	c->max_bytes = max_bytes;
	store_call(q->d->store, prune_work, c, prune_on_done);
}

/* --- portable
 * ------------------------------------------------------------------------------------- */

static int portable_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct change *c = arg;
	unsigned char *image = NULL;
	int r = store_portable(db, c->id, c->timeline, &image, &c->bytes, e);

	if (r < 0)
		return r;
	r = c->fd = memfd_of(image, (size_t)c->bytes);
	sqlite3_free(image);
	return r < 0 ? err_set(e, r, "no memory for the session's file: %s", strerror(-r)) : 0;
}

static void portable_on_done(void *arg, int r, const struct err *e)
{
	struct change *c = arg;
	struct request *q = c->q;
	struct wire_buf *b;
	struct err words;
	int fd = c->fd;

	if (r < 0) {
		request_fail(q, e, "protonctl sessions lists what is stored");
		return;
	}
	if (memfd_lend(&q->d->lent, q->peer.uid, &fd, &words) < 0) {
		(void)close(fd);
		request_fail(q, &words, LENT_HELP);
		return;
	}
	b = request_result(q);
	wire_kv_i64(b, "id", q->session.id);
	wire_kv_bin(b, "uuid", q->session.uuid, 16);
	wire_kv_bool(b, "fd", true);
	wire_kv_u64(b, "bytes", (uint64_t)c->bytes);
	request_done(q, &fd);
}

void query_portable(struct request *q)
{
	struct change *c = change_new(q);

	if (c == NULL)
		return;
	(void)wire_get_bool(q->params, "timeline", &c->timeline); /* no boolean: without it */
	store_call(q->d->store, portable_work, c, portable_on_done);
}
