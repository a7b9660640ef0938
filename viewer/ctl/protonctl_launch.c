/* SPDX-License-Identifier: MIT. protonctl_launch.c: `srun protonctl run`, `mpirun protonctl run`:
 * the runs of one launch on a node are one session.
 *
 * A file in the user's own runtime directory, named by what the launcher calls the launch, says
 * which session that is. Each run holds a shared lock on its PRESENT byte while its program runs.
 * Whoever finds nobody there begins the session; whoever is alone at its end stores it. DOOR is
 * held by one run at a time, while it comes or goes. A run that is killed loses its locks, so it
 * holds up nobody. */
#include "protonctl_launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "place.h"

enum lock_byte { DOOR = 0, PRESENT = 1 };

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

/* 0: no known launcher. Runs with names of their own are sessions of their own. */
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

/* how: F_RDLCK or F_WRLCK; command: F_OFD_SETLK, or F_OFD_SETLKW to wait. */
static int lock(int fd, enum lock_byte at, int how, int command)
{
	struct flock l = {
		.l_type = (short)how, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = 1};
	int r;

	do
		r = fcntl(fd, command, &l);
	while (r < 0 && errno == EINTR);
	return r;
}

static void door_close(int fd)
{
	(void)lock(fd, DOOR, F_UNLCK, F_OFD_SETLK);
}

/* Still the same file, not that of a launch that has ended? */
static bool is_there(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink > 0 && st.st_uid == geteuid();
}

int launch_join(struct launch *l, const char *name)
{
	const uint64_t key = launch_key(name);
	char dir[PLACE_PATH_MAX];
	ssize_t n;

	l->fd = -1;
	if (key == 0 || place_private(dir, sizeof(dir)) < 0)
		return 0;
	(void)mkdir(dir, 0700);
	snprintf(l->path, sizeof(l->path), "%s/launch.%016lx", dir, key);
	do { /* again while it is that of a launch which has just ended */
		if (l->fd >= 0)
			(void)close(l->fd);
		l->fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (l->fd < 0)
			return 0; /* then each rank is a session of its own */
		if (lock(l->fd, DOOR, F_WRLCK, F_OFD_SETLKW) < 0) {
			(void)close(l->fd);
			l->fd = -1;
			return 0;
		}
	} while (!is_there(l->fd));
	if (lock(l->fd, PRESENT, F_WRLCK, F_OFD_SETLK) == 0)
		return 0; /* nobody is here: what stands in it is of a launch that was killed */
	n = pread(l->fd, &l->session, sizeof(l->session), 0);
	(void)lock(l->fd, PRESENT, F_RDLCK, F_OFD_SETLK);
	door_close(l->fd);
	return n == sizeof(l->session);
}

void launch_begin(struct launch *l)
{
	if (l->fd < 0)
		return;
	(void)pwrite(l->fd, &l->session, sizeof(l->session), 0);
	(void)lock(l->fd, PRESENT, F_RDLCK, F_OFD_SETLK);
	door_close(l->fd);
}

bool launch_leave(struct launch *l)
{
	if (l->fd < 0)
		return true;
	(void)lock(l->fd, DOOR, F_WRLCK, F_OFD_SETLKW);
	if (lock(l->fd, PRESENT, F_WRLCK, F_OFD_SETLK) < 0) {
		(void)close(l->fd);
		return false;
	}
	(void)unlink(l->path);
	return true; /* the door opens when we end: whoever waits at it finds no file, and begins */
}
