/* SPDX-License-Identifier: MIT. info.c: what a job says about itself: command, directory, host,
 * rank. */
#include "info.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "autostart.h"
#include "backends.h"
#include "doorbell.h"
#include "futex.h"
#include "rendezvous.h"

#define VALUE_MAX 2048u

static size_t slurp(const char *path, char *buf, size_t n)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t got;

	if (fd < 0)
		return 0;
	while (have < n) {
		got = read(fd, buf + have, n - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	close(fd);
	return have;
}

static bool plain(const char *s)
{
	static const char safe[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";

	return s[0] != '\0' && s[strspn(s, safe)] == '\0';
}

/* One argument, quoted for a shell. */
static size_t quote(const char *arg, char *to, size_t n)
{
	size_t at = 0;

	if (plain(arg))
		return (size_t)snprintf(to, n, "%s", arg) < n ? strlen(arg) : n;
	for (const char *p = arg; at + 8 < n; p++) {
		if (p == arg)
			to[at++] = '\'';
		if (*p == '\0')
			break;
		if (*p == '\'') {
			memcpy(to + at, "'\\'", 3);
			at += 3;
		}
		to[at++] = *p;
	}
	to[at++] = '\'';
	to[at] = '\0';
	return at;
}

static void get_command(char *ret, size_t n)
{
	char args[VALUE_MAX];
	size_t have = slurp("/proc/self/cmdline", args, sizeof(args) - 1), at = 0;

	args[have] = '\0';
	ret[0] = '\0';
	for (const char *p = args; p < args + have && at + 2 < n; p += strlen(p) + 1) {
		if (at > 0)
			ret[at++] = ' ';
		at += quote(p, ret + at, n - at);
	}
	ret[at < n ? at : n - 1] = '\0';
}

static void get_exe(char *ret, size_t n)
{
	const ssize_t got = readlink("/proc/self/exe", ret, n - 1);

	ret[got > 0 ? got : 0] = '\0';
}

static void get_cwd(char *ret, size_t n)
{
	if (getcwd(ret, n) == NULL)
		ret[0] = '\0';
}

static void get_host(char *ret, size_t n)
{
	if (gethostname(ret, n - 1) != 0)
		ret[0] = '\0';
	ret[n - 1] = '\0';
}

/* The first of the space-separated variables that is set. */
static void get_env(const char *names, char *ret, size_t n)
{
	char one[64];

	ret[0] = '\0';
	while (*names != '\0') {
		const size_t len = strcspn(names, " ");
		const char *v;

		snprintf(one, sizeof(one), "%.*s", (int)len, names);
		v = getenv(one);
		if (v != NULL && v[0] != '\0') {
			snprintf(ret, n, "%s", v);
			return;
		}
		names += len;
		names += strspn(names, " ");
	}
}

static const struct key {
	const char *name, *env;
	void (*get)(char *ret, size_t n); /* NULL: from env */
} keys[] = {
#define GET_command    get_command
#define GET_exe        get_exe
#define GET_cwd        get_cwd
#define GET_host       get_host
#define GET_rank       NULL
#define GET_local_rank NULL
#define GET_world_size NULL
#define GET_job_id     NULL
#define GET_visible    NULL
#define X(key, vars)   {#key, vars, GET_##key},
	RV_INFO_KEYS(X)
#undef X
};

/* NUL-separated KEY=VALUE; bytes used. */
static uint32_t info(char *buf, uint32_t bytes)
{
	char value[VALUE_MAX];
	uint32_t at = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		int n;

		if (keys[i].get != NULL)
			keys[i].get(value, sizeof(value));
		else
			get_env(keys[i].env, value, sizeof(value));
		if (value[0] == '\0')
			continue;
		n = snprintf(buf + at, bytes - at, "%s=%s", keys[i].name, value);
		if (n < 0 || (uint32_t)n + 1 > bytes - at)
			continue; /* too long for what is left: shorter ones may still fit */
		at += (uint32_t)n + 1;
	}
	return at;
}

const char *pd_stat(char buf[PD_STAT], int field)
{
	const char *p;

	buf[slurp("/proc/self/stat", buf, PD_STAT - 1)] = '\0';
	p = strrchr(buf, ')'); /* the command name, field 2, may hold anything */
	for (int at = 2; p != NULL && at < field; at++) {
		p = strchr(p, ' ');
		p = p != NULL ? p + 1 : NULL;
	}
	return p;
}

uint64_t pd_start_time(void)
{
	char buf[PD_STAT];
	const char *ticks = pd_stat(buf, 22);

	return ticks != NULL ? strtoull(ticks, NULL, 10) : 0;
}

bool pd_token(uint8_t ret[16])
{
	const char *s = getenv("PROTOND_TOKEN");

	if (s == NULL || strlen(s) != 32 || strspn(s, "0123456789abcdefABCDEF") != 32)
		return false;
	for (int i = 0; i < 16; i++) {
		const char hex[3] = {s[2 * i], s[2 * i + 1], '\0'};

		ret[i] = (uint8_t)strtoul(hex, NULL, 16);
	}
	return true;
}

bool pd_is_named_in(const char *variable)
{
	const char *v = getenv(variable);

	return v != NULL && strstr(v, "libprotond") != NULL;
}

void pd_env_read(void)
{
	const char *gpu = getenv("PROTOND_GPU"), *inherit = getenv("PROTOND_INHERIT");
	const char *autostart = getenv("PROTOND_AUTOSTART");
	struct pd_env *e = &pd.env;

	pd_lock(&pd.lock);
	place_candidates(&e->places);
	snprintf(e->gpu, sizeof(e->gpu), "%s", gpu != NULL ? gpu : "");
	e->inherit_copy = inherit != NULL && strcmp(inherit, "copy") == 0;
	e->autostart = autostart != NULL && strcmp(autostart, "1") == 0;
	e->injected = pd_is_named_in("LD_PRELOAD");
	e->await_injection = false;
	for (size_t i = 0; i < BACKEND_COUNT; i++) {
		const struct backend_term *b = &backend_terms[i];

		if (!pd_is_named_in(b->injection))
			continue;
		e->injected = true;
		e->await_injection |= (b->caps & CAP_KERNEL) != 0;
	}
	e->info_bytes = info(e->info, sizeof(e->info));
	pd_spawn_env_read();
	pd_unlock(&pd.lock);
}
