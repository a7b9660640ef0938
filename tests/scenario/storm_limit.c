/* SPDX-License-Identifier: MIT. storm_limit.c: a program in which nothing is left to make things
 * of: descriptors and memory by the limits that it was started with, threads because its
 * pthread_create() fails from the call number STORM_THREADS on.
 *
 * storm_limit N: N scopes, then a session of its own with as many, if it can be had. Says what the
 * start gave, how many descriptors were left open by what did not work, and the words.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include <protond.h>

#include "storm.h"

#define TRIES 20

/* The libraries' calls come here too: a program's own functions are found first. */
__attribute__((visibility("default"))) int pthread_create(pthread_t *restrict t,
	const pthread_attr_t *restrict a, void *(*fn)(void *), void *restrict p)
{
	static _Atomic unsigned calls;
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	void *symbol = dlsym(RTLD_NEXT, "pthread_create");
	const char *most = getenv("STORM_THREADS");

	if (symbol == NULL || (most != NULL && ++calls > strtoul(most, NULL, 10)))
		return EAGAIN;
	memcpy(&real, &symbol, sizeof(real));
	return real(t, a, fn, p);
}

static void scopes(const char *text, unsigned long n)
{
	const uint32_t name = protond_name(text);

	for (; n > 0; n--) {
		protond_scope_enter(name);
		protond_scope_exit();
	}
}

/* 0 also when there is no descriptor left to look with. */
static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d != NULL && readdir(d) != NULL)
		n++;
	if (d != NULL)
		closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	const unsigned long n = argc > 1 ? number(argv, 1) : 0;
	int before, session = -1;
	char words[256];

	scopes("before", n);
	session = protond_start("own", NULL);
	(void)snprintf(words, sizeof(words), "%s", protond_error());
	before = descriptors();
	for (int i = 0; i < TRIES && session < 0; i++)
		if (protond_start("own", NULL) != session)
			return 6;
	printf("%d %d %u %s\n", session, descriptors() - before, protond_depth(), words);
	scopes("inside", n);
	if (session >= 0 && protond_finalize(session, NULL) < 0)
		return 5;
	return 0;
}
