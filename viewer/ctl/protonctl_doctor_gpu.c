/* SPDX-License-Identifier: MIT. protonctl_doctor_gpu.c: the GPU's driver and CUPTI, who may read
 * counters, and the variables of other tools that take CUPTI or the program's start for themselves.
 */
#include "protonctl_doctor.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends.h"
#include "protonctl_self.h"

#define PARAMS "/proc/driver/nvidia/params"

/* --- driver, CUPTI */

static void version_by(void *library, const char *symbol, char *ret, size_t n)
{
	int (*version)(uint32_t *);
	uint32_t v = 0;

	*(void **)(void *)&version = dlsym(library, symbol);
	if (version != NULL && version(&v) == 0 && v != 0)
		snprintf(ret, n, "%u", v);
}

static void driver_version(void *library, char *ret, size_t n)
{
	version_by(library, "cuDriverGetVersion", ret, n);
}

static void cupti_version(void *library, char *ret, size_t n)
{
	version_by(library, "cuptiGetVersion", ret, n);
}

static void look_driver(struct doctor *d)
{
	char words[512];
	unsigned long version;

	if (access("/dev/nvidiactl", F_OK) < 0)
		found(d, NOTE, "GPU",
			"CPU scopes are recorded without one; a container gets the GPU by --gpus "
			"all",
			"there is no NVIDIA device (/dev/nvidiactl)");
	if (!doctor_probe("libcuda.so.1", driver_version, words, sizeof(words))) {
		found(d, NOTE, "driver",
			"install the NVIDIA driver, or give the container its libraries",
			"%s%.250s", strncmp(words, "lib", 3) == 0 ? "" : "libcuda.so.1: ", words);
		return;
	}
	version = strtoul(words, NULL, 10);
	found(d, GOOD, "driver", "", "CUDA %lu.%lu", version / 1000, version % 1000 / 10);
}

/* The usual places, newest toolkit last. */
static bool cupti_path(char *ret, size_t n)
{
	static const char *const patterns[] = {"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.*",
		"/usr/local/cuda/lib64/libcupti.so.*",
		"/usr/local/cuda-*/extras/CUPTI/lib64/libcupti.so.*",
		"/usr/lib/x86_64-linux-gnu/libcupti.so.*"};
	size_t i;
	glob_t g;

	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		if (glob(patterns[i], 0, NULL, &g) == 0) {
			snprintf(ret, n, "%s", g.gl_pathv[g.gl_pathc - 1]);
			globfree(&g);
			return true;
		}
	}
	return false;
}

static void look_cupti(struct doctor *d)
{
	const char *set = getenv("PROTOND_CUPTI_PATH");
	char words[512], path[4096];

	set = set != NULL && *set != '\0' ? set : NULL;
	if (set == NULL && doctor_probe("libcupti.so", cupti_version, words, sizeof(words))) {
		found(d, GOOD, "CUPTI", "", "version %s, by the loader's path", words);
		return;
	}
	if (set != NULL) { /* a job takes this one or none */
		snprintf(path, sizeof(path), "%s", set);
	} else if (!cupti_path(path, sizeof(path))) {
		found(d, NOTE, "CUPTI",
			"install cuda-cupti (or pip install nvidia-cuda-cupti), or set "
			"PROTOND_CUPTI_PATH",
			"libcupti.so is in none of the usual places; a job that brings its own, as "
			"torch does, uses that one");
		return;
	}
	if (doctor_probe(path, cupti_version, words, sizeof(words)))
		found(d, GOOD, "CUPTI", "", "version %s, %s", words, path);
	else
		found(d, BAD, "CUPTI", "reinstall it, or set PROTOND_CUPTI_PATH to one that loads",
			"%s: %.200s", path, words);
}

static bool is_admin(void)
{
	uint64_t n = 0;
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "CapEff:", 7) == 0)
			n = strtoull(line + 7, NULL, 16);
	if (f != NULL)
		(void)fclose(f);
	return (n >> 21 & 1) != 0; /* CAP_SYS_ADMIN */
}

static void look_counters(struct doctor *d)
{
	uint64_t admin_only;

	if (!doctor_number(PARAMS, "RmProfilingAdminOnly:", &admin_only))
		return; /* no driver: said above */
	if (admin_only == 0)
		found(d, GOOD, "GPU counters", "", "are open to all users");
	else if (is_admin())
		found(d, GOOD, "GPU counters", "", "are for administrators only, and you are one");
	else
		found(d, NOTE, "GPU counters",
			"only PC sampling and counters need them: on the host put `options nvidia "
			"NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d and reload "
			"the module, or run with CAP_SYS_ADMIN",
			"are for administrators only (" PARAMS "); kernels and their times need no "
			"permission");
}

void doctor_gpu(struct doctor *d)
{
	look_driver(d);
	look_cupti(d);
	look_counters(d);
}

/* --- protond-device */

#define READS_MS  10000 /* as long as protond waits for it */
#define READS_MAX 32768u

/* What it prints of one reading, on both of its outputs. -ETIMEDOUT: it hangs. */
static int run_device(const char *program, char ret[READS_MAX])
{
	char *const argv[] = {(char[]){"protond-device"}, (char[]){"--print"}, (char[]){"--count"},
		(char[]){"1"}, (char[]){"--hz"}, (char[]){"10"}, NULL};
	posix_spawn_file_actions_t actions;
	struct pollfd p = {.events = POLLIN};
	size_t at = 0;
	ssize_t n = 1;
	int pipes[2], r;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0 || posix_spawn_file_actions_init(&actions) != 0)
		return -EMFILE;
	(void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
	(void)posix_spawn_file_actions_adddup2(&actions, pipes[1], STDERR_FILENO);
	r = -posix_spawn(&pid, program, &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(pipes[1]);
	p.fd = pipes[0];
	while (r == 0 && n > 0 && at + 1 < READS_MAX) {
		if (poll(&p, 1, READS_MS) <= 0)
			r = -ETIMEDOUT;
		else if ((n = read(pipes[0], ret + at, READS_MAX - 1 - at)) > 0)
			at += (size_t)n;
	}
	(void)close(pipes[0]);
	ret[at] = '\0';
	if (r == 0 || r == -ETIMEDOUT) {
		(void)kill(pid, SIGKILL); /* one that hangs in the driver may not go */
		(void)waitpid(pid, NULL, r == 0 ? 0 : WNOHANG);
	}
	return r;
}

/* "protond-device: WORDS; what helps: HELP" */
static void look_trouble(struct doctor *d, char *line)
{
	static const char name[] = "protond-device: ", helps[] = "; what helps: ";
	char *help = strstr(line, helps);

	if (strncmp(line, name, sizeof(name) - 1) != 0 || help == NULL)
		return;
	*help = '\0';
	found(d, NOTE, "GPU readings", help + sizeof(helps) - 1, "%.300s", line + sizeof(name) - 1);
}

void doctor_readings(struct doctor *d)
{
	char path[4096], *said = malloc(READS_MAX), *line, *rest = NULL;
	unsigned gpus = 0, active = 0;
	int r = self_find("protond-device", path, sizeof(path));

	if (said == NULL)
		return;
	if (r < 0)
		found(d, NOTE, "GPU readings",
			"install protond completely: `make install`; sessions have no power, "
			"clocks and activity of GPUs without it",
			"protond-device is not beside protonctl");
	else if ((r = run_device(path, said)) == -ETIMEDOUT)
		found(d, BAD, "GPU readings", "see `nvidia-smi` and the kernel's log",
			"protond-device does not answer for 10 s: the driver hangs");
	else if (r < 0)
		found(d, BAD, "GPU readings", "install protond completely: `make install`",
			"%.300s does not start: %s", path, strerror(-r));
	for (line = r == 0 ? strtok_r(said, "\n", &rest) : NULL; line != NULL;
		line = strtok_r(NULL, "\n", &rest)) {
		gpus += strncmp(line, "{\"gpu\":", 7) == 0 && line[7] != 'n';
		active += strstr(line, "\"sm_active\":") != NULL;
		look_trouble(d, line);
	}
	if (gpus > 0)
		found(d, GOOD, "GPU readings", "", "%u GPU%s, %u with activity (GPM), by %s", gpus,
			gpus == 1 ? "" : "s", active, path);
	free(said);
}

/* --- other tools */

#define HOLDS_CUPTI                                                                          \
	"it takes CUPTI for itself in the programs it starts: run them without it, or with " \
	"`protonctl run -b none`"

/* clang-format off */
static const struct {
	const char *name; /* a name, or the beginning of one: "NSYS_*" */
	const char *text, *mend;
} others[] = {
	{"PROTOND_DISABLE", "is set: libprotond does nothing in the programs of this shell",
		"unset it to record them"},
	{"TRITON_PROTON_DISABLE", "is set: `import protond` does nothing, as Proton would",
		"unset it to record Python programs"},
	{"NSYS_*", "is Nsight Systems'", HOLDS_CUPTI},
	{"NSYSDK_*", "is Nsight Systems'", HOLDS_CUPTI},
	{"NV_NSIGHT_*", "is Nsight Compute's", HOLDS_CUPTI},
	{"NVPROF_ID", "is nvprof's", HOLDS_CUPTI},
	{"COMPUTE_PROFILE", "turns on the driver's old profiler", "unset it"},
	{"KINETO_USE_DAEMON", "lets torch's profiler be started from outside, which then wants CUPTI for itself",
		"unset it if nobody uses it"},
	{"KINETO_CONFIG", "configures torch's profiler, which may start by itself and then wants CUPTI for itself",
		"unset it if nobody uses it"},
};
/* clang-format on */

static bool is_named(const char *entry, const char *name)
{
	const char *star = strchr(name, '*');
	const size_t n = star != NULL ? (size_t)(star - name) : strlen(name);

	return strncmp(entry, name, n) == 0 && (star != NULL || entry[n] == '=');
}

/* The first variable of that name. A flag that says 0 is none. */
static const char *variable(const char *name, size_t *ret_bytes)
{
	const char *value;
	char **e;

	for (e = environ; *e != NULL; e++) {
		value = strchr(*e, '=');
		if (value == NULL || !is_named(*e, name) || value[1] == '\0' ||
			strcmp(value, "=0") == 0)
			continue;
		*ret_bytes = (size_t)(value - *e);
		return *e;
	}
	return NULL;
}

/* A variable that holds one library: ours, another's, or one that is not there. */
static void look_injection(struct doctor *d, const char *name)
{
	const char *v = getenv(name);

	if (v == NULL || *v == '\0')
		return;
	if (strstr(v, "libprotond") == NULL)
		found(d, BAD, name, "unset it to have GPU data from protond",
			"names another tool: %.200s", v);
	else if (access(v, R_OK) < 0)
		found(d, BAD, name, "set it again: `eval \"$(protonctl env)\"`", "%.200s: %s", v,
			strerror(errno));
	else
		found(d, GOOD, name, "", "%.200s", v);
}

void doctor_others(struct doctor *d)
{
	const char *v = getenv("LD_PRELOAD");
	size_t i, n;

	for (i = 0; i < BACKEND_COUNT; i++)
		look_injection(d, backend_terms[i].injection);
	if (v != NULL && *v != '\0')
		found(d, strstr(v, "libprotond") != NULL ? GOOD : NOTE, "LD_PRELOAD",
			"nothing to do, unless it is another profiler", "%.200s", v);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		v = variable(others[i].name, &n);
		if (v != NULL)
			found(d, NOTE, "variables", others[i].mend, "%.*s %s",
				(int)(n < 100 ? n : 100), v, others[i].text);
	}
}
