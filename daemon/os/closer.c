/* SPDX-License-Identifier: MIT. closer.c: the thread that closes what jobs handed over. */
#include "closer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Not freed: the thread may be held up in a close() until the process ends. */
struct closer {
	pthread_mutex_t lock;
	pthread_cond_t more;
	int *fd; /* no more than may be open */
	size_t n, room;
};

static int next_fd(struct closer *c)
{
	int fd;

	(void)pthread_mutex_lock(&c->lock);
	while (c->n == 0)
		(void)pthread_cond_wait(&c->more, &c->lock);
	fd = c->fd[--c->n];
	(void)pthread_mutex_unlock(&c->lock);
	return fd;
}

static void *closer_run(void *arg)
{
	const struct linger off = {0};

	for (;;) {
		const int fd = next_fd(arg);

		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
		(void)close(fd);
	}
	return NULL;
}

int closer_new(struct closer **ret)
{
	struct closer *c = malloc(sizeof(*c));
	pthread_t thread;
	int r;

	if (c == NULL)
		return -ENOMEM;
	*c = (struct closer){.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};
	r = pthread_create(&thread, NULL, closer_run, c);
	if (r != 0) {
		free(c);
		return -r;
	}
	(void)pthread_detach(thread);
	*ret = c;
	return 0;
}

static bool put(struct closer *c, int fd)
{
	const size_t room = c->room != 0 ? c->room * 2 : 64;
	int *grown = c->n < c->room ? c->fd : reallocarray(c->fd, room, sizeof(*grown));

	if (grown == NULL)
		return false;
	c->room = c->n < c->room ? c->room : room;
	c->fd = grown;
	c->fd[c->n++] = fd;
	return true;
}

void closer_take(struct closer *c, int fd)
{
	bool taken = false;

	if (c != NULL) {
		(void)pthread_mutex_lock(&c->lock);
		taken = put(c, fd);
		(void)pthread_cond_signal(&c->more);
		(void)pthread_mutex_unlock(&c->lock);
	}
	if (!taken)
		(void)close(fd);
}
