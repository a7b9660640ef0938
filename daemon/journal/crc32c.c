/* SPDX-License-Identifier: MIT. crc32c.c: CRC-32C (Castagnoli), by SSE4.2 where the CPU has it,
 * else by table. crc32c(0, p, n) is the usual CRC; crc32c(that, q, m) continues it. Any thread. */
#include "crc32c.h"

#include <pthread.h>
#include <string.h>

#include "journal.h"

#define CRC32C_POLY 0x82f63b78u /* reflected */

/* table[k][b]: the CRC of byte b followed by k zero bytes, so that eight bytes cost eight look-ups.
 */
static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_make(void)
{
	uint32_t b, k, c;

	for (b = 0; b < 256; b++) {
		c = b;
		for (k = 0; k < 8; k++)
			c = (c & 1) != 0 ? (c >> 1) ^ CRC32C_POLY : c >> 1;
		table[0][b] = c;
	}
	for (k = 1; k < 8; k++)
		for (b = 0; b < 256; b++)
			table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xff];
}

uint32_t crc32c_table(uint32_t crc, const void *p, size_t n)
{
	const uint8_t *s = p;
	uint32_t c = ~crc;

	pthread_once(&table_once, table_make);
	for (; n >= 8; n -= 8, s += 8) {
		c ^= (uint32_t)s[0] | (uint32_t)s[1] << 8 | (uint32_t)s[2] << 16 |
		     (uint32_t)s[3] << 24;
		c = table[7][c & 0xff] ^ table[6][c >> 8 & 0xff] ^ table[5][c >> 16 & 0xff] ^
		    table[4][c >> 24] ^ table[3][s[4]] ^ table[2][s[5]] ^ table[1][s[6]] ^
		    table[0][s[7]];
	}
	for (; n > 0; n--, s++)
		c = (c >> 8) ^ table[0][(c ^ *s) & 0xff];
	return ~c;
}

#if defined(__x86_64__)

bool crc32c_has_hw(void)
{
	return __builtin_cpu_supports("sse4.2") != 0;
}

__attribute__((target("sse4.2"))) uint32_t crc32c_hw(uint32_t crc, const void *p, size_t n)
{
	const uint8_t *s = p;
	uint64_t c = ~crc, word;

	for (; n >= 8; n -= 8, s += 8) {
		memcpy(&word, s, sizeof(word)); /* any alignment */
		c = __builtin_ia32_crc32di(c, word);
	}
	for (; n > 0; n--, s++)
		c = __builtin_ia32_crc32qi((uint32_t)c, *s);
	return ~(uint32_t)c;
}

#else

bool crc32c_has_hw(void)
{
	return false;
}

uint32_t crc32c_hw(uint32_t crc, const void *p, size_t n)
{
	return crc32c_table(crc, p, n);
}

#endif

uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
	return crc32c_has_hw() ? crc32c_hw(crc, p, n) : crc32c_table(crc, p, n);
}
