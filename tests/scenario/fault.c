/* SPDX-License-Identifier: MIT. fault.c: preloaded into a daemon, it ends it or fails it at its
 * n-th step, makes its disk slow, read-only or a network's, and steps its clock. A step is a call
 * that changes a file or asks for memory.
 *
 * PD_FAULT=WHAT:N, PD_FAULT_PAGE=FILE of 4096 bytes: u64[0] counts the file steps, u64[1] the
 * allocations, u64[2] is 1 once the fault was.
 *   before:N, after:N    SIGKILL before or after the n-th file step
 *   space:N, io:N        that step and all later ones fail with ENOSPC, EIO, until u64[3] is not 0
 *   memory:N             the n-th allocation fails, once
 *   none:0               no step does
 *
 * Whatever WHAT is, a test may change these at any time:
 *   u64[4]    nanoseconds that CLOCK_REALTIME is off
 *   u64[5]    what ails the files whose names begin with PD_FAULT_ON: 1: read-only; else so many
 *             nanoseconds each write and each sync of them takes, or until this changes
 *   u64[6]    the type of file system that they are said to be on; 0: the truth
 *   u64[7]    1: they cannot be mapped
 *   u64[9]    1: SIGKILL before it reserves space in a file: a new job's ring was offered
 * and u64[8] says how many calls wait for u64[5] now. They have no hard links.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { OFF_BY = 4, AILS, TYPE, UNMAPPED, WAITING, END_AT_RING };

static _Atomic uint64_t *page; /* NULL: no fault */
static char what;              /* the first letter of WHAT */
static uint64_t nth;

static void begin(void)
{
	const char *fault = getenv("PD_FAULT"), *path = getenv("PD_FAULT_PAGE");
	const int fd = fault == NULL || path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd >= 0)
		(void)close(fd);
	if (p == MAP_FAILED)
		return;
	what = fault[0];
	nth = strtoull(strchr(fault, ':') + 1, NULL, 10);
	page = p;
}

/* Without memory functions of others end the process themselves: glibc's group lookup (an
 * assertion, and a NULL), libuv's first loop, and libuv where its table of descriptors grows (an
 * abort). That is no end of ours. */
static void on_end(int sig)
{
	static const char *const theirs[] = {"getgrnam_r", "uv_loop_init", "uv_poll_start"};
	void *at[64];
	const int n = backtrace(at, 64);
	Dl_info info;

	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(theirs) / sizeof(*theirs); k++)
			if (dladdr(at[i], &info) != 0 && info.dli_sname != NULL &&
				strcmp(info.dli_sname, theirs[k]) == 0)
				_exit(42);
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

__attribute__((constructor)) static void first(void)
{
	void *one[1];

	(void)backtrace(one, 1); /* its library is loaded now, not in the handler */
	(void)signal(SIGSEGV, on_end);
	(void)signal(SIGABRT, on_end);
	begin();
}

static void die(void)
{
	atomic_store(&page[2], 1);
	(void)kill(getpid(), SIGKILL);
}

/* false: the step fails, errno is set. */
static bool step(uint64_t *ret_n)
{
	*ret_n = page == NULL ? 0 : atomic_fetch_add(&page[0], 1) + 1;
	if (*ret_n == 0)
		return true;
	if (what == 'b' && *ret_n == nth)
		die();
	if ((what == 's' || what == 'i') && *ret_n >= nth && atomic_load(&page[3]) == 0) {
		atomic_store(&page[2], 1);
		errno = what == 's' ? ENOSPC : EIO;
		return false;
	}
	return true;
}

static void stepped(uint64_t n)
{
	if (n != 0 && what == 'a' && n == nth)
		die();
}

/* --- a disk that ails */

static bool under(const char *path)
{
	const char *on = getenv("PD_FAULT_ON");

	return on != NULL && strncmp(path, on, strlen(on)) == 0;
}

static bool under_fd(int fd)
{
	char link[40], path[400];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	return under(path);
}

static uint64_t said(int slot)
{
	return page == NULL ? 0 : atomic_load(&page[slot]);
}

static void wait_for(uint64_t ns)
{
	const uint64_t ails = said(AILS);
	const struct timespec ms = {0, 1000000};

	atomic_fetch_add(&page[WAITING], 1);
	for (uint64_t past = 0; past < ns && said(AILS) == ails; past += 1000000)
		(void)nanosleep(&ms, NULL);
	atomic_fetch_sub(&page[WAITING], 1);
}

/* Of a file there. false: the call fails, errno is set. */
static bool suffer(void)
{
	const uint64_t ails = said(AILS);

	if (ails > 1)
		wait_for(ails);
	errno = EROFS;
	return ails != 1;
}

static void find(const char *name, void *to, size_t n)
{
	void *real = dlsym(RTLD_NEXT, name);

	memcpy(to, &real, n);
}

/* Only calls that change something are steps: `when`. */
#define STEP(type, name, params, args, when, of)          \
	type name params                                  \
	{                                                 \
		static __typeof__(&name) real;            \
		uint64_t n = 0;                           \
		type r;                                   \
                                                          \
		if (real == NULL)                         \
			find(#name, &real, sizeof(real)); \
		if ((when) && !step(&n))                  \
			return (type)-1;                  \
		if (said(AILS) != 0 && (of) && !suffer()) \
			return (type)-1;                  \
		r = real args;                            \
		stepped(n);                               \
		return r;                                 \
	}

static bool is_file(int fd) /* an event's descriptor never fails so, and libuv knows it */
{
	struct stat st;

	return fd > 2 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

STEP(ssize_t, write, (int fd, const void *p, size_t n_), (fd, p, n_), is_file(fd), under_fd(fd))
STEP(ssize_t, pwrite, (int fd, const void *p, size_t n_, off_t at), (fd, p, n_, at), true,
	under_fd(fd))
STEP(ssize_t, pwrite64, (int fd, const void *p, size_t n_, off64_t at), (fd, p, n_, at), true,
	under_fd(fd))
STEP(int, fsync, (int fd), (fd), true, under_fd(fd))
STEP(int, fdatasync, (int fd), (fd), true, under_fd(fd))
STEP(int, ftruncate, (int fd, off_t n_), (fd, n_), true, under_fd(fd))
STEP(int, ftruncate64, (int fd, off64_t n_), (fd, n_), true, under_fd(fd))
STEP(int, unlink, (const char *path), (path), true, under(path))
STEP(int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags), true, false)
STEP(int, renameat, (int dir, const char *from, int to_dir, const char *to),
	(dir, from, to_dir, to), true, false)

static bool reserves(void)
{
	if (said(END_AT_RING) != 0)
		die();
	return true;
}

STEP(int, fallocate, (int fd, int mode, off_t at, off_t n_), (fd, mode, at, n_), reserves(),
	under_fd(fd))

/* --- what it is told of its surroundings */

#define REAL(name)                     \
	static __typeof__(&name) real; \
                                       \
	if (real == NULL)              \
	find(#name, &real, sizeof(real))

/* FAT, and many a network's file system, have none. */
int link(const char *from, const char *to)
{
	errno = EPERM;
	return under(from) ? -1 : linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int statfs(const char *path, struct statfs *ret)
{
	REAL(statfs);
	const int r = real(path, ret);

	if (r == 0 && said(TYPE) != 0 && under(path))
		ret->f_type = (__typeof__(ret->f_type))said(TYPE);
	return r;
}

int fstatfs(int fd, struct statfs *ret)
{
	REAL(fstatfs);
	const int r = real(fd, ret);

	if (r == 0 && said(TYPE) != 0 && under_fd(fd))
		ret->f_type = (__typeof__(ret->f_type))said(TYPE);
	return r;
}

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t from)
{
	REAL(mmap64);

	if (fd < 0 || said(UNMAPPED) == 0 || !under_fd(fd))
		return real(at, n, prot, flags, fd, from);
	errno = ENODEV;
	return MAP_FAILED;
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t from)
{
	return mmap64(at, n, prot, flags, fd, from);
}

static int64_t off_by(void)
{
	return (int64_t)said(OFF_BY);
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	REAL(clock_gettime);
	const int r = real(clock, ret);
	int64_t ns;

	if (r != 0 || off_by() == 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
		return r;
	ns = ret->tv_sec * 1000000000ll + ret->tv_nsec + off_by();
	*ret = (struct timespec){ns / 1000000000, ns % 1000000000};
	return 0;
}

int gettimeofday(struct timeval *ret, void *zone)
{
	struct timespec t;

	(void)zone;
	(void)clock_gettime(CLOCK_REALTIME, &t);
	*ret = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	if (ret != NULL)
		*ret = t.tv_sec;
	return t.tv_sec;
}

/* --- memory */

static bool refused(void)
{
	if (page == NULL || atomic_fetch_add(&page[1], 1) + 1 != nth || what != 'm')
		return false;
	atomic_store(&page[2], 1);
	errno = ENOMEM;
	return true;
}

/* dlsym() may allocate: glibc's own names need none. */
extern void *__libc_malloc(size_t n), *__libc_calloc(size_t n, size_t each),
	*__libc_realloc(void *p, size_t n), *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n)
{
	return refused() ? NULL : __libc_malloc(n);
}
void *calloc(size_t n, size_t each)
{
	return refused() ? NULL : __libc_calloc(n, each);
}
void *realloc(void *p, size_t n)
{
	return refused() ? NULL : __libc_realloc(p, n);
}
void *aligned_alloc(size_t align, size_t n)
{
	return refused() ? NULL : __libc_memalign(align, n);
}
