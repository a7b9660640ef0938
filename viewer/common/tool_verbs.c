/* SPDX-License-Identifier: MIT. tool_verbs.c: whose verb a word is, and the command line that was meant. */
#include "tool_verbs.h"

#include <stdio.h>
#include <string.h>

#include "guess.h"
#include "human.h"

#define X(name) #name,
const char *const verbs_of_ctl[] = {CTL_VERBS(X) NULL};
#undef X
#define X(name, min, max, args, help) #name,
const char *const verbs_of_view[] = {VIEW_VERBS(X) NULL};
#undef X

bool verbs_have(const char *const *verbs, const char *word)
{
	while (*verbs != NULL && strcmp(*verbs, word) != 0)
		verbs++;
	return *verbs != NULL;
}

/* What other tools call it. */
static const char *ours_for(const char *word)
{
	static const char *const words[][2] = {{"list", "sessions"}, {"ps", "jobs"},
		{"rm", "delete"}, {"record", "run"}, {"show", "tree"}};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i][0], word) == 0)
			return words[i][1];
	return word;
}

static struct guess nearest(const char *word, const char *const *verbs)
{
	struct guess g = {.word = ours_for(word)};

	for (; *verbs != NULL; verbs++)
		guess_try(&g, *verbs);
	return g;
}

struct verbs_question verbs_question(
	const char *word, const char *const *own, const char *tool, const char *const *other)
{
	const struct guess ours = nearest(word, own), theirs = nearest(word, other);
	struct verbs_question q = {""};

	if (theirs.best[0] == '\0' || (ours.best[0] != '\0' && ours.least <= theirs.least))
		snprintf(q.text, sizeof(q.text), "%s", ours.question);
	else
		snprintf(q.text, sizeof(q.text), "; did you mean '%s %s'?", tool, theirs.best);
	return q;
}

void verbs_line(const char *tool, int argc, char *const *argv, char *ret, size_t n)
{
	FILE *f = fmemopen(ret, n, "w");
	char word[4096];
	int i;

	ret[0] = ret[n - 1] = '\0';
	if (f == NULL)
		return;
	fputs(tool, f);
	for (i = 1; i < argc; i++) {
		fputc(' ', f);
		fputs(word_quoted(word, sizeof(word), argv[i]), f);
	}
	(void)fclose(f);
	ret[n - 1] = '\0';
}
