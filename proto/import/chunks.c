/* SPDX-License-Identifier: MIT. chunks.c: the timeline of an imported session: scopes by when they
 * end and GPU work by when it starts, process by process, in chunks as a daemon would make them. */
#include <stdlib.h>

#include "placing.h"
#include "summariser.h"

/* clang-format off */
#define EVENTS                                                                                     \
	"SELECT process, end AS at, 0, thread, begin, end, node, flags, NULL, NULL, stream, class," \
	" correlation, event, NULL, NULL FROM scratch.scope UNION ALL "                                                \
	"SELECT process, start, 1, thread, start, end, node, flags, device, context, stream, class," \
	" correlation, bytes, config, launched FROM scratch.work UNION ALL "                      \
	"SELECT process, at, 2, thread, at, at, node, type, name, bits, NULL, NULL, NULL, NULL, NULL,"     \
	" NULL FROM scratch.value ORDER BY process, at, 3 DESC"
/* clang-format on */
enum column {
	AT_PROCESS,
	AT_TIME,
	AT_KIND, /* 0 a scope, 1 GPU work, 2 a value */
	AT_THREAD,
	AT_BEGIN,
	AT_END,
	AT_NODE,
	AT_FLAGS,
	AT_DEVICE,
	AT_CONTEXT,
	AT_STREAM,
	AT_CLASS,
	AT_CORRELATION,
	AT_BYTES,
	AT_CONFIG,
	AT_LAUNCHED,
	AT_EVENT = AT_BYTES,
	AT_NAME = AT_DEVICE,
	AT_BITS = AT_CONTEXT,
	AT_TYPE = AT_FLAGS
};

/* What stands in the chunk at hand, and where: of lists that grow with the file. */
struct stands {
	uint32_t chunk, at;
};

struct chunks {
	struct stage *s;
	int64_t shift;
	struct trace_pack pack;
	struct stands *node, *thread, *config, *name;
	struct trace_stream *stream; /* of the chunk */
	uint32_t n_streams, cap_streams;
	uint32_t chunk;           /* counts all */
	uint32_t process, number; /* of the process */
	uint64_t first, end_ns;
	sqlite3_stmt *from, *put;
	struct summariser summariser;
};

static uint64_t clock_of(const struct chunks *c, int64_t ns)
{
	return (uint64_t)(ns + c->shift);
}

static int64_t column(const struct chunks *c, enum column i)
{
	return sqlite3_column_int64(c->from, (int)i);
}

static int seal(struct chunks *c)
{
	const uint32_t events = trace_pack_events(&c->pack);
	uint32_t n, n_summary;
	void *bytes, *summary;
	int rc;

	if (events == 0)
		return 0;
	if (trace_pack_seal(&c->pack, &bytes, &n) < 0)
		return stage_no_memory(c->s);
	(void)sqlite3_bind_int64(c->put, 1, (int64_t)c->process + 1);
	(void)sqlite3_bind_int64(c->put, 2, c->number++);
	(void)sqlite3_bind_int64(c->put, 3, (int64_t)c->first);
	(void)sqlite3_bind_int64(c->put, 4, events);
	(void)sqlite3_bind_int64(c->put, 5, (int64_t)c->end_ns);
	(void)sqlite3_bind_blob64(c->put, 6, bytes, n, SQLITE_STATIC);
	summary = summariser_make(&c->summariser, sqlite3_db_handle(c->put),
		(int64_t)c->process + 1, bytes, n, &n_summary);
	if (summary != NULL)
		(void)sqlite3_bind_blob64(c->put, 7, summary, n_summary, SQLITE_STATIC);
	rc = sqlite3_step(c->put);
	(void)sqlite3_reset(c->put);
	(void)sqlite3_clear_bindings(c->put);
	free(bytes);
	free(summary);
	c->first += events;
	c->chunk++;
	c->n_streams = 0;
	trace_pack_clear(&c->pack);
	return rc == SQLITE_DONE ? 0 : stage_wrong(c->s);
}

/* Whether it stands in the chunk; else it is to be added at *at. */
static bool stands(const struct chunks *c, struct stands *x, enum trace_count list, uint32_t *at)
{
	const bool there = x->chunk == c->chunk;

	if (!there)
		*x = (struct stands){c->chunk, c->pack.n[list]};
	*at = x->at;
	return there;
}

static bool put_thread(struct chunks *c, uint32_t thread, uint32_t *ret)
{
	const struct stage_thread *t = &c->s->thread[thread];
	struct trace_thread own = {.tid = t->tid, .name = TRACE_NONE};

	if (stands(c, &c->thread[thread], TRACE_N_THREADS, ret))
		return true;
	if (t->title != STAGE_NONE) {
		own.name = c->pack.n[TRACE_N_TEXTS];
		if (!trace_pack_text(&c->pack, c->s->name[t->title].s, c->s->name[t->title].n))
			return false;
	}
	return trace_pack_thread(&c->pack, &own);
}

static bool put_node(struct chunks *c, uint32_t node, uint32_t *ret)
{
	return stands(c, &c->node[node], TRACE_N_NODES, ret) ||
	       trace_pack_node(&c->pack, c->s->node[node].hash);
}

static bool put_config(struct chunks *c, int64_t config, uint32_t *ret)
{
	*ret = TRACE_NONE;
	return config == STAGE_NONE || stands(c, &c->config[config], TRACE_N_CONFIGS, ret) ||
	       trace_pack_config(&c->pack, &c->s->config[config]);
}

static bool put_stream(struct chunks *c, const struct trace_stream *x, uint32_t *ret)
{
	const struct trace_stream *y;

	for (*ret = 0; *ret < c->n_streams; ++*ret) {
		y = &c->stream[*ret];
		if (y->device == x->device && y->context == x->context && y->stream == x->stream)
			return true;
	}
	if (!ROOM_FOR(c->stream, c->cap_streams, c->n_streams))
		return false;
	c->stream[c->n_streams++] = *x;
	return trace_pack_stream(&c->pack, x);
}

static bool put_text(struct chunks *c, uint32_t name, uint32_t *ret)
{
	return stands(c, &c->name[name], TRACE_N_TEXTS, ret) ||
	       trace_pack_text(&c->pack, c->s->name[name].s, c->s->name[name].n);
}

static bool put_value(struct chunks *c)
{
	struct trace_metric m = {.clock = clock_of(c, column(c, AT_TIME)),
		.bits = (uint64_t)column(c, AT_BITS),
		.type = (uint8_t)column(c, AT_TYPE)};
	uint32_t text;

	if (m.type == VALUE_STR) {
		if (!put_text(c, (uint32_t)m.bits, &text))
			return false;
		m.bits = text;
	}
	return put_text(c, (uint32_t)column(c, AT_NAME), &m.name) &&
	       put_thread(c, (uint32_t)column(c, AT_THREAD), &m.thread) &&
	       put_node(c, (uint32_t)column(c, AT_NODE), &m.node) &&
	       trace_pack_metric(&c->pack, &m);
}

static bool put_scope(struct chunks *c)
{
	struct trace_scope s = {.begin = clock_of(c, column(c, AT_BEGIN)),
		.end = clock_of(c, column(c, AT_END)),
		.flags = (uint8_t)column(c, AT_FLAGS),
		.call = {.event = (uint64_t)column(c, AT_EVENT),
			.correlation = (uint32_t)column(c, AT_CORRELATION),
			.stream = (uint32_t)column(c, AT_STREAM),
			.class = (uint8_t)column(c, AT_CLASS)}};

	return put_thread(c, (uint32_t)column(c, AT_THREAD), &s.thread) &&
	       put_node(c, (uint32_t)column(c, AT_NODE), &s.node) && trace_pack_scope(&c->pack, &s);
}

static bool put_work(struct chunks *c)
{
	const struct trace_stream stream = {(uint32_t)column(c, AT_DEVICE),
		(uint32_t)column(c, AT_CONTEXT), (uint32_t)column(c, AT_STREAM)};
	struct trace_op o = {.start = clock_of(c, column(c, AT_BEGIN)),
		.end = clock_of(c, column(c, AT_END)),
		.bytes = (uint64_t)column(c, AT_BYTES),
		.class = (uint8_t)column(c, AT_CLASS),
		.flags = (uint8_t)column(c, AT_FLAGS)};

	if ((o.flags & TRACE_UNLAUNCHED) == 0) {
		o.correlation = (uint32_t)column(c, AT_CORRELATION);
		o.launched = clock_of(c, column(c, AT_LAUNCHED));
		if (!put_thread(c, (uint32_t)column(c, AT_THREAD), &o.thread))
			return false;
	}
	return put_node(c, (uint32_t)column(c, AT_NODE), &o.node) &&
	       put_stream(c, &stream, &o.stream) &&
	       put_config(c, column(c, AT_CONFIG), &o.config) && trace_pack_op(&c->pack, &o);
}

static int take_event(struct chunks *c)
{
	const uint32_t process = (uint32_t)column(c, AT_PROCESS);
	const bool other = process != c->process;
	const int64_t kind = column(c, AT_KIND);
	int r = other || trace_pack_is_full(&c->pack) ? seal(c) : 0;

	if (other) {
		c->process = process;
		c->number = 0;
		c->first = 0;
	}
	if (r == 0 && !(kind == 0 ? put_scope(c) : kind == 1 ? put_work(c) : put_value(c)))
		r = stage_no_memory(c->s);
	c->end_ns = clock_of(c, column(c, AT_END));
	return r;
}

int timeline_write_chunks(struct place *p, int64_t shift)
{
	struct stage *s = p->s;
	struct chunks c = {.s = s,
		.shift = shift,
		.chunk = 1,
		.process = STAGE_NONE,
		.node = calloc(s->n_nodes + 1u, sizeof(*c.node)),
		.thread = calloc(s->n_threads + 1u, sizeof(*c.thread)),
		.config = calloc(s->n_configs + 1u, sizeof(*c.config)),
		.name = calloc(s->n_names + 1u, sizeof(*c.name))};
	int rc = SQLITE_DONE, r = 0;

	if (c.node == NULL || c.thread == NULL || c.config == NULL || c.name == NULL)
		r = stage_no_memory(s);
	if (r == 0)
		r = stage_prepare(s, EVENTS, &c.from);
	if (r == 0)
		r = stage_prepare(s,
			"INSERT INTO main.trace(session,process,number,first,events,end_ns,bytes,"
			"summary) VALUES(1,?,?,?,?,?,?,?)",
			&c.put);
	while (r == 0 && (rc = sqlite3_step(c.from)) == SQLITE_ROW) {
		stage_placed(s);
		r = take_event(&c);
	}
	if (r == 0)
		r = rc == SQLITE_DONE ? seal(&c) : stage_wrong(s);
	(void)sqlite3_finalize(c.from);
	(void)sqlite3_finalize(c.put);
	summariser_fini(&c.summariser);
	trace_pack_fini(&c.pack);
	free(c.node);
	free(c.thread);
	free(c.config);
	free(c.name);
	free(c.stream);
	return r;
}
