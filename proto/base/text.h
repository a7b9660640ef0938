/* SPDX-License-Identifier: MIT. text.h: a growing text: JSON, screens, files. Single-threaded.
 *
 * Zero-initialise; a failed allocation is remembered, so that only text_take() or `failed` is
 * checked. */
#ifndef PROTOND_BASE_TEXT_H
#define PROTOND_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
	char *s; /* not NUL-terminated until text_take() */
	size_t n, cap;
	bool failed; /* out of memory: what follows is not added */
};

void text_fini(struct text *t);
int text_reserve(struct text *t, size_t more); /* -ENOMEM */
void text_fit(struct text *t);                 /* gives back what it did not fill */
int text_take(
	struct text *t, char **ret_s, size_t *ret_n); /* the caller frees; -ENOMEM; t is empty */

void text_add_more(struct text *t, const char *s, size_t bytes); /* text_add() that makes room */
void text_fmt(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_right(struct text *t, const char *s, uint32_t width); /* as "%*s" */
/* As "%*.*f" of width, decimals (0 or 3) and v, faster. */
void text_fixed(struct text *t, double v, uint32_t decimals, uint32_t width);
void text_json(struct text *t, const char *s); /* quoted and escaped */
void text_json_f64(struct text *t, double v);  /* shortest that reads back; not finite: null */
/* Bytes of a name, at most so many, that cut no character in two. */
size_t text_cut(const char *utf8, size_t most);

static inline void text_add(struct text *t, const char *s, size_t bytes)
{
	if (bytes == 0)
		return;
	if (bytes > t->cap - t->n || t->failed) {
		text_add_more(t, s, bytes);
		return;
	}
	memcpy(t->s + t->n, s, bytes);
	t->n += bytes;
}

static inline void text_str(struct text *t, const char *s)
{
	text_add(t, s, strlen(s));
}

static inline void text_char(struct text *t, char c)
{
	text_add(t, &c, 1);
}

#endif
