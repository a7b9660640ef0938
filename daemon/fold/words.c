/* SPDX-License-Identifier: MIT. words.c: text that came from a job or a client: made valid, cut,
 * matched, classed. Pure. */
#include "words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "profile.h"
#include "utf8.h"

/* Bytes of the valid UTF-8 character at p, 0 when it is none. */
static size_t char_bytes(const uint8_t *p, size_t n)
{
	uint8_t low = 0x80, high = 0xbf;
	size_t want, i;

	if (p[0] < 0x80)
		return p[0] != 0;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	want = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (n < want)
		return 0;
	if (p[0] == 0xe0)
		low = 0xa0; /* not overlong */
	if (p[0] == 0xed)
		high = 0x9f; /* no surrogates */
	if (p[0] == 0xf0)
		low = 0x90;
	if (p[0] == 0xf4)
		high = 0x8f; /* up to U+10FFFF */
	if (p[1] < low || p[1] > high)
		return 0;
	for (i = 2; i < want; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return want;
}

/* Eight bytes of ASCII, none of them 0. */
static bool plain(const uint8_t *p)
{
	const uint64_t ones = 0x0101010101010101u, high = ones << 7;
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return ((w | ((w - ones) & ~w)) & high) == 0;
}

/* Eight bytes, none of them below a blank or DEL. */
static bool printable(const uint8_t *p)
{
	size_t i;
	bool yes = true;

	for (i = 0; i < 8; i++)
		yes &= p[i] >= 0x20 && p[i] != 0x7f;
	return yes;
}

static size_t clean(char *out, size_t cap, const void *from, size_t n, bool controls)
{
	const uint8_t *p = from;
	const char *put;
	size_t at = 0, i = 0, take, bytes;
	bool bad;

	while (i < n) {
		if (n - i >= 8 && at + 8 < cap && plain(p + i) && (controls || printable(p + i))) {
			memcpy(out + at, p + i, 8);
			at += 8;
			i += 8;
			continue;
		}
		take = char_bytes(p + i, n - i);
		bad = take == 0 || (!controls && utf8_is_control(utf8_code(p + i, take)));
		put = bad ? "\xef\xbf\xbd" : (const char *)(p + i);
		bytes = bad ? 3 : take;
		if (at + bytes >= cap)
			break;
		memcpy(out + at, put, bytes);
		at += bytes;
		i += take == 0 ? 1 : take;
	}
	out[at] = '\0';
	return at;
}

size_t words_clean(char *out, size_t cap, const void *from, size_t n)
{
	return clean(out, cap, from, n, true);
}

size_t words_field(char *out, size_t cap, const char *from, size_t max)
{
	return words_clean(out, cap, from, strnlen(from, max));
}

size_t words_plain(char *out, size_t cap, const char *from, size_t max)
{
	return clean(out, cap, from, strnlen(from, max), false);
}

/* Is c in the set that follows '['? *ret_next: after its ']'. Without a ']', the '[' is a
 * character. */
static bool set_has(const char *set, char c, const char **ret_next)
{
	const unsigned char *s = (const unsigned char *)set, *first;
	unsigned char u = (unsigned char)c;
	bool not = *s == '!' || *s == '^', in = false;

	s += not ;
	for (first = s; *s != '\0' && (*s != ']' || s == first); s++) {
		if (s[1] == '-' && s[2] != '\0' && s[2] != ']') {
			in |= *s <= u && u <= s[2];
			s += 2;
		} else {
			in |= *s == u;
		}
	}
	if (*s == '\0') {
		*ret_next = set;
		return c == '[';
	}
	*ret_next = (const char *)s + 1;
	return in != not ;
}

/* Matches one character with one piece of the pattern, not a star. */
static bool one_matches(const char *g, char c, const char **ret_next)
{
	if (*g == '[')
		return set_has(g + 1, c, ret_next);
	if (*g == '\\' && g[1] != '\0')
		g++;
	else if (*g == '?') {
		*ret_next = g + 1;
		return true;
	}
	*ret_next = g + 1;
	return *g == c;
}

bool words_match(const char *glob, const char *text)
{
	const char *star = NULL, *again = NULL, *next;

	while (*text != '\0') {
		if (*glob == '*') {
			star = ++glob;
			again = text;
		} else if (*glob != '\0' && one_matches(glob, *text, &next)) {
			glob = next;
			text++;
		} else if (star !=
			   NULL) { /* the last star takes one more; earlier ones never need to */
			glob = star;
			text = ++again;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return *glob == '\0';
}

static bool cut_out(struct metric_words *m, const char *what)
{
	char *at = strstr(m->name, what);
	size_t n = strlen(what);

	if (at == NULL)
		return false;
	memmove(at, at + n, m->n - (size_t)(at - m->name) - n + 1);
	m->n -= n;
	return true;
}

void words_metric(const char *text, struct metric_words *ret)
{
	size_t lead = 0;

	ret->n = words_clean(ret->name, sizeof(ret->name), text, strlen(text));
	ret->kind = KIND_INCLUSIVE;
	if (cut_out(ret, "(exc)"))
		ret->kind = KIND_EXCLUSIVE;
	else if (cut_out(ret, "(pty)"))
		ret->kind = KIND_PROPERTY;
	else
		cut_out(ret, "(inc)");
	while (ret->n > 0 && isspace((unsigned char)ret->name[ret->n - 1]))
		ret->n--;
	ret->name[ret->n] = '\0';
	while (isspace((unsigned char)ret->name[lead]))
		lead++;
	memmove(ret->name, ret->name + lead, ret->n - lead + 1);
	ret->n -= lead;
}

/* Years begin in March here, so that a leap day is a year's last; 146097 days are 400 years. */
void words_instant(char ret[WORDS_INSTANT], uint64_t real_ns)
{
	const uint64_t ms = real_ns / 1000000, days = ms / 86400000 + 719468;
	const uint32_t of_day = (uint32_t)(ms % 86400000), of_era = (uint32_t)(days % 146097);
	const uint32_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	const uint32_t of_year = of_era - (365 * year + year / 4 - year / 100);
	const uint32_t month = (5 * of_year + 2) / 153;

	snprintf(ret, WORDS_INSTANT, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		(unsigned)(days / 146097 * 400) + year + (month >= 10),
		month < 10 ? month + 3 : month - 9, of_year - (153 * month + 2) / 5 + 1,
		of_day / 3600000, of_day / 60000 % 60, of_day / 1000 % 60, of_day % 1000);
}
