/* SPDX-License-Identifier: MIT. term.h: what the terminal can show: colours, glyphs, width. */
#ifndef PROTOND_VIEWER_TERM_H
#define PROTOND_VIEWER_TERM_H

#include <stdbool.h>
#include <stdint.h>

#include "text.h"

struct term {
	bool color, utf8, tty;
	uint32_t width; /* columns; 0: no limit */
};

/* Of fd, by COLUMNS, NO_COLOR, TERM and the locale (the caller has called setlocale()). */
void term_init(struct term *term, int fd, bool no_color);
/* As --color has it: "always", "never" or "auto"; false: another word. */
bool term_color(struct term *term, const char *when);

enum term_style {
	STYLE_PLAIN,
	STYLE_FAINT,
	STYLE_BOLD,
	STYLE_BAD, /* for what is wrong, and for nothing else */
	STYLE_HOT,
	STYLE_WARM,
	STYLE_MILD,
	STYLE_COOL
};
void term_style(
	const struct term *term, struct text *t, enum term_style s); /* PLAIN ends another */
enum term_style term_heat(double share); /* of the whole, 0 to 1; NAN: plain */

/* A name from a job: control characters and escape sequences are made visible (\x1b), and what does
 * not fit in `width` columns (0: all does) is cut in the middle, a Python frame in front. */
void term_name(const struct term *term, struct text *t, const char *name, uint32_t width);
uint32_t term_width(const char *utf8); /* columns */
uint32_t term_line_width(
	const struct text *t, size_t from); /* of what a line has; no style counts */

/* Times and bytes for people: "12.4 s", "1.5 GiB"; count with its noun: "2 processes". */
void term_duration(struct text *t, double ns);
/* Three digits and a prefix of 1000s: "1.20 TFLOP", "512 GB/s". */
void term_scaled(struct text *t, double v, const char *unit);
void term_count(struct text *t, uint64_t n, const char *one, const char *many);

/* Breaks what t has from `from` on, the beginning of a line, so that it fits; lines after the first
 * are indented. Nothing where there is no width. */
void term_wrap(const struct term *term, struct text *t, size_t from, uint32_t indent);

/* A line of a help text: what stands at the left, filled up to `indent`, then words, all within
 * HELP_COLUMNS. */
#define HELP_COLUMNS 80u
void term_help(struct text *t, const char *left, uint32_t indent, const char *words);

int term_write(int fd, const char *s, size_t n); /* all of it; -errno */

#endif
