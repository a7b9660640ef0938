/* SPDX-License-Identifier: MIT. fuzz_wire.c: any bytes as a message of the control protocol.
 *
 * Properties: what wire_check() takes, msgpack unpacks to the last byte, no deeper than the law and
 * with no more objects than bytes; every getter stays inside; and what is packed again from the
 * message is taken again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"

#define HOLDS(e) ((e) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static uint32_t walk(const msgpack_object *o, uint32_t depth)
{
	uint32_t i, n = 1;

	HOLDS(depth <= WIRE_DEPTH_MAX);
	if (o->type == MSGPACK_OBJECT_ARRAY)
		for (i = 0; i < o->via.array.size; i++)
			n += walk(&o->via.array.ptr[i], depth + 1);
	if (o->type == MSGPACK_OBJECT_MAP)
		for (i = 0; i < o->via.map.size; i++)
			n += walk(&o->via.map.ptr[i].key, depth + 1) +
			     walk(&o->via.map.ptr[i].val, depth + 1);
	HOLDS(o->type != MSGPACK_OBJECT_EXT);
	return n;
}

static void getters(const msgpack_object *map)
{
	static const char *const keys[] = {"session", "pid", "all", "token", "name", ""};
	char text[8], bin[16];
	uint64_t u;
	bool yes;
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		text[0] = '\0';
		(void)wire_get_str(map, keys[i], text, sizeof(text));
		HOLDS(memchr(text, 0, sizeof(text)) != NULL);
		(void)wire_text(map, keys[i], text, sizeof(text));
		HOLDS(memchr(text, 0, sizeof(text)) != NULL);
		(void)wire_get_u64(map, keys[i], &u);
		(void)wire_get_bool(map, keys[i], &yes);
		(void)wire_get_bin(map, keys[i], bin, sizeof(bin));
		(void)wire_i64_or(map, keys[i], 0);
		(void)wire_f64_or(map, keys[i], 0);
	}
}

/* The daemon's answer to it, as a client reads it. */
static void answer(const struct wire_msg *m)
{
	struct wire_buf b;
	struct wire_msg back;
	struct err e = {.code = -ENOSYS};

	(void)snprintf(e.text, sizeof(e.text), "no method '%.*s'",
		(int)(m->method_bytes < 64 ? m->method_bytes : 64), m->method);
	wire_buf_init(&b, WIRE_FRAME_MAX);
	wire_failure(&b, m->msgid, &e, "");
	HOLDS(wire_frame_end(&b) == 0 && wire_frame_bytes(b.bytes) == b.n - WIRE_HEADER);
	HOLDS(wire_parse(b.bytes + WIRE_HEADER, b.n - WIRE_HEADER, &back, &e) == 0);
	HOLDS(back.type == WIRE_RESPONSE && back.msgid == m->msgid && back.error != NULL);
	wire_msg_free(&back);
	wire_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct wire_msg m;
	struct err e;

	if (wire_parse((const char *)bytes, n, &m, &e) < 0) {
		HOLDS(e.code < 0 && e.text[0] != '\0');
		return 0;
	}
	HOLDS(wire_check(bytes, n) == 0);
	HOLDS(walk(&m.owned.data, 0) <= n);
	if (m.type != WIRE_RESPONSE) {
		HOLDS(m.params != NULL && m.params->type == MSGPACK_OBJECT_MAP);
		HOLDS(m.method_bytes == 0 ||
			((const uint8_t *)m.method >= bytes &&
				(const uint8_t *)m.method + m.method_bytes <= bytes + n));
		(void)wire_verb_find(m.method, m.method_bytes);
		getters(m.params);
		if (m.type == WIRE_REQUEST)
			answer(&m);
	} else {
		getters(m.error);
		getters(m.result);
	}
	wire_msg_free(&m);
	return 0;
}
