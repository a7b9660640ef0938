/* SPDX-License-Identifier: MIT. crc32c.h: the two ways to a CRC-32C, for the test that they agree;
 * everybody else calls crc32c() of journal.h. */
#ifndef PROTOND_CRC32C_H
#define PROTOND_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool crc32c_has_hw(void);
uint32_t crc32c_hw(uint32_t crc, const void *p, size_t n); /* only if crc32c_has_hw() */
uint32_t crc32c_table(uint32_t crc, const void *p, size_t n);

#endif
