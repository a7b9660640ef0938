/* SPDX-License-Identifier: MIT. output_folder.c: a folder that is complete or not there. */
#include "output_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"

/* --- a signal that would end the program waits until the folder is gone */

static const int endings[] = {ENDING_SIGNALS};
#define ENDINGS (sizeof(endings) / sizeof(endings[0]))

static _Atomic int ended; /* the signal */
static bool watched[ENDINGS];

static void on_ending(int sig)
{
	ended = sig;
}

/* What is ignored stays so. A limit of a file's size is an error of writing, with words. */
static void watch_endings(void)
{
	struct sigaction now;
	size_t i;

	(void)signal(SIGXFSZ, SIG_IGN);
	for (i = 0; i < ENDINGS; i++)
		if (sigaction(endings[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
			watched[i] = signal(endings[i], on_ending) != SIG_ERR;
}

static void let_end(void)
{
	size_t i;

	for (i = 0; i < ENDINGS; i++)
		if (watched[i])
			(void)signal(endings[i], SIG_DFL);
	if (ended != 0)
		(void)raise(ended);
}

bool output_folder_ended(void)
{
	return ended != 0;
}

/* --- the folder */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	(void)remove(path);
	return 0;
}

static void remove_all(const char *folder)
{
	(void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* mkdtemp() makes it 0700, and the library its files by the umask. */
static int sync_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int r = fd < 0 || fsync(fd) < 0 ? -1 : 0;

	(void)st;
	(void)type;
	(void)at;
	if (fd >= 0)
		(void)close(fd);
	return r;
}

static bool is_ours(const char *folder, const char *mark)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", folder, mark) < (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

int output_folder_open(
	const char *path, const char *mark, bool force, struct output_folder *ret, struct err *e)
{
	size_t n = strlen(path);
	struct stat st;

	while (n > 1 && path[n - 1] == '/')
		n--;
	if (lstat(path, &st) == 0) {
		if (!force)
			return err_set(e, -EEXIST, "%s exists; --force overwrites it", path);
		if (!S_ISDIR(st.st_mode) || !is_ours(path, mark))
			return err_set(e, -EEXIST,
				"%s is no folder with a %s in it: it is not overwritten; name "
				"another one",
				path, mark);
	}
	if ((size_t)snprintf(ret->temporary, sizeof(ret->temporary), "%.*s.XXXXXX", (int)n, path) >=
		sizeof(ret->temporary))
		return err_set(e, -ENAMETOOLONG, "%s: the name is too long", path);
	watch_endings();
	if (mkdtemp(ret->temporary) == NULL)
		return err_set(e, neg_errno(), "%s: %s", path, strerror(errno));
	return 0;
}

/* What was there is removed once the new one has its name. */
static int replace(const char *temporary, const char *path)
{
	if (rename(temporary, path) == 0)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return neg_errno();
	if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_EXCHANGE) < 0)
		return neg_errno(); /* EINVAL: this file system cannot */
	remove_all(temporary);
	return 0;
}

/* Never over another; where a file system cannot say so, once nothing is there. */
static int place(const char *temporary, const char *path)
{
	if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return neg_errno();
	if (access(path, F_OK) == 0)
		return -EEXIST;
	return rename(temporary, path) < 0 ? neg_errno() : 0;
}

int output_folder_close(const char *path, struct output_folder *o, bool force, int r, struct err *e)
{
	const mode_t mask = umask(0);

	(void)umask(mask);
	if (r == 0 && (chmod(o->temporary, 0777 & ~mask) < 0 ||
			      nftw(o->temporary, sync_one, 16, FTW_PHYS) != 0))
		r = neg_errno();
	if (r == 0 && force)
		r = replace(o->temporary, path);
	else if (r == 0)
		r = place(o->temporary, path);
	if (r < 0)
		remove_all(o->temporary);
	let_end();
	if (r == -EEXIST)
		return err_set(e, r, "%s exists; --force overwrites it", path);
	return r < 0 && e->code == 0 ? err_set(e, r, "%s: %s", path, strerror(-r)) : r;
}
