/* SPDX-License-Identifier: MIT. hello.c: the file that says beforehand what WELCOME would say, so
 * that a job need not wait for it: the store, the sizes, and what any job is to record. It says
 * nothing of users or sessions but whether one awaits jobs. */
#include "hello.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "daemon.h"
#include "log.h"
#include "ring.h"
#include "want.h"

#define HELLO_NEW RV_HELLO ".new"

static int hello_write(const struct rv_hello *h, int dir, bool private)
{
	const mode_t mode = private ? 0600 : 0644;
	int fd, r = 0;

	(void)unlinkat(dir, HELLO_NEW, 0);
	fd = openat(dir, HELLO_NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return neg_errno();
	if (write(fd, h, sizeof(*h)) != (ssize_t)sizeof(*h) || fchmod(fd, mode) < 0 ||
		renameat(dir, HELLO_NEW, dir, RV_HELLO) < 0)
		r = neg_errno();
	(void)close(fd);
	if (r < 0)
		(void)unlinkat(dir, HELLO_NEW, 0);
	return r;
}

void hello_tell(struct hello *h, const struct daemon *d)
{
	static struct log_cause cause;
	struct rv_welcome sizes = {0};
	struct rv_hello now = {.mark = RV_HELLO_MARK,
		.abi = RING_ABI,
		.want = want_of_any(d),
		.flags = d->private ? RV_HELLO_NAMED : 0};
	int r;

	want_ring_sizes(d->config, &sizes);
	now.n_lanes = sizes.n_lanes;
	now.lane_bytes = sizes.lane_bytes;
	memcpy(now.store, d->store_uuid, 16);
	if (memcmp(&now, &h->said, sizeof(now)) == 0)
		return;
	r = hello_write(&now, d->runtime_fd, d->private);
	if (r < 0)
		log_cause(&cause, LOG_WARN, "no_hello", "error=%d", -r);
	else
		h->said = now;
}

void hello_forget(struct hello *h)
{
	*h = (struct hello){0};
}

void hello_remove(struct hello *h, const struct daemon *d)
{
	(void)unlinkat(d->runtime_fd, RV_HELLO, 0);
	hello_forget(h);
}
