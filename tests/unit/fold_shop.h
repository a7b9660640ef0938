/* SPDX-License-Identifier: MIT. fold_shop.h: a store in memory, for tests: rows by key, the last
 * one written holds; it gives them back as a batch, and can be compared. */
#ifndef FOLD_SHOP_H
#define FOLD_SHOP_H

#include <stdarg.h>

#include "fold_help.h"
#include "hist.h"
#include "trace.h"

enum row_kind {
#define X(t, key, options) ROW_##t,
	TABLES(X)
#undef X
};

struct shop_row {
	enum row_kind kind;
	int64_t session; /* 0: of none */
	uint64_t hash;   /* of the key, for speed */
	char *key, *value;
	void *row;
};

struct shop {
	struct shop_row *v;
	uint32_t n, cap;
	int64_t next_process, next_session;
	struct batch own; /* histograms and names of all cells and nodes ever */
};

struct line { /* key or value as it grows */
	char *s;
	size_t n, cap;
};

HELP __attribute__((format(printf, 2, 3))) void line_add(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (l->cap - l->n < 1024) {
		l->cap = l->cap * 2 + 2048;
		l->s = must(realloc(l->s, l->cap));
	}
	va_start(ap, fmt);
	n = vsnprintf(l->s + l->n, l->cap - l->n, fmt, ap);
	va_end(ap);
	l->n += (size_t)n;
}

HELP void line_hex(struct line *l, const void *p, size_t n)
{
	const uint8_t *b = p;
	size_t i;

	for (i = 0; i < n; i++)
		line_add(l, "%02x", b[i]);
	line_add(l, " ");
}

#define U(x) line_add(v, #x "=%llu ", (unsigned long long)(x))
#define S(x) line_add(v, #x "='%s' ", (x) == NULL ? "" : (x))

HELP void show_process(struct line *k, struct line *v, const struct row_process *r)
{
	uint32_t i;

	line_add(k, "process %ld", r->id);
	line_hex(v, r->ring, 16);
	line_hex(v, r->boot_id, 16);
	line_hex(v, r->parent, 16);
	line_hex(v, r->token, 16);
	U(r->started_ns), U(r->ended_ns), U(r->pid), U(r->ns_pid), U(r->uid), U(r->flags);
	U(r->clock), U(r->tsc_khz), U(r->n_lanes), U(r->lane_bytes), U(r->pid_start);
	U(r->created_clock), U(r->created_monotonic_ns), U(r->created_realtime_ns);
	U(r->rank), U(r->local_rank), U(r->world_size), U(r->end_reason), U(r->source);
	U(r->gpu_state), U(r->cupti_version), U(r->driver_version), U(r->gpu_code), U(r->agent_ns);
	S(r->host), S(r->version), S(r->gpu_text), S(r->cupti_path), S(r->job_id);
	S(r->command), S(r->exe), S(r->cwd);
	for (i = 0; i < 8; i++)
		U(r->counters[i]);
}

HELP void show_session(struct line *k, struct line *v, const struct row_session *r)
{
	line_add(k, "session %ld", r->id);
	line_hex(v, r->uuid, 16);
	line_hex(v, r->token, 16);
	line_hex(v, r->owner, 16);
	U(r->created_ns), U(r->finalized_ns), U(r->uid), U(r->source), U(r->match), U(r->pid);
	U(r->job_number), U(r->data), U(r->context), U(r->cpu), U(r->gpu), U(r->state);
	U(r->active_ns), U(r->launches), U(r->matched), U(r->daemon_ns);
	S(r->name), S(r->backend), S(r->mode), S(r->hook), S(r->command);
}

HELP void show_member(struct line *k, struct line *v, const struct row_member *r)
{
	line_add(k, "member %ld %ld", r->session, r->process);
	line_add(v, ".");
}

HELP void show_active(struct line *k, struct line *v, const struct row_active *r)
{
	line_add(k, "active %ld %lu", r->session, r->begin_ns);
	U(r->end_ns);
}

HELP void show_segment(struct line *k, struct line *v, const struct row_segment *r)
{
	line_add(k, "segment %ld %u", r->session, r->segment);
	U(r->begin_ns), U(r->end_ns);
}

HELP void show_node(struct line *k, struct line *v, const struct row_node *r)
{
	line_add(k, "node ");
	line_hex(k, r->hash, 16);
	line_hex(v, r->parent, 16);
	U(r->kind), S(r->name);
}

static const struct batch *shown;

HELP void show_cell(struct line *k, struct line *v, const struct row_cell *r)
{
	struct hist_counts h;
	uint32_t i;

	line_add(k, "cell %ld %ld %u %u %u ", r->session, r->process, r->segment, r->device,
		r->class);
	line_hex(k, r->node, 16);
	U(r->count), U(r->sum_ns), U(r->min_ns), U(r->max_ns), U(r->bytes), U(r->untimed),
		U(r->open);
	batch_durations(shown, r, &h);
	for (i = 0; i < h.n; i++)
		line_add(v, "%u:%lu%s ", h.first + i, h.count[h.first + i], h.coarse ? "~" : "");
}

HELP void show_metric(struct line *k, struct line *v, const struct row_metric *r)
{
	line_add(k, "metric %ld %ld %u %s ", r->session, r->process, r->segment, r->name);
	line_hex(k, r->node, 16);
	U(r->kind), U(r->type), U(r->bits), U(r->count), S(r->text);
}

HELP void show_config(struct line *k, struct line *v, const struct row_config *r)
{
	line_add(k, "config %ld %ld %u ", r->session, r->process, r->config);
	line_hex(k, r->node, 16);
	U(r->count), U(r->grid_x);
}

HELP void show_device(struct line *k, struct line *v, const struct row_device *r)
{
	line_add(k, "device %ld %u", r->process, r->device);
	line_hex(v, r->uuid, 16);
	U(r->ordinal), U(r->type), U(r->pci_bus), U(r->arch), U(r->memory_bytes), S(r->name);
	S(r->label), S(r->streams);
}

HELP void show_busy(struct line *k, struct line *v, const struct row_busy *r)
{
	line_add(k, "busy %ld %ld %u", r->session, r->process, r->device);
	U(r->busy_ns), U(r->first_ns), U(r->last_ns);
}

HELP void show_trace(struct line *k, struct line *v, const struct row_trace *r)
{
	line_add(k, "trace %ld %ld %08u", r->session, r->process, r->number);
	U(r->first), U(r->events);
}

HELP void show_reading(struct line *k, struct line *v, const struct row_reading *r)
{
	line_add(k, "reading %ld %u %u", r->session, r->gpu, r->number);
	U(r->begin_ns), U(r->end_ns);
}

HELP void show_step(struct line *k, struct line *v, const struct row_step *r)
{
	line_add(k, "step %ld %ld %u", r->session, r->process, r->number);
	U(r->steps), U(r->begin_ns), U(r->end_ns);
}

HELP void show_loss(struct line *k, struct line *v, const struct row_loss *r)
{
	line_add(k, "loss %ld %ld %u", r->session, r->process, r->cause);
	U(r->count);
}

HELP void show_note(struct line *k, struct line *v, const struct row_note *r)
{
	line_add(k, "note %ld %ld %u", r->session, r->process, r->number);
	U(r->ns), S(r->text);
}

HELP void show_lane(struct line *k, struct line *v, const struct row_lane *r)
{
	line_add(k, "lane %ld %u", r->process, r->lane);
	U(r->head);
}

HELP void show_memory(struct line *k, struct line *v, const struct row_memory *r)
{
	line_add(k, "memory %ld %ld", r->session, r->process);
	line_hex(v, r->bytes, r->n);
}

HELP void show_pending(struct line *k, struct line *v, const struct row_pending *r)
{
	line_add(k, "pending %ld", r->process);
	line_hex(v, r->bytes, r->n);
}

HELP void show_anchor(struct line *k, struct line *v, const struct row_anchor *r)
{
	line_add(k, "anchor %lu", r->clock);
	U(r->monotonic_ns), U(r->realtime_ns), U(r->error_ns);
}

#undef U
#undef S

HELP int64_t session_of(enum row_kind kind, const void *row)
{
	switch (kind) {
	case ROW_session:
	case ROW_member:
	case ROW_active:
	case ROW_segment:
	case ROW_cell:
	case ROW_metric:
	case ROW_config:
	case ROW_busy:
	case ROW_trace:
	case ROW_reading:
	case ROW_step:
	case ROW_memory:
	case ROW_loss:
	case ROW_note:
		if (kind == ROW_session)
			return ((const struct row_session *)row)->id;
		return *(const int64_t *)row; /* their first field */
	case ROW_process:
	case ROW_node:
	case ROW_device:
	case ROW_lane:
	case ROW_pending:
	case ROW_anchor:
		return 0;
	}
	return 0;
}

/* Strings and bytes that the row owns; `to` is a bytewise copy of `from`. */
HELP void own(enum row_kind kind, void *to)
{
	struct row_process *p = to;
	struct row_pending *g = to;
	struct row_trace *c = to;
	void *bytes;

	if (kind == ROW_process) {
		p->command = must(strdup(p->command));
		p->exe = must(strdup(p->exe));
		p->cwd = must(strdup(p->cwd));
	} else if (kind == ROW_trace && c->bytes != NULL) {
		bytes = must(malloc(c->n));
		memcpy(bytes, c->bytes, c->n);
		c->bytes = bytes;
	} else if (kind == ROW_reading) {
		struct row_reading *d = to;

		bytes = must(malloc(d->n));
		memcpy(bytes, d->bytes, d->n);
		d->bytes = bytes;
	} else if (kind == ROW_step) {
		struct row_step *d = to;

		bytes = must(malloc(d->n));
		memcpy(bytes, d->bytes, d->n);
		d->bytes = bytes;
	} else if (kind == ROW_memory) {
		struct row_memory *d = to;

		bytes = must(malloc(d->n));
		memcpy(bytes, d->bytes, d->n);
		d->bytes = bytes;
	} else if (kind == ROW_pending) {
		bytes = must(malloc(g->n));
		memcpy(bytes, g->bytes, g->n);
		g->bytes = bytes;
	}
}

HELP void disown(enum row_kind kind, void *row)
{
	struct batch b = {0};

	switch (kind) {
#define X(t, key, options)     \
	case ROW_##t:          \
		b.t.row = row; \
		b.t.n = 1;     \
		break;
		TABLES(X)
#undef X
	}
	batch_free(&b);
}

HELP void shop_put_row(
	struct shop *s, enum row_kind kind, struct line *k, struct line *v, void *row)
{
	struct shop_row *at = NULL;
	struct row_node *n = row;
	struct row_metric *m = row;
	uint64_t hash = 14695981039346656037u;
	uint32_t i;

	for (i = 0; k->s[i] != '\0'; i++)
		hash = (hash ^ (uint8_t)k->s[i]) * 1099511628211u;
	for (i = 0; i < s->n && at == NULL; i++)
		if (s->v[i].hash == hash && strcmp(s->v[i].key, k->s) == 0)
			at = &s->v[i];
	if (at == NULL) {
		if (s->n == s->cap) {
			s->cap = s->cap * 2 + 64;
			s->v = must(realloc(s->v, s->cap * sizeof(*s->v)));
		}
		at = &s->v[s->n++];
	} else {
		free(at->key);
		free(at->value);
		disown(at->kind, at->row);
	}
	own(kind, row);
	if (kind == ROW_node) {
		n->name = batch_text(&s->own, n->name);
	} else if (kind == ROW_metric) {
		m->name = batch_text(&s->own, m->name);
		m->text = m->text == NULL ? NULL : batch_text(&s->own, m->text);
	}
	*at = (struct shop_row){kind, session_of(kind, row), hash, k->s, v->s, row};
}

HELP void shop_drop(struct shop_row *r)
{
	free(r->key);
	free(r->value);
	disown(r->kind, r->row);
}

HELP void shop_delete(struct shop *s, int64_t session)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->n; i++) {
		if (s->v[i].session != session || session == 0)
			s->v[n++] = s->v[i];
		else
			shop_drop(&s->v[i]);
	}
	s->n = n;
}

/* Of a session that the fold may have forgotten: the daemon's work then. */
HELP void shop_delete_uuid(struct shop *s, const uint8_t uuid[16])
{
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		if (s->v[i].kind == ROW_session &&
			memcmp(((const struct row_session *)s->v[i].row)->uuid, uuid, 16) == 0) {
			shop_delete(s, s->v[i].session);
			return;
		}
	}
}

HELP const uint8_t *node_of(const struct shop_row *r)
{
	return r->kind == ROW_cell     ? ((const struct row_cell *)r->row)->node
	       : r->kind == ROW_metric ? ((const struct row_metric *)r->row)->node
	       : r->kind == ROW_config ? ((const struct row_config *)r->row)->node
				       : NULL;
}

HELP uint32_t shop_node(const struct shop *s, const uint8_t hash[16])
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->v[i].kind == ROW_node &&
			memcmp(((const struct row_node *)s->v[i].row)->hash, hash, 16) == 0)
			return i;
	return UINT32_MAX;
}

/* Nodes that no row stands on go, as a store's do. Every row's node must be there. */
HELP void shop_sweep(struct shop *s)
{
	static const uint8_t none[16];
	bool *used = must(calloc(s->n + 1, 1));
	const uint8_t *hash;
	uint32_t i, at, n = 0;

	for (i = 0; i < s->n; i++) {
		for (hash = node_of(&s->v[i]); hash != NULL && memcmp(hash, none, 16) != 0;
			hash = ((const struct row_node *)s->v[at].row)->parent) {
			at = shop_node(s, hash);
			ck_assert_msg(at != UINT32_MAX, "no node for %s", s->v[i].key);
			if (used[at])
				break;
			used[at] = true;
		}
	}
	for (i = 0; i < s->n; i++) {
		if (s->v[i].kind != ROW_node || used[i])
			s->v[n++] = s->v[i];
		else
			shop_drop(&s->v[i]);
	}
	s->n = n;
	free(used);
}

/* The cell's histogram moves into the shop's. */
HELP void shop_hist(struct shop *s, const struct batch *from, struct row_cell *c)
{
	struct hist_counts h;

	batch_durations(from, c, &h);
	ck_assert(batch_hist(&s->own, c, &h));
}

/* One transaction; takes the batch. */
HELP void shop_put(struct shop *s, struct batch *take)
{
	struct line k, v;
	uint32_t i;
	void *row;

	shown = &s->own;
	for (i = 0; i < take->cell.n; i++)
		shop_hist(s, take, &take->cell.row[i]);
#define X(t, key, options)                                            \
	for (i = 0; i < take->t.n; i++) {                             \
		k = v = (struct line){0};                             \
		show_##t(&k, &v, &take->t.row[i]);                    \
		row = must(malloc(sizeof(take->t.row[i])));           \
		memcpy(row, &take->t.row[i], sizeof(take->t.row[i])); \
		shop_put_row(s, ROW_##t, &k, &v, row);                \
	}
	TABLES(X)
#undef X
	for (i = 0; i < take->n_deleted; i++)
		shop_delete(s, take->deleted[i]);
	s->next_process = take->next_process;
	s->next_session = take->next_session;
	batch_free(take);
}

/* As store_load() gives them: without sessions that are finalized, if `live`. */
HELP struct batch shop_load(const struct shop *s, bool live)
{
	struct batch b = {.next_process = s->next_process, .next_session = s->next_session};
	int64_t final[256];
	uint32_t i, j, n = 0;
	bool skip;

	for (i = 0; i < s->n; i++)
		if (s->v[i].kind == ROW_session && n < 256 &&
			((const struct row_session *)s->v[i].row)->state == SESSION_IS_FINALIZED)
			final[n++] = s->v[i].session;
	for (i = 0; i < s->n; i++) {
		skip = false;
		for (j = 0; live && j < n; j++)
			skip |= s->v[i].session == final[j];
		if (skip)
			continue;
		switch (s->v[i].kind) {
#define X(t, key, options)                                \
	case ROW_##t: {                                   \
		struct row_##t *to = must(batch_##t(&b)); \
		memcpy(to, s->v[i].row, sizeof(*to));     \
		own(ROW_##t, to);                         \
		break;                                    \
	}
			TABLES(X)
#undef X
		}
	}
	b.buckets = must(malloc(s->own.n_buckets + (size_t)1));
	if (s->own.n_buckets > 0)
		memcpy(b.buckets, s->own.buckets, s->own.n_buckets);
	b.n_buckets = b.cap_buckets = s->own.n_buckets;
	return b;
}

HELP int by_key(const void *a, const void *b)
{
	const struct shop_row *x = a, *y = b;

	return strcmp(x->key, y->key);
}

/* One line an event. */
HELP void show_chunk(struct line *l, const struct row_trace *r)
{
	struct trace_chunk c;
	struct err e;
	uint32_t i;

	ck_assert_msg(trace_chunk_read(r->bytes, r->n, &c, &e) == 0, "%s", e.text);
	ck_assert_uint_eq(c.n[TRACE_N_SCOPES] + c.n[TRACE_N_OPS] + c.n[TRACE_N_METRICS], r->events);
	for (i = 0; i < c.n[TRACE_N_SCOPES]; i++) {
		const struct trace_scope *s = &c.scope[i];

		line_add(l, "session %ld process %ld ", r->session, r->process);
		line_hex(l, c.node[s->node], 4);
		line_add(l, "scope %lu..%lu thread %u segment %u flags %u\n", s->begin, s->end,
			c.thread[s->thread].tid, s->segment, s->flags);
	}
	for (i = 0; i < c.n[TRACE_N_OPS]; i++) {
		const struct trace_op *o = &c.op[i];
		const bool launched = (o->flags & TRACE_UNLAUNCHED) == 0;

		line_add(l, "session %ld process %ld ", r->session, r->process);
		line_hex(l, c.node[o->node], 4);
		line_add(l, "op %lu..%lu stream %u launched %lu thread %u segment %u flags %u\n",
			o->start, o->end, c.stream[o->stream].stream, launched ? o->launched : 0,
			launched ? c.thread[o->thread].tid : 0, o->segment, o->flags);
	}
	for (i = 0; i < c.n[TRACE_N_METRICS]; i++) {
		line_add(l, "session %ld process %ld ", r->session, r->process);
		line_hex(l, c.node[c.metric[i].node], 4);
		line_add(l, "metric %.40s type %u at %lu\n", c.text[c.metric[i].name],
			c.metric[i].type, c.metric[i].clock);
	}
	trace_chunk_fini(&c);
}

HELP int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Takes the chunks out, sorted by key, and gives their events as sorted lines: where one chunk ends
 * and the next begins is another place after a restart. */
HELP char **shop_take_timelines(struct shop *s, uint32_t *ret_n, char **ret_text)
{
	struct row_trace before = {.session = -1};
	const struct row_trace *r;
	struct line l = {0};
	uint32_t i, n = 0;
	char **line, *at;

	line_add(&l, "\n");
	for (i = 0; i < s->n; i++) {
		if (s->v[i].kind != ROW_trace) {
			s->v[n++] = s->v[i];
			continue;
		}
		r = s->v[i].row;
		if (before.session == r->session && before.process == r->process)
			ck_assert_uint_eq(r->first, before.first + before.events);
		else
			ck_assert_uint_eq(r->first, 0);
		show_chunk(&l, r);
		before = *r;
		shop_drop(&s->v[i]);
	}
	*ret_text = l.s;
	for (i = 0, at = l.s; *at != '\0'; at++)
		i += *at == '\n';
	line = must(malloc((i + 1) * sizeof(*line)));
	for (*ret_n = 0, at = strtok(l.s, "\n"); at != NULL; at = strtok(NULL, "\n"))
		line[(*ret_n)++] = at;
	qsort(line, *ret_n, sizeof(*line), by_text);
	s->n = n;
	return line;
}

HELP void shop_same_timelines(struct shop *a, struct shop *b, const char *what)
{
	char *text[2], **line[2];
	uint32_t n[2], i;

	line[0] = shop_take_timelines(a, &n[0], &text[0]);
	line[1] = shop_take_timelines(b, &n[1], &text[1]);
	for (i = 0; i < n[0] && i < n[1]; i++)
		ck_assert_msg(strcmp(line[0][i], line[1][i]) == 0, "%s: %s\n%s", what, line[0][i],
			line[1][i]);
	ck_assert_uint_eq(n[0], n[1]);
	free(line[0]);
	free(line[1]);
	free(text[0]);
	free(text[1]);
}

/* Fails the test at the first row that is not in both, or differs. */
HELP void shop_same(struct shop *a, struct shop *b, const char *what)
{
	uint32_t i, k;
	int c;

	shop_sweep(a);
	shop_sweep(b);
	qsort(a->v, a->n, sizeof(*a->v), by_key);
	qsort(b->v, b->n, sizeof(*b->v), by_key);
	shop_same_timelines(a, b, what);
	for (i = 0; i < a->n && i < b->n; i++) {
		c = strcmp(a->v[i].key, b->v[i].key);
		ck_assert_msg(c >= 0, "%s: only in the first: %s", what, a->v[i].key);
		ck_assert_msg(c <= 0, "%s: only in the second: %s", what, b->v[i].key);
		if (strcmp(a->v[i].value, b->v[i].value) == 0)
			continue;
		for (k = 0; a->v[i].value[k] == b->v[i].value[k]; k++)
			;
		k = k < 60 ? 0 : k - 60;
		ck_abort_msg("%s: %s at %u of %zu\n  %.300s\n  %.300s", what, a->v[i].key, k,
			strlen(a->v[i].value), a->v[i].value + k, b->v[i].value + k);
	}
	ck_assert_uint_eq(a->n, b->n);
}

HELP void shop_free(struct shop *s)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		shop_drop(&s->v[i]);
	free(s->v);
	batch_free(&s->own);
	*s = (struct shop){0};
}

#endif
