/* SPDX-License-Identifier: MIT. web_assets.c: viewer/web/dist/ as the Makefile packed it. */
#include "web_assets.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* A blob between two labels; PROTOND_WEB_PACKED is the folder. A fuzzer has no page. */
#ifdef PROTOND_WEB_PACKED
#define PACKED(file) PROTOND_WEB_PACKED "/" file
#else
#define PACKED(file) "/dev/null"
#endif
#define BLOB(name, path)                                                     \
	__asm__(".section .rodata\n" #name ":\n.incbin \"" path "\"\n" #name \
		"_end:\n.byte 0\n.previous\n");                              \
	extern const char name[], name##_end[];
#define X(name, file, type)                     \
	BLOB(web_gz_##name, PACKED(file ".gz")) \
	BLOB(web_sha_##name, PACKED(file ".sha256"))
WEB_ASSETS(X)
#undef X

const struct web_asset web_assets[ASSET_N] = {
#define X(name, file, type) \
	[ASSET_##name] = {file, type, web_gz_##name, web_gz_##name##_end, web_sha_##name},
	WEB_ASSETS(X)
#undef X
};

int web_asset_plain(const struct web_asset *a, char **ret, size_t *ret_n)
{
	const size_t n = (size_t)(a->gz_end - a->gz);
	z_stream z = {.next_in = (Bytef *)(uintptr_t)a->gz, .avail_in = (uInt)n};
	uint32_t bytes; /* gzip ends in it, little-endian, as every machine here is */
	int r;

	if (n < sizeof(bytes))
		return -ENOMEM;
	memcpy(&bytes, a->gz_end - sizeof(bytes), sizeof(bytes));
	*ret = malloc(bytes + (size_t)1);
	if (*ret == NULL || inflateInit2(&z, 15 + 16) != Z_OK) {
		free(*ret);
		return -ENOMEM;
	}
	z.next_out = (Bytef *)*ret;
	z.avail_out = bytes;
	r = inflate(&z, Z_FINISH);
	(void)inflateEnd(&z);
	if (r != Z_STREAM_END) {
		free(*ret);
		return -ENOMEM;
	}
	*ret_n = bytes;
	return 0;
}
