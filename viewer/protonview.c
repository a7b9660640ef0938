/* SPDX-License-Identifier: MIT. protonview.c: the terminal viewer. Reads sessions and .hatchet
 * files, prints to standard output, says words on standard error. */
#include <locale.h>

#include "protonview_run.h"

int main(int argc, char **argv)
{
	/* Characters only: numbers keep their point in every language. */
	(void)setlocale(LC_CTYPE, "");
	return protonview_run(argc, argv);
}
