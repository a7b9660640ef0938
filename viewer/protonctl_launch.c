/* SPDX-License-Identifier: MIT. protonctl_launch.c: `srun protonctl run`, `mpirun protonctl run`:
 * the runs of one launch on a node are one session.
 *
 * A file in the user's own runtime directory, named by what the launcher calls the launch, says
 * which session that is. Whoever finds nobody at it begins the session; each run holds a shared
 * lock on it while its program runs, and whoever is alone at its end stores the session. A run that
 * is killed loses its lock, so it holds up nobody.
 */
#include "protonctl.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "place.h"

/* Variables that together name a launch, the same for all its ranks on a node. */
static const struct launcher {
	const char *rank, *names[3];
} launchers[] = {
	{"SLURM_PROCID", {"SLURM_JOB_ID", "SLURM_STEP_ID", NULL}},
	{"PMIX_RANK", {"PMIX_NAMESPACE", NULL, NULL}},
	{"RANK", {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"}},
};

static uint64_t mix(uint64_t h, const char *text) /* FNV-1a, and a mark behind the text */
{
	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return (h ^ 0xff) * 0x100000001b3u;
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && *value != '\0';
}

static bool launched_by(const struct launcher *l)
{
	size_t i;

	for (i = 0; i < 3 && l->names[i] != NULL; i++)
		if (!is_set(l->names[i]))
			return false;
	return is_set(l->rank);
}

/* 0: no launcher that is known. Runs that were given names of their own are sessions of their own.
 */
static uint64_t launch_key(const char *name)
{
	uint64_t h = 0xcbf29ce484222325u;
	size_t i, k;

	for (i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		if (!launched_by(&launchers[i]))
			continue;
		for (k = 0; k < 3 && launchers[i].names[k] != NULL; k++)
			h = mix(h, getenv(launchers[i].names[k]));
		return mix(h, name);
	}
	return 0;
}

/* Locks the file: alone (1), or beside others (0). */
static int lock(int fd)
{
	int r;

	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 1;
	do
		r = flock(fd, LOCK_SH); /* whoever begins the session holds it alone until then */
	while (r < 0 && errno == EINTR);
	return r;
}

/* The same file still, and not that of a launch that has ended? */
static bool is_there(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink > 0 && st.st_uid == geteuid();
}

int launch_join(struct launch *l, const char *name)
{
	const uint64_t key = launch_key(name);
	char dir[PLACE_PATH_MAX];
	int alone;

	l->fd = -1;
	if (key == 0 || place_private(dir, sizeof(dir)) < 0)
		return 0;
	(void)mkdir(dir, 0700);
	(void)snprintf(l->path, sizeof(l->path), "%s/launch.%016lx", dir, key);
	for (;;) {
		l->fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (l->fd < 0)
			return 0; /* then each rank is a session of its own */
		alone = lock(l->fd);
		if (alone < 0 || (alone == 1 && is_there(l->fd)))
			return 0;
		if (is_there(l->fd) &&
			pread(l->fd, &l->session, sizeof(l->session), 0) == sizeof(l->session))
			return 1;
		(void)close(l->fd); /* it has just ended, or did not come to be: again */
	}
}

void launch_begin(struct launch *l)
{
	if (l->fd < 0)
		return;
	if (pwrite(l->fd, &l->session, sizeof(l->session), 0) != sizeof(l->session))
		(void)unlink(l->path);
	(void)flock(l->fd, LOCK_SH);
}

bool launch_leave(struct launch *l)
{
	if (l->fd < 0)
		return true;
	if (flock(l->fd, LOCK_EX | LOCK_NB) < 0) {
		(void)close(l->fd);
		return false;
	}
	(void)unlink(l->path);
	return true; /* the lock ends with us: whoever comes now waits, and finds no file */
}
