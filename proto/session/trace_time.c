/* SPDX-License-Identifier: MIT. trace_time.c: the time of a session's timeline. */
#include "trace_time.h"

#include <errno.h>
#include <stdlib.h>

#include "table.h"
#include "trace.h"

#define CLOCK_TSC 1       /* process.clock and anchor.ring_clock: the ring's clock is the TSC */
#define STEP_NS   1000000 /* of CLOCK_REALTIME: what is less is the anchors' error */
/* clang-format off */
#define PROCESS "SELECT pid, rank, command, clock, tsc_khz, created_clock, created_monotonic_ns,"   \
	" created_realtime_ns FROM process WHERE id=?2 AND ?1=?1"
#define BASE    "SELECT min(created_monotonic_ns), min(created_realtime_ns) FROM process"          \
	" WHERE id IN (SELECT process FROM member WHERE session=?1)"
#define ANCHOR  "SELECT clock, monotonic_ns, realtime_ns, error_ns, ring_clock " TRACE_TIME_ANCHORS " ORDER BY clock"
#define FIRST   "SELECT bytes, min(number) FROM trace WHERE session=?1 AND bytes IS NOT NULL"      \
	" GROUP BY process"
#define ANY     "SELECT 1 FROM trace WHERE session=?1 LIMIT 1"
/* clang-format on */

static int no_memory(struct load *l)
{
	return err_set(l->e, -ENOMEM, "out of memory for the timeline");
}

typedef int row_fn(struct trace_time *t, struct load *l, sqlite3_stmt *st);

static int each_row(struct trace_time *t, struct load *l, const char *sql, row_fn *row)
{
	sqlite3_stmt *st;
	int more, r = load_prepare(l, sql, &st);

	if (r < 0)
		return r;
	while ((more = load_step(l, st)) > 0) {
		r = row(t, l, st);
		if (r != 0)
			break;
	}
	(void)sqlite3_finalize(st);
	return more < 0 ? more : r;
}

/* --- the session */

static int64_t clock_ns(sqlite3_stmt *st, int column)
{
	const uint64_t v = load_u64(st, column);

	return (int64_t)(v < CLOCK_NS_MAX ? v : CLOCK_NS_MAX);
}

static int on_base(struct trace_time *t, struct load *l, sqlite3_stmt *st)
{
	(void)l;
	t->base_ns = clock_ns(st, 0);
	t->ahead_ns = clock_ns(st, 1) - t->base_ns;
	return 0;
}

static int on_anchor(struct trace_time *t, struct load *l, sqlite3_stmt *st)
{
	const struct anchor a = {
		load_u64(st, 0), load_u64(st, 1), load_u64(st, 2), load_u64(st, 3)};
	struct anchors *to = sqlite3_column_int(st, 4) == CLOCK_TSC ? &t->tsc : &t->mono;

	if (!ROOM_FOR(to->v, to->cap, to->n))
		return no_memory(l);
	anchors_add(to, &a);
	return 0;
}

static int on_any(struct trace_time *t, struct load *l, sqlite3_stmt *st)
{
	(void)t;
	(void)l;
	(void)st;
	return 1;
}

static int64_t real_to_mono(const struct trace_time *t, uint64_t real_ns)
{
	const int64_t real = (int64_t)(real_ns > CLOCK_NS_MAX ? CLOCK_NS_MAX : real_ns);

	if (t->wall->n == 0)
		return real - t->ahead_ns;
	return real - t->ahead[anchors_near(t->wall, (uint64_t)real)];
}

/* A replay's operations ran before its process began. */
static int on_first(struct trace_time *t, struct load *l, sqlite3_stmt *st)
{
	struct trace_chunk c;
	uint32_t i;
	int64_t at;
	int r = trace_chunk_read_works(
		sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0), &c, l->e);

	if (r < 0)
		return r;
	for (i = 0; i < c.n[TRACE_N_OPS]; i++) {
		at = real_to_mono(t, c.op[i].start);
		t->base_ns = at < t->base_ns ? at : t->base_ns;
	}
	trace_chunk_fini(&c);
	return 0;
}

/* Each anchor tells the difference of the two clocks to some tens of nanoseconds, so one of them
 * holds until the clock was set: else neighbours would overlap. */
static int hold_ahead(struct trace_time *t, struct load *l)
{
	const struct anchors *a = t->wall;
	int64_t held = t->ahead_ns, at;
	uint32_t i;

	t->ahead = calloc((size_t)a->n + 1, sizeof(*t->ahead));
	if (t->ahead == NULL)
		return no_memory(l);
	for (i = 0; i < a->n; i++) {
		at = (int64_t)(a->v[i].real_ns - a->v[i].mono_ns);
		if (llabs(at - held) > STEP_NS)
			held = at;
		t->ahead[i] = held;
	}
	return 0;
}

/* A file of schema 1 has none. It may be a view: schema_shade(). */
static bool has_table(sqlite3 *db)
{
	sqlite3_stmt *st;
	const bool has =
		sqlite3_prepare_v2(db, "SELECT bytes FROM trace", -1, &st, NULL) == SQLITE_OK;

	(void)sqlite3_finalize(has ? st : NULL);
	return has;
}

int trace_time_load(struct trace_time *t, struct load *l)
{
	int r = 0;

	if (has_table(l->db))
		r = each_row(t, l, ANY, on_any);
	if (r == 0)
		return err_set(l->e, -ENODATA,
			"session %lld has no timeline; record one with `protonctl run -d trace -- "
			"CMD`",
			(long long)l->session);
	if (r > 0)
		r = each_row(t, l, BASE, on_base);
	if (r == 0)
		r = each_row(t, l, ANCHOR, on_anchor);
	t->wall = t->tsc.n > 0 ? &t->tsc : &t->mono;
	if (r == 0)
		r = hold_ahead(t, l);
	return r < 0 ? r : each_row(t, l, FIRST, on_first);
}

void trace_time_fini(struct trace_time *t)
{
	free(t->tsc.v);
	free(t->mono.v);
	free(t->ahead);
	*t = (struct trace_time){.base_ns = 0};
}

/* --- a process */

static int process_row(
	struct trace_process *p, const struct trace_time *t, struct load *l, sqlite3_stmt *st)
{
	const bool tsc = sqlite3_column_int(st, 3) == CLOCK_TSC;
	const uint32_t khz = (uint32_t)load_u64(st, 4);

	p->pid = (int64_t)load_u64(st, 0);
	p->own_anchor[0] = (struct anchor){load_u64(st, 5), load_u64(st, 6), load_u64(st, 7), 0};
	p->own = (struct anchors){.v = p->own_anchor, .n = 1, .cap = 2};
	if (t->tsc.n == 1) /* two make a slope */
		anchors_add(&p->own, &t->tsc.v[0]);
	clockmap_use(&p->clock, !tsc ? NULL : t->tsc.n >= 2 ? &t->tsc : &p->own, khz);
	p->ticks = 4294967296. / (double)p->clock.slope;
	p->command = load_text(l, st, 2);
	if (p->command == NULL)
		return no_memory(l);
	p->ranked = sqlite3_column_type(st, 1) != SQLITE_NULL;
	p->rank = sqlite3_column_int64(st, 1);
	return 0;
}

int trace_process_load(
	struct trace_process *p, const struct trace_time *t, struct load *l, int64_t process)
{
	sqlite3_stmt *st;
	int more, r = load_prepare(l, PROCESS, &st);

	if (r < 0)
		return r;
	*p = (struct trace_process){.id = process, .command = "", .ticks = 1};
	(void)sqlite3_bind_int64(st, 2, process);
	more = load_step(l, st);
	if (more > 0)
		r = process_row(p, t, l, st);
	(void)sqlite3_finalize(st);
	return more < 0 ? more : r;
}

/* --- times */

static uint64_t since_base(const struct trace_time *t, int64_t mono_ns)
{
	return mono_ns > t->base_ns ? (uint64_t)(mono_ns - t->base_ns) : 0;
}

uint64_t trace_time_ring(const struct trace_time *t, struct trace_process *p, uint64_t clock)
{
	return since_base(t, (int64_t)clockmap_ns(&p->clock, clock));
}

uint64_t trace_time_real(const struct trace_time *t, uint64_t real_ns)
{
	return since_base(t, real_to_mono(t, real_ns));
}
