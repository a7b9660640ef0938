/* SPDX-License-Identifier: MIT. store_sweep.c: the sweep, in pieces. */
#include "store_sweep.h"

#include <stdlib.h>
#include <string.h>

#include "store_int.h"

#define STEP 256u /* rows that one statement reads or deletes */

enum { NODES, PROCESSES };

static bool is_kept(const struct sweep *w, int of, int64_t id)
{
	const uint64_t i = (uint64_t)id;

	return i >= w->n[of] || (w->bits[of][i / 64] >> (i % 64) & 1) != 0;
}

static void keep(struct sweep *w, int of, int64_t id)
{
	const uint64_t i = (uint64_t)id;

	if (i < w->n[of])
		w->bits[of][i / 64] |= 1ull << (i % 64);
}

void store_sweep_stop(struct store_db *d)
{
	free(d->sweep.bits[NODES]);
	free(d->sweep.bits[PROCESSES]);
	d->sweep = (struct sweep){0};
}

/* --- nodes that somebody refers to --- */

/* 0: it has none. SQLITE_…. */
static int parent_of(struct store_db *d, int64_t id, int64_t *ret)
{
	sqlite3_stmt *q = d->q[SQL_NODE_PARENT];
	int rc;

	(void)sqlite3_bind_int64(q, 1, id);
	rc = sqlite3_step(q);
	*ret = rc == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
	(void)sqlite3_reset(q);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* It and those above it, up to one that is kept: what is above that is, or the climb comes by. */
static int keep_chain(struct store_db *d, int64_t id)
{
	int rc = SQLITE_OK;

	while (rc == SQLITE_OK && id != 0 && !is_kept(&d->sweep, NODES, id)) {
		keep(&d->sweep, NODES, id);
		rc = parent_of(d, id, &id);
	}
	return rc;
}

void store_sweep_keep_node(struct store_db *d, int64_t id)
{
	if (d->sweep.phase == 0 || keep_chain(d, id) == SQLITE_OK)
		return;
	store_sweep_stop(d); /* it begins anew, with what is then */
	d->leave.sweep = true;
}

void store_sweep_keep_process(struct store_db *d, int64_t id)
{
	if (d->sweep.phase != 0)
		keep(&d->sweep, PROCESSES, id);
}

/* --- phases: 1: there is more; 0: over; -errno --- */

typedef int phase_fn(struct store_db *d, uint32_t *rows, struct err *e);

/* Reads on behind at[] and marks; the row's last column is what is referred to, and all of them
 * are where it is. */
static int mark(struct store_db *d, const char *sql, int of, struct err *e)
{
	struct sweep *w = &d->sweep;
	sqlite3_stmt *q = NULL;
	int i, n = 0, columns, rc = sqlite3_prepare_v2(d->db, sql, -1, &q, NULL);

	columns = sqlite3_column_count(q);
	for (i = 0; rc == SQLITE_OK && i < columns; i++)
		rc = sqlite3_bind_int64(q, i + 1, w->at[i]);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(q, columns + 1, 4 * STEP);
	while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		for (i = 0; i < columns; i++)
			w->at[i] = sqlite3_column_int64(q, i);
		keep(w, of, w->at[columns - 1]);
		n++;
		rc = SQLITE_OK;
	}
	(void)sqlite3_finalize(q);
	if (rc != SQLITE_DONE)
		return store_fail(d->db, rc, e);
	return n == 4 * (int)STEP;
}

#define MARK(table, key, behind) \
	"SELECT " key " FROM " table " WHERE (" key ")>(" behind ") ORDER BY " key " LIMIT ?"

/* Of rows that differ by device and class alone, one is enough. */
static int mark_cells(struct store_db *d, uint32_t *rows, struct err *e)
{
	(void)rows;
	return mark(d, MARK("cell", "session,process,segment,node", "?,?,?,?"), NODES, e);
}

static int mark_metrics(struct store_db *d, uint32_t *rows, struct err *e)
{
	(void)rows;
	return mark(d, MARK("metric", "session,process,segment,node", "?,?,?,?"), NODES, e);
}

static int mark_configs(struct store_db *d, uint32_t *rows, struct err *e)
{
	(void)rows;
	return mark(d, MARK("config", "session,process,node", "?,?,?"), NODES, e);
}

static int mark_members(struct store_db *d, uint32_t *rows, struct err *e)
{
	(void)rows;
	return mark(d, MARK("member", "session,process", "?,?"), PROCESSES, e);
}

/* Nodes with id below at[0], the youngest first: ids into id[STEP], and their parents. */
static int read_nodes(struct store_db *d, int64_t *id, int64_t *parent, int *ret_n, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int n = 0, rc = sqlite3_prepare_v2(d->db,
			   "SELECT id,parent FROM node WHERE id<?1 ORDER BY id DESC LIMIT ?2", -1,
			   &q, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(q, 1, d->sweep.at[0]);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(q, 2, STEP);
	while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		MUST(n < (int)STEP);
		id[n] = sqlite3_column_int64(q, 0);
		parent[n++] = sqlite3_column_int64(q, 1);
		rc = SQLITE_OK;
	}
	(void)sqlite3_finalize(q);
	if (rc != SQLITE_DONE)
		return store_fail(d->db, rc, e);
	*ret_n = n;
	return 0;
}

/* A parent is nearly always older than its child. One that is not stays until the next sweep, so
 * that it does not go before the child. */
static int climb(struct store_db *d, uint32_t *rows, struct err *e)
{
	int64_t id[STEP], parent[STEP];
	int i, n, rc = SQLITE_OK, r = read_nodes(d, id, parent, &n, e);

	(void)rows;
	if (r < 0)
		return r;
	for (i = 0; rc == SQLITE_OK && i < n; i++) {
		if (parent[i] != 0 && (parent[i] > id[i] || is_kept(&d->sweep, NODES, id[i])))
			rc = keep_chain(d, parent[i]);
		d->sweep.at[0] = id[i];
	}
	return rc != SQLITE_OK ? store_fail(d->db, rc, e) : n == (int)STEP;
}

static int delete_nodes(struct store_db *d, uint32_t *rows, struct err *e)
{
	int64_t id[STEP], parent[STEP];
	int i, n, r = read_nodes(d, id, parent, &n, e);

	for (i = 0; r == 0 && i < n; i++) {
		if (!is_kept(&d->sweep, NODES, id[i])) {
			r = store_exec_id(d->db, "DELETE FROM node WHERE id=?1", id[i], e);
			++*rows;
			d->leave.forget_nodes = true;
		}
		d->sweep.at[0] = id[i];
	}
	return r < 0 ? r : n == (int)STEP;
}

static int delete_process(struct store_db *d, int64_t id, uint32_t *rows, struct err *e)
{
	static const char *const sql[] = {
#define X(text) text,
		STORE_DROP_PROCESS(X)
#undef X
	};
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < sizeof(sql) / sizeof(*sql); i++) {
		r = store_exec_id(d->db, sql[i], id, e);
		*rows += (uint32_t)sqlite3_changes(d->db);
	}
	return r;
}

static int delete_processes(struct store_db *d, uint32_t *rows, struct err *e)
{
	int64_t *at = &d->sweep.at[0];
	uint32_t looked;
	int r = 0;

	for (looked = 0; r == 0 && looked < STEP / 4; looked++) {
		r = store_int(d->db,
			"SELECT id FROM process WHERE id>?1 AND ended_ns IS NOT NULL ORDER BY id "
			"LIMIT 1",
			*at, 0, at, e);
		if (r == 0 && !is_kept(&d->sweep, PROCESSES, *at))
			r = delete_process(d, *at, rows, e);
	}
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

static int delete_anchors(struct store_db *d, uint32_t *rows, struct err *e)
{
	int n, r = store_exec_id(d->db, STORE_OLD_ANCHORS, d->sweep.anchors_from, e);

	n = r == 0 ? sqlite3_changes(d->db) : 0;
	*rows += (uint32_t)n;
	return r < 0 ? r : n > 0;
}

static int finish(struct store_db *d, uint32_t *rows, struct err *e)
{
	(void)rows;
	return d->sweep.late ? 0 : store_exec(d->db, "DELETE FROM meta WHERE key='sweep'", e);
}

static const struct {
	phase_fn *run;
	bool writes;
} phases[] = {
	{NULL, false},
	{mark_cells, false},
	{mark_metrics, false},
	{mark_configs, false},
	{climb, false},
	{delete_nodes, true},
	{mark_members, false},
	{delete_processes, true},
	{delete_anchors, true},
	{finish, true},
};
#define PHASES (sizeof(phases) / sizeof(*phases))

/* Of whom does it go down from the youngest? */
static void enter(struct sweep *w, uint32_t phase)
{
	w->phase = phase;
	memset(w->at, 0, sizeof(w->at));
	if (phases[phase].run == climb || phases[phase].run == delete_nodes)
		w->at[0] = (int64_t)w->n[NODES];
}

/* --- a piece --- */

static int bits_new(struct store_db *d, int of, const char *sql, struct err *e)
{
	struct sweep *w = &d->sweep;
	int64_t n = 0;
	const int r = store_int(d->db, sql, 0, 0, &n, e);

	if (r < 0)
		return r;
	w->n[of] = (uint64_t)n;
	w->bits[of] = calloc((size_t)(w->n[of] / 64 + 1), sizeof(*w->bits[of]));
	return w->bits[of] != NULL ? 0
				   : err_set(e, -ENOMEM, "out of memory while sweeping the store");
}

static int begin(struct store_db *d, struct err *e)
{
	int r;

	d->leave.unswept = 0;
	d->leave.sweep = false;
	r = bits_new(d, NODES, "SELECT coalesce(max(id),0)+1 FROM node", e);
	if (r == 0)
		r = bits_new(d, PROCESSES, "SELECT coalesce(max(id),0)+1 FROM process", e);
	if (r == 0)
		r = store_int(d->db, STORE_ANCHORS_FROM, 0, 0, &d->sweep.anchors_from, e);
	if (r == 0)
		enter(&d->sweep, 1);
	return r;
}

static int write_step(struct store_db *d, void *arg, uint32_t *rows, struct err *e)
{
	(void)arg;
	return phases[d->sweep.phase].run(d, rows, e);
}

/* Reads on, without a transaction of its own. */
static int read_piece(struct store_db *d, struct err *e)
{
	const uint64_t until = store_now_ns() + PIECE_NS;
	uint32_t rows = 0;
	int r;

	do
		r = phases[d->sweep.phase].run(d, &rows, e);
	while (r > 0 && store_now_ns() < until);
	return r;
}

int store_sweep_piece(struct store_db *d, struct err *e)
{
	struct sweep *w = &d->sweep;
	int r = w->phase == 0 ? begin(d, e) : 0;

	if (r == 0)
		r = phases[w->phase].writes
			    ? store_piece(d, write_step, NULL, w->at, sizeof(w->at), e)
			    : read_piece(d, e);
	if (r > 0 && w->phase != 0)
		return 1;
	if (r == 0 && w->phase + 1 < PHASES) {
		enter(w, w->phase + 1);
		return 1;
	}
	store_sweep_stop(d);
	d->leave.sweep = d->leave.sweep || r < 0;
	return r;
}
