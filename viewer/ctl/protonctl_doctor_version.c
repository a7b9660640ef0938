/* SPDX-License-Identifier: MIT. protonctl_doctor_version.c: what is installed beside protonctl,
 * what the loader would take instead, how it is set, and which versions run: daemon, jobs, tool. */
#include "protonctl_doctor.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protonctl_options.h"
#include "protonctl_self.h"

#define LIBRARY "libprotond.so.0"
#define ENGINE  "libprotond-agent.so.0"

/* The engine says its version in a table that begins like this, in every version (engine.h). */
struct engine_begin {
	uint32_t abi, bytes;
	char version[32];
};

static void engine_version(void *library, char *ret, size_t n)
{
	const struct engine_begin *(*table)(void);

	*(void **)(void *)&table = dlsym(library, "protond_engine_v1");
	if (table != NULL)
		snprintf(ret, n, "%.31s", table()->version);
}

/* Of the engine in the same folder as a libprotond: they are installed together. */
static bool version_beside(const char *library, char *ret, size_t n)
{
	const char *slash = strrchr(library, '/');
	char path[4096];

	if (slash == NULL || snprintf(path, sizeof(path), "%.*s/" ENGINE, (int)(slash - library),
				     library) >= (int)sizeof(path))
		return false;
	return doctor_probe(path, engine_version, ret, n);
}

static void library_path(void *library, char *ret, size_t n)
{
	Dl_info at;

	if (dladdr(dlsym(library, "protond_start"), &at) != 0 && at.dli_fname != NULL)
		snprintf(ret, n, "%s", at.dli_fname);
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Programs linked with -lprotond get what the loader finds, unless they say where. */
static void look_loader(struct doctor *d, const char *beside)
{
	char path[512], version[512];

	if (!doctor_probe(LIBRARY, library_path, path, sizeof(path))) {
		if (strncmp(beside, "/usr/", 5) == 0)
			found(d, NOTE, "loader",
				"ldconfig, as root; or link programs with -Wl,-rpath",
				"does not find " LIBRARY " by itself, though it is installed in %s",
				beside);
		return;
	}
	if (is_same_file(path, beside) || !version_beside(path, version, sizeof(version)))
		return;
	found(d, strcmp(version, PROTOND_BUILD_VERSION) == 0 ? GOOD : NOTE, "loader",
		"remove the older installation, or see LD_LIBRARY_PATH and ldconfig -p",
		"takes %s, version %s, for programs linked with -lprotond; protonctl "
		"is " PROTOND_BUILD_VERSION,
		path, version);
}

void doctor_beside(struct doctor *d)
{
	static const char *const names[] = {"protond", "protonview", LIBRARY, ENGINE};
	char path[4096], version[512];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (self_find(names[i], path, sizeof(path)) < 0) {
			found(d, BAD, names[i], "install protond completely: `make install`",
				"not found beside protonctl");
			continue;
		}
		if (strcmp(names[i], ENGINE) != 0)
			found(d, GOOD, names[i], "", "%s", path);
		else if (!doctor_probe(path, engine_version, version, sizeof(version)))
			found(d, BAD, names[i], "install protond completely: `make install`",
				"%s cannot be loaded: %s", path, version);
		else
			found(d, strcmp(version, PROTOND_BUILD_VERSION) == 0 ? GOOD : BAD, names[i],
				"install one version of everything: make install, or pip install",
				"%s, version %s, protonctl is " PROTOND_BUILD_VERSION, path,
				version);
		if (strcmp(names[i], LIBRARY) == 0)
			look_loader(d, path);
	}
}

/* --- settings */

static void job_setting(void *arg, const char *words)
{
	found(arg, BAD, "variables", "correct it, or unset it", "%s", words);
}

/* What protond says of its own settings as it would find them now. */
static void look_daemon_settings(struct doctor *d, const char *protond)
{
	char *const argv[] = {
		(char[]){"protond"}, (char[]){"--private"}, (char[]){"--check"}, NULL};
	static const char name[] = "protond: ";
	char words[400] = "";
	posix_spawn_file_actions_t actions;
	int pipes[2], status = 0;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return;
	if (posix_spawn_file_actions_init(&actions) == 0) {
		(void)posix_spawn_file_actions_adddup2(&actions, pipes[1], STDERR_FILENO);
		(void)posix_spawn_file_actions_addopen(
			&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
		if (posix_spawn(&pid, protond, &actions, NULL, argv, environ) == 0) {
			(void)waitpid(pid, &status, 0);
			(void)close(pipes[1]);
			pipes[1] = -1;
			(void)read(pipes[0], words, sizeof(words) - 1);
		}
		(void)posix_spawn_file_actions_destroy(&actions);
	}
	(void)close(pipes[0]);
	if (pipes[1] >= 0)
		(void)close(pipes[1]);
	words[strcspn(words, "\n")] = '\0';
	if (status != 0)
		found(d, BAD, "settings", "correct it; no daemon starts with it", "%s",
			strncmp(words, name, sizeof(name) - 1) == 0 ? words + sizeof(name) - 1
								    : words);
}

void doctor_settings(struct doctor *d)
{
	char path[4096];

	job_options_check(job_setting, d);
	if (self_find("protond", path, sizeof(path)) == 0)
		look_daemon_settings(d, path);
}

/* --- what runs */

/* How many jobs run another libprotond than the daemon is, and which. */
static uint32_t other_jobs(const msgpack_object *jobs, const char *daemon, char *ret, size_t n)
{
	char version[32];
	uint32_t i, others = 0;

	if (jobs == NULL || jobs->type != MSGPACK_OBJECT_ARRAY)
		return 0;
	for (i = 0; i < jobs->via.array.size; i++) {
		wire_text(&jobs->via.array.ptr[i], "version", version, sizeof(version));
		if (version[0] == '\0' || strcmp(version, daemon) == 0)
			continue; /* one that records nothing has no version yet */
		if (others++ == 0)
			snprintf(ret, n, "%s", version);
	}
	return others;
}

void doctor_versions(struct doctor *d)
{
	struct rpc_reply reply = {.fd = -1};
	char version[32] = "";
	const char *daemon;
	uint32_t n;
	struct err e;

	if (d->rpc == NULL)
		return;
	daemon = rpc_daemon(d->rpc)->version;
	if (strcmp(daemon, PROTOND_BUILD_VERSION) != 0)
		found(d, NOTE, "versions",
			"restart protond after an update: `systemctl restart protond`, or your own "
			"with "
			"`protonctl daemon stop`; jobs go on meanwhile",
			"protond %s runs, protonctl is " PROTOND_BUILD_VERSION, daemon);
	(void)rpc_begin(d->rpc, "jobs");
	if (rpc_call(d->rpc, RPC_TIMEOUT_MS, &reply, &e) < 0)
		return;
	n = other_jobs(wire_get(reply.result, "jobs"), daemon, version, sizeof(version));
	if (n > 0)
		found(d, NOTE, "versions",
			"they are recorded; a job gets the new library when it is started again",
			"%u job%s with libprotond %s, protond is %s", n, n == 1 ? " runs" : "s run",
			version, daemon);
	rpc_reply_free(&reply);
}
