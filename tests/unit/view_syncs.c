/* SPDX-License-Identifier: MIT. view_syncs.c: calls that wait have a lane beside their thread's, say what they
 * waited for and what let them come back, and stand in tracks of their own in files. And what colours scopes have. */
#include "export_help.h"
#include "summariser.h"
#include "view_help.h"
#include "zoom.h"

#include "trace.h"
#include "trace_names.h"

enum { STEP = 1, SGEMM, STREAM_SYNC, EVENT_SYNC, DEVICE_SYNC, COPY, RECORD, WAIT, MALLOC, NODES };

static const char *const names[NODES] = {[STEP] = "step",
	[SGEMM] = "sgemm",
	[STREAM_SYNC] = "cudaStreamSynchronize",
	[EVENT_SYNC] = "cudaEventSynchronize",
	[DEVICE_SYNC] = "cudaDeviceSynchronize",
	[COPY] = "cudaMemcpy",
	[RECORD] = "cudaEventRecord",
	[WAIT] = "cudaStreamWaitEvent",
	[MALLOC] = "cudaMalloc"};

#define EVENT 0xabc0u

static void put_call(struct trace_pack *k, uint32_t node, uint8_t class, uint64_t begin,
	uint64_t end, uint32_t stream, uint64_t event)
{
	ck_assert(trace_pack_scope(k, &(struct trace_scope){.begin = begin,
					      .end = end,
					      .node = node,
					      .flags = TRACE_CALL,
					      .call = {.class = class,
						      .stream = stream,
						      .event = event,
						      .correlation = (uint32_t)begin}}));
}

static void put_op(struct trace_pack *k, uint64_t launched, uint64_t start, uint64_t end,
	uint32_t stream, uint32_t correlation)
{
	ck_assert(trace_pack_op(k, &(struct trace_op){.launched = launched,
					   .start = start,
					   .end = end,
					   .node = SGEMM,
					   .stream = stream,
					   .class = CLASS_COMPUTE,
					   .config = TRACE_NONE,
					   .correlation = correlation}));
}

static void begin_chunk(struct trace_pack *k, uint32_t devices)
{
	uint32_t i;

	trace_pack_clear(k);
	for (i = 0; i < NODES; i++)
		ck_assert(trace_pack_node(k, (uint8_t[16]){(uint8_t)i, [15] = 1}));
	ck_assert(trace_pack_thread(k, &(struct trace_thread){100, TRACE_NONE}));
	ck_assert(trace_pack_stream(k, &(struct trace_stream){0, 1, 7}));
	ck_assert(trace_pack_stream(k, &(struct trace_stream){0, 1, 8}));
	if (devices > 1)
		ck_assert(trace_pack_stream(k, &(struct trace_stream){1, 2, 7}));
}

static void end_chunk(sqlite3 *db, struct trace_pack *k, int number, uint64_t first, bool summary)
{
	struct summariser made = {.db = NULL};
	sqlite3_stmt *st;
	uint32_t n, n_summary;
	void *bytes, *is = NULL;

	ck_assert_int_eq(trace_pack_seal(k, &bytes, &n), 0);
	ck_assert_int_eq(sqlite3_prepare_v2(db,
				 "INSERT INTO trace(session,process,number,first,events,end_ns,"
				 "bytes,summary) VALUES(7,1,?,?,?,0,?,?)",
				 -1, &st, NULL),
		SQLITE_OK);
	(void)sqlite3_bind_int64(st, 1, number);
	(void)sqlite3_bind_int64(st, 2, (int64_t)first);
	(void)sqlite3_bind_int64(st, 3, trace_pack_events(k));
	(void)sqlite3_bind_blob(st, 4, bytes, (int)n, SQLITE_TRANSIENT);
	if (summary)
		is = summariser_make(&made, db, 1, bytes, n, &n_summary);
	if (is != NULL)
		(void)sqlite3_bind_blob(st, 5, is, (int)n_summary, SQLITE_TRANSIENT);
	ck_assert(!summary || is != NULL);
	ck_assert_int_eq(sqlite3_step(st), SQLITE_DONE);
	(void)sqlite3_finalize(st);
	summariser_fini(&made);
	free(is);
	free(bytes);
}

/* A kernel on stream 7, an event behind it and one before the next: what is waited for is what was launched before.
 * crowd: scopes, so many that there is a summary; the record is in a chunk of its own. */
static sqlite3 *session(uint32_t devices, uint32_t crowd)
{
	sqlite3 *db = help_db(":memory:");
	struct trace_pack k = {.n_bursts = 0};
	uint32_t i;
	char sql[160];

	help_process(db, 1, 100, "0", "NULL", 2, "");
	help_session(db, 7, "syncs", "run", "on");
	help_exec(db, "INSERT INTO member VALUES(7,1)");
	for (i = 1; i < NODES; i++) {
		(void)snprintf(sql, sizeof(sql),
			"INSERT INTO node VALUES(%u,x'%02x%030x',%d,%d,'%s')", i, i, 1u,
			i > STEP ? STEP : 0,
			i == STEP    ? NODE_SCOPE
			: i == SGEMM ? NODE_KERNEL
				     : NODE_CALL,
			names[i]);
		help_exec(db, sql);
	}
	help_exec(db, "INSERT INTO node VALUES(99,x'00000000000000000000000000000001',0,0,'-')");
	help_exec(db, "INSERT INTO device VALUES(1,0,x'11111111111111111111111111111111',0,'CUDA',"
		      "'H200','',90,132,1,1,1,1,NULL,'c1 serving' || char(10) || 'eabc0 loss "
		      "ready' || char(10))");
	begin_chunk(&k, devices);
	put_op(&k, 1100, 1500, 3000, 0, 1);
	put_call(&k, RECORD, CLASS_EVENT_RECORD, 1200, 1210, 7, EVENT);
	end_chunk(db, &k, 0, 0, false);
	begin_chunk(&k, devices);
	ck_assert(trace_pack_scope(
		&k, &(struct trace_scope){.begin = 1000, .end = 9000, .node = STEP}));
	put_op(&k, 1300, 3000, 5000, 0, 2);
	put_op(&k, 1400, 2000, 2500, 1, 3);
	if (devices > 1)
		put_op(&k, 1450, 2000, 2600, 2, 4);
	put_call(&k, WAIT, CLASS_STREAM_WAIT, 1600, 1610, 8, EVENT);
	put_call(&k, EVENT_SYNC, CLASS_EVENT_SYNC, 1700, 3100, UINT32_MAX, EVENT);
	put_call(&k, COPY, CLASS_COPY_WAIT, 3200, 3300, UINT32_MAX, 0);
	put_call(&k, STREAM_SYNC, CLASS_STREAM_SYNC, 3400, 5100, 7, 0);
	put_call(&k, STREAM_SYNC, CLASS_STREAM_SYNC, 5200, 5300, 7, 0); /* nothing is left */
	put_call(&k, STREAM_SYNC, CLASS_STREAM_SYNC, 2700, 3200, UINT32_MAX, 0);
	put_call(&k, STREAM_SYNC, CLASS_STREAM_SYNC, 2100, 3150, UINT32_MAX, 0); /* of two */
	put_call(&k, DEVICE_SYNC, CLASS_DEVICE_SYNC, 5400, 5500, UINT32_MAX, 0);
	put_call(&k, MALLOC, CLASS_ALLOC, 6000, 6500, UINT32_MAX, 0);
	put_op(&k, 3250, 3260, 3290, 1, 3200);
	for (i = 0; i < crowd; i++) /* so that they are not packed away */
		ck_assert(trace_pack_scope(&k,
			&(struct trace_scope){.begin = 7000 + 4000u * i + i * 2654435761u % 2000u,
				.end = 9000 + 4000u * i + i * 2246822519u % 2000u,
				.node = STEP}));
	end_chunk(db, &k, 1, 2, crowd > 0);
	trace_pack_fini(&k);
	return db;
}

static const struct wait_case {
	uint64_t at, ended, record; /* begin of the call; end of the work; 0: not known, or none */
	uint8_t class;
	uint64_t ended_of_two; /* with a second GPU whose stream has the same number */
} waits[] = {
	{1600, 3000, 1200, CLASS_STREAM_WAIT, 0},
	{1700, 3000, 1200, CLASS_EVENT_SYNC, 0},
	{2100, 0, 0, CLASS_STREAM_SYNC, 0}, /* stream 7, or 8? */
	{2700, 3000, 0, CLASS_STREAM_SYNC, 0},
	{3200, 3290, 0, CLASS_COPY_WAIT, 3290},
	{3400, 5000, 0, CLASS_STREAM_SYNC, 0},
	{5200, 0, 0, CLASS_STREAM_SYNC, 0},
	{5400, 0, 0, CLASS_DEVICE_SYNC, 0},
	{6000, 0, 0, CLASS_ALLOC, 0},
};

static void is_wait(struct zoom *w, uint32_t event, const struct wait_case *c, bool two)
{
	const uint64_t ended = two ? c->ended_of_two : c->ended;
	struct zoom_event d;
	struct err e;

	ck_assert_int_eq(zoom_event(w, event, &d, &e), 0);
	ck_assert(d.is_sync && !d.is_op && d.class == c->class);
	ck_assert_uint_eq(d.correlation, c->at);
	ck_assert_uint_eq(d.cuda_event, c->record != 0 ? EVENT : 0);
	ck_assert_str_eq(d.object_name, c->record != 0 ? "loss ready" : "");
	ck_assert_uint_eq(d.record.event != 0 ? d.record.start_ns : 0, c->record);
	ck_assert_uint_eq(d.record.event != 0 ? d.record.stream : 7, 7);
	ck_assert_uint_eq(d.ended_by.event != 0 ? d.ended_by.end_ns : 0, ended);
	if (ended == 0)
		return;
	ck_assert_str_eq(zoom_name(w, d.ended_by.name), "sgemm");
	ck_assert_int_eq(zoom_event(w, d.ended_by.event, &d, &e), 0);
	ck_assert(d.is_op && !d.is_sync && d.end_ns == ended);
	ck_assert_str_eq(d.object_name, "serving");
}

/* By few and by many events, with one GPU and with two. */
START_TEST(lanes)
{
	sqlite3 *db = session(1 + (uint32_t)(_i & 1), _i < 2 ? 0 : 3000);
	const struct zoom_lane *lane;
	struct zoom_sums sums;
	struct zoom_tile t;
	struct zoom *w;
	struct err e;
	uint32_t i, k, n, found = 0;

	ck_assert_int_eq(zoom_open(db, 7, NULL, &w, &e), 0);
	lane = zoom_lanes(w, &n);
	ck_assert_uint_ge(n, 4);
	ck_assert_uint_eq(lane[0].kind, ZOOM_THREAD);
	ck_assert_uint_eq(lane[0].rows, 1); /* calls take none of it */
	ck_assert(lane[1].kind == ZOOM_SYNCS && lane[1].parent == 0 && lane[1].events == 10);
	ck_assert_str_eq(lane[1].name, "syncs of main thread");
	ck_assert_int_eq(zoom_slices(w,
				 &(struct zoom_ask){.t0 = 0,
					 .t1 = 6990,
					 .px = 6990,
					 .lane = (const uint32_t[]){1},
					 .n_lanes = 1},
				 &t, &e),
		0);
	for (i = 0; i < t.n; i++) {
		ck_assert(t.slice[i].lane == 1 && t.slice[i].count == 1);
		for (k = 0; k < sizeof(waits) / sizeof(*waits); k++) {
			if (waits[k].at != t.slice[i].start_ns)
				continue;
			is_wait(w, t.slice[i].event, &waits[k], (_i & 1) != 0);
			found++;
		}
	}
	ck_assert_uint_eq(found, sizeof(waits) / sizeof(*waits));
	ck_assert_uint_eq(t.n, found + 1);
	zoom_tile_fini(&t);
	/* From afar they are in no other lane, either. */
	ck_assert_int_eq(zoom_slices(w,
				 &(struct zoom_ask){.t0 = 0,
					 .t1 = 1 << 24,
					 .px = 1,
					 .lane = (const uint32_t[]){1},
					 .n_lanes = 1},
				 &t, &e),
		0);
	for (i = 0, n = 0; i < t.n; i++)
		n += t.slice[i].count;
	ck_assert_uint_eq(n, 10);
	zoom_tile_fini(&t);
	ck_assert_int_eq(
		zoom_sums(w,
			&(struct zoom_ask){
				.t1 = 6990, .px = 1, .lane = (const uint32_t[]){1}, .n_lanes = 1},
			&sums, &e),
		0);
	ck_assert_uint_eq(sums.n, 7);
	ck_assert_str_eq(zoom_name(w, sums.sum[0].name), "cudaStreamSynchronize");
	ck_assert(sums.sum[0].count == 4 && sums.sum[0].total_ns == 3350);
	zoom_sums_fini(&sums);
	zoom_free(w);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

START_TEST(files)
{
	sqlite3 *db = session(1, 0);

	ck_assert(help_file_has(chrome_trace_write, db, NULL,
		"\"cat\":\"cuda_sync\",\"name\":\"cudaEventSynchronize\",\"pid\":100,"
		"\"tid\":65000100,\"ts\":1.700,\"dur\":1.400,"));
	ck_assert(help_file_has(chrome_trace_write, db, NULL,
		"\"tid\":65000100,\"args\":{\"name\":\"100, syncs\"}"));
	ck_assert(help_file_has(pftrace_write, db, NULL, "cuda_sync"));
	ck_assert(help_file_has(pftrace_write, db, NULL, "syncs"));
	ck_assert(help_file_has(
		kineto_write, db, NULL, "\"name\":\"cudaEventSynchronize\",\"pid\":100,"));
	ck_assert(help_file_has(kineto_write, db, NULL,
		"\"cat\":\"cuda_sync\",\"name\":\"Event Sync\",\"pid\":0,\"tid\":4200000100,"
		"\"ts\":1.700,\"dur\":1.400,\"args\":{\"cuda_sync_kind\":\"Event "
		"Sync\",\"stream\":-1,"
		"\"correlation\":1700,\"device\":0,\"wait_on_stream\":7,"
		"\"wait_on_cuda_event_record_corr_id\":1200,\"wait_on_cuda_event_id\":43968,"
		"\"event name\":\"loss ready\"}}"));
	ck_assert(help_file_has(chrome_trace_write, db, NULL,
		"\"event\":\"0xabc0\",\"event name\":\"loss ready\"}}"));
	ck_assert(help_file_has(chrome_trace_write, db, NULL,
		"\"context\":1,\"stream\":7,\"context name\":\"serving\","));
	ck_assert(help_file_has(pftrace_write, db, NULL, "loss ready"));
	ck_assert(
		help_file_has(kineto_write, db, NULL, "\"name\":\"Stream Wait Event\",\"pid\":0,"));
	ck_assert(help_file_has(kineto_write, db, NULL, "\"name\":\"Context Sync\",\"pid\":0,"));
	ck_assert(!help_file_has(kineto_write, db, NULL, "cuda_sync_kind\":\"cuda"));
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	db = session(2, 0); /* whose stream 7 it is, nobody says: the program's row */
	ck_assert(help_file_has(kineto_write, db, NULL,
		"\"name\":\"Stream "
		"Sync\",\"pid\":100,\"tid\":4200000100,\"ts\":3.400,\"dur\":1.700,"
		"\"args\":{\"cuda_sync_kind\":\"Stream "
		"Sync\",\"stream\":7,\"correlation\":3400}}"));
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

/* A scope's colour is its name's: of all its events, and of none that is a call or a kernel. */
START_TEST(colors)
{
	sqlite3 *db = session(1, 0);
	const struct named_color *c;
	struct zoom *w;
	struct err e;
	uint32_t n;

	help_exec(db, "INSERT INTO metric VALUES(7,1,0,1,'color',2,'#ff8800',1),"
		      "(7,1,0,2,'color',2,'#0000',1),(7,1,0,4,'color',2,7,1),"
		      "(7,1,0,3,'color',2,'#00000g',1)");
	ck_assert_int_eq(zoom_open(db, 7, NULL, &w, &e), 0);
	c = zoom_colors(w, &n);
	ck_assert_uint_eq(n, 1);
	ck_assert_str_eq(c->name, "step");
	ck_assert_uint_eq(c->color, NAMED_COLOR | 0xff8800);
	zoom_free(w);
	ck_assert(help_file_has(chrome_trace_write, db, NULL, "\"step\"],\"color\":\"#ff8800\"}}"));
	ck_assert(help_file_has(kineto_write, db, NULL, "\"color\":\"#ff8800\"}}"));
	ck_assert(help_file_has(pftrace_write, db, NULL, "#ff8800"));
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("syncs");
	TCase *tc = tcase_create("syncs");

	tcase_add_loop_test(tc, lanes, 0, 4);
	tcase_add_test(tc, files);
	tcase_add_test(tc, colors);
	suite_add_tcase(s, tc);
	return s;
}
