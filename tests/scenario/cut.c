/* SPDX-License-Identifier: MIT. cut.c: preloaded into a daemon, it writes down what happens to its
 * database on the disk, so that a test can build the files as a power cut at any instant leaves
 * them.
 *
 * PD_CUT_DB=DATABASE, PD_CUT=FILE: appended to FILE, after each call that succeeded, is a head and,
 * for a write, the bytes. The shared memory (-shm) is left out: no power cut leaves anything of it.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum op { OP_WRITE = 1, OP_TRUNCATE, OP_SYNC, OP_UNLINK };
enum file { FILE_DB, FILE_WAL, FILE_JOURNAL, FILE_DIRECTORY, FILE_OTHER };

struct head {
	uint32_t op, file;
	uint64_t at, bytes; /* of a write: where, how many follow; of a cut: at is the new length */
};

static char db[400], directory[400];
static int to = -1;

__attribute__((constructor)) static void first(void)
{
	const char *path = getenv("PD_CUT_DB"), *log = getenv("PD_CUT");
	char *slash;

	if (path == NULL || log == NULL || strlen(path) >= sizeof(db))
		return;
	memcpy(db, path, strlen(path) + 1);
	memcpy(directory, db, sizeof(db));
	slash = strrchr(directory, '/');
	if (slash == NULL)
		return;
	*slash = '\0';
	to = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static enum file which(const char *path)
{
	const size_t n = strlen(db);

	if (strcmp(path, directory) == 0)
		return FILE_DIRECTORY;
	if (strncmp(path, db, n) != 0)
		return FILE_OTHER;
	if (path[n] == '\0')
		return FILE_DB;
	if (strcmp(path + n, "-wal") == 0)
		return FILE_WAL;
	return strcmp(path + n, "-journal") == 0 ? FILE_JOURNAL : FILE_OTHER;
}

static enum file which_fd(int fd)
{
	char link[40], path[400];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	return which(path);
}

static void note(enum op op, enum file file, uint64_t at, const void *p, uint64_t bytes)
{
	const struct head h = {op, file, at, bytes};
	struct iovec v[2] = {{.iov_len = sizeof(h)}, {.iov_len = bytes}};
	const void *head = &h;

	memcpy(&v[0].iov_base, &head, sizeof(head)); /* writev() only reads */
	memcpy(&v[1].iov_base, &p, sizeof(p));
	if (file != FILE_OTHER && syscall(SYS_writev, to, v, p != NULL ? 2 : 1) !=
					  (long)(sizeof(h) + (p != NULL ? bytes : 0)))
		abort(); /* a record with a hole proves nothing */
}

#define CALL(type, name, params, args, op, file, at, bytes_of, bytes)                \
	type name params                                                             \
	{                                                                            \
		static __typeof__(&name) real;                                       \
		type r;                                                              \
                                                                                     \
		if (real == NULL) {                                                  \
			void *found = dlsym(RTLD_NEXT, #name);                       \
                                                                                     \
			memcpy(&real, &found, sizeof(real));                         \
		}                                                                    \
		r = real args;                                                       \
		if (to >= 0 && r >= 0)                                               \
			note(op, file, (uint64_t)(at), bytes_of, (uint64_t)(bytes)); \
		return r;                                                            \
	}

CALL(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n), OP_WRITE, which_fd(fd),
	lseek(fd, 0, SEEK_CUR) - r, p, r)
CALL(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at), OP_WRITE,
	which_fd(fd), at, p, r)
CALL(ssize_t, pwrite64, (int fd, const void *p, size_t n, off64_t at), (fd, p, n, at), OP_WRITE,
	which_fd(fd), at, p, r)
CALL(int, ftruncate, (int fd, off_t n), (fd, n), OP_TRUNCATE, which_fd(fd), n, NULL, 0)
CALL(int, ftruncate64, (int fd, off64_t n), (fd, n), OP_TRUNCATE, which_fd(fd), n, NULL, 0)
CALL(int, fsync, (int fd), (fd), OP_SYNC, which_fd(fd), 0, NULL, 0)
CALL(int, fdatasync, (int fd), (fd), OP_SYNC, which_fd(fd), 0, NULL, 0)
CALL(int, unlink, (const char *path), (path), OP_UNLINK, which(path), 0, NULL, 0)
