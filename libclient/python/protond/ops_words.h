/* SPDX-License-Identifier: MIT. ops_words.h: a text of bounded length, put together without memory, and torch's
 * plain values in it. ops.cpp's. */
#ifndef PROTOND_OPS_WORDS_H
#define PROTOND_OPS_WORDS_H

#include <ATen/core/ivalue.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

namespace
{

constexpr uint32_t TEXT_MAX = 1000;

struct words {
	uint32_t n;
	bool cut;
	char s[TEXT_MAX + 1];
};

void put_bytes(struct words *w, const char *s, size_t n)
{
	if (w->cut || n > TEXT_MAX - w->n) {
		w->cut = true;
		return;
	}
	memcpy(w->s + w->n, s, n);
	w->n += (uint32_t)n;
}

void put(struct words *w, const char *s)
{
	put_bytes(w, s, strlen(s));
}

void put_number(struct words *w, int64_t v)
{
	char s[24];

	put_bytes(w, s, (size_t)snprintf(s, sizeof(s), "%lld", (long long)v));
}

/* In JSON, in quotes; Kineto's texts hold nothing that needs more. */
void put_quoted(struct words *w, const char *s, size_t n)
{
	char one[8];

	put(w, "\"");
	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)s[i];

		if (c == '"' || c == '\\' || c < 0x20)
			put_bytes(w, one, (size_t)snprintf(one, sizeof(one), "\\u%04x", c));
		else
			put_bytes(w, s + i, 1);
	}
	put(w, "\"");
}

/* As torch prints a value; "": a complex number, or a size that is a symbol. Not by torch's own operator<<: a compiler may
 * link libstdc++ into this file, and a stream of one copy is not to be given to another. */
void put_plain(struct words *w, const c10::IValue &v)
{
	char text[40];
	double d;

	if (v.isInt()) {
		put_number(w, v.toInt());
	} else if (v.isBool()) {
		put(w, v.toBool() ? "True" : "False");
	} else if (v.isString()) {
		put_bytes(w, v.toStringRef().data(), v.toStringRef().size());
	} else if (v.isDouble()) {
		d = v.toDouble();
		if (d > -1e10 && d < 1e10 && (double)(int64_t)d == d) {
			put(w, d == 0 && __builtin_signbit(d) ? "-" : "");
			put_number(w, (int64_t)d);
			put(w, ".");
		} else {
			put_bytes(w, text, (size_t)snprintf(text, sizeof(text), "%.17g", d));
		}
	} else if (v.isList()) {
		const char *between = "[";

		for (const c10::IValue &one : v.toListRef()) {
			put(w, between);
			put_plain(w, one);
			between = ", ";
		}
		put(w, v.toListRef().empty() ? "[]" : "]");
	}
}

void put_value(struct words *w, const c10::IValue &v)
{
	struct words text;

	text.n = 0;
	text.cut = false;
	put_plain(&text, v);
	put_quoted(w, text.s, text.n);
}

} // namespace

#endif
