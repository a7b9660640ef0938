/* SPDX-License-Identifier: MIT. web_query.c: an address, taken apart. */
#include "web_query.h"

#include <string.h>

#include "human.h"

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place; plus: "+" is a blank, as in parameters. */
static bool decode(char *s, bool plus)
{
	char *to = s;
	int high, low;

	for (; *s != '\0'; s++) {
		if (*s != '%') {
			*to++ = plus && *s == '+' ? ' ' : *s;
			continue;
		}
		high = hex(s[1]);
		low = high < 0 ? -1 : hex(s[2]);
		if (low < 0 || (high == 0 && low == 0))
			return false;
		*to++ = (char)(high << 4 | low);
		s += 2;
	}
	*to = '\0';
	return true;
}

bool web_query_parse(const char *uri, struct web_query *ret)
{
	const size_t bytes = strlen(uri);
	char *at, *next, *value;

	ret->n = 0;
	if (bytes >= sizeof(ret->text))
		return false;
	memcpy(ret->text, uri, bytes + 1);
	at = strchr(ret->text, '#');
	if (at != NULL)
		*at = '\0';
	at = strchr(ret->text, '?');
	if (at != NULL)
		*at++ = '\0';
	if (!decode(ret->text, false))
		return false;
	ret->path = ret->text + (ret->text[0] == '/');
	for (; at != NULL && *at != '\0'; at = next) {
		next = strchr(at, '&');
		if (next != NULL)
			*next++ = '\0';
		if (*at == '\0')
			continue;
		if (ret->n == WEB_PARAMS_MAX)
			return false;
		value = strchr(at, '=');
		if (value != NULL)
			*value++ = '\0';
		else
			value = at + strlen(at);
		if (!decode(at, true) || !decode(value, true))
			return false;
		ret->param[ret->n].key = at;
		ret->param[ret->n++].value = value;
	}
	return true;
}

const char *web_query_get(const struct web_query *q, const char *key)
{
	uint32_t i;

	for (i = 0; i < q->n; i++)
		if (strcmp(q->param[i].key, key) == 0)
			return q->param[i].value;
	return NULL;
}

bool web_query_u64(const struct web_query *q, const char *key, uint64_t max, uint64_t *ret)
{
	const char *s = web_query_get(q, key);

	return s == NULL || text_u64(s, max, ret);
}
