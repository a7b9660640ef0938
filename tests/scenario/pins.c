/* SPDX-License-Identifier: MIT. pins.c: hot paths, one after the other, for a program that counts
 * instructions: test_pins.py has it count those inside of counted() alone. */
#include <protond.h>
#include <stdio.h>
#include <unistd.h>

#define TIMES 1000

enum { QUIET, RECORDED, NESTED, METRIC, CPU_OFF };
static uint32_t name[8], loss;

static void scope(uint32_t n)
{
	protond_scope_enter(n);
	protond_scope_exit();
}

static void nested(void)
{
	for (int i = 0; i < 8; i++)
		protond_scope_enter(name[i]);
	for (int i = 0; i < 8; i++)
		protond_scope_exit();
}

static void run(int what)
{
	for (int i = 0; i < TIMES; i++) {
		if (what == METRIC)
			protond_metric_f64(loss, 0.5);
		else if (what != NESTED)
			scope(name[0]);
		else if (i % 8 == 0)
			nested();
	}
}

__attribute__((noinline)) void counted(int what);
void counted(int what)
{
	run(what);
}

static void measure(int what)
{
	run(what); /* paths are made, caches filled */
	counted(what);
}

static int fail(const char *what)
{
	(void)fprintf(stderr, "%s: %s\n", what, protond_error());
	return 1;
}

int main(void)
{
	const struct protond_options none = {.backend = "none"};
	const struct protond_options off = {.backend = "none", .cpu_off = 1};
	char text[16];
	int s;

	for (unsigned i = 0; i < 8; i++) {
		(void)snprintf(text, sizeof(text), "scope %u", i);
		name[i] = protond_name(text);
	}
	loss = protond_name("loss");
	measure(QUIET);
	s = protond_start("recorded", &none);
	if (s < 0)
		return fail("protond_start");
	protond_scope_enter(protond_name("step"));
	measure(RECORDED);
	measure(NESTED);
	measure(METRIC);
	protond_scope_exit();
	if (protond_finalize(s, NULL) < 0)
		return fail("protond_finalize");
	while (protond_recording()) /* what is wanted now is not a sum with what was before */
		(void)usleep(1000);
	s = protond_start("off", &off);
	if (s < 0)
		return fail("protond_start");
	measure(CPU_OFF);
	return protond_finalize(s, NULL) < 0 ? fail("protond_finalize") : 0;
}
