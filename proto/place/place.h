/* SPDX-License-Identifier: MIT. place.h: where the sockets and rings of a user's protond are.
 *
 * One function that the job, the daemon and the tools share, so that the same user finds the same
 * place from every shell (login, sudo, cron, ssh, srun). In this order:
 *
 *   1. $PROTOND_RUNTIME_DIR, when it is set: nothing else is looked at
 *   2. /run/protond, the system service, when its agent.sock exists (and, for whoever finds that
 *      nobody listens there, what follows)
 *   3. the user's own, the first of these where an agent.sock exists, else the first that can be:
 *      /run/user/UID/protond   when /run/user/UID is the user's
 *      $XDG_RUNTIME_DIR/protond when that is a directory of the user's
 *      /dev/shm/protond.UID; where another user made that first, the oldest of the user's own
 *      /dev/shm/protond.UID.RANDOM, which nobody can foresee
 *
 * A directory of the user's own counts only when it is a real directory (no link), owned by the
 * user and closed to all others, or when it does not exist yet. Nothing is created here, but by
 * place_private() where the name was taken.
 * A caller that runs with AT_SECURE must not call this: it reads variables. */
#ifndef PROTOND_PLACE_H
#define PROTOND_PLACE_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLACE_SYSTEM   "/run/protond"
#define PLACE_SOCK     "agent.sock"
#define PLACE_SHM      "/dev/shm"
#define PLACE_MAX      4u   /* candidates */
#define PLACE_PATH_MAX 200u /* a socket's name must fit into sockaddr_un behind it */

struct place_list {
	unsigned n;
	char path[PLACE_MAX][PLACE_PATH_MAX];
	bool own[PLACE_MAX]; /* the user's own: must be closed to others */
};

/* Who listens behind a socket: root, this user, or whoever the directory belongs to (NULL:
 * unknown). */
static inline bool place_peer_is_fit(int sock, const struct stat *dir)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid() || (dir != NULL && dir->st_uid == peer.uid));
}

static inline bool place_is_dir_of(const char *path, uid_t uid, bool closed)
{
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != uid)
		return false;
	return !closed || (st.st_mode & 077) == 0;
}

static inline bool place_has_sock(const char *dir)
{
	char sock[PLACE_PATH_MAX + sizeof(PLACE_SOCK) + 1];
	struct stat st;

	(void)snprintf(sock, sizeof(sock), "%s/%s", dir, PLACE_SOCK);
	return stat(sock, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Missing is fine (a daemon makes it, 0700); there but another's or open to others is not. */
static inline bool place_is_private(const char *path, uid_t uid)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT;
	return place_is_dir_of(path, uid, true);
}

static inline void place_add(struct place_list *l, const char *dir, const char *tail, bool own)
{
	const size_t at = l->n;
	int n;

	if (at >= PLACE_MAX)
		return;
	n = snprintf(l->path[at], PLACE_PATH_MAX, "%s%s", dir, tail);
	if (n <= 0 || (size_t)n >= PLACE_PATH_MAX)
		return;
	l->own[at] = own;
	l->n++;
}

/* Every place that may come to hold a socket, in order of preference: what a waiting job watches.
 * Reads variables; what follows does not. */
static inline void place_candidates(struct place_list *ret)
{
	const uid_t uid = geteuid();
	const char *set = getenv("PROTOND_RUNTIME_DIR");
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	char base[64];

	ret->n = 0;
	if (set != NULL && set[0] == '/') {
		place_add(ret, set, "", false);
		return;
	}
	place_add(ret, PLACE_SYSTEM, "", false);
	(void)snprintf(base, sizeof(base), "/run/user/%u", (unsigned)uid);
	if (place_is_dir_of(base, uid, false))
		place_add(ret, base, "/protond", true);
	else if (xdg != NULL && xdg[0] == '/' && place_is_dir_of(xdg, uid, false))
		place_add(ret, xdg, "/protond", true);
	(void)snprintf(base, sizeof(base), PLACE_SHM "/protond.%u", (unsigned)uid);
	place_add(ret, base, "", true);
}

/* --- where another user made /dev/shm/protond.UID first --- */

static inline bool place_is_taken(const char *path, uid_t uid, uid_t *ret_by)
{
	struct stat st;

	if (strncmp(path, PLACE_SHM "/", sizeof(PLACE_SHM)) != 0 || lstat(path, &st) < 0 ||
		st.st_uid == uid)
		return false;
	*ret_by = st.st_uid;
	return true;
}

/* What the kernel tells of a directory's entry, in a buffer of ours: a job's heap is not asked. */
struct place_entry {
	uint64_t ino, off;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

/* Of two the one with a socket, else the older: on a tmpfs inodes are numbered as they are made. */
static inline bool place_is_better(
	const char *path, uint64_t ino, const char *than, uint64_t than_ino)
{
	const bool has = place_has_sock(path), had = place_has_sock(than);

	return has != had ? has : ino < than_ino;
}

static inline void place_look(const char *path, const char *prefix, const char *name, uint64_t ino,
	char ret[PLACE_PATH_MAX], uint64_t *ret_ino)
{
	char whole[PLACE_PATH_MAX];

	if (strncmp(name, prefix, strlen(prefix)) != 0 ||
		snprintf(whole, sizeof(whole), "%s%s", path, name + strlen(prefix) - 1) >=
			(int)sizeof(whole) ||
		!place_is_dir_of(whole, geteuid(), true))
		return;
	if (ret[0] != '\0' && !place_is_better(whole, ino, ret, *ret_ino))
		return;
	memcpy(ret, whole, sizeof(whole));
	*ret_ino = ino;
}

/* The user's own beside the taken path, *ret "" if there is none. */
static inline void place_beside(const char *path, char ret[PLACE_PATH_MAX])
{
	const int dir = open(PLACE_SHM, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(struct place_entry) char buf[2048];
	const struct place_entry *e;
	uint64_t ino = 0;
	char prefix[64];
	long n, at;

	ret[0] = '\0';
	(void)snprintf(prefix, sizeof(prefix), "%s.", path + sizeof(PLACE_SHM));
	while (dir >= 0 && (n = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
		for (at = 0; at < n; at += e->bytes) {
			e = (const struct place_entry *)(const void *)(buf + at);
			place_look(path, prefix, e->name, e->ino, ret, &ino);
		}
	}
	if (dir >= 0)
		(void)close(dir);
}

/* Made, if there is none. Of several that are made at once all take the oldest. */
static inline int place_make_beside(const char *path, char ret[PLACE_PATH_MAX])
{
	char made[PLACE_PATH_MAX];
	uint64_t random;

	place_beside(path, ret);
	if (ret[0] != '\0')
		return 0;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random) ||
		snprintf(made, sizeof(made), "%s.%016llx", path, (unsigned long long)random) >=
			(int)sizeof(made) ||
		mkdir(made, 0700) < 0)
		return -EPERM;
	place_beside(path, ret);
	if (ret[0] != '\0' && strcmp(ret, made) != 0)
		(void)rmdir(made);
	return ret[0] != '\0' ? 0 : -EPERM;
}

/* The last of the candidates, where it is taken. */
static inline const char *place_taken(const struct place_list *l, uid_t *ret_by)
{
	const unsigned last = l->n - 1;

	if (l->n < 2 || !place_is_taken(l->path[last], geteuid(), ret_by))
		return NULL;
	return l->path[last];
}

/* Of the candidates the user's own, or the one that was set: where a private daemon makes its
 * sockets. -EPERM: each one is there and is another's or open to others. */
static inline int place_pick_private(const struct place_list *l, char *ret, size_t n)
{
	unsigned pick = PLACE_MAX;
	char beside[PLACE_PATH_MAX] = "";
	uid_t by;

	if (place_taken(l, &by) != NULL)
		place_beside(place_taken(l, &by), beside);
	for (unsigned i = 0; i < l->n; i++) {
		if (l->n > 1 && !l->own[i])
			continue;
		if (l->own[i] && !place_is_private(l->path[i], geteuid()))
			continue;
		if (pick == PLACE_MAX ||
			(!place_has_sock(l->path[pick]) && place_has_sock(l->path[i])))
			pick = i;
	}
	if (beside[0] != '\0' &&
		(pick == PLACE_MAX || (!place_has_sock(l->path[pick]) && place_has_sock(beside))))
		return snprintf(ret, n, "%s", beside) < (int)n ? 0 : -ENAMETOOLONG;
	if (pick == PLACE_MAX)
		return -EPERM;
	return snprintf(ret, n, "%s", l->path[pick]) < (int)n ? 0 : -ENAMETOOLONG;
}

/* Of the candidates the one to use now. */
static inline int place_pick(const struct place_list *l, char *ret, size_t n)
{
	if (l->n > 1 && !l->own[0] && place_has_sock(l->path[0]))
		return snprintf(ret, n, "%s", l->path[0]) < (int)n ? 0 : -ENAMETOOLONG;
	return place_pick_private(l, ret, n);
}

/* The directory to use. 0; -ENAMETOOLONG; -EPERM: what is there belongs to somebody else. */
static inline int place_runtime(char *ret, size_t n)
{
	struct place_list l;

	place_candidates(&l);
	return place_pick(&l, ret, n);
}

/* Where a private daemon makes its sockets, whether or not a system service runs. */
static inline int place_private(char *ret, size_t n)
{
	struct place_list l;
	char beside[PLACE_PATH_MAX];
	uid_t by;
	int r;

	place_candidates(&l);
	r = place_pick_private(&l, ret, n);
	if (r != -EPERM || place_taken(&l, &by) == NULL)
		return r;
	r = place_make_beside(place_taken(&l, &by), beside);
	if (r < 0)
		return r;
	return snprintf(ret, n, "%s", beside) < (int)n ? 0 : -ENAMETOOLONG;
}

/* The job's socket in the directory to use. */
static inline int place_agent_sock(char *ret, size_t n)
{
	char dir[PLACE_PATH_MAX];
	const int r = place_runtime(dir, sizeof(dir));

	if (r < 0)
		return r;
	return snprintf(ret, n, "%s/%s", dir, PLACE_SOCK) < (int)n ? 0 : -ENAMETOOLONG;
}

#endif
