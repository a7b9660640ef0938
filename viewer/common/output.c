/* SPDX-License-Identifier: MIT. output.c: a file that is complete or not there. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool output_is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

/* --- a signal that ends the program leaves no half of a file */

static const char *_Atomic half; /* its path; NULL: there is none */

static void on_ending(int sig)
{
	if (half != NULL)
		(void)unlink(half);
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

/* What is ignored stays so. A limit of a file's size is an error of writing, with words. */
static void watch_endings(void)
{
	static const int endings[] = {ENDING_SIGNALS};
	struct sigaction now;
	size_t i;

	(void)signal(SIGXFSZ, SIG_IGN);
	for (i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (sigaction(endings[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
			(void)signal(endings[i], on_ending);
}

/* --- the file */

/* Never over another file: by a link, else, where a file system has none, once nothing is there. */
static int place(const char *from, const char *to)
{
	if (link(from, to) == 0) {
		(void)unlink(from);
		return 0;
	}
	if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	if (access(to, F_OK) == 0)
		return -EEXIST;
	return rename(from, to) < 0 ? -errno : 0;
}

/* No signal comes between the file and its being known. */
static int make(char *temporary)
{
	sigset_t all, before;
	int fd;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &before);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0) {
		fd = -errno;
	} else {
		half = temporary;
		watch_endings();
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return fd;
}

/* Behind the links that the kernel follows for us: it may refuse those of others (fs.protected_symlinks), as it does for a
 * shell's `>`. Where nothing is there the name itself is the target, whatever comes to stand there meanwhile. */
static int find_target(const char *path, char ret[PATH_MAX])
{
	const int fd = open(path, O_PATH | O_CLOEXEC);
	char link[32];
	ssize_t n = -1;

	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, ret, PATH_MAX - 1);
		(void)close(fd);
	}
	if (n > 0)
		ret[n] = '\0';
	else
		snprintf(ret, PATH_MAX, "%s", path);
	return 0;
}

int output_open(const char *path, struct output *ret, struct err *e)
{
	const char *base;
	int fd, r;

	*ret->temporary = '\0';
	if (strcmp(path, "-") == 0) {
		ret->file = stdout;
		return 0;
	}
	if (output_is_special(path)) {
		ret->file = fopen(path, "we");
		return ret->file != NULL ? 0 : err_set(e, -errno, "%s: %s", path, strerror(errno));
	}
	if (strlen(path) >= sizeof(ret->target))
		return err_set(e, -ENAMETOOLONG, "%s: the name is too long", path);
	r = find_target(path, ret->target);
	if (r < 0)
		return err_set(e, r, "%s: %s", path, strerror(-r));
	base = strrchr(ret->target, '/');
	base = base != NULL ? base + 1 : ret->target;
	snprintf(ret->temporary, sizeof(ret->temporary), "%.*s%.200s.XXXXXX",
		(int)(base - ret->target), ret->target, base);
	fd = make(ret->temporary);
	if (fd < 0)
		return err_set(e, fd, "%s: %s", path, strerror(-fd));
	ret->file = fdopen(fd, "w");
	if (ret->file != NULL)
		return 0;
	(void)close(fd);
	(void)unlink(ret->temporary);
	half = NULL;
	return err_set(e, -ENOMEM, "out of memory");
}

int output_close(const char *path, struct output *o, bool force, int r, struct err *e)
{
	const bool is_file = *o->temporary != '\0';
	const mode_t mask = umask(0);

	(void)umask(mask);
	if (fflush(o->file) != 0 && r == 0)
		r = -errno;
	if (!is_file) {
		if (o->file != stdout && fclose(o->file) != 0 && r == 0)
			r = -errno;
		if (r < 0 && e->code == 0)
			err_set(e, r, "%s: %s", o->file == stdout ? "standard output" : path,
				strerror(-r));
		return r;
	}
	/* mkostemp() makes it 0600; the umask's mode is what a plain open() would have given. */
	if (r == 0 && (fchmod(fileno(o->file), 0666 & ~mask) < 0 || fsync(fileno(o->file)) < 0))
		r = -errno;
	if (fclose(o->file) != 0 && r == 0)
		r = -errno;
	if (r == 0 && force)
		r = rename(o->temporary, o->target) < 0 ? -errno : 0;
	else if (r == 0)
		r = place(o->temporary, o->target);
	if (r < 0)
		(void)unlink(o->temporary);
	half = NULL;
	if (r == -EEXIST)
		return err_set(e, r, "%s exists; --force overwrites it", path);
	return r < 0 && e->code == 0 ? err_set(e, r, "%s: %s", path, strerror(-r)) : r;
}
