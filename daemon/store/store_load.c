/* SPDX-License-Identifier: MIT. store_load.c: out of the database what the fold needs to go on:
 * sessions that are not finalized, processes that have not ended, and all that belongs to them.
 * Worker thread.
 *
 * The file is ours, yet every blob is bounded and every number checked for where it goes.
 */
#include "store_int.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

#define ID_MAX (INT64_MAX / 2) /* of processes and sessions, which count from 1 */

/* --- reading
 * ---------------------------------------------------------------------------------------- */

static uint32_t get_u32(sqlite3_stmt *q, int i)
{
	return (uint32_t)sqlite3_column_int64(q, i);
}

static uint64_t get_u64(sqlite3_stmt *q, int i)
{
	return (uint64_t)sqlite3_column_int64(q, i);
}

static int32_t get_maybe(sqlite3_stmt *q, int i)
{
	return sqlite3_column_type(q, i) == SQLITE_NULL ? -1 : (int32_t)sqlite3_column_int64(q, i);
}

static uint32_t get_word(sqlite3_stmt *q, int i, const struct term_list *w)
{
	return term_number(w, (const char *)sqlite3_column_text(q, i), 0);
}

static void get_blob(sqlite3_stmt *q, int i, void *ret, size_t cap)
{
	const void *p = sqlite3_column_blob(q, i);
	const size_t n = (size_t)sqlite3_column_bytes(q, i);

	memset(ret, 0, cap);
	if (p != NULL)
		memcpy(ret, p, n < cap ? n : cap);
}

static void get_text(sqlite3_stmt *q, int i, char *ret, size_t cap)
{
	const unsigned char *p = sqlite3_column_text(q, i);

	(void)snprintf(ret, cap, "%s", p == NULL ? "" : (const char *)p);
}

/* NULL: out of memory. */
static char *get_string(sqlite3_stmt *q, int i)
{
	const unsigned char *p = sqlite3_column_text(q, i);

	return strdup(p == NULL ? "" : (const char *)p);
}

/* Likewise; it lives as long as the batch that is loaded. */
static const char *held_string(struct store_db *d, sqlite3_stmt *q, int i)
{
	const unsigned char *p = sqlite3_column_text(q, i);

	return batch_text(d->loading, p == NULL ? "" : (const char *)p);
}

/* --- rows: 0 or -ENOMEM
 * ------------------------------------------------------------------------------ */

static void get_process_numbers(sqlite3_stmt *q, struct row_process *p)
{
	uint64_t counters[8];
	uint32_t i;

	p->id = sqlite3_column_int64(q, P_id);
	p->pid = get_u32(q, P_pid);
	p->pid_start = get_u64(q, P_pid_start);
	p->ns_pid = get_u32(q, P_ns_pid);
	p->uid = get_u32(q, P_uid);
	p->rank = get_maybe(q, P_rank);
	p->local_rank = get_maybe(q, P_local_rank);
	p->world_size = get_maybe(q, P_world_size);
	p->started_ns = sqlite3_column_int64(q, P_started_ns);
	p->ended_ns = sqlite3_column_int64(q, P_ended_ns); /* NULL reads as 0 */
	p->gpu_state = get_u32(q, P_gpu_state);
	p->gpu_code = (int32_t)sqlite3_column_int64(q, P_gpu_code);
	p->cupti_version = get_u32(q, P_cupti_version);
	p->driver_version = get_u32(q, P_driver_version);
	p->agent_ns = get_u64(q, P_agent_ns);
	p->flags = get_u32(q, P_flags);
	p->clock = get_u32(q, P_clock);
	p->tsc_khz = get_u32(q, P_tsc_khz);
	p->n_lanes = get_u32(q, P_n_lanes);
	p->lane_bytes = get_u32(q, P_lane_bytes);
	p->created_clock = get_u64(q, P_created_clock);
	p->created_monotonic_ns = get_u64(q, P_created_monotonic_ns);
	p->created_realtime_ns = get_u64(q, P_created_realtime_ns);
	get_blob(q, P_counters, counters, sizeof(counters));
	for (i = 0; i < 8; i++)
		p->counters[i] = le64toh(counters[i]);
}

static int get_process(struct store_db *d, sqlite3_stmt *q, struct row_process *p)
{
	char source[8];

	(void)d;
	get_process_numbers(q, p);
	get_blob(q, P_ring, p->ring, sizeof(p->ring));
	get_blob(q, P_boot_id, p->boot_id, sizeof(p->boot_id));
	get_blob(q, P_parent, p->parent, sizeof(p->parent));
	get_blob(q, P_token, p->token, sizeof(p->token));
	get_text(q, P_host, p->host, sizeof(p->host));
	get_text(q, P_version, p->version, sizeof(p->version));
	get_text(q, P_gpu_text, p->gpu_text, sizeof(p->gpu_text));
	get_text(q, P_cupti_path, p->cupti_path, sizeof(p->cupti_path));
	get_text(q, P_job_id, p->job_id, sizeof(p->job_id));
	get_text(q, P_source, source, sizeof(source));
	p->replay = strcmp(source, "replay") == 0;
	p->end_reason = get_word(q, P_end_reason, &term_end_reasons);
	p->command = get_string(q, P_command);
	p->exe = get_string(q, P_exe);
	p->cwd = get_string(q, P_cwd);
	return p->command == NULL || p->exe == NULL || p->cwd == NULL ? -ENOMEM : 0;
}

static uint32_t match_parse(const char *text)
{
	static const struct {
		const char *text;
		uint32_t match;
	} map[] = {
		{"pid:", MATCH_PID},
		{"token", MATCH_TOKEN},
		{"all", MATCH_USER},
		{"command:", MATCH_COMMAND},
		{"ring", MATCH_RING},
	};
	size_t i;

	for (i = 0; i < sizeof(map) / sizeof(*map); i++)
		if (strncmp(text, map[i].text, strlen(map[i].text)) == 0)
			return map[i].match;
	return 0;
}

static int get_session(struct store_db *d, sqlite3_stmt *q, struct row_session *s)
{
	char match[160];

	(void)d;
	s->id = sqlite3_column_int64(q, S_id);
	get_blob(q, S_uuid, s->uuid, sizeof(s->uuid));
	get_blob(q, S_token, s->token, sizeof(s->token));
	get_blob(q, S_owner, s->owner, sizeof(s->owner));
	get_text(q, S_name, s->name, sizeof(s->name));
	get_text(q, S_backend, s->backend, sizeof(s->backend));
	get_text(q, S_mode, s->mode, sizeof(s->mode));
	get_text(q, S_hook, s->hook, sizeof(s->hook));
	get_text(q, S_command, s->command, sizeof(s->command));
	get_text(q, S_match, match, sizeof(match));
	s->match = match_parse(match);
	s->source = get_word(q, S_source, &term_session_sources);
	s->data = (uint8_t)get_word(q, S_data, &term_session_datas);
	s->context = (uint8_t)get_word(q, S_context, &term_session_contexts);
	s->cpu = (uint8_t)get_word(q, S_cpu, &term_session_cpus);
	s->gpu = (uint8_t)get_word(q, S_gpu, &term_session_gpus);
	s->state = (uint8_t)get_word(q, S_state, &term_session_states);
	s->uid = get_u32(q, S_uid);
	s->pid = get_u32(q, S_pid);
	s->job_number = sqlite3_column_type(q, S_job_number) == SQLITE_NULL
				? UINT32_MAX
				: get_u32(q, S_job_number);
	s->created_ns = sqlite3_column_int64(q, S_created_ns);
	s->finalized_ns = sqlite3_column_int64(q, S_finalized_ns);
	s->active_ns = get_u64(q, S_active_ns);
	s->launches = get_u64(q, S_launches);
	s->matched = get_u64(q, S_matched);
	s->daemon_ns = get_u64(q, S_daemon_ns);
	return 0;
}

static int get_member(struct store_db *d, sqlite3_stmt *q, struct row_member *m)
{
	(void)d;
	*m = (struct row_member){sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1)};
	return 0;
}

static int get_active(struct store_db *d, sqlite3_stmt *q, struct row_active *a)
{
	(void)d;
	*a = (struct row_active){sqlite3_column_int64(q, 0), get_u64(q, 1), get_u64(q, 2)};
	return 0;
}

static int get_segment(struct store_db *d, sqlite3_stmt *q, struct row_segment *g)
{
	(void)d;
	*g = (struct row_segment){
		sqlite3_column_int64(q, 0), get_u32(q, 1), get_u64(q, 2), get_u64(q, 3)};
	return 0;
}

static int get_cell(struct store_db *d, sqlite3_stmt *q, struct row_cell *c)
{
	uint32_t hist[HIST_BUCKETS], i;

	c->session = sqlite3_column_int64(q, 0);
	c->process = sqlite3_column_int64(q, 1);
	c->segment = get_u32(q, 2);
	get_blob(q, 3, c->node, sizeof(c->node));
	c->device = get_u32(q, 4); /* -1 is UINT32_MAX */
	c->class = (uint8_t)get_u32(q, 5);
	c->count = get_u64(q, 6);
	c->sum_ns = get_u64(q, 7);
	c->min_ns = get_u64(q, 8);
	c->max_ns = get_u64(q, 9);
	c->bytes = get_u64(q, 10);
	c->untimed = get_u64(q, 11);
	c->open = get_u64(q, 12);
	get_blob(q, 13, (uint8_t *)hist, sizeof(hist));
	for (i = 0; i < HIST_BUCKETS; i++)
		hist[i] = le32toh(hist[i]);
	return batch_hist(d->loading, c, 0, hist, HIST_BUCKETS) ? 0 : -ENOMEM;
}

static int get_metric(struct store_db *d, sqlite3_stmt *q, struct row_metric *m)
{
	const int type = sqlite3_column_type(q, 6);
	double f;

	(void)d;
	m->session = sqlite3_column_int64(q, 0);
	m->process = sqlite3_column_int64(q, 1);
	m->segment = get_u32(q, 2);
	get_blob(q, 3, m->node, sizeof(m->node));
	m->kind = (uint8_t)get_u32(q, 5);
	m->count = get_u64(q, 7);
	if (type == SQLITE_INTEGER) {
		m->type = METRIC_I64;
		m->bits = get_u64(q, 6);
	} else if (type == SQLITE_FLOAT) {
		m->type = METRIC_F64;
		f = sqlite3_column_double(q, 6);
		memcpy(&m->bits, &f, sizeof(f));
	} else {
		m->type = METRIC_STR;
		m->text = held_string(d, q, 6);
		if (m->text == NULL)
			return -ENOMEM;
	}
	m->name = held_string(d, q, 4);
	return m->name == NULL ? -ENOMEM : 0;
}

static int get_config(struct store_db *d, sqlite3_stmt *q, struct row_config *c)
{
	int i;

	(void)d;
	c->session = sqlite3_column_int64(q, 0);
	c->process = sqlite3_column_int64(q, 1);
	get_blob(q, 2, c->node, sizeof(c->node));
	c->config = get_u32(q, 3);
	for (i = 0; i < 3; i++) {
		c->c.grid[i] = get_u32(q, 4 + i);
		c->c.block[i] = get_u32(q, 7 + i);
	}
	c->c.registers = get_u32(q, 10);
	c->c.static_shared = get_u32(q, 11);
	c->c.dynamic_shared = get_u32(q, 12);
	c->count = get_u64(q, 13);
	return 0;
}

static int get_device(struct store_db *d, sqlite3_stmt *q, struct row_device *v)
{
	char pci[32];

	(void)d;
	v->process = sqlite3_column_int64(q, 0);
	v->device = get_u32(q, 1);
	get_blob(q, 2, v->d.uuid, sizeof(v->d.uuid));
	v->d.ordinal = get_u32(q, 3);
	v->d.type = get_word(q, 4, &term_device_types);
	get_text(q, 5, v->d.name, sizeof(v->d.name));
	get_text(q, 6, pci, sizeof(pci));
	(void)sscanf(pci, "%x:%x:%x", &v->d.pci_domain, &v->d.pci_bus, &v->d.pci_device);
	v->d.arch = get_u32(q, 7);
	v->d.num_sms = get_u32(q, 8);
	v->d.clock_khz = get_u32(q, 9);
	v->d.memory_clock_khz = get_u32(q, 10);
	v->d.bus_width = get_u32(q, 11);
	v->d.memory_bytes = get_u64(q, 12);
	return 0;
}

static int get_busy(struct store_db *d, sqlite3_stmt *q, struct row_busy *b)
{
	(void)d;
	*b = (struct row_busy){sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1),
		get_u32(q, 2), get_u64(q, 3), get_u64(q, 4), get_u64(q, 5)};
	return 0;
}

static int get_loss(struct store_db *d, sqlite3_stmt *q, struct row_loss *l)
{
	(void)d;
	*l = (struct row_loss){sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1),
		get_u32(q, 2), get_u64(q, 3)};
	return 0;
}

static int get_note(struct store_db *d, sqlite3_stmt *q, struct row_note *n)
{
	(void)d;
	n->session = sqlite3_column_int64(q, 0);
	n->process = sqlite3_column_int64(q, 1);
	n->number = get_u32(q, 2);
	n->ns = sqlite3_column_int64(q, 3);
	get_text(q, 4, n->text, sizeof(n->text));
	return 0;
}

static int get_trace(struct store_db *d, sqlite3_stmt *q, struct row_trace *t)
{
	(void)d;
	*t = (struct row_trace){.session = sqlite3_column_int64(q, 0),
		.process = sqlite3_column_int64(q, 1),
		.number = get_u32(q, 2),
		.first = get_u64(q, 3),
		.events = get_u32(q, 4),
		.end_ns = get_u64(q, 5),
		.n = get_u32(q, 6)};
	return 0;
}

static int get_lane(struct store_db *d, sqlite3_stmt *q, struct row_lane *l)
{
	(void)d;
	*l = (struct row_lane){sqlite3_column_int64(q, 0), get_u32(q, 1), get_u64(q, 2)};
	return 0;
}

static int get_pending(struct store_db *d, sqlite3_stmt *q, struct row_pending *p)
{
	const int n = sqlite3_column_bytes(q, 1);

	(void)d;
	p->process = sqlite3_column_int64(q, 0);
	p->bytes = malloc(n > 0 ? (size_t)n : 1);
	if (p->bytes == NULL)
		return -ENOMEM;
	p->n = (uint32_t)n;
	get_blob(q, 1, p->bytes, p->n);
	return 0;
}

static int get_anchor(struct store_db *d, sqlite3_stmt *q, struct row_anchor *a)
{
	(void)d;
	*a = (struct row_anchor){get_u64(q, 0), get_u64(q, 1), get_u64(q, 2), get_u64(q, 3),
		(uint32_t)get_u64(q, 4)};
	return 0;
}

/* --- nodes: parents first
 * ---------------------------------------------------------------------------- */

enum node_mark { NODE_NEW = 0, NODE_IN_CHAIN = 1, NODE_DONE = 2 };
struct loaded_node {
	int64_t id, parent;
	struct row_node row;
	uint32_t up;    /* index of the parent; UINT32_MAX none */
	uint32_t below; /* chain being walked: whom to emit next */
	uint8_t mark;
};
struct loaded {
	struct loaded_node *node; /* id ascending */
	uint32_t n, cap;
};

static int loaded_add(struct store_db *d, struct loaded *l, sqlite3_stmt *q)
{
	const uint32_t cap = l->cap == 0 ? 256 : l->cap * 2;
	struct loaded_node *n;

	if (l->n == l->cap) {
		n = reallocarray(l->node, cap, sizeof(*n));
		if (n == NULL)
			return -ENOMEM;
		l->node = n;
		l->cap = cap;
	}
	n = &l->node[l->n];
	*n = (struct loaded_node){
		.id = sqlite3_column_int64(q, 0), .parent = sqlite3_column_int64(q, 1)};
	get_blob(q, 2, n->row.hash, sizeof(n->row.hash));
	n->row.kind = (uint8_t)get_u32(q, 3);
	n->row.name = held_string(d, q, 4);
	if (n->row.name == NULL)
		return -ENOMEM;
	l->n++;
	return 0;
}

static uint32_t loaded_find(const struct loaded *l, int64_t id)
{
	uint32_t low = 0, high = l->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (l->node[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < l->n && l->node[low].id == id ? low : UINT32_MAX;
}

/* Moves node i and those above it that are not yet there into the batch, root first. */
static int loaded_emit(struct loaded *l, uint32_t i, struct batch *b)
{
	uint32_t below = UINT32_MAX, at = i;
	struct loaded_node *n;
	struct row_node *row;

	while (at != UINT32_MAX &&
		l->node[at].mark == NODE_NEW) { /* a cycle ends at its first node */
		n = &l->node[at];
		n->mark = NODE_IN_CHAIN;
		n->below = below;
		n->up = n->parent == 0 ? UINT32_MAX : loaded_find(l, n->parent);
		if (n->up != UINT32_MAX)
			memcpy(n->row.parent, l->node[n->up].row.hash, sizeof(n->row.parent));
		below = at;
		at = n->up;
	}
	for (at = below; at != UINT32_MAX; at = n->below) {
		n = &l->node[at];
		row = batch_node(b);
		if (row == NULL)
			return -ENOMEM;
		*row = n->row;
		n->mark = NODE_DONE;
	}
	return 0;
}

static int load_nodes(struct store_db *d, struct batch *b, struct err *e)
{
	sqlite3_stmt *q = d->q[SQL_NODE_LOAD];
	struct loaded l = {0};
	int rc, r = 0;
	uint32_t i;

	while ((rc = sqlite3_step(q)) == SQLITE_ROW && r == 0)
		r = loaded_add(d, &l, q);
	(void)sqlite3_reset(q);
	for (i = 0; rc == SQLITE_DONE && r == 0 && i < l.n; i++)
		r = loaded_emit(&l, i, b);
	free(l.node);
	if (r < 0)
		return err_set(e, r, "out of memory while loading the store");
	return rc == SQLITE_DONE ? 0 : store_fail(d->db, rc, e);
}

/* --- all
 * --------------------------------------------------------------------------------------------- */

/* clang-format off */
#define LOADS(X)                                                                                   \
	X(process, PROCESS) X(session, SESSION) X(member, MEMBER) X(active, ACTIVE)                \
	X(segment, SEGMENT) X(cell, CELL) X(metric, METRIC) X(config, CONFIG) X(device, DEVICE)    \
	X(busy, BUSY) X(trace, TRACE) X(loss, LOSS) X(note, NOTE) X(lane, LANE) X(pending, PENDING)                \
	X(anchor, ANCHOR)
/* clang-format on */

#define X(t, T)                                                                        \
	static int load_##t(struct store_db *d, struct batch *b, struct err *e)        \
	{                                                                              \
		sqlite3_stmt *q = d->q[SQL_##T##_LOAD];                                \
		struct row_##t *row;                                                   \
		int rc, r = 0;                                                         \
                                                                                       \
		while (r == 0 && (rc = sqlite3_step(q)) == SQLITE_ROW) {               \
			row = batch_##t(b);                                            \
			r = row == NULL ? -ENOMEM : get_##t(d, q, row);                \
		}                                                                      \
		(void)sqlite3_reset(q);                                                \
		if (r < 0)                                                             \
			return err_set(e, r, "out of memory while loading the store"); \
		return rc == SQLITE_DONE ? 0 : store_fail(d->db, rc, e);               \
	}
LOADS(X)
#undef X

static int load_int(struct store_db *d, enum sql which, int64_t *ret, struct err *e)
{
	sqlite3_stmt *q = d->q[which];
	const int rc = sqlite3_step(q);

	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int64(q, 0);
	(void)sqlite3_reset(q);
	return rc == SQLITE_ROW ? 0 : store_fail(d->db, rc, e);
}

int store_rows_load(struct store_db *d, struct batch *ret, struct err *e)
{
	struct batch b = {0};
	int64_t journal = 0;
	int r;

	d->loading = &b;
	r = load_nodes(d, &b, e);
#define X(t, T)     \
	if (r == 0) \
		r = load_##t(d, &b, e);
	LOADS(X)
#undef X
	d->loading = NULL;
	if (r == 0)
		r = load_int(d, SQL_NEXT_PROCESS, &b.next_process, e);
	if (r == 0)
		r = load_int(d, SQL_NEXT_SESSION, &b.next_session, e);
	if (r == 0 && (b.next_process > ID_MAX || b.next_session > ID_MAX))
		r = err_set(e, -EUCLEAN,
			"%s is damaged: it has a number that was never given out; move it away "
			"with `mv %s %s.damaged`",
			d->path, d->path, d->path);
	if (r < 0) {
		batch_free(&b);
		return r;
	}
	(void)store_meta_int(d, "journal", &journal); /* none: nothing was stored yet */
	b.journal = (uint64_t)journal;
	*ret = b;
	return 0;
}
