/* SPDX-License-Identifier: MIT. timeline_chunk.c: what a chunk of the timeline has, handed to the
 * format. */
#include "timeline.h"

#include <inttypes.h>
#include <string.h>

#include "runs.h"
#include "session_terms.h"

#define GPU_PID     5000000u /* above what Linux gives to processes (2^22), so that GPUs come last */
#define FLUSH_BYTES (1u << 18)
#define PENDING_MAX 65536u /* metrics whose scope has not ended */
#define THREADS_MAX 4096u  /* named ones of a process */
#define GPUS_MAX    1024u  /* of a process; further ones are the last one */

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

static uint64_t at_clock(struct timeline *w, uint64_t clock)
{
	return trace_time_ring(&w->time, &w->at, clock);
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

/* NULL: one of too many. */
static struct named *thread_named(struct timeline *w, uint32_t tid)
{
	uint32_t i = 0;

	while (i < w->n_threads && w->thread[i].tid != tid)
		i++;
	return i < w->n_threads ? &w->thread[i] : NULL;
}

static void take_scope(struct timeline *w, const struct trace_chunk *c, const struct trace_scope *s)
{
	const uint64_t begin = at_clock(w, s->begin), end = at_clock(w, s->end);
	struct timeline_scope t = {.begin_ns = begin,
		.end_ns = end > begin ? end : begin,
		.tid = c->thread[s->thread].tid,
		.node = w->node[s->node],
		.flags = s->flags,
		.call = s->call};
	struct named *thread;

	t.n_metrics = scope_metrics(w, t.tid, t.node, s->begin, s->end);
	if (!is_in_window(w, t.begin_ns, t.end_ns))
		return;
	thread = trace_is_sync(s) ? thread_named(w, t.tid) : NULL;
	if (thread != NULL)
		thread->synced = true;
	if (w->form->scope != NULL)
		w->form->scope(w, &t);
}

/* --- bursts */

/* A sum that is older than its chunk says of its next events only that they came after its last. */
static void take_burst(struct timeline *w, const struct trace_chunk *c, const struct trace_burst *b)
{
	struct timeline_burst t = {.begin_ns = at_clock(w, b->begin),
		.end_ns = at_clock(w, b->end),
		.n = b->n,
		.tid = c->thread[b->thread].tid};
	struct named *thread = thread_named(w, t.tid);

	if (!is_selected(w, b->segment))
		return;
	if (thread == NULL) {
		w->left.summed += t.n;
		return;
	}
	t.first = !thread->summed;
	if (t.begin_ns < thread->summed_until)
		t.begin_ns = thread->summed_until;
	if (t.end_ns < t.begin_ns)
		t.end_ns = t.begin_ns;
	thread->summed_until = t.end_ns;
	if (!is_in_window(w, t.begin_ns, t.end_ns))
		return;
	thread->summed = true;
	w->left.summed += t.n;
	if (w->form->burst != NULL)
		w->form->burst(w, &t);
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

static int take_op(struct timeline *w, const struct trace_chunk *c, const struct trace_op *o)
{
	struct timeline_op t = {.op = o,
		.stream = &c->stream[o->stream],
		.config = o->config != TRACE_NONE ? &c->config[o->config] : NULL,
		.start_ns = trace_time_real(&w->time, o->start),
		.node = w->node[o->node],
		.launch = (o->flags & (TRACE_UNLAUNCHED | TRACE_MORE)) == 0};
	struct lane_set *set =
		lane_of(&w->lane, &w->n_lanes, &w->cap_lanes, t.stream->device, t.stream->stream);

	t.gpu = timeline_gpu(w, t.stream->device);
	t.end_ns = t.start_ns + (o->end - o->start);
	if (t.gpu == NULL)
		return -ENOMEM;
	if (set == NULL || !lane_place(set, t.start_ns, t.end_ns, &t.lane))
		return timeline_no_memory(w);
	if ((o->flags & TRACE_UNLAUNCHED) == 0) {
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

/* Those that are selected, by stream, and in that mostly in order; `at`: of each stream where the next goes. Returns how many. */
static uint32_t by_stream(const struct timeline *w, const struct trace_chunk *c,
	const struct trace_op **order, uint32_t *at)
{
	const uint32_t streams = c->n[TRACE_N_STREAMS];
	uint32_t i, n;

	for (i = 0; i < c->n[TRACE_N_OPS]; i++)
		at[c->op[i].stream + 1] += is_selected(w, c->op[i].segment);
	for (i = 0; i < streams; i++)
		at[i + 1] += at[i];
	n = at[streams];
	for (i = 0; i < c->n[TRACE_N_OPS]; i++)
		if (is_selected(w, c->op[i].segment))
			order[at[c->op[i].stream]++] = &c->op[i];
	return n;
}

static int take_ops(struct timeline *w, const struct trace_chunk *c)
{
	const struct trace_op **order = calloc((size_t)c->n[TRACE_N_OPS] + 1, sizeof(*order));
	uint32_t *at = calloc((size_t)c->n[TRACE_N_STREAMS] + 1, sizeof(*at)), i, n;
	int r = order != NULL && at != NULL ? 0 : timeline_no_memory(w);

	n = r == 0 ? by_stream(w, c, order, at) : 0;
	runs_sort(order, n, sizeof(*order), op_order);
	for (i = 0; i < n && r == 0; i++) {
		r = take_op(w, c, order[i]);
		if (r == 0 && w->out.n > FLUSH_BYTES)
			r = timeline_flush(w);
	}
	free(order);
	free(at);
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
		r = trace_names_find(&w->names, c->node[i], &w->node[i], w->l.e);
	w->known = w->names.v;
	for (i = 0; i < c->n[TRACE_N_THREADS] && r == 0; i++) {
		for (k = 0; k < w->n_threads && w->thread[k].tid != c->thread[i].tid; k++)
			;
		if (k == THREADS_MAX)
			continue;
		if (k == w->n_threads) {
			r = ROOM(w, w->thread, w->cap_threads, k);
			if (r < 0)
				break;
			w->thread[w->n_threads++] = (struct named){.tid = c->thread[i].tid};
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
	uint32_t i;
	int r = w->form->op != NULL ? trace_chunk_read(bytes, n, &c, w->l.e)
				    : trace_chunk_read_scopes(bytes, n, &c, w->l.e);

	if (r < 0)
		return r;
	r = take_lists(w, &c);
	if (r == 0)
		r = take_metrics(w, &c);
	if (r == 0)
		r = take_scopes(w, &c);
	for (i = 0; r == 0 && i < c.n_bursts; i++)
		take_burst(w, &c, &c.burst[i]);
	if (r == 0 && w->form->op != NULL)
		r = take_ops(w, &c);
	if (r == 0 && w->form->chunk_end != NULL)
		w->form->chunk_end(w);
	timeline_metrics_left(w, false);
	if (r == 0 && c.n[TRACE_N_METRICS] > 0)
		r = renew_texts(w);
	trace_chunk_fini(&c);
	return r;
}
