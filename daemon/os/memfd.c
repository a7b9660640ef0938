/* SPDX-License-Identifier: MIT. memfd.c: results too long for a message, as files in memory. */
#include "memfd.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int memfd_new(void)
{
	const int fd = memfd_create("protond-export", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? neg_errno() : fd;
}

int memfd_seal(int fd)
{
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0 ||
		lseek(fd, 0, SEEK_SET) < 0)
		return neg_errno();
	return 0;
}

int memfd_of(const void *bytes, size_t n)
{
	const int fd = memfd_new();
	const uint8_t *at = bytes, *end = at + n;
	ssize_t some;
	int r = fd < 0 ? fd : 0;

	while (r == 0 && at < end) {
		some = write(fd, at, (size_t)(end - at));
		if (some < 0 && errno != EINTR)
			r = neg_errno();
		at += some > 0 ? some : 0;
	}
	if (r == 0)
		r = memfd_seal(fd);
	if (r == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return r;
}

/* --- given away --- */

struct lent_one {
	struct lent_one *next;
	uint64_t bytes;
	uint32_t uid;
	int fd; /* read-only, so that it can have a lease */
};

/* A write lease is given to who has the file open alone: no other open file, no mapping. */
static bool is_returned(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		return errno != EAGAIN; /* a kernel without: not kept account of */
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return true;
}

static void forget(struct lent *l, bool all)
{
	struct lent_one **at = &l->first, *one;

	while ((one = *at) != NULL) {
		if (!all && !is_returned(one->fd)) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		(void)close(one->fd);
		free(one);
		l->n--;
	}
}

void memfd_returned(struct lent *l)
{
	forget(l, false);
}

void memfd_forget(struct lent *l)
{
	forget(l, true);
}

static bool may_have(const struct lent *l, uint32_t uid, uint64_t more)
{
	const struct share bytes = {4 * LENT_BYTES, LENT_BYTES};
	const struct lent_one *one;
	uint64_t n = 0, own = 0, used = 0;

	for (one = l->first; one != NULL; one = one->next) {
		n += one->uid == uid;
		own += one->uid == uid ? one->bytes : 0;
		used += one->bytes;
	}
	return share_room(&bytes, used, own, more) == 0 && share_room(&l->share, l->n, n, 1) == 0;
}

/* Opened anew: a lease is refused to what came of memfd_create(), and does not count it. */
static int open_again(int fd)
{
	char path[32];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = open(path, O_RDONLY | O_CLOEXEC);
	return r < 0 ? neg_errno() : r;
}

int memfd_lend(struct lent *l, uint32_t uid, int *fd, struct err *e)
{
	struct lent_one *one;
	struct stat st;
	int theirs;

	if (fstat(*fd, &st) < 0)
		return err_set(e, neg_errno(), "an export cannot be sent: %s", strerror(errno));
	if (!may_have(l, uid, (uint64_t)st.st_size))
		memfd_returned(l);
	if (!may_have(l, uid, (uint64_t)st.st_size))
		return err_set(e, -EDQUOT,
			"uid %u has too many exports still open, or over %llu MiB of them; when "
			"its "
			"programs close some, ask again",
			uid, (unsigned long long)(LENT_BYTES >> 20));
	one = calloc(1, sizeof(*one));
	if (one == NULL)
		return err_set(e, -ENOMEM, "no memory for an export");
	*one = (struct lent_one){.bytes = (uint64_t)st.st_size, .uid = uid, .fd = open_again(*fd)};
	theirs = one->fd < 0 ? one->fd : open_again(*fd);
	if (theirs < 0) {
		if (one->fd >= 0)
			(void)close(one->fd);
		free(one);
		return err_set(e, theirs, "an export cannot be sent: %s", strerror(-theirs));
	}
	one->next = l->first;
	l->first = one;
	l->n++;
	(void)close(*fd);
	*fd = theirs;
	return 0;
}
