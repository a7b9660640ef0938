/* SPDX-License-Identifier: MIT. fuzz_web.c: an address that a page asks for, and what it is answered:
 * JSON, whatever stood in it. The first byte says which file is asked about. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "web_api.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static struct web *web;

static void start(void)
{
	static char kernels[] = "tests/golden/three_kernels.hatchet",
		    frames[] = "tests/golden/frames.hatchet";
	char *const files[] = {kernels, frames};
	struct err e;

	MUST(web_new(NULL, NULL, files, 2, &web, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char uri[WEB_URI_MAX + 64];
	struct web_answer a;
	json_error_t why;
	json_t *json;

	if (web == NULL)
		start();
	if (n > WEB_URI_MAX + 16)
		return 0;
	memcpy(uri, p, n);
	uri[n] = '\0';
	web_answer(web, uri, &a);
	MUST(a.status == 200 || a.status == 400 || a.status == 404 || a.status == 500);
	if (a.fd >= 0) {
		web_answer_fini(&a);
		return 0;
	}
	json = json_loadb(a.body.s, a.body.n, 0, &why);
	MUST(json != NULL);
	MUST((json_object_get(json, "error") != NULL) == (a.status != 200));
	json_decref(json);
	web_answer_fini(&a);
	return 0;
}
