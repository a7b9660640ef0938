/* SPDX-License-Identifier: MIT. rule_limits.c: the rules' limits out of files. */
#include "rule_limits.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "paths.h"

#define OURS       "bottlenecks."
#define LINE_BYTES 4096
#define LINES_MAX  10000u

static char *trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	for (n = strlen(s); n > 0 && isspace((unsigned char)s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

/* The daemon's lines, and jobs', are not ours; all: each line is. */
static int take_line(
	struct rule_settings *s, char *line, bool all, const char *where, struct err *e)
{
	char word[LINE_BYTES * 2], *value, *key = trim(line);
	const bool ours = strncmp(key, OURS, strlen(OURS)) == 0;
	struct err why;

	if (*key == '\0' || *key == '#' || (!ours && !all))
		return 0;
	value = strchr(key, '=');
	if (value == NULL)
		return err_set(e, -EINVAL, "%s: no '=' in '%.64s'", where, key);
	*value++ = '\0';
	(void)snprintf(
		word, sizeof(word), "%s=%s", trim(key + (ours ? strlen(OURS) : 0)), trim(value));
	if (strchr(word, ',') != NULL)
		return err_set(e, -EINVAL, "%s: one limit a line", where);
	return rule_set(s, word, &why) == 0 ? 0 : err_set(e, -EINVAL, "%s: %s", where, why.text);
}

static int take_file(struct rule_settings *s, const char *path, bool must, bool all, struct err *e)
{
	char line[LINE_BYTES], where[400];
	unsigned number = 0;
	struct stat st;
	FILE *f;
	int r = 0;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "%s: not a regular file", path);
	f = fopen(path, "re");
	if (f == NULL) /* one that others may not read is not for them */
		return must ? err_set(e, neg_errno(), "%s: %s", path, strerror(errno)) : 0;
	while (r == 0 && number < LINES_MAX && fgets(line, sizeof(line), f) != NULL) {
		(void)snprintf(where, sizeof(where), "%.300s:%u", path, ++number);
		if (strchr(line, '\n') == NULL && !feof(f))
			r = err_set(e, -EINVAL, "%s: the line is longer than %d bytes", where,
				LINE_BYTES);
		else
			r = take_line(s, line, all, where, e);
	}
	(void)fclose(f);
	return r;
}

int rule_limits_usual(struct rule_settings *ret, struct err *e)
{
	char path[512];
	uint32_t i;
	int r = 0;

	rule_defaults(ret);
	for (i = 0; i < 2 && r == 0; i++)
		r = paths_config(i == 1, path, sizeof(path)) ? take_file(ret, path, false, false, e)
							     : 0;
	return r;
}

int rule_limits_set(struct rule_settings *s, const char *words, struct err *e)
{
	return words[0] == '@' ? take_file(s, words + 1, true, true, e) : rule_set(s, words, e);
}
