/* SPDX-License-Identifier: MIT. web_json.h: objects and columns of JSON, into a text. */
#ifndef PROTOND_WEB_JSON_H
#define PROTOND_WEB_JSON_H

#include "text.h"

/* A comma where something stands before. */
static inline void json_next(struct text *t)
{
	const char last = t->n > 0 ? t->s[t->n - 1] : '{';

	if (last != '{' && last != '[')
		text_char(t, ',');
}

static inline void json_key(struct text *t, const char *name)
{
	json_next(t);
	text_json(t, name);
	text_char(t, ':');
}

/* Whole numbers without the ".0"; not finite: null. */
static inline void json_number(struct text *t, double v)
{
	char digits[24], *at = digits + sizeof(digits);
	uint64_t n;

	if (!(v < 9007199254740992.0 && v > -9007199254740992.0) || v != (double)(int64_t)v) {
		text_json_f64(t, v);
		return;
	}
	n = (uint64_t)(v < 0 ? -v : v);
	do
		*--at = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	if (v < 0)
		*--at = '-';
	text_add(t, at, (size_t)(digits + sizeof(digits) - at));
}

static inline void json_f64(struct text *t, double v)
{
	json_next(t);
	json_number(t, v);
}

static inline void json_u64(struct text *t, uint64_t v)
{
	json_f64(t, (double)v); /* those of a column are below 2^53 */
}

static inline void json_i64(struct text *t, int64_t v)
{
	json_next(t);
	text_fmt(t, "%lld", (long long)v);
}

static inline void json_str(struct text *t, const char *s) /* NULL: null */
{
	json_next(t);
	if (s == NULL)
		text_str(t, "null");
	else
		text_json(t, s);
}

static inline void json_open(struct text *t, char bracket) /* '{' or '[', as an element */
{
	json_next(t);
	text_char(t, bracket);
}

static inline void json_in(struct text *t, const char *key, char bracket)
{
	json_key(t, key);
	text_char(t, bracket);
}

/* Of what was opened with this key, or as an element. */
static inline void json_close(struct text *t, char bracket)
{
	text_char(t, bracket);
}

static inline void json_key_u64(struct text *t, const char *name, uint64_t v)
{
	json_key(t, name);
	text_fmt(t, "%llu", (unsigned long long)v);
}

static inline void json_key_i64(struct text *t, const char *name, int64_t v)
{
	json_key(t, name);
	text_fmt(t, "%lld", (long long)v);
}

static inline void json_key_f64(struct text *t, const char *name, double v)
{
	json_key(t, name);
	json_number(t, v);
}

static inline void json_key_str(struct text *t, const char *name, const char *s)
{
	json_key(t, name);
	if (s == NULL)
		text_str(t, "null");
	else
		text_json(t, s);
}

static inline void json_key_bool(struct text *t, const char *name, int v)
{
	json_key(t, name);
	text_str(t, v ? "true" : "false");
}

#endif
