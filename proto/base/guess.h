/* SPDX-License-Identifier: MIT. guess.h: which known word somebody may have meant. Pure. */
#ifndef PROTOND_BASE_GUESS_H
#define PROTOND_BASE_GUESS_H

#include <stddef.h>

struct guess {
	const char *word;  /* as it was typed */
	char best[32];     /* "": nothing is near */
	char question[64]; /* "; did you mean 'best'?", or "" */
	size_t least;
};

/* Call it with each known word; g has its own word and is zero otherwise. */
void guess_try(struct guess *g, const char *known);

#endif
