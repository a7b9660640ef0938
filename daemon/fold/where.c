/* SPDX-License-Identifier: MIT. where.c: questions about the fold as it stands: sessions,
 * processes, what is in flight, what took longest. Changes nothing. */
#include "fold.h"

#include <stdlib.h>
#include <string.h>

#include "allocs.h"
#include "cells.h"
#include "durations.h"
#include "holders.h"
#include "metric.h"
#include "node.h"
#include "nodehash.h"
#include "part.h"
#include "process.h"
#include "profile.h"
#include "record.h"
#include "ring.h"
#include "schema.h"
#include "session.h"
#include "state.h"
#include "step_series.h"
#include "text.h"
#include "words.h"

#define TEXT_BYTES (64u << 10) /* of a path in words: the rest is cut */

static void show_session(const struct session *s, struct fold_session *ret)
{
	uint32_t i;

	*ret = (struct fold_session){.id = s->row.id,
		.name = s->row.name,
		.backend = s->row.backend,
		.mode = s->row.mode,
		.hook = s->row.hook,
		.command = s->row.command,
		.first_command = s->n_parts > 0 ? s->part[0]->process->row.command : "",
		.uid = s->row.uid,
		.source = s->row.source,
		.match = s->row.match,
		.pid = s->row.pid,
		.job_number = s->row.job_number == UINT32_MAX ? -1 : (int32_t)s->row.job_number,
		.data = (uint8_t)s->row.data,
		.context = (uint8_t)s->row.context,
		.cpu = (uint8_t)s->row.cpu,
		.gpu = (uint8_t)s->row.gpu,
		.switches = s->row.switches,
		.state = (uint8_t)s->row.state,
		.gpu_seen = s->gpu_seen,
		.stored = !session_is_current(s) && !s->dirty && s->collected <= s->fold->seen,
		.empty = session_is_over(s->row.state) && s->row.launches == 0 &&
			 session_bytes(s) == BYTES_OF_SESSION,
		.tags = s->row.tags,
		.note = s->row.note,
		.created_ns = s->row.created_ns,
		.finalized_ns = s->row.finalized_ns,
		.active_since_ns = s->opened_ns,
		.active_ns = s->row.active_ns,
		.daemon_ns = s->row.daemon_ns > 0 ? (uint64_t)s->row.daemon_ns : 0,
		.launches = s->row.launches,
		.matched = s->row.matched,
		.n_processes = s->n_processes};
	hash_copy(ret->uuid, s->row.uuid);
	hash_copy(ret->owner, s->row.owner);
	hash_copy(ret->token, s->row.token);
	for (i = 0; i < s->n_parts; i++)
		ret->n_live += s->part[i]->process->row.ended_ns == 0;
}

static void show_process(const struct process *p, struct fold_process *ret)
{
	const struct row_process *r = &p->row;

	*ret = (struct fold_process){.id = r->id,
		.pid = r->pid,
		.ns_pid = r->ns_pid,
		.uid = r->uid,
		.command = r->command,
		.cwd = r->cwd,
		.gpu_text = r->gpu_text,
		.cupti_path = r->cupti_path,
		.version = r->version,
		.rank = r->rank,
		.local_rank = r->local_rank,
		.world_size = r->world_size,
		.started_ns = r->started_ns,
		.ended = r->ended_ns != 0,
		.forged = (r->flags & PROCESS_FORGED) != 0,
		.end_reason = r->end_reason,
		.gpu_state = r->gpu_state,
		.cupti_version = r->cupti_version,
		.driver_version = r->driver_version,
		.gpu_code = r->gpu_code,
		.events = p->events,
		.launches = p->launches,
		.open_launches = flight_open(&p->flight),
		.kernels = p->kernels,
		.drops = p->drops,
		.agent_ns = r->agent_ns,
		.delivered_ns = p->delivered_ns,
		.self = p};
	hash_copy(ret->ring, r->ring);
	hash_copy(ret->token, r->token);
}

uint64_t fold_now_ns(const struct fold *f)
{
	MUST_FOLD(f);
	return f->now_ns;
}

void fold_each_session(const struct fold *f, fold_session_fn *fn, void *arg)
{
	struct fold_session s;
	uint32_t i;

	MUST_FOLD(f);
	for (i = 0; i < f->n_sessions; i++) {
		show_session(f->session[i], &s);
		fn(arg, &s);
	}
}

void fold_each_process(const struct fold *f, fold_process_fn *fn, void *arg)
{
	struct fold_process p;
	uint32_t i;

	MUST_FOLD(f);
	for (i = 0; i < f->n_processes; i++) {
		show_process(f->process[i], &p);
		fn(arg, &p);
	}
}

bool fold_get_session(const struct fold *f, const uint8_t uuid[16], struct fold_session *ret)
{
	const struct session *s = session_find(f, uuid);

	if (s != NULL)
		show_session(s, ret);
	return s != NULL;
}

bool fold_get_process(const struct fold *f, const uint8_t ring[16], struct fold_process *ret)
{
	const struct process *p = process_find(f, ring);

	if (p != NULL)
		show_process(p, ret);
	return p != NULL;
}

bool fold_is_member(const struct fold *f, const uint8_t session[16], const uint8_t ring[16])
{
	const struct session *s = session_find(f, session);
	const struct process *p = process_find(f, ring);

	return s != NULL && p != NULL && session_part(s, p) != NULL;
}

uint32_t fold_sessions_of(const struct fold_process *p, int64_t uid, int64_t *ret_ids, uint32_t n)
{
	const struct part *part;
	uint32_t k = 0;

	MUST_PROCESS(p->self);
	for (part = p->self->member; part != NULL && k < n; part = part->next)
		if (uid < 0 || part->session->row.uid == (uint64_t)uid)
			ret_ids[k++] = part->session->row.id;
	return k;
}

int fold_job_refused(const struct fold *f, const uint8_t ring[16], uint32_t number)
{
	const struct process *p = process_find(f, ring);
	uint32_t i;

	for (i = 0; p != NULL && i < p->n_refused_starts && i < REFUSED_KEPT; i++)
		if (p->refused_start[i].number == number)
			return p->refused_start[i].code;
	return 0;
}

struct fold_refused fold_refused(const struct fold *f)
{
	MUST_FOLD(f);
	return f->refused;
}

int fold_refused_words(const struct fold *f, uint32_t uid, int code, struct err *e)
{
	if (code == -EDQUOT)
		return err_set(e, code,
			"user %u has %u sessions that are not finalized, the most one user may "
			"have; finalize some: `protonctl finalize NAME`",
			uid, f->limit.sessions_per_uid);
	if (code == -EMFILE)
		return err_set(e, code,
			"the process is in %u sessions, or has %u of its own, the most it may; "
			"finalize some",
			PARTS_MAX, JOB_SESSIONS);
	return err_set(e, code,
		"there is no room for another session: of all users together there may be %u; "
		"finalize some: `protonctl finalize NAME`",
		f->limit.sessions);
}

/* Sessions that only the store still knows included: ring and number give the uuid. */
bool fold_job_session(
	const struct fold *f, const uint8_t ring[16], uint32_t number, uint8_t ret_uuid[16])
{
	const struct process *p = process_find(f, ring);

	if (p == NULL || number >= p->n_numbers || fold_job_refused(f, ring, number) < 0)
		return false;
	session_number_uuid(ring, number, ret_uuid);
	return true;
}

uint64_t fold_mono_ns(const struct fold *f, const uint8_t ring[16], uint64_t clock)
{
	const struct process *p = process_find(f, ring);
	struct clockmap m;

	if (p == NULL || clock == 0)
		return 0;
	m = p->clock;
	return clockmap_ns(&m, clock);
}

int fold_path_text(const struct fold *f, const uint8_t ring[16], uint32_t path, char *buf, size_t n)
{
	const struct process *p = process_find(f, ring);

	if (n > 0)
		*buf = '\0';
	return p == NULL || path >= p->n_paths ? 0 : (int)node_path_text(p, path, buf, n);
}

#define PROPERTIES_ASKED 64u   /* names of metrics that are tried, the first ones */
#define PROPERTIES_BYTES 1024u /* enough for whoever shows them */

static void put_property(struct text *t, const struct metric *m, const struct metric_name *name)
{
	double f;

	text_fmt(t, "%s%.*s=", t->n > 0 ? ", " : "", (int)name->bytes, name->text);
	memcpy(&f, &m->bits, sizeof(f));
	if (m->type == METRIC_STR)
		text_str(t, m->text != NULL ? m->text : "");
	else if (m->type == METRIC_F64)
		text_fmt(t, "%g", f);
	else if (m->type == METRIC_I64)
		text_fmt(t, "%lld", (long long)m->bits);
	else
		text_fmt(t, "%llu", (unsigned long long)m->bits);
}

static void put_properties(struct text *t, const struct part *part, uint32_t node)
{
	const struct process *p = part->process;
	const uint32_t segment = window_segment(&part->window, UINT64_MAX);
	const struct metric *m;
	uint32_t i;

	for (i = 0; i < p->n_metric_names && i < PROPERTIES_ASKED && t->n < PROPERTIES_BYTES; i++) {
		m = tree_metric_find(part, node, segment, i);
		if (m != NULL && m->kind == KIND_PROPERTY)
			put_property(t, m, &p->metric_name[i]);
	}
}

/* Of the first session that has any. */
size_t fold_properties_text(
	const struct fold *f, const uint8_t ring[16], uint32_t path, char *buf, size_t n)
{
	const struct process *p = process_find(f, ring);
	struct text t = {0};
	uint32_t i;
	size_t got;

	MUST(n > 0);
	*buf = '\0';
	if (p == NULL || path >= p->n_paths || p->path[path].node == 0)
		return 0;
	for (i = 0; i < p->n_parts && t.n == 0; i++)
		put_properties(&t, p->part[i], p->path[path].node - 1);
	got = t.n == 0 || t.failed ? 0 : words_plain(buf, n, t.s, t.n);
	text_fini(&t);
	return got;
}

/* --- what is open, and in flight --- */

uint32_t fold_open_scopes(
	const struct fold *f, const uint8_t ring[16], struct j_now *ret, uint32_t n)
{
	const struct process *p = process_find(f, ring);
	uint32_t i, got = 0;

	MUST(ret != NULL || n == 0);
	for (i = 0; p != NULL && i < p->n_now && got < n; i++) {
		if (p->now[i].path < p->n_paths)
			ret[got++] = p->now[i];
	}
	return got;
}

static void show_launch(const struct process *p, const struct launch *l, struct fold_launch *ret)
{
	const struct gpu *g = l->records != 0 ? &p->flight.gpu[l->records - 1].gpu : NULL;
	uint32_t name = g != NULL && g->name != NAME_NONE ? g->name : launch_name(l), bytes;
	struct clockmap m = p->clock;

	*ret = (struct fold_launch){.mono_ns = clockmap_ns(&m, l->clock),
		.path = l->path < p->n_paths ? l->path : PATH_OTHER,
		.name = name_text(p, name < p->n_names ? name : NAME_OTHER, &bytes),
		.running = g != NULL};
	if (g != NULL) {
		ret->device = g->device;
		ret->stream = g->stream;
	}
}

uint32_t fold_open_launches(
	const struct fold *f, const uint8_t ring[16], struct fold_launch *ret, uint32_t n)
{
	const struct process *p = process_find(f, ring);
	const struct flight *c;
	const struct launch *l, *g;
	uint32_t got = 0, list;

	MUST(ret != NULL || n == 0);
	if (p == NULL)
		return 0;
	c = &p->flight;
	for (list = LIST_OPEN; list <= LIST_GRAPH; list++)
		for (l = flight_first(c, list); l != NULL && got < n; l = flight_next(c, l))
			if (l->records != 0)
				show_launch(p, l, &ret[got++]);
	l = flight_first(c, LIST_OPEN);
	g = flight_first(c, LIST_GRAPH);
	while (got < n && (l != NULL || g != NULL)) { /* both are in order: take the older */
		const struct launch **next =
			g == NULL || (l != NULL && l->clock <= g->clock) ? &l : &g;

		if ((*next)->records == 0)
			show_launch(p, *next, &ret[got++]);
		*next = flight_next(c, *next);
	}
	return got;
}

/* --- what took longest --- */

struct top {
	const struct process *process;
	const struct cell *cell; /* NULL: a scope that is open */
	uint32_t node, from, to; /* of the merged: the places of its cells */
	uint8_t class;
	uint64_t count, sum_ns, max_ns;
};

static const uint8_t *top_hash(const struct top *t)
{
	return t->process->node[t->node].hash;
}

static int by_node(const void *a, const void *b)
{
	const struct top *x = a, *y = b;
	int c = memcmp(top_hash(x), top_hash(y), 16);

	return c != 0 ? c : (int)x->class - (int)y->class;
}

static int by_sum(const void *a, const void *b)
{
	const struct top *x = a, *y = b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns > y->sum_ns ? -1 : 1;
	return by_node(a, b);
}

static const struct ring_device *device_of(const struct process *p, uint32_t number)
{
	uint32_t i;

	for (i = 0; i < p->n_devices; i++)
		if (p->device[i].ordinal == number)
			return &p->device[i];
	return NULL;
}

static bool is_on(const struct process *p, uint32_t number, const uint8_t *uuid)
{
	const struct ring_device *d = uuid == NULL ? NULL : device_of(p, number);

	return uuid == NULL || (d != NULL && memcmp(d->uuid, uuid, 16) == 0);
}

/* What is open counts up to now, and is counted when it ends. */
static uint32_t top_open(const struct part *part, struct top *v)
{
	struct process *p = part->process;
	const uint64_t now = clockmap_clock(&p->clock, p->fold->now_ns);
	uint64_t begin, ns;
	uint32_t i, n = 0;

	for (i = 0; part->attached && part->cpu && i < p->n_now; i++) {
		if (p->now[i].path >= p->n_paths || p->path[p->now[i].path].node == 0)
			continue;
		begin = p->now[i].begin < p->row.created_clock ? p->row.created_clock
							       : p->now[i].begin;
		ns = begin < now ? window_overlap(&part->window, &p->clock, begin, now) : 0;
		v[n++] = (struct top){.process = p,
			.node = p->path[p->now[i].path].node - 1,
			.class = CLASS_CPU,
			.sum_ns = ns,
			.max_ns = ns};
	}
	return n;
}

static bool is_wished(const struct part *part, const struct fold_top_wish *w)
{
	return w->ring == NULL || memcmp(part->process->row.ring, w->ring, 16) == 0;
}

static struct top *top_all(const struct session *s, const struct fold_top_wish *w, uint32_t *ret_n)
{
	const struct tree *t;
	const struct cell *c;
	struct top *v;
	uint32_t i, k, n = 0;

	for (i = 0; i < s->n_parts; i++)
		n += s->part[i]->tree.n_cells + s->part[i]->process->n_now;
	v = n == 0 ? NULL : malloc(n * sizeof(*v));
	if (v == NULL)
		return NULL;
	for (i = 0, n = 0; i < s->n_parts; i++) {
		if (!is_wished(s->part[i], w))
			continue;
		t = &s->part[i]->tree;
		for (k = 0; k < t->n_cells; k++) {
			c = tree_at(t, k);
			if (is_on(s->part[i]->process, c->device, w->device))
				v[n++] = (struct top){.process = s->part[i]->process,
					.cell = c,
					.node = c->node,
					.class = c->class,
					.count = c->count,
					.sum_ns = c->sum_ns,
					.max_ns = c->max_ns};
		}
		n += w->device == NULL ? top_open(s->part[i], v + n) : 0;
	}
	*ret_n = n;
	return v;
}

/* Merges equal nodes and classes; returns how many remain. cells: [n], theirs by place. */
static uint32_t top_merge(struct top *v, uint32_t n, const struct cell **cells)
{
	uint32_t i, last = 0;

	if (n == 0)
		return 0;
	qsort(v, n, sizeof(*v), by_node);
	for (i = 0; i < n; i++) {
		cells[i] = v[i].cell;
		v[i].from = i;
		v[i].to = i + 1;
		if (i == 0)
			continue;
		if (by_node(&v[last], &v[i]) != 0) {
			v[++last] = v[i];
			continue;
		}
		v[last].to = i + 1;
		v[last].count += v[i].count;
		v[last].sum_ns += v[i].sum_ns;
		v[last].max_ns = v[i].max_ns > v[last].max_ns ? v[i].max_ns : v[last].max_ns;
	}
	qsort(v, last + 1, sizeof(*v), by_sum);
	return last + 1;
}

/* What one answer needs room for. */
struct top_words {
	char text[TEXT_BYTES];
	uint32_t part[2 * PATH_DEPTH_MAX + 8], n_parts;
	struct hist_counts all, one;
};

static void top_names(struct top_words *w, const struct process *p, uint32_t node)
{
	uint32_t i, swap, n = 0;

	node_text(p, node, w->text, sizeof(w->text));
	for (; node != NODE_ROOT_AT && n < sizeof(w->part) / sizeof(w->part[0]);
		node = p->node[node].parent)
		w->part[n++] = p->node[node].bytes;
	for (i = 0; i < n / 2; i++) {
		swap = w->part[i];
		w->part[i] = w->part[n - 1 - i];
		w->part[n - 1 - i] = swap;
	}
	w->n_parts = n;
}

static const struct hist_counts *top_durations(
	struct top_words *w, const struct top *t, const struct cell **cells)
{
	uint32_t i, k;

	if (t->to == t->from + 1 && cells[t->from] != NULL) { /* nothing to add up */
		durations_get(cells[t->from], &w->one);
		return &w->one;
	}
	w->all.n = 0;
	w->all.coarse = false;
	for (i = t->from; i < t->to; i++) {
		if (cells[i] == NULL)
			continue;
		durations_get(cells[i], &w->one);
		hist_reach(&w->all, w->one.first, w->one.first + w->one.n);
		w->all.coarse |= w->one.coarse;
		for (k = w->one.first; k < w->one.first + w->one.n; k++)
			w->all.count[k] += w->one.count[k];
	}
	return &w->all;
}

static void top_give(const struct top *t, const struct fold_top_wish *wish,
	const struct cell **cells, struct top_words *w, fold_cell_fn *fn, void *arg)
{
	top_names(w, t->process, t->node);
	fn(arg, &(struct fold_cell){.path = w->text,
			.kind = t->process->node[t->node].kind,
			.class = t->class,
			.count = t->count,
			.sum_ns = t->sum_ns,
			.max_ns = t->max_ns,
			.part = w->part,
			.n_parts = w->n_parts,
			.hist = wish->hist ? top_durations(w, t, cells) : NULL});
}

void fold_top(struct fold *f, const uint8_t session[16], const struct fold_top_wish *w,
	fold_cell_fn *fn, void *arg)
{
	const struct session *s = session_find(f, session);
	const struct cell **cells = NULL;
	struct top_words *words = NULL;
	struct top *v;
	uint32_t have = 0, i;

	v = s == NULL ? NULL : top_all(s, w, &have);
	if (v != NULL && have > 0) {
		words = malloc(sizeof(*words));
		cells = calloc(have, sizeof(const struct cell *));
	}
	if (words != NULL && cells != NULL) {
		have = top_merge(v, have, cells);
		for (i = 0; i < have && i < w->n; i++)
			top_give(&v[i], w, cells, words, fn, arg);
	}
	free(cells);
	free(words);
	free(v);
}

static void add_reading(const struct fold *f, const struct session *s, const struct ring_device *d,
	struct fold_busy *b)
{
	const struct readings_of *o =
		readings_find(&s->readings, d->pci_domain, d->pci_bus, d->pci_device);

	if (o == NULL || fold_now_ns(f) > o->last.end_ns + FOLD_READING_NS)
		return;
	b->reading = o->last.value;
	b->known = o->last.known;
}

void fold_each_busy(const struct fold *f, const uint8_t session[16], fold_busy_fn *fn, void *arg)
{
	const struct session *s = session_find(f, session);
	const struct ring_device *d;
	const struct part *part;
	uint64_t ns[PART_MAX];
	struct fold_busy b;
	uint32_t i, k;

	for (i = 0; s != NULL && i < s->n_parts; i++) {
		part = s->part[i];
		for (k = 0; k < part->tree.n_busy; k++) {
			d = device_of(part->process, part->tree.busy[k]->device);
			b = (struct fold_busy){.pid = part->process->row.pid,
				.number = part->tree.busy[k]->device,
				.uuid = d != NULL ? d->uuid : NULL,
				.name = d != NULL ? d->name : "",
				.busy_ns = busy_parts(part->tree.busy[k], ns),
				.part_ns = part->tree.busy[k]->no_parts ? NULL : ns};
			if (d != NULL)
				add_reading(f, s, d, &b);
			fn(arg, &b);
		}
	}
}

void fold_each_memory(
	const struct fold *f, const uint8_t session[16], fold_memory_fn *fn, void *arg)
{
	const struct session *s = session_find(f, session);
	const struct holders *h;
	const struct ring_device *d;
	uint32_t i, k;

	for (i = 0; s != NULL && i < s->n_parts; i++) {
		h = allocs_held(s->part[i]);
		for (k = 0; h != NULL && k < h->n_accounts; k++) {
			const struct held_account *a = h->account[k];
			struct fold_memory m = {s->part[i]->process->row.pid, a, a->device};

			d = device_of(s->part[i]->process, a->device);
			if (a->device == HELD_HOST || a->kind == HELD_PINNED)
				m.device = -1;
			else if (a->kind < HELD_TORCH && d != NULL)
				m.device = d->ordinal;
			fn(arg, &m);
		}
	}
}

void fold_each_told(const struct fold *f, const uint8_t session[16], fold_told_fn *fn, void *arg)
{
	const struct session *s = session_find(f, session);
	uint32_t i, k;

	for (i = 0; s != NULL && i < s->n_parts; i++) {
		const struct part *part = s->part[i];

		for (k = 0; part->steps != NULL && k < part->steps->n_names; k++)
			if (part->steps->total[k] > 0)
				fn(arg, &(struct fold_told){part->process->row.pid,
						part->process->metric_name[part->steps->name[k]]
							.text,
						part->steps->total[k]});
	}
}
