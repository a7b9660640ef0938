/* SPDX-License-Identifier: MIT. hello.c: reading the file beside agent.sock. It is believed as the
 * socket is: root's, this user's, or whoever's the directory is. */
#include "hello.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doorbell.h"
#include "rendezvous.h"

/* A FIFO does not hang, and what others may write is nobody's word. */
static bool is_fit(int fd, const struct stat *dir)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 022) == 0 &&
	       (st.st_uid == 0 || st.st_uid == geteuid() || st.st_uid == dir->st_uid) &&
	       st.st_size >= (off_t)sizeof(struct rv_hello) && st.st_size <= (off_t)RV_HELLO_MAX;
}

static bool read_hello(const char *dir, const struct stat *st, struct rv_hello *ret)
{
	char path[PLACE_PATH_MAX + sizeof(RV_HELLO) + 1];
	bool ok;
	int fd;

	snprintf(path, sizeof(path), "%s/" RV_HELLO, dir);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = is_fit(fd, st) && pread(fd, ret, sizeof(*ret), 0) == (ssize_t)sizeof(*ret);
	close(fd);
	return ok && ret->mark == RV_HELLO_MARK && ret->abi >> 16 == RING_ABI >> 16;
}

bool pd_hello(const char *dir, struct rv_welcome *ret)
{
	struct rv_hello h;
	struct stat st;

	if (stat(dir, &st) < 0 || !read_hello(dir, &st, &h))
		return false;
	*ret = (struct rv_welcome){
		.abi = h.abi, .want = h.want, .n_lanes = h.n_lanes, .lane_bytes = h.lane_bytes};
	memcpy(ret->store, h.store, 16);
	if ((h.flags & RV_HELLO_NAMED) != 0 && st.st_uid == geteuid() &&
		(size_t)snprintf(ret->rings, sizeof(ret->rings), "%s/" RV_RINGS_DIR, dir) >=
			sizeof(ret->rings))
		ret->rings[0] = '\0';
	return true;
}
