/* SPDX-License-Identifier: MIT. text.c: a growing text: JSON, screens, files. Single-threaded. */
#include "text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "utf8.h"

void text_fini(struct text *t)
{
	free(t->s);
	*t = (struct text){0};
}

int text_reserve(struct text *t, size_t more)
{
	size_t cap = t->cap < 4096 ? 4096 : t->cap;
	char *s;

	if (t->failed || more > SIZE_MAX / 4 - t->n)
		goto fail;
	if (t->n + more <= t->cap)
		return 0;
	while (cap < t->n + more)
		cap *= 2;
	s = realloc(t->s, cap);
	if (s == NULL)
		goto fail;
	t->s = s;
	t->cap = cap;
	return 0;
fail:
	t->failed = true;
	return -ENOMEM;
}

void text_fit(struct text *t)
{
	char *s = t->n > 0 ? realloc(t->s, t->n) : NULL;

	if (s == NULL)
		return;
	t->s = s;
	t->cap = t->n;
}

int text_take(struct text *t, char **ret_s, size_t *ret_n)
{
	if (text_reserve(t, 1) < 0) {
		text_fini(t);
		return -ENOMEM;
	}
	t->s[t->n] = '\0';
	*ret_s = t->s;
	*ret_n = t->n;
	*t = (struct text){0};
	return 0;
}

void text_add_more(struct text *t, const char *s, size_t bytes)
{
	if (text_reserve(t, bytes) < 0)
		return;
	memcpy(t->s + t->n, s, bytes);
	t->n += bytes;
}

void text_fmt(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || text_reserve(t, (size_t)n + 1) < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(t->s + t->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	t->n += (size_t)n;
}

void text_right(struct text *t, const char *s, uint32_t width)
{
	const size_t n = strlen(s), pad = n < width ? width - n : 0;

	if (text_reserve(t, pad + n) < 0)
		return;
	memset(t->s + t->n, ' ', pad);
	memcpy(t->s + t->n + pad, s, n);
	t->n += pad + n;
}

void text_fixed(struct text *t, double v, uint32_t decimals, uint32_t width)
{
	const bool plain = v >= 0 && v < 1e12 && !signbit(v);
	const double scaled = !plain ? 0 : decimals == 3 ? v * 1000.0 : v;
	uint64_t n = (uint64_t)(scaled + 0.5);
	char buf[32], *at = buf + sizeof(buf);
	uint32_t i;

	/* Near a tie the product's own rounding could decide: printf is exact, so it does those. */
	if (!plain || fabs(fabs(scaled - (double)n) - 0.5) < 1e-3) {
		text_fmt(t, "%*.*f", (int)width, (int)decimals, isnan(v) ? fabs(v) : v);
		return;
	}
	*--at = '\0';
	for (i = 0; i <= decimals || n > 0; i++) {
		if (i == decimals && decimals > 0)
			*--at = '.';
		*--at = (char)('0' + n % 10);
		n /= 10;
	}
	text_right(t, at, width);
}

static void json_escape(struct text *t, uint32_t code)
{
	static const char escape[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: byte, letter */
	const char *e;
	uint32_t unit[2];
	size_t i, n;

	for (e = escape; *e != '\0' && (uint32_t)*e != code; e += 2)
		;
	if (*e == '\0') {
		n = utf8_units(code, unit);
		for (i = 0; i < n; i++)
			text_fmt(t, "\\u%04x", unit[i]);
		return;
	}
	text_char(t, '\\');
	text_char(t, e[1]);
}

/* Whoever prints it to a terminal sees the same value, and the terminal obeys nothing of it. */
void text_json(struct text *t, const char *s)
{
	const char *run = s;
	uint32_t code;
	size_t len;

	text_char(t, '"');
	while (*s != '\0') {
		if ((unsigned char)*s >= 0x20 && (unsigned char)*s < 0x7f && *s != '"' &&
			*s != '\\') {
			s++;
			continue;
		}
		len = utf8_bytes(s, strnlen(s, 4));
		code = len == 0 ? 0xfffd : utf8_code(s, len);
		if (len > 1 && !utf8_is_control(code)) {
			s += len;
			continue;
		}
		text_add(t, run, (size_t)(s - run));
		s += len == 0 ? 1 : len;
		run = s;
		json_escape(t, code);
	}
	text_add(t, run, (size_t)(s - run));
	text_char(t, '"');
}

void text_json_f64(struct text *t, double v)
{
	char buf[40];
	int digits;

	if (!isfinite(v)) {
		text_str(t, "null");
		return;
	}
	if (fabs(v) < 1e15 && v == nearbyint(v)) {
		text_fmt(t, "%.1f", v);
		return;
	}
	for (digits = 15; digits <= 17; digits++) {
		snprintf(buf, sizeof(buf), "%.*g", digits, v);
		if (strtod(buf, NULL) == v)
			break;
	}
	if (strpbrk(buf, ".e") == NULL)
		(void)strncat(buf, ".0", sizeof(buf) - strlen(buf) - 1);
	text_str(t, buf);
}

size_t text_cut(const char *utf8, size_t most)
{
	const size_t n = strnlen(utf8, most + 1);

	if (n <= most)
		return n;
	while (most > 0 && ((unsigned char)utf8[most] & 0xc0) == 0x80)
		most--;
	return most;
}
