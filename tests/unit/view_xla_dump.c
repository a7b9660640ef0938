/* SPDX-License-Identifier: MIT. view_xla_dump.c: names out of texts in the form of XLA's dumps. */
#include <sys/stat.h>
#include <unistd.h>

#include "view_help.h"
#include "xla_shade.h"

static const char step[] =
	"HloModule jit_step, is_scheduled=true, "
	"entry_computation_layout={(f32[8]{0})->f32[8]{0}}\n\n"
	"%fused_computation.3 (param_0: f32[8]) -> f32[8] {\n"
	"  ROOT %add.9 = f32[8]{0} add(%param_0, %param_0), metadata={op_name=\"jit(step)/add\" "
	"source_file=\"/x/train.py\" source_line=18}\n}\n\n"
	"ENTRY %main.5 (p: f32[8]) -> f32[8] {\n"
	"  %p = f32[8]{0} parameter(0)\n"
	"  %fusion.3 = f32[8]{0} fusion(%p), kind=kLoop, calls=%fused_computation.3, "
	"metadata={op_name=\"jit(step)/jit(main)/dot_general\" source_file=\"/x/train.py\" "
	"source_line=17}\n"
	"  %loop_add.7 = f32[8]{0} fusion(%p), metadata={op_name=\"jit(step)/a\\\"b\\040c\"}\n"
	"  %bare.1 = f32[8]{0} fusion(%p)\n"
	"  ROOT %tuple = f32[8]{0} tuple(%fusion.3)\n}\n";
/* The newer form; fusion.3 is another one here. */
static const char eval[] =
	"HloModule jit_eval, is_scheduled=true\n\nFileNames\n1 \"/x/eval.py\"\n2 \"/x/lib.py\"\n\n"
	"FunctionNames\n1 \"main\"\n\nFileLocations\n"
	"1 {file_name_id=1 function_name_id=1 line=5 end_line=5 column=1 end_column=2}\n"
	"2 {file_name_id=2 function_name_id=1 line=71 end_line=71 column=1 end_column=2}\n"
	"9999999999 {file_name_id=2 function_name_id=1 line=1}\n\n"
	"StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=2 "
	"parent_frame_id=1}\n"
	"3 {file_location_id=77 parent_frame_id=1}\n\n"
	"ENTRY %main {\n  fusion.3 = f32[] fusion(), metadata={op_name=\"jit(eval)/reduce_sum\" "
	"stack_frame_id=2}\n"
	"  copy.1 = f32[] copy(), metadata={op_name=\"x\" stack_frame_id=3}\n"
	"  copy.2 = f32[] copy(), metadata={op_name=\"y\" stack_frame_id=4000000}\n}\n";

static char dir[] = "/tmp/xla_dump.XXXXXX";

static void file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void teardown(void)
{
	static const char *const names[] = {
		"module_0001.jit_step.sm_9.0_gpu_after_optimizations.txt",
		"module_0002.jit_eval.gpu_after_optimizations.txt",
		"module_0001.jit_step.gpu_after_optimizations-buffer-assignment.txt",
		"module_0003.odd.cpu_after_optimizations.txt"};
	char path[256];

	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	(void)rmdir(dir);
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
}

static int name(struct profile *p, const char *from, struct xla_named *ret, struct err *e)
{
	struct xla_dump *d;
	int r = xla_dump_open(from, &d, e);

	if (r < 0)
		return r;
	r = xla_dump_name(d, p, ret, e);
	xla_dump_free(d);
	return r;
}

static const char *property(const struct profile *p, uint32_t node, const char *name)
{
	const uint32_t m = profile_find_metric(p, name);

	return m == PROFILE_NONE || profile_value(p, node, m)->type != VALUE_STR
		       ? ""
		       : profile_value(p, node, m)->s;
}

START_TEST(scopes_and_kernels)
{
	struct profile *p = profile_new();
	struct xla_named x;
	struct err e;
	uint32_t module, other, fusion, kernel, below, inside, only, both, bare, odd;

	file("module_0001.jit_step.sm_9.0_gpu_after_optimizations.txt", step);
	file("module_0002.jit_eval.gpu_after_optimizations.txt", eval);
	file("module_0001.jit_step.gpu_after_optimizations-buffer-assignment.txt", "nothing\n");
	module = profile_add_node(p, 0, "jit_step", NODE_SCOPE);
	fusion = profile_add_node(p, module, "fusion.3", NODE_SCOPE);
	inside = profile_add_node(p, fusion, "fusion_3", NODE_KERNEL);
	bare = profile_add_node(p, module, "bare.1", NODE_SCOPE);
	other = profile_add_node(p, 0, "jit_eval", NODE_SCOPE);
	kernel = profile_add_node(p, other, "fusion_3", NODE_KERNEL);
	odd = profile_add_node(p, other, "copy.1", NODE_SCOPE);
	below = profile_add_node(p, 0, "train", NODE_SCOPE);
	both = profile_add_node(p, below, "fusion_3", NODE_KERNEL);
	only = profile_add_node(p, below, "loop_add_7", NODE_KERNEL);
	ck_assert_int_eq(name(p, dir, &x, &e), 0);
	ck_assert_uint_eq(x.files, 2);
	ck_assert_uint_eq(x.operators, 6);
	ck_assert_str_eq(p->node[module].name, "jit_step");
	ck_assert_str_eq(p->node[fusion].name, "fusion.3: dot_general (train.py:17)");
	ck_assert_str_eq(property(p, fusion, "op_name"), "jit(step)/jit(main)/dot_general");
	ck_assert_str_eq(property(p, fusion, "source"), "/x/train.py:17");
	ck_assert_str_eq(p->node[inside].name, "fusion_3"); /* a part of it */
	ck_assert_str_eq(p->node[bare].name, "bare.1");
	ck_assert_str_eq(p->node[kernel].name, "fusion_3: reduce_sum (lib.py:71)");
	ck_assert_str_eq(p->node[odd].name, "copy.1: x");
	ck_assert_str_eq(property(p, odd, "source"), "");
	ck_assert_str_eq(p->node[both].name, "fusion_3"); /* of either module */
	ck_assert_str_eq(p->node[only].name, "loop_add_7: a\"b c");
	ck_assert_uint_eq(x.named, 4);
	ck_assert_uint_eq(x.unsure, 1);
	profile_free(p);
}
END_TEST

START_TEST(no_dump)
{
	struct profile *p = profile_new();
	struct xla_named x;
	struct err e;

	ck_assert_int_eq(name(p, "/nonexistent/dump", &x, &e), -ENOENT);
	file("module_0001.jit_step.gpu_after_optimizations-buffer-assignment.txt", step);
	ck_assert_int_eq(name(p, dir, &x, &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.text, "--xla_dump_hlo_as_text"));
	profile_free(p);
}
END_TEST

/* Cut anywhere, it is read as far as it goes. */
START_TEST(cut_off)
{
	struct profile *p = profile_new();
	struct xla_named x;
	char text[sizeof(eval)];
	struct err e;

	(void)profile_add_node(p, 0, "copy.2", NODE_SCOPE);
	for (size_t n = 0; n < sizeof(eval); n += 3) {
		memcpy(text, eval, n);
		text[n] = '\0';
		file("module_0003.odd.cpu_after_optimizations.txt", text);
		ck_assert_int_eq(name(p, dir, &x, &e), 0);
		ck_assert_uint_le(x.operators, 3);
	}
	profile_free(p);
}
END_TEST

static void has(sqlite3 *db, const char *table, int64_t id, const char *want)
{
	sqlite3_stmt *q;
	char sql[96];

	(void)snprintf(sql, sizeof(sql), "SELECT name FROM %s WHERE id=%d", table, (int)id);
	ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
	ck_assert_str_eq((const char *)sqlite3_column_text(q, 0), want);
	(void)sqlite3_finalize(q);
}

/* Of one session of a database, whatever order its nodes have; the file stays as it is. */
START_TEST(before_a_database)
{
	sqlite3 *db = help_db(":memory:");
	struct xla_shade shade = {.done = false};
	struct xla_dump *d;
	struct err e;

	file("module_0001.jit_step.sm_9.0_gpu_after_optimizations.txt", step);
	file("module_0002.jit_eval.gpu_after_optimizations.txt", eval);
	help_process(db, 1, 100, "0", "NULL", 2, "");
	help_session(db, 7, "x", "run", "on");
	help_session(db, 8, "other", "run", "on");
	help_exec(db,
		"INSERT INTO node VALUES(1,x'01',9,1,'fusion.3'),(9,x'09',0,1,'jit_eval'),"
		"(3,x'03',0,1,'jit_step'),(4,x'04',3,1,'fusion.3'),(5,x'05',3,1,'loop_add.7'),"
		"(6,x'06',6,1,'loop_add.7')"); /* its own parent: forged */
	help_exec(db, "INSERT INTO metric VALUES(7,1,0,1,'m',1,1,1),(7,1,0,4,'m',1,1,1),"
		      "(8,1,0,5,'m',1,1,1),(7,1,0,6,'m',1,1,1)");
	ck_assert_int_eq(xla_dump_open(dir, &d, &e), 0);
	shade.dump = d;
	ck_assert_int_eq(xla_shade(&shade, db, 7, &e), 0);
	ck_assert(shade.done && shade.named.named == 3);
	has(db, "node", 1, "fusion.3: reduce_sum (lib.py:71)");
	has(db, "node", 4, "fusion.3: dot_general (train.py:17)");
	has(db, "node", 9, "jit_eval");
	has(db, "node", 5, "loop_add.7"); /* the other session's */
	has(db, "node", 6, "loop_add.7: a\"b c");
	has(db, "main.node", 1, "fusion.3");
	xla_dump_free(d);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

#define TESTS(X) X(scopes_and_kernels) X(no_dump) X(cut_off) X(before_a_database)

Suite *suite(void);

Suite *suite(void)
{
	Suite *s = suite_create("view_xla_dump");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup, teardown);
#define X(name) tcase_add_test(c, name);
	TESTS(X)
#undef X
	suite_add_tcase(s, c);
	return s;
}
