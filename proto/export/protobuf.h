/* SPDX-License-Identifier: MIT. protobuf.h: writing Protocol Buffers: a field is its number and its
 * type in a varint, then its value; a message inside another one stands behind its length.
 * (https://protobuf.dev/programming-guides/encoding) Pure. */
#ifndef PROTOND_EXPORT_PROTOBUF_H
#define PROTOND_EXPORT_PROTOBUF_H

#include "text.h"

static inline void pb_varint(struct text *t, uint64_t v)
{
	char bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (char)(v | 0x80);
	bytes[n++] = (char)v;
	text_add(t, bytes, n);
}

/* int, uint, bool, enum */
static inline void pb_number(struct text *t, uint32_t field, uint64_t v)
{
	pb_varint(t, (uint64_t)field << 3);
	pb_varint(t, v);
}

/* fixed64 and double, by their bits */
static inline void pb_fixed64(struct text *t, uint32_t field, uint64_t bits)
{
	char bytes[8];

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (char)(bits >> 8 * i);
	pb_varint(t, (uint64_t)field << 3 | 1);
	text_add(t, bytes, sizeof(bytes));
}

/* fixed32 and float, likewise */
static inline void pb_fixed32(struct text *t, uint32_t field, uint32_t bits)
{
	char bytes[4];

	for (unsigned i = 0; i < 4; i++)
		bytes[i] = (char)(bits >> 8 * i);
	pb_varint(t, (uint64_t)field << 3 | 5);
	text_add(t, bytes, sizeof(bytes));
}

static inline void pb_bytes(struct text *t, uint32_t field, const void *bytes, size_t n)
{
	pb_varint(t, (uint64_t)field << 3 | 2);
	pb_varint(t, n);
	text_add(t, bytes, n);
}

static inline void pb_string(struct text *t, uint32_t field, const char *s)
{
	pb_bytes(t, field, s, strlen(s));
}

/* A message, or a packed list, that was collected in *from, which is empty then. */
static inline void pb_message(struct text *t, uint32_t field, struct text *from)
{
	pb_bytes(t, field, from->s, from->n);
	t->failed |= from->failed;
	from->n = 0;
}

#endif
