/* SPDX-License-Identifier: MIT. family.c: kernels by what their names say. */
#include "family.h"

#include <stdbool.h>
#include <string.h>

#include "gpu_terms.h"

#define LOOKED_AT 512u /* bytes of a name: what it does stands early */

#define WORDS_MAX 16u
#define PAIRS     1024u /* a set of two letters that stand beside each other */

static uint32_t pair(const char *at)
{
	return ((uint32_t)(unsigned char)at[0] * 37u + (unsigned char)at[1]) % PAIRS;
}

static bool has_pair(const uint64_t *pairs, const char *at)
{
	return (pairs[pair(at) / 64] >> pair(at) % 64 & 1) != 0;
}

/* The first three letters of nearly all words are nowhere in the name: only the others are looked for. */
static bool has_word(
	const char *lower, size_t bytes, const uint64_t *pairs, const char *const *words)
{
	for (; *words != NULL; words++)
		if (has_pair(pairs, *words) && has_pair(pairs, *words + 1) &&
			memmem(lower, bytes, *words, strlen(*words)) != NULL)
			return true;
	return false;
}

const char *family_of(const char *name, uint8_t class)
{
	static const struct {
		const char *family, *words[WORDS_MAX]; /* NULL ends them */
	} families[] = {
#define X(family, ...) {#family, {__VA_ARGS__, NULL}},
		FAMILIES(X)
#undef X
	};
	uint64_t pairs[PAIRS / 64] = {0};
	char lower[LOOKED_AT];
	size_t i, n;

	class = gpu_class_known(class);
	if (class == CLASS_CPU)
		return "";
	if (class == CLASS_COMM || class == CLASS_MEMSET)
		return class == CLASS_COMM ? "comm" : "memset";
	if (gpu_classes[class].node == NODE_COPY)
		return "copy";
	for (n = 0; n < sizeof(lower) && name[n] != '\0'; n++)
		lower[n] = (char)(name[n] >= 'A' && name[n] <= 'Z' ? name[n] | 0x20 : name[n]);
	for (i = 1; i < n; i++)
		pairs[pair(lower + i - 1) / 64] |= 1ull << pair(lower + i - 1) % 64;
	for (i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (has_word(lower, n, pairs, families[i].words))
			return families[i].family;
	return "other";
}
