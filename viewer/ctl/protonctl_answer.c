/* SPDX-License-Identifier: MIT. protonctl_answer.c: what stands in a daemon's answer. */
#include "protonctl_answer.h"

#include <string.h>

#include "human.h"

uint32_t answer_items(const msgpack_object *map, const char *key, const msgpack_object **ret)
{
	const msgpack_object *o = wire_get(map, key);

	if (o == NULL || o->type != MSGPACK_OBJECT_ARRAY)
		return 0;
	*ret = o->via.array.ptr;
	return o->via.array.size;
}

const char *answer_text(const msgpack_object *o, char *buf, size_t n)
{
	size_t bytes = o->type == MSGPACK_OBJECT_STR ? o->via.str.size : 0;

	bytes = bytes < n - 1 ? bytes : n - 1;
	memcpy(buf, bytes > 0 ? o->via.str.ptr : "", bytes);
	buf[bytes] = '\0';
	return buf;
}

void answer_put(const msgpack_object *map, const char *key, size_t columns)
{
	char text[1100];

	text_put(stdout, wire_text(map, key, text, sizeof(text)), columns);
}

int answer_names(struct names *names, const msgpack_object *o)
{
	char text[1100];
	uint32_t i;
	int r = 0;

	if (o->type == MSGPACK_OBJECT_STR)
		r = names_add(names, answer_text(o, text, sizeof(text)));
	if (o->type == MSGPACK_OBJECT_ARRAY)
		for (i = 0; i < o->via.array.size && r == 0; i++)
			r = answer_names(names, &o->via.array.ptr[i]);
	if (o->type == MSGPACK_OBJECT_MAP)
		for (i = 0; i < o->via.map.size && r == 0; i++)
			r = answer_names(names, &o->via.map.ptr[i].val);
	return r;
}

void answer_session(const msgpack_object *map, const char *said, struct named *ret)
{
	session_of_answer(map, &ret->s);
	session_words(&ret->s.row, ret->words, sizeof(ret->words));
	session_say(said, &ret->s.row);
}
