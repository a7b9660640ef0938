/* SPDX-License-Identifier: MIT. ranks.c: the processes of a session, node by node. */
#include "ranks.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

struct key {
	const struct profile *p;
	uint32_t parent;
	const char *name;
};

struct work {
	struct ranks *r;
	struct table index; /* (parent, name) → node of r->p */
	uint32_t cap, cap_ns;
	struct column {
		uint64_t *ns, *host_ns; /* [cap]: by node of r->p */
		uint32_t cap, cap_host;
	} of[RANKS_MAX]; /* of each process */
};

static bool is_it(const void *of, uint32_t at)
{
	const struct key *k = of;

	return k->p->node[at].parent == k->parent && strcmp(k->p->node[at].name, k->name) == 0;
}

static uint32_t hash_of(uint32_t parent, const char *name)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *name != '\0'; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	return table_mix(h, parent);
}

/* The node of all that stands for a process's one below `parent`. PROFILE_NONE: out of memory. */
static uint32_t place(struct work *w, uint32_t parent, const struct profile_node *like)
{
	const struct key k = {w->r->p, parent, like->name};
	const uint32_t hash = hash_of(parent, like->name);
	uint32_t at = table_find(&w->index, hash, is_it, &k);

	if (at != TABLE_NONE)
		return at;
	at = profile_add_node(w->r->p, parent, like->name, like->kind);
	if (at == PROFILE_NONE)
		return at;
	w->r->p->node[at].class = like->class;
	/* -ENOSPC: names that were chosen to collide stand twice. */
	return table_add(&w->index, hash, at) == -ENOMEM ? PROFILE_NONE : at;
}

static int add_process(
	struct work *w, uint32_t which, const struct profile *p, const struct costs *c)
{
	struct column *col = &w->of[which];
	uint32_t *map = malloc(p->n_nodes * sizeof(*map)), i;
	int r = map == NULL ? -ENOMEM : 0;

	for (i = 0; i < p->n_nodes && r == 0; i++) {
		map[i] = i == 0 ? 0 : place(w, map[p->node[i].parent], &p->node[i]);
		if (map[i] == PROFILE_NONE || !ZEROED_FOR(col->ns, col->cap, map[i] + 1) ||
			!ZEROED_FOR(col->host_ns, col->cap_host, map[i] + 1)) {
			r = -ENOMEM;
		} else {
			col->ns[map[i]] += c->all[i][w->r->cost];
			col->host_ns[map[i]] += c->all[i][COST_cpu_time];
		}
	}
	if (r == 0)
		w->r->process[which].total_ns = c->all[0][w->r->cost];
	free(map);
	return r;
}

/* --- reading */

static int list_processes(struct work *w, struct sqlite3 *db, int64_t id, struct err *e)
{
	static const char sql[] =
		"SELECT p.id, p.pid, p.rank FROM member m JOIN process p ON p.id = m.process"
		" WHERE m.session = ?1 ORDER BY p.rank IS NULL, p.rank, p.id";
	struct ranks *r = w->r;
	sqlite3_stmt *st;
	int more;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		return err_set(e, -EBADMSG, "the database cannot be read: %s", sqlite3_errmsg(db));
	(void)sqlite3_bind_int64(st, 1, id);
	while ((more = sqlite3_step(st)) == SQLITE_ROW) {
		if (r->n == RANKS_MAX) {
			r->left_out++;
			continue;
		}
		if (!ROOM_FOR(r->process, w->cap, r->n)) {
			(void)sqlite3_finalize(st);
			return err_set(e, -ENOMEM, "out of memory");
		}
		r->process[r->n++] = (struct ranks_process){sqlite3_column_int64(st, 0),
			sqlite3_column_int64(st, 1),
			sqlite3_column_type(st, 2) == SQLITE_NULL ? -1
								  : sqlite3_column_int64(st, 2),
			0};
	}
	(void)sqlite3_finalize(st);
	if (more != SQLITE_DONE)
		return err_set(e, -EBADMSG, "the database cannot be read: %s", sqlite3_errmsg(db));
	return r->n < 2 ? err_set(e, -ENODATA, "one process is in it; ranks need two") : 0;
}

static int read_process(
	struct work *w, struct sqlite3 *db, int64_t id, uint32_t which, struct err *e)
{
	const struct profile_select s = {
		.id = w->r->process[which].id, .lean = true, .brief = true};
	struct costs c = {0};
	struct profile *p;
	int r;

	r = profile_load(db, id, &s, &p, e);
	if (r < 0)
		return r;
	r = costs_new(p, &c);
	if (r == 0 && c.main == COST_gpu_time && which == 0)
		w->r->cost = COST_gpu_time;
	if (r == 0)
		r = add_process(w, which, p, &c);
	costs_free(&c);
	profile_free(p);
	return r < 0 ? err_set(e, r, "out of memory") : 0;
}

/* --- rows */

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int by_spread(const void *a, const void *b)
{
	const struct ranks_row *x = a, *y = b;
	const uint64_t v = x->max_ns - x->median_ns, w = y->max_ns - y->median_ns;

	if (v != w)
		return v < w ? 1 : -1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static void add_row(struct ranks *r, uint32_t node)
{
	uint64_t *const of = r->ns + (size_t)node * r->n, there[RANKS_MAX];
	struct ranks_row row = {.node = node};
	uint32_t i;

	for (i = 0; i < r->n; i++) {
		if (of[i] == 0)
			continue;
		there[row.in++] = of[i];
		if (of[i] > row.max_ns) {
			row.max_ns = of[i];
			row.slowest = i;
		}
	}
	if (row.in < 2)
		return;
	qsort(there, row.in, sizeof(*there), by_size);
	row.min_ns = there[0];
	row.median_ns = there[(row.in - 1) / 2];
	r->row[r->n_rows++] = row;
}

static int make_rows(struct work *w)
{
	struct ranks *r = w->r;
	uint32_t i, k;

	r->ns = calloc((size_t)r->p->n_nodes * r->n, sizeof(*r->ns));
	r->row = calloc(r->p->n_nodes, sizeof(*r->row));
	if (r->cost != COST_cpu_time)
		r->host_ns = calloc((size_t)r->p->n_nodes * r->n, sizeof(*r->host_ns));
	if (r->ns == NULL || r->row == NULL || (r->cost != COST_cpu_time && r->host_ns == NULL))
		return -ENOMEM;
	for (k = 0; k < r->n; k++)
		for (i = 0; i < r->p->n_nodes && i < w->of[k].cap; i++) {
			r->ns[(size_t)i * r->n + k] = w->of[k].ns[i];
			if (r->host_ns != NULL)
				r->host_ns[(size_t)i * r->n + k] = w->of[k].host_ns[i];
		}
	for (i = 1; i < r->p->n_nodes; i++)
		add_row(r, i);
	qsort(r->row, r->n_rows, sizeof(*r->row), by_spread);
	if (r->n_rows > RANKS_ROWS_MAX)
		r->n_rows = RANKS_ROWS_MAX;
	return 0;
}

uint32_t ranks_worked(const struct ranks *r)
{
	uint32_t i, n = 0;

	for (i = 0; i < r->n; i++)
		n += r->process[i].total_ns > 0;
	return n;
}

int ranks_read(struct sqlite3 *db, int64_t id, struct ranks **ret, struct err *e)
{
	struct work *w = calloc(1, sizeof(*w));
	int r = -ENOMEM;
	uint32_t i;

	if (w != NULL)
		w->r = calloc(1, sizeof(*w->r));
	if (w != NULL && w->r != NULL)
		w->r->p = profile_new();
	if (w == NULL || w->r == NULL || w->r->p == NULL) {
		(void)err_set(e, -ENOMEM, "out of memory");
	} else {
		w->r->cost = COST_cpu_time;
		r = list_processes(w, db, id, e);
		for (i = 0; r == 0 && i < w->r->n; i++)
			r = read_process(w, db, id, i, e);
		if (r == 0 && make_rows(w) < 0)
			r = err_set(e, -ENOMEM, "out of memory");
	}
	for (i = 0; w != NULL && i < RANKS_MAX; i++) {
		free(w->of[i].ns);
		free(w->of[i].host_ns);
	}
	if (w != NULL)
		table_fini(&w->index);
	if (r == 0)
		*ret = w->r;
	else if (w != NULL)
		ranks_free(w->r);
	free(w);
	return r;
}

double ranks_meeting_ns(const struct ranks *r, uint32_t k)
{
	double ns = 0;
	uint32_t i;

	for (i = 1; i < r->p->n_nodes; i++)
		if (r->p->node[i].class == CLASS_COMM)
			ns += (double)r->ns[(size_t)i * r->n + k];
	return ns;
}

void ranks_free(struct ranks *r)
{
	if (r == NULL)
		return;
	profile_free(r->p);
	free(r->process);
	free(r->row);
	free(r->ns);
	free(r->host_ns);
	free(r);
}
