/* SPDX-License-Identifier: MIT. cupti_find.c: which libcupti to use. Any thread that may wait.
 *
 * A second copy of CUPTI in a process collides with the first, so the one that is mapped already
 * always wins. Else what the user named, else the usual places, and there the version that fits the
 * CUDA runtime in the process, else the newest that the driver can serve: an older CUPTI works with
 * a newer driver, not the other way round.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cupti_find.h"

#define MAJOR_NEWEST 13u

/* SONAMEs, newest first; 11.x carries the minor. */
static const struct {
	uint32_t major;
	const char *soname;
} sonames[] = {
	{13, "libcupti.so.13"},
	{12, "libcupti.so.12"},
	{11, "libcupti.so.11.8"},
	{11, "libcupti.so.11.7"},
	{11, "libcupti.so.11.6"},
	{11, "libcupti.so.11.5"},
	{11, "libcupti.so.11.4"},
	{11, "libcupti.so.11.3"},
	{11, "libcupti.so.11.2"},
	{11, "libcupti.so.11.1"},
	{11, "libcupti.so.11.0"},
	{0, "libcupti.so"},
};
#define N_SONAMES (sizeof(sonames) / sizeof(sonames[0]))

struct search {
	uint32_t wanted; /* major tried first; 0 none */
	uint32_t limit;  /* majors above it are tried last */
	struct cupti_found *found;
	size_t tried; /* bytes of found->tried */
};

static bool keep(struct cupti_found *f, void *handle, const char *path)
{
	if (handle == NULL)
		return false;
	f->handle = handle;
	snprintf(f->path, sizeof(f->path), "%.255s", path);
	return true;
}

static void note(struct search *s, const char *where)
{
	struct cupti_found *f = s->found;
	int n;

	if (s->tried >= sizeof(f->tried) - 1)
		return;
	n = snprintf(f->tried + s->tried, sizeof(f->tried) - s->tried, "%s%s",
		s->tried > 0 ? ", " : "", where);
	s->tried += n > 0 ? (size_t)n : 0;
}

/* The place of `name` in the order of preference: smaller is better. */
static uint32_t rank(const struct search *s, uint32_t major)
{
	if (major == 0)
		return 50; /* unversioned: anything */
	if (major == s->wanted)
		return 0;
	if (s->limit != 0 && major > s->limit)
		return 100 + major;
	return 1 + MAJOR_NEWEST - (major < MAJOR_NEWEST ? major : MAJOR_NEWEST);
}

/* Tries every soname in `dir` ("": by the loader), best first. */
static bool try_dir(struct search *s, const char *dir)
{
	bool done[N_SONAMES] = {false};
	char path[768];
	size_t i, k, best;

	for (k = 0; k < N_SONAMES; k++) {
		best = N_SONAMES;
		for (i = 0; i < N_SONAMES; i++)
			if (!done[i] && (best == N_SONAMES || rank(s, sonames[i].major) <
								      rank(s, sonames[best].major)))
				best = i;
		done[best] = true;
		if (dir[0] == '\0')
			snprintf(path, sizeof(path), "%s", sonames[best].soname);
		else
			snprintf(path, sizeof(path), "%s/%s", dir, sonames[best].soname);
		if (dir[0] != '\0' && access(path, R_OK) != 0)
			continue;
		if (keep(s->found, dlopen(path, RTLD_NOW | RTLD_LOCAL), path))
			return true;
	}
	return false;
}

/* `what`/`sub` where both are set. */
static bool try_sub(struct search *s, const char *what, const char *sub)
{
	char dir[512];

	if (what == NULL || what[0] == '\0')
		return false;
	snprintf(dir, sizeof(dir), "%s%s", what, sub);
	return try_dir(s, dir);
}

/* A setting that names a file or a folder. */
static bool try_named(struct search *s, const char *value)
{
	struct stat st;

	if (value == NULL || value[0] == '\0' || stat(value, &st) != 0)
		return false;
	if (!S_ISDIR(st.st_mode))
		return keep(s->found, dlopen(value, RTLD_NOW | RTLD_LOCAL), value);
	return try_dir(s, value) || try_sub(s, value, "/lib64") || try_sub(s, value, "/lib") ||
	       try_sub(s, value, "/extras/CUPTI/lib64");
}

/* Calls fn with each file that is mapped into the process, until it says true. */
static bool each_mapped(bool (*fn)(struct search *, const char *), struct search *s)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4352], last[4352] = "";
	bool hit = false;
	char *path;

	if (f == NULL)
		return false;
	while (!hit && fgets(line, sizeof(line), f) != NULL) {
		path = strchr(line, '/');
		if (path == NULL)
			continue;
		path[strcspn(path, "\n")] = '\0';
		if (strcmp(path, last) == 0)
			continue;
		snprintf(last, sizeof(last), "%s", path);
		hit = fn(s, path);
	}
	fclose(f);
	return hit;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static bool mapped_cupti(struct search *s, const char *path)
{
	if (strncmp(base_of(path), "libcupti.so", 11) != 0 &&
		strncmp(base_of(path), "libcupti-", 9) != 0)
		return false;
	return keep(s->found, dlopen(path, RTLD_NOW | RTLD_NOLOAD), path);
}

/* The folders of the pip wheels, found beside a mapped CUDA runtime or torch. */
static bool beside_mapped(struct search *s, const char *path)
{
	static const char *const subs[] = {"", "/../../cuda_cupti/lib", "/../../cu13/lib",
		"/../../nvidia/cu13/lib", "/../../nvidia/cuda_cupti/lib", "/../extras/CUPTI/lib64"};
	const char *base = base_of(path);
	char dir[512];
	size_t i, n = (size_t)(base - path);

	if ((strncmp(base, "libcudart", 9) != 0 && strncmp(base, "libtorch_cuda", 13) != 0 &&
		    strncmp(base, "libc10_cuda", 11) != 0) ||
		n < 2 || n >= sizeof(dir))
		return false;
	memcpy(dir, path, n - 1);
	dir[n - 1] = '\0';
	for (i = 0; i < sizeof(subs) / sizeof(subs[0]); i++)
		if (try_sub(s, dir, subs[i]))
			return true;
	return false;
}

static bool runtime_major(struct search *s, const char *path)
{
	const char *v = strstr(base_of(path), "libcudart.so.");

	if (v == NULL)
		return false;
	s->wanted = (uint32_t)strtoul(v + strlen("libcudart.so."), NULL, 10);
	return s->wanted != 0;
}

static bool find_loaded(struct search *s)
{
	size_t i;

	for (i = 0; i < N_SONAMES; i++)
		if (keep(s->found, dlopen(sonames[i].soname, RTLD_NOW | RTLD_NOLOAD),
			    sonames[i].soname))
			return true;
	return each_mapped(mapped_cupti, s);
}

static bool find_usual(struct search *s)
{
	note(s, "the folders of the CUDA runtime in the process");
	if (each_mapped(beside_mapped, s))
		return true;
	note(s, "CUDA_HOME");
	if (try_sub(s, getenv("CUDA_HOME"), "/extras/CUPTI/lib64") ||
		try_sub(s, getenv("CUDA_HOME"), "/lib64") ||
		try_sub(s, getenv("CUDA_HOME"), "/lib"))
		return true;
	note(s, "/usr/local/cuda");
	if (try_dir(s, "/usr/local/cuda/extras/CUPTI/lib64") || try_dir(s, "/usr/local/cuda/lib64"))
		return true;
	note(s, "the loader's path");
	return try_dir(s, "");
}

int cupti_find(uint32_t driver_major, struct cupti_found *ret)
{
	static const char *const settings[] = {
		"PROTOND_CUPTI_PATH", "CUPTI_ROOT_PATH", "TRITON_CUPTI_LIB_PATH"};
	struct search s = {.limit = driver_major, .found = ret};
	const char *v;
	size_t i;

	memset(ret, 0, sizeof(*ret));
	if (find_loaded(&s))
		return 0;
	(void)each_mapped(runtime_major, &s);
	for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		v = getenv(settings[i]);
		if (v == NULL || v[0] == '\0')
			continue;
		note(&s, settings[i]);
		if (try_named(&s, v))
			return 0;
		if (i == 0)
			return -ELIBBAD; /* asked for this one: no other will do */
	}
	return find_usual(&s) ? 0 : -ENOENT;
}
