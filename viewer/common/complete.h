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

/* word[0] to word[n - 1] are what is typed, the last of them up to the cursor. Prints options
 * and their values. -1: the last word is an option or an option's value, and what it may be was
 * printed. Else returns how many of the words before it are not options. passes: the first word
 * that is not an option ends the options. */
int complete_options(
	int n, char *const *word, complete_option_fn *option, const void *of, bool passes);

/* Prints the word if it begins with `begin`, needs no quotes and is harmless to a terminal. help
 * NULL: none. */
void complete_put(const char *begin, const char *word, const char *help);
void complete_words(const char *begin, const char *words); /* space-separated */

/* The completion script of both programs for bash, zsh or fish; NULL: not such a shell. */
const char *complete_script(const char *shell);

#endif
