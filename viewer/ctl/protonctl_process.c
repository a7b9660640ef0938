/* SPDX-License-Identifier: MIT. protonctl_process.c: why a process is not among protond's jobs. */
#include "protonctl_process.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *open_of(uint64_t pid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%lu/%s", pid, file);
	return fopen(path, "re");
}

static void name_of(uint64_t pid, char ret[32])
{
	FILE *f = open_of(pid, "comm");

	if (f == NULL || fgets(ret, 32, f) == NULL)
		snprintf(ret, 32, "?");
	ret[strcspn(ret, "\n")] = '\0';
	if (f != NULL)
		(void)fclose(f);
}

/* -1: it may not be seen. */
static int loads_library(uint64_t pid)
{
	FILE *f = open_of(pid, "maps");
	char line[4352];
	int found = 0, lines = 0;

	if (f == NULL)
		return -1;
	for (; fgets(line, sizeof(line), f) != NULL; lines++)
		found |= strstr(line, "/libprotond") != NULL;
	(void)fclose(f);
	return lines > 0 ? found : -1;
}

bool process_words(uint64_t pid, char *ret, size_t n)
{
	const struct passwd *p;
	char path[64], name[32], user[64];
	struct stat st;
	int loads;

	snprintf(path, sizeof(path), "/proc/%lu", pid);
	if (stat(path, &st) < 0)
		return false;
	name_of(pid, name);
	if (geteuid() != 0 && st.st_uid != geteuid()) {
		p = getpwuid(st.st_uid);
		snprintf(user, sizeof(user), "user %u", st.st_uid);
		snprintf(ret, n, "process %lu (%s) is not yours, but %.60s's", pid, name,
			p != NULL ? p->pw_name : user);
		return true;
	}
	loads = loads_library(pid);
	if (loads < 0)
		return false;
	snprintf(ret, n,
		loads > 0 ? "process %lu (%s) loads libprotond, but is not attached to this protond"
			  : "process %lu (%s) does not load libprotond",
		pid, name);
	return true;
}
