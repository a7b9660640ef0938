/* SPDX-License-Identifier: MIT. protonview.c: the terminal viewer. Reads sessions and .hatchet
 * files, prints to standard output, says words on standard error. */
#include <locale.h>
#include <malloc.h>

#include "protonview_run.h"

int main(int argc, char **argv)
{
	/* Characters only: numbers keep their point in every language. */
	setlocale(LC_CTYPE, "");
	/* A short life with large arrays: memory is taken in large steps and none is given back. */
	(void)mallopt(M_TOP_PAD, 16 << 20);
	(void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
	return protonview_run(argc, argv);
}
