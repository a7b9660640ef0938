/* SPDX-License-Identifier: MIT. ring_ctl.c: the control file beside each ring. */
#include "ring_ctl.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon.h"
#include "entry.h"
#include "fold.h"
#include "host_clock.h"
#include "journal.h"

#define BEAT_NS 100000000u

static void ctl_name(const struct ring *r, char ret[RING_NAME_BYTES_TEXT])
{
	char name[RING_NAME_BYTES_TEXT];

	ring_name(r->uuid, name);
	(void)snprintf(ret, RING_NAME_BYTES_TEXT, "%.32s.ctl", name);
}

static bool ctl_write(int fd, const void *p, size_t n, uint64_t at)
{
	/* A pwrite of an aligned word stores it at once; pairs with the job's acquire of the same
	 * word. */
	return pwrite(fd, p, n, (off_t)at) == (ssize_t)n;
}

/* A file of a former life that the job has mapped already, or a new one. */
static int ctl_file(const struct ring *r, uint64_t bytes, bool *ret_new)
{
	char name[RING_NAME_BYTES_TEXT];
	struct stat st;
	int fd;

	*ret_new = false;
	ctl_name(r, name);
	fd = openat(r->all->d->rings_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
			st.st_nlink == 1 && (uint64_t)st.st_size == bytes &&
			fchmod(fd, 0600) == 0) /* a daemon before this one let others read it */
			return fd;
		(void)close(fd);
		if (unlinkat(r->all->d->rings_fd, name, 0) < 0 && errno != ENOENT)
			return neg_errno();
	}
	fd = openat(r->all->d->rings_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		0600);
	if (fd < 0)
		return neg_errno();
	*ret_new = true;
	/* Backed at once: a later pwrite must not find the tmpfs full. */
	if (fchmod(fd, 0600) == 0 && ftruncate(fd, (off_t)bytes) == 0 &&
		fallocate(fd, 0, 0, (off_t)bytes) == 0)
		return fd;
	bytes = (uint64_t)neg_errno();
	(void)unlinkat(r->all->d->rings_fd, name, 0);
	(void)close(fd);
	return (int)(int64_t)bytes;
}

static uint64_t sums_word(const struct ring *r)
{
	return (uint64_t)r->visit << 32 | r->cut;
}

void ring_say_sums(struct ring *r)
{
	const uint64_t word = sums_word(r);

	if (r->ctl_fd >= 0)
		(void)ctl_write(r->ctl_fd, &word, sizeof(word), offsetof(struct ring_ctl, sums));
}

/* What is open since the daemon's former life is closed: it may have said no more what cuts. */
static void sums_go_on(struct ring *r, int fd)
{
	uint64_t word;

	if (pread(fd, &word, sizeof(word), offsetof(struct ring_ctl, sums)) != sizeof(word))
		return;
	r->visit = SUMS_VISIT(word);
	r->cut = SUMS_CUT(word) + 1;
}

/* Of a former life's file. -1: there is none. */
static int ctl_former(const struct ring *r, uint32_t *ret_lanes)
{
	char name[RING_NAME_BYTES_TEXT];
	struct stat st;
	int fd;

	ctl_name(r, name);
	fd = openat(r->all->d->rings_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
		st.st_size < (off_t)sizeof(struct ring_ctl) ||
		(uint64_t)st.st_size > ring_ctl_bytes(RING_LANES_MAX)) {
		(void)close(fd);
		return -1;
	}
	*ret_lanes = (uint32_t)(((uint64_t)st.st_size - sizeof(struct ring_ctl)) / 64);
	return fd;
}

/* A lane whose job was told more than rows and journal have. */
static int lane_is_ahead(struct ring *r, uint32_t i, uint64_t told)
{
	struct reader *f = &r->reader;
	const struct j_lane j = {.lane = i, .from = told};

	if (told % 8 != 0 || told > INT64_MAX)
		return 0;
	if (f->lane == NULL) /* nothing comes any more */
		return told > (i < r->n_heads ? r->head[i] : 0)
			       ? entry_put(r->all->entries, J_LANE, r->uuid, &j, sizeof(j))
			       : 0;
	if (i >= f->h.n_lanes || told == 0)
		return 0;
	if (reader_have(f, i + 1) < 0)
		return -ENOMEM;
	f->n_seen = f->n_seen > i + 1 ? f->n_seen : i + 1;
	if (told > f->lane[i].head)
		f->lane[i].gone = told;
	return 0;
}

int ring_compare_heads(struct ring *r)
{
	uint32_t i, n = 0;
	const int fd = ctl_former(r, &n);
	uint64_t told;
	int x = 0;

	for (i = 0; x == 0 && i < n; i++) {
		if (pread(fd, &told, sizeof(told), (off_t)(sizeof(struct ring_ctl) + 64ull * i)) !=
			sizeof(told))
			break;
		x = lane_is_ahead(r, i, told);
	}
	if (fd >= 0)
		(void)close(fd);
	return x;
}

int ring_control_open(struct ring *r)
{
	struct ring_ctl c = {.magic = RING_CTL_MAGIC, .abi = RING_ABI};
	bool is_new = false;
	uint32_t i;
	int fd;

	if (r->ctl_fd >= 0)
		return 0;
	fd = ring_compare_heads(r);
	if (fd == 0)
		fd = ctl_file(r, ring_ctl_bytes(r->reader.h.n_lanes), &is_new);
	if (fd < 0)
		return fd;
	for (i = 0; i < r->reader.h.n_lanes; i++) {
		struct reader_lane *l = i < r->reader.cap ? &r->reader.lane[i] : NULL;
		const uint64_t head = l == NULL ? 0 : l->gone > l->head ? l->gone : l->head;

		if (is_new && head == 0)
			continue;
		if (!ctl_write(fd, &head, sizeof(head), sizeof(c) + 64ull * i))
			break;
		if (l != NULL)
			l->told = head;
	}
	r->want = r->adopted ? fold_want(r->all->d->fold, r->uuid) & r->gpu_mask : r->offered_want;
	atomic_init(&c.want, r->want);
	atomic_init(&c.beat_ns, mono_ns());
	if (is_new)
		r->cut++; /* 0 is an older daemon's */
	else
		sums_go_on(r, fd);
	atomic_init(&c.sums, sums_word(r));
	/* Without the magic, then with it: nobody has it before it is whole, but for a job that
	 * mapped the same file in the daemon's former life, and that only sees equal or newer
	 * heads. */
	if (i < r->reader.h.n_lanes || !ctl_write(fd, (const char *)&c + 8, sizeof(c) - 8, 8) ||
		!ctl_write(fd, &c, 8, 0)) {
		i = (uint32_t)errno;
		(void)close(fd);
		return i != 0 ? -(int)i : -EIO;
	}
	r->ctl_fd = fd;
	return 0;
}

int ring_control_fd(const struct ring *r)
{
	char path[40];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", r->ctl_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : neg_errno();
}

void ring_release(struct ring *r)
{
	const uint64_t now = mono_ns();
	uint32_t i;

	if (r->ctl_fd < 0)
		return;
	for (i = 0; i < r->reader.n_seen; i++) {
		struct reader_lane *l = &r->reader.lane[i];

		if (l->told < l->head && !l->quarantined &&
			ctl_write(r->ctl_fd, &l->head, sizeof(l->head),
				sizeof(struct ring_ctl) + 64ull * i))
			l->told = l->head;
	}
	if (now - r->beat_ns >= BEAT_NS &&
		ctl_write(r->ctl_fd, &now, sizeof(now), offsetof(struct ring_ctl, beat_ns)))
		r->beat_ns = now;
}

bool ring_is_recording(const struct ring *r)
{
	return r->state == RING_LIVE && (r->want & ~(uint32_t)WANT_GPU_PAUSE) != 0;
}

bool ring_wakes(const struct ring *r)
{
	return r->conn != NULL && r->ctl_fd >= 0 && (r->reader.h.abi & 0xffff) >= RING_ABI_RINGS;
}

bool ring_nap(struct ring *r, uint32_t nap)
{
	if (!ctl_write(r->ctl_fd, &nap, sizeof(nap), offsetof(struct ring_ctl, nap)))
		return false;
	r->nap = nap;
	return true;
}

bool ring_say_want(struct ring *r, uint32_t want)
{
	if (want != r->want && r->ctl_fd >= 0 &&
		ctl_write(r->ctl_fd, &want, sizeof(want), offsetof(struct ring_ctl, want)))
		r->want = want;
	return r->want == want;
}

void ring_control_remove(const struct ring *r)
{
	char name[RING_NAME_BYTES_TEXT];

	ctl_name(r, name);
	(void)unlinkat(r->all->d->rings_fd, name, 0);
}
