/* SPDX-License-Identifier: MIT. zoom_made.h: random sessions of two processes, with a timeline. Of whoever
 * includes it: the seed. */
#ifndef ZOOM_MADE_H
#define ZOOM_MADE_H

#include "quick.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "draw.h"
#include "summariser.h"
#include "trace.h"
#include "view_help.h"
#include "zoom.h"

#define NODES   30u
#define THREADS 3u
#define DEPTH   4u

static void node_hash(uint32_t node, uint8_t ret[16])
{
	memset(ret, 0, 16);
	memcpy(ret, &node, sizeof(node));
	ret[15] = 1;
}

/* Scopes 1 to 20, each under an earlier one; kernels under scopes, or under none. */
static void put_nodes(sqlite3 *db, uint32_t parent[NODES + 1], uint32_t depth[NODES + 1])
{
	uint8_t hash[16];
	sqlite3_stmt *st;
	uint32_t i;

	parent[0] = depth[0] = 0;
	ck_assert_int_eq(
		sqlite3_prepare_v2(db, "INSERT INTO node VALUES(?,?,?,?,?)", -1, &st, NULL),
		SQLITE_OK);
	for (i = 1; i <= NODES; i++) {
		const bool kernel = i > 20;
		char name[32];

		do
			parent[i] = i == 1 ? 0 : below(kernel ? 21 : i);
		while (depth[parent[i]] + 1 > DEPTH);
		depth[i] = depth[parent[i]] + !kernel;
		node_hash(i, hash);
		(void)snprintf(name, sizeof(name), kernel ? "kernel_%u" : "scope_%u", i % 17);
		(void)sqlite3_bind_int64(st, 1, i);
		(void)sqlite3_bind_blob(st, 2, hash, 16, SQLITE_TRANSIENT);
		(void)sqlite3_bind_int64(st, 3, parent[i]);
		(void)sqlite3_bind_int64(st, 4, kernel ? NODE_KERNEL : NODE_SCOPE);
		(void)sqlite3_bind_text(st, 5, name, -1, SQLITE_TRANSIENT);
		ck_assert_int_eq(sqlite3_step(st), SQLITE_DONE);
		(void)sqlite3_reset(st);
	}
	(void)sqlite3_finalize(st);
	/* Place 0 of each chunk: a summary is made where all nodes are known. */
	help_exec(db, "INSERT INTO node VALUES(99,x'00000000000000000000000000000001',0,0,'none')");
}

static bool growing; /* chunks stand in the table `part` before they are full, too */

struct made {
	sqlite3 *db;
	int process;
	struct trace_pack k;
	uint32_t parent[NODES + 1], depth[NODES + 1];
	uint32_t number, full;
	uint64_t first;
	bool summaries;
	struct summariser summariser;
};

static void chunk_begin(struct made *m)
{
	uint8_t hash[16];
	uint32_t i;

	trace_pack_clear(&m->k);
	for (i = 0; i <= NODES; i++) {
		node_hash(i, hash);
		ck_assert(trace_pack_node(&m->k, hash));
	}
	ck_assert(trace_pack_text(&m->k, "worker", 6));
	ck_assert(trace_pack_text(&m->k, "loss", 4));
	ck_assert(trace_pack_text(&m->k, "bytes \xff", 7));
	for (i = 0; i < THREADS; i++)
		ck_assert(trace_pack_thread(
			&m->k, &(struct trace_thread){
				       (uint32_t)(100 * m->process) + i, i == 1 ? 0 : TRACE_NONE}));
	for (i = 0; i < 2; i++)
		ck_assert(trace_pack_stream(&m->k, &(struct trace_stream){0, 1, 7 + i}));
	ck_assert(trace_pack_config(&m->k, &(struct trace_config){.grid = {1, 2, 3}}));
}

/* The chunk as it stands, into `trace` or a table like it. */
static void chunk_store(struct made *m, const char *table)
{
	const uint32_t events = trace_pack_events(&m->k);
	sqlite3_stmt *st;
	uint32_t n, n_summary;
	void *bytes, *summary;
	char sql[256];

	(void)snprintf(sql, sizeof(sql),
		"INSERT OR REPLACE INTO %s(session,process,number,first,events,"
		"end_ns,bytes,summary) VALUES(7,?,?,?,?,0,?,?)",
		table);
	ck_assert_int_eq(trace_pack_seal(&m->k, &bytes, &n), 0);
	ck_assert_int_eq(sqlite3_prepare_v2(m->db, sql, -1, &st, NULL), SQLITE_OK);
	(void)sqlite3_bind_int64(st, 1, m->process);
	(void)sqlite3_bind_int64(st, 2, m->number);
	(void)sqlite3_bind_int64(st, 3, (int64_t)m->first);
	(void)sqlite3_bind_int64(st, 4, events);
	(void)sqlite3_bind_blob(st, 5, bytes, (int)n, SQLITE_TRANSIENT);
	summary = m->summaries && below(8) > 0
			  ? summariser_make(&m->summariser, m->db, m->process, bytes, n, &n_summary)
			  : NULL;
	if (summary != NULL)
		(void)sqlite3_bind_blob(st, 6, summary, (int)n_summary, SQLITE_TRANSIENT);
	ck_assert_int_eq(sqlite3_step(st), SQLITE_DONE);
	(void)sqlite3_finalize(st);
	free(summary);
	free(bytes);
}

static void chunk_end(struct made *m)
{
	if (trace_pack_is_empty(&m->k))
		return;
	chunk_store(m, "trace");
	m->first += trace_pack_events(&m->k);
	m->number++;
	chunk_begin(m);
}

/* Sometimes, and not always after the one before. */
static void put_burst(struct made *m, uint32_t thread, uint64_t at)
{
	const struct trace_burst b = {.begin = at - (at > 700 ? below(700) : 0),
		.end = at + below(900),
		.n = 1 + below(100000),
		.thread = thread};

	if (below(40) == 0)
		ck_assert(trace_pack_burst(&m->k, &b));
}

static void after(struct made *m)
{
	if (growing && below(m->full / 2) == 0)
		chunk_store(m, "part");
	if (trace_pack_events(&m->k) >= m->full)
		chunk_end(m);
}

static uint64_t any_length(void)
{
	return below(3) == 0 ? draw() >> (40 + below(24)) : below(3000);
}

/* GPU work that was launched in a scope. */
static void put_op(struct made *m, uint32_t thread, uint32_t scope, uint64_t at, uint64_t *gpu)
{
	uint32_t node = 21 + below(NODES - 20), i, stream;

	for (i = 21; i <= NODES; i++) /* one that is under it, if there is one */
		node = m->parent[i] == scope ? i : node;
	stream = m->depth[node] + 1 < DEPTH ? below(2) : 0; /* so that they differ in depth */
	gpu[stream] = gpu[stream] > at ? gpu[stream] : at + below(5000);
	ck_assert(trace_pack_op(
		&m->k, &(struct trace_op){.launched = at,
			       .start = gpu[stream] - (below(9) == 0 && gpu[stream] > 50 ? 50 : 0),
			       .end = gpu[stream] + below(4000),
			       .correlation = (uint32_t)draw(),
			       .thread = thread,
			       .node = node,
			       .stream = stream,
			       .class = CLASS_COMPUTE,
			       .config = below(2) == 0 ? 0 : TRACE_NONE,
			       .flags = below(20) == 0 ? TRACE_UNLAUNCHED : 0}));
	gpu[stream] += below(4000);
	after(m);
}

static void put_metric(struct made *m, uint32_t thread, uint32_t node, uint64_t at)
{
	const uint8_t type = (uint8_t)(VALUE_I64 + below(VALUE_STR - VALUE_I64 + 1));
	const double f = (double)below(1000) / 7;
	struct trace_metric v = {.clock = at,
		.bits = type == VALUE_STR ? 0 : draw() >> 30,
		.thread = thread,
		.node = node,
		.name = 1 + below(2),
		.type = type};

	if (type == VALUE_F64)
		memcpy(&v.bits, &f, sizeof(f));
	ck_assert(trace_pack_metric(&m->k, &v));
	after(m);
}

/* A scope with all that is in it; returns when it ends. Those inside are stored before it. */
static uint64_t put_scope(
	struct made *m, uint32_t thread, uint32_t node, uint64_t at, uint64_t *gpu)
{
	const uint64_t begin = at;
	uint32_t i;

	at += below(200);
	for (i = 1; i <= 20; i++)
		if (m->parent[i] == node && below(2) == 0)
			at = put_scope(m, thread, i, at + below(100), gpu);
	for (i = below(4); i > 0; i--) {
		put_op(m, thread, node, at, gpu);
		at += below(300);
	}
	at += any_length();
	if (below(3) == 0)
		put_metric(m, thread, node, begin + (at - begin) / 2);
	ck_assert(trace_pack_scope(&m->k, &(struct trace_scope){.begin = begin,
						  .end = at,
						  .thread = thread,
						  .node = node,
						  .flags = below(30) == 0   ? TRACE_SPAN
							   : below(30) == 0 ? TRACE_CALL
									    : 0,
						  .call = {.class = CLASS_STREAM_SYNC}}));
	after(m);
	return at;
}

static void put_process(struct made *m, uint32_t events)
{
	uint64_t at[THREADS] = {1000, 5000, 1 << 20}, gpu[2] = {0, 0};
	uint32_t thread;

	m->number = 0;
	m->first = 0;
	m->full =
		below(growing ? 2 : 3) == 0 ? 200 + below(1000) : TRACE_EVENTS_MAX / (1 + below(6));
	chunk_begin(m);
	while (m->first + trace_pack_events(&m->k) < events) {
		thread = below(THREADS);
		at[thread] = put_scope(m, thread, 1 + below(20), at[thread] + any_length(), gpu);
		put_burst(m, thread, at[thread]);
	}
	chunk_end(m);
}

static sqlite3 *any_session(uint32_t events, bool summaries)
{
	struct made m = {.db = help_db(":memory:"), .summaries = summaries};

	help_process(m.db, 1, 100, "0", "NULL", 2, "");
	help_process(m.db, 2, 200, "1", "NULL", 2, "");
	help_session(m.db, 7, "random", "run", "on");
	help_exec(m.db,
		"INSERT INTO member VALUES(7,1),(7,2);"
		"INSERT INTO device VALUES(1,0,x'11111111111111111111111111111111',3,'CUDA',"
		"'H200','',90,132,1,1,1,1,NULL,NULL)");
	put_nodes(m.db, m.parent, m.depth);
	help_exec(m.db, "CREATE TABLE part AS SELECT * FROM trace WHERE 0");
	for (m.process = 1; m.process <= 2; m.process++)
		put_process(&m, events);
	summariser_fini(&m.summariser);
	trace_pack_fini(&m.k);
	return m.db;
}

#endif
