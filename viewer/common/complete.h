/* SPDX-License-Identifier: MIT. complete.h: what may stand where the cursor is, for the shells'
 * completion of protonctl and protonview. Prints to standard output: a word a line, with its help
 * behind a tab; nothing where the shell's own file names are right. */
#ifndef PROTOND_VIEWER_COMPLETE_H
#define PROTOND_VIEWER_COMPLETE_H

#include <stdbool.h>
#include <stddef.h>

#define COMPLETE_COMMAND "!command" /* instead of words: a program of the shell's PATH */

struct complete_option {
	char key; /* 0: long only */
	const char *name, *help;
	bool takes;        /* a value */
	const char *words; /* which it may be, space-separated; NULL: any */
};
/* The i-th option of what is being typed; false: there are no more. */
typedef bool complete_option_fn(const void *of, size_t i, struct complete_option *ret);

/* word[0] to word[n - 1] are what is typed, the last of them up to the cursor. Prints options and
 * their values. Returns how many words before the last are no options where it is none either; -1:
 * nothing is left to print. passes: the first such word ends the options. */
int complete_options(
	int n, char *const *word, complete_option_fn *option, const void *of, bool passes);

/* Where it begins with `begin`, needs no quotes and does nothing to a terminal; help NULL: none. */
void complete_put(const char *begin, const char *word, const char *help);
void complete_words(const char *begin, const char *words); /* space-separated */

/* The script of both programs for bash, zsh or fish; NULL: of another shell. */
const char *complete_script(const char *shell);

#endif
