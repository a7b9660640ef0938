/* SPDX-License-Identifier: MIT. view_name.c: names of kernels as people read them. */
#include "name.h"

#include <time.h>

#include "family.h"
#include "op_terms.h"
#include "view_help.h"

START_TEST(shortening)
{
	static const struct {
		const char *from, *want;
	} cases[] = {
		{"void f<4>(float*)", "f<4>"},
		{"f", "f"},
		{"", ""},
		{"void ", ""},
		{"void (anonymous namespace)::f<(a::b)1>(int (*)(long), float)", "f<(a::b)1>"},
		{"a::f(b)::{lambda(int)#1}::operator()(int) const",
			"a::f(b)::{lambda(int)#1}::operator()"},
		{"a::f<b<c> >(b<c<d> >)", "a::f<b<c>>"},
		{"a::f<b<c<d> > >()", "a::f<b<c<d>>>"},
		{"loss (mean)", "loss (mean)"},
		{"(a)", "(a)"},
		{"f)", "f)"},
		{"a::operator()", "a::operator()"},
		{"f() [clone .cold]", "f() [clone .cold]"},
	};
	char buf[128];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)snprintf(buf, sizeof(buf), "%s", cases[i].from);
		name_shorten(buf);
		ck_assert_msg(
			strcmp(buf, cases[i].want) == 0, "'%s' became '%s'", cases[i].from, buf);
	}
}
END_TEST

/* pair<pair<…>, pair<…>> and so on: its text doubles with every step. */
static void doubling(char *buf, size_t n, unsigned steps)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t at = (size_t)snprintf(buf, n, "_Z1f4pairIiiE");
	unsigned i;

	for (i = 0; i < steps && at < n; i++)
		at += (size_t)snprintf(buf + at, n - at, "S_IS%c_S%c_E", digits[i], digits[i]);
}

START_TEST(names_that_are_too_much)
{
	struct profile *p = profile_new();
	struct timespec begin, end;
	char bomb[16][512], bomb_text[512];
	struct names *n;
	unsigned i;

	doubling(bomb_text, sizeof(bomb_text), 2);
	(void)profile_add_node(p, 0, bomb_text, NODE_KERNEL);
	for (i = 0; i < 3; i++) {
		doubling(bomb[i], sizeof(bomb[i]), 34 + i);
		(void)profile_add_node(p, 0, bomb[i], NODE_KERNEL);
	}
	(void)profile_add_node(p, 0, "_Z3addIfEvPT_", NODE_KERNEL);
	(void)profile_add_node(p, 0, "_Z", NODE_KERNEL);
	(void)profile_add_node(p, 0, "_Z3ad\xff", NODE_KERNEL);
	ck_assert_int_eq(names_new(false, &n), 0);
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	ck_assert_int_eq(names_read(n, p), 0);
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	ck_assert_int_lt(end.tv_sec - begin.tv_sec, 10); /* and not for ever */
	ck_assert_str_eq(
		names_show(n, bomb_text), "f"); /* all else of it is a list of parameters */
	for (i = 0; i < 3; i++)
		ck_assert_ptr_eq(names_show(n, bomb[i]), bomb[i]);
	ck_assert_str_eq(names_show(n, "_Z3addIfEvPT_"), "add<float>"); /* behind them */
	ck_assert_str_eq(names_show(n, "_Z"), "_Z");
	ck_assert_str_eq(names_show(n, "_Z5nobody"), "_Z5nobody");
	ck_assert_str_eq(names_show(NULL, "_Z3addIfEvPT_"), "_Z3addIfEvPT_");
	names_free(n);
	profile_free(p);
}
END_TEST

START_TEST(whole_names)
{
	struct profile *p = profile_new();
	struct names *n;

	(void)profile_add_node(p, 0, "_Z3addIfEvPT_", NODE_KERNEL);
	ck_assert_int_eq(names_new(true, &n), 0);
	ck_assert_int_eq(names_read(n, p), 0);
	ck_assert_int_eq(names_read(n, p), 0); /* a second time costs nothing */
	ck_assert_str_eq(names_show(n, "_Z3addIfEvPT_"), "void add<float>(float*)");
	ck_assert_str_eq(names_show(n, "void f(int)"), "void f(int)");
	names_free(n);
	profile_free(p);
}
END_TEST

START_TEST(paths)
{
	struct names *n;

	ck_assert_int_eq(names_new(false, &n), 0);
	ck_assert_int_eq(names_add(n, "epoch/_Z3addIfEvPT_/step"), 0);
	ck_assert_int_eq(names_add(n, "_Z3mulPf"), 0);
	ck_assert_int_eq(names_demangle(n), 0);
	ck_assert_str_eq(names_show(n, "_Z3mulPf"), "mul");
	ck_assert_str_eq(names_show_path(n, "epoch/_Z3addIfEvPT_/step"), "epoch/add<float>/step");
	ck_assert_str_eq(names_show_path(n, "/_Z3mulPf//void f<1>(int)/"), "/mul//f<1>/");
	ck_assert_str_eq(names_show_path(n, "_Z3subPf/_Z3mulPf"), "_Z3subPf/mul");
	ck_assert_str_eq(names_show_path(n, ""), "");
	ck_assert_int_eq(names_add(n, "a/_Z3subPf"), 0); /* at a later look */
	ck_assert_int_eq(names_demangle(n), 0);
	ck_assert_str_eq(names_show_path(n, "_Z3subPf/_Z3mulPf"), "sub/mul");
	ck_assert_str_eq(names_show_path(NULL, "a/_Z3subPf"), "a/_Z3subPf");
	names_free(n);
}
END_TEST

/* Names come from jobs: what only begins like dimensions is a part of the name. */
START_TEST(operators)
{
	static const struct {
		const char *name;
		size_t bytes; /* 0: no operator */
		const char *dims;
	} cases[] = {
		{"aten::mm", 8, NULL},
		{"aten::mm [[2, 3], [3, 4]]", 8, "[[2, 3], [3, 4]]"},
		{"aten::cat [[[2], [3]], []]", 9, "[[[2], [3]], []]"},
		{"mylib::op", 0, NULL},
		{"mylib::op [[1]]", 9, "[[1]]"},
		{"autograd::engine::evaluate_function: MmBackward0", 48, NULL},
		{"MmBackward0", 11, NULL},
		{"MmBackward0 [[-1]]", 11, "[[-1]]"},
		{"Backward", 8, NULL},
		{"my Backward", 0, NULL},
		{"Backwards", 0, NULL},
		{"step", 0, NULL},
		{" [[1]]", 0, "[[1]]"},
		{"", 0, NULL},
		{"layer [3]", 0, NULL},
		{"layer [[3", 0, NULL},
		{"layer [[a]]", 0, NULL},
		{"layer [[01]]", 0, NULL},
		{"layer [[1,]]", 0, NULL},
		{"layer [[,1]]", 0, NULL},
		{"layer [[1 2]]", 0, NULL},
		{"layer [[1]] more", 0, NULL},
		{"layer [[[[1]]]]", 0, NULL},
		{"a [[x]] [[1]]", 7, "[[1]]"},
	};
	const char *dims;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ck_assert_msg(operator_bytes(cases[i].name) == cases[i].bytes, "%s: %zu",
			cases[i].name, operator_bytes(cases[i].name));
		dims = operator_dims(cases[i].name);
		ck_assert_msg((dims == NULL) == (cases[i].dims == NULL), "%s", cases[i].name);
		if (dims != NULL)
			ck_assert_str_eq(dims, cases[i].dims);
	}
}
END_TEST

START_TEST(arrays)
{
	ck_assert(operator_is_array("[\"a\", \"\", 1, [-2, []]]"));
	ck_assert(operator_is_array("[ ]"));
	ck_assert(!operator_is_array("[\"a\\\"]"));
	ck_assert(!operator_is_array("[\"a]"));
	ck_assert(!operator_is_array("[\"\xff\"]"));
	ck_assert(!operator_is_array("[\"\n\"]"));
	ck_assert(!operator_is_array("[\"a\"]x"));
	ck_assert(!operator_is_array("[1"));
	ck_assert(!operator_is_array("[-]"));
	ck_assert(!operator_is_array("[[[[]]]]"));
	ck_assert(!operator_is_array(""));
}
END_TEST

/* The first family that has a word of the name, wherever it stands there, however it is written. */
START_TEST(families)
{
	static const struct {
		const char *name, *family;
		uint8_t class;
	} cases[] = {
		{"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256>(Params)", "gemm",
			CLASS_COMPUTE},
		{"ampere_SGEMM_128x64_tn", "gemm", CLASS_COMPUTE},
		{"flash_fwd_kernel<Gemm>", "attention", CLASS_COMPUTE},
		{"nvjet", "gemm", CLASS_COMPUTE},
		{"x_norm", "norm", CLASS_COMPUTE},
		{"my_cat", "elementwise", CLASS_COMPUTE},
		{"multi_tensor_apply", "optimizer", CLASS_COMPUTE},
		{"multi_tensor_appl", "other", CLASS_COMPUTE},
		{"", "other", CLASS_COMPUTE},
		{"c", "other", CLASS_COMPUTE},
		{"gemm", "", CLASS_CPU},
		{"gemm", "comm", CLASS_COMM},
		{"gemm", "memset", CLASS_MEMSET},
		{"gemm", "copy", CLASS_H2D},
	};
	char name[1024];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_str_eq(family_of(cases[i].name, cases[i].class), cases[i].family);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memcpy(name + 508, "gemm", 4); /* the end of what is looked at */
	ck_assert_str_eq(family_of(name, CLASS_COMPUTE), "gemm");
	memcpy(name + 508, "xgemm", 5);
	ck_assert_str_eq(family_of(name, CLASS_COMPUTE), "other");
}
END_TEST

#define TESTS(X)    \
	X(families) \
	X(operators) X(arrays) X(shortening) X(names_that_are_too_much) X(whole_names) X(paths)
HELP_SUITE("view_name", TESTS)
