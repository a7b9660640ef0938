/* SPDX-License-Identifier: MIT. main.c: runs the suite() of a unit test program, which it is linked
 * into. CK_VERBOSITY=verbose names each test. A daemon or database of the user's is never met: who needs
 * one has made it. */
#include <stdlib.h>

#include "quick.h"

int main(void)
{
	SRunner *r = srunner_create(suite());
	int failed;

	(void)setenv("PROTOND_RUNTIME_DIR", "/nonexistent/protond", 1);
	(void)setenv("PROTOND_DB", "/nonexistent/protond.db", 1);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
