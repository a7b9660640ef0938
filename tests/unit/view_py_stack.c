/* SPDX-License-Identifier: MIT. view_py_stack.c: Python's stacks out of a made image of a process's memory: as
 * 3.11 to 3.13 lay it out, long, in circles, and noise. */
#include "py_image.h"
#include "py_stack.h"
#include "quick.h"

#define READS (1u << 22) /* that any image may cost */

static void first_version(void)
{
	v = 0;
}

static bool look(struct py_process *ret)
{
	struct memory m = {.read = read_image};

	reads = 0;
	return py_process_read(&m, BASE, ret);
}

START_TEST(a_stack)
{
	struct py_process p;

	v = (uint32_t)_i;
	make(3);
	ck_assert(look(&p) && p.known && p.n == 1 && p.more == 0);
	ck_assert(p.version == in[v].version);
	ck_assert(p.threads[0].tid == 77 && p.threads[0].gil);
	ck_assert(!p.threads[0].changed && !p.threads[0].broken);
	ck_assert(p.threads[0].n == 3 && p.threads[0].n_inner == 3 && p.threads[0].n_outer == 0);
	ck_assert_str_eq(p.threads[0].inner[2].name, "f");
	ck_assert_str_eq(p.threads[0].inner[2].file, "x.py");
	ck_assert_int_eq(p.threads[0].inner[2].line, 104);
	py_process_fini(&p);
	if (in[v].owner == 0)
		return;
	image[FRAMES + FRAME + in[v].owner] = 3; /* C's, between two of Python's */
	ck_assert(look(&p) && p.threads[0].n == 2 && !p.threads[0].changed);
	py_process_fini(&p);
}

/* A layout that a process tells is believed within bounds, and not of a build without a GIL. */
START_TEST(said)
{
	struct py_process p;

	v = 2;
	make(3);
	put64(RUNTIME + 23 * 8, 60000); /* a thread's state is not as long */
	ck_assert(look(&p) && !p.known && !p.free_threaded);
	py_process_fini(&p);
	make(3);
	put64(RUNTIME + 8, 0x030e00f0);
	ck_assert(look(&p) && !p.known);
	py_process_fini(&p);
	make(3);
	put64(RUNTIME + 16, 1);
	ck_assert(look(&p) && !p.known && p.free_threaded);
	py_process_fini(&p);
}

/* Each kind of entry of a table of lines; -1: the function has not begun. */
START_TEST(lines)
{
	static const struct {
		int unit, line;
	} of[] = {{-1, 100}, {0, 100}, {1, 101}, {2, 101}, {3, 106}, {4, 104}, {5, 0}, {6, 104},
		{7, 0}};
	struct py_process p;

	make(1);
	put64(FRAMES + 56, (uint64_t)((int64_t)place(CODE) + 184 + of[_i].unit * 2));
	ck_assert(look(&p) && p.n == 1);
	ck_assert_int_eq(p.threads[0].inner[0].line, of[_i].line);
	py_process_fini(&p);
}

START_TEST(ten_thousand_frames)
{
	struct py_process p;

	make(10000);
	ck_assert(look(&p) && p.n == 1 && !p.threads[0].broken);
	ck_assert(p.threads[0].n == 10000 && p.threads[0].n_inner == PY_ENDS &&
		  p.threads[0].n_outer == PY_ENDS);
	ck_assert_str_eq(p.threads[0].outer[PY_ENDS - 1].name, "f");
	py_process_fini(&p);
}

START_TEST(frames_in_a_circle)
{
	struct py_process p;

	make(100);
	put64(FRAMES + 99 * FRAME + 48, place(FRAMES + 60 * FRAME));
	ck_assert(look(&p) && p.n == 1 && p.threads[0].broken);
	ck_assert(p.threads[0].n < 1000 && reads < 10000);
	put64(FRAMES + 48, 1); /* and one that leads nowhere */
	py_process_fini(&p);
	ck_assert(look(&p) && p.threads[0].broken && p.threads[0].n == 1);
	py_process_fini(&p);
}

/* Threads in a circle, each with a long stack: what all may cost together is bounded. */
START_TEST(threads_in_a_circle)
{
	struct py_process p;
	uint64_t frames = 0;
	uint32_t i;

	make(10000);
	put64(THREAD + 8, place(THREAD));
	put64(INTERPRETER, place(INTERPRETER));
	ck_assert(look(&p) && p.n == PY_THREADS_MOST && p.more > 0);
	for (i = 0; i < p.n; i++)
		frames += p.threads[i].n;
	ck_assert(p.threads[PY_THREADS_MOST - 1].broken && frames <= 4 * PY_FRAMES_MOST);
	ck_assert_msg(reads < READS, "%u reads", reads);
	py_process_fini(&p);
}

START_TEST(names_of_any_bytes)
{
	static const uint16_t wide[] = {0xe9, 0xdc80, 0, 0xd812, 'x'};
	char longest[600];
	struct py_process p;

	make(1);
	put_text(NAME, wide, 5, 2);
	ck_assert(look(&p));
	ck_assert_str_eq(p.threads[0].inner[0].name, "\u00e9\x80?\ufffdx");
	py_process_fini(&p);
	memset(longest, 'a', sizeof(longest));
	put_text(NAME, longest, sizeof(longest), 1);
	ck_assert(look(&p));
	ck_assert_uint_lt(strlen(p.threads[0].inner[0].name), sizeof(p.threads[0].inner[0].name));
	ck_assert_str_eq(strchr(p.threads[0].inner[0].name, '\xe2'), "\u2026");
	py_process_fini(&p);
	put64(NAME + 16, UINT64_MAX);
	ck_assert(look(&p) && strchr(p.threads[0].inner[0].name, '\xe2') != NULL);
	py_process_fini(&p);
	put64(NAME + 8, place(CODE_TYPE)); /* no text */
	ck_assert(look(&p) && p.threads[0].inner[0].name[0] == '\0');
	py_process_fini(&p);
}

START_TEST(other_versions)
{
	struct py_process p;

	make(1);
	put64(VERSION, 0x030e00f0);
	ck_assert(look(&p) && !p.known && p.n == 0 && p.version == 0x030e00f0);
	py_process_fini(&p);
	image[STRINGS + 1 + sizeof("_PyRuntime") + sizeof("PyCode_Type") +
		sizeof("PyUnicode_Type")] = 'X';
	ck_assert(look(&p) && !p.known && p.version == 0);
	py_process_fini(&p);
	image[STRINGS + 1] = 'X';
	ck_assert(!look(&p));
	image[0] = 'X';
	ck_assert(!look(&p));
}

/* A word that is another: any answer will do that ends. */
START_TEST(noise)
{
	struct py_process p;
	uint32_t i, at;
	uint64_t w;

	srand(7);
	for (i = 0; i < 3000; i++) {
		v = i % 3;
		make(40);
		at = (uint32_t)rand() % ((FRAMES + 40 * FRAME) / 8) * 8;
		if (rand() % 4 != 0)
			at = (const uint32_t[]){DYNAMIC, HASH, SYMBOLS, RUNTIME + 40, INTERPRETER,
				     THREAD, CODE + 64, NAME, LINES, FRAMES}[rand() % 10] +
			     (uint32_t)rand() % 16 * 8;
		w = rand() % 2 != 0 ? place((uint32_t)rand() % BYTES)
				    : (uint64_t)rand() << (rand() % 40) ^ (uint64_t) - (rand() % 2);
		put64(at, w);
		if (look(&p))
			py_process_fini(&p);
		ck_assert_msg(reads < READS, "%u reads of image %u", reads, i);
	}
}

Suite *suite(void)
{
	Suite *s = suite_create("view_py_stack");
	TCase *t = tcase_create("all");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, first_version, NULL);
	tcase_add_loop_test(t, a_stack, 0, 3);
	tcase_add_test(t, said);
	tcase_add_loop_test(t, lines, 0, 9);
	tcase_add_test(t, ten_thousand_frames);
	tcase_add_test(t, frames_in_a_circle);
	tcase_add_test(t, threads_in_a_circle);
	tcase_add_test(t, names_of_any_bytes);
	tcase_add_test(t, other_versions);
	tcase_add_test(t, noise);
	suite_add_tcase(s, t);
	return s;
}
