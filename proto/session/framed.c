/* SPDX-License-Identifier: MIT. framed.c: rows in zstd frames. */
#include "framed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define MAGIC 4u
#define LEVEL 3

int framed_pack(const char magic[4], const void *raw, size_t n, void **ret, uint32_t *ret_n)
{
	const size_t room = ZSTD_compressBound(n);
	uint8_t *to = malloc(MAGIC + room);
	size_t bytes;

	if (to == NULL)
		return -ENOMEM;
	memcpy(to, magic, MAGIC);
	bytes = ZSTD_compress(to + MAGIC, room, raw, n, LEVEL);
	if (ZSTD_isError(bytes)) {
		free(to);
		return -ENOMEM;
	}
	*ret = to;
	*ret_n = (uint32_t)(MAGIC + bytes);
	return 0;
}

size_t framed_unpack(const char magic[4], const void *bytes, size_t n, void *raw, size_t room)
{
	size_t got;

	if (n < MAGIC || memcmp(bytes, magic, MAGIC) != 0)
		return 0;
	got = ZSTD_decompress(raw, room, (const uint8_t *)bytes + MAGIC, n - MAGIC);
	return ZSTD_isError(got) ? 0 : got;
}

size_t framed_room(const void *bytes, size_t n, size_t most)
{
	const unsigned long long said =
		n > MAGIC ? ZSTD_getFrameContentSize((const uint8_t *)bytes + MAGIC, n - MAGIC) : 0;

	return said < most ? (size_t)said : most; /* what it does not say is more than any */
}
