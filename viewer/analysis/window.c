/* SPDX-License-Identifier: MIT. window.c: a part of a timeline, added up on the session's tree. */
#include "window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "spans.h"
#include "table.h"
#include "timeline_reading.h"

static const struct {
	const char *time, *count;
} metrics[COUNTS_MAX] = {
	[COUNTS_CPU] = {"cpu_time (ns)", "calls"},
	[COUNTS_KERNEL] = {"time (ns)", "count"},
	[COUNTS_COPY] = {"copy_time (ns)", "copies"},
	[COUNTS_SYNC] = {"sync_time (ns)", "syncs"},
	[COUNTS_OVERHEAD] = {"overhead_time (ns)", "overheads"},
	[COUNTS_LAUNCH] = {"launch_time (ns)", "launches"},
	[COUNTS_DELAY] = {"launch_delay (ns)", "launch_delays"},
	[COUNTS_SAMPLE] = {"sample_time (ns)", "cpu_samples"},
	[COUNTS_OFF_CPU] = {"off_cpu_time (ns)", "off_cpu_samples"},
	[COUNTS_READY] = {"run_queue_time (ns)", "run_queue_samples"},
	[COUNTS_API] = {"api_time (ns)", "api_calls"},
	[COUNTS_API_ERROR] = {"api_error_time (ns)", "api_errors"},
};

/* What a scope was told of its work, which its parts have a part of. */
static const char *const told[] = {"flops8", "flops16", "flops32", "flops64", "flops", "bytes"};
#define TOLD (sizeof(told) / sizeof(*told))

struct event {
	uint64_t begin, end;
	union {
		uint64_t bytes;
		double told;
	};
	uint32_t node, config; /* of the profile; config TRACE_NONE: none */
	uint8_t counts;        /* COUNTS_…; from COUNTS_MAX on told[counts - COUNTS_MAX] */
};

struct sum {
	uint64_t ns[COUNTS_MAX], n[COUNTS_MAX], bytes;
};

struct reading {
	struct window *to;
	struct parts parts;
	struct spans spans;
	struct event *event; /* of the process at hand */
	uint32_t n, cap;
	struct sum *sum;    /* [n_nodes] */
	double *told[TOLD]; /* [n_nodes]; NULL: the session has none */
	uint32_t told_metric[TOLD];
	uint64_t *configs;  /* [n_configs]: how often */
	struct table index; /* (parent, kind, name) → node */
	uint32_t *map;      /* node of the timeline → of the profile + 1; 0: not looked for */
	uint32_t cap_map, processes;
	uint64_t longest_ns;
	struct {
		int64_t pid;
		bool shared;
	} * device; /* [n_devices] */
	bool failed, many;
};

/* --- nodes */

struct key {
	const struct profile *p;
	uint32_t parent;
	uint8_t kind;
	const char *name;
};

static bool is_it(const void *arg, uint32_t at)
{
	const struct key *k = arg;
	const struct profile_node *n = &k->p->node[at];

	return n->parent == k->parent && n->kind == k->kind && strcmp(n->name, k->name) == 0;
}

static uint32_t hash_of(uint32_t parent, uint8_t kind, const char *name)
{
	uint64_t h = 0xcbf29ce484222325u + kind;

	for (; *name != '\0'; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	return table_mix(h, parent);
}

static bool index_nodes(struct reading *r)
{
	const struct profile *p = r->to->p;
	uint32_t i;

	for (i = 1; i < p->n_nodes; i++) /* -ENOSPC: names that were chosen to collide */
		if (table_add(&r->index,
			    hash_of(p->node[i].parent, p->node[i].kind, p->node[i].name),
			    i) == -ENOMEM)
			return false;
	return true;
}

/* The node of the tree; what it lacks counts where the nearest above it stands. */
static uint32_t place(struct reading *r, struct timeline *w, uint32_t node)
{
	uint32_t up[TRACE_DEPTH_MAX], n, at = 0, found;
	struct key k = {.p = r->to->p};

	if (!ZEROED_FOR(r->map, r->cap_map, node + 1)) {
		r->failed = true;
		return 0;
	}
	if (r->map[node] != 0)
		return r->map[node] - 1;
	for (n = trace_names_path(&w->names, node, up); n > 0; n--) {
		if (w->known[up[n - 1]].kind == NODE_ROOT) /* an import names it, too */
			continue;
		k.parent = at;
		k.kind = w->known[up[n - 1]].kind;
		k.name = w->known[up[n - 1]].name;
		found = table_find(&r->index, hash_of(at, k.kind, k.name), is_it, &k);
		if (found == TABLE_NONE)
			break;
		at = found;
	}
	r->map[node] = at + 1;
	return at;
}

static uint32_t config_of(const struct profile *p, uint32_t node, const struct trace_config *c)
{
	uint32_t low = 0, high = p->n_configs, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (p->config[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	for (; c != NULL && low < p->n_configs && p->config[low].node == node; low++) {
		const struct profile_config *v = &p->config[low];

		if (memcmp(v->grid, c->grid, sizeof(v->grid)) == 0 &&
			memcmp(v->block, c->block, sizeof(v->block)) == 0 &&
			v->registers == c->registers && v->static_shared == c->static_shared &&
			v->dynamic_shared == c->dynamic_shared)
			return low;
	}
	return TRACE_NONE;
}

/* --- the timeline */

static void on_open(struct timeline *w)
{
	struct reading *r = w->mine;

	r->failed |= parts_open(&r->parts, w) < 0;
	spans_open(&r->spans, w);
	r->to->base_ns = w->time.base_ns;
}

static void on_process(struct timeline *w)
{
	struct reading *r = w->mine;

	parts_process(&r->parts);
	spans_process(&r->spans);
	r->n = 0;
}

static void add(struct reading *r, struct event v)
{
	const struct spans *sp = &r->spans;

	/* Steps and scopes are known at the end; a window is now. */
	if (sp->window.n == 0 || v.end <= sp->window.v[0].begin ||
		v.begin >= sp->window.v[sp->window.n - 1].end)
		return;
	if (r->n == WINDOW_EVENTS_MAX)
		r->many = r->failed = true;
	else if (!ROOM_FOR(r->event, r->cap, r->n))
		r->failed = true;
	else
		r->event[r->n++] = v;
}

static void add_told(struct reading *r, struct timeline *w, const struct timeline_scope *s)
{
	const struct held *h;
	uint32_t i, k;
	double v;

	for (i = 0; i < s->n_metrics; i++) {
		h = &w->held[w->taken[i]];
		for (k = 0; k < TOLD && (r->told[k] == NULL || strcmp(told[k], h->name) != 0); k++)
			;
		v = k < TOLD ? reading_number(h) : (double)NAN;
		if (isfinite(v))
			add(r, (struct event){.begin = s->begin_ns,
				       .end = s->end_ns,
				       .told = v,
				       .node = place(r, w, s->node),
				       .config = TRACE_NONE,
				       .counts = (uint8_t)(COUNTS_MAX + k)});
	}
}

static void on_scope(struct timeline *w, const struct timeline_scope *s)
{
	struct reading *r = w->mine;
	const bool call = (s->flags & TRACE_CALL) != 0;
	struct event v;

	parts_seen(&r->parts, s->end_ns);
	spans_scope(&r->spans, w, s);
	add_told(r, w, s);
	v = (struct event){.begin = s->begin_ns,
		.end = s->end_ns,
		.node = place(r, w, s->node),
		.config = TRACE_NONE,
		.counts = call ? gpu_classes[gpu_class_known(s->call.class)].counts : COUNTS_CPU};
	if (gpu_counts_samples(v.counts))
		v.bytes = s->call.correlation;
	add(r, v);
	/* What is ready is off CPU, and that is a sample; an error is a call. */
	while (call && ((gpu_counts_samples(v.counts) && v.counts > COUNTS_SAMPLE) ||
			       v.counts == COUNTS_API_ERROR)) {
		v.counts--;
		add(r, v);
	}
}

static void on_op(struct timeline *w, const struct timeline_op *o)
{
	struct reading *r = w->mine;
	const uint32_t node = place(r, w, o->node);

	r->failed |= !parts_op(&r->parts, o);
	add(r, (struct event){.begin = o->start_ns,
		       .end = o->end_ns,
		       .bytes = o->op->bytes,
		       .node = node,
		       .config = config_of(r->to->p, node, o->config),
		       .counts = gpu_classes[gpu_class_known(o->op->class)].counts});
}

static void add_events(struct reading *r)
{
	const struct event *v;
	uint64_t ns;

	for (v = r->event; v < r->event + r->n; v++) {
		ns = spans_clip(&r->spans, v->begin, v->end);
		if (ns == 0)
			continue;
		if (v->counts >= COUNTS_MAX) {
			r->told[v->counts - COUNTS_MAX][v->node] +=
				v->told * (double)ns / (double)(v->end - v->begin);
			continue;
		}
		r->sum[v->node].ns[v->counts] += ns;
		r->sum[v->node].n[v->counts] += gpu_counts_samples(v->counts) ? v->bytes : 1;
		if (v->counts == COUNTS_COPY)
			r->sum[v->node].bytes += v->bytes;
		if (v->config != TRACE_NONE)
			r->configs[v->config]++;
	}
}

static uint32_t device_of(const struct profile *p, const struct gpu_seen *g)
{
	static const uint8_t unknown[16];
	char id[24];
	uint32_t i;

	for (i = 0; i < p->n_devices && memcmp(g->uuid, unknown, sizeof(unknown)) != 0; i++)
		if (memcmp(p->device[i].uuid, g->uuid, sizeof(unknown)) == 0)
			return i;
	snprintf(id, sizeof(id), "%u", g->ordinal);
	for (i = 0; i < p->n_devices && strcmp(p->device[i].id, id) != 0; i++)
		;
	return i;
}

static void add_gpu(struct reading *r, struct timeline *w, const struct parts_gpu *g)
{
	const struct gpu_seen *seen = timeline_gpu(w, g->device);
	struct profile *p = r->to->p;
	const uint32_t at = seen != NULL ? device_of(p, seen) : p->n_devices;
	uint64_t sum = 0;
	uint32_t i;

	r->failed |= seen == NULL;
	if (at == p->n_devices)
		return;
	for (i = 0; i < r->spans.of.n; i++)
		sum += parts_window(&r->parts, g, &r->spans.of.v[i], p->device[at].part_ns);
	r->longest_ns = sum > r->longest_ns ? sum : r->longest_ns;
	/* What one process waits for another may fill. */
	r->device[at].shared |= r->device[at].pid != 0 && r->device[at].pid != w->at.pid;
	r->device[at].pid = w->at.pid;
}

static void add_reach(struct reading *r)
{
	const struct parts_spans *of = &r->spans.of;
	uint64_t last = 0, sum;
	uint32_t i;

	if (of->n == 0 || r->n == 0)
		return;
	for (i = 0; i < r->n; i++)
		last = r->event[i].end > last ? r->event[i].end : last;
	last = last < of->v[of->n - 1].end ? last : of->v[of->n - 1].end;
	r->to->from_ns = of->v[0].begin < r->to->from_ns ? of->v[0].begin : r->to->from_ns;
	r->to->to_ns = last > r->to->to_ns ? last : r->to->to_ns;
	sum = spans_clip(&r->spans, 0, last);
	r->longest_ns = sum > r->longest_ns ? sum : r->longest_ns;
	r->processes++;
}

static void on_process_end(struct timeline *w)
{
	struct reading *r = w->mine;
	uint32_t i;

	(void)spans_settle(&r->spans);
	r->failed |= r->spans.failed || !parts_settle(&r->parts, w);
	if (r->failed)
		return;
	add_reach(r);
	add_events(r);
	for (i = 0; i < r->parts.n_gpus && r->spans.of.n > 0; i++)
		add_gpu(r, w, &r->parts.gpu[i]);
}

/* --- the tree of it */

static bool room_for_told(struct reading *r)
{
	const struct profile *p = r->to->p;
	uint32_t k;

	for (k = 0; k < TOLD; k++) {
		r->told_metric[k] = profile_find_metric(p, told[k]);
		if (r->told_metric[k] == PROFILE_NONE)
			continue;
		r->told[k] = calloc(p->n_nodes, sizeof(*r->told[k]));
		if (r->told[k] == NULL)
			return false;
	}
	return true;
}

static bool empty_tree(struct reading *r)
{
	struct profile *p = r->to->p;
	uint32_t i;

	r->sum = calloc(p->n_nodes, sizeof(*r->sum));
	r->configs = calloc(p->n_configs + 1u, sizeof(*r->configs));
	r->device = calloc(p->n_devices + 1u, sizeof(*r->device));
	for (i = 0; i < p->n_devices; i++) {
		p->device[i].busy_ns = 0;
		memset(p->device[i].part_ns, 0, sizeof(p->device[i].part_ns));
	}
	return r->sum != NULL && r->configs != NULL && r->device != NULL && room_for_told(r) &&
	       index_nodes(r);
}

static bool put(struct profile *p, uint32_t node, const char *name, uint64_t v)
{
	const uint32_t metric = v > 0 ? profile_find_metric(p, name) : PROFILE_NONE;

	return metric == PROFILE_NONE ||
	       profile_set(p, node, metric, (struct value){.type = VALUE_U64, .u = v}) == 0;
}

static void fill_devices(struct reading *r)
{
	struct profile *p = r->to->p;
	uint32_t i, k;

	for (i = 0; i < p->n_devices; i++) {
		for (k = 0; k < PART_IDLE; k++)
			p->device[i].busy_ns += p->device[i].part_ns[k];
		if (p->device[i].busy_ns > r->longest_ns) /* of several processes */
			p->device[i].busy_ns = r->longest_ns;
		p->device[i].has_parts = r->device[i].pid != 0 && !r->device[i].shared &&
					 p->device[i].part_ns[PART_UNKNOWN] == 0;
	}
}

static bool fill_tree(struct reading *r)
{
	struct profile *p = r->to->p;
	uint32_t i, k, n = 0;
	bool ok = true;

	memset(p->value, 0, (size_t)p->n_nodes * p->n_metrics * sizeof(*p->value));
	for (i = 0; i < p->n_nodes && ok; i++) {
		for (k = 0; k < COUNTS_MAX && ok; k++)
			ok = put(p, i, metrics[k].time, r->sum[i].ns[k]) &&
			     put(p, i, metrics[k].count, r->sum[i].n[k]);
		ok = ok && put(p, i, "copy_bytes", r->sum[i].bytes);
		for (k = 0; k < TOLD && ok; k++)
			if (r->told[k] != NULL && r->told[k][i] > 0)
				ok = profile_set(p, i, r->told_metric[k],
					     (struct value){
						     .type = VALUE_F64, .f = r->told[k][i]}) == 0;
	}
	for (i = 0; i < p->n_configs; i++) {
		p->config[n] = p->config[i];
		p->config[n].count = r->configs[i];
		n += r->configs[i] > 0;
	}
	p->n_configs = n;
	free(p->durations);
	p->durations = NULL;
	p->head.duration_ns = r->longest_ns;
	p->head.n_processes = r->processes;
	p->head.rates = (struct step_rates){0};
	fill_devices(r);
	return ok;
}

int window_read(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	struct reading r = {.to = arg};
	const struct timeline_form form = {.open = on_open,
		.process = on_process,
		.scope = on_scope,
		.op = r.to->host_only ? NULL : on_op,
		.process_end = on_process_end};
	const struct profile_select all = spans_whole(s);
	int status, verdict;
	uint32_t k;

	r.to->from_ns = UINT64_MAX;
	r.to->to_ns = 0;
	spans_begin(&r.spans, s);
	r.failed = !empty_tree(&r);
	status = reading_run(&form, &r, &r.failed, db, id, &all, ret_left, e);
	if (r.many)
		status = err_set(e, -E2BIG,
			"a process has more than %u events there; give a shorter --window A..B",
			WINDOW_EVENTS_MAX);
	else if (status == 0 || r.spans.many) {
		verdict = spans_verdict(&r.spans, r.to->to_ns > r.to->from_ns, e);
		status = verdict < 0 ? verdict : status;
	}
	if (status == 0 && !fill_tree(&r))
		status = err_set(e, -ENOMEM, "out of memory");
	parts_fini(&r.parts);
	spans_fini(&r.spans);
	table_fini(&r.index);
	free(r.event);
	free(r.sum);
	free(r.configs);
	free(r.map);
	free(r.device);
	for (k = 0; k < TOLD; k++)
		free(r.told[k]);
	return status;
}
