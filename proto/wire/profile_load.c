/* SPDX-License-Identifier: MIT. profile_load.c: one session of a store as a tree: processes,
 * devices and segments merged unless one is selected. Reads in one transaction, so that a daemon
 * may write.
 *
 *   cells ──► slots (one a node, by row id) ──► the node rows and their ancestors ──► profile
 */
#include "profile_load.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"

/* clang-format off */
/* Of all processes, or of ?2. */
#define ALL " WHERE session = ?1"
#define ONE " WHERE session = ?1 AND process = ?2"
#define CELL "SELECT node, device, class, count, sum_ns, open, process"
#define MORE ", bytes, untimed, segment"
#define HIST ", min_ns, max_ns, hist"
#define METRIC "SELECT node, name, kind, value, segment FROM metric"
#define CONFIG "SELECT node, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers,"        \
	" static_shared, dynamic_shared, count FROM config"
#define NODE "SELECT id, parent, kind, name FROM node"
#define STATEMENTS(X) /* each _ONE follows its own kind */                                         \
	X(CELL, CELL MORE HIST " FROM cell" ALL)                                                   \
	X(CELL_ONE, CELL MORE HIST " FROM cell" ONE)                                               \
	X(LEAN, CELL MORE " FROM cell" ALL)                                                        \
	X(LEAN_ONE, CELL MORE " FROM cell" ONE)                                                    \
	X(BRIEF, CELL " FROM cell" ALL)                                                            \
	X(BRIEF_ONE, CELL " FROM cell" ONE)                                                        \
	X(METRIC, METRIC ALL)                                                                      \
	X(METRIC_ONE, METRIC ONE)                                                                  \
	X(CONFIG, CONFIG ALL)                                                                      \
	X(CONFIG_ONE, CONFIG ONE)                                                                  \
	X(NODE, NODE " WHERE id = ?1")                                                             \
	X(NODES, NODE " WHERE id BETWEEN ?1 AND ?2")
/* clang-format on */

enum {
#define X(name, sql) SQL_##name,
	STATEMENTS(X)
#undef X
};
static const char *const statements[] = {
#define X(name, sql) sql,
	STATEMENTS(X)
#undef X
};

/* Of a cell's row, in the order of CELL, MORE and HIST. */
enum cell_column {
	CELL_NODE,
	CELL_DEVICE,
	CELL_CLASS,
	CELL_COUNT,
	CELL_SUM,
	CELL_OPEN,
	CELL_PROCESS,
	CELL_BYTES,
	CELL_UNTIMED,
	CELL_SEGMENT,
	CELL_MIN,
	CELL_MAX,
	CELL_HIST
};

/* --- statements
 * ----------------------------------------------------------------------------------- */

uint64_t load_sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t load_u64(sqlite3_stmt *st, int column)
{
	int64_t v = sqlite3_column_int64(st, column);

	return v < 0 ? 0 : (uint64_t)v;
}

const char *load_text(struct load *l, sqlite3_stmt *st, int column)
{
	const char *s = (const char *)sqlite3_column_text(st, column);

	return profile_text(l->p, s == NULL ? "" : s, (size_t)sqlite3_column_bytes(st, column));
}

static int db_error(struct load *l)
{
	int code = sqlite3_errcode(l->db);

	if (code == SQLITE_NOMEM)
		return err_set(l->e, -ENOMEM, "out of memory");
	return err_set(l->e, -EBADMSG, "the database cannot be read: %s", sqlite3_errmsg(l->db));
}

int load_prepare(struct load *l, const char *sql, sqlite3_stmt **ret)
{
	if (sqlite3_prepare_v2(l->db, sql, -1, ret, NULL) != SQLITE_OK)
		return db_error(l);
	if (sqlite3_bind_parameter_count(*ret) >= 1)
		(void)sqlite3_bind_int64(*ret, 1, l->session);
	return 0;
}

int load_step(struct load *l, sqlite3_stmt *st)
{
	switch (sqlite3_step(st)) {
	case SQLITE_ROW:
		return 1;
	case SQLITE_DONE:
		return 0;
	default:
		return db_error(l);
	}
}

typedef int row_fn(struct tree *t, sqlite3_stmt *st);

/* Each row of the selected processes; all processes go in one pass. */
static int each_row(struct tree *t, int which, row_fn *row)
{
	struct load *l = t->l;
	bool one = l->select->process != NULL;
	uint32_t i, n = one ? l->n_processes : 1;
	sqlite3_stmt *st;
	int r, more = 0;

	r = load_prepare(l, statements[which + one], &st);
	for (i = 0; r == 0 && more == 0 && i < n; i++) {
		if (one)
			(void)sqlite3_bind_int64(st, 2, l->process[i].id);
		while (r == 0 && (more = load_step(l, st)) > 0)
			r = row(t, st);
		(void)sqlite3_reset(st);
	}
	(void)sqlite3_finalize(st);
	return more < 0 ? more : r;
}

/* --- slots
 * ---------------------------------------------------------------------------------------- */

/* Row ids mostly follow each other: sixteen neighbours share a cache line of the map. A line that
 * is taken by others is left with a step that is odd, so that in the end every place is tried. */
static uint32_t *map_find(const struct tree *t, int64_t id)
{
	uint64_t line = ((uint64_t)id >> 4) * 0x9e3779b97f4a7c15u >> 32;
	uint32_t at = (uint32_t)(line << 4 | ((uint64_t)id & 15)) & (t->map_cap - 1);

	while (t->map[at] != 0 && t->slot[t->map[at] - 1].id != id)
		at = (at + 17) & (t->map_cap - 1);
	return &t->map[at];
}

static int grow(struct tree *t)
{
	uint32_t cap = t->cap == 0 ? 1024 : t->cap * 2, i;
	struct slot *slot = realloc(t->slot, cap * sizeof(*slot));
	uint32_t *map = calloc((size_t)cap * 2, sizeof(*map));

	if (slot != NULL)
		t->slot = slot;
	if (slot == NULL || map == NULL) {
		free(map);
		return load_no_memory(t);
	}
	free(t->map);
	t->map = map;
	t->map_cap = cap * 2;
	t->cap = cap;
	for (i = 0; i < t->n; i++)
		*map_find(t, t->slot[i].id) = i + 1;
	return 0;
}

static int slot_of(struct tree *t, int64_t id, uint32_t *ret)
{
	uint32_t *at;

	if (t->n == t->cap) {
		if (t->n >= PROFILE_NODES_MAX)
			return err_set(t->l->e, -EBADMSG, "the session has more than %u nodes",
				PROFILE_NODES_MAX);
		if (grow(t) < 0)
			return -ENOMEM;
	}
	at = map_find(t, id);
	if (*at == 0) {
		t->slot[t->n] = (struct slot){.id = id, .local = PROFILE_NONE};
		*at = ++t->n;
	}
	*ret = *at - 1;
	return 0;
}

/* --- cells
 * ---------------------------------------------------------------------------------------- */

static int add_share(struct tree *t, struct slot *s, sqlite3_stmt *st, uint64_t ns)
{
	struct load *l = t->l;
	int64_t device = sqlite3_column_int64(st, CELL_DEVICE),
		process = sqlite3_column_int64(st, CELL_PROCESS);
	struct share *h;
	uint32_t i;

	if (s->share != NULL && l->device[s->share->device].device == device &&
		l->device[s->share->device].process == process) {
		s->share->ns = load_sum(s->share->ns, ns);
		return 0;
	}
	for (i = 0; i < l->n_devices; i++)
		if (l->device[i].device == device && l->device[i].process == process)
			break;
	if (i == l->n_devices)
		return 0; /* a device without a row: its times count, its name is not known */
	l->device[i].used = true;
	if (load_is_brief(l->select))
		return 0;
	for (h = s->share; h != NULL && h->device != i; h = h->next)
		;
	if (h == NULL) {
		h = arena_take(l->p->arena, sizeof(*h));
		if (h == NULL)
			return load_no_memory(t);
		*h = (struct share){.next = s->share, .device = i};
		s->share = h;
	}
	h->ns = load_sum(h->ns, ns);
	return 0;
}

/* Little-endian u32s, trailing zeros cut. */
static void add_hist(uint32_t *hist, sqlite3_stmt *st)
{
	const unsigned char *b = sqlite3_column_blob(st, CELL_HIST);
	uint32_t n = (uint32_t)sqlite3_column_bytes(st, CELL_HIST) / 4, i, v;

	for (i = 0; b != NULL && i < n && i < HIST_BUCKETS; i++, b += 4) {
		v = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
		    (uint32_t)b[3] << 24;
		hist[i] = hist[i] > UINT32_MAX - v ? UINT32_MAX : hist[i] + v;
	}
}

static int add_durations(struct tree *t, struct slot *s, sqlite3_stmt *st)
{
	uint64_t min = load_u64(st, CELL_MIN), max = load_u64(st, CELL_MAX);

	if (s->durations == NULL) {
		s->durations = arena_take(t->l->p->arena, sizeof(*s->durations));
		if (s->durations == NULL)
			return load_no_memory(t);
		s->durations->span.min_ns = UINT64_MAX;
	}
	add_hist(s->durations->hist, st);
	if (load_u64(st, CELL_COUNT) == 0 && load_u64(st, CELL_OPEN) == 0)
		return 0;
	if (min < s->durations->span.min_ns)
		s->durations->span.min_ns = min;
	if (max > s->durations->span.max_ns)
		s->durations->span.max_ns = max;
	return 0;
}

static int rare_of(struct tree *t, struct slot *s)
{
	if (s->rare == NULL)
		s->rare = arena_take(t->l->p->arena, sizeof(*s->rare));
	return s->rare == NULL ? load_no_memory(t) : 0;
}

static int add_kernels(
	struct tree *t, struct slot *s, uint64_t count, uint64_t ns, uint64_t untimed)
{
	s->has_gpu = true;
	s->count = load_sum(s->count, count);
	s->time = load_sum(s->time, ns);
	if (untimed == 0)
		return 0;
	if (rare_of(t, s) < 0)
		return -ENOMEM;
	s->rare->untimed = load_sum(s->rare->untimed, untimed);
	return 0;
}

static int add_copies(struct tree *t, struct slot *s, uint64_t count, uint64_t ns, uint64_t bytes)
{
	if (rare_of(t, s) < 0)
		return -ENOMEM;
	s->rare->has_copy = true;
	s->rare->copies = load_sum(s->rare->copies, count);
	s->rare->copy_time = load_sum(s->rare->copy_time, ns);
	s->rare->bytes = load_sum(s->rare->bytes, bytes);
	return 0;
}

static int cell_row(struct tree *t, sqlite3_stmt *st)
{
	uint64_t class = load_u64(st, CELL_CLASS), count = load_u64(st, CELL_COUNT),
		 ns = load_u64(st, CELL_SUM);
	bool brief = load_is_brief(t->l->select);
	struct slot *s;
	uint32_t at;
	int r;

	if (t->l->select->one_phase &&
		sqlite3_column_int64(st, CELL_SEGMENT) != (int64_t)t->l->select->phase)
		return 0;
	r = slot_of(t, sqlite3_column_int64(st, CELL_NODE), &at);
	if (r < 0)
		return r;
	s = &t->slot[at];
	if (class == CLASS_CPU) {
		s->has_cpu = true;
		s->cpu = load_sum(s->cpu, ns);
		s->calls = load_sum(s->calls, count);
		t->l->open_scopes = load_sum(t->l->open_scopes, load_u64(st, CELL_OPEN));
		if (s->class != 0 || t->l->select->lean)
			return 0; /* the durations shown are the GPU's, where it has any */
		return add_durations(t, s, st);
	}
	if (s->class == 0 && s->durations != NULL) /* CPU durations came first: they make way */
		*s->durations = (struct durations){.span = {UINT64_MAX, 0}};
	s->class = class < CLASS_MAX ? (uint8_t) class : CLASS_OTHER;
	if (class == CLASS_COMPUTE || class == CLASS_COMM || class >= CLASS_OTHER)
		r = add_kernels(t, s, count, ns, brief ? 0 : load_u64(st, CELL_UNTIMED));
	else
		r = add_copies(t, s, count, ns, brief ? 0 : load_u64(st, CELL_BYTES));
	if (r == 0)
		r = add_share(t, s, st, ns);
	return r < 0 || t->l->select->lean ? r : add_durations(t, s, st);
}

/* --- user metrics
 * --------------------------------------------------------------------------------- */

static int user_value(struct tree *t, sqlite3_stmt *st, struct value *ret)
{
	switch (sqlite3_column_type(st, 3)) {
	case SQLITE_INTEGER:
		*ret = (struct value){.type = VALUE_I64, .i = sqlite3_column_int64(st, 3)};
		return 1;
	case SQLITE_FLOAT:
		*ret = (struct value){.type = VALUE_F64, .f = sqlite3_column_double(st, 3)};
		return 1;
	case SQLITE_TEXT:
		*ret = (struct value){.type = VALUE_STR, .s = load_text(t->l, st, 3)};
		return ret->s == NULL ? load_no_memory(t) : 1;
	default:
		t->l->skipped_values++;
		return 0;
	}
}

static int metric_row(struct tree *t, sqlite3_stmt *st)
{
	uint64_t kind = load_u64(st, 2);
	struct user_value *u;
	const char *name;
	uint32_t cap;
	int r;

	if (t->l->select->one_phase && sqlite3_column_int64(st, 4) != (int64_t)t->l->select->phase)
		return 0;
	if (t->n_user == t->cap_user) {
		cap = t->cap_user == 0 ? 256 : t->cap_user * 2;
		u = cap > PROFILE_NODES_MAX * 4 ? NULL : realloc(t->user, cap * sizeof(*u));
		if (u == NULL)
			return load_no_memory(t);
		t->user = u;
		t->cap_user = cap;
	}
	u = &t->user[t->n_user];
	r = user_value(t, st, &u->v);
	if (r <= 0)
		return r;
	name = load_text(t->l, st, 1);
	if (name == NULL)
		return load_no_memory(t);
	u->metric = profile_add_metric(
		t->l->p, name, kind > KIND_PROPERTY ? KIND_EXCLUSIVE : (uint8_t)kind);
	if (u->metric == PROFILE_NONE)
		return err_set(t->l->e, -EBADMSG, "the session has more than %u metrics",
			PROFILE_METRICS_MAX);
	r = slot_of(t, sqlite3_column_int64(st, 0), &u->slot);
	if (r == 0)
		t->n_user++;
	return r;
}

/* --- nodes
 * ---------------------------------------------------------------------------------------- */

static int fill_row(struct tree *t, sqlite3_stmt *st)
{
	int64_t kind = sqlite3_column_int64(st, 2);
	uint32_t *at = map_find(t, sqlite3_column_int64(st, 0));
	struct slot *s;

	if (*at == 0 || t->slot[*at - 1].name != NULL)
		return 0; /* another session's, in the range that was scanned */
	s = &t->slot[*at - 1];
	s->parent = sqlite3_column_int64(st, 1);
	s->kind = kind >= 0 && kind <= UINT8_MAX ? (uint8_t)kind : NODE_SCOPE;
	s->name = load_text(t->l, st, 3);
	return s->name == NULL ? load_no_memory(t) : 0;
}

static int by_number(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* qsort(), but rows mostly come in order. The id is the first member of each element. */
static void sort_ids(void *array, uint32_t n, size_t bytes)
{
	const char *at = array;
	uint32_t i;

	for (i = 1; i < n; i++, at += bytes)
		if (by_number(at, at + bytes) > 0)
			break;
	if (i < n)
		qsort(array, n, bytes, by_number);
}

/* Reads the rows of ids[0..n), sorted: in one scan where they lie close together. */
static int fetch(struct tree *t, const int64_t *ids, uint32_t n)
{
	uint64_t width = (uint64_t)ids[n - 1] - (uint64_t)ids[0];
	bool close = width / 4 < n;
	sqlite3_stmt *st;
	uint32_t i;
	int r, more = 0;

	r = load_prepare(t->l, statements[close ? SQL_NODES : SQL_NODE], &st);
	for (i = 0; r == 0 && more == 0 && i < (close ? 1 : n); i++) {
		(void)sqlite3_bind_int64(st, 1, ids[i]);
		if (close)
			(void)sqlite3_bind_int64(st, 2, ids[n - 1]);
		while (r == 0 && (more = load_step(t->l, st)) > 0)
			r = fill_row(t, st);
		(void)sqlite3_reset(st);
	}
	(void)sqlite3_finalize(st);
	return more < 0 ? more : r;
}

/* All slots get their row; parents get slots, until every chain ends at ROOT. */
static int fetch_all(struct tree *t)
{
	uint32_t round, first = 0, last, i, n, parent;
	int64_t *ids;
	int r = 0;

	for (round = 0; r == 0 && first < t->n; round++) {
		if (round > PROFILE_DEPTH_MAX)
			return err_set(
				t->l->e, -EBADMSG, "the tree is deeper than %u", PROFILE_DEPTH_MAX);
		last = t->n;
		ids = malloc((last - first) * sizeof(*ids));
		if (ids == NULL)
			return load_no_memory(t);
		for (i = first, n = 0; i < last; i++)
			if (t->slot[i].id != 0)
				ids[n++] = t->slot[i].id;
		sort_ids(ids, n, sizeof(*ids));
		if (n > 0)
			r = fetch(t, ids, n);
		free(ids);
		for (i = first; r == 0 && i < last; i++) {
			if (t->slot[i].id == 0)
				continue;
			if (t->slot[i].name == NULL)
				return err_set(t->l->e, -EBADMSG, "the database lacks node %lld",
					(long long)t->slot[i].id);
			r = slot_of(t, t->slot[i].parent, &parent);
			if (r == 0)
				t->slot[i].up = parent;
		}
		first = last;
	}
	return r;
}

static bool is_root(const struct slot *s)
{
	return s->id == 0 || (s->parent == 0 && s->kind == NODE_ROOT);
}

/* Adds slot `at` and what stands above it. */
static int add_chain(struct tree *t, uint32_t at)
{
	uint32_t chain[PROFILE_DEPTH_MAX + 1], n = 0, parent;
	struct slot *s;

	for (s = &t->slot[at]; s->local == PROFILE_NONE && !is_root(s);) {
		if (n == PROFILE_DEPTH_MAX)
			return err_set(
				t->l->e, -EBADMSG, "the tree is deeper than %u", PROFILE_DEPTH_MAX);
		chain[n++] = (uint32_t)(s - t->slot);
		s = &t->slot[s->up];
	}
	if (s->local == PROFILE_NONE)
		s->local = 0;
	for (parent = s->local; n > 0; parent = s->local) {
		s = &t->slot[chain[--n]];
		s->local = profile_adopt_node(t->l->p, parent, s->name, s->kind);
		if (s->local == PROFILE_NONE)
			return load_no_memory(t);
	}
	return 0;
}

struct order {
	int64_t id;
	uint32_t slot;
};

/* In the order of row ids, which is the order of first sight. */
static int add_nodes(struct tree *t)
{
	struct order *order = malloc((t->n + 1u) * sizeof(*order));
	uint32_t i;
	int r;

	if (order == NULL || profile_reserve(t->l->p, t->n + 1) < 0) {
		free(order);
		return load_no_memory(t);
	}
	for (i = 0; i < t->n; i++)
		order[i] = (struct order){t->slot[i].id, i};
	sort_ids(order, t->n, sizeof(*order));
	for (i = 0, r = 0; r == 0 && i < t->n; i++)
		r = add_chain(t, order[i].slot);
	free(order);
	return r;
}

/* --- launch configurations
 * ------------------------------------------------------------------------ */

static int config_row(struct tree *t, sqlite3_stmt *st)
{
	struct profile *p = t->l->p;
	uint32_t *at = map_find(t, sqlite3_column_int64(st, 0)), i;
	struct profile_config *c;

	if (*at == 0 || p->n_configs >= PROFILE_NODES_MAX)
		return 0;
	if ((p->n_configs & (p->n_configs - 1)) == 0) {
		c = realloc(p->config, (p->n_configs == 0 ? 1 : p->n_configs * 2u) * sizeof(*c));
		if (c == NULL)
			return load_no_memory(t);
		p->config = c;
	}
	c = &p->config[p->n_configs++];
	*c = (struct profile_config){.node = t->slot[*at - 1].local, .count = load_u64(st, 10)};
	for (i = 0; i < 3; i++) {
		c->grid[i] = (uint32_t)load_u64(st, 1 + (int)i);
		c->block[i] = (uint32_t)load_u64(st, 4 + (int)i);
	}
	c->registers = (uint32_t)load_u64(st, 7);
	c->static_shared = (uint32_t)load_u64(st, 8);
	c->dynamic_shared = (uint32_t)load_u64(st, 9);
	return 0;
}

/* --- the whole
 * ------------------------------------------------------------------------------------ */

static int load_tree(struct load *l)
{
	int r, cells = load_is_brief(l->select) ? SQL_BRIEF : l->select->lean ? SQL_LEAN : SQL_CELL;
	struct tree t = {.l = l};
	uint32_t root;

	r = slot_of(&t, 0, &root); /* first, so that ids mostly come in order */
	if (r == 0)
		r = each_row(&t, cells, cell_row);
	if (r == 0)
		r = load_columns(&t);
	if (r == 0)
		r = each_row(&t, SQL_METRIC, metric_row);
	if (r == 0)
		r = fetch_all(&t);
	if (r == 0)
		r = add_nodes(&t);
	if (r == 0)
		r = load_head_end(l); /* devices get their numbers */
	if (r == 0)
		r = load_values(&t);
	if (r == 0 && !l->select->lean)
		r = each_row(&t, SQL_CONFIG, config_row);
	free(t.slot);
	free(t.map);
	free(t.user);
	return r;
}

int profile_load(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct profile **ret_profile, struct err *e)
{
	static const struct profile_select all;
	struct load l = {.db = db, .session = id, .select = s != NULL ? s : &all, .e = e};
	bool own_transaction = sqlite3_get_autocommit(db) != 0;
	int r;

	l.p = profile_new();
	if (l.p == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	if (own_transaction && sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
		r = db_error(&l);
		profile_free(l.p);
		return r;
	}
	r = load_head(&l);
	if (r == 0)
		r = load_tree(&l);
	if (own_transaction)
		(void)sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	free(l.process);
	free(l.device);
	if (r < 0)
		profile_free(l.p);
	else
		*ret_profile = l.p;
	return r;
}
