/* SPDX-License-Identifier: MIT. web_http.c: libmicrohttpd's functions, by name. */
#include "web_http.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define LIBRARY "libmicrohttpd.so.12"

struct web_http http;

int web_http_load(struct err *e)
{
	static const struct {
		const char *name;
		size_t at;
	} functions[] = {
#define X(name) {"MHD_" #name, offsetof(struct web_http, name)},
		HTTP_FUNCTIONS(X)
#undef X
	};
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL), *f;
	size_t i;

	if (library == NULL)
		return err_set(e, -ENOENT,
			"a page needs libmicrohttpd: %.200s; on Debian `apt-get install "
			"libmicrohttpd12` (`protonview report` needs none)",
			dlerror());
	for (i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		f = dlsym(library, functions[i].name);
		if (f == NULL)
			return err_set(e, -ENOENT, LIBRARY " has no %s", functions[i].name);
		memcpy((char *)&http + functions[i].at, &f, sizeof(f));
	}
	return 0;
}
