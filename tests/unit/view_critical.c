/* SPDX-License-Identifier: MIT. view_critical.c: the critical path: the longest path against all paths, a path's length against
 * the time that it explains, and made steps whose path is known. */
#include <stdlib.h>
#include <string.h>

#include "critical_graph.h"
#include "quick.h"

#define NODES  9u
#define LABELS 4u
#define EVENTS 24u

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % n);
}

/* --- the longest path */

/* All ways to a node, each to its beginning. */
static double all_paths(const struct longest *g, uint32_t node, uint32_t label, double factor)
{
	double most = 0, at;
	uint32_t k;

	for (k = g->first[node]; k < g->first[node + 1]; k++) {
		const struct longest_edge *e = &g->edge[k];

		at = all_paths(g, e->from, label, factor) +
		     (e->label == label ? factor : 1) * e->ns;
		most = at > most ? at : most;
	}
	return most;
}

START_TEST(longest_is_the_longest_of_all)
{
	struct longest_edge edge[NODES * NODES];
	uint32_t first[NODES + 1], via[NODES], i, k, round, n;
	struct longest g = {NODES, first, edge};
	double dist[NODES], sum;

	for (round = 0; round < 2000; round++) {
		for (i = n = 0; i < NODES; i++) {
			first[i] = n;
			for (k = 0; k < i; k++)
				if (below(3) == 0)
					edge[n++] = (struct longest_edge){
						k, below(LABELS), below(4) == 0 ? 0 : below(50)};
		}
		first[NODES] = n;
		for (k = 0; k < LABELS; k++) {
			longest_path(&g, k, 0.5, dist, NULL);
			for (i = 0; i < NODES; i++)
				ck_assert(dist[i] == all_paths(&g, i, k, 0.5));
		}
		longest_path(&g, LONGEST_NONE, 1, dist, via);
		for (i = 0; i < NODES; i++) {
			ck_assert(dist[i] == all_paths(&g, i, LONGEST_NONE, 1));
			for (k = i, sum = 0; via[k] != LONGEST_NONE; k = edge[via[k]].from)
				sum += edge[via[k]].ns;
			ck_assert(sum == dist[i]);
		}
	}
}
END_TEST

/* --- of events */

static const struct known names[] = {{.name = "step"}, {.name = "forward"}, {.name = "gemm"},
	{.name = "wait"}, {.name = "copy"}, {.name = "forward"}};

enum { N_STEP, N_FORWARD, N_GEMM, N_WAIT, N_COPY, N_FORWARD_TOO };

struct made {
	struct event_scope scope[EVENTS];
	struct event_op op[EVENTS];
	struct events e;
};

static int by_begin(const void *a, const void *b)
{
	const struct event_scope *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns;
}

static int by_start(const void *a, const void *b)
{
	const struct event_op *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

static void settle(struct made *m)
{
	m->e.known = names;
	m->e.scope = m->scope;
	m->e.op = m->op;
	qsort(m->scope, m->e.n_scopes, sizeof(*m->scope), by_begin);
	qsort(m->op, m->e.n_ops, sizeof(*m->op), by_start);
}

/* What no program does: scopes that overlap, work that began before its launch, streams out of order, waits for what was
 * never recorded. */
static void make_any(struct made *m)
{
	static const uint8_t calls[] = {CLASS_STREAM_SYNC, CLASS_EVENT_SYNC, CLASS_DEVICE_SYNC,
		CLASS_COPY_WAIT, CLASS_STREAM_WAIT, CLASS_EVENT_RECORD, CLASS_ALLOC};
	uint32_t i;

	*m = (struct made){.e = {.n_scopes = below(EVENTS + 1), .n_ops = below(EVENTS + 1)}};
	for (i = 0; i < m->e.n_scopes; i++) {
		struct event_scope *s = &m->scope[i];

		*s = (struct event_scope){
			.begin_ns = below(120), .tid = 1 + below(3), .node = below(6)};
		s->end_ns = s->begin_ns + below(60);
		s->flags = below(2) == 0 ? TRACE_CALL : below(8) == 0 ? TRACE_SPAN : 0;
		s->call = (struct trace_call){.class = calls[below(7)],
			.stream = below(3),
			.event = below(3),
			.correlation = below(EVENTS)};
	}
	for (i = 0; i < m->e.n_ops; i++) {
		struct event_op *o = &m->op[i];

		*o = (struct event_op){
			.start_ns = below(140), .node = below(6), .tid = 1 + below(3)};
		o->end_ns = o->start_ns + 1 + below(40);
		o->launch_ns = o->start_ns + 3 - below(30);
		o->launched = below(8) > 0 && o->start_ns > 30;
		o->device = below(2);
		o->stream = below(3);
		o->correlation = below(EVENTS);
		o->class = below(2) == 0 ? CLASS_COMPUTE : CLASS_D2H;
	}
	settle(m);
}

static struct critical_graph graph(const struct made *m, uint64_t begin, uint64_t end, uint32_t tid)
{
	struct critical_graph g;

	ck_assert_int_eq(critical_graph_new(&m->e, begin, end, tid, &g), 0);
	return g;
}

/* Whatever there was: edges lead on, none is negative, and the path takes the whole time. */
START_TEST(a_path_takes_the_whole_time)
{
	struct critical_graph g;
	struct longest l;
	struct made m;
	double *dist;
	uint32_t round, i, k;

	for (round = 0; round < 20000; round++) {
		const uint64_t begin = below(60), end = begin + 1 + below(100);

		make_any(&m);
		g = graph(&m, begin, end, below(4));
		l = (struct longest){g.n_nodes, g.first, g.edge};
		for (i = 0; i < g.n_nodes; i++)
			for (k = g.first[i]; k < g.first[i + 1]; k++)
				ck_assert(g.edge[k].from < i && g.edge[k].ns >= 0 &&
					  g.edge[k].label < g.n_labels);
		dist = calloc(g.n_nodes, sizeof(*dist));
		longest_path(&l, LONGEST_NONE, 1, dist, NULL);
		ck_assert(dist[g.end] == (double)(end - begin));
		for (i = 0; i < g.n_labels; i++) {
			longest_path(&l, i, 0.9, dist, NULL);
			ck_assert(dist[g.end] <= (double)(end - begin) &&
				  dist[g.end] >= 0.9 * (double)(end - begin) - 1e-6);
		}
		free(dist);
		critical_graph_fini(&g);
	}
}
END_TEST

/* What a label has on the path; NULL: of none. */
static double on_path(const struct critical_graph *g, enum critical_part part, const char *name)
{
	const struct longest l = {g->n_nodes, g->first, g->edge};
	double *dist = calloc(g->n_nodes, sizeof(*dist)), ns = 0;
	uint32_t *via = calloc(g->n_nodes, sizeof(*via)), at;

	longest_path(&l, LONGEST_NONE, 1, dist, via);
	for (at = g->end; via[at] != LONGEST_NONE; at = g->edge[via[at]].from) {
		const struct critical_label *v = &g->label[g->edge[via[at]].label];

		if (v->part == part && strcmp(v->name, name) == 0)
			ns += g->edge[via[at]].ns;
	}
	free(dist);
	free(via);
	return ns;
}

/* What it takes with a label half as long. */
static double halved(const struct critical_graph *g, enum critical_part part, const char *name)
{
	const struct longest l = {g->n_nodes, g->first, g->edge};
	double *dist = calloc(g->n_nodes, sizeof(*dist)), ret;
	uint32_t i;

	for (i = 0; i < g->n_labels; i++)
		if (g->label[i].part == part && strcmp(g->label[i].name, name) == 0)
			break;
	ck_assert_uint_lt(i, g->n_labels);
	longest_path(&l, i, 0.5, dist, NULL);
	ret = dist[g->end];
	free(dist);
	return ret;
}

static struct event_scope scope(uint32_t node, uint64_t begin, uint64_t end)
{
	return (struct event_scope){.begin_ns = begin, .end_ns = end, .tid = 1, .node = node};
}

static struct event_scope call(
	uint8_t class, uint64_t begin, uint64_t end, uint32_t stream, uint64_t event)
{
	return (struct event_scope){.begin_ns = begin,
		.end_ns = end,
		.tid = 1,
		.node = N_WAIT,
		.flags = TRACE_CALL,
		.call = {.class = class, .stream = stream, .event = event}};
}

static struct event_op op(
	uint32_t node, uint64_t launch, uint64_t start, uint64_t end, uint32_t stream)
{
	return (struct event_op){.launch_ns = launch,
		.start_ns = start,
		.end_ns = end,
		.tid = 1,
		.node = node,
		.stream = stream,
		.launched = true,
		.class = node == N_COPY ? CLASS_D2H : CLASS_COMPUTE};
}

/* A step of 100: 10 forward; gemm 15 to 60, launched at 10; a copy on another stream that waits for an event behind it, 65 to
 * 80; the host waits for that stream until 85, and does the rest. Work of a third stream nobody waits for. */
static void make_step(struct made *m)
{
	*m = (struct made){.e = {.n_scopes = 5, .n_ops = 3}};
	m->scope[0] = scope(N_STEP, 0, 100);
	m->scope[1] = scope(N_FORWARD, 0, 10);
	m->scope[2] = call(CLASS_EVENT_RECORD, 12, 13, 1, 77);
	m->scope[3] = call(CLASS_STREAM_WAIT, 14, 15, 2, 77);
	m->scope[4] = call(CLASS_STREAM_SYNC, 20, 85, 2, 0);
	m->op[0] = op(N_GEMM, 10, 15, 60, 1);
	m->op[1] = op(N_COPY, 16, 65, 80, 2);
	m->op[2] = op(N_GEMM, 18, 20, 130, 3);
	settle(m);
}

START_TEST(a_step_that_is_known)
{
	struct critical_graph g;
	struct made m;

	make_step(&m);
	g = graph(&m, 0, 100, 1);
	ck_assert(on_path(&g, CRITICAL_HOST, "forward") == 10);
	ck_assert(on_path(&g, CRITICAL_LAUNCH, "gemm") == 5);
	ck_assert(on_path(&g, CRITICAL_COMPUTE, "gemm") == 45);
	ck_assert(on_path(&g, CRITICAL_EVENT, "copy") == 5);
	ck_assert(on_path(&g, CRITICAL_COPY, "copy") == 15);
	ck_assert(on_path(&g, CRITICAL_RETURN, "wait") == 5);
	ck_assert(on_path(&g, CRITICAL_HOST, "step") == 15);
	ck_assert(g.waits);
	ck_assert_uint_eq(g.behind, 1);
	ck_assert_uint_eq(g.behind_ns, 30);
	ck_assert(halved(&g, CRITICAL_COMPUTE, "gemm") == 77.5);
	ck_assert(halved(&g, CRITICAL_HOST, "step") == 92.5);
	critical_graph_fini(&g);
}
END_TEST

/* Each kind of wait: of what is on the path, or else the call alone. */
START_TEST(what_a_call_waited_for)
{
	static const struct {
		uint8_t class;
		uint32_t stream;
		uint64_t event;
		uint32_t correlation;
		double gemm, copy; /* on the path */
	} cases[] = {{CLASS_STREAM_SYNC, 7, 0, 0, 60, 0}, {CLASS_STREAM_SYNC, 13, 0, 0, 0, 70},
		{CLASS_STREAM_SYNC, 14, 0, 0, 0, 0}, {CLASS_EVENT_SYNC, UINT32_MAX, 77, 0, 60, 0},
		{CLASS_EVENT_SYNC, UINT32_MAX, 78, 0, 0, 0}, /* never recorded */
		{CLASS_DEVICE_SYNC, UINT32_MAX, 0, 0, 0, 70},
		{CLASS_COPY_WAIT, UINT32_MAX, 0, 5, 0, 70},
		{CLASS_STREAM_SYNC, UINT32_MAX, 0, 0, 0, 0}, /* of one of two */
		{CLASS_STREAM_SYNC, UINT32_MAX, 0, 0, 60, 0}};
	const bool alone = _i == 8;
	struct critical_graph g;
	struct made m = {.e = {.n_scopes = 3, .n_ops = alone ? 1 : 2}};

	m.scope[0] = scope(N_STEP, 0, 100);
	m.scope[1] = call(CLASS_EVENT_RECORD, 4, 5, 7, 77);
	m.scope[2] = call(cases[_i].class, 6, 90, cases[_i].stream, cases[_i].event);
	m.scope[2].call.correlation = cases[_i].correlation;
	m.op[0] = op(N_GEMM, 2, 10, 70, 7);
	m.op[1] = op(N_COPY, 3, 15, 85, 13);
	m.op[1].correlation = 5;
	settle(&m);
	g = graph(&m, 0, 100, 1);
	ck_assert(on_path(&g, CRITICAL_COMPUTE, "gemm") == cases[_i].gemm);
	ck_assert(on_path(&g, CRITICAL_COPY, "copy") == cases[_i].copy);
	critical_graph_fini(&g);
}
END_TEST

/* Work seems to end behind the call that waited for it: it is earlier, as far as no work begins before its launch. */
START_TEST(a_clock_that_is_beside)
{
	static const struct {
		uint8_t class;
		uint64_t back; /* when the call came back; the work ends at 70 000 */
		double gemm;   /* on the path */
	} cases[] = {{CLASS_STREAM_SYNC, 75000, 60000}, {CLASS_STREAM_SYNC, 66000, 60000},
		{CLASS_EVENT_SYNC, 66000, 60000}, {CLASS_DEVICE_SYNC, 66000, 60000},
		{CLASS_STREAM_SYNC, 62000, 60000}, /* 8 000, and its launch */
		{CLASS_STREAM_SYNC, 61000, 0}, {CLASS_STREAM_SYNC, 15000, 0}};
	struct critical_graph g;
	struct made m = {.e = {.n_scopes = 3, .n_ops = 1}};

	m.scope[0] = scope(N_STEP, 0, 100000);
	m.scope[1] = call(CLASS_EVENT_RECORD, 4000, 5000, 7, 77);
	m.scope[2] = call(cases[_i].class, 6000, cases[_i].back, 7, 77);
	m.op[0] = op(N_GEMM, 2000, 10000, 70000, 7);
	settle(&m);
	g = graph(&m, 0, 100000, 1);
	ck_assert(on_path(&g, CRITICAL_COMPUTE, "gemm") == cases[_i].gemm);
	critical_graph_fini(&g);
}
END_TEST

/* Two kernels side by side, both waited for: with the longer one faster, the other bounds the step. */
START_TEST(what_mending_gives_is_computed_anew)
{
	struct critical_graph g;
	struct made m = {.e = {.n_scopes = 2, .n_ops = 2}};

	m.scope[0] = scope(N_STEP, 0, 100);
	m.scope[1] = call(CLASS_DEVICE_SYNC, 4, 90, UINT32_MAX, 0);
	m.op[0] = op(N_GEMM, 2, 10, 90, 1);
	m.op[1] = op(N_COPY, 3, 10, 80, 2);
	settle(&m);
	g = graph(&m, 0, 100, 1);
	ck_assert(on_path(&g, CRITICAL_COMPUTE, "gemm") == 80);
	ck_assert(on_path(&g, CRITICAL_COPY, "copy") == 0);
	ck_assert(halved(&g, CRITICAL_COMPUTE, "gemm") == 90); /* not 60 */
	ck_assert(halved(&g, CRITICAL_COPY, "copy") == 100);
	critical_graph_fini(&g);
}
END_TEST

/* A launch of another thread inside of a wait of the first; and a name at two places is one. */
START_TEST(threads_and_names)
{
	struct critical_graph g;
	struct made m = {.e = {.n_scopes = 4, .n_ops = 1}};

	m.scope[0] = scope(N_STEP, 0, 100);
	m.scope[1] = scope(N_FORWARD, 10, 20);
	m.scope[2] = scope(N_FORWARD_TOO, 30, 60);
	m.scope[2].tid = 2;
	m.scope[3] = scope(N_COPY, 61, 99); /* of a thread that launches nothing */
	m.scope[3].tid = 3;
	m.op[0] = op(N_GEMM, 40, 45, 50, 1);
	m.op[0].tid = 2;
	settle(&m);
	g = graph(&m, 0, 100, 1);
	ck_assert(on_path(&g, CRITICAL_HOST, "forward") == 40);
	ck_assert(on_path(&g, CRITICAL_HOST, "step") == 60);
	ck_assert(!g.waits);
	critical_graph_fini(&g);
	g = graph(&m, 0, 45, 0); /* of a window all must be done */
	ck_assert(on_path(&g, CRITICAL_HOST, "forward") == 15);
	critical_graph_fini(&g);
}
END_TEST

/* A program that uses no GPU: a window of it is that of the thread with the longest scope. */
START_TEST(a_window_without_launches)
{
	struct critical_graph g;
	struct made m = {.e = {.n_scopes = 2}};

	m.scope[0] = scope(N_FORWARD, 0, 60);
	m.scope[1] = scope(N_COPY, 10, 50);
	m.scope[1].tid = 2;
	settle(&m);
	g = graph(&m, 20, 80, 0);
	ck_assert(on_path(&g, CRITICAL_HOST, "forward") == 40);
	ck_assert(on_path(&g, CRITICAL_NOTHING, "") == 20);
	critical_graph_fini(&g);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("critical");
	TCase *t = tcase_create("path");

	tcase_add_test(t, longest_is_the_longest_of_all);
	tcase_add_test(t, a_path_takes_the_whole_time);
	tcase_add_test(t, a_step_that_is_known);
	tcase_add_loop_test(t, what_a_call_waited_for, 0, 9);
	tcase_add_loop_test(t, a_clock_that_is_beside, 0, 7);
	tcase_add_test(t, what_mending_gives_is_computed_anew);
	tcase_add_test(t, threads_and_names);
	tcase_add_test(t, a_window_without_launches);
	suite_add_tcase(s, t);
	return s;
}
