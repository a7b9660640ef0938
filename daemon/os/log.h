/* SPDX-License-Identifier: MIT. log.h: the daemon's log: one logfmt line per cause, to standard
 * error. */
#ifndef PROTOND_DAEMON_LOG_H
#define PROTOND_DAEMON_LOG_H

#include <stdint.h>

enum log_level { LOG_ERR = 0, LOG_WARN = 1, LOG_INFO = 2, LOG_DEBUG = 3 };

/* Lines above this level are not written. WARN until it is called. */
void log_set_level(enum log_level level);

/* event=EVENT level=... and the formatted rest, which is itself logfmt: ids and counts. Any thread.
 */
void log_line(enum log_level level, const char *event, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A cause that may come a million times a second: a static one of these at its place. */
struct log_cause {
	uint64_t n;
	uint64_t each; /* the first ones, which are all written; 0: one */
};
/* After those writes the 10th, 100th, 1000th... time. With n=COUNT at the end. Loop thread. */
void log_cause(struct log_cause *c, enum log_level level, const char *event, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* What begins a line of this level for systemd's journal, which takes it off again (sd-daemon(3));
 * "" where standard error is none. */
const char *log_priority(enum log_level level);

/* v as a logfmt value in buf, quoted; what is no UTF-8 or a terminal would obey is '?'. Returns buf; ""
 * where n is below 8. */
const char *log_quote(char *buf, uint32_t n, const char *v);

#endif
