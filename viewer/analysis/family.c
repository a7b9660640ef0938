/* SPDX-License-Identifier: MIT. family.c: kernels by what their names say. */
#include "family.h"

#include <pthread.h>
#include <string.h>

#include "gpu_terms.h"

#define LOOKED_AT 512u /* bytes of a name: what it does stands early */

#define WORDS_MAX 16u
#define FIRSTS    4096u /* a set of three letters with which some word begins */

static const struct {
	const char *family, *words[WORDS_MAX]; /* NULL ends them */
} families[] = {
#define X(family, ...) {#family, {__VA_ARGS__, NULL}},
	FAMILIES(X)
#undef X
};
#define N_FAMILIES (uint32_t)(sizeof(families) / sizeof(*families))

static uint64_t firsts[FIRSTS / 64];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t first(const char *at)
{
	return ((uint32_t)(unsigned char)at[0] * 961u + (unsigned char)at[1] * 31u +
		       (unsigned char)at[2]) %
	       FIRSTS;
}

static void find_firsts(void)
{
	const char *const *word;
	uint32_t f;

	for (f = 0; f < N_FAMILIES; f++)
		for (word = families[f].words; *word != NULL; word++)
			firsts[first(*word) / 64] |= 1ull << first(*word) % 64;
}

/* The first family, of those before `end`, with a word that stands here. */
static uint32_t family_at(const char *lower, uint32_t end)
{
	const char *const *word;
	uint32_t f;

	for (f = 0; f < end; f++)
		for (word = families[f].words; *word != NULL; word++)
			if (lower[0] == **word && strncmp(lower, *word, strlen(*word)) == 0)
				return f;
	return end;
}

const char *family_of(const char *name, uint8_t class)
{
	char lower[LOOKED_AT + 1];
	uint32_t found = N_FAMILIES;
	size_t i, n;

	class = gpu_class_known(class);
	if (class == CLASS_CPU)
		return "";
	if (class == CLASS_COMM || class == CLASS_MEMSET)
		return class == CLASS_COMM ? "comm" : "memset";
	if (gpu_classes[class].node == NODE_COPY)
		return "copy";
	(void)pthread_once(&once, find_firsts);
	for (n = 0; n < LOOKED_AT && name[n] != '\0'; n++)
		lower[n] = (char)(name[n] >= 'A' && name[n] <= 'Z' ? name[n] | 0x20 : name[n]);
	lower[n] = '\0';
	for (i = 0; i + 3 <= n; i++)
		if ((firsts[first(lower + i) / 64] >> first(lower + i) % 64 & 1) != 0)
			found = family_at(lower + i, found);
	return found < N_FAMILIES ? families[found].family : "other";
}
