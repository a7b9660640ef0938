/* SPDX-License-Identifier: MIT. protonctl_doctor.c: looks for what keeps protond from working here,
 * and says for each finding how to mend it. Changes nothing
 * but for making the runtime directory that protond would make. */
#include "protonctl.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json.h"
#include "paths.h"

#define FINDINGS_MAX 32
#define PROBE_MS     10000

enum grade { GOOD, NOTE, BAD };

struct finding {
	enum grade grade;
	const char *what; /* the thing looked at */
	char text[320], mend[320];
};

struct doctor {
	struct ctl *c;
	struct finding finding[FINDINGS_MAX];
	size_t n;
};

static void found(struct doctor *d, enum grade grade, const char *what, const char *mend,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void found(struct doctor *d, enum grade grade, const char *what, const char *mend,
	const char *fmt, ...)
{
	struct finding *f;
	va_list ap;

	if (d->n == FINDINGS_MAX)
		return;
	f = &d->finding[d->n++];
	f->grade = grade;
	f->what = what;
	va_start(ap, fmt);
	(void)vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	(void)snprintf(f->mend, sizeof(f->mend), "%s", mend);
}

/* --- places
 * --------------------------------------------------------------------------------------- */

static void look_runtime(struct doctor *d)
{
	char dir[4096], free_text[32];
	struct stat st;
	struct statvfs vfs;
	struct statfs fs;
	struct err e;

	if (paths_private_runtime(dir, sizeof(dir), &e) < 0) {
		found(d, BAD, "runtime directory",
			"set PROTOND_RUNTIME_DIR to a directory of yours in a tmpfs", "%s", e.text);
		return;
	}
	if (stat(dir, &st) < 0 || (st.st_mode & 022) != 0)
		found(d, BAD, "runtime directory", "chmod 700 it", "%s can be written by others",
			dir);
	else
		found(d, GOOD, "runtime directory", "", "%s", dir);
	if (statfs(dir, &fs) == 0 && fs.f_type != 0x01021994)
		found(d, NOTE, "tmpfs",
			"set PROTOND_RUNTIME_DIR to a directory in /dev/shm or /run",
			"%s is not in a tmpfs: rings would be written to a disk", dir);
	if (statvfs(dir, &vfs) < 0)
		return;
	text_bytes((uint64_t)vfs.f_bavail * vfs.f_frsize, free_text);
	if ((uint64_t)vfs.f_bavail * vfs.f_frsize < (64u << 20))
		found(d, BAD, "space for rings",
			"enlarge the tmpfs (docker run --shm-size=1g), or set lanes and lane_kb in "
			"protond.conf",
			"only %s free in %s", free_text, dir);
	else
		found(d, GOOD, "space for rings", "", "%s free in %s", free_text, dir);
}

static bool is_network(long type)
{
	/* NFS, SMB, SMB2, CIFS, Ceph, FUSE, AFS, 9P, Lustre, GPFS, BeeGFS */
	static const long types[] = {0x6969, 0x517b, 0xfe534d42, 0xff534d42, 0x00c36400, 0x65735546,
		0x5346414f, 0x01021997, 0x0bd00bd0, 0x47504653, 0x19830326};
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (type == types[i])
			return true;
	return false;
}

/* The nearest folder of a path that exists. */
static void existing(char *path)
{
	while (access(path, F_OK) < 0 && strrchr(path, '/') != NULL && strrchr(path, '/') != path)
		*strrchr(path, '/') = '\0';
}

static void look_database(struct doctor *d, const char *db)
{
	char path[4096], free_text[32];
	struct statfs fs;
	struct statvfs vfs;

	(void)snprintf(path, sizeof(path), "%s", db);
	existing(path);
	if (statfs(path, &fs) == 0 && is_network((long)fs.f_type))
		found(d, NOTE, "database", "set PROTOND_DB to a file on a local disk",
			"%s is on a network file system, where SQLite's WAL does not work; protond "
			"takes local disk instead",
			db);
	if (access(path, W_OK) < 0 && strcmp(path, db) != 0)
		found(d, BAD, "database", "make its folder yours, or set PROTOND_DB",
			"%s cannot be written: %s", path, strerror(errno));
	if (statvfs(path, &vfs) < 0)
		return;
	text_bytes((uint64_t)vfs.f_bavail * vfs.f_frsize, free_text);
	if ((uint64_t)vfs.f_bavail * vfs.f_frsize < (256u << 20))
		found(d, BAD, "database's disk", "protonctl prune --max-size 1G, or make room",
			"only %s free for %s", free_text, db);
	else
		found(d, GOOD, "database", "", "%s (%s free)", db, free_text);
}

static void look_daemon(struct doctor *d)
{
	struct rpc *r;
	struct err e;
	char db[4096] = "";
	const struct rpc_daemon *x;

	if (rpc_open(&r, &e) < 0) {
		found(d, e.code == -ENOTCONN ? NOTE : BAD, "daemon",
			e.code == -ENOTCONN ? "`protonctl run` starts a private one; `systemctl "
					      "enable --now protond` keeps one on"
					    : "see the words before; protonctl version",
			"%s", e.text);
		(void)paths_db(0, db, sizeof(db));
		look_database(d, db);
		return;
	}
	x = rpc_daemon(r);
	if (strcmp(x->version, PROTOND_BUILD_VERSION) != 0)
		found(d, NOTE, "daemon", "restart protond after an update",
			"protond %s runs (pid %ld), protonctl is " PROTOND_BUILD_VERSION,
			x->version, x->pid);
	else
		found(d, GOOD, "daemon", "", "protond %s, pid %ld, in %s", x->version, x->pid,
			x->dir);
	look_database(d, x->db);
	rpc_close(r);
}

static void look_beside(struct doctor *d)
{
	static const char *const names[] = {
		"protond", "protonview", "libprotond.so.0", "libprotond-agent.so.0"};
	char path[4096];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (self_find(names[i], path, sizeof(path)) < 0)
			found(d, BAD, names[i], "install protond completely: make install",
				"nowhere beside protonctl");
		else
			found(d, GOOD, names[i], "", "%s", path);
}

/* --- GPU
 * ------------------------------------------------------------------------------------------ */

/* dlopen in a child: a library may do anything when it is loaded. ret: version, or words. */
static bool probe(
	const char *library, const char *symbol, uint32_t *ret_version, char *words, size_t n)
{
	struct pollfd p = {.events = POLLIN};
	int (*version)(uint32_t *);
	int pipes[2];
	ssize_t k = 0;
	pid_t pid;
	void *h;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return false;
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		uint32_t v = 0;
		char line[256];

		(void)setenv("CUDA_INJECTION64_PATH", "", 1);
		h = dlopen(library, RTLD_NOW | RTLD_LOCAL);
		*(void **)(void *)&version = h != NULL ? dlsym(h, symbol) : NULL;
		if (version == NULL || version(&v) != 0)
			(void)snprintf(line, sizeof(line), "-%.250s",
				h == NULL ? dlerror() : "it does not work");
		else
			(void)snprintf(line, sizeof(line), "+%u", v);
		(void)write(pipes[1], line, strlen(line) + 1);
		_exit(0);
	}
	(void)close(pipes[1]);
	p.fd = pipes[0];
	words[0] = '\0';
	if (pid > 0 && poll(&p, 1, PROBE_MS) > 0)
		k = read(pipes[0], words, n - 1);
	words[k > 0 ? k : 0] = '\0';
	(void)close(pipes[0]);
	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	*ret_version = words[0] == '+' ? (uint32_t)strtoul(words + 1, NULL, 10) : 0;
	if (words[0] == '-')
		memmove(words, words + 1, strlen(words));
	return *ret_version != 0;
}

static void look_driver(struct doctor *d)
{
	char words[512];
	uint32_t version;

	if (access("/dev/nvidiactl", F_OK) < 0)
		found(d, NOTE, "GPU",
			"CPU scopes are recorded all the same; in a container, give it the GPU "
			"(--gpus all)",
			"no NVIDIA device is here (/dev/nvidiactl)");
	if (probe("libcuda.so.1", "cuDriverGetVersion", &version, words, sizeof(words)))
		found(d, GOOD, "driver", "", "CUDA %u.%u", version / 1000, version % 1000 / 10);
	else
		found(d, NOTE, "driver",
			"install the NVIDIA driver, or give the container its libraries",
			"libcuda.so.1: %.250s", *words != '\0' ? words : "it did not answer");
}

/* The usual places, newest toolkit last. */
static bool cupti_path(char *ret, size_t n)
{
	static const char *const patterns[] = {"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.*",
		"/usr/local/cuda/lib64/libcupti.so.*",
		"/usr/local/cuda-*/extras/CUPTI/lib64/libcupti.so.*",
		"/usr/lib/x86_64-linux-gnu/libcupti.so.*"};
	const char *set = getenv("PROTOND_CUPTI_PATH");
	size_t i;
	glob_t g;

	if (set != NULL && *set != '\0') {
		(void)snprintf(ret, n, "%s", set);
		return true;
	}
	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		if (glob(patterns[i], 0, NULL, &g) == 0) {
			(void)snprintf(ret, n, "%s", g.gl_pathv[g.gl_pathc - 1]);
			globfree(&g);
			return true;
		}
	}
	return false;
}

static void look_cupti(struct doctor *d)
{
	char words[512], path[4096];
	uint32_t version;

	if (probe("libcupti.so", "cuptiGetVersion", &version, words, sizeof(words)))
		found(d, GOOD, "CUPTI", "", "version %u, by the loader's path", version);
	else if (!cupti_path(path, sizeof(path)))
		found(d, NOTE, "CUPTI",
			"install cuda-cupti (or pip install nvidia-cuda-cupti), or set "
			"PROTOND_CUPTI_PATH",
			"libcupti.so is in none of the usual places; a job that brings its own "
			"(torch does) is recorded with that one");
	else if (probe(path, "cuptiGetVersion", &version, words, sizeof(words)))
		found(d, GOOD, "CUPTI", "", "version %u, %s", version, path);
	else
		found(d, BAD, "CUPTI", "reinstall it, or set PROTOND_CUPTI_PATH to one that loads",
			"%s: %.200s", path, words);
}

static void look_permission(struct doctor *d)
{
	FILE *f = fopen("/proc/driver/nvidia/params", "re");
	char line[256];

	if (f == NULL)
		return; /* no driver: said above */
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, "RmProfilingAdminOnly:", 21) != 0)
			continue;
		if (strtol(line + 21, NULL, 10) != 0)
			found(d, NOTE, "GPU counters",
				"only PC sampling and counters need it: options nvidia "
				"NVreg_RestrictProfilingToAdminUsers=0 on the host",
				"are for administrators only; kernels and their times need no "
				"permission");
		else
			found(d, GOOD, "GPU counters", "", "are open to all users");
	}
	(void)fclose(f);
}

static void look_others(struct doctor *d)
{
	static const char *const names[] = {
		"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LD_PRELOAD"};
	const char *v;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		v = getenv(names[i]);
		if (v == NULL || *v == '\0')
			continue;
		if (strstr(v, "libprotond") != NULL)
			found(d, GOOD, names[i], "", "%.200s", v);
		else
			found(d, i == 2 ? NOTE : BAD, names[i],
				i == 2 ? "nothing, unless it is another profiler"
				       : "unset it to have GPU data from protond",
				"holds something else: %.200s", v);
	}
	if (getenv("KINETO_USE_DAEMON") != NULL)
		found(d, NOTE, "KINETO_USE_DAEMON", "unset it if nobody uses it",
			"torch's profiler may be triggered from outside and then wants CUPTI for "
			"itself");
}

/* --- report
 * --------------------------------------------------------------------------------------- */

static void report_json(const struct doctor *d)
{
	static const char *const grades[] = {"ok", "note", "bad"};
	size_t i;

	json_begin(stdout, "doctor");
	(void)fputs("{\"findings\":[", stdout);
	for (i = 0; i < d->n; i++) {
		const struct finding *f = &d->finding[i];

		(void)printf("%s{\"grade\":\"%s\",\"what\":", i > 0 ? "," : "", grades[f->grade]);
		json_text(stdout, f->what, strlen(f->what));
		(void)fputs(",\"text\":", stdout);
		json_text(stdout, f->text, strlen(f->text));
		(void)fputs(",\"mend\":", stdout);
		json_text(stdout, f->mend, strlen(f->mend));
		(void)putchar('}');
	}
	(void)fputs("]}", stdout);
	json_end(stdout, NULL, 0);
}

static void report(const struct doctor *d)
{
	static const char *const marks[] = {"ok  ", "note", "BAD "};
	size_t i;

	for (i = 0; i < d->n; i++) {
		const struct finding *f = &d->finding[i];

		(void)printf("%s  %-22s ", marks[f->grade], f->what);
		text_put(stdout, f->text, 0);
		(void)putchar('\n');
		if (f->grade != GOOD && f->mend[0] != '\0')
			(void)printf("      %-22s → %s\n", "", f->mend);
	}
}

int cmd_doctor(struct ctl *c)
{
	static struct doctor d;
	size_t i, bad = 0;

	d.c = c;
	look_runtime(&d);
	look_daemon(&d);
	look_beside(&d);
	look_driver(&d);
	look_cupti(&d);
	look_permission(&d);
	look_others(&d);
	for (i = 0; i < d.n; i++)
		bad += d.finding[i].grade == BAD ? 1 : 0;
	if (c->json)
		report_json(&d);
	else
		report(&d);
	return bad > 0 ? CTL_NOT_FOUND : CTL_OK;
}
