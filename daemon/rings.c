/* SPDX-License-Identifier: MIT. rings.c: the rings that this daemon drains, from the first sight of
 * a file to its removal, and the control file beside each.
 *
 * Liveness is a pidfd, never a socket (a forked child may hold it) and never a header. The files of
 * an ended process go only after a transaction that holds its END: until then a crash starts over
 * with them.
 */
#include "rings.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "closer.h"
#include "conn.h"
#include "container_of.h"
#include "daemon.h"
#include "exited.h"
#include "host_clock.h"
#include "must.h"
#include "turn.h"

struct ring *ring_find(const struct rings *all, const uint8_t uuid[16])
{
	struct ring *r;

	for (r = all->first; r != NULL; r = r->next) {
		if (memcmp(r->uuid, uuid, 16) == 0)
			return r;
	}
	return NULL;
}

uint64_t rings_of(const struct rings *all, uint32_t uid)
{
	const struct ring *r;
	uint64_t n = 0;

	for (r = all->first; r != NULL; r = r->next)
		n += r->uid == uid && r->state != RING_ENDED;
	return n;
}

struct ring *ring_add(struct rings *all, const uint8_t uuid[16])
{
	struct ring *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->magic = RING_IS_ALIVE;
	r->all = all;
	memcpy(r->uuid, uuid, 16);
	r->reader.fd = r->ctl_fd = r->pidfd = -1;
	r->gpu_mask = UINT32_MAX;
	r->joining = true; /* what is restored may be */
	r->next = all->first;
	all->first = r;
	all->n++;
	return r;
}

int ring_take_heads(struct ring *r)
{
	const uint32_t n = r->n_heads < r->reader.h.n_lanes ? r->n_heads : r->reader.h.n_lanes;
	struct reader_lane *l;
	uint32_t i;

	if (reader_have(&r->reader, n) < 0)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		l = &r->reader.lane[i];
		l->head = l->tail = l->goal = l->first = l->scanned = r->head[i];
	}
	r->reader.n_seen = r->reader.n_seen > n ? r->reader.n_seen : n;
	return 0;
}

int ring_open(struct ring *r, int fd, const struct reader_expect *x, struct err *e)
{
	int n;

	MUST(r->magic == RING_IS_ALIVE && r->reader.lane == NULL && !r->closing);
	n = reader_open(fd, x, &r->reader, e);
	if (n < 0)
		return n;
	n = ring_take_heads(r);
	if (n < 0) {
		free(r->reader.lane);
		r->reader = (struct reader){.fd = -1};
		return err_set(e, n, "no memory for a ring");
	}
	r->uid = x->uid;
	r->ns_pid = r->reader.h.pid;
	r->gpu_lane = 0; /* of another file, perhaps */
	r->state = RING_LIVE;
	return 0;
}

static void ring_free(struct ring *r)
{
	struct ring **at = &r->all->first;

	MUST(r->magic == RING_IS_ALIVE && r->conn == NULL);
	MUST_LOOP(r->all->d);
	r->magic = 0;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	r->all->n--;
	if (r->reader.lane != NULL) { /* its pages go with it, which takes as long as it is large */
		closer_take(r->all->closer, r->reader.fd);
		r->reader.fd = -1;
	}
	reader_close(&r->reader);
	if (r->ctl_fd >= 0)
		(void)close(r->ctl_fd);
	if (r->pidfd >= 0)
		(void)close(r->pidfd);
	free(r->head);
	free(r);
}

static void ring_on_closed(uv_handle_t *h)
{
	ring_free(container_of(h, struct ring, pid_poll));
}

void ring_drop(struct ring *r)
{
	if (r->closing)
		return;
	r->closing = true;
	if (r->conn != NULL)
		r->conn->ring = NULL;
	r->conn = NULL;
	if (r->polling)
		uv_close((uv_handle_t *)&r->pid_poll, ring_on_closed);
	else
		ring_free(r);
}

void ring_died(struct ring *r)
{
	MUST(r->magic == RING_IS_ALIVE);
	if (r->state != RING_LIVE && r->state != RING_WAITING)
		return;
	r->state = RING_GONE;
	r->gone_ns = mono_ns();
	turn_hurry(r->all->turn);
}

static void ring_on_exit(uv_poll_t *h, int status, int events)
{
	(void)status;
	(void)events;
	(void)uv_poll_stop(h);
	ring_died(container_of(h, struct ring, pid_poll));
}

bool ring_watch(struct ring *r, int pidfd)
{
	if (r->pidfd >= 0) {
		if (pidfd >= 0)
			(void)close(pidfd);
		return true;
	}
	if (pidfd < 0 && r->pid != 0) {
		pidfd = (int)syscall(SYS_pidfd_open, (pid_t)r->pid, 0);
		/* After the open: the number cannot have been given to another since. */
		if (pidfd >= 0 && r->pid_start != 0 && process_start(r->pid) != r->pid_start) {
			(void)close(pidfd);
			pidfd = -1;
		}
	}
	if (pidfd < 0)
		return false;
	r->pidfd = pidfd;
	if (uv_poll_init(&r->all->d->loop, &r->pid_poll, pidfd) < 0)
		return true; /* the sweep asks for the start time instead */
	r->polling = true;
	(void)uv_poll_start(&r->pid_poll, UV_READABLE, ring_on_exit);
	return true;
}

bool rings_work(const struct rings *all)
{
	const struct ring *r;

	for (r = all->first; r != NULL && r->state == RING_ENDED; r = r->next)
		;
	return r != NULL;
}

void rings_free(struct rings *all)
{
	struct ring *r, *next;

	for (r = all->first; r != NULL; r = next) {
		next = r->next;
		ring_drop(r);
	}
}
