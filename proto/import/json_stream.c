/* SPDX-License-Identifier: MIT. json_stream.c: JSON of any length, a value at a time. */
#include "json_stream.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- bytes */

int json_stream_open(struct json_stream *s, int fd, const char *what, struct err *e)
{
	const int own = dup(fd);
	struct stat st;

	*s = (struct json_stream){
		.what = what, .e = e, .size = fstat(fd, &st) == 0 ? st.st_size : 0};
	s->file = own < 0 ? NULL : gzdopen(own, "rb");
	if (s->file == NULL) {
		if (own >= 0)
			(void)close(own);
		return err_set(e, -ENOMEM, "out of memory");
	}
	(void)gzbuffer(s->file, 1u << 17);
	return 0;
}

void json_stream_close(struct json_stream *s)
{
	if (s->file != NULL)
		(void)gzclose(s->file);
	text_fini(&s->value);
}

uint64_t json_stream_offset(const struct json_stream *s)
{
	return s->at - s->n + s->i;
}

double json_stream_part(const struct json_stream *s)
{
	return s->size > 0 ? (double)gzoffset(s->file) / (double)s->size : 0;
}

int json_stream_bad(struct json_stream *s, uint64_t offset, const char *why)
{
	return err_set(s->e, -EBADMSG, "%s: %s, at byte %llu%s", s->what, why,
		(unsigned long long)offset, gzdirect(s->file) ? "" : " of what it unpacks to");
}

/* 1: there are more bytes in buf; 0: the end. */
static int fill(struct json_stream *s)
{
	const int n = gzread(s->file, s->buf, sizeof(s->buf));
	int code = Z_OK;

	s->i = s->n = 0;
	if (n <= 0)
		(void)gzerror(s->file, &code);
	if (n < 0 || code == Z_BUF_ERROR || code == Z_DATA_ERROR)
		return code == Z_ERRNO
			       ? err_set(s->e, neg_errno(), "%s: %s", s->what, strerror(errno))
			       : json_stream_bad(s, s->at, "its gzip data is damaged or cut off");
	s->n = (uint32_t)n;
	s->at += s->n;
	if (s->at > JSON_BYTES_MAX)
		return err_set(s->e, -EFBIG, "%s is over 8 GiB unpacked", s->what);
	return n > 0;
}

int json_stream_peek(struct json_stream *s, char *ret)
{
	int r = 1;

	for (;;) {
		if (s->i == s->n)
			r = fill(s);
		if (r <= 0) {
			*ret = '\0';
			return r;
		}
		*ret = s->buf[s->i];
		if (*ret == '\0')
			return json_stream_bad(s, json_stream_offset(s), "it is not JSON");
		if (*ret != ' ' && *ret != '\n' && *ret != '\t' && *ret != '\r')
			return 0;
		s->i++;
	}
}

void json_stream_skip(struct json_stream *s)
{
	s->i++;
}

/* --- the bytes of a value */

struct scan {
	uint64_t from;
	uint32_t depth;
	bool string, escaped, plain, done, too_long;
	char open[JSON_DEPTH_MAX];
};

static int scan_close(struct json_stream *s, struct scan *x, char c, uint64_t at)
{
	if (x->depth == 0 || x->open[x->depth - 1] != (c == '}' ? '{' : '['))
		return json_stream_bad(s, at, "a bracket that was not opened");
	x->depth--;
	x->done = x->depth == 0;
	return 0;
}

/* One byte. x->done: the value ends with it; x->plain and a byte that is not its own: before it. */
static int scan_byte(struct json_stream *s, struct scan *x, char c)
{
	const uint64_t at = json_stream_offset(s);

	if (x->string) {
		x->string = x->escaped || c != '"';
		x->escaped = !x->escaped && c == '\\';
		x->done = !x->string && x->depth == 0;
		return 0;
	}
	if (c == '"') {
		x->string = true;
		return 0;
	}
	if (c == '}' || c == ']')
		return scan_close(s, x, c, at);
	if (c != '{' && c != '[')
		return 0;
	if (x->depth == JSON_DEPTH_MAX)
		return json_stream_bad(s, at, "it is nested more than 256 deep");
	x->open[x->depth++] = c;
	return 0;
}

static bool ends_plain(char c)
{
	return strchr(",:]} \n\t\r", c) != NULL;
}

/* Takes in bytes of buf up to the value's end. */
static int scan_some(struct json_stream *s, struct scan *x)
{
	const uint32_t from = s->i;
	int r = 0;

	for (; s->i < s->n && !x->done && r == 0; s->i++) {
		if (x->plain && ends_plain(s->buf[s->i])) {
			x->done = true;
			break;
		}
		if (!x->plain)
			r = scan_byte(s, x, s->buf[s->i]);
	}
	x->too_long |= s->value.n + (s->i - from) > JSON_VALUE_MAX;
	if (!x->too_long)
		text_add(&s->value, s->buf + from, s->i - from);
	return s->value.failed ? err_set(s->e, -ENOMEM, "out of memory") : r;
}

int json_stream_value(struct json_stream *s)
{
	struct scan x = {.depth = 0};
	char c;
	int r = json_stream_peek(s, &c);

	s->value.n = 0;
	x.from = json_stream_offset(s);
	if (r < 0)
		return r;
	if (c == '\0')
		return json_stream_bad(
			s, x.from, "it ends too early: what wrote it did not finish");
	if (strchr(",:]}", c) != NULL)
		return json_stream_bad(s, x.from, "a value is missing");
	x.plain = c != '"' && c != '{' && c != '[';
	while (!x.done) {
		r = s->i < s->n ? 1 : fill(s);
		if (r < 0)
			return r;
		if (r == 0 && !x.plain)
			return json_stream_bad(s, json_stream_offset(s),
				"it ends too early: what wrote it did not finish");
		if (r == 0)
			break;
		r = scan_some(s, &x);
		if (r < 0)
			return r;
	}
	return x.too_long;
}

/* --- one value */

static void space(struct json *j)
{
	while (j->p < j->end && (*j->p == ' ' || *j->p == '\n' || *j->p == '\t' || *j->p == '\r'))
		j->p++;
}

bool json_open(struct json *j, char bracket)
{
	space(j);
	if (j->p == j->end || *j->p != bracket)
		return false;
	j->p++;
	return true;
}

static struct json_slice take_string(struct json *j)
{
	struct json_slice v = {j->p, 0};

	for (j->p++; j->p < j->end && *j->p != '"'; j->p++)
		if (*j->p == '\\')
			j->p++;
	j->bad |= j->p >= j->end;
	j->p = j->bad ? j->end : j->p + 1;
	v.n = (size_t)(j->p - v.s);
	return v;
}

/* Brackets match: the stream saw to that. */
static struct json_slice take_value(struct json *j)
{
	struct json_slice v = {j->p, 0};
	unsigned depth = 0;

	if (j->p < j->end && *j->p == '"')
		return take_string(j);
	while (j->p < j->end && !j->bad) {
		if (*j->p == '"') {
			(void)take_string(j);
			continue;
		}
		if (depth == 0 && ends_plain(*j->p))
			break;
		depth += *j->p == '{' || *j->p == '[';
		depth -= *j->p == '}' || *j->p == ']';
		j->p++;
		if (depth == 0 && (j->p[-1] == '}' || j->p[-1] == ']'))
			break;
	}
	v.n = (size_t)(j->p - v.s);
	j->bad |= v.n == 0;
	return v;
}

bool json_next(struct json *j, char close, struct json_slice *ret_key, struct json_slice *ret_value)
{
	space(j);
	if (j->p < j->end && *j->p == ',') {
		j->p++;
		space(j);
	}
	if (j->bad || j->p == j->end || *j->p == close) {
		j->bad |= j->p == j->end;
		return false;
	}
	if (ret_key != NULL) {
		j->bad |= *j->p != '"';
		*ret_key = j->bad ? (struct json_slice){j->p, 0} : take_string(j);
		space(j);
		j->bad |= j->p >= j->end || *j->p != ':';
		if (j->bad)
			return false;
		j->p++;
		space(j);
	}
	*ret_value = take_value(j);
	return !j->bad;
}

bool json_is(struct json_slice key, const char *word)
{
	const size_t n = strlen(word);

	return key.n == n + 2 && memcmp(key.s + 1, word, n) == 0;
}

/* --- strings */

static bool hex4(const char *s, const char *end, uint32_t *ret)
{
	int i;

	*ret = 0;
	for (i = 0; i < 4; i++) {
		const char c = s + i < end ? s[i] : 'x';
		const char *at = strchr("0123456789abcdef", c | 0x20);

		if (c == '\0' || at == NULL)
			return false;
		*ret = *ret << 4 | (uint32_t)(at - "0123456789abcdef");
	}
	return true;
}

static void add_utf8(struct text *t, uint32_t c)
{
	if (c == 0 || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	if (c < 0x80) {
		text_char(t, (char)c);
		return;
	}
	if (c >= 0x10000) {
		text_char(t, (char)(0xf0 | c >> 18));
		text_char(t, (char)(0x80 | (c >> 12 & 0x3f)));
	} else if (c >= 0x800) {
		text_char(t, (char)(0xe0 | c >> 12));
	} else {
		text_char(t, (char)(0xc0 | c >> 6));
	}
	if (c >= 0x800)
		text_char(t, (char)(0x80 | (c >> 6 & 0x3f)));
	text_char(t, (char)(0x80 | (c & 0x3f)));
}

/* Behind a backslash; returns where it goes on. */
static const char *escape(const char *p, const char *end, struct text *t)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *at = *p != '\0' ? strchr(from, *p) : NULL;
	uint32_t c, low;

	if (*p != 'u' || !hex4(p + 1, end, &c)) {
		text_char(t, at != NULL ? to[at - from] : *p);
		return p + 1;
	}
	p += 5;
	if (c >= 0xd800 && c < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
		hex4(p + 2, end, &low) && low >= 0xdc00 && low < 0xe000) {
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		p += 6;
	}
	add_utf8(t, c);
	return p;
}

bool json_string(struct json_slice v, struct text *t)
{
	const char *p, *end, *next;

	if (v.n < 2 || *v.s != '"')
		return false;
	p = v.s + 1;
	end = v.s + v.n - 1;
	while (p < end) {
		next = memchr(p, '\\', (size_t)(end - p));
		text_add(t, p, (size_t)((next == NULL ? end : next) - p));
		if (next == NULL || next + 1 >= end)
			break;
		p = escape(next + 1, end, t);
	}
	return true;
}

/* --- numbers */

static bool add_digit(int64_t *v, char c)
{
	return !__builtin_mul_overflow(*v, 10, v) && !__builtin_add_overflow(*v, c - '0', v);
}

/* Digits, of which those behind the point are at most so many as count; *exponent: how many places
 * the point is still to go. */
static const char *digits_of(const char *p, const char *end, int64_t *v, int *exponent, bool *dot)
{
	bool full = false;

	for (; p < end && ((*p >= '0' && *p <= '9') || (*p == '.' && !*dot)); p++) {
		if (*p == '.') {
			*dot = true;
			continue;
		}
		full |= *v > INT64_MAX / 10 - 1;
		if (!full && add_digit(v, *p))
			*exponent -= *dot;
		else if (!*dot)
			++*exponent;
	}
	return p;
}

static bool scale(int64_t *v, int exponent)
{
	for (; exponent > 0 && *v != 0; exponent--)
		if (__builtin_mul_overflow(*v, 10, v))
			return false;
	for (; exponent < 0 && *v != 0;
		exponent++) /* the last one rounds: 0.0015999… is a double's 0.0016 */
		*v = (*v + (exponent == -1 ? 5 : 0)) / 10;
	return true;
}

bool json_decimal(struct json_slice v, unsigned digits, int64_t *ret, bool *ret_fraction)
{
	const struct json whole = json_of(v);
	const char *p = whole.p, *end = whole.end, *first;
	int exponent = (int)digits, e = 0;
	bool dot = false, minus, down;

	if (v.n >= 2 && *p == '"') {
		p++;
		end--;
	}
	minus = p < end && *p == '-';
	first = p += minus;
	*ret = 0;
	p = digits_of(p, end, ret, &exponent, &dot);
	if (p == first)
		return false;
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		down = p < end && *p == '-';
		p += p < end && (*p == '-' || *p == '+');
		for (; p < end && *p >= '0' && *p <= '9'; p++)
			e = e < 1000 ? e * 10 + (*p - '0') : e;
		exponent += down ? -e : e;
	}
	if (p != end || !scale(ret, exponent))
		return false;
	*ret = minus ? -*ret : *ret;
	if (ret_fraction != NULL)
		*ret_fraction = dot;
	return true;
}
