/* SPDX-License-Identifier: MIT. config.c: the configuration: the CONFIG table's defaults, then a
 * file of `key = value` lines, then PROTOND_KEY variables. */
#include "config.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options.h"
#include "paths.h"
#include "ring.h"

#define CONFIG_FILE_MAX (64u << 10)
#define CONFIG_LINE_MAX 4096u

enum config_type { TYPE_STR, TYPE_U64 };

static const struct config_key {
	const char *key, *def;
	enum config_type type;
	size_t offset;
} keys[] = {
#define X(key, type, def, help) {#key, def, TYPE_##type, offsetof(struct daemon_config, key)},
	CONFIG(X)
#undef X
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

static void *place_of(struct daemon_config *c, const struct config_key *k)
{
	return (char *)c + k->offset;
}

static int parse_u64(const char *s, uint64_t *ret)
{
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno != 0 || *end != '\0')
		return -EINVAL;
	*ret = v;
	return 0;
}

/* where: "FILE:12" or "PROTOND_DB". */
static int set(struct daemon_config *c, const struct config_key *k, const char *value,
	const char *where, struct err *e)
{
	char **text = place_of(c, k);
	char *copy;

	if (k->type == TYPE_U64) {
		if (parse_u64(value, place_of(c, k)) < 0)
			return err_set(e, -EINVAL,
				"%s: %s = '%.64s' is not a whole number; write for example %s = %s",
				where, k->key, value, k->key, k->def);
		return 0;
	}
	copy = strdup(value);
	if (copy == NULL)
		return err_set(e, -ENOMEM, "no memory for the configuration");
	free(*text);
	*text = copy;
	return 0;
}

/* A line for jobs: their libraries read it (options.h). */
static bool is_job_option(const char *name)
{
	static const char *const names[] = {
#define X(name, who, type, def, words, help) "job." #name,
		JOB_OPTIONS(X)
#undef X
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static const struct config_key *key_of(const char *name)
{
	size_t i;

	for (i = 0; i < KEYS; i++) {
		if (strcmp(keys[i].key, name) == 0)
			return &keys[i];
	}
	return NULL;
}

static int unknown_key(const char *where, const char *name, struct err *e)
{
	char list[256] = "";
	size_t i, at = 0;

	for (i = 0; i < KEYS && at < sizeof(list); i++)
		at += (size_t)snprintf(
			list + at, sizeof(list) - at, "%s%s", i == 0 ? "" : ", ", keys[i].key);
	return err_set(e, -EINVAL, "%s: unknown key '%.64s'; remove the line, or use one of: %s",
		where, name, list);
}

static char *trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	n = strlen(s);
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		s[--n] = '\0';
	return s;
}

static int parse_line(struct daemon_config *c, char *line, const char *where, struct err *e)
{
	const struct config_key *k;
	char *value, *key = trim(line);

	if (*key == '\0' || *key == '#')
		return 0;
	value = strchr(key, '=');
	if (value == NULL)
		return err_set(e, -EINVAL, "%s: no '=' in '%.64s'; write key = value", where, key);
	*value++ = '\0';
	key = trim(key);
	if (is_job_option(key) || strncmp(key, "bottlenecks.", 12) == 0) /* protonview's limits */
		return 0;
	k = key_of(key);
	if (k == NULL)
		return unknown_key(where, key, e);
	return set(c, k, trim(value), where, e);
}

int config_parse(
	struct daemon_config *c, const char *text, size_t bytes, const char *name, struct err *e)
{
	char line[CONFIG_LINE_MAX], where[300];
	const char *end = text + bytes, *next;
	unsigned number;
	size_t n;
	int r;

	for (number = 1; text < end; number++, text = next) {
		next = memchr(text, '\n', (size_t)(end - text));
		n = (size_t)((next != NULL ? next : end) - text);
		next = next != NULL ? next + 1 : end;
		(void)snprintf(where, sizeof(where), "%s:%u", name, number);
		if (n >= sizeof(line))
			return err_set(e, -EINVAL, "%s: the line is longer than %u bytes", where,
				CONFIG_LINE_MAX);
		if (memchr(text, '\0', n) != NULL)
			return err_set(
				e, -EINVAL, "%s: a NUL byte; this is not a text file", where);
		memcpy(line, text, n);
		line[n] = '\0';
		r = parse_line(c, line, where, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_file(struct daemon_config *c, const char *path, bool must, struct err *e)
{
	char *text;
	struct stat st;
	ssize_t n;
	int r = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && errno == ENOENT && !must)
		return 0;
	if (fd < 0)
		return err_set(e, neg_errno(), "%s: %s", path, strerror(errno));
	text = malloc(CONFIG_FILE_MAX);
	if (text == NULL) {
		r = err_set(e, -ENOMEM, "no memory for the configuration");
	} else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		   st.st_size >= (off_t)CONFIG_FILE_MAX) {
		r = err_set(e, -EINVAL, "%s: not a regular file of less than 64 KiB", path);
	} else {
		n = read(fd, text, CONFIG_FILE_MAX);
		if (n < 0)
			r = err_set(e, neg_errno(), "%s: %s", path, strerror(errno));
		else
			r = config_parse(c, text, (size_t)n, path, e);
	}
	free(text);
	(void)close(fd);
	return r;
}

static int read_usual(struct daemon_config *c, bool private, struct err *e)
{
	char path[512];

	return paths_config(private, path, sizeof(path)) ? read_file(c, path, false, e) : 0;
}

static int read_variables(struct daemon_config *c, struct err *e)
{
	char name[64];
	const char *value;
	size_t i, k;
	int r;

	for (i = 0; i < KEYS; i++) {
		(void)snprintf(name, sizeof(name), "PROTOND_%s", keys[i].key);
		for (k = 8; name[k] != '\0'; k++)
			name[k] = (char)toupper((unsigned char)name[k]);
		value = getenv(name);
		if (value == NULL || *value == '\0')
			continue;
		r = set(c, &keys[i], value, name, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What no single value tells. */
static int check(const struct daemon_config *c, struct err *e)
{
	enum auto_mode mode;

	if (c->runtime_dir[0] != '\0' && c->runtime_dir[0] != '/')
		return err_set(e, -EINVAL,
			"runtime_dir = '%.200s' does not begin with /; protond.conf or "
			"PROTOND_RUNTIME_DIR has it",
			c->runtime_dir);
	if (c->commit_ms == 0)
		return err_set(e, -EINVAL, "commit_ms = 0: at least 1");
	if (c->lanes > RING_LANES_MAX)
		return err_set(e, -EINVAL, "lanes = %llu: at most %u", (unsigned long long)c->lanes,
			RING_LANES_MAX);
	if (c->lane_kb != 0 &&
		(c->lane_kb < RING_LANE_BYTES_MIN >> 10 || c->lane_kb > RING_LANE_BYTES_MAX >> 10 ||
			!ring_is_pow2((uint32_t)c->lane_kb)))
		return err_set(e, -EINVAL, "lane_kb = %llu: a power of two from %u to %u",
			(unsigned long long)c->lane_kb, RING_LANE_BYTES_MIN >> 10,
			RING_LANE_BYTES_MAX >> 10);
	return config_auto(c, &mode, e);
}

/* The variable's is of the directory where it was set. */
static int complete_db(struct daemon_config *c, struct err *e)
{
	char path[2 * PATH_MAX];
	int r;

	if (c->db[0] == '\0')
		return 0;
	r = paths_whole(c->db, path, sizeof(path));
	if (r < 0)
		return err_set(e, r,
			"PROTOND_DB is '%.200s', and there is no directory to be in: %s; give its "
			"whole path",
			c->db, strerror(-r));
	return set(c, key_of("db"), path, "PROTOND_DB", e);
}

/* A file is read from anywhere. */
static int check_db(const struct daemon_config *c, struct err *e)
{
	if (c->db[0] == '\0' || c->db[0] == '/')
		return 0;
	return err_set(
		e, -EINVAL, "db = '%.200s' does not begin with /; protond.conf has it", c->db);
}

int config_load(struct daemon_config *c, const char *file, bool private, struct err *e)
{
	size_t i;
	int r = 0;

	*c = (struct daemon_config){0};
	for (i = 0; i < KEYS && r == 0; i++)
		r = set(c, &keys[i], keys[i].def, "default", e);
	if (r == 0)
		r = file != NULL ? read_file(c, file, true, e) : read_usual(c, private, e);
	if (r == 0)
		r = check_db(c, e);
	if (r == 0)
		r = read_variables(c, e);
	if (r == 0)
		r = complete_db(c, e);
	if (r == 0)
		r = check(c, e);
	if (r < 0)
		config_free(c);
	return r;
}

int config_auto(const struct daemon_config *c, enum auto_mode *ret, struct err *e)
{
	if (strcmp(c->auto_session, "off") == 0)
		*ret = AUTO_OFF;
	else if (strcmp(c->auto_session, "scopes") == 0)
		*ret = AUTO_SCOPES;
	else if (strcmp(c->auto_session, "full") == 0)
		*ret = AUTO_FULL;
	else
		return err_set(e, -EINVAL,
			"auto_session = '%.64s' is not one of off, scopes, full; protond.conf or "
			"PROTOND_AUTO_SESSION has it",
			c->auto_session);
	return 0;
}

void config_free(struct daemon_config *c)
{
	size_t i;

	for (i = 0; i < KEYS; i++) {
		if (keys[i].type == TYPE_STR)
			free(*(char **)place_of(c, &keys[i]));
	}
	*c = (struct daemon_config){0};
}
