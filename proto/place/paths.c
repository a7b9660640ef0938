/* SPDX-License-Identifier: MIT. paths.c: the places of sockets and databases, in the order in which
 * a tool looks for them. The runtime directory's law is the job's and the daemon's too:
 * proto/place/place.h. */
#include "paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "place.h"

#define SPACE " \t\n\v\f\r"

static int put(const char *text, char *ret, size_t n)
{
	return snprintf(ret, n, "%s", text) < (int)n ? 0 : -ENAMETOOLONG;
}

static const char *variable(const char *name)
{
	const char *v = getenv(name);

	return v != NULL && *v == '/' ? v : NULL;
}

/* First the one that place.h picks, then the other candidates that may be trusted. */
int paths_runtime(uint32_t i, char *ret, size_t n)
{
	char pick[PLACE_PATH_MAX] = "";
	struct place_list l;
	unsigned k;

	place_candidates(&l);
	if (place_pick(&l, pick, sizeof(pick)) == 0 && i-- == 0)
		return put(pick, ret, n);
	for (k = 0; k < l.n; k++) {
		if (strcmp(l.path[k], pick) == 0 ||
			(l.own[k] && !place_is_private(l.path[k], geteuid())))
			continue;
		if (i-- == 0)
			return put(l.path[k], ret, n);
	}
	return -ENOENT;
}

int paths_private_runtime(char *ret, size_t n, struct err *e)
{
	struct stat st;
	int r = place_private(ret, n);

	if (r < 0)
		return err_set(e, r,
			"no directory for sockets: those that exist belong to somebody else or are "
			"open to others; set PROTOND_RUNTIME_DIR to one of your own");
	if (mkdir(ret, 0700) < 0 &&
		errno != EEXIST) /* its parents are there, or it is not ours to make */
		return err_set(e, neg_errno(),
			"cannot create %s: %s; set PROTOND_RUNTIME_DIR to a directory of your own",
			ret, strerror(errno));
	if (lstat(ret, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return err_set(e, -EPERM,
			"%s is not a directory of your own; remove it, or set PROTOND_RUNTIME_DIR",
			ret);
	return 0;
}

int paths_whole(const char *path, char *ret, size_t n)
{
	char here[PATH_MAX];

	if (*path == '/')
		return put(path, ret, n);
	if (getcwd(here, sizeof(here)) == NULL)
		return -errno;
	return snprintf(ret, n, "%s/%s", here, path) < (int)n ? 0 : -ENAMETOOLONG;
}

bool paths_config(bool private, char *ret, size_t n)
{
	const char *xdg = variable("XDG_CONFIG_HOME"), *home = variable("HOME");

	if (!private)
		return snprintf(ret, n, "/etc/protond.conf") < (int)n;
	if (xdg != NULL)
		return snprintf(ret, n, "%s/protond.conf", xdg) < (int)n;
	return home != NULL && snprintf(ret, n, "%s/.config/protond.conf", home) < (int)n;
}

/* The value of a line `db = PATH`, as the daemon reads it (config.c), in place; NULL: of another. */
static const char *value_of_db(char *line)
{
	char *s = line + strspn(line, SPACE);
	size_t n;

	if (strncmp(s, "db", 2) != 0)
		return NULL;
	s += 2 + strspn(s + 2, SPACE);
	if (*s++ != '=')
		return NULL;
	s += strspn(s, SPACE);
	for (n = strlen(s); n > 0 && strchr(SPACE, s[n - 1]) != NULL; n--)
		s[n - 1] = '\0';
	return s;
}

/* The last line of it counts. */
static bool configured_db(bool private, char *ret, size_t n)
{
	char line[4096];
	const char *value;
	struct stat st;
	bool found = false;
	FILE *f;

	/* Not a pipe: nobody may write to it. */
	if (!paths_config(private, line, sizeof(line)) || stat(line, &st) < 0 ||
		!S_ISREG(st.st_mode) || (f = fopen(line, "re")) == NULL)
		return false;
	while (fgets(line, sizeof(line), f) != NULL) {
		value = value_of_db(line);
		if (value != NULL)
			found = *value == '/' && put(value, ret, n) == 0;
	}
	(void)fclose(f);
	return found;
}

int paths_private_db(char *ret, size_t n)
{
	const char *xdg = variable("XDG_DATA_HOME"), *home = variable("HOME");
	const int k = xdg != NULL ? snprintf(ret, n, "%s/protond/protond.db", xdg)
				  : snprintf(ret, n, "%s/.local/share/protond/protond.db",
					    home != NULL ? home : "");

	return k < (int)n ? 0 : -ENAMETOOLONG;
}

int paths_db(uint32_t i, char *ret, size_t n)
{
	const char *set = getenv("PROTOND_DB");
	int k;

	if (set != NULL && *set != '\0')
		return i == 0 ? paths_whole(set, ret, n) : -ENOENT;
	switch (i) {
	case 0:
		return configured_db(true, ret, n) ? 0 : paths_private_db(ret, n);
	case 1: /* where a private daemon goes when the home is on a network file system */
		k = snprintf(ret, n, "/var/tmp/protond.%u/protond.db", (unsigned)geteuid());
		return k < (int)n ? 0 : -ENAMETOOLONG;
	case 2:
		return configured_db(false, ret, n) ? 0 : put(PATHS_SERVICE_DB, ret, n);
	default:
		return -ENOENT;
	}
}
