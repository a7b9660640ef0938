/* SPDX-License-Identifier: MIT. view_bursts.c: what a thread summed, in the files of other programs. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "export_format.h"
#include "quick.h"
#include "trace.h"
#include "view_help.h"

#define SUMMED 7u

static void store(struct trace_pack *k, sqlite3 *db)
{
	sqlite3_stmt *st;
	uint32_t n;
	void *bytes;

	ck_assert_int_eq(trace_pack_seal(k, &bytes, &n), 0);
	ck_assert_int_eq(
		sqlite3_prepare_v2(db,
			"INSERT INTO trace(session,process,number,first,events,end_ns,bytes)"
			" VALUES(7,1,0,0,?,0,?)",
			-1, &st, NULL),
		SQLITE_OK);
	(void)sqlite3_bind_int64(st, 1, trace_pack_events(k));
	(void)sqlite3_bind_blob(st, 2, bytes, (int)n, SQLITE_TRANSIENT);
	ck_assert_int_eq(sqlite3_step(st), SQLITE_DONE);
	(void)sqlite3_finalize(st);
	free(bytes);
}

/* A step, and what was summed in it and behind it; without: the step alone. */
static sqlite3 *session(bool with)
{
	sqlite3 *db = help_db(":memory:");
	struct trace_pack k = {0};

	help_process(db, 1, 100, "0", "NULL", 2, "");
	help_session(db, 7, "bursts", "run", "on");
	help_exec(db, "INSERT INTO member VALUES(7,1);"
		      "INSERT INTO node VALUES(1,x'01000000000000000000000000000001',0,1,'step')");
	ck_assert(trace_pack_node(&k, (const uint8_t[16]){1, [15] = 1}));
	ck_assert(trace_pack_text(&k, "worker", 6));
	ck_assert(trace_pack_thread(&k, &(struct trace_thread){101, 0}));
	ck_assert(trace_pack_scope(&k, &(struct trace_scope){.begin = 1000, .end = 9000}));
	if (with) {
		ck_assert(trace_pack_burst(&k, &(struct trace_burst){1500, 2500, 3, 0, 0}));
		ck_assert(trace_pack_burst(&k, &(struct trace_burst){9500, 9900, 4, 0, 0}));
	}
	store(&k, db);
	trace_pack_fini(&k);
	return db;
}

static bool has(const char *bytes, size_t n, const char *words, size_t length)
{
	return memmem(bytes, n, words, length) != NULL;
}

/* Of a step those that began in it; the scalar is there where the session has any. */
START_TEST(scalars)
{
	static const char three[] = "step/events_summed\x15\0\0\x40\x40";
	struct export_left left = {0};
	sqlite3 *db = session(_i > 0);
	struct err e;
	char *bytes;
	size_t n;
	FILE *f = open_memstream(&bytes, &n);

	ck_assert_int_eq(tensorboard_write(db, 7, NULL, f, &left, &e), 0);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_uint_eq(left.summed, _i > 0 ? SUMMED : 0);
	ck_assert(has(bytes, n, "step/time_ms", 12));
	ck_assert(has(bytes, n, three, sizeof(three) - 1) == (_i > 0));
	ck_assert(has(bytes, n, "events_summed", 13) == (_i > 0));
	free(bytes);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

static int drop(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

/* A location beside the thread's; without OTF2's library there is no archive. */
START_TEST(locations)
{
	char folder[] = "/tmp/view_bursts.XXXXXX", path[64];
	struct export_left left = {0};
	static char bytes[1 << 16];
	sqlite3 *db = session(_i > 0);
	struct err e;
	size_t n;
	FILE *f;
	int r;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	r = otf2_write(db, 7, NULL, folder, &left, &e);
	ck_assert_msg(r == 0 || r == -ENOTSUP, "%s", e.text);
	if (r == 0) {
		(void)snprintf(path, sizeof(path), "%s/traces.def", folder);
		f = fopen(path, "re");
		ck_assert_ptr_nonnull(f);
		n = fread(bytes, 1, sizeof(bytes), f);
		ck_assert_int_eq(fclose(f), 0);
		ck_assert(has(bytes, n, "worker (101)", 12));
		ck_assert(has(bytes, n, "worker (101), summed", 20) == (_i > 0));
		ck_assert(has(bytes, n, "events summed", 13) == (_i > 0));
		(void)snprintf(path, sizeof(path), "%s/traces/1.evt", folder);
		ck_assert((access(path, F_OK) == 0) == (_i > 0));
	}
	ck_assert_int_eq(nftw(folder, drop, 8, FTW_DEPTH | FTW_PHYS), 0);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("bursts");
	TCase *c = tcase_create("files");

	tcase_add_loop_test(c, scalars, 0, 2);
	tcase_add_loop_test(c, locations, 0, 2);
	suite_add_tcase(s, c);
	return s;
}
