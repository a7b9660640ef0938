/* SPDX-License-Identifier: MIT. family.c: kernels by what their names say. */
#include "family.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gpu_terms.h"

static bool has_word(const char *name, const char *words)
{
	char word[32];
	size_t n;

	for (; *words != '\0'; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		snprintf(word, sizeof(word), "%.*s", (int)n, words);
		if (strcasestr(name, word) != NULL)
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
	size_t i;

	class = gpu_class_known(class);
	if (class == CLASS_CPU)
		return "";
	if (class == CLASS_COMM || class == CLASS_MEMSET)
		return class == CLASS_COMM ? "comm" : "memset";
	if (gpu_classes[class].node == NODE_COPY)
		return "copy";
	for (i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (has_word(name, families[i].words))
			return families[i].family;
	return "other";
}
