/* SPDX-License-Identifier: MIT. view_golden.c: protonview's command line, its texts and exit codes.
 *
 * Each case runs in a child and is compared with tests/golden/NAME.txt. PROTOND_GOLDEN=write makes
 * the files anew: look at the difference before you keep them. */
#include <fcntl.h>
#include <locale.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "protonview_run.h"
#include "view_help.h"

#define G "tests/golden/"

static char database[64], portable[64], empty_dir[64], exported[96];

static const struct golden {
	const char *name; /* of the expected text; NULL: only the status and `words` count */
	int status;
	const char *words; /* in standard error */
	const char *args[12];
} cases[] = {
	{"tree_triton", 0, NULL, {G "triton.hatchet"}},
	{"tree_triton", 0, NULL, {G "triton.hatchet", "-m", "gpu_time/ms,gpu_count,cpu_time/ms"}},
	{"tree_kernels", 0, NULL, {G "kernels.hatchet"}},
	{"tree_kernels_full", 0, NULL, {G "kernels.hatchet", "--full-names", "-m", "time/us"}},
	{"tree_rows", 0, NULL, {G "kernels.hatchet", "-n", "4", "--print-sorted"}},
	{"json_rows", 0, NULL, {G "frames.hatchet", "-n", "2", "--json"}},
	{"tree_kernels", 0, NULL, {G "kernels.hatchet", "-n", "12"}},
	{"flat_kernels", 0, NULL, {"flat", G "kernels.hatchet"}},
	{"flat_kernels", 0, NULL, {"--no-color", "flat", G "kernels.hatchet"}},
	{"flat_metrics", 0, NULL,
		{"flat", G "kernels.hatchet", "-m", "gpu_time/ms,time/%,count", "-n", "3"}},
	{"flat_util", 0, NULL, {"flat", G "three_kernels.hatchet", "-m", "util,time/ms"}},
	{"json_flat", 0, NULL, {"flat", G "three_kernels.hatchet", "-m", "util", "--json"}},
	{NULL, 2, "flat has no self_time/ms; `protonview flat` without -m",
		{"flat", G "three_kernels.hatchet", "-m", "util,self_time/ms"}},
	{NULL, 2, "of flat -m value or name",
		{"flat", G "three_kernels.hatchet", "-m", "util", "-s", "avg"}},
	{NULL, 2, "option --list does not go with 'flat', but with tree\n",
		{"-l", "flat", G "kernels.hatchet"}},
	{NULL, 2, "the verb stands first: `protonview flat " G "kernels.hatchet`",
		{G "kernels.hatchet", "flat"}},
	{"bottlenecks_session", 0, NULL, {"bottlenecks", "train", "--db", database, "--all"}},
	{"bottlenecks_session", 1, "gate failed: 3 verdicts are LOW or worse",
		{"bottlenecks", "train", "--db", database, "--all", "--gate", "LOW"}},
	{"report_session", 0, NULL, {"report", "train", "--db", database, "-f", "txt", "-n", "3"}},
	{"json_report", 0, NULL, {"report", G "three_kernels.hatchet", "-f", "json", "-n", "2"}},
	{NULL, 2, "report: unknown format 'pdf'", {"report", G "kernels.hatchet", "-f", "pdf"}},
	{NULL, 2, "report needs -o FILE", {"report", G "kernels.hatchet"}},
	{"bottlenecks_file", 0, NULL, {"bottlenecks", G "scopes.hatchet"}},
	{"json_bottlenecks", 0, NULL,
		{"bottlenecks", G "kernels.hatchet", "--json", "--set", "jitter.threshold=7"}},
	{NULL, 2, "--gate '5': of bottlenecks HIGH, MEDIUM or LOW",
		{"bottlenecks", G "scopes.hatchet", "--gate", "5"}},
	{NULL, 2, "there is no 'jiter.threshold'",
		{"bottlenecks", G "scopes.hatchet", "--set", "jiter.threshold=5"}},
	{"sorted_kernels", 0, NULL, {G "kernels.hatchet", "--print-sorted", "-d", "1"}},
	{"json_kernels", 0, NULL, {G "kernels.hatchet", "--json", "-i", "_ZN2at"}},
	{"diff_kernels", 0, NULL, {"diff", G "kernels.hatchet", G "kernels.hatchet"}},
	{"diff_counts", 0, NULL,
		{"diff", G "slower.hatchet", G "triton.hatchet", "-m", "count", "-d", "3"}},
	{"diff_metrics", 0, NULL,
		{"diff", G "slower.hatchet", G "triton.hatchet", "-m", "time/us,count", "-d", "3"}},
	{"diff_gates", 1, "gate failed: count",
		{"diff", G "triton.hatchet", G "slower.hatchet", "-m", "time/us,count", "-d", "3",
			"--gate", "60"}},
	{"tree_three", 0, NULL, {"tree", G "three_kernels.hatchet", "-m", "util,byte/s"}},
	{"sorted_three", 0, NULL,
		{G "three_kernels.hatchet", "-m", "flop8/s,time/ms", "--print-sorted"}},
	{"sorted_cpu", 0, "@last is ", {"@last", "-m", "cpu_time/ms", "--print-sorted"}},
	{"diff_util", 0, NULL,
		{"diff", G "three_kernels.hatchet", G "three_kernels.hatchet", "-m", "util"}},
	{"sorted_util", 0, NULL, {G "three_kernels.hatchet", "-m", "util", "--print-sorted"}},
	{"threshold_cpu", 0, "@last is ", {"@last", "-m", "cpu_time/us,cpu_time/%", "-t", "40%"}},
	{"list_frames", 0, NULL, {"-l", G "frames.hatchet"}},
	{"json_list", 0, NULL, {"-l", "--json", G "frames.hatchet"}},
	{"list_three", 0, NULL, {"-l", G "three_kernels.hatchet"}},
	{"frames", 0, NULL, {G "frames.hatchet", "-f", "file_function", "-s", "value"}},
	{"frames_depth", 0, NULL, {G "frames.hatchet", "-d", "2", "-m", "time/us"}},
	{"frames_include", 0, NULL, {G "frames.hatchet", "-i", "inner", "-m", "time/us"}},
	{"frames_exclude", 0, NULL, {G "frames.hatchet", "-e", "kernel", "-m", "time/us"}},
	{"frames_threshold", 0, NULL, {G "frames.hatchet", "-t", "2", "-m", "time/us,count"}},
	{"flat_frames", 0, NULL, {"flat", G "frames.hatchet"}},
	{"json_frames", 0, NULL, {G "frames.hatchet", "--json", "-m", "time/us,loss"}},
	{"diff_profile", 0, NULL,
		{G "slower.hatchet", "-m", "time/ns,count", "-diff", G "triton.hatchet"}},
	{"diff", 0, NULL, {"diff", G "triton.hatchet", G "slower.hatchet", "-m", "time/ns"}},
	{"diff", 0, NULL,
		{"diff", G "triton.hatchet", G "slower.hatchet", "-m", "time/ns", "--gate", "20"}},
	{"diff", 1, "gate failed",
		{"diff", G "triton.hatchet", G "slower.hatchet", "-m", "time/ns", "--gate", "5"}},
	{"tree_session", 0, NULL, {"tree", "train", "--db", database}},
	{"tree_session", 0, NULL, {portable}},
	{"tree_session", 0, "@last is ", {"@last"}},
	{"tree_rank", 0, "@last is ", {"@last", "--process", "1", "--phase", "0"}},
	{"flat_scopes", 0, NULL, {"flat", G "scopes.hatchet"}},
	{"flat_families", 0, NULL, {"flat", G "kernels.hatchet", "--by", "family"}},
	{"flat_classes", 0, "@last is ", {"flat", "@last", "--by", "class"}},
	{"json_classes", 0, "@last is ", {"flat", "@last", "--by", "class", "--json"}},
	{NULL, 2, "--by 'x': one of name family class call", {"flat", "@last", "--by", "x"}},
	{NULL, 2, "--by does not go with -m", {"flat", "@last", "--by", "class", "-m", "count"}},
	{NULL, 1, "no GPU work was recorded, and scopes have no family",
		{"flat", G "scopes.hatchet", "--by", "family"}},
	{"ops_shapes", 0, NULL, {"ops", G "operators.hatchet"}},
	{"ops_names", 0, NULL, {"ops", G "operators.hatchet", "--by", "name"}},
	{"ops_stacks", 0, NULL, {"ops", G "operators.hatchet", "--by", "stack", "-n", "3"}},
	{"ops_json", 0, NULL, {"ops", G "operators.hatchet", "--json"}},
	{NULL, 2, "--by 'family': of ops one of shape name stack",
		{"ops", G "operators.hatchet", "--by", "family"}},
	{NULL, 1, "no operator of PyTorch is in it; `protonctl run -s ops",
		{"ops", G "scopes.hatchet"}},
	{"flat_zero", 0, NULL, {"flat", G "zero.hatchet"}},
	{"flat_session", 0, "@last is ", {"flat", "@last", "--wide"}},
	{"json_session", 0, "@last is ", {"flat", "@last", "--wide", "--json"}},
	{"sessions", 0, NULL, {"sessions"}},
	{"json_sessions", 0, NULL, {"sessions", "--json"}},
	{"export_session", 0, NULL, {"export", "7", "-o", "-"}},
	{"help", 0, NULL, {"help"}},
	{"man", 0, NULL, {"help", "man"}},
	{"man", 0, NULL, {"--man"}},
	{NULL, 0, NULL, {"export", "7", "-o", exported}},
	{NULL, 1, "--force", {"export", "7", "-o", exported}},
	{NULL, 0, NULL, {"export", "7", "-o", exported, "--force"}},
	{NULL, 2, "-o FILE", {"export", "7"}},
	{NULL, 2, "unknown format", {"export", "7", "-o", exported, "-f", "msgpack"}},
	{NULL, 2, "unknown format; the name must end in one of .hatchet ",
		{"export", "7", "-o", "x.foo"}},
	{NULL, 2, "or say it with -f", {"export", "7", "-o", "a.hatchet/x"}},
	{NULL, 1, "No such file", {"export", "7", "-o", "/nonexistent/x.hatchet"}},
	{NULL, 1, "no session 'nobody'", {"nobody"}},
	{NULL, 1, "no session '@-5'", {"@-5"}},
	{NULL, 1, "no such file", {"nobody.hatchet"}},
	{NULL, 1, "did you mean 'train'?", {"trian"}},
	{NULL, 1, "no session or verb 'session'; did you mean 'sessions'?", {"session"}},
	{NULL, 2, "unknown verb 'falt'; did you mean 'flat'?", {"falt", "train"}},
	{NULL, 2, "that is protonctl's: `protonctl top -n 3 @last`", {"top", "-n", "3", "@last"}},
	{NULL, 2, "that is protonctl's: `protonctl run --as-proton x.py`",
		{"run", "--as-proton", "x.py"}},
	{NULL, 2, "that is protonctl's: `protonctl status`", {"status"}},
	{NULL, 2,
		"missing argument: SOURCE\nUsage: protonview flat [options] SOURCE\nSee "
		"`protonview help flat`.\n",
		{"flat"}},
	{NULL, 2, "unexpected argument '8'\nUsage: protonview tree [options] SOURCE\n",
		{"tree", "7", "8"}},
	{NULL, 2, "Usage: protonview tree [options] SOURCE\n", {"tree", "7", "--nosuch"}},
	{NULL, 2, "unknown verb 'show'; did you mean 'tree'? (", {"show", "7"}},
	{NULL, 2, "unknown verb 'rm'; did you mean 'protonctl delete'? (", {"rm", "7"}},
	{NULL, 1, "no session or verb 'list'; did you mean 'sessions'?", {"list"}},
	{NULL, 2, "unknown verb 'shob' (`protonview help` lists them)\n", {"shob", "7"}},
	{NULL, 1, "no session or verb 'staus'; did you mean 'protonctl status'?", {"staus"}},
	{NULL, 2, "unknown option '--metrisc'; did you mean '--metrics'?",
		{"tree", "7", "--metrisc", "x"}},
	{"sessions", 0, NULL, {"ls"}},
	{NULL, 2, "unknown verb 'diffs'; did you mean 'diff'?", {"help", "diffs"}},
	{NULL, 2, "unknown verb 'something' (`protonview help` lists them)", {"something", "else"}},
	{NULL, 1, "this profile has no metric 'nothing'; -l lists those it has\n",
		{G "triton.hatchet", "-m", "nothing"}},
	{NULL, 1, "did you mean 'gpu_time/ms'?", {G "triton.hatchet", "-m", "gpu_tme/ms"}},
	{NULL, 1, "did you mean 'count'?", {G "frames.hatchet", "-m", "cuont"}},
	{NULL, 1, "util needs", {G "frames.hatchet", "-m", "util"}},
	{NULL, 2, "cannot be used together", {G "triton.hatchet", "-i", "a", "-e", "b"}},
	{NULL, 2, "bad regular expression 'a('", {G "triton.hatchet", "-i", "a("}},
	{NULL, 2, "unknown unit", {G "triton.hatchet", "-m", "time/h"}},
	{NULL, 2, "-f 'x'", {G "triton.hatchet", "-f", "x"}},
	{NULL, 2, "'x' is not a number", {G "triton.hatchet", "-d", "x"}},
	{NULL, 1, "the filters leave no nodes", {G "triton.hatchet", "-i", "zzz"}},
	{NULL, 2, "unknown option '--what'", {G "triton.hatchet", "--what"}},
	{NULL, 1, "not a .hatchet profile", {"Makefile"}},
	{NULL, 1, "it is gzipped: `gunzip` it, or, a trace of another profiler, `protonview import",
		{"steps", "tests/real/kineto.json.gz"}},
	{NULL, 1, "no process '9'", {"7", "--process", "9"}},
	{NULL, 2, "--process and --phase need a session", {G "frames.hatchet", "--process", "0"}},
	{NULL, 2, "is a .hatchet file", {"flat", G "frames.hatchet", "--phase", "0"}},
	{NULL, 2, "is a .hatchet file",
		{"diff", G "frames.hatchet", "@last", "--process", "0", "-m", "count"}},
	{NULL, 2, "is a .hatchet file",
		{"export", G "frames.hatchet", "--process", "0", "-o", "-"}},
	{NULL, 2, "many sessions", {database}},
	{"tree_list_first", 0, NULL, {G "units.hatchet"}},
	{NULL, 2, "'lat (ms)' before and 'lat (us)' after have different units",
		{"diff", G "units.hatchet", G "units_us.hatchet", "-m", "lat", "--gate", "5"}},
};

static void remove_all(void)
{
	char path[96];
	int i;
	static const char *const tails[] = {"", "-wal", "-shm"};

	for (i = 0; i < 3; i++) {
		(void)snprintf(path, sizeof(path), "%s%s", database, tails[i]);
		(void)unlink(path);
	}
	(void)unlink(portable);
	(void)unlink(exported);
	(void)rmdir(empty_dir);
}

static void make_databases(void)
{
	sqlite3 *db;

	help_temporary(database);
	help_temporary(portable);
	(void)snprintf(empty_dir, sizeof(empty_dir), "/tmp/protond-view-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(empty_dir));
	(void)snprintf(exported, sizeof(exported), "%s.hatchet", portable);
	db = help_db(portable);
	help_train(db);
	sqlite3_close(db);
	db = help_db(database);
	help_exec(db, "PRAGMA journal_mode = WAL");
	help_train(db);
	help_session(db, 9, "job \x1b[2J of python", "auto", "none");
	sqlite3_close(db);
	(void)setenv("PROTOND_DB", database, 1);
	(void)setenv("PROTOND_RUNTIME_DIR", empty_dir, 1); /* no daemon there */
	(void)setenv("XDG_CONFIG_HOME", empty_dir, 1);     /* nor limits of this user's */
	(void)setenv("TZ", "UTC", 1);
	(void)setenv("TERM", "dumb", 1);
	(void)unsetenv("COLUMNS");
	ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
}

static char *slurp(int fd)
{
	static char buf[1 << 18];
	ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);

	ck_assert_int_ge(n, 0);
	ck_assert_int_lt(n, (ssize_t)sizeof(buf) - 1);
	buf[n] = '\0';
	return buf;
}

static int run(const struct golden *g, int out, int err)
{
	char *argv[16] = {strdup("protonview")};
	int argc = 1, status;
	pid_t pid;

	for (; g->args[argc - 1] != NULL; argc++)
		argv[argc] = strdup(g->args[argc - 1]);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)dup2(out, STDOUT_FILENO);
		(void)dup2(err, STDERR_FILENO);
		_exit(protonview_run(argc, argv));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	while (argc > 0)
		free(argv[--argc]);
	ck_assert_msg(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

static void compare(const char *name, const char *text)
{
	char path[128];
	bool write = getenv("PROTOND_GOLDEN") != NULL;
	int fd;

	(void)snprintf(path, sizeof(path), G "%s.txt", name);
	fd = open(path, write ? O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC : O_RDONLY | O_CLOEXEC,
		0644);
	ck_assert_msg(fd >= 0, "%s", path);
	if (write) {
		ck_assert_int_eq(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	} else {
		char *got = strdup(text);

		ck_assert_msg(strcmp(got, slurp(fd)) == 0, "%s differs; the program printed:\n%s",
			path, got);
		free(got);
	}
	(void)close(fd);
}

START_TEST(command_lines)
{
	size_t i;

	make_databases();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
		int status = run(&cases[i], out, err);

		ck_assert_msg(status == cases[i].status, "case %zu (%s %s): status %d: %s", i,
			cases[i].args[0], cases[i].args[1], status, slurp(err));
		if (cases[i].words != NULL)
			ck_assert_msg(strstr(slurp(err), cases[i].words) != NULL, "case %zu: %s", i,
				slurp(err));
		else
			ck_assert_msg(*slurp(err) == '\0', "case %zu: %s", i, slurp(err));
		if (cases[i].name != NULL)
			compare(cases[i].name, slurp(out));
		else
			ck_assert_msg(*slurp(out) == '\0', "case %zu printed %s", i, slurp(out));
		(void)close(out);
		(void)close(err);
	}
	remove_all();
}
END_TEST

#define TESTS(X) X(command_lines)
HELP_SUITE("view_golden", TESTS)
