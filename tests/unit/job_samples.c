/* SPDX-License-Identifier: MIT. job_samples.c: tests of the sampler: stacks out of a made image of a process's memory, and
 * threads that are looked at. */
#include "job_engine.h"

#include <dirent.h>
#include <errno.h>
#include <sys/syscall.h>

#include "py_image.h"
#include "sampled_stack.h"

#define TID 77u /* of the image */

static struct memory memory = {.read = read_image};
static struct stacks *stacks;

static void setup(void)
{
	const struct cpython_symbols symbols = {
		place(RUNTIME), place(VERSION), place(CODE_TYPE), place(TEXT_TYPE)};

	v = 0;
	make(3);
	t_open(NULL, false);
	stacks = stacks_new(&memory);
	ck_assert_ptr_nonnull(stacks);
	ck_assert(stacks_python(stacks, &symbols));
}

static void teardown(void)
{
	stacks_free(stacks);
}

static const char *path_now(void)
{
	return view_where(&t_v, stacks_path(stacks, place(INTERPRETER), place(THREAD), TID));
}

START_TEST(a_stack)
{
	ck_assert_str_eq(path_now(), "x.py:100@f/x.py:100@f/x.py:100@f");
	ck_assert_str_eq(path_now(), "x.py:100@f/x.py:100@f/x.py:100@f");
	ck_assert_uint_eq(stacks_path(stacks, place(INTERPRETER), place(THREAD), 78), PATH_ROOT);
	ck_assert_uint_eq(stacks_path(stacks, place(CODE), place(THREAD), TID), PATH_ROOT);
	make(0);
	ck_assert_str_eq(path_now(), "");
	make(1);
	put64(CODE + 8, place(TEXT_TYPE)); /* the code object is gone */
	ck_assert_str_eq(path_now(), "(unreadable)");
	put64(FRAMES + 32, 1); /* or where it was is nothing */
	ck_assert_str_eq(path_now(), "(unreadable)");
}
END_TEST

START_TEST(a_long_stack)
{
	const char *path;
	uint32_t n = 0;

	make(10000);
	path = path_now();
	ck_assert_str_eq(strncmp(path, STACK_CUT "/x", strlen(STACK_CUT) + 2) == 0 ? "" : path, "");
	for (; *path != '\0'; path++)
		n += *path == '/';
	ck_assert_uint_eq(n, STACK_FRAMES);
	ck_assert_uint_lt(reads, 2000);
}
END_TEST

/* A circle of frames, and threads that run on while they are read, are left in the end. */
START_TEST(a_stack_without_end)
{
	make(4);
	put64(FRAMES + 3 * FRAME + 48, place(FRAMES));
	reads = 0;
	ck_assert_str_eq(strncmp(path_now(), STACK_CUT, strlen(STACK_CUT)) == 0 ? "" : "it", "");
	ck_assert_uint_lt(reads, 2000);
}
END_TEST

/* Another code object where one was: another line, or another text at the same place. */
START_TEST(code_at_the_same_address)
{
	make(1);
	put64(NAME + 24, 1234);
	ck_assert_str_eq(path_now(), "x.py:100@f");
	put_text(NAME, "g", 1, 1);
	put64(NAME + 24, 4321);
	ck_assert_str_eq(path_now(), "x.py:100@g");
	put32(CODE + 72, 101);
	ck_assert_str_eq(path_now(), "x.py:101@g");
	put_text(FILE_NAME, "other.py", 8, 1);
	ck_assert_str_eq(path_now(), "other.py:101@g");
}
END_TEST

/* Frames of importlib are one where they are innermost, and none between a module and what it imports. */
START_TEST(imports)
{
	static const char file[] = "<frozen importlib._bootstrap>";
	const uint32_t code = CODE + 0x800, text = FILE_NAME + 0x400;
	uint32_t i;

	make(9);
	memcpy(image + code, image + CODE, 0x200);
	put_text(text, file, sizeof(file) - 1, 1);
	put64(code + 112, place(text));
	for (i = 0; i < 9; i++)
		if (i != 3 && i != 4 && i != 8) /* the innermost is 0 */
			put64(FRAMES + i * FRAME + in[v].code, place(code));
	ck_assert_str_eq(path_now(), "x.py:100@f/x.py:100@f/x.py:100@f/(import)");
	put64(FRAMES + in[v].code, place(CODE));
	ck_assert_str_eq(path_now(), "x.py:100@f/x.py:100@f/x.py:100@f/x.py:100@f");
}
END_TEST

/* Code that is made again and again leaves the program's own scopes their room. */
START_TEST(names_without_end)
{
	char name[16];
	uint32_t i;

	make(1);
	for (i = 0; i < 40000; i++) {
		(void)snprintf(name, sizeof(name), "f%05u", i);
		put_text(NAME, name, 6, 1);
		put64(NAME + 24, i);
		(void)path_now();
	}
	ck_assert_uint_lt(t_v.c->names, 17000);
	ck_assert_uint_lt(t_v.c->paths, 17000);
	ck_assert_uint_gt(t_v.c->names_refused, 20000);
	view_check_tables(&t_v);
}
END_TEST

/* --- threads that are looked at --------------------------------------------------------------- */

static struct thread {
	_Atomic uint32_t tid, ends;
	struct pd_thread *block;
	bool spins;
} waits, spins = {.spins = true};
static uint32_t A, B;
static uint64_t off, on, elsewhere;

static void *thread_main(void *p)
{
	struct thread *th = p;

	t_enter(A);
	t_enter(B);
	th->block = t_thread();
	atomic_store(&th->tid, (uint32_t)syscall(SYS_gettid));
	while (atomic_load(&th->ends) == 0)
		if (!th->spins)
			(void)syscall(SYS_futex, &th->ends, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
	return NULL;
}

static const struct pd_thread *next_thread(const struct pd_thread *after)
{
	return after == NULL ? waits.block : after == waits.block ? spins.block : NULL;
}

static void on_record(void *arg, const struct view *w, uint32_t lane, const uint64_t *rec)
{
	const struct rec_sample *r = (const void *)rec;

	(void)arg;
	(void)lane;
	if (REC_TYPE(*rec) != REC_SAMPLE || (r->tid != waits.tid && r->tid != spins.tid))
		return; /* this thread is on a CPU, too, and has not said a word */
	ck_assert_uint_ge(r->end, r->begin);
	if (strcmp(view_where(w, REC_ID(*rec)), "a/b") != 0)
		elsewhere++;
	else if (r->tid == waits.tid && (REC_FLAGS(*rec) & SAMPLE_OFF_CPU) != 0)
		off += r->samples;
	else if (r->tid == spins.tid && (REC_FLAGS(*rec) & SAMPLE_OFF_CPU) == 0)
		on += r->samples;
}

static bool sampler_is_there(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	bool there = false;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)) != NULL) {
		char path[300], name[32] = "";
		FILE *f;

		(void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "re");
		there |= f != NULL && fgets(name, sizeof(name), f) != NULL &&
			 strcmp(name, "protond-sampler\n") == 0;
		if (f != NULL)
			(void)fclose(f);
	}
	(void)closedir(d);
	return there;
}

START_TEST(threads)
{
	pthread_t th[2];

	A = t_new("a");
	B = t_new("b");
	t_host.next_thread = next_thread;
	t_open(NULL, true);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	ck_assert_int_eq(pthread_create(&th[0], NULL, thread_main, &waits), 0);
	ck_assert_int_eq(pthread_create(&th[1], NULL, thread_main, &spins), 0);
	while (atomic_load(&waits.tid) == 0 || atomic_load(&spins.tid) == 0)
		sched_yield();
	ck_assert(!sampler_is_there());
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_CPU_SAMPLES), 0);
	while (off < 20 || on < 20)
		if (view_walk(&t_v, on_record, NULL) == 0)
			sched_yield();
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	while (sampler_is_there())
		sched_yield();
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_CPU_SAMPLES), 0); /* and once more */
	for (off = 0; off < 2;)
		if (view_walk(&t_v, on_record, NULL) == 0)
			sched_yield();
	t_e->exit();
	while (sampler_is_there())
		sched_yield();
	atomic_store(&waits.ends, 1);
	atomic_store(&spins.ends, 1);
	(void)syscall(SYS_futex, &waits.ends, 1 /* FUTEX_WAKE */, 1, NULL, NULL, 0);
	(void)pthread_join(th[0], NULL);
	(void)pthread_join(th[1], NULL);
	(void)view_walk(&t_v, on_record, NULL);
	ck_assert_uint_eq(elsewhere, 0);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
	view_check_tables(&t_v);
}
END_TEST

static void of_stacks(TCase *c)
{
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, a_stack);
	tcase_add_test(c, a_long_stack);
	tcase_add_test(c, a_stack_without_end);
	tcase_add_test(c, code_at_the_same_address);
	tcase_add_test(c, imports);
	tcase_add_test(c, names_without_end);
}

static void of_threads(TCase *c)
{
	tcase_add_test(c, threads);
}

Suite *suite(void);

Suite *suite(void)
{
	static void (*const tests[])(TCase *) = {of_stacks, of_threads, NULL};

	return t_suite("samples", tests);
}
