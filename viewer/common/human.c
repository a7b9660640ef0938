/* SPDX-License-Identifier: MIT. human.c: numbers, times and other people's text for a terminal. */
#include "human.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json.h"
#include "utf8.h"

/* A terminal would obey it, or it is no UTF-8. len: json_utf8() of it. */
static bool is_hostile(const char *at, size_t len)
{
	return len == 0 || utf8_is_control(utf8_code(at, len));
}

bool text_is_harmless(const char *text)
{
	size_t bytes = strlen(text), len;

	for (; bytes > 0; text += len, bytes -= len) {
		len = json_utf8(text, bytes);
		if (is_hostile(text, len))
			return false;
	}
	return true;
}

void text_put(FILE *f, const char *text, size_t n)
{
	const size_t bytes = strlen(text);
	size_t i = 0, columns = 0, len;

	while (i < bytes) {
		len = json_utf8(text + i, bytes - i);
		if (n > 3 && columns >= n - 3 && bytes - i > 3) {
			fputs("...", f);
			return;
		}
		columns++;
		if (is_hostile(text + i, len)) {
			fputc('?', f);
			i += len == 0 ? 1 : len;
			continue;
		}
		fwrite(text + i, 1, len, f);
		i += len;
	}
}

void text_say(const char *fmt, ...)
{
	char line[8192];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	text_put(stderr, line, 0);
	fputc('\n', stderr);
}

void text_duration(double s, char ret[32])
{
	if (s < 0)
		s = 0;
	if (s < 1e-3)
		snprintf(ret, 32, "%.1f us", s * 1e6);
	else if (s < 1)
		snprintf(ret, 32, "%.1f ms", s * 1e3);
	else if (s < 120)
		snprintf(ret, 32, "%.2f s", s);
	else if (s < 7200)
		snprintf(ret, 32, "%d min %d s", (int)(s / 60), (int)s % 60);
	else if (s < 172800)
		snprintf(ret, 32, "%d h %d min", (int)(s / 3600), (int)(s / 60) % 60);
	else
		snprintf(ret, 32, "%.0f days", s / 86400);
}

void text_bytes(uint64_t n, char ret[32])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double v = (double)n;
	size_t i = 0;

	while (v >= 1024 && i + 1 < sizeof(units) / sizeof(units[0])) {
		v /= 1024;
		i++;
	}
	snprintf(ret, 32, i == 0 ? "%.0f %s" : "%.1f %s", v, units[i]);
}

void text_when(int64_t realtime_ns, char ret[32])
{
	const time_t t = (time_t)(realtime_ns / 1000000000);
	struct tm tm;

	if (localtime_r(&t, &tm) == NULL || strftime(ret, 32, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		snprintf(ret, 32, "?");
}

bool words_have(int argc, char *const *argv, const char *option)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], option) == 0)
			return true;
	return false;
}

bool text_u64(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno != 0 || *end != '\0' || v > max)
		return false;
	*ret = v;
	return true;
}

const char *word_quoted(char *buf, size_t n, const char *word)
{
	FILE *f;

	buf[0] = '\0';
	if (*word != '\0' &&
		word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789_@%+=:,./-")] == '\0') {
		(void)snprintf(buf, n, "%s", word);
		return buf;
	}
	f = fmemopen(buf, n, "w");
	if (f == NULL)
		return buf;
	fputc('\'', f);
	for (; *word != '\0'; word++)
		if (*word == '\'')
			fputs("'\\''", f);
		else
			fputc(*word, f);
	fputc('\'', f);
	(void)fclose(f);
	buf[n - 1] = '\0';
	return buf;
}
