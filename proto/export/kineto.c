/* SPDX-License-Identifier: MIT. kineto.c: the format kineto: Chrome's trace events with the
 * categories, names and args of PyTorch's profiler, by which HTA and TensorBoard's plugin find steps,
 * operators, launches and kernels.
 *
 * A step is ProfilerStep#N. A scope is a user_annotation, and on each lane of a stream that has work
 * launched in it (project.h) a gpu_user_annotation, from the start of the first to the end of the last:
 * exactly, so that neighbours do not overlap. External id ties launch and GPU work to the innermost scope. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "chrome_events.h"
#include "kineto_memory.h"
#include "kineto_syncs.h"
#include "op_terms.h"
#include "project.h"
#include "sorted.h"

#define LANE_MORE \
	LANES_MAX /* projections of a lane's further threads stand in lanes from here on */
#define NAME_MAX_BYTES 1040
#define LAST_DEPTH     255u  /* scopes below it have no projections of their own */
#define LOOSE_MAX      1024u /* at once; further ones are left out, and counted */

struct projection {
	uint32_t lane;
	uint64_t start_ns, end_ns;
};

/* A scope that is open. */
struct instance {
	uint64_t id, begin_ns, end_ns;
	uint32_t node, thread, depth;
	int64_t step;           /* its number; -1: it is no step */
	bool marked;            /* an operator, by OP_MARK */
	struct instance *older; /* of the same node */
	struct projection *at;
	uint32_t n, cap;
	uint64_t work; /* the last that is in it, by number */
};

/* A scope that is not open here: a graph's launch in which it was captured, or a run of work of a lane. */
struct loose {
	struct projected of;
	struct instance x;
	uint32_t launcher, lane; /* LAUNCH: its thread; RUN: where */
	uint64_t began;          /* number of its first work */
};

/* Where projections of one thread's scopes go on a lane. */
struct row {
	uint32_t lane, thread,
		number; /* among the lane's: 0 is the lane itself, others have a row beside it */
	uint64_t end_ns[LAST_DEPTH +
			1]; /* of those at a depth, in the scope that is open above them */
};

struct kineto {
	struct chrome c;
	uint64_t ids;
	struct instance **of_node; /* [n_known]: the newest that is open */
	uint32_t *main;            /* [n_processes]: main threads */
	struct projected *above;   /* of the work at hand */
	uint64_t work;
	struct loose *loose;
	uint32_t n_loose, cap_loose;
	struct row **row;
	uint32_t n_rows, cap_rows;
	uint32_t *rows; /* [n_lanes]: how many */
	struct table by_lane;
	struct kineto_syncs syncs;
	bool ordinals; /* GPUs are processes by their number, as Kineto has them */
	uint64_t overlaps;
};

static struct kineto *kineto(struct sorted *s)
{
	return s->mine;
}

static void failed(struct sorted *s)
{
	s->w->out.failed = true;
}

/* --- names */

static const char *category_of(const struct timeline *w, uint32_t node)
{
	const struct known *k = &w->known[node];

	if (k->kind == NODE_OP || (k->kind == NODE_SCOPE && operator_bytes(k->name) > 0))
		return "cpu_op";
	return k->kind == NODE_FRAME ? "python_function" : "user_annotation";
}

static const char *scope_name(
	const struct timeline *w, const struct instance *x, char words[static 40])
{
	if (x->step < 0)
		return w->known[x->node].name;
	snprintf(words, 40, "ProfilerStep#%" PRId64, x->step);
	return words;
}

/* "Memcpy HtoD" of "[memcpy HtoD]"; a kernel's own. */
static const char *op_name(
	const struct timeline *w, const struct sorted_op *o, char words[static 40])
{
	const char *leaf = gpu_classes[o->class].leaf;

	if (*leaf == '\0')
		return w->known[o->node].name;
	snprintf(words, 40, "M%.*s", (int)strcspn(leaf + 2, "]"), leaf + 2);
	return words;
}

static const char *launch_name(
	const struct timeline *w, const struct sorted_op *o, char words[static 40])
{
	const bool hip = w->l.p->n_devices > 0 && strcmp(w->l.p->device[0].type, "HIP") == 0;
	const uint8_t node = gpu_classes[o->class].node;

	snprintf(words, 40, "%s%s", hip ? "hip" : "cuda",
		(o->flags & TRACE_GRAPH) != 0 ? "GraphLaunch"
		: node == NODE_COPY           ? "MemcpyAsync"
		: node == NODE_SET            ? "MemsetAsync"
					      : "LaunchKernel");
	return words;
}

static int64_t gpu_pid(struct sorted *s, uint32_t gpu)
{
	return kineto(s)->ordinals ? s->gpu[gpu].ordinal : s->gpu[gpu].pid;
}

/* --- projections */

struct row_key {
	const struct kineto *k;
	uint32_t lane, thread;
};

static bool same_row(const void *arg, uint32_t at)
{
	const struct row_key *key = arg;
	const struct row *x = key->k->row[at];

	return x->lane == key->lane && x->thread == key->thread;
}

static struct row *row_of(struct sorted *s, uint32_t lane, uint32_t thread)
{
	struct kineto *k = kineto(s);
	const struct row_key key = {k, lane, thread};
	const uint32_t hash = table_mix(lane, thread),
		       at = table_find(&k->by_lane, hash, same_row, &key);
	struct row *x;

	if (at != TABLE_NONE)
		return k->row[at];
	x = calloc(1, sizeof(*x));
	if (x == NULL || !ROOM_FOR(k->row, k->cap_rows, k->n_rows) ||
		table_add(&k->by_lane, hash, k->n_rows) < 0) {
		free(x);
		return NULL;
	}
	*x = (struct row){.lane = lane, .thread = thread, .number = k->rows[lane]++};
	k->row[k->n_rows++] = x;
	return x;
}

static uint64_t row_tid(const struct sorted_lane *l, const struct row *x)
{
	return chrome_lane_tid(l->stream, LANES_MAX * x->number + l->lane);
}

/* Whether it stands beside what ended before its scope began; then what is inside is forgotten. */
static bool fits(struct row *x, const struct instance *of, const struct projection *p)
{
	uint32_t d;

	for (d = 0; d <= of->depth; d++)
		if (p->start_ns < x->end_ns[d])
			return false;
	x->end_ns[of->depth] = p->end_ns;
	memset(&x->end_ns[of->depth + 1], 0, (LAST_DEPTH - of->depth) * sizeof(x->end_ns[0]));
	return true;
}

static void put_projection(struct sorted *s, const struct instance *x, const struct projection *p)
{
	const struct sorted_lane *l = &s->lane[p->lane];
	struct row *row = row_of(s, p->lane, x->thread);
	struct text *t = &s->w->out;
	char words[40];

	if (row == NULL) {
		failed(s);
		return;
	}
	if (!fits(row, x, p)) {
		kineto(s)->overlaps++;
		return;
	}
	chrome_event(&kineto(s)->c, "X", "gpu_user_annotation", scope_name(s->w, x, words),
		gpu_pid(s, l->gpu),
		chrome_lane_tid(
			l->stream, row->number == 0 ? l->lane : LANE_MORE * row->number + l->lane),
		p->start_ns);
	text_str(t, ",\"dur\":");
	chrome_micros(t, p->end_ns - p->start_ns);
	text_str(t, ",\"args\":{");
	if (x->id != 0)
		text_fmt(t, "\"External id\":%" PRIu64, x->id);
	text_str(t, "}}");
}

static void project(struct sorted *s, struct instance *x, const struct sorted_op *o)
{
	struct projection *p;
	uint32_t i = 0;

	while (i < x->n && x->at[i].lane != o->lane)
		i++;
	if (i == x->n) {
		if (!ROOM_FOR(x->at, x->cap, x->n)) {
			failed(s);
			return;
		}
		x->at[x->n++] = (struct projection){o->lane, o->start_ns, o->end_ns};
	}
	p = &x->at[i];
	p->start_ns = o->start_ns < p->start_ns ? o->start_ns : p->start_ns;
	p->end_ns = o->end_ns > p->end_ns ? o->end_ns : p->end_ns;
}

static void put_projections(struct sorted *s, const struct instance *x)
{
	uint32_t i;

	for (i = 0; i < x->n && x->depth <= LAST_DEPTH && !x->marked &&
		    category_of(s->w, x->node)[0] == 'u';
		i++)
		put_projection(s, x, &x->at[i]);
}

static bool find_open(void *arg, uint32_t thread, uint32_t node, uint64_t at, struct projected *ret)
{
	struct instance *x = kineto(arg)->of_node[node];

	while (x != NULL && (x->thread != thread || at < x->begin_ns || at > x->end_ns))
		x = x->older;
	if (x == NULL)
		return false;
	ret->thread = thread;
	ret->key = x->begin_ns;
	ret->mine = x;
	return true;
}

typedef bool over_fn(const struct loose *l, const void *arg);

/* What is inside comes first, then as they began. */
static int loose_order(const void *a, const void *b)
{
	const struct loose *x = a, *y = b;

	if (x->x.depth != y->x.depth)
		return x->x.depth > y->x.depth ? -1 : 1;
	return (x->began > y->began) - (x->began < y->began);
}

static void end_loose(struct sorted *s, over_fn *over, const void *arg)
{
	struct kineto *k = kineto(s);
	struct loose swap;
	uint32_t i, n = 0;

	for (i = 0; i < k->n_loose; i++) {
		if (over(&k->loose[i], arg))
			continue;
		swap = k->loose[n];
		k->loose[n++] = k->loose[i];
		k->loose[i] = swap;
	}
	if (k->n_loose > n + 1)
		qsort(k->loose + n, k->n_loose - n, sizeof(*k->loose), loose_order);
	for (i = n; i < k->n_loose; i++) {
		put_projections(s, &k->loose[i].x);
		free(k->loose[i].x.at);
	}
	k->n_loose = n;
}

static bool all_over(const struct loose *l, const void *arg)
{
	(void)l;
	(void)arg;
	return true;
}

/* What was in a scope that ends. */
static bool over_with_scope(const struct loose *l, const void *arg)
{
	const struct instance *of = arg;

	return l->of.thread == of->thread &&
	       (l->of.as == PROJECTED_LAUNCH || l->of.key == of->begin_ns);
}

struct next {
	const struct sorted_op *o;
	uint64_t work;
};

static bool over_with_op(const struct loose *l, const void *arg)
{
	const struct next *next = arg;

	return l->x.work != next->work &&
	       (l->of.as == PROJECTED_LAUNCH
			       ? l->launcher == next->o->thread && l->of.key != next->o->launch_ns
			       : l->lane == next->o->lane);
}

/* NULL: there is no room. */
static struct instance *loose_of(
	struct sorted *s, const struct projected *of, const struct sorted_op *o)
{
	const uint32_t depth = trace_names_depth(&s->w->names, of->node);
	struct kineto *k = kineto(s);
	struct loose *l;
	uint32_t i;

	for (i = 0; i < k->n_loose; i++) {
		l = &k->loose[i];
		if (projected_alike(&l->of, of) &&
			(of->as == PROJECTED_LAUNCH ? l->launcher == o->thread
						    : l->lane == o->lane))
			return &l->x;
	}
	k->overlaps += k->n_loose == LOOSE_MAX;
	if (k->n_loose == LOOSE_MAX || depth > LAST_DEPTH)
		return NULL;
	if (!ROOM_FOR(k->loose, k->cap_loose, k->n_loose)) {
		failed(s);
		return NULL;
	}
	l = &k->loose[k->n_loose++];
	*l = (struct loose){.of = *of, .launcher = o->thread, .lane = o->lane, .began = k->work};
	l->x = (struct instance){.id = of->as == PROJECTED_LAUNCH ? ++k->ids : 0,
		.node = of->node,
		.thread = of->thread,
		.depth = depth,
		.step = -1};
	return &l->x;
}

/* Projects it onto all scopes that it was launched in. Returns the innermost one's number. */
static uint64_t scopes_of(struct sorted *s, const struct sorted_op *o)
{
	struct kineto *k = kineto(s);
	struct projecting p = {.names = &s->w->names,
		.node = o->node,
		.thread = o->thread,
		.launched = o->launch_ns,
		.find = find_open,
		.arg = s};
	struct instance *x;
	uint64_t id = 0;
	uint32_t i, n;

	if (o->thread == SORTED_NONE)
		return 0;
	k->work++;
	p.main = k->main[s->thread[o->thread].process];
	n = project_scopes(&p, k->above);
	for (i = 0; i < n; i++) {
		x = k->above[i].as == PROJECTED_OPEN ? k->above[i].mine
						     : loose_of(s, &k->above[i], o);
		if (x == NULL)
			continue;
		x->work = k->work;
		id = id == 0 && k->above[i].as == PROJECTED_OPEN ? x->id : id;
		project(s, x, o);
	}
	end_loose(s, over_with_op, &(struct next){o, k->work});
	return id;
}

/* --- scopes */

/* Of an operator they stand beside its dimensions, as Kineto has them. */
static void put_values(struct text *t, const struct sorted_scope *x, const char *op)
{
	const char *dims = op != NULL ? operator_dims(op) : NULL;

	if (dims != NULL) {
		text_str(t, ",\"" OP_DIMS "\":");
		text_str(t, dims);
	}
	if (x->values != NULL && op != NULL) {
		text_char(t, ',');
		text_str(t, x->values);
	} else if (x->values != NULL) {
		text_str(t, ",\"metrics\":{");
		text_str(t, x->values);
		text_char(t, '}');
	}
	if ((x->flags & TRACE_OPEN) != 0)
		text_str(t, ",\"open\":true");
	if ((x->flags & TRACE_BEGAN_BEFORE) != 0)
		text_str(t, ",\"began_before\":true");
	if ((x->flags & TRACE_UNWOUND) != 0)
		text_str(t, ",\"unwound\":true");
	text_str(t, "}}");
}

/* An operator's name without its dimensions; false: it is none. */
static bool cut_name(const char *name, char own[static NAME_MAX_BYTES])
{
	const size_t n = operator_bytes(name);

	if (n == 0 || n >= NAME_MAX_BYTES)
		return false;
	memcpy(own, name, n);
	own[n] = '\0';
	return true;
}

static bool is_launch(const char *call)
{
	static const char *const words[] = {"Launch", "GraphLaunch", "Memcpy", "Memset"};
	const char *rest = call + (strncmp(call, "cuda", 4) == 0 ? 4 : 2);
	size_t i;

	for (i = 0; strncmp(call, "cu", 2) == 0 && i < sizeof(words) / sizeof(words[0]); i++)
		if (strncmp(rest, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

/* Calls of the program are Kineto's runtime and driver rows, but for launches, which have their own. */
static const char *call_category(uint8_t class, const char *call)
{
	if (gpu_classes[class].counts <= COUNTS_SYNC)
		return "cuda_runtime";
	if (gpu_classes[class].counts < COUNTS_API || is_launch(call))
		return gpu_classes[class].trace;
	return strncmp(call, "cuda", 4) == 0 ? "cuda_runtime" : "cuda_driver";
}

static void put_scope(struct sorted *s, const struct sorted_scope *x, const struct instance *of)
{
	const struct sorted_thread *th = &s->thread[x->thread];
	const int64_t pid = s->process[th->process].pid;
	const bool call = (x->flags & TRACE_CALL) != 0;
	const char *cat = call         ? call_category(x->call.class, s->w->known[x->node].name)
			  : of->marked ? "cpu_op"
				       : category_of(s->w, x->node);
	const bool task = (x->flags & TRACE_SPAN) != 0;
	struct chrome *c = &kineto(s)->c;
	struct text *t = &s->w->out;
	char words[40], own[NAME_MAX_BYTES];
	const char *name = scope_name(s->w, of, words), *op = name;

	if (cut_name(op, own))
		name = own;
	else
		op = of->marked ? name : NULL;
	chrome_event(c, task ? "b" : "X", cat, name, pid,
		chrome_lane_tid(th->tid, task ? 0 : x->lane), x->begin_ns);
	text_str(t, task ? ",\"id\":" : ",\"dur\":");
	if (task)
		chrome_number(t, of->id);
	else
		chrome_micros(t, x->end_ns - x->begin_ns);
	text_fmt(t, ",\"args\":{\"External id\":%" PRIu64, of->id);
	chrome_color(t, &s->w->known[x->node]);
	if (call)
		chrome_call(t, &x->call);
	put_values(t, x, op);
	if (!task)
		return;
	chrome_event(c, "e", cat, name, pid, th->tid, x->end_ns);
	text_fmt(t, ",\"id\":%" PRIu64 "}", of->id);
}

static void kineto_scope(struct sorted *s, struct sorted_scope *x)
{
	struct kineto *k = kineto(s);
	struct instance *of = calloc(1, sizeof(*of));

	if (of == NULL) {
		failed(s);
		return;
	}
	*of = (struct instance){.id = ++k->ids,
		.begin_ns = x->begin_ns,
		.end_ns = x->end_ns,
		.node = x->node,
		.thread = x->thread,
		.step = sorted_step(s, x),
		.marked = x->values != NULL && strstr(x->values, "\"" OP_MARK "\":") != NULL};
	put_scope(s, x, of);
	if ((x->flags & TRACE_CALL) != 0 && gpu_class_is_sync(x->call.class))
		kineto_sync(&k->syncs, &k->c, s, x, k->ordinals);
	if ((x->flags & TRACE_SPAN) != 0) {
		free(of); /* others of its thread overlap it */
		return;
	}
	of->depth = trace_names_depth(&s->w->names, x->node);
	of->older = k->of_node[x->node];
	k->of_node[x->node] = of;
	x->mine = of;
}

static void kineto_scope_end(struct sorted *s, struct sorted_scope *x)
{
	struct kineto *k = kineto(s);
	struct instance *of = x->mine, **at;

	if (of == NULL)
		return;
	for (at = &k->of_node[of->node]; *at != of; at = &(*at)->older)
		;
	*at = of->older;
	end_loose(s, over_with_scope, of);
	put_projections(s, of);
	free(of->at);
	free(of);
}

/* --- what the GPU did */

static uint32_t num_sms(const struct sorted *s, uint32_t ordinal)
{
	uint32_t i;

	for (i = 0; i < s->n_devices; i++)
		if (s->device[i].ordinal == ordinal)
			return (uint32_t)s->device[i].num_sms;
	return 0;
}

/* Blocks and warps for each multiprocessor. */
static void put_config(struct text *t, const struct trace_config *g, uint32_t sms)
{
	const double blocks = (double)g->grid[0] * g->grid[1] * g->grid[2],
		     warps = (double)g->block[0] * g->block[1] * g->block[2] / 32;

	text_fmt(t,
		",\"registers per thread\":%u,\"shared memory\":%" PRIu64
		",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]",
		g->registers, (uint64_t)g->static_shared + g->dynamic_shared, g->grid[0],
		g->grid[1], g->grid[2], g->block[0], g->block[1], g->block[2]);
	if (sms > 0)
		text_fmt(t, ",\"blocks per SM\":%.6g,\"warps per SM\":%.6g", blocks / sms,
			blocks * warps / sms);
}

static void put_op(struct sorted *s, const struct sorted_op *o, uint64_t id)
{
	const struct sorted_lane *l = &s->lane[o->lane];
	const uint32_t ordinal = s->gpu[l->gpu].ordinal;
	struct text *t = &s->w->out;
	char words[40];

	chrome_event(&kineto(s)->c, "X", gpu_classes[o->class].trace, op_name(s->w, o, words),
		gpu_pid(s, l->gpu), chrome_lane_tid(l->stream, l->lane), o->start_ns);
	text_str(t, ",\"dur\":");
	chrome_micros(t, o->end_ns - o->start_ns);
	text_fmt(t,
		",\"args\":{\"External id\":%" PRIu64 ",\"device\":%u,\"context\":%u,\"stream\":%u",
		id, ordinal, o->context, l->stream);
	if ((o->flags & TRACE_UNLAUNCHED) == 0)
		text_fmt(t, ",\"correlation\":%u", o->correlation);
	if (o->configured)
		put_config(t, &o->config, num_sms(s, ordinal));
	if (!gpu_class_is_kernel(o->class)) {
		text_fmt(t, ",\"bytes\":%" PRIu64, o->bytes);
		if (o->end_ns > o->start_ns) {
			text_str(t, ",\"memory bandwidth (GB/s)\":");
			text_fixed(t, (double)o->bytes / (double)(o->end_ns - o->start_ns), 3, 0);
		}
	}
	text_str(t, "}}");
}

/* A call of the runtime's, of which only the moment is known, and the arrow to its first work. */
static void put_launch(struct sorted *s, const struct sorted_op *o, uint64_t id)
{
	const struct sorted_thread *th = &s->thread[o->thread];
	const struct sorted_lane *l = &s->lane[o->lane];
	const int64_t pid = s->process[th->process].pid;
	struct chrome *c = &kineto(s)->c;
	char words[40];

	chrome_event(
		c, "X", "cuda_runtime", launch_name(s->w, o, words), pid, th->tid, o->launch_ns);
	text_fmt(&s->w->out,
		",\"dur\":0,\"args\":{\"External id\":%" PRIu64 ",\"correlation\":%u}}", id,
		o->correlation);
	c->flows++;
	chrome_arrow_from(c, "ac2g", "ac2g", pid, th->tid, o->launch_ns);
	chrome_arrow_to(c, "ac2g", "ac2g", gpu_pid(s, l->gpu), chrome_lane_tid(l->stream, l->lane),
		o->start_ns > o->launch_ns ? o->start_ns : o->launch_ns);
}

static void kineto_op(struct sorted *s, const struct sorted_op *o)
{
	const uint64_t id = scopes_of(s, o);

	put_op(s, o, id);
	if ((o->flags & (TRACE_UNLAUNCHED | TRACE_MORE)) == 0)
		put_launch(s, o, id);
}

/* --- the file */

static void name_process(
	struct sorted *s, int64_t pid, const char *name, const char *labels, uint64_t sort)
{
	struct chrome *c = &kineto(s)->c;

	chrome_metadata(c, "process_name", pid, 0, "name", name, 0);
	chrome_metadata(c, "process_labels", pid, 0, "labels", labels, 0);
	chrome_metadata(c, "process_sort_index", pid, 0, "sort_index", NULL, sort);
}

static void name_all(struct sorted *s)
{
	struct chrome *c = &kineto(s)->c;
	char words[GPU_STREAM_WORDS];
	uint32_t i;

	for (i = 0; i < s->n_processes; i++) {
		const struct sorted_process *p = &s->process[i];

		snprintf(words, sizeof(words), p->ranked ? "rank %lld" : "CPU", (long long)p->rank);
		name_process(s, p->pid, p->command, words, (uint64_t)p->pid);
	}
	for (i = 0; i < s->n_threads; i++)
		if (s->thread[i].name != NULL)
			chrome_metadata(c, "thread_name", s->process[s->thread[i].process].pid,
				s->thread[i].tid, "name", s->thread[i].name, 0);
	for (i = 0; i < s->n_gpus; i++) {
		if (s->gpu[i].pid == 0)
			continue; /* it had nothing to do */
		snprintf(words, sizeof(words), "GPU %u", s->gpu[i].ordinal);
		name_process(s, gpu_pid(s, i), s->process[s->gpu[i].process].command, words,
			s->gpu[i].pid);
	}
	for (i = 0; i < s->n_lanes; i++) {
		const struct sorted_lane *l = &s->lane[i];

		gpu_stream_words(s->gpu[l->gpu].streams, l->stream, l->lane, words);
		chrome_metadata(c, "thread_name", gpu_pid(s, l->gpu),
			chrome_lane_tid(l->stream, l->lane), "name", words, 0);
		chrome_metadata(c, "thread_sort_index", gpu_pid(s, l->gpu),
			chrome_lane_tid(l->stream, l->lane), "sort_index", NULL,
			(uint64_t)l->stream * LANES_MAX + l->lane);
	}
}

/* Of one process, whose pid no GPU's number is. */
static bool ordinals_are_free(const struct sorted *s)
{
	uint32_t i;

	for (i = 0; i < s->n_gpus; i++)
		if (s->gpu[i].ordinal == s->process[0].pid)
			return false;
	return s->n_processes == 1;
}

static int kineto_lists(struct sorted *s)
{
	struct kineto *k = kineto(s);
	uint32_t i;

	k->c.t = &s->w->out;
	k->of_node = calloc((size_t)s->w->names.n + 1, sizeof(*k->of_node));
	k->main = calloc((size_t)s->n_processes + 1, sizeof(*k->main));
	k->above = calloc(TRACE_DEPTH_MAX, sizeof(*k->above));
	k->rows = calloc((size_t)s->n_lanes + 1, sizeof(*k->rows));
	if (k->of_node == NULL || k->main == NULL || k->above == NULL || k->rows == NULL ||
		!kineto_syncs_init(&k->syncs, s->n_threads))
		return -ENOMEM;
	for (i = 0; i < s->n_processes; i++)
		k->main[i] = SORTED_NONE;
	for (i = 0; i < s->n_threads; i++)
		if (s->thread[i].tid == s->process[s->thread[i].process].pid)
			k->main[s->thread[i].process] = i;
	return 0;
}

static void kineto_open(struct sorted *s)
{
	struct kineto *k = kineto(s);
	struct text *t = &s->w->out;
	uint32_t i;

	if (kineto_lists(s) < 0) {
		s->r = timeline_no_memory(s->w);
		return;
	}
	k->ordinals = ordinals_are_free(s);
	text_str(t, "{\"schemaVersion\":1,\"deviceProperties\":[");
	for (i = 0; i < s->n_devices; i++)
		chrome_device_properties(&k->c, &s->device[i]);
	text_char(t, ']');
	if (s->n_processes == 1) /* HTA takes no file without a rank */
		text_fmt(t, ",\"distributedInfo\":{\"rank\":%" PRId64 "}",
			s->process[0].ranked ? s->process[0].rank : 0);
	text_fmt(t,
		",\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":%" PRId64 ",\"traceName\":",
		s->w->zero_ns);
	text_json(t, s->w->l.p->head.name);
	text_str(t, ",\"source\":");
	text_json(t, s->w->l.p->head.source);
	text_str(t, ",\"traceEvents\":[");
	k->c.any = false;
	name_all(s);
}

static void name_rows(struct sorted *s)
{
	struct kineto *k = kineto(s);
	char words[64];
	uint32_t i;

	for (i = 0; i < k->n_rows; i++) {
		const struct sorted_lane *l = &s->lane[k->row[i]->lane];

		if (k->row[i]->number == 0)
			continue;
		snprintf(words, sizeof(words), "stream %u, scopes of thread %u", l->stream,
			s->thread[k->row[i]->thread].tid);
		chrome_metadata(&k->c, "thread_name", gpu_pid(s, l->gpu), row_tid(l, k->row[i]),
			"name", words, 0);
	}
}

static void kineto_close(struct sorted *s)
{
	end_loose(s, all_over, NULL);
	name_rows(s);
	s->r = kineto_memory(s->w, &kineto(s)->c);
	text_fmt(&s->w->out,
		"\n],\"eventsGone\":%" PRIu64 ",\"metricsLeftOut\":%" PRIu64
		",\"projectionsLeftOut\":%" PRIu64,
		s->w->left.gone, s->loose, kineto(s)->overlaps);
	if (s->w->left.summed > 0)
		text_fmt(&s->w->out, ",\"eventsSummed\":%" PRIu64, s->w->left.summed);
	text_str(&s->w->out, "}\n");
}

int kineto_write(struct sqlite3 *db, int64_t id, const struct profile_select *s, FILE *to,
	struct export_left *ret_left, struct err *e)
{
	static const struct sorted_form form = {.open = kineto_open,
		.scope = kineto_scope,
		.scope_end = kineto_scope_end,
		.op = kineto_op,
		.close = kineto_close};
	struct kineto k = {.ids = 0};
	const int r = sorted_write(&form, &k, db, id, s, to, ret_left, e);

	while (k.n_rows > 0)
		free(k.row[--k.n_rows]);
	free(k.row);
	free(k.rows);
	free(k.of_node);
	free(k.main);
	free(k.above);
	while (k.n_loose > 0)
		free(k.loose[--k.n_loose].x.at);
	free(k.loose);
	table_fini(&k.by_lane);
	kineto_syncs_fini(&k.syncs);
	return r;
}
