/* SPDX-License-Identifier: MIT. view_load.c: a session of a database becomes a profile. */
#include "view_help.h"

#include <sys/stat.h>

#include "pick.h"
#include "print.h"
#include "print_json.h"

static struct profile *load(sqlite3 *db, int64_t id, struct profile_select s)
{
	struct profile *p = NULL;
	struct err e = {0};

	ck_assert_msg(profile_load(db, id, &s, &p, &e) == 0, "%s", e.text);
	return p;
}

START_TEST(all_is_merged)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;

	help_train(db);
	p = load(db, 7, (struct profile_select){0});
	ck_assert_uint_eq(p->n_nodes, 6);
	ck_assert_str_eq(p->node[1].name, "step");
	ck_assert_uint_eq(p->node[help_node(p, "sgemm")].parent, help_node(p, "forward"));
	ck_assert_uint_eq(help_value(p, "sgemm", "time (ns)")->u, 3000);
	ck_assert_uint_eq(help_value(p, "sgemm", "count")->u, 15);
	ck_assert_uint_eq(help_value(p, "sgemm", "untimed")->u, 1);
	ck_assert_uint_eq(help_value(p, "step", "cpu_time (ns)")->u, 1500);
	ck_assert_uint_eq(help_value(p, "step", "calls")->u, 3);
	ck_assert_uint_eq(help_value(p, "step", "time (ns)")->type, VALUE_NONE);
	ck_assert_uint_eq(help_value(p, "[memcpy HtoD]", "copy_time (ns)")->u, 64);
	ck_assert_uint_eq(help_value(p, "[memcpy HtoD]", "copies")->u, 3);
	ck_assert_uint_eq(help_value(p, "[memcpy HtoD]", "copy_bytes")->u, 4096);
	ck_assert_uint_eq(help_value(p, "[memcpy HtoD]", "time (ns)")->type, VALUE_NONE);
	ck_assert_int_eq(help_value(p, "sgemm", "flops8")->i, 1500000);
	ck_assert_double_eq(help_value(p, "forward", "loss")->f, 0.5);
	ck_assert_str_eq(help_value(p, "forward", "tag")->s, "second"); /* a property: the last */
	ck_assert_uint_eq(p->metric[profile_find_metric(p, "flops8")].kind, KIND_INCLUSIVE);
	ck_assert_uint_eq(p->metric[profile_find_metric(p, "cpu_time (ns)")].kind, KIND_EXCLUSIVE);
	ck_assert_uint_eq(p->node[help_node(p, "nccl")].class, CLASS_COMM);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* The Python package measures it in each process that samples (_sampling.py). */
START_TEST(recording_cost_is_the_mean_of_the_processes)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;

	help_train(db);
	p = load(db, 7, (struct profile_select){0});
	ck_assert_double_nan(p->head.recording_cost);
	profile_free(p);
	help_exec(db, "INSERT INTO metric VALUES (7,1,0,11,'recording_cost',2,0.06,1),"
		      "(7,2,0,11,'recording_cost',2,0.02,1),(7,2,1,11,'recording_cost',2,9e999,1)");
	p = load(db, 7, (struct profile_select){0});
	ck_assert_double_eq_tol(p->head.recording_cost, 0.04, 1e-9);
	profile_free(p);
	p = load(db, 7, (struct profile_select){.process = "1"});
	ck_assert_double_eq_tol(p->head.recording_cost, 0.02, 1e-9);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

static void put_overhead(struct profile *p, uint8_t class, int64_t ns)
{
	const uint32_t m = profile_add_metric(p, "overhead_time (ns)", KIND_INCLUSIVE),
		       n = profile_add_node(p, 0, gpu_classes[class].leaf, NODE_CALL);

	p->node[n].class = class;
	ck_assert_int_eq(profile_set(p, n, m, (struct value){.type = VALUE_I64, .i = ns}), 0);
}

/* The driver's and CUPTI's, where they were recorded. */
START_TEST(overhead_in_the_head)
{
	const struct term term = {0};
	sqlite3 *db = help_db(":memory:");
	struct text t = {0};
	struct profile *p;

	help_train(db);
	p = load(db, 7, (struct profile_select){0});
	print_head(&t, p, &term);
	text_char(&t, '\0');
	ck_assert_ptr_null(strstr(t.s, "overhead in calls"));
	text_fini(&t);
	put_overhead(p, CLASS_LAZY_LOAD, 3000000);
	put_overhead(p, CLASS_QUEUE_FULL, 1000000);
	put_overhead(p, CLASS_BUFFER_ASK, 2000000);
	print_head(&t, p, &term);
	text_char(&t, '\0');
	ck_assert_ptr_nonnull(
		strstr(t.s, "\noverhead in calls: the driver 4.0 ms, CUPTI 2.0 ms\n"));
	text_fini(&t);
	envelope_session(&t, p);
	text_char(&t, '\0');
	ck_assert_ptr_nonnull(strstr(t.s, ",\"overhead_in_calls\":{\"driver_ns\":4000000.0,"
					  "\"cupti_ns\":2000000.0,\"other_ns\":0.0}"));
	text_fini(&t);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* An older agent's, but for launches, and children whoever lost them. */
START_TEST(losses_that_are_not_exact)
{
	const struct term term = {0};
	sqlite3 *db = help_db(":memory:");
	struct text t = {0};
	struct profile *p;
	char *said;
	size_t n;
	uint32_t i;

	help_train(db);
	help_exec(db, "UPDATE process SET flags = 0 WHERE id = 2;"
		      "INSERT INTO loss VALUES(7,1,14,1)");
	p = load(db, 7, (struct profile_select){0});
	ck_assert_uint_eq(p->head.n_losses, 3);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(p->head.losses[i].about, p->head.losses[i].cause != 11);
	print_head(&t, p, &term);
	ck_assert_int_eq(text_take(&t, &said, &n), 0);
	ck_assert_ptr_nonnull(strstr(said, "drops about 10"));
	ck_assert_ptr_nonnull(strstr(said, "dropped about 7: the lane was full"));
	ck_assert_ptr_nonnull(strstr(said, "dropped 2: launches without"));
	ck_assert_ptr_nonnull(strstr(said, "dropped about 1: forked children"));
	free(said);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

START_TEST(head_says_what_it_is_worth)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;
	uint32_t i;
	bool killed = false, open = false, lost = false;

	help_train(db);
	p = load(db, 7, (struct profile_select){0});
	ck_assert_str_eq(p->head.name, "train");
	ck_assert_str_eq(p->head.uuid, "abc00007000000000000000000000007");
	ck_assert_str_eq(p->head.state, "finalized");
	ck_assert_str_eq(p->head.source, "live");
	ck_assert_str_eq(p->head.command, "python train.py");
	ck_assert_uint_eq(p->head.duration_ns, 1000000000);
	ck_assert_uint_eq(p->head.n_processes, 2);
	ck_assert_uint_eq(p->head.unmatched, 2);
	ck_assert_double_eq_tol(p->head.overhead, 0.0105, 1e-9); /* one process lived 10 s */
	ck_assert_ptr_null(p->head.gpu_why);
	ck_assert_uint_eq(p->head.n_losses, 2);
	ck_assert_uint_eq(p->head.losses[0].count, 7);
	for (i = 0; i < p->head.n_notes; i++) {
		killed |= strstr(p->head.notes[i], "process 4243 was killed") != NULL;
		open |= strstr(p->head.notes[i], "1 scope was still open") != NULL;
		lost |= strstr(p->head.notes[i], "much of the GPU's work was lost") != NULL;
	}
	ck_assert(killed && open && lost);
	ck_assert_uint_eq(p->head.n_notes, 4); /* and 'a gap', once */
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

START_TEST(devices_are_merged_by_uuid)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;

	help_train(db);
	p = load(db, 7, (struct profile_select){0});
	/* Rank 0's device 0 is rank 1's device 1; nobody used the 33… one. */
	ck_assert_uint_eq(p->n_devices, 2);
	ck_assert_str_eq(p->device[0].id, "0");
	ck_assert_uint_eq(p->device[0].uuid[0], 0x11);
	ck_assert_uint_eq(p->device[0].busy_ns, 500000000);
	ck_assert_uint_eq(p->device[1].uuid[0], 0x22);
	ck_assert_str_eq(p->device[1].arch_text, "90");
	ck_assert_uint_eq(p->device[1].num_sms, 132);
	ck_assert_str_eq(help_value(p, "sgemm", "device_id")->s, "0"); /* the larger share */
	ck_assert_str_eq(help_value(p, "nccl", "device_id")->s, "1");
	ck_assert_str_eq(help_value(p, "nccl", "device_type")->s, "CUDA");
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

START_TEST(durations_and_configs)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;
	uint32_t k;

	help_train(db);
	p = load(db, 7, (struct profile_select){0});
	k = help_node(p, "sgemm");
	ck_assert_uint_eq(p->durations[k].min_ns, 50);
	ck_assert_uint_eq(p->durations[k].max_ns, 350);
	ck_assert_uint_eq(p->durations[k].n, 14);
	ck_assert_uint_eq(p->n_configs, 2);
	ck_assert_uint_eq(p->config[0].node, k);
	ck_assert_uint_eq(p->config[0].grid[0], 128);
	ck_assert_uint_eq(p->config[1].block[0], 128);
	profile_free(p);
	p = load(db, 7, (struct profile_select){.lean = true});
	ck_assert_ptr_null(p->durations);
	ck_assert_uint_eq(p->n_configs, 0);
	ck_assert_uint_eq(help_value(p, "sgemm", "time (ns)")->u, 3000);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

START_TEST(a_part_is_selected)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;
	struct err e = {0};

	help_train(db);
	p = load(db, 7, (struct profile_select){.process = "0"});
	ck_assert_uint_eq(help_value(p, "sgemm", "count")->u, 10);
	ck_assert_uint_eq(p->head.n_processes, 1);
	ck_assert_uint_eq(p->head.losses[0].count, 3);
	ck_assert(!p->head.losses[0].about);
	profile_free(p);
	p = load(db, 7, (struct profile_select){.process = "pid:4243"});
	ck_assert_uint_eq(help_value(p, "sgemm", "count")->u, 5);
	profile_free(p);
	p = load(db, 7, (struct profile_select){.one_phase = true, .phase = 1});
	ck_assert_uint_eq(help_value(p, "sgemm", "count")->u, 1);
	ck_assert_uint_eq(p->head.duration_ns, 600000000);
	profile_free(p);
	ck_assert_int_eq(
		profile_load(db, 7, &(struct profile_select){.process = "9"}, &p, &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.text, "'9'"));
	ck_assert_int_eq(profile_load(db, 8, NULL, &p, &e), -ENOENT);
	sqlite3_close(db);
}
END_TEST

START_TEST(why_there_is_no_gpu_data)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;

	help_process(db, 1, 1, "NULL", "NULL", 3, "no driver: install one");
	help_process(db, 2, 2, "NULL", "NULL", 2, "");
	help_session(db, 1, "failed", "run", "on");
	help_session(db, 2, "idle", "run", "on");
	help_session(db, 3, "unasked", "auto", "none");
	help_exec(db, "INSERT INTO member VALUES(1,1),(2,2),(3,1)");
	p = load(db, 1, (struct profile_select){0});
	ck_assert_str_eq(p->head.gpu_why, "no driver: install one");
	ck_assert_uint_eq(p->n_nodes, 1);
	profile_free(p);
	p = load(db, 2, (struct profile_select){0});
	ck_assert_ptr_nonnull(strstr(p->head.gpu_why, "launched no kernel"));
	profile_free(p);
	/* It launched: what is missing are the records. */
	help_exec(db, "UPDATE session SET launches = 5, state = 'active' WHERE id = 2");
	p = load(db, 2, (struct profile_select){0});
	ck_assert_ptr_nonnull(strstr(p->head.gpu_why, "5 launches have no GPU record yet"));
	profile_free(p);
	help_exec(db, "UPDATE session SET state = 'finalized' WHERE id = 2");
	p = load(db, 2, (struct profile_select){.process = "pid:2"});
	ck_assert_ptr_nonnull(strstr(p->head.gpu_why, "5 launches have no GPU record: the head"));
	profile_free(p);
	p = load(db, 3, (struct profile_select){0});
	ck_assert_ptr_null(p->head.gpu_why);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

START_TEST(own_cpu_time_replaces_ours)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;

	help_train(db);
	help_exec(db, "INSERT INTO metric VALUES(7,1,0,12,'cpu_time (ns)',1,123,1)");
	p = load(db, 7, (struct profile_select){0});
	ck_assert_int_eq(help_value(p, "forward", "cpu_time (ns)")->i, 123);
	ck_assert_uint_eq(help_value(p, "step", "cpu_time (ns)")->u, 1500);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* What a damaged or forged file may hold: refused in words, never followed. */
START_TEST(bad_trees_are_refused)
{
	static const struct {
		const char *sql, *words;
	} cases[] = {
		{"UPDATE node SET parent = 13 WHERE id = 11", "deeper"},
		{"UPDATE node SET parent = 12 WHERE id = 12", "deeper"},
		{"DELETE FROM node WHERE id = 12", "node 12 is missing"},
		{"DELETE FROM node WHERE id = 13", "node 13 is missing"},
		{"DROP TABLE cell", "no such table"},
		{"DROP TABLE node", "no such table"},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sqlite3 *db = help_db(":memory:");
		struct profile *p = NULL;
		struct err e = {0};

		help_train(db);
		help_exec(db, cases[i].sql);
		ck_assert_int_eq(profile_load(db, 7, NULL, &p, &e), -EBADMSG);
		ck_assert_msg(strstr(e.text, cases[i].words) != NULL, "%s", e.text);
		ck_assert_ptr_null(p);
		ck_assert_int_eq(sqlite3_close(db), SQLITE_OK); /* no statement was left open */
	}
}
END_TEST

START_TEST(odd_values_are_bounded)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;
	uint32_t i, noted = 0;

	help_train(db);
	help_exec(db,
		"UPDATE cell SET count = -5, sum_ns = 9223372036854775807, hist = zeroblob(5000),"
		" class = 77, device = 12345 WHERE node = 13;"
		"UPDATE node SET kind = -1, name = CAST(x'ff00' AS TEXT) WHERE id = 12;"
		"INSERT INTO metric VALUES(7,1,0,13,'blob',0,x'0102',1);"
		"INSERT INTO metric VALUES(7,1,0,13,'big',0,9223372036854775807,1),"
		" (7,2,0,13,'big',0,9223372036854775807,1)");
	p = load(db, 7, (struct profile_select){0});
	ck_assert_uint_eq(help_value(p, "sgemm", "count")->u, 0);
	ck_assert_uint_eq(help_value(p, "sgemm", "time (ns)")->u, 0);
	ck_assert_uint_eq(help_value(p, "sgemm", "device_id")->type, VALUE_NONE);
	ck_assert_double_eq(help_value(p, "sgemm", "big")->f, 0x1p64);
	ck_assert_uint_eq(help_node(p, "\xef\xbf\xbd\xe2\x90\x80"), 2);
	for (i = 0; i < p->head.n_notes; i++)
		noted += strstr(p->head.notes[i], "sums of nodes: some of these are damaged") !=
			 NULL;
	ck_assert_uint_eq(noted, 1);
	ck_assert_ptr_nonnull(strstr(p->head.notes[p->head.n_notes - 1], "unknown type"));
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

START_TEST(surplus_metrics_are_left_out)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;

	help_train(db);
	help_exec(db,
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
		"INSERT INTO metric SELECT 7, 1, 0, 13, 'm' || i, 0, i, 1 FROM n");
	p = load(db, 7, (struct profile_select){0});
	ck_assert_uint_lt(p->n_metrics, PROFILE_METRICS_MAX);
	ck_assert_uint_gt(help_value(p, "sgemm", "time (ns)")->u, 0);
	ck_assert_ptr_nonnull(strstr(p->head.notes[p->head.n_notes - 1], "beyond 960 names"));
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* ROOT may be a row of its own; ids may lie far apart; children may have lower ids than parents. */
START_TEST(any_row_ids)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;

	help_process(db, 1, 1, "NULL", "NULL", 2, "");
	help_session(db, 1, "ids", "run", "none");
	help_exec(db, "INSERT INTO member VALUES(1,1);"
		      "INSERT INTO node VALUES(1,x'01',0,0,'ROOT'),(9000000000,x'02',1,1,'late'),"
		      " (5,x'03',9000000000,1,'early'),(-7,x'04',5,1,'negative');"
		      "INSERT INTO cell VALUES(1,1,0,-7,-1,0,1,10,10,10,0,0,0,NULL,NULL),"
		      " (1,1,0,1,-1,0,1,20,20,20,0,0,0,NULL,NULL);");
	p = load(db, 1, (struct profile_select){0});
	ck_assert_uint_eq(p->n_nodes, 4);
	ck_assert_str_eq(p->node[1].name, "late");
	ck_assert_str_eq(p->node[2].name, "early");
	ck_assert_uint_eq(help_value(p, "negative", "cpu_time (ns)")->u, 10);
	ck_assert_uint_eq(help_value(p, "ROOT", "cpu_time (ns)")->u, 20);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* A file of another version, which nobody may write to: what it lacks is its default, and what
 * nobody knows is not looked at. */
START_TEST(another_versions_columns)
{
	char path[64];
	struct profile *p;
	struct err e = {0};
	bool partial;
	sqlite3 *db;

	help_temporary(path);
	db = help_db(path);
	help_train(db);
	help_exec(db, "ALTER TABLE cell DROP COLUMN hist; ALTER TABLE session DROP COLUMN token;"
		      "ALTER TABLE session DROP COLUMN finalized_ns;"
		      "ALTER TABLE session ADD COLUMN later INTEGER NOT NULL DEFAULT 7");
	(void)sqlite3_close(db);
	ck_assert_int_eq(chmod(path, 0400), 0);
	ck_assert_msg(pick_open(path, &db, &partial, &e) == 0, "%s", e.text);
	p = load(db, 7, (struct profile_select){0});
	ck_assert_uint_eq(help_value(p, "sgemm", "time (ns)")->u, 3000);
	ck_assert_str_eq(p->head.name, "train");
	ck_assert_int_eq(p->head.row.finalized_ns, 0);
	ck_assert_uint_gt(p->head.row.launches, 0);
	profile_free(p);
	sqlite3_close(db);
	(void)unlink(path);
}
END_TEST

#define TESTS(X)                                       \
	X(all_is_merged)                               \
	X(losses_that_are_not_exact)                   \
	X(overhead_in_the_head)                        \
	X(head_says_what_it_is_worth)                  \
	X(recording_cost_is_the_mean_of_the_processes) \
	X(devices_are_merged_by_uuid)                  \
	X(durations_and_configs)                       \
	X(a_part_is_selected)                          \
	X(why_there_is_no_gpu_data)                    \
	X(own_cpu_time_replaces_ours)                  \
	X(bad_trees_are_refused)                       \
	X(odd_values_are_bounded)                      \
	X(surplus_metrics_are_left_out) X(any_row_ids) X(another_versions_columns)
HELP_SUITE("view_load", TESTS)
