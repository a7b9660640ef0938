/* SPDX-License-Identifier: MIT. storm.h: what the storm programs share. Each counts by itself what
 * it did and says so in its last line, "name=number ...": the truth that a stored tree is held to.
 */
#ifndef STORM_H
#define STORM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline _Noreturn void die(const char *why)
{
	perror(why);
	exit(3);
}

/* What the process has for itself: neither files nor the ring. */
static inline unsigned long own_kb(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	unsigned long kb = 0;
	char line[128];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "RssAnon:", 8) == 0)
			kb = strtoul(line + 8, NULL, 10);
	if (f != NULL)
		fclose(f);
	return kb;
}

/* Says a line, and goes on when one comes: in between the test looks at what has become of it. */
static inline void wait_for_word(const char *line)
{
	char word[64];

	puts(line);
	fflush(stdout);
	if (fgets(word, sizeof(word), stdin) == NULL)
		die("nobody answers");
}

static inline unsigned long number(char **argv, int i)
{
	return argv[i] != NULL ? strtoul(argv[i], NULL, 10) : 0;
}

#endif
