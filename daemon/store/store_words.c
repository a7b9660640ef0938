/* SPDX-License-Identifier: MIT. store_words.c: the words that stand in the database for numbers. */
#include "store_int.h"

#include <string.h>

#define WORDS(name, ...)                                        \
	static const char *const name##_list[] = {__VA_ARGS__}; \
	const struct store_words store_words_##name = {         \
		name##_list, sizeof(name##_list) / sizeof(*name##_list)};

WORDS(end_reason, "running", "exited", "killed", "lost")
WORDS(source, "unknown", "job", "control", "run", "auto")
WORDS(data, "tree", "trace", "both")
WORDS(context, "shadow", "python")
WORDS(cpu, "on", "off")
WORDS(gpu, "on", "armed", "none")
WORDS(state, "unknown", "active", "inactive", "finalizing", "finalized")
WORDS(device, "unknown", "CUDA", "HIP")

const char *store_word(const struct store_words *w, uint32_t i)
{
	return i < w->n ? w->word[i] : "unknown";
}

uint32_t store_word_find(const struct store_words *w, const char *word)
{
	uint32_t i;

	for (i = 0; word != NULL && i < w->n; i++)
		if (strcmp(w->word[i], word) == 0)
			return i;
	return 0;
}
