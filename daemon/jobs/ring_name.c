/* SPDX-License-Identifier: MIT. ring_name.c: names of files below rings/. */
#include "ring_name.h"

#include <stdio.h>
#include <string.h>

static int hex_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ring_name_uuid(const char *name, const char *suffix, uint8_t ret[16])
{
	int i, hi, lo;

	for (i = 0; i < 16; i++) {
		hi = hex_of(name[2 * i]);
		lo = hi >= 0 ? hex_of(name[2 * i + 1]) : -1;
		if (lo < 0)
			return false;
		ret[i] = (uint8_t)(hi << 4 | lo);
	}
	return strcmp(name + 32, suffix) == 0;
}

void ring_name(const uint8_t uuid[16], char ret[RING_NAME_BYTES_TEXT])
{
	size_t n = 0;
	int i;

	for (i = 0; i < 16; i++)
		n += (size_t)snprintf(ret + n, RING_NAME_BYTES_TEXT - n, "%02x", uuid[i]);
}
