/* SPDX-License-Identifier: MIT. protonctl_doctor_system.c: what the system gives to this process:
 * calls of the kernel, limits, the container around it, and what a logout takes away.
 *
 * protond traces nobody: ptrace_scope and its kin need not be looked at. */
#include "protonctl_doctor.h"

#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "human.h"

#define OVERLAY         0x794c7630
#define MIB             ((uint64_t)1 << 20)
#define FILES_OF_JOB    4 /* socket, pidfd, ring, control file */
#define FILES_OF_DAEMON 32
#define JOBS_USUAL      256 /* jobs_per_uid */
#define RING_LEAST      (8 * MIB)
#define RING_WHOLE      (72 * MIB)
#define UID_SYSTEM      999 /* logind takes nothing away from users up to it */

/* --- the kernel */

/* What a call gave is not needed; that it gave something is. */
static bool gives(struct doctor *d, enum grade grade, int fd, const char *mend, const char *words)
{
	if (fd < 0)
		found(d, grade, "kernel", mend, "%s: %s", words, strerror(errno));
	else
		(void)close(fd);
	return fd >= 0;
}

void doctor_kernel(struct doctor *d)
{
	static const char newer[] =
		"use Linux 5.3 or later; in a container, a seccomp profile that allows it";
	struct utsname u = {0};
	bool good;

	good = gives(d, BAD, memfd_create("protonctl", MFD_CLOEXEC | MFD_ALLOW_SEALING), newer,
		"memfd_create, by which the daemon sends profiles");
	good &= gives(d, BAD, (int)syscall(SYS_pidfd_open, getpid(), 0), newer,
		"pidfd_open, by which a job's end is seen");
	good &= gives(d, NOTE, inotify_init1(IN_CLOEXEC),
		"sysctl fs.inotify.max_user_instances=1024",
		"inotify, without which a job looks for a daemon every 30 s only");
	(void)uname(&u);
	if (good)
		found(d, GOOD, "kernel", "", "Linux %s", u.release);
}

/* --- limits */

/* The daemon raises its own to what it may; of one that runs /proc says it. 0: unlimited. */
static uint64_t files_of_daemon(const struct doctor *d)
{
	struct rlimit l;
	struct doctor_peer peer;
	char path[64];
	uint64_t n;

	if (doctor_peer(d, &peer) && peer.pid > 0) {
		snprintf(path, sizeof(path), "/proc/%ld/limits", (long)peer.pid);
		if (doctor_number(path, "Max open files", &n))
			return n;
	}
	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_max == RLIM_INFINITY)
		return 0;
	return l.rlim_max;
}

void doctor_limits(struct doctor *d)
{
	const uint64_t files = files_of_daemon(d);
	const uint64_t jobs =
		files > FILES_OF_DAEMON ? (files - FILES_OF_DAEMON) / FILES_OF_JOB : 0;
	struct rlimit l;
	char size[32];

	if (files != 0 && jobs < JOBS_USUAL)
		found(d, jobs == 0 ? BAD : NOTE, "open files",
			"raise the hard limit: ulimit -Hn, LimitNOFILE= of the service, docker run "
			"--ulimit nofile=4096",
			"%lu descriptors: enough for a daemon with %lu jobs", (unsigned long)files,
			(unsigned long)jobs);
	if (getrlimit(RLIMIT_FSIZE, &l) < 0 || l.rlim_cur == RLIM_INFINITY ||
		l.rlim_cur >= RING_WHOLE)
		return;
	text_bytes(l.rlim_cur, size);
	found(d, l.rlim_cur < RING_LEAST ? BAD : NOTE, "file size",
		"ulimit -f unlimited, in the shell that starts the job",
		l.rlim_cur < RING_LEAST
			? "%s (ulimit -f): too little for a ring, so nothing is recorded"
			: "%s (ulimit -f): rings have fewer lanes, so fewer "
			  "threads of a job are recorded",
		size);
}

/* --- containers */

/* By what it is seen, or NULL. */
static const char *container(void)
{
	static const char *const names[] = {
		"docker", "kubepods", "containerd", "libpod", "lxc", "garden", "buildkit"};
	FILE *f;
	struct statfs fs;
	char line[1024];
	const char *by = NULL;
	size_t i;

	if (access("/.dockerenv", F_OK) == 0)
		return "/.dockerenv";
	if (access("/run/.containerenv", F_OK) == 0)
		return "/run/.containerenv";
	f = fopen("/proc/1/cgroup", "re");
	while (f != NULL && by == NULL && fgets(line, sizeof(line), f) != NULL)
		for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			by = strstr(line, names[i]) != NULL ? "/proc/1/cgroup" : by;
	if (f != NULL)
		(void)fclose(f);
	if (by == NULL && statfs("/", &fs) == 0 && fs.f_type == OVERLAY)
		by = "/ is an overlay";
	return by;
}

/* Whether our uid is the same number in the user namespace above ours. */
static bool uid_is_itself(void)
{
	FILE *f = fopen("/proc/self/uid_map", "re");
	const unsigned long uid = geteuid();
	unsigned long in, out, n;
	bool same = f == NULL;

	while (f != NULL && fscanf(f, "%lu %lu %lu", &in, &out, &n) == 3)
		same = same || (uid >= in && uid - in < n && in == out);
	if (f != NULL)
		(void)fclose(f);
	return same;
}

/* A daemon on the other side of a namespace. True: it is. */
static bool look_across(struct doctor *d)
{
	struct doctor_peer peer;

	if (!doctor_peer(d, &peer))
		return false;
	if (peer.uid != rpc_daemon(d->rpc)->uid && !uid_is_itself())
		found(d, BAD, "user namespace",
			"run the container in the host's (--userns=host), or use a daemon inside: "
			"`PROTOND_RUNTIME_DIR=/dev/shm/protond protonctl run`",
			"the daemon is outside this one (its uid is %u there, %u here), where our "
			"uid %u is somebody else's: it refuses rings of jobs from here",
			rpc_daemon(d->rpc)->uid, peer.uid, (unsigned)geteuid());
	if (peer.pid == 0)
		found(d, GOOD, "pid namespace", "",
			"the daemon is outside: `protonctl jobs` shows pids as the daemon sees "
			"them, and `start --pid` takes those");
	else if (!peer.same)
		found(d, NOTE, "pid namespace",
			"run the daemon outside the container, or give it the host's: docker run "
			"--pid=host",
			"the daemon is in another one (its pid is %ld there, %ld here): it cannot "
			"tell jobs from here apart by pid, and considers one ended when its "
			"connection closes",
			(long)rpc_daemon(d->rpc)->pid, (long)peer.pid);
	return !peer.same;
}

void doctor_container(struct doctor *d)
{
	const char *by = container();
	const bool across = look_across(d);

	if (by == NULL)
		return;
	if (d->rpc != NULL)
		found(d, GOOD, "container", "", "this is one (%s), and the daemon is %s", by,
			across ? "outside" : "inside, too");
	else
		found(d, NOTE, "container",
			"to use the host's: docker run -v /run/protond:/run/protond; or `protonctl "
			"run` starts one in here",
			"this is one (%s), and no daemon can be reached from it", by);
}

/* --- logout */

static void take_setting(const char *path, const char *key, bool *ret)
{
	FILE *f = fopen(path, "re");
	const size_t n = strlen(key);
	char line[512];
	const char *v;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		v = line + strspn(line, " \t");
		if (strncmp(v, key, n) != 0)
			continue;
		v += n + strspn(v + n, " \t");
		if (*v != '=')
			continue;
		v += 1 + strspn(v + 1, " \t");
		*ret = (*v != '\0' && strchr("yY1tT", *v) != NULL) || strncasecmp(v, "on", 2) == 0;
	}
	if (f != NULL)
		(void)fclose(f);
}

/* The drop-in that comes next: they are sorted by name whatever their folder, and a name in /etc
 * hides the same name in /run and /usr/lib. */
static bool next_drop_in(char last[256], char ret[512])
{
	static const char *const patterns[] = {"/etc/systemd/logind.conf.d/*.conf",
		"/run/systemd/logind.conf.d/*.conf", "/usr/lib/systemd/logind.conf.d/*.conf"};
	char least[256] = "";
	const char *name;
	size_t i, k;
	glob_t g;

	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		if (glob(patterns[i], 0, NULL, &g) != 0)
			continue;
		for (k = 0; k < g.gl_pathc; k++) {
			name = strrchr(g.gl_pathv[k], '/') + 1;
			if (strcmp(name, last) <= 0 ||
				(least[0] != '\0' && strcmp(name, least) >= 0))
				continue;
			snprintf(least, sizeof(least), "%s", name);
			snprintf(ret, 512, "%s", g.gl_pathv[k]);
		}
		globfree(&g);
	}
	snprintf(last, 256, "%s", least);
	return least[0] != '\0';
}

/* Of logind.conf(5). What a distribution has compiled in stands there as a comment. */
static bool logind(const char *key, bool fallback)
{
	static const char *const files[] = {"/usr/lib/systemd/logind.conf",
		"/run/systemd/logind.conf", "/etc/systemd/logind.conf"};
	char comment[64], last[256] = "", path[512];
	bool value = fallback;
	size_t i;

	snprintf(comment, sizeof(comment), "#%s", key);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		take_setting(files[i], comment, &value);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		take_setting(files[i], key, &value);
	while (next_drop_in(last, path))
		take_setting(path, key, &value);
	return value;
}

static bool exists_in(const char *dir, const char *sub)
{
	char path[4352];
	struct stat st;

	snprintf(path, sizeof(path), "%s%s", dir, sub);
	return lstat(path, &st) == 0;
}

/* `systemctl --user enable`, or --global. */
static bool unit_enabled(void)
{
	static const char unit[] = "/systemd/user/default.target.wants/protond.service";
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char dir[4096];

	snprintf(dir, sizeof(dir), "%s/.config", home != NULL ? home : "");
	return exists_in("/etc", unit) || exists_in(xdg != NULL && *xdg == '/' ? xdg : dir, unit);
}

void doctor_logout(struct doctor *d)
{
	const struct passwd *pw = getpwuid(geteuid());
	char user[64], enable[128], mend[300];
	struct doctor_peer peer;

	if (pw != NULL)
		snprintf(user, sizeof(user), "%.60s", pw->pw_name);
	else
		snprintf(user, sizeof(user), "%u", (unsigned)geteuid());
	if (exists_in("/var/lib/systemd/linger/", user))
		return; /* this user is never logged out */
	snprintf(enable, sizeof(enable), "loginctl enable-linger %s", user);
	if (unit_enabled())
		found(d, NOTE, "logout", enable,
			"the user service protond.service ends with the last logout of %s", user);
	if ((doctor_peer(d, &peer) && rpc_daemon(d->rpc)->uid != geteuid()) ||
		geteuid() <= UID_SYSTEM || access("/run/systemd/users", F_OK) < 0)
		return;
	if (strncmp(d->dir, "/dev/shm/", 9) == 0 && logind("RemoveIPC", true)) {
		snprintf(mend, sizeof(mend), "%s, or RemoveIPC=no in /etc/systemd/logind.conf",
			enable);
		found(d, NOTE, "logout", mend,
			"at the last logout logind removes what %s has in /dev/shm (RemoveIPC), "
			"also the rings of jobs that go on",
			user);
	}
	if (logind("KillUserProcesses", false))
		found(d, NOTE, "logout", enable,
			"at logout logind ends the processes of %s (KillUserProcesses), private "
			"daemon and jobs included",
			user);
}
