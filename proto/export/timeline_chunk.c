/* SPDX-License-Identifier: MIT. timeline_chunk.c: what a chunk of the timeline has, handed to the
 * format.
 *
 * Each stream is in as many lanes as it takes that no two operations of one lane overlap, for
 * viewers drop what overlaps. */
#include "timeline.h"

#include <inttypes.h>
#include <string.h>

#include "session_terms.h"

#define GPU_PID     5000000u /* above what Linux gives to processes (2^22), so that GPUs come last */
#define FLUSH_BYTES (1u << 18)
#define PENDING_MAX 65536u  /* metrics whose scope has not ended */
#define STEP_NS     1000000 /* a step of CLOCK_REALTIME */
#define THREADS_MAX 4096u   /* named ones of a process */
#define GPUS_MAX    1024u   /* of a process; further ones are the last one */
#define STREAMS_MAX 4096u   /* of a process; further ones share the last one's lanes */

int timeline_no_memory(struct timeline *w)
{
	return err_set(w->l.e, -ENOMEM, "out of memory for the timeline");
}

int timeline_room(struct timeline *w, void **v, uint32_t *cap, uint32_t n, size_t bytes)
{
	uint32_t want = *cap == 0 ? 64 : *cap;
	void *grown;

	while (want <= n)
		want *= 2;
	if (want == *cap)
		return 0;
	grown = reallocarray(*v, want, bytes);
	if (grown == NULL)
		return timeline_no_memory(w);
	*v = grown;
	*cap = want;
	return 0;
}
/* --- output */

int timeline_flush(struct timeline *w)
{
	if (w->out.failed)
		return timeline_no_memory(w);
	if (w->out.n > 0 && fwrite(w->out.s, 1, w->out.n, w->to) != w->out.n)
		return err_set(
			w->l.e, neg_errno(), "the timeline cannot be written: %s", strerror(errno));
	w->out.n = 0;
	return 0;
}

/* Viewers drop what is before 0. */
static uint64_t since_base(const struct timeline *w, int64_t mono_ns)
{
	return mono_ns > w->base_ns ? (uint64_t)(mono_ns - w->base_ns) : 0;
}

static uint64_t at_clock(struct timeline *w, uint64_t clock)
{
	return since_base(w, (int64_t)clockmap_ns(&w->clock, clock));
}

static bool is_in_window(const struct timeline *w, uint64_t begin_ns, uint64_t end_ns)
{
	return w->l.select->to_ns == 0 ||
	       (end_ns >= w->l.select->from_ns && begin_ns <= w->l.select->to_ns);
}

static bool is_selected(const struct timeline *w, uint32_t segment)
{
	return !w->l.select->one_phase || segment == w->l.select->phase;
}

/* --- nodes */

static uint32_t *map_at(struct timeline *w, const uint8_t hash[16])
{
	uint64_t h;
	uint32_t i;

	memcpy(&h, hash, sizeof(h));
	for (i = (uint32_t)h & (w->map_cap - 1); w->known_map[i] != 0;
		i = (i + 1) & (w->map_cap - 1))
		if (memcmp(w->known[w->known_map[i] - 1].hash, hash, 16) == 0)
			break;
	return &w->known_map[i];
}

static int map_room(struct timeline *w)
{
	uint32_t i, *old = w->known_map;

	if (w->n_known * 2 < w->map_cap)
		return 0;
	w->map_cap = w->map_cap == 0 ? 1024 : w->map_cap * 2;
	w->known_map = calloc(w->map_cap, sizeof(*w->known_map));
	if (w->known_map == NULL) {
		free(old);
		return timeline_no_memory(w);
	}
	free(old);
	for (i = 0; i < w->n_known; i++)
		*map_at(w, w->known[i].hash) = i + 1;
	return 0;
}

/* The row of one node; *ret_parent: its parent's hash, all zero for a root. */
static int node_read(
	struct timeline *w, const uint8_t hash[16], struct known *ret, uint8_t ret_parent[16])
{
	sqlite3_stmt *q = w->node_by_hash;
	const char *text = NULL;
	int rc;

	memset(ret_parent, 0, 16);
	*ret = (struct known){.parent = PROFILE_NONE, .name = "(unknown)", .kind = NODE_SCOPE};
	memcpy(ret->hash, hash, 16);
	(void)sqlite3_bind_blob(q, 1, hash, 16, SQLITE_STATIC);
	rc = sqlite3_step(q);
	if (rc == SQLITE_ROW) {
		text = (const char *)sqlite3_column_text(q, 0);
		ret->kind = (uint8_t)sqlite3_column_int(q, 1);
		if (sqlite3_column_bytes(q, 2) == 16)
			memcpy(ret_parent, sqlite3_column_blob(q, 2), 16);
	}
	if (text != NULL)
		ret->name = profile_text(w->l.p, text, (size_t)sqlite3_column_bytes(q, 0));
	if (text != NULL && ret->name != NULL && w->l.select->show != NULL &&
		w->l.p->head.files == MODE_NONE) {
		text = w->l.select->show(w->l.select->show_arg, ret->name);
		ret->name = profile_text(w->l.p, text, strlen(text));
	}
	(void)sqlite3_reset(q);
	if (ret->name == NULL)
		return timeline_no_memory(w);
	return rc == SQLITE_ROW || rc == SQLITE_DONE
		       ? 0
		       : err_set(w->l.e, -EIO, "the database cannot be read: %s",
				 sqlite3_errmsg(w->l.db));
}

/* The place of a node, with all that stands above it; each is read once. */
static int node_find(struct timeline *w, const uint8_t hash[16], uint32_t *ret)
{
	static const uint8_t none[16];
	uint8_t at[16], parent[16];
	uint32_t *slot, below = PROFILE_NONE, depth;
	struct known k;
	int r;

	*ret = PROFILE_NONE;
	memcpy(at, hash, 16);
	for (depth = 0; depth < TIMELINE_DEPTH_MAX; depth++) {
		if (map_room(w) < 0 || ROOM(w, w->known, w->cap_known, w->n_known) < 0)
			return -ENOMEM;
		slot = map_at(w, at);
		if (*slot != 0) {
			if (below == PROFILE_NONE)
				*ret = *slot - 1;
			else
				w->known[below].parent = *slot - 1;
			return 0;
		}
		r = node_read(w, at, &k, parent);
		if (r < 0)
			return r;
		w->known[w->n_known] = k;
		*slot = w->n_known + 1;
		if (below == PROFILE_NONE)
			*ret = w->n_known;
		else
			w->known[below].parent = w->n_known;
		below = w->n_known++;
		if (memcmp(parent, none, 16) == 0)
			return 0;
		memcpy(at, parent, 16);
	}
	return 0;
}

uint32_t timeline_path(const struct timeline *w, uint32_t node, uint32_t ret[TIMELINE_DEPTH_MAX])
{
	uint32_t n = 0;

	for (; node != PROFILE_NONE && n < TIMELINE_DEPTH_MAX; node = w->known[node].parent)
		ret[n++] = node;
	return n;
}

/* --- metrics of scopes */

static int held_order(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->clock < y->clock ? -1 : x->clock > y->clock;
}

/* By name, then as they were set. */
static int taken_order(const void *a, const void *b, void *of)
{
	const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct held *held = of;
	const int r = strcmp(held[i].name, held[j].name);

	return r != 0 ? r : (i > j) - (i < j);
}

/* The first from here on that no scope has taken. Those in between are not walked over again. */
static uint32_t held_free(struct timeline *w, uint32_t at)
{
	uint32_t to = at, next;

	while (to < w->n_held && w->held[to].free != to)
		to = w->held[to].free;
	for (; at < to; at = next) {
		next = w->held[at].free;
		w->held[at].free = to;
	}
	return to;
}

/* Those of this thread and node between the two clocks: they belong to this scope. Returns how many
 * were taken. */
static uint32_t scope_metrics(
	struct timeline *w, uint32_t tid, uint32_t node, uint64_t begin, uint64_t end)
{
	const struct held key = {.tid = tid, .node = node, .clock = begin};
	uint32_t low = 0, high = w->n_held, n = 0, mid;
	struct held *h;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (held_order(&w->held[mid], &key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (low = held_free(w, low); low < w->n_held; low = held_free(w, low)) {
		h = &w->held[low];
		if (h->tid != tid || h->node != node || h->clock > end)
			break;
		h->free = low + 1;
		w->taken[n++] = low;
	}
	qsort_r(w->taken, n, sizeof(*w->taken), taken_order, w->held);
	return n;
}

/* The rest waits for its scope; at the end, or over the ceiling, it stands alone. */
void timeline_metrics_left(struct timeline *w, bool all)
{
	struct held *h;
	uint32_t i, n = 0;

	all |= w->n_held > PENDING_MAX;
	for (i = 0; i < w->n_held; i++) {
		h = &w->held[i];
		if (h->free != i)
			continue;
		if (!all) {
			w->held[n] = *h;
			w->held[n].free = n;
			n++;
			continue;
		}
		const uint64_t at = at_clock(w, h->clock);

		if (w->form->metric != NULL && is_in_window(w, at, at))
			w->form->metric(w, h, at);
	}
	w->n_held = n;
}

/* What the chunk's metrics are called, clean; each text once. */
static const char *clean_text(
	struct timeline *w, const struct trace_chunk *c, const char **clean, uint32_t at)
{
	if (clean[at] == NULL)
		clean[at] = profile_text(w->texts, c->text[at], strlen(c->text[at]));
	return clean[at];
}

static int take_metric(struct timeline *w, const struct trace_chunk *c,
	const struct trace_metric *m, const char **clean)
{
	struct held *h;

	if (ROOM(w, w->held, w->cap_held, w->n_held) < 0)
		return -ENOMEM;
	h = &w->held[w->n_held];
	*h = (struct held){.clock = m->clock,
		.tid = c->thread[m->thread].tid,
		.node = w->node[m->node],
		.type = m->type,
		.bits = m->bits,
		.text = "",
		.name = clean_text(w, c, clean, m->name)};
	if (m->type == VALUE_STR)
		h->text = clean_text(w, c, clean, (uint32_t)m->bits);
	if (h->name == NULL || h->text == NULL)
		return timeline_no_memory(w);
	w->n_held++;
	return 0;
}

static int take_metrics(struct timeline *w, const struct trace_chunk *c)
{
	const char **clean = calloc((size_t)c->n[TRACE_N_TEXTS] + 1, sizeof(*clean));
	uint32_t i;
	int r = 0;

	if (w->texts == NULL)
		w->texts = profile_new();
	if (clean == NULL || w->texts == NULL)
		r = timeline_no_memory(w);
	for (i = 0; i < c->n[TRACE_N_METRICS] && r == 0; i++)
		if (is_selected(w, c->metric[i].segment))
			r = take_metric(w, c, &c->metric[i], clean);
	free(clean);
	if (r == 0)
		r = ROOM(w, w->taken, w->cap_taken, w->n_held);
	if (r == 0 && w->n_held > 1)
		qsort(w->held, w->n_held, sizeof(*w->held), held_order);
	for (i = 0; i < w->n_held; i++)
		w->held[i].free = i;
	return r;
}

/* The texts of those that wait move on, so that the others' are given back. */
static int renew_texts(struct timeline *w)
{
	struct profile *fresh = profile_new();
	uint32_t i;

	for (i = 0; fresh != NULL && i < w->n_held; i++) {
		w->held[i].name = profile_text(fresh, w->held[i].name, strlen(w->held[i].name));
		w->held[i].text = profile_text(fresh, w->held[i].text, strlen(w->held[i].text));
		if (w->held[i].name == NULL || w->held[i].text == NULL)
			break;
	}
	if (fresh == NULL || i < w->n_held) {
		profile_free(fresh);
		w->n_held = 0;
		return timeline_no_memory(w);
	}
	profile_free(w->texts);
	w->texts = fresh;
	return 0;
}

/* --- scopes */

static void take_scope(struct timeline *w, const struct trace_chunk *c, const struct trace_scope *s)
{
	const uint64_t begin = at_clock(w, s->begin), end = at_clock(w, s->end);
	struct timeline_scope t = {.begin_ns = begin,
		.end_ns = end > begin ? end : begin,
		.tid = c->thread[s->thread].tid,
		.node = w->node[s->node],
		.flags = s->flags};

	t.n_metrics = scope_metrics(w, t.tid, t.node, s->begin, s->end);
	if (w->form->scope != NULL && is_in_window(w, t.begin_ns, t.end_ns))
		w->form->scope(w, &t);
}

/* --- what the GPU did */

struct gpu_seen *timeline_gpu(struct timeline *w, uint32_t device)
{
	struct gpu_seen *g;
	uint32_t i;

	for (i = 0; i < w->n_gpus; i++)
		if (w->gpu[i].device == device || i + 1 == GPUS_MAX)
			break;
	if (i == w->n_gpus) { /* no row of it: by its number */
		if (ROOM(w, w->gpu, w->cap_gpus, w->n_gpus) < 0)
			return NULL;
		w->gpu[w->n_gpus++] =
			(struct gpu_seen){.device = device, .ordinal = device, .name = ""};
	}
	g = &w->gpu[i];
	if (g->pid == 0)
		g->pid = GPU_PID + w->gpu_pid++;
	return g;
}

/* CLOCK_REALTIME to the ring's time. Each anchor tells the difference of the two to some tens of
 * nanoseconds, so one of them holds until the clock was set: else neighbours would overlap. */
int64_t timeline_real_to_mono(struct timeline *w, uint64_t real_ns)
{
	const int64_t real = (int64_t)(real_ns > CLOCK_NS_MAX ? CLOCK_NS_MAX : real_ns);
	const int64_t ahead =
		w->wall->n > 0 ? anchors_offset(w->wall, (uint64_t)real) : w->ahead_ns;

	if (llabs(ahead - w->ahead_ns) > STEP_NS)
		w->ahead_ns = ahead;
	return real - w->ahead_ns;
}

/* The first lane of the stream that is free. */
static int lane_of(struct timeline *w, const struct trace_stream *s, uint64_t start, uint64_t end,
	uint32_t *ret_lane)
{
	struct lane_set *set = NULL;
	uint64_t *grown;
	uint32_t i;

	for (i = 0; i < w->n_lanes && set == NULL; i++)
		if (i + 1 == STREAMS_MAX ||
			(w->lane[i].device == s->device && w->lane[i].stream == s->stream))
			set = &w->lane[i];
	if (set == NULL) {
		if (ROOM(w, w->lane, w->cap_lanes, w->n_lanes) < 0)
			return -ENOMEM;
		set = &w->lane[w->n_lanes++];
		*set = (struct lane_set){.device = s->device, .stream = s->stream};
	}
	for (i = 0; i < set->n && i + 1 < LANES_MAX && set->end[i] > start; i++)
		;
	if (i == set->n) {
		grown = reallocarray(set->end, i + 1, sizeof(*grown));
		if (grown == NULL)
			return timeline_no_memory(w);
		set->end = grown;
		set->n++;
	}
	set->end[i] = end;
	*ret_lane = i;
	return 0;
}

static int take_op(struct timeline *w, const struct trace_chunk *c, const struct trace_op *o)
{
	struct timeline_op t = {.op = o,
		.stream = &c->stream[o->stream],
		.config = o->config != TRACE_NONE ? &c->config[o->config] : NULL,
		.start_ns = since_base(w, timeline_real_to_mono(w, o->start)),
		.node = w->node[o->node],
		.launch = (o->flags & (TRACE_UNLAUNCHED | TRACE_MORE)) == 0};

	t.gpu = timeline_gpu(w, t.stream->device);
	t.end_ns = t.start_ns + (o->end - o->start);
	if (t.gpu == NULL || lane_of(w, t.stream, t.start_ns, t.end_ns, &t.lane) < 0)
		return -ENOMEM;
	if (t.launch) {
		t.tid = c->thread[o->thread].tid;
		t.launch_ns = at_clock(w, o->launched);
	}
	if (is_in_window(w, t.start_ns, t.end_ns))
		w->form->op(w, &t);
	return 0;
}

/* --- chunks */

static int op_order(const void *a, const void *b)
{
	const struct trace_op *x = *(const struct trace_op *const *)a,
			      *y = *(const struct trace_op *const *)b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static int take_ops(struct timeline *w, const struct trace_chunk *c)
{
	const struct trace_op **order = calloc((size_t)c->n[TRACE_N_OPS] + 1, sizeof(*order));
	uint32_t i, n = 0;
	int r = 0;

	if (order == NULL)
		return timeline_no_memory(w);
	for (i = 0; i < c->n[TRACE_N_OPS]; i++)
		if (is_selected(w, c->op[i].segment))
			order[n++] = &c->op[i];
	qsort(order, n, sizeof(*order), op_order);
	for (i = 0; i < n && r == 0; i++) {
		r = take_op(w, c, order[i]);
		if (r == 0 && w->out.n > FLUSH_BYTES)
			r = timeline_flush(w);
	}
	free(order);
	return r;
}

static int take_scopes(struct timeline *w, const struct trace_chunk *c)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < c->n[TRACE_N_SCOPES] && r == 0; i++) {
		if (!is_selected(w, c->scope[i].segment))
			continue;
		take_scope(w, c, &c->scope[i]);
		if (w->out.n > FLUSH_BYTES)
			r = timeline_flush(w);
	}
	return r;
}

static int take_lists(struct timeline *w, const struct trace_chunk *c)
{
	const char *name;
	uint32_t i, k;
	int r = 0;

	if (ROOM(w, w->node, w->cap_node, c->n[TRACE_N_NODES]) < 0)
		return -ENOMEM;
	for (i = 0; i < c->n[TRACE_N_NODES] && r == 0; i++)
		r = node_find(w, c->node[i], &w->node[i]);
	for (i = 0; i < c->n[TRACE_N_THREADS] && r == 0; i++) {
		for (k = 0; k < w->n_threads && w->thread[k].tid != c->thread[i].tid; k++)
			;
		if (k == THREADS_MAX)
			continue;
		if (k == w->n_threads) {
			r = ROOM(w, w->thread, w->cap_threads, k);
			if (r < 0)
				break;
			w->thread[w->n_threads++] = (struct named){c->thread[i].tid, NULL};
		}
		if (c->thread[i].name == TRACE_NONE || w->thread[k].name != NULL)
			continue;
		name = c->text[c->thread[i].name];
		w->thread[k].name = profile_text(w->l.p, name, strlen(name));
		if (w->thread[k].name == NULL)
			r = timeline_no_memory(w);
	}
	return r;
}

int timeline_chunk(struct timeline *w, const void *bytes, size_t n)
{
	struct trace_chunk c;
	int r = trace_chunk_read(bytes, n, &c, w->l.e);

	if (r < 0)
		return r;
	r = take_lists(w, &c);
	if (r == 0)
		r = take_metrics(w, &c);
	if (r == 0)
		r = take_scopes(w, &c);
	if (r == 0)
		r = take_ops(w, &c);
	if (r == 0 && w->form->chunk_end != NULL)
		w->form->chunk_end(w);
	timeline_metrics_left(w, false);
	if (r == 0 && c.n[TRACE_N_METRICS] > 0)
		r = renew_texts(w);
	trace_chunk_fini(&c);
	return r;
}
