/* SPDX-License-Identifier: MIT. store_rows.c: a batch into the database: one transaction, whole
 * rows, absolute values, so that a batch stored twice is stored once. Worker thread.
 *
 * A row that can never be stored (it breaks a constraint) is refused, counted and said, and the
 * rest goes on: else one bad row would hold up all that come after it for ever.
 */
#include "store_int.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

#define CACHE_MIN 1024u
#define CACHE_MAX (128u << 10) /* slots of 24 bytes: 3 MiB */

#define THIN_EVERY 4096u /* anchors: an hour's */

/* --- binding
 * ---------------------------------------------------------------------------------------- */

/* Strings live until the statement has run, hence SQLITE_STATIC everywhere. A failed bind leaves
 * NULL, which NOT NULL columns refuse. */
static void bind_int(sqlite3_stmt *q, int i, int64_t v)
{
	(void)sqlite3_bind_int64(q, i, v);
}

static void bind_u64(sqlite3_stmt *q, int i, uint64_t v)
{
	(void)sqlite3_bind_int64(q, i, (int64_t)v);
}

/* NULL for `none`. */
static void bind_maybe(sqlite3_stmt *q, int i, int64_t v, int64_t none)
{
	(void)(v == none ? sqlite3_bind_null(q, i) : sqlite3_bind_int64(q, i, v));
}

static void bind_text(sqlite3_stmt *q, int i, const char *s, size_t max)
{
	(void)sqlite3_bind_text(q, i, s, (int)strnlen(s, max), SQLITE_STATIC);
}

static void bind_string(sqlite3_stmt *q, int i, const char *s)
{
	(void)sqlite3_bind_text64(
		q, i, s == NULL ? "" : s, s == NULL ? 0 : strlen(s), SQLITE_STATIC, SQLITE_UTF8);
}

static void bind_uuid(sqlite3_stmt *q, int i, const uint8_t uuid[16])
{
	(void)sqlite3_bind_blob(q, i, uuid, 16, SQLITE_STATIC);
}

static bool is_zero(const uint8_t uuid[16])
{
	static const uint8_t zero[16];

	return memcmp(uuid, zero, sizeof(zero)) == 0;
}

static void bind_maybe_uuid(sqlite3_stmt *q, int i, const uint8_t uuid[16])
{
	if (is_zero(uuid))
		(void)sqlite3_bind_null(q, i);
	else
		bind_uuid(q, i, uuid);
}

static int run(sqlite3_stmt *q)
{
	const int rc = sqlite3_step(q);

	(void)sqlite3_reset(q);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* --- nodes
 * ------------------------------------------------------------------------------------------ */

/* The slot of a hash, or the free one where it belongs. Keys are hashes already. */
static struct node_slot *cache_at(const struct node_cache *c, const uint8_t hash[16])
{
	uint64_t h;
	uint32_t i;

	memcpy(&h, hash, sizeof(h));
	i = (uint32_t)h & (c->cap - 1);
	while (c->slot[i].id != 0 && memcmp(c->slot[i].hash, hash, 16) != 0)
		i = (i + 1) & (c->cap - 1);
	return &c->slot[i];
}

/* Doubles, or at the ceiling starts anew: the database has them all. */
static bool cache_room(struct node_cache *c)
{
	const uint32_t cap = c->cap == 0 ? CACHE_MIN : c->cap * 2;
	struct node_cache grown = {.cap = cap};
	uint32_t i;

	if (c->n < c->cap / 4 * 3)
		return true;
	if (c->cap >= CACHE_MAX) {
		memset(c->slot, 0, c->cap * sizeof(*c->slot));
		c->n = 0;
		return true;
	}
	grown.slot = calloc(cap, sizeof(*grown.slot));
	if (grown.slot == NULL)
		return false;
	for (i = 0; i < c->cap; i++)
		if (c->slot[i].id != 0)
			*cache_at(&grown, c->slot[i].hash) = c->slot[i];
	grown.n = c->n;
	free(c->slot);
	*c = grown;
	return true;
}

static void cache_add(struct node_cache *c, const uint8_t hash[16], int64_t id)
{
	struct node_slot *s;

	if (!cache_room(c))
		return; /* slower, not wrong */
	s = cache_at(c, hash);
	c->n += s->id == 0;
	memcpy(s->hash, hash, sizeof(s->hash));
	s->id = id;
}

void store_forget_nodes(struct store_db *d)
{
	free(d->cache.slot);
	d->cache = (struct node_cache){0};
}

/* SQLITE_NOTFOUND: no such node. */
static int node_select(struct store_db *d, const uint8_t hash[16], int64_t *ret_id)
{
	sqlite3_stmt *q = d->q[SQL_NODE_FIND];
	int rc;

	bind_uuid(q, 1, hash);
	rc = sqlite3_step(q);
	if (rc == SQLITE_ROW)
		*ret_id = sqlite3_column_int64(q, 0);
	(void)sqlite3_reset(q);
	if (rc != SQLITE_ROW)
		return rc == SQLITE_DONE ? SQLITE_NOTFOUND : rc;
	return SQLITE_OK;
}

static int node_insert(struct store_db *d, const struct row_node *n, int64_t parent)
{
	sqlite3_stmt *q = d->q[SQL_NODE_PUT];

	bind_uuid(q, 1, n->hash);
	bind_int(q, 2, parent);
	bind_int(q, 3, n->kind);
	bind_string(q, 4, n->name);
	return run(q);
}

static void refuse(struct store_db *d, const char *what, const char *why)
{
	if (d->refused++ == 0)
		(void)err_set(&d->refused_err, -EBADMSG, "%s: %s", what, why);
}

/* The row id of a node that a row refers to. One that nobody described gets a place, so that its
 * counts are kept; the description may still come. */
static int node_id(struct store_db *d, const uint8_t hash[16], int64_t *ret_id)
{
	struct row_node n = {.kind = NODE_SCOPE, .name = NODE_UNKNOWN};
	const struct node_slot *s = d->cache.cap == 0 ? NULL : cache_at(&d->cache, hash);
	int rc;

	if (s != NULL && s->id != 0) {
		*ret_id = s->id;
		return SQLITE_OK;
	}
	rc = node_select(d, hash, ret_id);
	if (rc == SQLITE_OK) {
		cache_add(&d->cache, hash, *ret_id);
		return SQLITE_OK;
	}
	if (rc != SQLITE_NOTFOUND)
		return rc;
	memcpy(n.hash, hash, sizeof(n.hash));
	rc = node_insert(d, &n, 0);
	if (rc == SQLITE_OK)
		refuse(d, "node",
			"rows refer to a node that was not described: shown as " NODE_UNKNOWN);
	return rc == SQLITE_OK ? node_select(d, hash, ret_id) : rc; /* not into the cache */
}

/* --- rows
 * ------------------------------------------------------------------------------------------- */

static int put_node(struct store_db *d, const struct row_node *n)
{
	int64_t parent = 0, id;
	int rc = SQLITE_OK;

	if (d->cache.cap > 0 && cache_at(&d->cache, n->hash)->id != 0)
		return SQLITE_OK; /* the hash is the content */
	if (!is_zero(n->parent))
		rc = node_id(d, n->parent, &parent);
	if (rc == SQLITE_OK)
		rc = node_insert(d, n, parent);
	if (rc == SQLITE_OK)
		rc = node_select(d, n->hash, &id);
	if (rc == SQLITE_OK)
		cache_add(&d->cache, n->hash, id);
	return rc;
}

static void bind_process_1(sqlite3_stmt *q, const struct row_process *p)
{
	bind_uuid(q, P_ring + 1, p->ring);
	bind_text(q, P_host + 1, p->host, sizeof(p->host));
	bind_uuid(q, P_boot_id + 1, p->boot_id);
	bind_int(q, P_pid + 1, p->pid);
	bind_u64(q, P_pid_start + 1, p->pid_start);
	bind_int(q, P_ns_pid + 1, p->ns_pid);
	bind_int(q, P_uid + 1, p->uid);
	bind_maybe_uuid(q, P_parent + 1, p->parent);
	bind_maybe_uuid(q, P_token + 1, p->token);
	bind_string(q, P_command + 1, p->command);
	bind_string(q, P_exe + 1, p->exe);
	bind_string(q, P_cwd + 1, p->cwd);
	if (p->job_id[0] == '\0')
		(void)sqlite3_bind_null(q, P_job_id + 1);
	else
		bind_text(q, P_job_id + 1, p->job_id, sizeof(p->job_id));
	bind_maybe(q, P_rank + 1, p->rank, -1);
	bind_maybe(q, P_local_rank + 1, p->local_rank, -1);
	bind_maybe(q, P_world_size + 1, p->world_size, -1);
	bind_int(q, P_started_ns + 1, p->started_ns);
	bind_maybe(q, P_ended_ns + 1, p->ended_ns, 0);
	if (p->end_reason == 0)
		(void)sqlite3_bind_null(q, P_end_reason + 1);
	else
		bind_string(q, P_end_reason + 1,
			term_word(&term_end_reasons, p->end_reason, "unknown"));
}

static void bind_process_2(sqlite3_stmt *q, const struct row_process *p)
{
	bind_string(q, P_source + 1, p->replay != 0 ? "replay" : "live");
	bind_text(q, P_version + 1, p->version, sizeof(p->version));
	bind_int(q, P_gpu_state + 1, p->gpu_state);
	bind_int(q, P_gpu_code + 1, p->gpu_code);
	bind_text(q, P_gpu_text + 1, p->gpu_text, sizeof(p->gpu_text));
	bind_int(q, P_cupti_version + 1, p->cupti_version);
	bind_int(q, P_driver_version + 1, p->driver_version);
	bind_text(q, P_cupti_path + 1, p->cupti_path, sizeof(p->cupti_path));
	bind_u64(q, P_agent_ns + 1, p->agent_ns);
	bind_int(q, P_flags + 1, p->flags);
	bind_int(q, P_clock + 1, p->clock);
	bind_int(q, P_tsc_khz + 1, p->tsc_khz);
	bind_int(q, P_n_lanes + 1, p->n_lanes);
	bind_int(q, P_lane_bytes + 1, p->lane_bytes);
	bind_u64(q, P_created_clock + 1, p->created_clock);
	bind_u64(q, P_created_monotonic_ns + 1, p->created_monotonic_ns);
	bind_u64(q, P_created_realtime_ns + 1, p->created_realtime_ns);
}

static int put_process(struct store_db *d, const struct row_process *p)
{
	sqlite3_stmt *q = d->q[SQL_PROCESS_PUT];
	uint64_t counters[8];
	uint32_t i;

	for (i = 0; i < 8; i++)
		counters[i] = htole64(p->counters[i]);
	bind_process_1(q, p);
	bind_process_2(q, p);
	(void)sqlite3_bind_blob(q, P_counters + 1, counters, sizeof(counters), SQLITE_STATIC);
	bind_int(q, P_id + 1, p->id);
	return run(q);
}

static void match_text(const struct row_session *s, char *buf, size_t n)
{
	if (s->match == MATCH_PID)
		(void)snprintf(buf, n, "pid:%u", s->pid);
	else if (s->match == MATCH_COMMAND)
		(void)snprintf(buf, n, "command:%.*s", (int)sizeof(s->command), s->command);
	else
		(void)snprintf(buf, n, "%s",
			s->match == MATCH_TOKEN  ? "token"
			: s->match == MATCH_USER ? "all"
			: s->match == MATCH_RING ? "ring"
						 : "unknown");
}

static int put_session(struct store_db *d, const struct row_session *s)
{
	sqlite3_stmt *q = d->q[SQL_SESSION_PUT];
	char match[160];

	match_text(s, match, sizeof(match));
	bind_uuid(q, S_uuid + 1, s->uuid);
	bind_text(q, S_name + 1, s->name, sizeof(s->name));
	bind_int(q, S_uid + 1, s->uid);
	bind_string(q, S_source + 1, term_word(&term_session_sources, s->source, "unknown"));
	bind_text(q, S_backend + 1, s->backend, sizeof(s->backend));
	bind_text(q, S_mode + 1, s->mode, sizeof(s->mode));
	bind_text(q, S_hook + 1, s->hook, sizeof(s->hook));
	bind_string(q, S_data + 1, term_word(&term_session_datas, s->data, "unknown"));
	bind_string(q, S_context + 1, term_word(&term_session_contexts, s->context, "unknown"));
	bind_string(q, S_cpu + 1, term_word(&term_session_cpus, s->cpu, "unknown"));
	bind_string(q, S_gpu + 1, term_word(&term_session_gpus, s->gpu, "unknown"));
	bind_string(q, S_state + 1, term_word(&term_session_states, s->state, "unknown"));
	bind_string(q, S_match + 1, match);
	bind_maybe_uuid(q, S_token + 1, s->token);
	bind_maybe_uuid(q, S_owner + 1, s->owner);
	bind_maybe(q, S_job_number + 1, s->job_number, UINT32_MAX);
	bind_int(q, S_pid + 1, s->pid);
	bind_text(q, S_command + 1, s->command, sizeof(s->command));
	bind_int(q, S_created_ns + 1, s->created_ns);
	bind_maybe(q, S_finalized_ns + 1, s->finalized_ns, 0);
	bind_u64(q, S_active_ns + 1, s->active_ns);
	bind_u64(q, S_launches + 1, s->launches);
	bind_u64(q, S_matched + 1, s->matched);
	bind_u64(q, S_daemon_ns + 1, s->daemon_ns);
	bind_int(q, S_id + 1, s->id);
	return run(q);
}

static int put_member(struct store_db *d, const struct row_member *m)
{
	sqlite3_stmt *q = d->q[SQL_MEMBER_PUT];

	bind_int(q, 1, m->session);
	bind_int(q, 2, m->process);
	return run(q);
}

static int put_active(struct store_db *d, const struct row_active *a)
{
	sqlite3_stmt *q = d->q[SQL_ACTIVE_PUT];

	bind_int(q, 1, a->session);
	bind_u64(q, 2, a->begin_ns);
	bind_maybe(q, 3, (int64_t)a->end_ns, 0);
	return run(q);
}

static int put_segment(struct store_db *d, const struct row_segment *g)
{
	sqlite3_stmt *q = d->q[SQL_SEGMENT_PUT];

	bind_int(q, 1, g->session);
	bind_int(q, 2, g->segment);
	bind_u64(q, 3, g->begin_ns);
	bind_maybe(q, 4, (int64_t)g->end_ns, 0);
	return run(q);
}

static int put_cell(struct store_db *d, const struct row_cell *c)
{
	sqlite3_stmt *q = d->q[SQL_CELL_PUT];
	uint32_t hist[HIST_BUCKETS] = {0}, n = c->hist_n == 0 ? 0 : c->hist_first + c->hist_n, i;
	int64_t node;
	int rc = node_id(d, c->node, &node);

	if (rc != SQLITE_OK)
		return rc;
	for (i = c->hist_first; i < n; i++)
		hist[i] = htole32(d->storing->hist[c->hist + i - c->hist_first]);
	bind_int(q, 1, c->session);
	bind_int(q, 2, c->process);
	bind_int(q, 3, c->segment);
	bind_int(q, 4, node);
	bind_int(q, 5, c->device == UINT32_MAX ? -1 : (int64_t)c->device);
	bind_int(q, 6, c->class);
	bind_u64(q, 7, c->count);
	bind_u64(q, 8, c->sum_ns);
	bind_u64(q, 9, c->min_ns);
	bind_u64(q, 10, c->max_ns);
	bind_u64(q, 11, c->bytes);
	bind_u64(q, 12, c->untimed);
	bind_u64(q, 13, c->open);
	if (n == 0)
		(void)sqlite3_bind_null(q, 14);
	else
		(void)sqlite3_bind_blob(q, 14, hist, (int)(n * sizeof(*hist)), SQLITE_STATIC);
	return run(q);
}

/* INTEGER, REAL or TEXT, so that a reader sees the type. What does not fit: an unsigned over 2^63 -
 * 1 becomes REAL; NaN, which SQLite takes for NULL, becomes the text "nan". */
static void bind_metric(sqlite3_stmt *q, int i, const struct row_metric *m)
{
	double f;

	memcpy(&f, &m->bits, sizeof(f));
	if (m->type == METRIC_STR)
		bind_string(q, i, m->text);
	else if (m->type == METRIC_F64 && isnan(f))
		bind_string(q, i, "nan");
	else if (m->type == METRIC_F64)
		(void)sqlite3_bind_double(q, i, f);
	else if (m->type == METRIC_U64 && m->bits > INT64_MAX)
		(void)sqlite3_bind_double(q, i, (double)m->bits);
	else
		bind_u64(q, i, m->bits);
}

static int put_metric(struct store_db *d, const struct row_metric *m)
{
	sqlite3_stmt *q = d->q[SQL_METRIC_PUT];
	int64_t node;
	int rc = node_id(d, m->node, &node);

	if (rc != SQLITE_OK)
		return rc;
	bind_int(q, 1, m->session);
	bind_int(q, 2, m->process);
	bind_int(q, 3, m->segment);
	bind_int(q, 4, node);
	bind_string(q, 5, m->name);
	bind_int(q, 6, m->kind);
	bind_metric(q, 7, m);
	bind_u64(q, 8, m->count);
	return run(q);
}

static int put_config(struct store_db *d, const struct row_config *c)
{
	sqlite3_stmt *q = d->q[SQL_CONFIG_PUT];
	int64_t node;
	int i, rc = node_id(d, c->node, &node);

	if (rc != SQLITE_OK)
		return rc;
	bind_int(q, 1, c->session);
	bind_int(q, 2, c->process);
	bind_int(q, 3, node);
	bind_int(q, 4, c->config);
	for (i = 0; i < 3; i++) {
		bind_int(q, 5 + i, c->c.grid[i]);
		bind_int(q, 8 + i, c->c.block[i]);
	}
	bind_int(q, 11, c->c.registers);
	bind_int(q, 12, c->c.static_shared);
	bind_int(q, 13, c->c.dynamic_shared);
	bind_u64(q, 14, c->count);
	return run(q);
}

static int put_device(struct store_db *d, const struct row_device *v)
{
	sqlite3_stmt *q = d->q[SQL_DEVICE_PUT];
	char pci[32];

	(void)snprintf(
		pci, sizeof(pci), "%04x:%02x:%02x", v->d.pci_domain, v->d.pci_bus, v->d.pci_device);
	bind_int(q, 1, v->process);
	bind_int(q, 2, v->device);
	bind_uuid(q, 3, v->d.uuid);
	bind_int(q, 4, v->d.ordinal);
	bind_string(q, 5, term_word(&term_device_types, v->d.type, "unknown"));
	bind_text(q, 6, v->d.name, sizeof(v->d.name));
	bind_string(q, 7, pci);
	bind_int(q, 8, v->d.arch);
	bind_int(q, 9, v->d.num_sms);
	bind_int(q, 10, v->d.clock_khz);
	bind_int(q, 11, v->d.memory_clock_khz);
	bind_int(q, 12, v->d.bus_width);
	bind_u64(q, 13, v->d.memory_bytes);
	return run(q);
}

static int put_busy(struct store_db *d, const struct row_busy *b)
{
	sqlite3_stmt *q = d->q[SQL_BUSY_PUT];

	bind_int(q, 1, b->session);
	bind_int(q, 2, b->process);
	bind_int(q, 3, b->device);
	bind_u64(q, 4, b->busy_ns);
	bind_u64(q, 5, b->first_ns);
	bind_u64(q, 6, b->last_ns);
	return run(q);
}

/* One that is gone takes those before it along. */
static int put_trace(struct store_db *d, const struct row_trace *t)
{
	sqlite3_stmt *q = d->q[SQL_TRACE_PUT], *drop = d->q[SQL_TRACE_DROP];
	int rc;

	bind_int(q, 1, t->session);
	bind_int(q, 2, t->process);
	bind_int(q, 3, t->number);
	bind_u64(q, 4, t->first);
	bind_int(q, 5, t->events);
	bind_u64(q, 6, t->end_ns);
	if (t->bytes == NULL)
		(void)sqlite3_bind_null(q, 7);
	else
		(void)sqlite3_bind_blob64(q, 7, t->bytes, t->n, SQLITE_STATIC);
	rc = run(q);
	if (rc != SQLITE_OK || t->bytes != NULL)
		return rc;
	bind_int(drop, 1, t->session);
	bind_int(drop, 2, t->process);
	bind_int(drop, 3, t->number);
	return run(drop);
}

static int put_loss(struct store_db *d, const struct row_loss *l)
{
	sqlite3_stmt *q = d->q[SQL_LOSS_PUT];

	bind_int(q, 1, l->session);
	bind_int(q, 2, l->process);
	bind_int(q, 3, l->cause);
	bind_u64(q, 4, l->count);
	return run(q);
}

static int put_note(struct store_db *d, const struct row_note *n)
{
	sqlite3_stmt *q = d->q[SQL_NOTE_PUT];

	bind_int(q, 1, n->session);
	bind_int(q, 2, n->process);
	bind_int(q, 3, n->number);
	bind_int(q, 4, n->ns);
	bind_text(q, 5, n->text, sizeof(n->text));
	return run(q);
}

static int put_lane(struct store_db *d, const struct row_lane *l)
{
	sqlite3_stmt *q = d->q[SQL_LANE_PUT];

	bind_int(q, 1, l->process);
	bind_int(q, 2, l->lane);
	bind_u64(q, 3, l->head);
	return run(q);
}

/* No bytes: nothing is pending any more. */
static int put_pending(struct store_db *d, const struct row_pending *p)
{
	sqlite3_stmt *q = d->q[p->n == 0 ? SQL_PENDING_DROP : SQL_PENDING_PUT];

	bind_int(q, 1, p->process);
	if (p->n > 0)
		(void)sqlite3_bind_blob64(q, 2, p->bytes, p->n, SQLITE_STATIC);
	return run(q);
}

static int put_anchor(struct store_db *d, const struct row_anchor *a)
{
	sqlite3_stmt *q = d->q[SQL_ANCHOR_PUT];

	bind_u64(q, 1, a->clock);
	bind_u64(q, 2, a->monotonic_ns);
	bind_u64(q, 3, a->realtime_ns);
	bind_u64(q, 4, a->error_ns);
	bind_u64(q, 5, a->ring_clock);
	return run(q);
}

static int raise_meta(struct store_db *d, const char *key, int64_t value)
{
	sqlite3_stmt *q = d->q[SQL_META_RAISE];

	bind_string(q, 1, key);
	bind_int(q, 2, value);
	return run(q);
}

/* --- the transaction
 * -------------------------------------------------------------------------------- */

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
		rc = node_id(d, key[i].cell->node, &key[i].node);
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
	uint32_t i;
	int rc = SQLITE_OK;

	d->storing = b;
#define X(t)                                                           \
	for (i = 0; rc == SQLITE_OK && i < b->t.n; i++) {              \
		rc = put_##t(d, &b->t.row[row_at(d, b, b->t.row, i)]); \
		if (is_the_rows_fault(rc)) {                           \
			refuse(d, #t, sqlite3_errmsg(d->db));          \
			rc = SQLITE_OK;                                \
		}                                                      \
	}
	ROWS(X)
#undef X
	d->storing = NULL;
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
		r = store_drop_session(d->db, b->deleted[i], &why);
		r = r == -ENOENT ? 0 : r; /* made and deleted between two transactions */
	}
	if (r < 0)
		return err_set(e, r, "%s", why.text);
	return b->n_deleted > 0 ? store_sweep(d->db, e) : 0;
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
		if (b->session.row[i].state == SESSION_IS_FINALIZED)
			return true;
	return false;
}

int store_rows_put(struct store_db *d, const struct batch *b, struct err *e)
{
	const bool lasts = must_last(b);
	int r = 0, rc;

	d->refused = 0;
	if (lasts)
		(void)store_exec(d->db, "PRAGMA synchronous=FULL", NULL);
	rc = run(d->q[SQL_BEGIN]);
	if (rc == SQLITE_OK)
		rc = put_rows(d, b);
	if (rc == SQLITE_OK)
		r = drop_sessions(d, b, e);
	if (rc == SQLITE_OK && r == 0)
		r = thin_anchors(d, b, e);
	if (rc == SQLITE_OK && r == 0)
		rc = run(d->q[SQL_COMMIT]);
	if (rc != SQLITE_OK)
		r = store_fail(d->db, rc, e);
	if (r < 0)
		roll_back(d);
	if (lasts) /* not before: inside of a transaction it does nothing */
		(void)store_exec(d->db, "PRAGMA synchronous=NORMAL", NULL);
	if (r == 0 && d->refused > 0)
		(void)err_set(e, -EBADMSG, "%u rows were refused, the first: %.400s", d->refused,
			d->refused_err.text);
	return r;
}
