/* SPDX-License-Identifier: MIT. term.c: what the terminal can show: colours, glyphs, width. */
#include "term.h"

#include <ctype.h>
#include <errno.h>
#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "human.h"
#include "json.h"
#include "utf8.h"

static uint32_t columns_of(int fd)
{
	const char *set = getenv("COLUMNS");
	struct winsize size;
	uint64_t n;

	if (set != NULL && text_u64(set, 10000, &n) && n > 0)
		return (uint32_t)n;
	return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void term_init(struct term *term, int fd, bool no_color)
{
	const char *none = getenv("NO_COLOR"), *kind = getenv("TERM");

	*term = (struct term){
		.tty = isatty(fd) == 1, .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0};
	term->color = term->tty && !no_color && (none == NULL || *none == '\0') && kind != NULL &&
		      strcmp(kind, "dumb") != 0;
	term->width = columns_of(fd);
}

bool term_color(struct term *term, const char *when)
{
	if (strcmp(when, "auto") == 0)
		return true;
	term->color = strcmp(when, "always") == 0;
	return term->color || strcmp(when, "never") == 0;
}

void term_style(const struct term *term, struct text *t, enum term_style s)
{
	static const char *const codes[] = {[STYLE_PLAIN] = "\033[0m",
		[STYLE_FAINT] = "\033[2m",
		[STYLE_BOLD] = "\033[1m",
		[STYLE_BAD] = "\033[1;31m",
		[STYLE_HOT] = "\033[1;35m", /* yellow is not seen on white */
		[STYLE_WARM] = "\033[35m",
		[STYLE_MILD] = "\033[32m",
		[STYLE_COOL] = "\033[36m"};

	if (term->color)
		text_str(t, codes[s]);
}

enum term_style term_heat(double share)
{
	if (!(share >= 0.01))
		return isnan(share) ? STYLE_PLAIN : STYLE_FAINT;
	if (share >= 0.5)
		return STYLE_HOT;
	if (share >= 0.2)
		return STYLE_WARM;
	return share >= 0.05 ? STYLE_MILD : STYLE_COOL;
}

/* One character of valid UTF-8. */
static uint32_t next_char(const char **at)
{
	const unsigned char *s = (const unsigned char *)*at;
	uint32_t c = *s++, more;

	more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	if (more > 0)
		c &= 0x3fu >> more;
	for (; more > 0 && (*s & 0xc0) == 0x80; more--)
		c = c << 6 | (*s++ & 0x3fu);
	*at = (const char *)s;
	return c;
}

/* Bytes, and columns, of a text that is nothing but printable ASCII; SIZE_MAX: it is not. */
static size_t plain_bytes(const char *s)
{
	const size_t n = strlen(s);

	return utf8_plain(s, n) == n ? n : SIZE_MAX;
}

static void make_visible(const struct term *term, struct text *t, const char *s)
{
	const char *from;
	uint32_t c;

	while (*s != '\0') {
		from = s;
		if (json_utf8(s, strnlen(s, 4)) == 0) { /* an argument may be any bytes */
			text_fmt(t, "\\x%02x", (unsigned char)*s++);
			continue;
		}
		c = next_char(&s);
		if (c < 0x80 && utf8_is_control(c))
			text_fmt(t, "\\x%02x", c);
		else if (utf8_is_control(c) || (c >= 0x80 && !term->utf8))
			text_fmt(t, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
		else
			text_add(t, from, (size_t)(s - from));
	}
}

static uint32_t char_width(uint32_t c)
{
	int w = c < 0x80 ? 1 : wcwidth((wchar_t)c);

	return w < 0 ? 1 : (uint32_t)w;
}

uint32_t term_width(const char *utf8)
{
	uint32_t w = 0;

	while (*utf8 != '\0')
		w += char_width(next_char(&utf8));
	return w;
}

uint32_t term_line_width(const struct text *t, size_t from)
{
	const char *at = t->s + from, *end = t->s + t->n;
	uint32_t w = 0;

	while (at < end) {
		if (*at >= 0x20) { /* most are ASCII */
			at++;
			w++;
		} else if (*at != '\033')
			w += char_width(next_char(&at));
		else
			while (at < end && *at++ != 'm')
				;
	}
	return w;
}

/* The first `head` columns, an ellipsis, and the last `tail`. */
static void cut(
	const struct term *term, struct text *t, const char *s, uint32_t head, uint32_t tail)
{
	const char *at = s, *from;
	uint32_t w = 0, all = term_width(s), one;

	while (*at != '\0') {
		from = at;
		one = char_width(next_char(&at));
		if (w + one > head) {
			at = from;
			break;
		}
		w += one;
	}
	text_add(t, s, (size_t)(at - s));
	text_str(t, term->utf8 ? "…" : "~");
	while (*at != '\0' && w + tail < all)
		w += char_width(next_char(&at));
	text_str(t, at);
}

/* A Python frame, "/folder/file:line@function": what is in front says the least. */
static bool is_frame(const char *name)
{
	const char *at = strrchr(name, '@');

	if (*name != '/' || at == NULL)
		return false;
	while (isdigit((unsigned char)at[-1]))
		at--;
	return at[-1] == ':';
}

void term_name(const struct term *term, struct text *t, const char *name, uint32_t width)
{
	const uint32_t head = width < 8 || is_frame(name) ? 0 : (width - 1) * 2 / 3;
	struct text visible = {0};
	size_t n = plain_bytes(name);
	char *s;

	if (n <= (width > 0 ? width : SIZE_MAX - 1)) {
		text_add(t, name, n);
		return;
	}
	make_visible(term, &visible, name);
	if (text_take(&visible, &s, &n) < 0) {
		t->failed = true;
		return;
	}
	if (width >= 8 && term_width(s) > width)
		cut(term, t, s, head, width - 1 - head);
	else
		text_add(t, s, n);
	free(s);
}

/* Columns of the character or escape sequence at *at. */
static uint32_t step(const char **at, const char *end)
{
	if (**at != '\033')
		return char_width(next_char(at));
	while (*at < end && *(*at)++ != 'm')
		;
	return 0;
}

void term_wrap(const struct term *term, struct text *t, size_t from, uint32_t indent)
{
	struct text out = {0};
	const char *at = t->s + from, *const end = t->s + t->n, *word, *space;
	uint32_t column = 0, w;

	while (term->width > 0 && at < end && !t->failed) {
		for (space = at; at < end && *at == ' '; at++)
			;
		w = 0;
		for (word = at; at < end && *at != ' ' && *at != '\n';)
			w += step(&at, end);
		if (column > indent && column + (uint32_t)(word - space) + w > term->width) {
			text_fmt(&out, "\n%*s", (int)indent, "");
			column = indent;
			space = word;
		}
		text_add(&out, space, (size_t)(at - space));
		column += (uint32_t)(word - space) + w;
		if (at < end && *at == '\n') {
			text_char(&out, *at++);
			column = 0;
		}
	}
	if (out.n > 0) {
		t->n = from;
		text_add(t, out.s, out.n);
	}
	t->failed |= out.failed;
	text_fini(&out);
}

void term_help(struct text *t, const char *left, uint32_t indent, const char *words)
{
	static const struct term help = {.width = HELP_COLUMNS};
	const size_t from = t->n, n = strlen(left);

	text_fmt(t, "%-*s", (int)indent, left);
	if (n >= indent && n > 0 && (n > indent || left[n - 1] != ' '))
		text_fmt(t, "\n%*s", (int)indent, "");
	text_str(t, words);
	term_wrap(&help, t, from, indent);
	text_char(t, '\n');
}

void term_duration(struct text *t, double ns)
{
	if (ns < 1e3)
		text_fmt(t, "%.0f ns", ns);
	else if (ns < 1e6)
		text_fmt(t, "%.1f us", ns / 1e3);
	else if (ns < 1e9)
		text_fmt(t, "%.1f ms", ns / 1e6);
	else if (ns < 600e9)
		text_fmt(t, "%.1f s", ns / 1e9);
	else
		text_fmt(t, "%.0f h %02.0f min", floor(ns / 3600e9), fmod(floor(ns / 60e9), 60));
}

void term_scaled(struct text *t, double v, const char *unit)
{
	static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
	const size_t last = sizeof(prefixes) / sizeof(prefixes[0]) - 1;
	size_t i = 0;

	while (fabs(v) >= 999.5 && i < last) {
		v /= 1000;
		i++;
	}
	text_fmt(t, "%.*f %s%s",
		fabs(v) >= 99.95 || (i == 0 && v == nearbyint(v)) ? 0
		: fabs(v) >= 9.995                                ? 1
								  : 2,
		v, prefixes[i], unit);
}

void term_count(struct text *t, uint64_t n, const char *one, const char *many)
{
	text_fmt(t, "%llu %s", (unsigned long long)n, n == 1 ? one : many);
}

int term_write(int fd, const char *s, size_t n)
{
	ssize_t some;

	while (n > 0) {
		some = write(fd, s, n);
		if (some < 0 && errno == EINTR)
			continue;
		if (some < 0)
			return -errno;
		s += some;
		n -= (size_t)some;
	}
	return 0;
}
