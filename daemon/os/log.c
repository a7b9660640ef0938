/* SPDX-License-Identifier: MIT. log.c: the daemon's log. One write(2) per line, so that lines of
 * two threads never mix; a log that cannot be written is nobody's problem but its reader's. */
#include "log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "utf8.h"

static _Atomic int log_level_now = LOG_WARN;
static const char *const level_words[] = {"error", "warn", "info", "debug"};

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&log_level_now, (int)level, memory_order_relaxed);
}

const char *log_priority(enum log_level level)
{
	static const char *const priorities[] = {"<3>", "<4>", "<6>", "<7>"};
	const char *stream = getenv("JOURNAL_STREAM");
	char ours[48];
	struct stat st;

	if (stream == NULL || fstat(STDERR_FILENO, &st) < 0)
		return "";
	(void)snprintf(ours, sizeof(ours), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return strcmp(stream, ours) == 0 ? priorities[level] : "";
}

static void write_line(enum log_level level, const char *event, const char *rest, uint64_t n)
{
	char line[1400], count[40] = "";
	int bytes;

	if (n > 1)
		(void)snprintf(count, sizeof(count), " n=%llu", (unsigned long long)n);
	bytes = snprintf(line, sizeof(line) - 1, "%sprotond: level=%s event=%s%s%s%s",
		log_priority(level), level_words[level], event, rest[0] != '\0' ? " " : "", rest,
		count);
	if (bytes < 0)
		return;
	if ((size_t)bytes > sizeof(line) - 2)
		bytes = (int)sizeof(line) - 2;
	line[bytes++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)bytes) < 0)
		return; /* nowhere left to say so */
}

void log_line(enum log_level level, const char *event, const char *fmt, ...)
{
	char rest[1100];
	va_list ap;

	if ((int)level > atomic_load_explicit(&log_level_now, memory_order_relaxed))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(rest, sizeof(rest), fmt, ap);
	va_end(ap);
	write_line(level, event, rest, 0);
}

static int is_power_of_ten(uint64_t n)
{
	while (n >= 10 && n % 10 == 0)
		n /= 10;
	return n == 1;
}

void log_cause(struct log_cause *c, enum log_level level, const char *event, const char *fmt, ...)
{
	char rest[1100];
	va_list ap;

	c->n++;
	if ((c->n > c->each && !is_power_of_ten(c->n)) ||
		(int)level > atomic_load_explicit(&log_level_now, memory_order_relaxed))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(rest, sizeof(rest), fmt, ap);
	va_end(ap);
	write_line(level, event, rest, c->n);
}

const char *log_quote(char *buf, uint32_t n, const char *v)
{
	uint32_t at = 0;

	if (n < 8)
		return "";
	buf[at++] = '"';
	while (*v != '\0' && at + 6 < n) {
		const size_t len = utf8_bytes(v, strnlen(v, 4));

		if (len == 0 || utf8_is_control(utf8_code(v, len))) {
			buf[at++] = '?';
		} else {
			if (*v == '"' || *v == '\\')
				buf[at++] = '\\';
			memcpy(buf + at, v, len);
			at += (uint32_t)len;
		}
		v += len == 0 ? 1 : len;
	}
	buf[at++] = '"';
	buf[at] = '\0';
	return buf;
}
