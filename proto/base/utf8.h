/* SPDX-License-Identifier: MIT. utf8.h: the characters of other people's text, and which of them a
 * terminal would obey. Pure. */
#ifndef PROTOND_BASE_UTF8_H
#define PROTOND_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Would move the cursor, hide text or turn its direction: C0, DEL, C1, marks and overrides of
 * direction, line and paragraph separators, characters of no width (the soft hyphen, tags). */
static inline bool utf8_is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xe0000 && c <= 0xe007f);
}

/* How many of the first n bytes are printable ASCII, or few less: eight are looked at together. */
static inline size_t utf8_plain(const char *s, size_t n)
{
	const uint64_t ones = 0x0101010101010101u;
	uint64_t v;
	size_t i;

	for (i = 0; n - i >= sizeof(v); i += sizeof(v)) {
		memcpy(&v, s + i, sizeof(v));
		/* a byte below 0x20, above 0x7f, or 0x7f itself has its highest bit in one of these */
		if (((v - ones * 0x20) | v | (v + ones)) & ones * 0x80)
			return i;
	}
	while (i < n && s[i] >= 0x20 && s[i] < 0x7f)
		i++;
	return i;
}

/* Bytes of the character at p, of which n may be read; 0: it is no valid one. */
static inline size_t utf8_bytes(const void *p, size_t n)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *s = p;
	size_t len, i;
	uint32_t code;

	if (n == 0 || (s[0] >= 0x80 && s[0] < 0xc0) || s[0] >= 0xf8)
		return 0;
	if (s[0] < 0x80)
		return 1;
	len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (len > n)
		return 0;
	code = s[0] & (0x7fu >> len);
	for (i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3fu);
	}
	/* no overlong form, no surrogate */
	return code >= least[len] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? len : 0;
}

/* Of the valid character of `len` bytes, 1 to 4, at p. */
static inline uint32_t utf8_code(const void *p, size_t len)
{
	const unsigned char *s = p;
	uint32_t c = len == 1 ? s[0] : s[0] & (0x7fu >> len);
	size_t i;

	for (i = 1; i < len; i++)
		c = c << 6 | (s[i] & 0x3fu);
	return c;
}

/* In UTF-16, as JSON escapes it. Returns how many units, 1 or 2. */
static inline size_t utf8_units(uint32_t c, uint32_t ret[2])
{
	if (c <= 0xffff) {
		ret[0] = c;
		return 1;
	}
	ret[0] = 0xd7c0 + (c >> 10);
	ret[1] = 0xdc00 | (c & 0x3ff);
	return 2;
}

#endif
