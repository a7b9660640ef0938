/* SPDX-License-Identifier: MIT. json.c: MessagePack values and words as RFC 8259 JSON. */
#include "json.h"

#include <math.h>
#include <string.h>

#include "utf8.h"

size_t json_utf8(const char *text, size_t n)
{
	return utf8_bytes(text, n);
}

static void put_byte(FILE *f, unsigned char c)
{
	switch (c) {
	case '"':
		(void)fputs("\\\"", f);
		break;
	case '\\':
		(void)fputs("\\\\", f);
		break;
	case '\n':
		(void)fputs("\\n", f);
		break;
	case '\t':
		(void)fputs("\\t", f);
		break;
	default:
		if (c < 0x20 || c == 0x7f)
			(void)fprintf(f, "\\u%04x", c);
		else
			(void)fputc(c, f);
	}
}

static void put_escaped(FILE *f, uint32_t code)
{
	uint32_t unit[2];
	const size_t n = utf8_units(code, unit);
	size_t i;

	for (i = 0; i < n; i++)
		(void)fprintf(f, "\\u%04x", unit[i]);
}

void json_text(FILE *f, const char *text, size_t n)
{
	size_t i = 0, len;
	uint32_t code;

	(void)fputc('"', f);
	while (i < n) {
		len = json_utf8(text + i, n - i);
		if (len == 0) {
			(void)fputs("\\ufffd", f);
			i++;
		} else if (len == 1) {
			put_byte(f, (unsigned char)text[i++]);
		} else {
			code = utf8_code(text + i, len);
			if (utf8_is_control(code))
				put_escaped(f, code);
			else
				(void)fwrite(text + i, 1, len, f);
			i += len;
		}
	}
	(void)fputc('"', f);
}

static void put_hex(FILE *f, const char *p, size_t n)
{
	(void)fputc('"', f);
	while (n-- > 0)
		(void)fprintf(f, "%02x", (unsigned char)*p++);
	(void)fputc('"', f);
}

static void put_map(FILE *f, const msgpack_object_map *m)
{
	bool first = true;
	uint32_t i;

	(void)fputc('{', f);
	for (i = 0; i < m->size; i++) {
		if (m->ptr[i].key.type != MSGPACK_OBJECT_STR)
			continue;
		if (!first)
			(void)fputc(',', f);
		first = false;
		json_text(f, m->ptr[i].key.via.str.ptr, m->ptr[i].key.via.str.size);
		(void)fputc(':', f);
		json_value(f, &m->ptr[i].val);
	}
	(void)fputc('}', f);
}

static void put_array(FILE *f, const msgpack_object_array *a)
{
	uint32_t i;

	(void)fputc('[', f);
	for (i = 0; i < a->size; i++) {
		if (i > 0)
			(void)fputc(',', f);
		json_value(f, &a->ptr[i]);
	}
	(void)fputc(']', f);
}

static void put_float(FILE *f, double v)
{
	if (isfinite(v))
		(void)fprintf(f, "%.17g", v);
	else
		(void)fputs("null", f);
}

/* Recursion is bounded: wire_check() lets no value deeper than WIRE_DEPTH_MAX in. */
void json_value(FILE *f, const msgpack_object *o)
{
	switch (o->type) {
	case MSGPACK_OBJECT_BOOLEAN:
		(void)fputs(o->via.boolean ? "true" : "false", f);
		break;
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		(void)fprintf(f, "%lu", o->via.u64);
		break;
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		(void)fprintf(f, "%ld", o->via.i64);
		break;
	case MSGPACK_OBJECT_FLOAT32:
	case MSGPACK_OBJECT_FLOAT64:
		put_float(f, o->via.f64);
		break;
	case MSGPACK_OBJECT_STR:
		json_text(f, o->via.str.ptr, o->via.str.size);
		break;
	case MSGPACK_OBJECT_BIN:
		put_hex(f, o->via.bin.ptr, o->via.bin.size);
		break;
	case MSGPACK_OBJECT_ARRAY:
		put_array(f, &o->via.array);
		break;
	case MSGPACK_OBJECT_MAP:
		put_map(f, &o->via.map);
		break;
	case MSGPACK_OBJECT_NIL:
	case MSGPACK_OBJECT_EXT:
	default:
		(void)fputs("null", f);
	}
}

void json_begin(FILE *f, const char *kind)
{
	(void)fputs("{\"protond\":\"1\",\"kind\":", f);
	json_text(f, kind, strlen(kind));
	(void)fputs(",\"data\":", f);
}

static void put_warnings(FILE *f, const char *const *warnings, size_t n)
{
	size_t i;

	(void)fputs(",\"warnings\":[", f);
	for (i = 0; i < n; i++) {
		if (i > 0)
			(void)fputc(',', f);
		json_text(f, warnings[i], strlen(warnings[i]));
	}
	(void)fputs("]}\n", f);
}

void json_end(FILE *f, const char *const *warnings, size_t n)
{
	put_warnings(f, warnings, n);
}

void json_error(FILE *f, const char *kind, int code, const char *text)
{
	(void)fputs("{\"protond\":\"1\",\"kind\":", f);
	json_text(f, kind, strlen(kind));
	(void)fprintf(f, ",\"error\":{\"code\":%d,\"text\":", code);
	json_text(f, text, strlen(text));
	(void)fputc('}', f);
	put_warnings(f, NULL, 0);
}
