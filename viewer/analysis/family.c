/* SPDX-License-Identifier: MIT. family.c: kernels by what their names say. */
#include "family.h"

#include <stdbool.h>
#include <string.h>

#include "gpu_terms.h"

#define LOOKED_AT 512u /* bytes of a name: what it does stands early */

static bool has_word(const char *lower, size_t bytes, const char *words)
{
	size_t n;

	for (; *words != '\0'; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		if (memmem(lower, bytes, words, n) != NULL)
			return true;
	}
	return false;
}

const char *family_of(const char *name, uint8_t class)
{
	static const struct {
		const char *family, *words;
	} families[] = {
#define X(family, words) {#family, words},
		FAMILIES(X)
#undef X
	};
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
	for (i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (has_word(lower, n, families[i].words))
			return families[i].family;
	return "other";
}
