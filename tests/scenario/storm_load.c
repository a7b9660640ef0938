/* SPDX-License-Identifier: MIT. storm_load.c: a program that links none of it and loads libprotond
 * as often as it is told, beside each other, in namespaces of their own, or behind what leaves no
 * room.
 *
 * storm_load N WHAT...: N scopes through each library, by a thread for each, all at once. WHAT is
 *   open:PATH    dlopen()             new:PATH     dlmopen() into a namespace of its own
 *   close:PATH   dlopen() and, while the threads run, dlclose()
 *   fill:PATH    dlopen() of something that is not ours: it may fail
 * The program has thread-specific data of its own, and looks whether it stays what it is.
 * Says a line for each: its scopes, whether they were recorded, and what a start gave; or why there
 * is nothing to say.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "storm.h"

#define COPIES 8

struct copy {
	const char *path;
	void *handle;
	bool closes;
	uint32_t (*name)(const char *);
	void (*enter)(uint32_t), (*leave)(void);
	int (*recording)(void), (*start)(const char *, const void *);
	const char *(*error)(void);
	pthread_t thread;
	unsigned long did;
};

static struct copy copies[COPIES];
static pthread_key_t key; /* the program's own */
static unsigned n_copies;
static unsigned long scopes;
static pthread_barrier_t all_here;

static void *look_up(void *handle, const char *symbol)
{
	void *p = dlsym(handle, symbol);

	if (p == NULL) {
		printf("%s: %s\n", symbol, dlerror());
		exit(5);
	}
	return p;
}

#define LOOK_UP(c, member, symbol)                              \
	do {                                                    \
		void *p_ = look_up((c)->handle, (symbol));      \
                                                                \
		memcpy(&(c)->member, &p_, sizeof((c)->member)); \
	} while (0)

static void still_mine(const void *p)
{
	const struct copy *c = p;

	if (c < copies || c >= copies + COPIES) {
		puts("somebody else's thread-specific data");
		exit(6);
	}
}

static void at_end(void *p)
{
	still_mine(p);
}

/* All threads are inside of a scope when one library is closed, and go on. */
static void *work(void *p)
{
	struct copy *c = p;
	const uint32_t outer = c->name("outer"), inner = c->name("inner");

	if (pthread_setspecific(key, p) != 0)
		die("key");
	c->enter(outer);
	still_mine(pthread_getspecific(key));
	(void)pthread_barrier_wait(&all_here);
	for (c->did = 1; c->did < scopes; c->did++) {
		c->enter(inner);
		c->leave();
		if (c->closes && c->did == scopes / 2)
			(void)dlclose(c->handle);
	}
	c->leave();
	return p;
}

static void load(const char *what)
{
	const char *path = strchr(what, ':') + 1;
	const bool fill = what[0] == 'f';
	struct copy *c = &copies[n_copies];
	void *handle = what[0] == 'n' ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL)
				      : dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (handle == NULL)
		printf("%s: %s\n", fill ? "full" : "not loaded", dlerror());
	if (handle == NULL || fill)
		return;
	if (n_copies == COPIES)
		exit(2);
	*c = (struct copy){.path = path, .handle = handle, .closes = what[0] == 'c'};
	LOOK_UP(c, name, "protond_name");
	LOOK_UP(c, enter, "protond_scope_enter");
	LOOK_UP(c, leave, "protond_scope_exit");
	LOOK_UP(c, recording, "protond_recording");
	LOOK_UP(c, start, "protond_start");
	LOOK_UP(c, error, "protond_error");
	n_copies++;
}

int main(int argc, char **argv)
{
	if (argc < 2 || pthread_key_create(&key, at_end) != 0)
		return 2;
	for (int i = 2; i < argc; i++)
		load(argv[i]);
	scopes = number(argv, 1);
	if (pthread_barrier_init(&all_here, NULL, n_copies + 1) != 0)
		die("barrier");
	for (unsigned i = 0; i < n_copies; i++)
		if (pthread_create(&copies[i].thread, NULL, work, &copies[i]) != 0)
			die("pthread_create");
	(void)pthread_barrier_wait(&all_here);
	for (unsigned i = 0; i < n_copies; i++)
		(void)pthread_join(copies[i].thread, NULL);
	for (unsigned i = 0; i < n_copies; i++) {
		const struct copy *c = &copies[i];
		const int recording = c->recording(), start = c->start("own", NULL);

		printf("copy: %lu %d %d %s\n", c->did, recording, start, c->error());
	}
	return 0;
}
