/* SPDX-License-Identifier: MIT. web_guard.c: names, tokens, cookies. */
#include "web_guard.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

static int random_hex(char ret[GUARD_TOKEN])
{
	uint8_t bytes[(GUARD_TOKEN - 1) / 2];
	size_t i;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return neg_errno();
	for (i = 0; i < sizeof(bytes); i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static int add_name(struct guard *g, const char *name, size_t bytes, struct err *e)
{
	if (bytes == 0)
		return 0;
	if (g->n == GUARD_NAMES_MAX || bytes >= sizeof(g->name[0]))
		return err_set(e, -EINVAL, "--allow-host: at most %u names, each below %zu bytes",
			GUARD_NAMES_MAX - 3, sizeof(g->name[0]));
	memcpy(g->name[g->n], name, bytes);
	g->name[g->n++][bytes] = '\0';
	return 0;
}

int guard_init(struct guard *g, const char *bind, const char *allow, uint32_t port, struct err *e)
{
	int r;

	*g = (struct guard){.n = 0};
	snprintf(g->cookie, sizeof(g->cookie), "protond-%u", port);
	r = random_hex(g->token);
	if (r == 0)
		r = random_hex(g->value);
	if (r < 0)
		return err_set(e, r, "no random numbers: %s", strerror(-r));
	r = add_name(g, "localhost", 9, e);
	if (r == 0)
		r = add_name(g, "127.0.0.1", 9, e);
	if (r == 0)
		r = add_name(g, "::1", 3, e);
	if (r == 0)
		r = add_name(g, bind, strlen(bind), e);
	while (r == 0 && allow != NULL && *allow != '\0') {
		const size_t n = strcspn(allow, ",");

		r = add_name(g, allow, n, e);
		allow += n + (allow[n] == ',');
	}
	return r;
}

/* Without a port: "a:80" is a, "[::1]:80" is ::1. */
static bool is_named(const struct guard *g, const char *host)
{
	const bool bracket = *host == '[';
	const char *end;
	uint32_t i;
	size_t n;

	host += bracket;
	n = strcspn(host, bracket ? "]" : ":");
	end = host + n;
	if (bracket && *end++ != ']')
		return false;
	if (*end != '\0' && (*end != ':' || end[1 + strspn(end + 1, "0123456789")] != '\0'))
		return false;
	for (i = 0; i < g->n; i++)
		if (strlen(g->name[i]) == n && strncasecmp(g->name[i], host, n) == 0)
			return true;
	return false;
}

bool guard_host(const struct guard *g, const char *host)
{
	return host != NULL && is_named(g, host);
}

bool guard_origin(const struct guard *g, const char *origin)
{
	if (origin == NULL)
		return true;
	if (strncmp(origin, "http://", 7) == 0)
		return is_named(g, origin + 7);
	return strncmp(origin, "https://", 8) == 0 && is_named(g, origin + 8);
}

bool guard_same(const char *secret, const char *given)
{
	const size_t n = strlen(secret);
	unsigned char differs = 0;
	size_t i;

	if (given == NULL || strlen(given) != n)
		return false;
	for (i = 0; i < n; i++)
		differs |= (unsigned char)(secret[i] ^ given[i]);
	return differs == 0;
}
