/* SPDX-License-Identifier: MIT. svg_draw.h: what the two pictures share: SVG that has no script, loads
 * nothing, and is not harmed by any name. No I/O. */
#ifndef PROTOND_EXPORT_SVG_DRAW_H
#define PROTOND_EXPORT_SVG_DRAW_H

#include "profile.h"
#include "text.h"

#define SVG_WIDTH  1200u
#define SVG_MARGIN 10u
#define SVG_ROW    18u /* of text and bars, px */

/* Of at most so many bytes, as XML text: what is no character of XML or turns the direction of
 * writing is U+FFFD; what is longer ends in "…". */
void svg_text(struct text *t, const char *utf8, size_t most);
/* The file's head down to its title: what it is of, and `words` behind it. */
void svg_open(struct text *t, const struct profile *p, const char *words, uint64_t height);
void svg_close(struct text *t);
/* "1.234 ms", "12.3 %" of the whole. */
void svg_time(struct text *t, uint64_t ns);
void svg_share(struct text *t, uint64_t part, uint64_t whole);
/* Deterministic by name; GPU work is cool, scopes are warm. "#rrggbb" */
void svg_colour(struct text *t, const char *name, bool gpu);

#endif
