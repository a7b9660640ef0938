/* SPDX-License-Identifier: MIT. human.h: numbers, times and other people's text for a terminal.
 * Names and command lines come from jobs: no escape sequence of theirs gets through. */
#ifndef PROTOND_VIEWER_HUMAN_H
#define PROTOND_VIEWER_HUMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Text of a job: control characters and bytes that are not UTF-8 are shown as '?', at most n
 * columns (0: all) with "..." at the end. */
void text_put(FILE *f, const char *text, size_t n);
bool text_is_harmless(const char *text);    /* text_put() changes nothing of it */
void text_duration(double s, char ret[32]); /* "1.20 s", "3 min 4 s" */
void text_bytes(uint64_t n, char ret[32]);
void text_when(int64_t realtime_ns, char ret[32]); /* local time */
/* A line on standard error, from the program that runs. */
void text_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* An option among a program's words, in front of "--". */
bool words_have(int argc, char *const *argv, const char *option);
/* As a shell takes it for one word, in buf; what does not fit is cut. */
const char *word_quoted(char *buf, size_t n, const char *word);
bool text_u64(const char *text, uint64_t max, uint64_t *ret);

#endif
