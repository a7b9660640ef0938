/* SPDX-License-Identifier: MIT. fold_restore.c: the fold of a journal is the same whether it is
 * collected once or often, and whether it is one fold or one that was restored from the store
 * half-way. On random journals; the row that differs is shown. */
#include "fold_shop.h"

#include <errno.h>

/* --- memory that runs out: the n-th allocation from now fails (0: none does) */

#ifndef SANITIZED
static uint32_t fail_at;
static bool failed;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static bool fails(void)
{
	if (fail_at == 0 || --fail_at > 0)
		return false;
	failed = true;
	errno = ENOMEM;
	return true;
}

/* Seen by libc too (its reallocarray), though everything else here is hidden. */
__attribute__((visibility("default"))) void *malloc(size_t n)
{
	return fails() ? NULL : __libc_malloc(n);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t each)
{
	return fails() ? NULL : __libc_calloc(n, each);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t n)
{
	return fails() ? NULL : __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	return fails() ? NULL : __libc_memalign(align, n);
}
#endif

#define PROCESSES 3u
#define STEPS     300u
#define N_PATHS   40u
#define N_NAMES   24u

/* --- a random journal */

struct world {
	uint64_t seed, ns;
	struct tape tape, tables; /* tables: what a daemon feeds again after its restart */
	struct kit_process process[PROCESSES];
	struct kit_lane lane[PROCESSES][KIT_LANES];
	uint32_t corr[PROCESSES], jobs[PROCESSES], n_sessions;
	bool ended[PROCESSES];
	struct open { /* of a lane that has nothing else */
		bool is;
		uint32_t path;
		struct rec_sum sum[2];
		struct rec_total total;
	} open[PROCESSES];
};

static uint32_t pick(struct world *w, uint32_t n)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return (uint32_t)(w->seed >> 33) % n;
}

static uint64_t clock_of(const struct world *w, uint32_t p, uint64_t ns)
{
	return w->process[p].clock == RING_CLOCK_MONOTONIC ? ns : 1000 + ns * 3;
}

static void begin_tables(struct world *w, struct tape *t, uint32_t p)
{
	static const char *const names[N_NAMES] = {"a", "b", "c", "d", "e", "f", "g", "h", "ncclX",
		"gemm", "x \xff y", "x \xfe y", "m (inc)", "m (exc)", "n (pty)", "o", "s1", "s2",
		"none", "t", "", "u", "v", "w"};
	struct ring_path path[N_PATHS];
	struct ring_config config[12] = {{{0}, {0}, 0, 0, 0, 0, {0}}};
	struct ring_device device[2] = {{{0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, {0}}};
	uint64_t seed = w->seed;
	uint32_t i;

	w->seed = 7 + p; /* the same tables whenever they are fed */
	path[0] = (struct ring_path){PATH_ROOT, 2, PATH_KIND_SCOPE, 1, 0};
	for (i = 1; i < N_PATHS; i++) {
		path[i] =
			(struct ring_path){2 + pick(w, i), 2 + pick(w, 12), PATH_KIND_SCOPE, 0, 0};
		path[i].kind = (uint16_t)(pick(w, 5) == 0 ? PATH_KIND_OP : PATH_KIND_SCOPE);
		if (i == N_PATHS - 1) /* nothing may stand below it */
			path[i].kind = PATH_KIND_EXCEPT;
		path[i].depth = (uint16_t)(path[path[i].parent - 2].depth + 1);
	}
	w->seed = seed;
	for (i = 0; i < 12; i++)
		config[i].grid[0] = i + 1;
	device[1].ordinal = 1;
	tape_names(t, w->process[p].ring, 2, N_NAMES, names);
	tape_paths(t, w->process[p].ring, 2, N_PATHS, path);
	tape_table(t, w->process[p].ring, TABLE_CONFIGS, 0, 12, config, sizeof(config[0]));
	tape_table(t, w->process[p].ring, TABLE_DEVICES, 0, 2, device, sizeof(device[0]));
}

static void begin_process(struct world *w, uint32_t p)
{
	struct kit_process *k = &w->process[p];
	uint32_t i;

	*k = kit_process((uint8_t)(p + 1));
	k->flags = p % 2 == 0 ? PROCESS_CUTS : 0;
	k->clock = p == 1 ? RING_CLOCK_TSC : RING_CLOCK_MONOTONIC;
	k->khz = 3000000;
	k->created_ns = w->ns;
	k->created_clock = clock_of(w, p, w->ns);
	for (i = 0; i < KIT_LANES; i++)
		w->lane[p][i] = (struct kit_lane){.lane = i};
	tape_process(&w->tape, k);
	begin_tables(w, &w->tape, p);
	begin_tables(w, &w->tables, p);
}

static void put_gpu(struct world *w, uint32_t p, struct kit_lane *l)
{
	uint64_t start = w->ns - pick(w, 5000);
	struct rec_kernel r = {.start = start + REAL_AHEAD,
		.end = start + pick(w, 3000) + REAL_AHEAD,
		.correlation = pick(w, 2) == 0 ? w->corr[p] + 1 : w->corr[p] - pick(w, 12),
		.epoch = 1,
		.device = (uint16_t)pick(w, 2),
		.captured = pick(w, 3) == 0 ? 2 + pick(w, N_PATHS) : 0,
		.config = pick(w, 14)};
	struct rec_copy c = {.start = r.start,
		.end = r.end,
		.correlation = r.correlation,
		.epoch = 1,
		.captured = r.captured,
		.bytes = pick(w, 4096)};
	static const uint8_t flags[] = {
		0, 0, 0, GPU_FLAG_GRAPH, GPU_FLAG_UNTIMED, GPU_FLAG_RUNNING};
	uint8_t flag = flags[pick(w, 6)];

	if (flag == GPU_FLAG_GRAPH) {
		r.graph_exec = c.graph_exec = pick(w, 3);
		r.correlation = c.correlation = pick(w, 3) == 0 ? 0 : r.correlation;
	}
	if (pick(w, 6) == 0)
		put_call(l, 2 + pick(w, N_PATHS), clock_of(w, p, start), clock_of(w, p, w->ns),
			(uint8_t)pick(w, GPU_IDS));
	if (pick(w, 6) == 0)
		put_overhead(
			l, pick(w, GPU_IDS), w->ns - pick(w, 20000), pick(w, 900), r.correlation);
	if (pick(w, 6) == 0)
		put_captured(l, 2 + pick(w, N_PATHS), start, 14 + pick(w, 4),
			(uint8_t)(1 + pick(w, 4)), pick(w, 20), r.correlation);
	if (pick(w, 4) == 0)
		lane_put(l, REC_COPY, flag, pick(w, 5), &c, sizeof(c));
	else
		lane_put(l, REC_KERNEL, flag, pick(w, 3) == 0 ? 0 : 10 + pick(w, 4), &r, sizeof(r));
}

static void put_memories(struct world *w, uint32_t p, struct kit_lane *l)
{
	const struct rec_memory r = {.time = w->ns - pick(w, 30000),
		.address = 1 + pick(w, 40),
		.bytes = pick(w, 5000),
		.pool = pick(w, 3),
		.reserved = pick(w, 90000),
		.correlation = 1 + pick(w, 50),
		.device = pick(w, 5) == 0 ? MEMORY_NO_DEVICE : (uint16_t)pick(w, 2)};

	if (pick(w, 2) == 0)
		put_memory_call(l, pick(w, N_PATHS + 2), clock_of(w, p, w->ns - pick(w, 2000)),
			clock_of(w, p, w->ns), 1 + pick(w, 50));
	put_memory(l, 1 + pick(w, pick(w, 4) == 0 ? 5 : 2), pick(w, HELD_MAX), &r);
}

static void put_cut(struct world *w, struct kit_lane *l, uint64_t end)
{
	struct rec_session_cut r = {.session = {.clock = end, .name = 18}};
	uint32_t i;

	for (i = 0; i < CUT_CAUSES; i++)
		r.lost[i] = (w->ns - pick(w, 3000)) / 200000;
	lane_put(l, REC_SESSION, (uint8_t)(1 + pick(w, 4)), pick(w, 4), &r,
		pick(w, 2) == 0 ? sizeof(r) : sizeof(r.session));
}

static void put_one(struct world *w, uint32_t p, struct kit_lane *l)
{
	static const uint8_t launch[] = {
		0, 0, 0, LAUNCH_OP, LAUNCH_GRAPH, LAUNCH_GRAPH, LAUNCH_COPY};
	uint64_t end = clock_of(w, p, w->ns), begin = clock_of(w, p, w->ns - pick(w, 20000));
	struct rec_lost lost = {.count = pick(w, 9), .first = begin, .last = end};
	uint32_t path = 2 + pick(w, N_PATHS);

	w->ns += pick(w, 1000);
	switch (pick(w, 18)) {
	case 16:
	case 17:
		put_memories(w, p, l);
		break;
	case 0:
	case 1:
	case 2:
	case 3:
		put_scope(l, path, begin, end);
		break;
	case 4:
	case 5:
	case 6:
		if (pick(w, 2) == 0)
			put_launch(l, path, end, ++w->corr[p], launch[pick(w, 7)]);
		else
			put_launch_ended(l, path, begin, end, ++w->corr[p], launch[pick(w, 7)]);
		break;
	case 7:
	case 8:
	case 9:
	case 10:
		put_gpu(w, p, l);
		break;
	case 11:
		put_metric(l, path, end, 14 + pick(w, 4), (uint8_t)(1 + pick(w, 4)), pick(w, 20));
		break;
	case 12:
		put_delivered(l, end, pick(w, 2));
		break;
	case 13:
		lane_put(l, REC_LOST, 0, 1 + pick(w, 9), &lost, sizeof(lost));
		break;
	case 14:
		put_cut(w, l, end);
		break;
	default:
		put_scope(l, pick(w, 60), end, begin); /* bad */
	}
}

static void open_sums(struct world *w, uint32_t p)
{
	struct open *o = &w->open[p];
	const uint64_t at = clock_of(w, p, w->ns - pick(w, 30000));

	*o = (struct open){.is = true, .path = 2 + pick(w, N_PATHS)};
	for (uint32_t i = 0; i < 2; i++)
		o->sum[i] = (struct rec_sum){.opened = at,
			.min = 30,
			.max = 40 + pick(w, 3000),
			.first = SUM_BUCKETS * pick(w, 8)};
	o->total = (struct rec_total){.opened = at, .name = 14 + pick(w, 4)};
}

/* They grow, now and then to their end. */
static void step_sums(struct world *w, uint32_t p)
{
	struct kit_lane *l = &w->lane[p][KIT_LANES - 1];
	struct open *o = &w->open[p];
	uint32_t i;

	if (!o->is)
		open_sums(w, p);
	for (i = 0; i < 2; i++) {
		o->sum[i].count[pick(w, SUM_BUCKETS)] += pick(w, 5);
		o->sum[i].count[pick(w, 3)] += pick(w, 300);
		o->sum[i].time += pick(w, 5000);
		o->sum[i].min -= pick(w, 2) < o->sum[i].min;
		lane_put(l, REC_SUM, 0, o->path + i, &o->sum[i], sizeof(o->sum[i]));
	}
	o->total.count += pick(w, 4);
	o->total.sum += pick(w, 1000);
	o->total.latest = pick(w, 1000);
	lane_put(l, REC_TOTAL, METRIC_U64, o->path, &o->total, sizeof(o->total));
	o->is = pick(w, 4) != 0;
	if (o->is)
		tape_sums(&w->tape, w->process[p].ring, w->ns, l);
	else
		tape_lane(&w->tape, w->process[p].ring, w->ns, l);
}

static void step_lane(struct world *w, uint32_t p)
{
	struct kit_lane *l = &w->lane[p][pick(w, KIT_LANES - 1)];
	uint32_t n = 1 + pick(w, 40);

	while (n-- > 0 && l->n < KIT_LAP - 4096)
		put_one(w, p, l);
	tape_lane(&w->tape, w->process[p].ring, w->ns, l);
}

static void step_verb(struct world *w)
{
	static const uint32_t verbs[] = {VERB_ACTIVATE, VERB_DEACTIVATE, VERB_PHASE, VERB_ACTIVATE,
		VERB_DEACTIVATE, VERB_FINALIZE, VERB_FINALIZED, VERB_DELETE};
	struct j_verb *v;

	if (w->n_sessions < 2 || pick(w, 8) == 0) {
		v = tape_verb(&w->tape, VERB_START, (uint8_t)(100 + ++w->n_sessions), w->ns);
		v->cpu = pick(w, 4) == 0;
		v->context = (uint8_t)pick(w, 8);
		v->data = (uint8_t)pick(w, 3);
		v->switches = (uint8_t)(pick(w, 2) | (pick(w, 2) == 0 ? SWITCH_ALLOC : 0));
		if (pick(w, 3) == 0) {
			v->match = MATCH_RING;
			v->source = SOURCE_AUTO;
			v->gpu = 2;
			memset(v->ring, (int)(1 + pick(w, PROCESSES)), 16);
		}
		return;
	}
	(void)tape_verb(&w->tape, verbs[pick(w, pick(w, 3) == 0 ? 8 : 5)],
		(uint8_t)(101 + pick(w, w->n_sessions)), w->ns - pick(w, 2000));
}

static void step_other(struct world *w, uint32_t p)
{
	struct j_now now[3];
	struct ring_counts *c;
	struct j_cost *cost;
	struct j_drop *d;
	struct j_state *s;
	uint32_t i, n;

	switch (pick(w, 6)) {
	case 0:
		n = pick(w, 4);
		for (i = 0; i < n; i++)
			now[i] = (struct j_now){pick(w, KIT_LANES), 5, i, 2 + pick(w, N_PATHS),
				pick(w, 3) == 0 ? 0 : clock_of(w, p, w->ns - pick(w, 30000))};
		tape_now(&w->tape, w->process[p].ring, w->ns, n, now);
		break;
	case 1:
		c = tape_add(
			&w->tape, J_COUNTS, w->process[p].ring, w->ns, sizeof(*c) + sizeof(*d));
		d = (struct j_drop *)(c + 1);
		*d = (struct j_drop){pick(w, KIT_LANES), 0, w->ns / 100000, w->ns / 200000};
		c->paths_refused = w->ns / 300000;
		c->agent_ns = w->ns / 7;
		break;
	case 2:
		tape_anchor(&w->tape, RING_CLOCK_TSC, 1000 + w->ns * 3, w->ns, w->ns + REAL_AHEAD);
		break;
	case 3:
		cost = tape_add(&w->tape, J_COST, NULL, w->ns, sizeof(*cost));
		cost->cpu_ns = w->ns / 50;
		break;
	case 4:
		s = tape_add(&w->tape, J_STATE, w->process[p].ring, w->ns, sizeof(*s));
		s->gpu = GPU_ON;
		s->code = (int32_t)pick(w, 40);
		(void)snprintf(s->words, sizeof(s->words), "state %u", pick(w, 10));
		break;
	default:
		w->ns += pick(w, 4) == 0 ? 3 * SECOND : 100000; /* things time out */
		tape_anchor(&w->tape, RING_CLOCK_TSC, 1000 + w->ns * 3, w->ns, w->ns + REAL_AHEAD);
	}
}

/* Of the folds of one test: in some, what waits leaves and is joined a few at a time. */
static struct fold_limits limits;

static void world_make(struct world *w, uint64_t seed)
{
	uint32_t i, p, what;

	limits = (struct fold_limits){.sweep = seed % 2 == 0 ? 1 : 0};
	*w = (struct world){.seed = seed * 0x9e3779b97f4a7c15u + 1, .ns = 10 * SECOND};
	begin_process(w, 0);
	begin_process(w, 1);
	for (i = 0; i < STEPS; i++) {
		w->ns += pick(w, 5000);
		if (i == STEPS / 3)
			begin_process(w, 2);
		p = pick(w, i < STEPS / 3 ? 2 : 3);
		what = pick(w, 20);
		if (w->ended[p])
			continue;
		if (i > STEPS / 2 && pick(w, 150) == 0) {
			tape_end(&w->tape, w->process[p].ring, w->ns, END_KILLED, 9);
			w->ended[p] = true;
		} else if (what < 11) {
			step_lane(w, p);
		} else if (what < 13) {
			step_sums(w, p);
		} else if (what < 16) {
			step_verb(w);
		} else {
			step_other(w, p);
		}
	}
}

static void world_free(struct world *w)
{
	tape_free(&w->tape);
	tape_free(&w->tables);
}

/* --- the same in different ways */

static void play(struct fold *f, const struct tape *t, uint32_t from, uint32_t to)
{
	uint32_t i;

	for (i = from; i < to && i < t->n; i++)
		ck_assert_int_ne(fold_apply(f, t->entry[i]), -ENOMEM);
}

static void sell(struct fold *f, struct shop *s)
{
	struct batch b = {0};

	ck_assert_int_eq(fold_collect(f, &b), 0);
	shop_put(s, &b);
}

static void apply_deletes(struct shop *s, const struct tape *t, uint32_t from, uint32_t to)
{
	const struct j_verb *v;
	uint32_t i;

	for (i = from; i < to && i < t->n; i++) {
		v = (const struct j_verb *)(t->entry[i] + 1);
		if (t->entry[i]->type == J_VERB && v->verb == VERB_DELETE)
			shop_delete_uuid(s, v->session);
	}
}

static struct shop at_once(const struct tape *t)
{
	struct fold *f = fold_of(&limits);
	struct shop s = {0};

	play(f, t, 0, t->n);
	sell(f, &s);
	fold_free(f);
	return s;
}

/* Collects after every `every` entries; restores into a new fold each `life` collects (0: never).
 */
static struct shop piecewise(const struct world *w, uint32_t every, uint32_t life, bool live)
{
	struct fold *f = fold_of(&limits);
	struct shop s = {0};
	struct batch b;
	uint32_t i, n = 0;

	for (i = 0; i < w->tape.n; i += every) {
		play(f, &w->tape, i, i + every);
		sell(f, &s);
		apply_deletes(&s, &w->tape, i, i + every);
		if (life == 0 || ++n % life != 0)
			continue;
		fold_free(f);
		f = fold_of(&limits);
		b = shop_load(&s, live);
		ck_assert_int_eq(fold_restore(f, &b), 0);
		ck_assert(!fold_is_dirty(f));
		batch_free(&b);
		play(f, &w->tables, 0, w->tables.n);
	}
	sell(f, &s);
	fold_free(f);
	return s;
}

START_TEST(often_is_as_once)
{
	struct world w;
	struct shop a, b;

	world_make(&w, (uint64_t)_i + 1);
	a = at_once(&w.tape);
	ck_assert_uint_gt(a.n, 50);
	b = piecewise(&w, 3 + (uint32_t)_i % 37, 0, false);
	shop_same(&a, &b, "collected often");
	shop_free(&a);
	shop_free(&b);
	world_free(&w);
}
END_TEST

START_TEST(restored_is_as_never_ended)
{
	struct world w;
	struct shop a, b;

	world_make(&w, (uint64_t)_i + 1001);
	a = at_once(&w.tape);
	b = piecewise(&w, 5 + (uint32_t)_i * 7 % 211, 1, _i % 2 == 0);
	shop_same(&a, &b, "restored");
	shop_free(&a);
	shop_free(&b);
	world_free(&w);
}
END_TEST

/* The test above must be able to fail: what is in flight is most of what could be forgotten. */
START_TEST(without_what_is_in_flight_it_differs)
{
	struct fold *f, *g;
	struct world w;
	struct shop a, b = {0};
	struct batch load;
	uint32_t i, n = 0;

	world_make(&w, 5);
	f = fold_of(&limits);
	g = fold_of(&limits);
	a = at_once(&w.tape);
	play(f, &w.tape, 0, w.tape.n / 2);
	sell(f, &b);
	load = shop_load(&b, false);
	for (i = 0; i < load.pending.n; i++)
		load.pending.row[i].process += 1000;
	ck_assert_int_eq(fold_restore(g, &load), 0);
	batch_free(&load);
	play(g, &w.tables, 0, w.tables.n);
	play(g, &w.tape, w.tape.n / 2, w.tape.n);
	sell(g, &b);
	qsort(a.v, a.n, sizeof(*a.v), by_key);
	qsort(b.v, b.n, sizeof(*b.v), by_key);
	for (i = 0; i < a.n && i < b.n; i++)
		n += strcmp(a.v[i].value, b.v[i].value) != 0;
	ck_assert_uint_gt(n, 0);
	shop_free(&a);
	shop_free(&b);
	world_free(&w);
	fold_free(f);
	fold_free(g);
}
END_TEST

START_TEST(a_newer_pending_is_told)
{
	struct fold *f;
	uint32_t i, told = 0;
	struct shop s = {0};
	struct world w;
	struct batch b;

	world_make(&w, 2001);
	f = fold_of(&limits);
	play(f, &w.tape, 0, w.tape.n / 2);
	sell(f, &s);
	fold_free(f);
	b = shop_load(&s, false);
	for (i = 0; i < b.pending.n; i++)
		((uint8_t *)b.pending.row[i].bytes)[0] = 100;
	f = fold_of(&limits);
	ck_assert_int_eq(fold_restore(f, &b), 0);
	batch_free(&b);
	ck_assert_int_eq(fold_collect(f, &b), 0);
	for (i = 0; i < b.note.n; i++)
		told += strstr(b.note.row[i].text, "could not be read") != NULL;
	ck_assert_uint_gt(told, 0);
	batch_free(&b);
	fold_free(f);
	shop_free(&s);
	world_free(&w);
}
END_TEST

/* One process, and of each kind of what can be in flight something. */
static void flight_make(struct world *w)
{
	const uint64_t ns = 11 * SECOND;
	const uint8_t *ring;
	struct kit_lane *l, *gpu;
	uint32_t i;

	limits = (struct fold_limits){.sweep = 1};
	*w = (struct world){.seed = 1, .ns = 10 * SECOND};
	begin_process(w, 0);
	ring = w->process[0].ring;
	l = &w->lane[0][0];
	gpu = &w->lane[0][KIT_LANES - 1];
	(void)tape_verb(&w->tape, VERB_START, 1, w->ns + 1);
	for (i = 1; i < 4; i++)
		put_launch(l, 2 + i, ns + 100 * i, i, 0);
	put_launch(l, 6, ns + 500, 4, LAUNCH_GRAPH);
	tape_lane(&w->tape, ring, ns + 600, l);
	put_kernel(gpu, 8, ns + 600, 70, 4, GPU_FLAG_GRAPH | GPU_FLAG_RUNNING);
	for (i = 0; i < 3; i++)
		put_kernel(gpu, 9 + i, ns + 700 - 90 * i, 50, 5, GPU_FLAG_GRAPH);
	put_kernel(gpu, 9, ns + 800, 50, 6, 0);
	put_kernel(gpu, 10, ns + 900, 50, 70000, 0);
	tape_lane(&w->tape, ring, ns + 1000, gpu);
	put_launch(l, 7, ns + 650, 5, LAUNCH_GRAPH); /* joined, but for one of its records */
	tape_lane(&w->tape, ring, ns + 1100, l);
}

static void flight_lands(struct world *w)
{
	const uint64_t ns = 12 * SECOND;
	struct kit_lane *l = &w->lane[0][0], *gpu = &w->lane[0][KIT_LANES - 1];
	uint32_t i;

	for (i = 1; i < 6; i++)
		put_kernel(gpu, 8, ns + 100 * i, 60, i, i > 3 ? GPU_FLAG_GRAPH : 0);
	tape_lane(&w->tape, w->process[0].ring, ns + 700, gpu);
	put_launch(l, 3, ns + 600, 6, 0);
	tape_lane(&w->tape, w->process[0].ring, ns + 800, l);
	tape_end(&w->tape, w->process[0].ring, ns + 900, END_KILLED, 9);
}

/* What version 3 was, of the process of flight_make(). */
static const char version_3[] =
	"030180c8afa02580c8afa02580c8c9c68fb0e30100000000000000000000000000000000000000000000"
	"00000000000200000000004d010003000000004d0100000101000181c8afa02500000001000000000000"
	"00000000000100000088e09afd2894e19afd280288e09afd283228320000010003e4dc9afd2801d8e09a"
	"fd28010300000100004d00c8dd9afd2801d8e09afd28020400000100004d00acde9afd2801d8e09afd28"
	"030500000100004d0001f4df9afd2801d8e09afd28040600000102004d01d8e0b4a393b0e30100000800"
	"ffffffff0f070000030500018ae19afd2801cce49afd28050700000102014d01bce1b4a393b0e301eee1"
	"b4a393b0e301000900ffffffff0f07000003040000020000e8e39afd28060000000100000001a0e2b4a3"
	"93b0e301d2e2b4a393b0e301000900ffffffff0f0700000300000000e8e39afd28f0a204000000010000"
	"000184e3b4a393b0e301b6e3b4a393b0e301000a00ffffffff0f070000030000";

START_TEST(an_older_pending_is_read)
{
	const uint32_t n = (sizeof(version_3) - 1) / 2;
	struct world w;
	struct shop a, b = {0};
	struct batch load;
	struct fold *f;
	uint32_t i, k, half, changed = 0;
	unsigned int byte;
	uint8_t *to;

	flight_make(&w);
	half = w.tape.n;
	flight_lands(&w);
	a = at_once(&w.tape);
	f = fold_of(&limits);
	play(f, &w.tape, 0, half);
	sell(f, &b);
	fold_free(f);
	load = shop_load(&b, false);
	for (i = 0; i < load.pending.n; i++) {
		if (load.pending.row[i].process == 0)
			continue;
		changed += load.pending.row[i].n > n / 2; /* as much is in it as then */
		to = must(malloc(n));
		for (k = 0; k < n; k++) {
			ck_assert_int_eq(sscanf(version_3 + 2 * k, "%2x", &byte), 1);
			to[k] = (uint8_t)byte;
		}
		free(load.pending.row[i].bytes);
		load.pending.row[i].bytes = to;
		load.pending.row[i].n = n;
	}
	ck_assert_uint_eq(changed, 1);
	f = fold_of(&limits);
	ck_assert_int_eq(fold_restore(f, &load), 0);
	batch_free(&load);
	play(f, &w.tables, 0, w.tables.n);
	play(f, &w.tape, half, w.tape.n);
	sell(f, &b);
	fold_free(f);
	shop_same(&a, &b, "restored from version 3");
	shop_free(&a);
	shop_free(&b);
	world_free(&w);
}
END_TEST

/* The store's rows are ours, but a damaged file must not end the daemon. */
START_TEST(damaged_pending_is_survived)
{
	struct fold *f, *g;
	struct world w;
	struct shop s = {0};
	struct batch b;
	uint32_t i, k, at;

	world_make(&w, (uint64_t)_i + 2001);
	f = fold_of(&limits);
	play(f, &w.tape, 0, w.tape.n / 2);
	sell(f, &s);
	fold_free(f);
	for (k = 0; k < 20; k++) {
		b = shop_load(&s, false);
		for (i = 0; i < b.pending.n; i++) {
			at = pick(&w, b.pending.row[i].n);
			((uint8_t *)b.pending.row[i].bytes)[at] ^= (uint8_t)(1 + pick(&w, 255));
			if (pick(&w, 4) == 0)
				b.pending.row[i].n = at;
		}
		g = fold_of(&limits);
		ck_assert_int_eq(fold_restore(g, &b), 0);
		batch_free(&b);
		if (k % 2 == 0) /* also when the job's tables did not come again */
			play(g, &w.tables, 0, w.tables.n);
		play(g, &w.tape, w.tape.n / 2, w.tape.n);
		ck_assert_int_eq(fold_collect(g, &b), 0);
		batch_free(&b);
		fold_free(g);
	}
	shop_free(&s);
	world_free(&w);
}
END_TEST

#ifndef SANITIZED
/* -ENOMEM once is -ENOMEM for good: the daemon ends, and the journal has what this fold lacks. */
START_TEST(apply_without_memory)
{
	struct world w;
	struct batch b = {0};
	struct fold *f;
	uint32_t n = (uint32_t)_i * 50 + 1, i;
	int r = 0;

	world_make(&w, 77);
	f = fold_of(&limits);
	failed = false;
	fail_at = n;
	for (i = 0; i < w.tape.n && r != -ENOMEM; i++)
		r = fold_apply(f, w.tape.entry[i]);
	fail_at = 0;
	ck_assert(failed);
	/* What is only there for speed may be missing without a word. */
	if (r == -ENOMEM) {
		ck_assert_int_eq(fold_apply(f, w.tape.entry[0]), -ENOMEM);
		ck_assert_int_eq(fold_collect(f, &b), -ENOMEM);
	}
	fold_free(f);
	world_free(&w);
}
END_TEST

START_TEST(collect_without_memory)
{
	struct world w;
	struct shop a, s = {0};
	struct batch b = {0};
	struct fold *f;
	uint32_t n, refused = 0;

	world_make(&w, 80);
	f = fold_of(&limits);
	a = at_once(&w.tape);
	play(f, &w.tape, 0, w.tape.n);
	for (n = 1;; n += 1 + n / 4) { /* nothing is marked clean by a collect that failed */
		failed = false;
		fail_at = n;
		if (fold_collect(f, &b) == 0)
			break;
		fail_at = 0;
		ck_assert(failed);
		refused++;
	}
	fail_at = 0;
	ck_assert_uint_gt(refused, 5);
	shop_put(&s, &b);
	shop_same(&a, &s, "collected after failures");
	shop_free(&a);
	shop_free(&s);
	fold_free(f);
	world_free(&w);
}
END_TEST

START_TEST(restore_without_memory)
{
	struct world w;
	struct shop s;
	struct batch b;
	struct fold *f;
	uint32_t n = (uint32_t)_i * 40 + 1;

	world_make(&w, 79);
	s = at_once(&w.tape);
	b = shop_load(&s, false);
	f = fold_of(&limits);
	failed = false;
	fail_at = n;
	if (fold_restore(f, &b) != -ENOMEM)
		ck_assert(!failed);
	fail_at = 0;
	fold_free(f);
	batch_free(&b);
	shop_free(&s);
	world_free(&w);
}
END_TEST
#endif

Suite *suite(void)
{
	Suite *s = suite_create("fold_restore");
	TCase *c = tcase_create("property");

	tcase_set_timeout(c, 120);
	tcase_add_loop_test(c, often_is_as_once, 0, rounds(10));
	tcase_add_loop_test(c, restored_is_as_never_ended, 0, rounds(20));
	tcase_add_test(c, without_what_is_in_flight_it_differs);
	tcase_add_test(c, a_newer_pending_is_told);
	tcase_add_test(c, an_older_pending_is_read);
	tcase_add_loop_test(c, damaged_pending_is_survived, 0, 4);
#ifndef SANITIZED
	tcase_add_loop_test(c, apply_without_memory, 0, 10);
	tcase_add_test(c, collect_without_memory);
	tcase_add_loop_test(c, restore_without_memory, 0, 12);
#endif
	suite_add_tcase(s, c);
	return s;
}
