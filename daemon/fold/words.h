/* SPDX-License-Identifier: MIT. words.h: text that came from a job or a client: made valid, cut,
 * matched, classed. Pure. */
#ifndef PROTOND_WORDS_H
#define PROTOND_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes valid UTF-8, NUL-terminated, cut between characters to fit cap: what is not valid, and
 * NUL, becomes U+FFFD; other control characters stay. Returns the length. cap ≥ 1. */
size_t words_clean(char *out, size_t cap, const void *from, size_t n);
/* The same of a field that may lack its NUL. */
size_t words_field(char *out, size_t cap, const char *from, size_t max);
/* The same, and whatever a terminal would obey (utf8.h) becomes U+FFFD: for what is only read. */
size_t words_plain(char *out, size_t cap, const char *from, size_t max);
/* Matches the whole text with a glob: * ? [a-z] [!a-z] \x. Never slower than pattern × text, unlike
 * fnmatch(): the pattern is a stranger's. */
bool words_match(const char *glob, const char *text);

/* "flops8 (inc)": the name without the kind, and the kind. */
struct metric_words {
	char name[1100];
	size_t n;
	uint8_t kind; /* enum metric_kind of profile.h */
};
void words_metric(const char *text, struct metric_words *ret);

#define WORDS_INSTANT 48u
/* CLOCK_REALTIME ns as "2026-01-31T12:34:56.789Z". */
void words_instant(char ret[WORDS_INSTANT], uint64_t real_ns);

#endif
