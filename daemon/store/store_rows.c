/* SPDX-License-Identifier: MIT. store_rows.c: a batch into the database: one transaction, whole
 * rows, absolute values, so that a batch stored twice is stored once. Worker thread.
 *
 * A row that can never be stored (it breaks a constraint) is refused, counted and said, and the
 * rest goes on: else one bad row would hold up all that come after it for ever.
 */
#include "store_int.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "rows.h"
#include "session_terms.h"
#include "summary.h"

#define THIN_EVERY 4096u /* anchors: an hour's */

/* --- rows --- */

typedef int insert_fn(struct store_db *d, struct row_io *x, const void *row);

#define X(t, key, options)                                                           \
	static int insert_##t(struct store_db *d, struct row_io *x, const void *row) \
	{                                                                            \
		const int rc = row_put_##t(x, d->put[TABLE_##t], row);               \
                                                                                     \
		return rc == SQLITE_OK ? store_run(d->put[TABLE_##t]) : rc;          \
	}
TABLES(X)
#undef X

static insert_fn *const inserts[TABLE_MAX] = {
#define X(t, key, options) insert_##t,
	TABLES(X)
#undef X
};

/* The hash is the content: what is known stands there as it is, unless its place was made before
 * its description came. */
static int put_node(struct store_db *d, struct row_io *x, const struct row_node *n)
{
	static const uint8_t none[16];
	int rc = SQLITE_OK;

	if (!d->has_unknown && store_node_is_known(d, n->hash))
		return SQLITE_OK;
	x->above = 0;
	if (memcmp(n->parent, none, sizeof(none)) != 0)
		rc = store_node_id(d, n->parent, &x->above);
	if (rc == SQLITE_OK)
		rc = insert_node(d, x, n);
	return rc == SQLITE_OK ? store_node_learn(d, n->hash) : rc;
}

/* One that is gone takes those before it along. */
static int put_trace(struct store_db *d, struct row_io *x, const struct row_trace *t)
{
	sqlite3_stmt *drop = d->q[SQL_TRACE_DROP];
	struct row_trace row = *t;
	void *summary = NULL;
	int rc;

	if (t->bytes != NULL && t->events >= SUMMARY_EVENTS_MIN)
		summary = summariser_make(
			&d->summariser, d->db, t->process, t->bytes, t->n, &row.summary_n);
	row.summary = summary;
	rc = insert_trace(d, x, &row);
	free(summary);
	if (rc != SQLITE_OK || t->bytes != NULL)
		return rc;
	(void)sqlite3_bind_int64(drop, 1, t->session);
	(void)sqlite3_bind_int64(drop, 2, t->process);
	(void)sqlite3_bind_int64(drop, 3, t->number);
	return store_run(drop);
}

static int summary_step(struct store_db *d, void *arg, uint32_t *rows, struct err *e)
{
	const int rc = summariser_next(&d->summariser, d->db, &d->leave.bare);

	(void)arg;
	*rows += 1;
	return rc == SQLITE_ROW    ? PIECE_MORE
	       : rc == SQLITE_DONE ? PIECE_OVER
				   : store_fail(d->db, rc, e);
}

/* What an older protond stored has none. */
int store_summary_piece(struct store_db *d, struct err *e)
{
	int r;

	if (!d->leave.bares)
		return 0;
	r = store_piece(d, summary_step, NULL, NULL, 0, e);
	d->leave.bares = r != PIECE_OVER;
	return r;
}

/* No bytes: nothing is pending any more. */
static int put_pending(struct store_db *d, struct row_io *x, const struct row_pending *p)
{
	sqlite3_stmt *drop = d->q[SQL_PENDING_DROP];

	if (p->n > 0)
		return insert_pending(d, x, p);
	(void)sqlite3_bind_int64(drop, 1, p->process);
	return store_run(drop);
}

static int put_row(struct store_db *d, struct row_io *x, enum table_id t, const void *row)
{
	if (t == TABLE_node)
		return put_node(d, x, row);
	if (t == TABLE_trace)
		return put_trace(d, x, row);
	if (t == TABLE_pending)
		return put_pending(d, x, row);
	if (t == TABLE_member)
		store_sweep_keep_process(d, ((const struct row_member *)row)->process);
	return inserts[t](d, x, row);
}

static int raise_meta(struct store_db *d, const char *key, int64_t value)
{
	sqlite3_stmt *q = d->q[SQL_META_RAISE];

	(void)sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(q, 2, value);
	return store_run(q);
}

/* --- the transaction --- */

/* No retry will make these succeed. */
static bool is_the_rows_fault(int rc)
{
	rc &= 0xff;
	return rc == SQLITE_CONSTRAINT || rc == SQLITE_MISMATCH || rc == SQLITE_TOOBIG;
}

struct cell_key {
	const struct row_cell *cell;
	int64_t node;
};

#define COMPARE(a, b)   \
	if ((a) != (b)) \
	return (a) < (b) ? -1 : 1

static int cell_compare(const void *a, const void *b)
{
	const struct cell_key *x = a, *y = b;

	COMPARE(x->cell->session, y->cell->session);
	COMPARE(x->cell->process, y->cell->process);
	COMPARE(x->cell->segment, y->cell->segment);
	COMPARE(x->node, y->node);
	COMPARE(x->cell->device, y->cell->device);
	COMPARE(x->cell->class, y->cell->class);
	COMPARE(x->cell, y->cell); /* of two rows of one key the later one holds */
	return 0;
}

/* Cells in the order of their key: every page of the table is read and written once, not once a
 * cell. Nothing but speed depends on it, so a failure leaves them as they come. */
static void order_cells(struct store_db *d, const struct batch *b)
{
	struct cell_key *key = reallocarray(NULL, b->cell.n, sizeof(*key));
	uint32_t i;
	int rc = key == NULL ? SQLITE_NOMEM : SQLITE_OK;

	for (i = 0; rc == SQLITE_OK && i < b->cell.n; i++) {
		key[i].cell = &b->cell.row[i];
		rc = store_node_id(d, key[i].cell->node, &key[i].node);
	}
	if (rc == SQLITE_OK)
		d->order = reallocarray(NULL, b->cell.n, sizeof(*d->order));
	if (d->order != NULL) {
		qsort(key, b->cell.n, sizeof(*key), cell_compare);
		for (i = 0; i < b->cell.n; i++)
			d->order[i] = (uint32_t)(key[i].cell - b->cell.row);
	}
	free(key);
}

/* Which row comes i-th. The order of cells is made when the first is asked for: by then their nodes
 * have row ids. */
static uint32_t row_at(struct store_db *d, const struct batch *b, const void *rows, uint32_t i)
{
	if (rows != b->cell.row)
		return i;
	if (i == 0 && b->cell.n > 1)
		order_cells(d, b);
	return d->order == NULL ? i : d->order[i];
}

static int put_rows(struct store_db *d, const struct batch *b)
{
	struct row_io x = {.from = b, .nodes = d, .node_id = store_node_id};
	uint32_t i;
	int rc = SQLITE_OK;

#define X(t, key, options)                                                            \
	for (i = 0; rc == SQLITE_OK && i < b->t.n; i++) {                             \
		rc = put_row(d, &x, TABLE_##t, &b->t.row[row_at(d, b, b->t.row, i)]); \
		if (is_the_rows_fault(rc)) {                                          \
			store_refuse(d, #t, sqlite3_errmsg(d->db));                   \
			rc = SQLITE_OK;                                               \
		}                                                                     \
	}
	TABLES(X)
#undef X
	free(d->order);
	d->order = NULL;
	if (rc == SQLITE_OK)
		rc = raise_meta(d, "next_process", b->next_process);
	if (rc == SQLITE_OK)
		rc = raise_meta(d, "next_session", b->next_session);
	if (rc == SQLITE_OK)
		rc = raise_meta(d, "journal", (int64_t)b->journal);
	return rc;
}

static int drop_sessions(struct store_db *d, const struct batch *b, struct err *e)
{
	struct err why = {0};
	uint32_t i;
	int r = 0;

	for (i = 0; r == 0 && i < b->n_deleted; i++) {
		r = store_forget_session(d->db, b->deleted[i], &why);
		r = r == -ENOENT ? 0 : r; /* made and deleted between two transactions */
	}
	if (r < 0)
		return err_set(e, r, "%s", why.text);
	if (b->n_deleted > 0)
		d->leave.due = d->leave.sweep = d->leave.give_back = true;
	return 0;
}

/* Who never deletes a session keeps no more anchors for it: pieces of the clock grow longer with
 * age, as they do in memory (anchors_add()). */
static int thin_anchors(struct store_db *d, const struct batch *b, struct err *e)
{
	if (d->anchors_left > b->anchor.n) {
		d->anchors_left -= b->anchor.n;
		return 0;
	}
	d->anchors_left = THIN_EVERY;
	return store_exec(d->db, STORE_THIN, e);
}

static void roll_back(struct store_db *d)
{
	if (sqlite3_get_autocommit(d->db) == 0)
		(void)sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
	store_forget_nodes(d); /* it may name rows that were never committed */
}

/* Somebody is told that a session is stored: it must be so after a power cut too. */
static bool must_last(const struct batch *b)
{
	uint32_t i;

	for (i = 0; i < b->session.n; i++)
		if (session_is_over(b->session.row[i].state))
			return true;
	return false;
}

/* What is written to a file without a name is lost, and tools read another in its place. */
static int check_name(const struct store_db *d, struct err *e)
{
	struct stat open, named;

	if (fstat(d->lock_fd, &open) < 0 ||
		(stat(d->path, &named) == 0 && named.st_ino == open.st_ino &&
			named.st_dev == open.st_dev))
		return 0;
	return err_set(e, -ESTALE,
		"%s was moved or removed while protond had it open: put it back, and nothing is "
		"lost "
		"while the journal has room; or end protond, and the next one begins an empty "
		"database, without what waits",
		d->path);
}

int store_rows_put(struct store_db *d, const struct batch *b, struct err *e)
{
	const bool lasts = must_last(b);
	int r, rc;

	(void)store_db_from(d); /* checked */
	d->refused = 0;
	r = check_name(d, e);
	if (r < 0)
		return r;
	if (lasts)
		(void)store_exec(d->db, "PRAGMA synchronous=FULL", NULL);
	rc = store_run(d->q[SQL_BEGIN]);
	if (rc == SQLITE_OK)
		rc = put_rows(d, b);
	if (rc == SQLITE_OK)
		r = drop_sessions(d, b, e);
	if (rc == SQLITE_OK && r == 0)
		r = thin_anchors(d, b, e);
	if (rc == SQLITE_OK && r == 0)
		rc = store_run(d->q[SQL_COMMIT]);
	if (rc != SQLITE_OK)
		r = store_fail(d->db, rc, e);
	if (r < 0)
		roll_back(d);
	if (lasts) /* not before: inside of a transaction it does nothing */
		(void)store_exec(d->db, "PRAGMA synchronous=NORMAL", NULL);
	d->leave.look = d->leave.look || (r == 0 && b->session.n > 0);
	if (r == 0 && d->refused > 0)
		(void)err_set(e, -EBADMSG, "%u rows were refused, the first: %.400s", d->refused,
			d->refused_err.text);
	return r;
}
