/* SPDX-License-Identifier: MIT. wire.c: the table of verbs, and the bounded check of a frame. */
#include "wire.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

const struct wire_verb_info wire_verbs[WIRE_VERB_MAX] = {
#define X(id, method, who, help) {method, help, who},
	WIRE_VERBS(X)
#undef X
};

int wire_verb_find(const char *method, size_t bytes)
{
	int i;

	for (i = 0; i < WIRE_VERB_MAX; i++)
		if (strlen(wire_verbs[i].method) == bytes &&
			memcmp(wire_verbs[i].method, method, bytes) == 0)
			return i;
	return -ENOENT;
}

uint32_t wire_frame_bytes(const void *header)
{
	const uint8_t *h = header;

	return (uint32_t)h[0] | (uint32_t)h[1] << 8 | (uint32_t)h[2] << 16 | (uint32_t)h[3] << 24;
}

/* How one MessagePack object begins: its head, how many bytes of payload and how many objects
 * follow. */
struct head {
	size_t bytes; /* of type byte, length field and payload */
	uint64_t children;
};

static uint64_t big_endian(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | *p++;
	return v;
}

/* Head of a type byte 0xc4..0xdf, with a length field; size: of that field. */
static int head_sized(const uint8_t *p, size_t n, size_t size, struct head *ret)
{
	uint64_t v;

	if (n < 1 + size)
		return -EBADMSG;
	v = big_endian(p + 1, size);
	*ret = (struct head){.bytes = 1 + size};
	if (*p >= 0xdc) /* array16, array32, map16, map32 */
		ret->children = *p >= 0xde ? 2 * v : v;
	else
		ret->bytes += v;
	return 0;
}

/* clang-format off */
/* By type byte 0xc0..0xdf: F: fixed, that many bytes in all; S: sized, width of the length; 0: refused. */
static const struct { char kind; uint8_t n; } heads[32] = {
        {'F', 1}, {0, 0}, {'F', 1}, {'F', 1},           /* nil, (never used), false, true */
        {'S', 1}, {'S', 2}, {'S', 4},                   /* bin */
        {0, 0}, {0, 0}, {0, 0},                         /* ext */
        {'F', 5}, {'F', 9},                             /* float */
        {'F', 2}, {'F', 3}, {'F', 5}, {'F', 9},         /* uint */
        {'F', 2}, {'F', 3}, {'F', 5}, {'F', 9},         /* int */
        {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0},         /* fixext */
        {'S', 1}, {'S', 2}, {'S', 4},                   /* str */
        {'S', 2}, {'S', 4}, {'S', 2}, {'S', 4},         /* array, map */
};
/* clang-format on */

static int head_read(const uint8_t *p, size_t n, struct head *ret)
{
	const uint8_t t = *p;

	*ret = (struct head){.bytes = 1};
	if (t <= 0x7f || t >= 0xe0)
		return 0;
	if (t <= 0x8f) {
		ret->children = 2u * (t & 15u);
		return 0;
	}
	if (t <= 0x9f) {
		ret->children = t & 15u;
		return 0;
	}
	if (t <= 0xbf) {
		ret->bytes += t & 31u;
		return 0;
	}
	if (heads[t - 0xc0].kind == 'S')
		return head_sized(p, n, heads[t - 0xc0].n, ret);
	ret->bytes = heads[t - 0xc0].n;
	return heads[t - 0xc0].kind == 'F' ? 0 : -EBADMSG;
}

int wire_check(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t left[WIRE_DEPTH_MAX + 1] = {1}; /* objects still to come, per open container */
	uint32_t depth = 0, objects = 0;
	struct head h;

	for (;;) {
		while (left[depth] == 0) {
			if (depth == 0)
				return n == 0 ? 0 : -EBADMSG;
			depth--;
		}
		left[depth]--;
		if (n == 0 || head_read(p, n, &h) < 0 || h.bytes > n)
			return -EBADMSG;
		p += h.bytes;
		n -= h.bytes;
		if (++objects > WIRE_OBJECTS_MAX || h.children > WIRE_OBJECTS_MAX)
			return -E2BIG;
		if (h.children > n) /* an object is a byte at least */
			return -EBADMSG;
		if (h.children == 0)
			continue;
		if (depth == WIRE_DEPTH_MAX)
			return -E2BIG;
		left[++depth] = h.children;
	}
}
