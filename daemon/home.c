/* SPDX-License-Identifier: MIT. home.c: where this protond lives: its runtime directory, the lock
 * that keeps two of them apart, the directories of rings, the database's place. docs/trust.md says
 * who may write where. */
#include "home.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "config.h"
#include "daemon.h"
#include "place.h"
#include "rendezvous.h"

#define LOCK_FILE "lock"

/* Makes path and its parents below the last one that exists. */
static int make_dirs(const char *path, mode_t mode)
{
	char part[512];
	size_t i, n = strlen(path);

	if (n == 0 || n >= sizeof(part) || path[0] != '/')
		return -EINVAL;
	memcpy(part, path, n + 1);
	for (i = 1; i <= n; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, mode) < 0 && errno != EEXIST)
			return neg_errno();
		if (i < n)
			part[i] = '/';
	}
	return 0;
}

/* Ours, a real directory, and not open to others' writing; with `closed` not to their reading
 * either. */
static int open_dir(const char *path, bool closed, int *ret_fd, struct err *e)
{
	const mode_t bad = closed ? 077 : 022;
	struct stat st;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, neg_errno(), "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & bad) != 0) {
		(void)close(fd);
		return err_set(e, -EPERM,
			"%s belongs to uid %u with mode %03o; it must be yours and %s: remove it "
			"or set "
			"PROTOND_RUNTIME_DIR",
			path, (unsigned)st.st_uid, (unsigned)(st.st_mode & 0777),
			closed ? "closed to others (chmod 700)"
			       : "not writable by others (chmod 755)");
	}
	*ret_fd = fd;
	return 0;
}

static int resolve(struct daemon *d, struct err *e)
{
	int r;

	if (d->config->runtime_dir[0] != '\0')
		r = snprintf(d->runtime, sizeof(d->runtime), "%s", d->config->runtime_dir) <
				    (int)PLACE_PATH_MAX
			    ? 0
			    : -ENAMETOOLONG;
	else if (d->private)
		r = place_private(d->runtime, sizeof(d->runtime));
	else
		r = snprintf(d->runtime, sizeof(d->runtime), PLACE_SYSTEM) > 0 ? 0 : -EIO;
	if (r == -EPERM)
		return err_set(e, r,
			"there is no directory of yours for sockets and rings; set "
			"PROTOND_RUNTIME_DIR");
	if (r < 0)
		return err_set(e, r,
			"the name of the runtime directory is too long; set PROTOND_RUNTIME_DIR");
	return 0;
}

static int make_home(struct daemon *d, struct err *e)
{
	const mode_t mode = d->private ? 0700 : 0755;
	char rings[sizeof(d->runtime) + sizeof(RV_RINGS_DIR) + 1];
	int r;

	d->made_runtime = access(d->runtime, F_OK) < 0;
	r = make_dirs(d->runtime, mode);
	if (r < 0)
		return err_set(e, r, "%s: cannot be made: %s", d->runtime, strerror(-r));
	r = open_dir(d->runtime, d->private, &d->runtime_fd, e);
	if (r < 0)
		return r;
	(void)snprintf(rings, sizeof(rings), "%s/" RV_RINGS_DIR, d->runtime);
	if (mkdir(rings, 0700) < 0 && errno != EEXIST)
		return err_set(e, neg_errno(), "%s: cannot be made: %s", rings, strerror(errno));
	r = open_dir(rings, d->private, &d->rings_fd, e);
	/* A service's has files of its own alone: nobody else need know the rings' names. */
	if (r == 0 && !d->private && fchmod(d->rings_fd, 0700) < 0)
		return err_set(e, neg_errno(), "%s: %s", rings, strerror(errno));
	return r;
}

static int lock_home(struct daemon *d, struct err *e)
{
	const int fd =
		openat(d->runtime_fd, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(e, neg_errno(), "%s/" LOCK_FILE ": %s", d->runtime, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		const int r = errno == EWOULDBLOCK ? -EBUSY : neg_errno();

		(void)close(fd);
		return err_set(e, r,
			"another protond runs in %s; stop it first (`protonctl status` says its "
			"pid)",
			d->runtime);
	}
	d->lock_fd = fd;
	return 0;
}

int home_open(struct daemon *d, struct err *e)
{
	int r = resolve(d, e);

	d->runtime_fd = d->rings_fd = d->lock_fd = -1;
	if (r == 0)
		r = make_home(d, e);
	if (r == 0)
		r = lock_home(d, e);
	if (r < 0)
		home_close(d);
	return r;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

void home_close(struct daemon *d)
{
	close_fd(&d->rings_fd);
	close_fd(&d->runtime_fd);
	close_fd(&d->lock_fd);
}

void home_unmake(const struct daemon *d)
{
	if (!d->made_runtime)
		return;
	(void)unlinkat(d->runtime_fd, LOCK_FILE, 0);
	(void)unlinkat(d->runtime_fd, RV_RINGS_DIR, AT_REMOVEDIR);
	(void)rmdir(d->runtime);
}

bool home_is_gone(const struct daemon *d)
{
	struct stat st;

	return fstatat(d->runtime_fd, RV_AGENT_SOCK, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
	       errno == ENOENT;
}

static bool same_dir(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* /run/user/UID goes at the last logout. What we hold open stays readable; new jobs need a place.
 */
int home_again(struct daemon *d, bool *ret_new, struct err *e)
{
	int old[3] = {d->runtime_fd, d->rings_fd, d->lock_fd};
	int i, r;

	d->runtime_fd = d->rings_fd = d->lock_fd = -1;
	r = make_home(d, e);
	*ret_new = r == 0 && !same_dir(d->runtime_fd, old[0]);
	if (*ret_new)
		r = lock_home(d, e);
	if (r == 0 && !*ret_new) /* only a socket's name went: the lock is still good */
		d->lock_fd = fcntl(old[2], F_DUPFD_CLOEXEC, 0);
	if (r < 0) {
		home_close(d);
		d->runtime_fd = old[0];
		d->rings_fd = old[1];
		d->lock_fd = old[2];
		return r;
	}
	for (i = 0; i < 3; i++)
		close_fd(&old[i]);
	return 0;
}

bool home_answers(const char *runtime)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool yes = false;

	if (fd < 0)
		return false;
	if (snprintf(a.sun_path, sizeof(a.sun_path), "%s/" RV_AGENT_SOCK, runtime) <
		(int)sizeof(a.sun_path))
		yes = connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0;
	(void)close(fd);
	return yes;
}

/* Where one user alone fills the place. Under the service, and for another user, rings are memory
 * without a name: what is kept for all lies where no user can write. */
void home_rings_of(const struct daemon *d, uint32_t uid, char *ret, size_t n)
{
	if (!d->private || uid != (uint32_t)geteuid() ||
		snprintf(ret, n, "%s/" RV_RINGS_DIR, d->runtime) >= (int)n)
		ret[0] = '\0';
}

static int db_in(const char *dir, const char *sub, mode_t mode, char *ret, size_t n, struct err *e)
{
	char path[400];
	int r;

	if (snprintf(path, sizeof(path), "%s%s", dir, sub) >= (int)sizeof(path) ||
		snprintf(ret, n, "%s/protond.db", path) >= (int)n)
		return err_set(
			e, -ENAMETOOLONG, "the name of the database is too long; set PROTOND_DB");
	r = make_dirs(path, mode);
	if (r < 0)
		return err_set(e, r, "%s: cannot be made: %s; set PROTOND_DB", path, strerror(-r));
	return 0;
}

int home_db(const struct daemon *d, char *ret, size_t n, struct err *e)
{
	const char *set = d->config->db, *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

	if (set[0] != '\0')
		return snprintf(ret, n, "%s", set) < (int)n
			       ? 0
			       : err_set(e, -ENAMETOOLONG, "db is too long");
	if (!d->private)
		return db_in("/var/lib", "/protond", 0755, ret, n, e);
	if (xdg != NULL && xdg[0] == '/')
		return db_in(xdg, "/protond", 0700, ret, n, e);
	if (home != NULL && home[0] == '/')
		return db_in(home, "/.local/share/protond", 0700, ret, n, e);
	return home_db_local(ret, n, e);
}

int home_db_local(char *ret, size_t n, struct err *e)
{
	char sub[40];
	int fd, r;

	(void)snprintf(sub, sizeof(sub), "/protond.%u", (unsigned)geteuid());
	r = db_in("/var/tmp", sub, 0700, ret, n, e);
	if (r < 0)
		return r;
	*strrchr(ret, '/') = '\0';
	r = open_dir(ret, true, &fd, e); /* /var/tmp is everybody's: it must be ours */
	ret[strlen(ret)] = '/';
	if (r == 0)
		(void)close(fd);
	return r;
}
