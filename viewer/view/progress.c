/* SPDX-License-Identifier: MIT. progress.c: how far a long work is. */
#include "progress.h"

#include <time.h>
#include <unistd.h>

#include "term.h"

#define QUIET_NS 500000000u /* what is done by then draws nothing */
#define EVERY_NS 200000000u
#define CELLS    20

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void progress_begin(struct progress *p, const char *what)
{
	struct term term;

	term_init(&term, STDERR_FILENO, true);
	*p = (struct progress){.what = term.tty ? what : NULL, .began_ns = now_ns()};
}

/* "exporting [#####...............]  25 %  1.2 GiB  12.0 s left" */
static void draw(struct progress *p, double part, uint64_t bytes, double passed_ns)
{
	struct text t = {0};
	int i;

	text_fmt(&t, "\r%s [", p->what);
	for (i = 0; i < CELLS; i++)
		text_char(&t, i < part * CELLS ? '#' : '.');
	text_fmt(&t, "] %3.0f %%  ", part * 100);
	if (bytes > 0)
		text_fmt(&t, "%.1f MiB  ", (double)bytes / (1 << 20));
	if (part > 0.01) {
		term_duration(&t, passed_ns / part - passed_ns);
		text_str(&t, " left");
	}
	text_str(&t, "\033[K");
	if (!t.failed)
		(void)term_write(STDERR_FILENO, t.s, t.n);
	text_fini(&t);
	p->drawn = true;
}

void progress_step(struct progress *p, double done, double all, uint64_t bytes)
{
	const uint64_t now = p->what != NULL ? now_ns() : 0;

	if (p->what == NULL || now - p->began_ns < QUIET_NS || now - p->drawn_ns < EVERY_NS ||
		!(all > 0))
		return;
	p->drawn_ns = now;
	draw(p, done < all ? done / all : 1, bytes, (double)(now - p->began_ns));
}

void progress_end(struct progress *p)
{
	if (p->drawn)
		(void)term_write(STDERR_FILENO, "\r\033[K", 4);
	p->drawn = false;
}
