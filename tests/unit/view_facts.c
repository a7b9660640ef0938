/* SPDX-License-Identifier: MIT. view_facts.c: what rules judge by, out of a database: steps and waits of a timeline, readings,
 * GPUs that are shared. */
#include "reading.h"
#include "trace.h"
#include "view_help.h"

#include "bottlenecks.h"
#include "export_format.h"
#include "metrics.h"

#define MS     1000000u
#define STEPS  30u
#define SECOND 1000000000u

static void put_chunk(sqlite3 *db, const char *sql, const void *bytes, uint32_t n)
{
	sqlite3_stmt *st;

	ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	(void)sqlite3_bind_blob(st, 1, bytes, (int)n, SQLITE_TRANSIENT);
	ck_assert_int_eq(sqlite3_step(st), SQLITE_DONE);
	(void)sqlite3_finalize(st);
}

static void put_call(
	struct trace_pack *k, uint64_t begin, uint64_t end, uint32_t node, uint8_t class)
{
	ck_assert(trace_pack_scope(k, &(struct trace_scope){.begin = begin,
					      .end = end,
					      .node = node,
					      .flags = TRACE_CALL,
					      .call = {.class = class, .stream = 7}}));
}

static void put_op(struct trace_pack *k, uint64_t start, uint64_t end)
{
	ck_assert(trace_pack_op(k, &(struct trace_op){.launched = start,
					   .start = start,
					   .end = end,
					   .node = 2,
					   .class = CLASS_COMPUTE,
					   .config = TRACE_NONE}));
}

/* A step of 10 ms: 3.8 ms of work, which a call waits for with another inside of it; then one that waits for nothing. The last
 * step's have no work behind them. */
static void put_step(struct trace_pack *k, uint64_t at)
{
	put_op(k, at + MS / 5, at + 4 * MS);
	put_call(k, at + MS, at + 3 * MS, 3, CLASS_STREAM_SYNC); /* inside the next */
	put_call(k, at + MS / 2, at + MS / 10 * 41, 3, CLASS_STREAM_SYNC);
	put_call(k, at + MS / 10 * 50, at + MS / 10 * 60, 4, CLASS_ALLOC); /* waits for nothing */
	put_call(k, at + MS / 10 * 42, at + MS / 10 * 43, 4, CLASS_EVENT_SYNC);
	put_call(k, at + 7 * MS, at + 8 * MS, 4,
		CLASS_COMPILE); /* two that overlap; and into the next */
	put_call(k, at + MS / 10 * 75, at + 9 * MS, 4, CLASS_COMPILE);
	put_call(k, at + MS / 10 * 98, at + MS / 10 * 101, 4, CLASS_COMPILE);
	ck_assert(trace_pack_scope(
		k, &(struct trace_scope){.begin = at, .end = at + 10 * MS, .node = 1}));
	ck_assert(trace_pack_metric(k, &(struct trace_metric){.clock = at + 5 * MS,
					       .node = 1,
					       .name = 0,
					       .type = VALUE_U64,
					       .bits = 1000000000}));
}

/* A first step of 100 ms, in which memory is got four times, and a call waits for half of it. */
static void put_first(struct trace_pack *k)
{
	uint32_t i;

	for (i = 0; i < 4; i++)
		put_call(k, (2 + i * 10) * MS, (10 + i * 10) * MS, 5, CLASS_ALLOC);
	put_call(k, 45 * MS, 95 * MS, 4, CLASS_EVENT_SYNC);
	ck_assert(trace_pack_scope(
		k, &(struct trace_scope){.begin = MS, .end = 101 * MS, .node = 1}));
}

static void put_names(struct trace_pack *k)
{
	uint8_t hash[16];
	uint32_t i;

	for (i = 0; i < 6; i++) {
		memset(hash, 0, sizeof(hash));
		hash[0] = (uint8_t)i;
		hash[15] = 1;
		ck_assert(trace_pack_node(k, hash));
	}
	ck_assert(trace_pack_thread(k, &(struct trace_thread){1, TRACE_NONE}));
	ck_assert(trace_pack_stream(k, &(struct trace_stream){0, 1, 7}));
	ck_assert(trace_pack_text(k, "flops16", 7));
}

static void put_trace(sqlite3 *db, struct trace_pack *k)
{
	uint32_t n;
	void *bytes;

	ck_assert_int_eq(trace_pack_seal(k, &bytes, &n), 0);
	put_chunk(db,
		"INSERT INTO trace(session,process,number,first,events,end_ns,bytes) "
		"VALUES(7,1,0,0,180,0,?1)",
		bytes, n);
	free(bytes);
	trace_pack_fini(k);
}

static void put_timeline(sqlite3 *db, bool warm_up, bool cut)
{
	struct trace_pack k = {0};
	uint32_t i;

	put_names(&k);
	if (warm_up)
		put_first(&k);
	for (i = 0; i < STEPS; i++)
		put_step(&k, (warm_up ? 101 : 1) * MS + i * 10ull * MS);
	for (i = 1; cut && i <= 5; i += 4) /* and a scope in it */
		ck_assert(trace_pack_scope(&k, &(struct trace_scope){.begin = 301 * MS,
						       .end = 901 * MS,
						       .node = i,
						       .flags = TRACE_OPEN}));
	put_trace(db, &k);
}

/* Two calls that wait; behind each the GPU runs dry twice before the next call or the last work: 0.2 and 0.3 ms. */
static void put_gaps(sqlite3 *db)
{
	struct trace_pack k = {0};
	uint32_t i;

	put_names(&k);
	ck_assert(trace_pack_scope(
		&k, &(struct trace_scope){.begin = MS, .end = 20 * MS, .node = 1}));
	for (i = 0; i < 2; i++) {
		const uint64_t at = MS + i * 9ull * MS;

		put_op(&k, at, at + 3 * MS);
		put_call(&k, at + 2 * MS, at + MS / 10 * 31, 3, CLASS_STREAM_SYNC);
		put_op(&k, at + MS / 10 * 32, at + 5 * MS);
		put_op(&k, at + MS / 10 * 53, at + 9 * MS);
	}
	put_trace(db, &k);
}

/* Four seconds of a GPU, whose counters are read each second time. */
static void put_readings(sqlite3 *db)
{
	const struct reading_gpu g = {.name = "H"};
	struct reading_point p[4] = {{0}};
	uint32_t i, n;
	void *bytes;

	for (i = 0; i < 4; i++) {
		p[i].begin_ns = (i + 1) * (uint64_t)SECOND;
		p[i].end_ns = (i + 2) * (uint64_t)SECOND;
		p[i].known = 1ull << DEVICE_sm_clock | 1ull << DEVICE_sm_clock_max |
			     (i % 2 == 1 ? 1ull << DEVICE_held_by_heat : 0);
		p[i].value[DEVICE_sm_clock] = i < 2 ? 1980 : 1000;
		p[i].value[DEVICE_sm_clock_max] = 1980;
	}
	p[3].value[DEVICE_held_by_heat] = 1.5f * SECOND;
	ck_assert_int_eq(reading_pack(&g, p, 4, &bytes, &n), 0);
	put_chunk(db, "INSERT INTO reading VALUES(7,0,0,0,0,?1)", bytes, n);
	free(bytes);
}

static sqlite3 *session(void)
{
	sqlite3 *db = help_db(":memory:");

	help_process(db, 1, 100, "0", "NULL", 2, "");
	help_process(db, 2, 200, "1", "NULL", 2, "");
	help_session(db, 7, "waits", "run", "on");
	help_exec(db,
		"INSERT INTO member VALUES(7,1),(7,2);"
		"INSERT INTO active VALUES(7,1000000,301000000);"
		"INSERT INTO node VALUES(1,x'01000000000000000000000000000001',0,1,'step'),"
		"(2,x'02000000000000000000000000000001',1,5,'gemm'),"
		"(3,x'03000000000000000000000000000001',1,9,'cudaStreamSynchronize'),"
		"(4,x'04000000000000000000000000000001',1,9,'cudaEventSynchronize');"
		"INSERT INTO device VALUES"
		" (1,0,x'11111111111111111111111111111111',0,'CUDA','H200','',90,132,1,1,1,1,NULL,"
		"NULL),"
		" (2,0,x'11111111111111111111111111111111',0,'CUDA','H200','',90,132,1,1,1,1,NULL,"
		"NULL);"
		"INSERT INTO busy(session,process,device,busy_ns,first_ns,last_ns,compute_ns) "
		"VALUES(7,1,0,114000000,1,2,114000000),(7,2,0,1000,1,2,1000);"
		"INSERT INTO cell(session,process,segment,node,device,class,count,sum_ns,min_ns,"
		"max_ns,bytes,untimed,open) VALUES"
		" (7,1,0,1,-1,0,30,300000000,10000000,10000000,0,0,0),"
		" (7,1,0,2,0,1,30,114000000,3800000,3800000,0,0,0),"
		" (7,1,0,3,-1,9,60,168000000,2000000,3600000,0,0,0),"
		" (7,1,0,4,-1,10,30,3000000,100000,100000,0,0,0);");
	put_timeline(db, false, false);
	put_readings(db);
	return db;
}

static sqlite3 *session_that_warms_up(void)
{
	sqlite3 *db = session();

	help_exec(db,
		"DELETE FROM trace;"
		"UPDATE cell SET count = 31, sum_ns = 400000000 WHERE node = 1;"
		"UPDATE cell SET count = 31, sum_ns = 53000000 WHERE node = 4;"
		"INSERT INTO node VALUES(5,x'05000000000000000000000000000001',1,9,'cudaMalloc')");
	help_exec(db,
		"INSERT INTO cell(session,process,segment,node,device,class,count,sum_ns,min_ns,"
		"max_ns,bytes,untimed,open) "
		"VALUES(7,1,0,5,-1,15,4,32000000,8000000,8000000,0,0,0)");
	put_timeline(db, true, false);
	return db;
}

static const struct wait_site *site(const struct waits *w, const char *name)
{
	uint32_t i;

	for (i = 0; i < w->n; i++)
		if (strcmp(w->site[i].name, name) == 0)
			return &w->site[i];
	ck_abort_msg("no site %s", name);
	return NULL;
}

START_TEST(facts_of_a_database)
{
	const struct profile_select all = {0};
	sqlite3 *db = session();
	const struct wait_site *s;
	struct profile *p;
	struct facts *f;
	struct export_left left;
	struct err e;

	ck_assert_int_eq(profile_load(db, 7, &all, &p, &e), 0);
	ck_assert_int_eq(facts_new(p, NULL, &f), 0);
	ck_assert(fabs(f->idle.share - 0.62) < 1e-9); /* by the tree */
	ck_assert_int_eq(facts_read(f, db, 7, &all, 0, &left, &e), 0);
	ck_assert_int_eq(f->whole, WHOLE_STEPS);
	ck_assert(f->steps == STEPS && f->step_ns == 300e6 && f->has_sync && !f->has_parts);
	ck_assert(fabs(f->idle.share - 0.62) < 1e-9 && f->idle.count == STEPS);
	ck_assert_uint_eq(f->sharing, 2);

	ck_assert_uint_eq(f->step->step[0].compile_ns, 2200000);
	ck_assert_uint_eq(f->step->step[0].compiles, 2);
	ck_assert_uint_eq(f->step->step[1].compile_ns, 2300000);
	s = site(f->wait, "cudaStreamSynchronize");
	ck_assert_uint_eq(s->calls, STEPS);
	ck_assert_uint_eq(s->blocked_ns, STEPS * 3600000ull);
	ck_assert_uint_eq(s->bubble_ns, (STEPS - 1) * 200000ull); /* up to the next call */
	ck_assert_uint_eq(s->sure_ns, (STEPS - 1) * 200000ull);
	ck_assert_uint_eq(s->gain_ns, (STEPS - 1) * 200000ull);
	s = site(f->wait, "cudaEventSynchronize");
	ck_assert_uint_eq(s->calls, STEPS);
	ck_assert_uint_eq(s->bubble_ns, (STEPS - 1) * 6000000ull);
	ck_assert_uint_eq(s->sure_ns, (STEPS - 1) * 150000ull); /* what it took, and a launch */

	ck_assert_uint_eq(f->device->n, 1);
	ck_assert(fabs(f->device->one[0].of[DEVICE_sm_clock].mean - 1490) < 1e-6);
	ck_assert(f->device->one[0].of[DEVICE_held_by_heat].known_ns == 4e9);
	ck_assert(f->device->one[0].of[DEVICE_held_by_heat].sum == 1.5e9);
	facts_free(f);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* A bubble ends at the next work; what a wait gives back at most is of all gaps up to the next wait. */
START_TEST(gaps_behind_a_wait)
{
	sqlite3 *db = session();
	const struct profile_select all = {0};
	const struct wait_site *s;
	struct export_left left;
	struct waits *w;
	struct err e;

	help_exec(db, "DELETE FROM trace");
	put_gaps(db);
	ck_assert_int_eq(waits_read(db, 7, &all, NULL, &left, &w, &e), 0);
	s = site(w, "cudaStreamSynchronize");
	ck_assert_uint_eq(s->calls, 2);
	ck_assert_uint_eq(s->bubble_ns, 2 * 200000);
	ck_assert_uint_eq(s->sure_ns, 2 * 200000);
	ck_assert_uint_eq(s->gain_ns, 2 * 500000);
	waits_free(w);
	sqlite3_close(db);
}
END_TEST

/* Of a first step that is slow nothing is in the host's sums; it counts as one like the others. */
START_TEST(a_warm_up)
{
	const struct profile_select all = {0};
	sqlite3 *db = session_that_warms_up();
	const struct wait_site *s;
	struct profile *p;
	struct facts *f;
	struct export_left left;
	struct err e;

	ck_assert_int_eq(profile_load(db, 7, &all, &p, &e), 0);
	ck_assert_int_eq(facts_new(p, NULL, &f), 0);
	ck_assert(f->node[1].allocs == 4 && f->node[1].alloc_ns == 32e6);
	ck_assert_int_eq(facts_read(f, db, 7, &all, 0, &left, &e), 0);
	ck_assert(f->steps == STEPS + 1 && f->step_ns == (STEPS + 1) * 10e6);
	ck_assert(f->node[1].allocs == 0 && f->node[1].alloc_ns == 0);
	ck_assert(fabs(f->node[1].calls - (STEPS + 1)) < 1e-6);
	ck_assert(fabs(f->node[1].cpu_ns - (STEPS + 1) * 10e6) < 1);
	ck_assert(fabs(f->node[4].wait_ns - 3e6 * (STEPS + 1) / STEPS) < 1);
	s = site(f->wait, "cudaEventSynchronize");
	ck_assert_uint_eq(s->calls, STEPS + 1);
	ck_assert_uint_eq(s->blocked_ns, (STEPS + 1) * 100000ull);
	facts_free(f);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* Without steps a session is judged from the first work of a GPU to the last: what it loads before that comes once. */
START_TEST(a_start)
{
	const struct profile_select all = {0};
	sqlite3 *db = session();
	struct profile *p;
	struct facts *f;
	struct export_left left;
	struct err e;

	help_exec(db, "UPDATE node SET name = 'request' WHERE id = 1; DELETE FROM trace;"
		      "DELETE FROM busy WHERE process = 2; DELETE FROM member WHERE process = 2;"
		      "UPDATE busy SET first_ns = 100000000, last_ns = 250000000");
	ck_assert_int_eq(profile_load(db, 7, &all, &p, &e), 0);
	ck_assert_int_eq(facts_new(p, NULL, &f), 0);
	ck_assert(f->whole == WHOLE_SESSION && fabs(f->idle.share - 0.62) < 1e-9);
	ck_assert_int_eq(facts_read(f, db, 7, &all, 0, &left, &e), 0);
	ck_assert(f->whole == WHOLE_USED && f->whole_ns == 150e6);
	ck_assert(fabs(f->idle.share - 0.24) < 1e-9 && fabs(f->idle.ns - 36e6) < 1);
	ck_assert(f->idle.of == WHOLE_USED && fabs(f->part[PART_HOST] - 0.24) < 1e-9);
	facts_free(f);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

static struct facts *all_of(sqlite3 *db, struct profile **p)
{
	const struct profile_select all = {0};
	struct export_left left;
	struct facts *f;
	struct err e;

	ck_assert_int_eq(profile_load(db, 7, &all, p, &e), 0);
	ck_assert_int_eq(facts_new(*p, NULL, &f), 0);
	ck_assert_int_eq(facts_read(f, db, 7, &all, 0, &left, &e), 0);
	return f;
}

/* What was lost may have run: nobody knows how idle the GPU was, nor what a wait cost. Losses that are no work do not matter. */
START_TEST(much_is_lost)
{
	sqlite3 *db = session();
	struct rule_settings set;
	struct bottlenecks b;
	struct profile *p;
	struct facts *f;

	help_exec(db, "INSERT INTO loss VALUES(7,1,8,1000)"); /* paths: counted elsewhere */
	f = all_of(db, &p);
	ck_assert(!f->lost_work && f->idle.share > 0 && f->wait != NULL);
	facts_free(f);
	profile_free(p);
	help_exec(db, "INSERT INTO loss VALUES(7,1,4,2)");
	f = all_of(db, &p);
	ck_assert(f->lost_work && isnan(f->idle.share) && !f->has_parts && f->wait == NULL);
	rule_defaults(&set);
	bottlenecks_find(f, &set, &b);
	ck_assert_int_eq(b.rule[RULE_cpu_gpu_sync].state, RULE_UNSURE);
	ck_assert_int_eq(b.rule[RULE_gpu_idle].state, RULE_LACKS);
	ck_assert_int_eq(b.rule[RULE_dropped_records].state, RULE_FOUND);
	facts_free(f);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* A record that CUPTI let go and the launch that has none are the same; what is in flight is not lost yet. */
START_TEST(lost_once)
{
	sqlite3 *db = session();
	struct rule_settings set;
	struct bottlenecks b;
	struct profile *p;
	struct facts *f;
	uint32_t i;

	rule_defaults(&set);
	help_exec(db, "UPDATE session SET launches = 40, matched = 30, state = 'active';"
		      "INSERT INTO loss VALUES(7,1,5,3)");
	f = all_of(db, &p);
	ck_assert(f->lost_work && profile_lost(&p->head, false) == 3);
	facts_free(f);
	profile_free(p);
	help_exec(db, "UPDATE session SET state = 'finalized'; INSERT INTO loss "
		      "VALUES(7,1,4,10),(7,1,11,10),(7,1,6,2)");
	f = all_of(db, &p);
	ck_assert(f->lost_work && profile_lost(&p->head, false) == 12);
	bottlenecks_find(f, &set, &b);
	for (i = 0; i < b.n && b.verdict[i].rule != RULE_dropped_records; i++)
		;
	ck_assert(i < b.n && strstr(b.verdict[i].words, "12 events were lost") != NULL);
	facts_free(f);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* Of one process nobody counts launches: the session's say whether its idle time is known. */
START_TEST(much_is_lost_of_one)
{
	const struct profile_select one = {.process = "0"};
	sqlite3 *db = session();
	struct profile *p;
	struct facts *f;
	struct err e;

	help_exec(db, "UPDATE session SET launches = 40, matched = 30");
	ck_assert_int_eq(profile_load(db, 7, &one, &p, &e), 0);
	ck_assert_int_eq(facts_new(p, NULL, &f), 0);
	ck_assert(p->head.unmatched == 0 && f->lost_work && isnan(f->idle.share));
	facts_free(f);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* A timeline that has the last steps alone: none of them is the first, and waits in it are not all there were. */
START_TEST(the_begin_is_gone)
{
	sqlite3 *db = session_that_warms_up();
	struct rule_settings set;
	struct bottlenecks b;
	struct profile *p;
	struct facts *f;

	help_exec(db, "UPDATE cell SET count = 60, sum_ns = 600000000 WHERE node = 1;"
		      "UPDATE trace SET number = 1, first = 900;"
		      "INSERT INTO trace(session,process,number,first,events,end_ns,bytes) "
		      "VALUES(7,1,0,0,900,1,NULL)");
	f = all_of(db, &p);
	ck_assert_uint_eq(f->gone, 900);
	ck_assert(!f->step->step[0].warm && f->step_ns == 600e6 && f->node[1].allocs == 4);
	ck_assert(f->wait->left_out > 0 && f->idle.ns > 0.7 * 600e6);
	rule_defaults(&set);
	bottlenecks_find(f, &set, &b);
	ck_assert_int_eq(b.rule[RULE_warm_up].state, RULE_UNSURE);
	facts_free(f);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

#define CREATED 1700000007000000000u /* of help_session() */

/* A step of 300 ms, whose GPU works twice for 10 ms; between the two the clock is set back. */
static void put_set_back(sqlite3 *db, uint64_t by_ns)
{
	struct trace_pack k = {0};
	const struct trace_op op[] = {
		{.launched = 5 * MS, .start = CREATED + 10 * MS, .end = CREATED + 20 * MS},
		{.launched = 190 * MS,
			.start = CREATED - by_ns + 200 * MS,
			.end = CREATED - by_ns + 210 * MS}};
	uint8_t hash[16] = {1, [15] = 1};
	uint32_t i, n;
	void *bytes;
	char sql[768];

	ck_assert(trace_pack_node(&k, hash));
	hash[0] = 2;
	ck_assert(trace_pack_node(&k, hash));
	ck_assert(trace_pack_thread(&k, &(struct trace_thread){1, TRACE_NONE}));
	ck_assert(trace_pack_stream(&k, &(struct trace_stream){0, 1, 7}));
	for (i = 0; i < 2; i++) {
		struct trace_op o = op[i];

		o.node = 1;
		o.class = CLASS_COMPUTE;
		o.config = TRACE_NONE;
		ck_assert(trace_pack_op(&k, &o));
	}
	ck_assert(trace_pack_scope(&k, &(struct trace_scope){.begin = MS, .end = 301 * MS}));
	ck_assert_int_eq(trace_pack_seal(&k, &bytes, &n), 0);
	put_chunk(db,
		"INSERT INTO trace(session,process,number,first,events,end_ns,bytes) "
		"VALUES(7,1,0,0,3,0,?1)",
		bytes, n);
	free(bytes);
	trace_pack_fini(&k);
	(void)snprintf(sql, sizeof(sql),
		"UPDATE process SET created_realtime_ns=%llu;"
		"INSERT INTO anchor(ring_clock,clock,monotonic_ns,realtime_ns,error_ns) VALUES"
		"(2,1000000,1000000,%llu,1),(2,100000000,100000000,%llu,1),(2,150000000,150000000,%"
		"llu,1),"
		"(2,301000000,301000000,%llu,1);"
		"INSERT INTO note VALUES(7,0,0,0,'clock stepped by -%llu.000 ms')",
		(unsigned long long)CREATED, (unsigned long long)CREATED + MS,
		(unsigned long long)CREATED + 100 * MS,
		(unsigned long long)(CREATED - by_ns + 150 * MS),
		(unsigned long long)(CREATED - by_ns + 301 * MS), (unsigned long long)by_ns / MS);
	help_exec(db, sql);
}

START_TEST(a_clock_that_is_set_back)
{
	static const uint64_t by_ns[] = {3600ull * SECOND, 5ull * SECOND, 50ull * MS};
	struct profile *p;
	struct facts *f;
	sqlite3 *db;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		db = session();
		help_exec(db, "DELETE FROM trace");
		put_set_back(db, by_ns[i]);
		f = all_of(db, &p);
		ck_assert_uint_eq(f->step->n, 1);
		ck_assert_uint_eq(f->step->step[0].ops, 2);
		ck_assert_uint_eq(f->step->step[0].part_ns[PART_COMPUTE], 20 * MS);
		ck_assert_uint_eq(f->step->step[0].part_ns[PART_LAUNCH], 10 * MS);
		facts_free(f);
		profile_free(p);
		sqlite3_close(db);
	}
}
END_TEST

START_TEST(a_step_that_did_not_end)
{
	sqlite3 *db = session();
	struct rule_settings set;
	struct bottlenecks b;
	struct profile *p;
	struct facts *f;

	/* The tree has its time, and that of a scope in it; both are not the other steps'. */
	help_exec(db, "DELETE FROM trace;"
		      "UPDATE cell SET sum_ns = 900000000, open = 1 WHERE node = 1;"
		      "INSERT INTO node VALUES(5,x'05000000000000000000000000000001',1,1,'fetch')");
	help_exec(db,
		"INSERT INTO cell(session,process,segment,node,device,class,count,sum_ns,min_ns,"
		"max_ns,bytes,untimed,open) VALUES(7,1,0,5,-1,0,0,600000000,0,0,0,0,1)");
	put_timeline(db, false, true);
	f = all_of(db, &p);
	ck_assert_uint_eq(f->step->n, STEPS + 1);
	ck_assert(f->step->step[STEPS].cut && !f->step->step[0].cut);
	ck_assert(f->steps == STEPS && f->step_ns == STEPS * 10e6 && f->whole_ns == f->step_ns);
	ck_assert(f->node[5].cpu_ns == 0 && f->node[1].cpu_ns == f->step_ns);
	ck_assert(fabs(f->idle.share - 0.62) < 1e-9 && fabs(f->idle.ns - 186e6) < 1);
	rule_defaults(&set);
	bottlenecks_find(f, &set, &b);
	ck_assert_int_eq(b.rule[RULE_slow_steps].state, RULE_CLEAN);
	ck_assert_str_eq(b.rule[RULE_slow_steps].note,
		"step 31 was cut off after 600.000 ms, 60.0 times the median");
	facts_free(f);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* What the rules make of it: the wait costs little, so the words are that it is harmless. */
START_TEST(verdicts_of_a_database)
{
	const struct profile_select all = {0};
	sqlite3 *db = session();
	struct rule_settings set;
	struct bottlenecks b;
	struct profile *p;
	struct facts *f;
	struct export_left left;
	struct err e;

	ck_assert_int_eq(profile_load(db, 7, &all, &p, &e), 0);
	ck_assert_int_eq(facts_new(p, NULL, &f), 0);
	ck_assert_int_eq(facts_read(f, db, 7, &all, 0, &left, &e), 0);
	rule_defaults(&set);
	set.threshold[RULE_cpu_gpu_sync] = 5;
	bottlenecks_find(f, &set, &b);
	ck_assert_int_eq(b.rule[RULE_cpu_gpu_sync].state, RULE_CLEAN);
	ck_assert_str_eq(b.rule[RULE_cpu_gpu_sync].note,
		"the host waits 37.0% of the steps, and 3.4% "
		"behind that the GPU was idle: harmless");
	ck_assert_int_eq(b.rule[RULE_clock_throttle].state, RULE_FOUND);
	ck_assert_int_eq(b.rule[RULE_shared_gpu].state, RULE_FOUND);
	ck_assert_int_eq(b.rule[RULE_recompiles].state, RULE_FOUND);
	ck_assert_int_eq(b.rule[RULE_exposed_comm].state, RULE_LACKS);
	ck_assert_uint_eq(b.rule[RULE_exposed_comm].lacks, 1u << NEED_PARTS);
	facts_free(f);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* --- a part of it */

static struct facts *part(sqlite3 *db, const struct profile_select *s, struct profile **p, int want)
{
	struct export_left left;
	struct facts *f = NULL;
	struct err e;

	*p = NULL;
	ck_assert_int_eq(facts_load(&f, p, db, 7, s, &left, &e), want);
	return f;
}

/* The last 3 ms of the second step, all of the third, 2 ms of the fourth: what reaches out counts with what lies in it. */
START_TEST(a_window)
{
	const struct profile_select in = {.from_ns = 18 * MS, .to_ns = 33 * MS};
	sqlite3 *db = session();
	struct profile *p;
	struct facts *f;
	uint32_t k, at;
	uint64_t sum = 0;

	f = part(db, &in, &p, 0);
	at = profile_find_metric(p, "cpu_time (ns)");
	ck_assert(value_number(profile_value(p, 1, at)) == 15e6);
	ck_assert(f->whole == WHOLE_STEPS && f->steps == 3 && f->step_ns == 15e6);
	ck_assert(f->step_gpu_ns == 5600000);
	ck_assert_uint_eq(p->head.duration_ns, 15 * MS);
	ck_assert_uint_eq(f->step->n, 1); /* the one that lies in it wholly */
	ck_assert_uint_eq(f->step->step[0].begin_ns, 21 * MS);
	for (k = 0; k < PART_MAX; k++)
		sum += p->device[0].part_ns[k];
	ck_assert_uint_eq(sum, 15 * MS);
	ck_assert_uint_eq(site(f->wait, "cudaEventSynchronize")->calls, 1);
	ck_assert(f->is_part && f->rank == NULL);
	facts_free(f);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* A scope's flops, as far as its time lies in the window. */
START_TEST(told_in_a_window)
{
	const struct profile_select in = {.from_ns = 16 * MS, .to_ns = 26 * MS};
	sqlite3 *db = session();
	struct profile *p;
	struct facts *f;
	uint32_t at;

	help_exec(db, "INSERT INTO metric(session,process,segment,node,name,kind,value,count) "
		      "VALUES(7,1,0,1,'flops16',0,30000000000,30)");
	f = part(db, &in, &p, 0);
	at = profile_find_metric(p, "flops16");
	ck_assert_uint_ne(at, PROFILE_NONE);
	ck_assert(fabs(value_number(profile_value(p, 1, at)) - 1e9) < 1);
	facts_free(f);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* Steps by their number, and by the end of a path: of 10 ms each, with 3.8 ms of work. */
START_TEST(steps_and_scopes)
{
	const struct profile_select some = {.first_step = 3, .last_step = 4},
				    scope = {.scope = "step"},
				    third = {.scope = "step", .first_step = 3, .last_step = 3},
				    none = {.scope = "tep"},
				    late = {.from_ns = 9000ull * MS, .to_ns = 9001ull * MS};
	sqlite3 *db = session();
	struct profile *p;
	struct facts *f;

	f = part(db, &some, &p, 0);
	ck_assert(f->steps == 2 && f->step_ns == 20e6 && fabs(f->step_gpu_ns - 7.6e6) < 1);
	ck_assert_uint_eq(f->step->n, 2);
	facts_free(f);
	profile_free(p);
	f = part(db, &scope, &p, 0);
	ck_assert(f->steps == STEPS && f->step_ns == 300e6 && f->whole == WHOLE_STEPS);
	facts_free(f);
	profile_free(p);
	f = part(db, &third, &p, 0);
	ck_assert(f->steps == 1 && f->step_ns == 10e6);
	facts_free(f);
	profile_free(p);
	ck_assert_ptr_null(part(db, &none, &p, -ENOENT));
	profile_free(p);
	ck_assert_ptr_null(part(db, &late, &p, -ENOENT));
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* A window in which no step is, as of a server: its seconds are what calls are counted by. */
START_TEST(a_window_without_steps)
{
	const struct profile_select in = {.from_ns = 1 * MS, .to_ns = 301 * MS};
	sqlite3 *db = session();
	struct rule_settings set;
	struct bottlenecks b;
	struct profile *p;
	struct facts *f;

	help_exec(db, "UPDATE node SET name = 'request' WHERE id = 1");
	f = part(db, &in, &p, 0);
	ck_assert(f->whole == WHOLE_SESSION && f->step_ns == 300e6);
	ck_assert(fabs(f->steps - 0.3) < 1e-9 && fabs(f->idle.share - 0.62) < 1e-2);
	rule_defaults(&set);
	set.threshold[RULE_cpu_gpu_sync] = 5;
	bottlenecks_find(f, &set, &b);
	ck_assert_int_eq(b.rule[RULE_jitter].state, RULE_LACKS);
	ck_assert_int_eq(b.rule[RULE_data_loader].state, RULE_CLEAN);
	ck_assert_ptr_nonnull(strstr(b.rule[RULE_cpu_gpu_sync].note, "37.0% of the recorded time"));
	facts_free(f);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* Windows of 50 ms are the steps, whatever scopes are called so: each has five of those in it. */
START_TEST(windows_are_steps)
{
	const struct profile_select all = {.every_ns = 50 * MS},
				    second = {.every_ns = 50 * MS, .first_step = 2, .last_step = 2},
				    late = {.every_ns = 50 * MS,
					    .first_step = 900,
					    .last_step = 900};
	sqlite3 *db = session();
	struct export_left left;
	struct profile *p;
	struct steps *s;
	struct facts *f;
	struct err e;

	ck_assert_int_eq(steps_read(db, 7, &all, &left, &s, &e), 0);
	ck_assert_uint_eq(s->n, 7);
	ck_assert(
		s->step[0].number == 1 && s->step[0].begin_ns == 0 && s->step[0].end_ns == 50 * MS);
	ck_assert(s->step[1].number == 2 && s->step[1].ops == 5);
	ck_assert_uint_eq(s->step[1].part_ns[PART_COMPUTE], 19 * MS);
	ck_assert_str_eq(s->value_name[0], "flops16");
	ck_assert(s->value[0][0] == 5e9 && s->value[0][1] == 5e9 && isnan(s->value[0][6]));
	steps_free(s);
	help_exec(db, "INSERT INTO metric(session,process,segment,node,name,kind,value,count) "
		      "VALUES(7,1,0,1,'flops16',2,1000000000,30)");
	ck_assert_int_eq(steps_read(db, 7, &all, &left, &s, &e), 0);
	ck_assert(s->value[0][1] == 1e9); /* a property: the last */
	steps_free(s);

	f = part(db, &second, &p, 0);
	ck_assert(f->whole == WHOLE_SESSION && f->steps == 1 && f->step_ns == 50e6);
	ck_assert(fabs(f->step_gpu_ns - 19e6) < 1);
	facts_free(f);
	profile_free(p);
	ck_assert_ptr_null(part(db, &late, &p, -ENOENT));
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* An older database has no such tables, and a broken one is no crash. */
START_TEST(what_a_database_lacks)
{
	const struct profile_select all = {0};
	sqlite3 *db = session();
	struct profile *p;
	struct facts *f;
	struct export_left left;
	struct err e;

	ck_assert_int_eq(profile_load(db, 7, &all, &p, &e), 0);
	ck_assert_int_eq(facts_new(p, NULL, &f), 0);
	help_exec(db, "UPDATE reading SET bytes = x'0011'");
	ck_assert_int_eq(facts_read(f, db, 7, &all, 0, &left, &e), -EBADMSG);
	facts_free(f);
	ck_assert_int_eq(facts_new(p, NULL, &f), 0);
	help_exec(db, "DROP TABLE reading; DELETE FROM trace");
	ck_assert_int_eq(facts_read(f, db, 7, &all, 0, &left, &e), 0);
	ck_assert(f->device == NULL && f->wait == NULL);
	facts_free(f);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

#define TESTS(X)                    \
	X(facts_of_a_database)      \
	X(gaps_behind_a_wait)       \
	X(a_warm_up)                \
	X(a_start)                  \
	X(much_is_lost)             \
	X(the_begin_is_gone)        \
	X(a_step_that_did_not_end)  \
	X(a_clock_that_is_set_back) \
	X(lost_once)                \
	X(much_is_lost_of_one)      \
	X(verdicts_of_a_database)   \
	X(a_window)                 \
	X(told_in_a_window)         \
	X(steps_and_scopes) X(a_window_without_steps) X(windows_are_steps) X(what_a_database_lacks)
HELP_SUITE("view_facts", TESTS)
