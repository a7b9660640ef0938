/* SPDX-License-Identifier: MIT. json_stream.h: JSON of any length, also gzip's, a value at a time:
 * the stream hands out the bytes of one value of a large array or object, and struct json reads
 * them. What is in memory is one value, at most JSON_VALUE_MAX. For the readers. */
#ifndef PROTOND_IMPORT_JSON_STREAM_H
#define PROTOND_IMPORT_JSON_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <zlib.h>

#include "err.h"
#include "text.h"

#define JSON_VALUE_MAX (1u << 20)
#define JSON_DEPTH_MAX 256u
#define JSON_BYTES_MAX (8ull << 30) /* inflated */

struct json_stream {
	gzFile file;
	const char *what; /* for words */
	struct err *e;
	uint64_t at; /* bytes behind buf */
	off_t size;  /* of the file; 0: not known */
	uint32_t i, n;
	struct text value;
	char buf[1u << 16];
};

int json_stream_open(struct json_stream *s, int fd, const char *what, struct err *e);
void json_stream_close(struct json_stream *s);
uint64_t json_stream_offset(const struct json_stream *s);
double json_stream_part(const struct json_stream *s); /* how much of the file is read, 0 to 1 */
int json_stream_bad(struct json_stream *s, uint64_t offset, const char *why); /* -EBADMSG */
/* The next byte that is no space, which stays; 0: the end. -EBADMSG, -EIO with words. */
int json_stream_peek(struct json_stream *s, char *ret);
void json_stream_skip(struct json_stream *s); /* the byte that was peeked at */
/* The next value's bytes into s->value. 1: it is longer than JSON_VALUE_MAX, and passed over. */
int json_stream_value(struct json_stream *s);

/* --- one value */

struct json {
	const char *p, *end;
	bool bad;
};
struct json_slice { /* of a value: its bytes as they stand */
	const char *s;
	size_t n;
};

static inline struct json json_of(struct json_slice v)
{
	const char *s = v.s != NULL ? v.s : "";

	return (struct json){s, s + v.n, false};
}

/* Into an object or array: false when it is none. Then json_next() until it is false. key NULL: an
 * array. A key with escapes is as it stands. */
bool json_open(struct json *j, char bracket);
bool json_next(
	struct json *j, char close, struct json_slice *ret_key, struct json_slice *ret_value);
/* A string, without escapes, added to t. False: it is none. */
bool json_string(struct json_slice v, struct text *t);
bool json_is(struct json_slice key, const char *word);
/* A number, or one in quotes, times 10^digits, rounded by the next digit: exact. False: none, or over
 * +-INT64_MAX. ret_fraction may be NULL: it had a decimal point. */
bool json_decimal(struct json_slice v, unsigned digits, int64_t *ret, bool *ret_fraction);

static inline int64_t json_integer(struct json_slice v, int64_t other)
{
	int64_t n;

	return json_decimal(v, 0, &n, NULL) ? n : other;
}

static inline uint32_t json_clamp32(int64_t v)
{
	return v < 0 ? 0 : v < UINT32_MAX ? (uint32_t)v : UINT32_MAX - 1;
}

#endif
