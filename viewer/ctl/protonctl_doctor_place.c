/* SPDX-License-Identifier: MIT. protonctl_doctor_place.c: the runtime directory, its sockets, the
 * daemon behind them, the database: who may do what, and how much room there is. */
#include "protonctl_doctor.h"

#include <grp.h>
#include <pwd.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "human.h"
#include "paths.h"
#include "pick.h"
#include "place.h"
#include "schema.h"

#define TMPFS 0x01021994
#define MIB   ((uint64_t)1 << 20)
/* What is in use of a tmpfs: the journal between two transactions; of a job some MiB of tables and
 * 256 KiB for each thread that records. */
#define JOURNAL_ROOM (32 * MIB)
#define JOB_ROOM     (8 * MIB)
#define ROOM_BAD     (64 * MIB) /* what a container has, unless it is told otherwise */
#define ROOM_NOTE    (256 * MIB)
#define DB_ROOM      (256 * MIB)
#define DB_LARGE     (64 * MIB) /* of which something is to be had */
#define PRUNE_ROOM   (4 * MIB)  /* what the delete of a usual session needs */
#define CHECK_S      5

/* --- the runtime directory */

static bool is_private(const struct doctor *d)
{
	const msgpack_object *p = wire_get(d->status.result, "private");

	return d->rpc == NULL || p == NULL || p->type != MSGPACK_OBJECT_BOOLEAN || p->via.boolean;
}

/* The same law holds for the directory and for rings/ in it, which may be closed to others: nobody
 * else looks for a file there. False: broken, and said. */
static bool look_dir(struct doctor *d, const char *dir, bool is_rings, const uint32_t owner[2])
{
	static const char what[] = "runtime directory";
	const bool private = is_private(d);
	const char *mode = private ? "700" : "755";
	char mend[4400];
	struct stat st;

	if (lstat(dir, &st) < 0)
		return true; /* made when it is needed */
	snprintf(mend, sizeof(mend), "chmod %s %s", mode, dir);
	if (!S_ISDIR(st.st_mode))
		found(d, BAD, what, "remove it, or set PROTOND_RUNTIME_DIR",
			"%s is not a directory", dir);
	else if (st.st_uid != owner[0] && st.st_uid != owner[1])
		found(d, BAD, what, "remove it, or set PROTOND_RUNTIME_DIR",
			"%s belongs to uid %u and the daemon is uid %u", dir, (unsigned)st.st_uid,
			owner[0]);
	else if ((st.st_mode & (private ? 077 : 022)) != 0)
		found(d, BAD, what, mend, "%s is open to others (mode %03o): protond refuses it",
			dir, (unsigned)(st.st_mode & 0777));
	else if (!private && !is_rings && (st.st_mode & 055) != 055)
		found(d, BAD, what, mend,
			"%s is closed to others (mode %03o): no other user's job is recorded", dir,
			(unsigned)(st.st_mode & 0777));
	else
		return true;
	return false;
}

/* A service's: rings are not there. */
static void look_journal(struct doctor *d, const char *dir, uint64_t room)
{
	char free_text[32];

	text_bytes(room, free_text);
	found(d,
		room < JOURNAL_ROOM       ? BAD
		: room < 4 * JOURNAL_ROOM ? NOTE
					  : GOOD,
		"space for journal", "enlarge the tmpfs: mount -o remount,size=1g /run",
		"%s free in %s", free_text, dir);
}

static void look_room(struct doctor *d, const char *dir)
{
	char free_text[32], total[32], mend[600];
	struct statvfs vfs;
	struct statfs fs;
	uint64_t room;

	if (statfs(dir, &fs) == 0 && fs.f_type != TMPFS)
		found(d, NOTE, "tmpfs",
			"set PROTOND_RUNTIME_DIR to a directory in /dev/shm or /run",
			"%s is not in a tmpfs, so rings have no name there: of a job that ends "
			"while no daemon runs, what is not stored yet is lost",
			dir);
	if (statvfs(dir, &vfs) < 0 || vfs.f_blocks == 0) /* 0: no limit */
		return;
	room = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	if (!is_private(d)) {
		look_journal(d, dir, room);
		return;
	}
	text_bytes(room, free_text);
	text_bytes((uint64_t)vfs.f_blocks * vfs.f_frsize, total);
	snprintf(mend, sizeof(mend), "%s; or set lanes and lane_kb in protond.conf",
		strncmp(dir, "/dev/shm/", 9) == 0 ? "in a container: docker run --shm-size=1g; "
						    "else mount -o remount,size=1g /dev/shm"
						  : "enlarge the tmpfs: mount -o remount,size=1g");
	found(d,
		room <= ROOM_BAD   ? BAD
		: room < ROOM_NOTE ? NOTE
				   : GOOD,
		"space for rings", mend,
		room < ROOM_NOTE ? "%s of %s free in %s: room for about %lu jobs (8 MiB each, 32 "
				   "MiB for the daemon)"
				 : "%s of %s free in %s",
		free_text, total, dir,
		(unsigned long)(room > JOURNAL_ROOM ? (room - JOURNAL_ROOM) / JOB_ROOM : 0));
}

/* Of a place that another user made first. */
static void look_taken(struct doctor *d)
{
	struct place_list l;
	const char *taken;
	char mend[300];
	uid_t by;

	place_candidates(&l);
	taken = place_taken(&l, &by);
	if (taken == NULL)
		return;
	snprintf(mend, sizeof(mend), "as root: rm -r %s; until then another one is used", taken);
	found(d, NOTE, "place taken", mend, "%s belongs to uid %u, and must be yours", taken,
		(unsigned)by);
}

void doctor_runtime(struct doctor *d)
{
	uint32_t owner[2] = {(uint32_t)geteuid(), (uint32_t)geteuid()};
	char rings[4200];
	struct doctor_peer peer;
	struct err e;

	look_taken(d);
	if (doctor_peer(d, &peer)) {
		owner[0] = rpc_daemon(d->rpc)->uid; /* or, in another user namespace: */
		owner[1] = peer.uid;
		snprintf(d->dir, sizeof(d->dir), "%s", rpc_daemon(d->rpc)->dir);
	} else if (d->why.code == -EACCES || d->why.code == -EPERM) {
		return; /* a service's: what stands there is said of its sockets */
	} else if (paths_private_runtime(d->dir, sizeof(d->dir), &e) < 0) {
		d->dir[0] = '\0';
		found(d, BAD, "runtime directory",
			"set PROTOND_RUNTIME_DIR to a directory of yours in a tmpfs", "%s", e.text);
		return;
	}
	snprintf(rings, sizeof(rings), "%.4090s/rings", d->dir);
	if (look_dir(d, d->dir, false, owner) && look_dir(d, rings, true, owner))
		found(d, GOOD, "runtime directory", "", "%s", d->dir);
	look_room(d, d->dir);
}

/* --- the sockets and the daemon */

/* In the database of groups: what the next login will have. */
static bool in_group_later(const struct group *g, const char *user)
{
	char *const *m;

	for (m = g->gr_mem; m != NULL && *m != NULL; m++)
		if (strcmp(*m, user) == 0)
			return true;
	return false;
}

/* Whoever may not write to a socket cannot connect to it. */
static void look_socket(struct doctor *d, const char *dir, const char *name)
{
	const struct passwd *pw = getpwuid(geteuid());
	const char *user = pw != NULL ? pw->pw_name : "USER";
	const struct group *g;
	char path[4400], mend[300];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (lstat(path, &st) < 0)
		return;
	if (!S_ISSOCK(st.st_mode)) {
		found(d, BAD, name, "remove it, and start protond again", "%s is not a socket",
			path);
		return;
	}
	if (access(path, W_OK) == 0)
		return;
	g = (st.st_mode & 020) != 0 ? getgrgid(st.st_gid) : NULL;
	if (g != NULL && in_group_later(g, user))
		snprintf(mend, sizeof(mend),
			"log in again, or run newgrp %s (%s is in it, but this login is older)",
			g->gr_name, user);
	else if (g != NULL)
		snprintf(mend, sizeof(mend), "usermod -aG %s %s, then log in again", g->gr_name,
			user);
	else
		snprintf(mend, sizeof(mend),
			"systemctl edit protond.socket: SocketMode=0666, or 0660 and SocketGroup=");
	found(d, BAD, name, mend, "%s may not be opened by %s (mode %04o, group %s)", path, user,
		(unsigned)(st.st_mode & 07777), g != NULL ? g->gr_name : "without right");
}

/* A socket that nobody listens on: a daemon was killed. */
static bool is_stale(const char *dir)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool stale = false;

	if (fd < 0)
		return false;
	if (snprintf(a.sun_path, sizeof(a.sun_path), "%s/" PATHS_CONTROL_SOCK, dir) <
		(int)sizeof(a.sun_path))
		stale = connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 &&
			errno == ECONNREFUSED;
	(void)close(fd);
	return stale;
}

static void no_daemon(struct doctor *d)
{
	char dir[4096];
	uint32_t i;

	if (d->why.code != -ENOTCONN) {
		found(d, BAD, "daemon",
			d->why.code == -ETIMEDOUT ? "see its log; end it, and start it again"
						  : "`protonctl version` shows both versions",
			"%s", d->why.text);
		return;
	}
	found(d, NOTE, "daemon",
		"`protonctl run` starts a private one; `systemctl enable --now protond` keeps one "
		"on",
		"none runs");
	for (i = 0; paths_runtime(i, dir, sizeof(dir)) == 0; i++)
		if (is_stale(dir))
			found(d, NOTE, "daemon",
				"start one there, which takes over what is left; or remove them",
				"the sockets in %s belong to one that was killed", dir);
}

/* What the daemon complains about. */
static void look_warnings(struct doctor *d)
{
	const msgpack_object *w = wire_get(d->status.result, "warnings");
	char log[4400];
	uint32_t i;

	snprintf(log, sizeof(log), "its log says why: journalctl -u protond, or %s/protond.log",
		d->dir);
	for (i = 0; w != NULL && w->type == MSGPACK_OBJECT_ARRAY && i < w->via.array.size; i++) {
		const msgpack_object *o = &w->via.array.ptr[i];

		if (o->type == MSGPACK_OBJECT_STR)
			found(d, NOTE, "daemon says", log, "%.*s",
				(int)(o->via.str.size < 300 ? o->via.str.size : 300),
				o->via.str.ptr);
	}
}

/* The first on the way to the control socket that is closed to us, or the socket itself. */
static void look_owner(struct doctor *d, const char *dir)
{
	char path[4400];
	struct stat st;

	snprintf(path, sizeof(path), "%s/" PATHS_CONTROL_SOCK, dir);
	while (lstat(path, &st) < 0) {
		if (strrchr(path, '/') == path)
			return;
		*strrchr(path, '/') = '\0';
	}
	found(d, BAD, "daemon", "be that user, or set PROTOND_RUNTIME_DIR to a directory of yours",
		d->why.code == -EPERM ? "%s belongs to uid %u (mode %03o), and you are uid %u: "
					"what answers there is "
					"neither root's protond nor your own"
				      : "%s belongs to uid %u (mode %03o) and is closed to uid %u",
		path, (unsigned)st.st_uid, (unsigned)(st.st_mode & 0777), (unsigned)geteuid());
}

void doctor_daemon(struct doctor *d)
{
	char dir[4096];

	if (d->rpc == NULL && (d->why.code == -EACCES || d->why.code == -EPERM)) {
		if (paths_runtime(0, dir, sizeof(dir)) < 0)
			return;
		look_socket(d, dir, PATHS_CONTROL_SOCK);
		look_socket(d, dir, PATHS_AGENT_SOCK);
		if (d->n == 0)
			look_owner(d, dir);
		return;
	}
	if (d->rpc == NULL) {
		no_daemon(d);
		return;
	}
	found(d, GOOD, "daemon", "", "protond %s, pid %ld, in %s", rpc_daemon(d->rpc)->version,
		(long)rpc_daemon(d->rpc)->pid, d->dir);
	look_socket(d, d->dir, PATHS_AGENT_SOCK);
	look_warnings(d);
}

/* --- the database */

/* The nearest folder of a path that exists. */
static void existing(char *path)
{
	while (access(path, F_OK) < 0 && strrchr(path, '/') != NULL && strrchr(path, '/') != path)
		*strrchr(path, '/') = '\0';
}

/* Who may read and write it: only of a database that is ours to keep. */
static bool may_keep(struct doctor *d, const char *db)
{
	char folder[4096], mend[512];
	struct stat st;

	snprintf(folder, sizeof(folder), "%s", db);
	if (strrchr(folder, '/') != NULL && strrchr(folder, '/') != folder)
		*strrchr(folder, '/') = '\0';
	existing(folder);
	if (access(folder, W_OK | X_OK) < 0) {
		found(d, BAD, "database", "make its folder yours, or set PROTOND_DB",
			"no file can be created in %s: %s", folder, strerror(errno));
		return false;
	}
	if (stat(db, &st) < 0)
		return true;
	if (st.st_uid != geteuid() || access(db, R_OK | W_OK) < 0) {
		snprintf(mend, sizeof(mend), "chown %u %.400s, or set PROTOND_DB",
			(unsigned)geteuid(), db);
		found(d, BAD, "database", mend, "%s belongs to uid %u, mode %03o", db,
			(unsigned)st.st_uid, (unsigned)(st.st_mode & 0777));
		return false;
	}
	if ((st.st_mode & 077) != 0) {
		snprintf(mend, sizeof(mend), "chmod 600 %.400s", db);
		found(d, NOTE, "database", mend, "%s can be read by others (mode %03o)", db,
			(unsigned)(st.st_mode & 0777));
	}
	return true;
}

static int is_late(void *until)
{
	return time(NULL) > *(const time_t *)until;
}

/* As protond would find it; a large one is not read to its end. */
static bool is_sound(struct doctor *d, const char *db)
{
	time_t until = time(NULL) + CHECK_S;
	struct sqlite3 *base = NULL;
	struct stat st;
	struct err e = {0};
	bool partial;
	int r;

	if (stat(db, &st) < 0 || st.st_size == 0) /* made when it is needed */
		return true;
	r = pick_open(db, &base, &partial, &e);
	if (r == 0) {
		sqlite3_progress_handler(base, 10000, is_late, &until);
		r = pick_check(base, db, &e);
	}
	(void)sqlite3_close(base);
	if (r == 0 || r == -ENOENT) /* empty: made when it is needed */
		return true;
	found(d, BAD, "database", "move it away, with its -wal and -shm", "%s", e.text);
	return false;
}

/* A prune needs room itself, and frees none if the database is not what fills the disk. */
static void disk_mend(const char *db, uint64_t room, char *ret, size_t n)
{
	struct stat st;
	const uint64_t bytes = stat(db, &st) == 0 ? (uint64_t)st.st_size : 0;
	const unsigned long half = (unsigned long)(bytes / 2 / MIB);

	if (bytes < DB_LARGE)
		snprintf(ret, n, "free space on its disk");
	else if (room < PRUNE_ROOM)
		snprintf(ret, n,
			"free 4 MiB on its disk; then `protonctl prune --max-size %luM` frees more",
			half);
	else
		snprintf(
			ret, n, "`protonctl prune --max-size %luM`, or free space otherwise", half);
}

void doctor_database(struct doctor *d)
{
	char db[4096] = "", path[4096], free_text[32], mend[128];
	uint64_t room;
	bool sound;
	struct doctor_peer peer;
	struct statvfs vfs;
	struct statfs fs;

	if (doctor_peer(d, &peer))
		snprintf(db, sizeof(db), "%s", rpc_daemon(d->rpc)->db);
	else if (paths_db(0, db, sizeof(db)) < 0)
		return;
	snprintf(path, sizeof(path), "%s", db);
	existing(path);
	if (statfs(path, &fs) == 0 && schema_fs_is_remote((long)fs.f_type))
		found(d, NOTE, "database", "set PROTOND_DB to a file on a local disk",
			"%s is on a network file system, where SQLite's WAL does not work; protond "
			"uses local disk instead",
			db);
	if ((d->rpc == NULL || (peer.uid == geteuid() && rpc_daemon(d->rpc)->uid == geteuid())) &&
		!may_keep(d, db))
		return;
	sound = d->rpc != NULL || is_sound(d, db);
	if (statvfs(path, &vfs) < 0)
		return;
	room = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	text_bytes(room, free_text);
	if (room >= DB_ROOM && sound)
		found(d, GOOD, "database", "", "%s (%s free)", db, free_text);
	if (room >= DB_ROOM)
		return;
	disk_mend(db, room, mend, sizeof(mend));
	found(d, BAD, "database's disk", mend, "only %s free for %s", free_text, db);
}
