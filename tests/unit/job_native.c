/* SPDX-License-Identifier: MIT. job_native.c: tests of native stacks: of threads that wait, run, end, and load and unload
 * what they run in, looked at without a pause. */
#include "job_engine.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "native_stack.h"
#include "objects.h"

#if defined(__x86_64__)
#define IS_X86_64 true
#else
#define IS_X86_64 false
#endif

static struct memory memory;
static struct stacks *stacks;
static struct native *native;

static void setup(void)
{
	t_open(NULL, false);
	memory = memory_self();
	stacks = stacks_new(&memory);
	native = native_new(&memory);
	ck_assert(stacks != NULL && native != NULL);
}

static void teardown(void)
{
	native_free(native);
	stacks_free(stacks);
	memory_fini(&memory);
}

/* --- threads of known functions --------------------------------------------------------------- */

static _Atomic uint32_t there, over;
static uint64_t odd;

__attribute__((noinline, noclone)) static void waits_inside(void)
{
	while (atomic_load(&over) == 0)
		(void)syscall(SYS_futex, &over, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
}

__attribute__((noinline, noclone)) static void spins_inside(void)
{
	while (atomic_load(&over) == 0)
		odd++;
}

__attribute__((noinline, noclone)) static void calls(void (*what)(void))
{
	what();
	odd++; /* no tail call */
}

static void *thread_main(void *what)
{
	void (*fn)(void);

	memcpy(&fn, &what, sizeof(fn));
	atomic_store(&there, (uint32_t)syscall(SYS_gettid));
	calls(fn);
	return NULL;
}

static pthread_t start(void (*fn)(void))
{
	pthread_t th;
	void *what;

	memcpy(&what, &fn, sizeof(what));
	atomic_store(&there, 0);
	atomic_store(&over, 0);
	ck_assert_int_eq(pthread_create(&th, NULL, thread_main, what), 0);
	while (atomic_load(&there) == 0)
		sched_yield();
	return th;
}

static void stop(pthread_t th)
{
	atomic_store(&over, 1);
	(void)syscall(SYS_futex, &over, 1 /* FUTEX_WAKE */, 1, NULL, NULL, 0);
	ck_assert_int_eq(pthread_join(th, NULL), 0);
}

static const char *path_of(uint32_t tid, enum native_what *ret)
{
	*ret = native_look(native, tid, tid, false, 0);
	return *ret == NATIVE_FOUND ? view_where(&t_v, native_below(native, stacks, PATH_ROOT))
				    : "";
}

/* Until the thread is in that function; false: this machine refuses it. */
static bool finds(uint32_t tid, const char *function)
{
	enum native_what what = NATIVE_NONE;
	const char *path;

	do {
		path = path_of(tid, &what);
	} while (what != NATIVE_REFUSED && strstr(path, function) == NULL);
	ck_assert_msg(
		what == NATIVE_REFUSED || strncmp(path, "(further frames)", 16) != 0, "%s", path);
	return what != NATIVE_REFUSED;
}

START_TEST(a_thread_that_waits)
{
	const pthread_t th = start(waits_inside);

	ck_assert(finds(atomic_load(&there), "/thread_main/calls/waits_inside/syscall"));
	stop(th);
}
END_TEST

START_TEST(a_thread_that_runs)
{
	const pthread_t th = start(spins_inside);

	(void)finds(atomic_load(&there), "/thread_main/calls/spins_inside");
	stop(th);
}
END_TEST

/* A stack that Python would have run, and one that it does not run. */
START_TEST(inside_of_an_interpreter)
{
	const pthread_t th = start(waits_inside);
	const uint32_t tid = atomic_load(&there);
	uint64_t run;
	void (*fn)(void (*)(void)) = calls;

	(void)finds(tid, "waits_inside");
	memcpy(&run, &fn, sizeof(run));
	native_python(native, run);
	ck_assert_int_eq(native_look(native, tid, tid, true, 0), NATIVE_NONE); /* in another run */
	native_python(native, run + 1);
	ck_assert_int_eq(native_look(native, tid, tid, true, 0), NATIVE_NONE);
	stop(th);
}
END_TEST

/* --- threads that do what they like ----------------------------------------------------------- */

static void loads(void)
{
	static const char *const library[] = {"libz.so.1", "libzstd.so.1", "libm.so.6"};
	uint32_t i = 0;

	for (; atomic_load(&over) == 0; i++) {
		void *handle = dlopen(library[i % 3], RTLD_NOW | RTLD_LOCAL);
		const char *(*version)(void);
		void *p = handle != NULL ? dlsym(handle, "zlibVersion") : NULL;

		memcpy(&version, &p, sizeof(version));
		if (version != NULL)
			odd += (uint64_t)*version();
		if (handle != NULL)
			(void)dlclose(handle);
	}
}

static void *ends_at_once(void *p)
{
	return p;
}

static void begins_threads(void)
{
	pthread_t th;

	while (atomic_load(&over) == 0)
		if (pthread_create(&th, NULL, ends_at_once, NULL) == 0)
			(void)pthread_join(th, NULL);
}

static void forks(void)
{
	pid_t child;

	while (atomic_load(&over) == 0) {
		child = fork();
		if (child == 0)
			_exit(0);
		(void)waitpid(child, NULL, 0);
	}
}

static void jumps(void)
{
	char *page;

	while (atomic_load(&over) == 0) {
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		page[0] = 1;
		(void)munmap(page, 4096);
	}
}

static void (*const does[])(void) = {loads, begins_threads, forks, jumps};

/* Whatever it does, a look ends, and says something that the ring can hold. */
START_TEST(a_storm)
{
	const pthread_t th = start(does[_i]);
	const uint32_t tid = atomic_load(&there);
	enum native_what what;
	uint32_t i;

	for (i = 0; i < 2000; i++) {
		(void)path_of(tid, &what);
		(void)path_of(
			tid + 1 + i % 3, &what); /* if it is there: begun and ended meanwhile */
	}
	stop(th);
	(void)path_of(tid, &what);
	ck_assert_int_ne(what, NATIVE_FOUND);
	view_check_tables(&t_v);
}
END_TEST

/* --- objects ---------------------------------------------------------------------------------- */

START_TEST(another_object_at_the_same_address)
{
	static struct objects o;
	const struct object *is;
	uint64_t pc, first;
	void *(*fn)(void *) = thread_main;
	char name[64];
	bool later;

	o = (struct objects){.m = &memory};
	memcpy(&pc, &fn, sizeof(pc));
	is = objects_find(&o, pc, &later);
	ck_assert(is != NULL && !later && is->frames != 0);
	ck_assert(objects_known(&o, pc) == is);
	first = is->begin;
	object_function(&memory, is, pc, name, sizeof(name));
	ck_assert_str_eq(name, "thread_main");
	object_function(&memory, is, is->base, name, sizeof(name));
	ck_assert_str_eq(name, "[job_native+0x0]");
	ck_assert(objects_prove(&o, &first, 1));
	o.object[o.which][is - o.object[o.which]].proof[OBJECT_PROOF - 1] ^= 1;
	ck_assert(!objects_prove(&o, &first, 1));
	ck_assert_uint_eq(o.n, 0);
	while ((is = objects_find(&o, pc, &later)) == NULL)
		ck_assert(later);
	ck_assert_uint_eq(o.round, 1);
	while (objects_find(&o, (uint64_t)(uintptr_t)&o, &later) == NULL && later) /* no code */
		;
	ck_assert(!later);
}
END_TEST

#define LOW ((void *)0x10000000) /* an address before all others of this process */

/* Mapped behind a path that is longer than what is read at once of the kernel's list, as few are. */
static void map_far_down(void)
{
	enum { DEPTH = 20 };
	char top[] = "/tmp/job_native_XXXXXX", name[240];
	uint32_t i;
	int fd;

	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ck_assert(mkdtemp(top) != NULL && chdir(top) == 0);
	for (i = 0; i < DEPTH; i++)
		ck_assert(mkdir(name, 0700) == 0 && chdir(name) == 0);
	fd = open("code", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert(fd >= 0 && ftruncate(fd, 4096) == 0);
	ck_assert(mmap(LOW, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == LOW);
	ck_assert(close(fd) == 0 && unlink("code") == 0);
	for (i = 0; i < DEPTH; i++)
		ck_assert(chdir("..") == 0 && rmdir(name) == 0);
	ck_assert(chdir("/") == 0 && rmdir(top) == 0);
}

START_TEST(behind_a_long_path)
{
	static struct objects o;
	const struct object *is;
	void *(*fn)(void *) = thread_main;
	uint64_t pc;
	bool later;

	map_far_down();
	memcpy(&pc, &fn, sizeof(pc));
	o = (struct objects){.m = &memory};
	is = objects_find(&o, pc, &later);
	ck_assert(is != NULL && strstr(is->path, "/job_native") != NULL);
}
END_TEST

static void of_threads(TCase *c)
{
	tcase_add_checked_fixture(c, setup, teardown);
	if (IS_X86_64) {
		tcase_add_test(c, a_thread_that_waits);
		tcase_add_test(c, a_thread_that_runs);
		tcase_add_test(c, inside_of_an_interpreter);
	}
	tcase_add_loop_test(c, a_storm, 0, sizeof(does) / sizeof(does[0]));
	tcase_add_test(c, another_object_at_the_same_address);
	tcase_add_test(c, behind_a_long_path);
}

Suite *suite(void);

Suite *suite(void)
{
	static void (*const tests[])(TCase *) = {of_threads, NULL};

	return t_suite("native", tests);
}
