/* SPDX-License-Identifier: MIT. ring_file.c: the ring file: made, backed with memory piece by piece,
 * and joined with the daemon's control file. Cold paths only; see ring.h for the layout. */
#include "ring_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "core.h"
#include "keep.h"
#include "sync.h"

#define LANE_BUDGET (64ull << 20)

static int neg_errno(void)
{
	return errno > 0 ? -errno : -EIO;
}

static int words(char *text, int code, const char *what)
{
	snprintf(text, 256, "%s: %s", what, strerror(-code));
	return code;
}

static size_t read_file(const char *path, char *buf, size_t n)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	buf[0] = '\0';
	if (fd < 0)
		return 0;
	do {
		got = read(fd, buf, n - 1);
	} while (got < 0 && errno == EINTR);
	close(fd);
	if (got <= 0)
		return 0;
	buf[got] = '\0';
	return (size_t)got;
}

/* Field 22 of /proc/self/stat. The command name (field 2) may hold anything, also ") ". */
static uint64_t start_time(void)
{
	char buf[1024];
	const char *p;

	if (read_file("/proc/self/stat", buf, sizeof(buf)) == 0)
		return 0;
	p = strrchr(buf, ')');
	for (int field = 2; p != NULL && field < 22; field++) {
		p = strchr(p, ' ');
		p = p != NULL ? p + 1 : NULL;
	}
	return p != NULL ? strtoull(p, NULL, 10) : 0;
}

static void boot_id(uint8_t ret[16])
{
	char buf[64];
	unsigned n = 0;

	(void)read_file("/proc/sys/kernel/random/boot_id", buf, sizeof(buf));
	for (const char *p = buf; p[0] != '\0' && p[1] != '\0' && n < 16; p++) {
		const char hex[3] = {p[0], p[1], '\0'};

		if (*p == '-')
			continue;
		ret[n++] = (uint8_t)strtoul(hex, NULL, 16);
		p++;
	}
}

/* A ring lives in memory: on a disk every page would be written back, and a store may wait for it.
 */
static bool on_tmpfs(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type == TMPFS_MAGIC;
}

static char ring_path[512]; /* of a ring that has a name, or will; "" */

static int make_in(const char *dir, const uint8_t uuid[16])
{
	const int fd = fd_keep(open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
	size_t n;

	if (fd < 0)
		return neg_errno();
	if (!on_tmpfs(fd)) {
		close(fd);
		return -EMEDIUMTYPE;
	}
	n = (size_t)snprintf(ring_path, sizeof(ring_path), "%s/", dir);
	for (int i = 0; i < 16; i++)
		n += (size_t)snprintf(ring_path + n, sizeof(ring_path) - n, "%02x", uuid[i]);
	snprintf(ring_path + n, sizeof(ring_path) - n, ".ring");
	return fd;
}

static int make_file(const char *dir)
{
	int fd = -ENOENT;

	core.named = 0;
	ring_path[0] = '\0';
	if (dir != NULL && dir[0] == '/' && strlen(dir) < 400)
		fd = make_in(dir, core.uuid);
	if (fd >= 0)
		return fd;
	fd = fd_keep(memfd_create("protond-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	return fd >= 0 ? fd : neg_errno();
}

void ring_name(void)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", core.fd);
	core.named = ring_path[0] != '\0' &&
		     linkat(AT_FDCWD, self, AT_FDCWD, ring_path, AT_SYMLINK_FOLLOW) == 0;
}

bool ring_reopen(void)
{
	const int fd = core.named ? fd_keep(open(ring_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)) : -1;
	struct stat st;
	sigset_t mask;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) < 0 || st.st_dev != core.dev || st.st_ino != core.ino) {
		close(fd);
		return false;
	}
	agent_lock_tables(&mask); /* with it the tables grow */
	core.fd = fd;             /* the old number is the application's */
	agent_unlock_tables(&mask);
	return true;
}

/* How many lanes may get memory: a torch worker needs the same tmpfs. */
static uint32_t lane_budget(int fd, uint32_t lane_bytes)
{
	struct statfs fs;
	uint64_t budget = LANE_BUDGET;

	if (fstatfs(fd, &fs) == 0 && fs.f_blocks != 0) {
		const uint64_t eighth = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize / 8;

		budget = eighth < budget ? eighth : budget;
	}
	return (uint32_t)(budget / lane_bytes);
}

void ring_budget(void)
{
	const uint32_t used = atomic_load_explicit(&core.lanes_backed, memory_order_relaxed);
	const uint64_t all = LANE_BUDGET / core.lane_bytes;
	uint64_t max = used;

	if (used < atomic_load_explicit(&core.lanes_backed_max, memory_order_relaxed))
		return;
	max += lane_budget(core.fd, core.lane_bytes);
	max = max < all ? max : all;
	max = max < core.n_lanes ? max : core.n_lanes;
	if (max > used)
		atomic_store_explicit(&core.lanes_backed_max, (uint32_t)max, memory_order_relaxed);
}

int ring_back(uint64_t offset, uint64_t bytes)
{
	struct stat st;
	int r;

	/* The application may have closed every descriptor and opened its own files since. */
	if (fstat(core.fd, &st) < 0 || st.st_dev != core.dev || st.st_ino != core.ino)
		return -EBADF;
	do {
		r = fallocate(core.fd, 0, (off_t)offset, (off_t)bytes);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? neg_errno() : 0;
}

void ring_unback(uint64_t offset, uint64_t bytes)
{
	struct stat st;

	if (fstat(core.fd, &st) == 0 && st.st_dev == core.dev && st.st_ino == core.ino)
		(void)fallocate(core.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
			(off_t)bytes);
}

/* The largest ring that a limit on file sizes admits: going over it would be a SIGXFSZ for the job.
 */
static bool fit_limit(struct ring_header *h, struct ring_layout *ret)
{
	struct rlimit lim;

	while (ring_layout(h, ret)) {
		h->file_bytes = ret->file_bytes;
		if (getrlimit(RLIMIT_FSIZE, &lim) < 0 || lim.rlim_cur == RLIM_INFINITY ||
			ret->file_bytes <= lim.rlim_cur)
			return true;
		if (h->n_lanes <= 2)
			return false;
		h->n_lanes /= 2;
	}
	return false;
}

static void describe(struct ring_header *h, const struct engine_open *o)
{
	const bool lanes_ok = o->n_lanes != 0 && o->n_lanes <= RING_LANES_MAX;
	const bool bytes_ok = ring_is_pow2(o->lane_bytes) && o->lane_bytes >= RING_LANE_BYTES_MIN &&
			      o->lane_bytes <= RING_LANE_BYTES_MAX;

	*h = (struct ring_header){
		.abi = core.wakes ? RING_ABI : RING_ABI & 0xffff0000u,
		.header_bytes = sizeof(*h),
		.pid = (uint32_t)getpid(),
		.uid = (uint32_t)geteuid(),
		.pid_start = start_time(),
		.clock = HOT->tsc != 0 ? RING_CLOCK_TSC : RING_CLOCK_MONOTONIC,
		.tsc_khz = HOT->tsc != 0 ? agent_tsc_khz() : 0,
		.n_lanes = lanes_ok ? o->n_lanes : RING_LANES,
		.lane_bytes = bytes_ok ? o->lane_bytes : RING_LANE_BYTES,
		.path_cap = RING_PATHS,
		.name_cap = RING_NAMES,
		.name_bytes_cap = RING_NAME_BYTES,
		.config_cap = RING_CONFIGS,
		.device_cap = RING_DEVICES,
	};
	memcpy(h->uuid, core.uuid, 16);
	memcpy(h->store, o->store, 16);
	memcpy(h->parent, o->parent, 16);
	boot_id(h->boot_id);
}

/* The counts once more, on a mapping that forked children keep: the ring itself is not theirs. */
static struct {
	struct ring_counts *own, *parents;
} family;

static struct ring_counts *map_counts(void)
{
	void *p = mmap(NULL, RING_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, core.fd,
		(off_t)core.at.counts);

	return p != MAP_FAILED ? p : NULL;
}

void ring_descend(void)
{
	if (family.own == NULL) /* whoever forked it had no ring: its grandparent stands for it */
		return;
	if (family.parents != NULL)
		munmap(family.parents, RING_PAGE);
	family.parents = family.own;
	family.own = NULL;
}

void ring_child_lost(int32_t n)
{
	if (family.parents != NULL)
		atomic_fetch_add_explicit(
			&family.parents->children_lost, (uint32_t)n, memory_order_relaxed);
}

static int map_ring(const struct ring_header *h, const struct engine_open *o)
{
	const uint32_t info = o->info_bytes < RING_INFO_BYTES ? o->info_bytes : RING_INFO_BYTES - 1;
	struct rec_clock c;
	struct stat st;
	unsigned char *p;
	int r;

	if (fstat(core.fd, &st) < 0)
		return neg_errno();
	core.dev = st.st_dev;
	core.ino = st.st_ino;
	if (ftruncate(core.fd, (off_t)h->file_bytes) < 0)
		return neg_errno();
	/* A memfd: the daemon lets no file that may grow be kept for it. */
	if (ring_path[0] == '\0')
		(void)fcntl(core.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	r = ring_back(0, core.at.paths);
	if (r < 0)
		return r;
	p = mmap(NULL, h->file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, core.fd, 0);
	if (p == MAP_FAILED)
		return neg_errno();
	core.header = (struct ring_header *)(void *)p;
	core.counts = (struct ring_counts *)(void *)(p + core.at.counts);
	*core.header = *h;
	agent_clock_record(&c);
	core.header->created_clock = c.clock;
	core.header->created_monotonic_ns = c.monotonic_ns;
	core.header->created_realtime_ns = c.realtime_ns;
	memcpy(p + core.at.info, o->info != NULL ? o->info : "", o->info != NULL ? info : 0);
	family.own = map_counts();
	return 0;
}

/* Until the daemon's file is mapped over them, heads are zeroes: one lane's worth can be recorded.
 */
static int map_ctl(void)
{
	void *p;

	core.ctl_bytes = ring_ctl_bytes(core.n_lanes);
	p = mmap(NULL, core.ctl_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return neg_errno();
	core.ctl = p;
	return 0;
}

void ring_unmake(void)
{
	if (core.ctl != NULL)
		munmap(core.ctl, core.ctl_bytes);
	if (core.header != NULL)
		munmap(core.header, core.at.file_bytes);
	if (family.own != NULL)
		munmap(family.own, RING_PAGE);
	family.own = NULL;
	if (core.fd >= 0 && core.named)
		(void)unlink(ring_path);
	if (core.fd >= 0)
		close(core.fd);
	core.ctl = NULL;
	core.header = NULL;
	core.counts = NULL;
	core.fd = -1;
}

int ring_make(const struct engine_open *o, char *text)
{
	struct ring_header h;
	int r;

	if (getrandom(core.uuid, 16, GRND_NONBLOCK) != 16)
		return words(text, -EAGAIN, "no random bytes for the ring's name");
	describe(&h, o);
	if (!fit_limit(&h, &core.at))
		return words(text, -EFBIG,
			"the limit on file sizes (ulimit -f) leaves no room for a ring");
	core.header = NULL;
	core.ctl = NULL;
	core.fd = make_file(o->rings_dir);
	if (core.fd < 0)
		return words(text, core.fd, "cannot make the ring");
	core.n_lanes = h.n_lanes;
	core.lane_bytes = h.lane_bytes;
	core.lanes_backed_max = lane_budget(core.fd, h.lane_bytes);
	r = map_ring(&h, o);
	if (r == 0)
		r = map_ctl();
	if (r < 0) {
		ring_unmake();
		return words(
			text, r, "no memory for the ring (is the tmpfs full, or ulimit -v low?)");
	}
	return 0;
}

/* In place of what was there: threads that read heads meanwhile see the one or the other, which is
 * all they need. A system call of its own, for the thread sanitizer takes mmap() for a write. */
static int map_over(int fd)
{
	const long p = syscall(
		SYS_mmap, core.ctl, core.ctl_bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0L);

	return p == -1 ? neg_errno() : 0;
}

int ring_control(int fd, uint32_t n_lanes)
{
	struct ring_ctl head;
	struct stat st;
	int r = -EPROTO;

	if (core.ctl == NULL || n_lanes < core.n_lanes || fstat(fd, &st) < 0)
		goto out;
	/* A file shorter than what is mapped would be a SIGBUS for the job. */
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)core.ctl_bytes)
		goto out;
	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
		head.magic != RING_CTL_MAGIC || head.abi >> 16 != RING_ABI >> 16)
		goto out;
	r = map_over(fd);
out:
	close(fd);
	return r;
}

/* A frame of the parent that was interrupted inside a record may still return, in the child, into
 * code that stores to its lane: private zeroes take the stores, neither faulting nor being seen. */
void ring_forget(void)
{
	if (core.header != NULL)
		(void)mmap(core.header, core.at.file_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}
