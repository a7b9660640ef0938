/* SPDX-License-Identifier: MIT. load.c: finding the engine: the one already in the process, else
 * the one beside this library, else what the loader finds by its SONAME. One engine per process,
 * and one libprotond that speaks: a wheel's and an injected one of another path may meet. */
#include "load.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "doorbell.h"

#define LIB_SONAME "libprotond.so.0"

/* A program that is linked with both archives has it without loading. */
extern protond_engine_fn protond_engine_v1 __attribute__((weak));

static const int anchor; /* an address in this library */

const char *pd_own_path(void)
{
	static char path[PATH_MAX];
	Dl_info at;

	if (path[0] == '\0' && dladdr(&anchor, &at) != 0 && at.dli_fname != NULL &&
		strstr(at.dli_fname, "libprotond") != NULL && realpath(at.dli_fname, path) == NULL)
		path[0] = '\0';
	return path;
}

void *pd_first(const char *symbol)
{
	void *lib = dlopen(LIB_SONAME, RTLD_NOLOAD | RTLD_NOW | RTLD_LOCAL); /* the oldest */
	void *there = lib != NULL ? dlsym(lib, symbol) : NULL;
	Dl_info it, we;

	if (there == NULL || dladdr(there, &it) == 0 || dladdr(&anchor, &we) == 0)
		return NULL;
	return it.dli_fbase != we.dli_fbase ? there : NULL;
}

/* In a namespace of its own the library has a libc of its own, and the two give out the same
 * numbers for a thread's specific data: ours would overwrite the program's. */
bool pd_is_elsewhere(void)
{
	Lmid_t id = LM_ID_BASE;
	void *map = NULL;
	Dl_info at;

	return dladdr1(&anchor, &at, &map, RTLD_DL_LINKMAP) != 0 && map != NULL &&
	       dlinfo(map, RTLD_DI_LMID, &id) == 0 && id != LM_ID_BASE;
}

static void *beside(void)
{
	char path[PATH_MAX];
	const char *own = pd_own_path(), *slash = strrchr(own, '/');

	if (slash == NULL || (size_t)(slash + 1 - own) + sizeof(ENGINE_SONAME) > sizeof(path))
		return NULL;
	snprintf(path, sizeof(path), "%.*s%s", (int)(slash + 1 - own), own, ENGINE_SONAME);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* A program that no loader started. What it loads brings a second C library, and the two end it. */
static bool is_static(void)
{
	const Elf64_Phdr *p = NULL;
	const unsigned long at = getauxval(AT_PHDR), n = getauxval(AT_PHNUM);

	memcpy(&p, &at, sizeof(p));
	for (unsigned long i = 0; i < n; i++)
		if (p[i].p_type == PT_INTERP)
			return false;
	return n > 0;
}

static protond_engine_fn *engine_find(char *text)
{
	protond_engine_fn *fn = NULL;
	void *lib, *symbol;
	const char *why;

	if (is_static()) {
		snprintf(text, PD_TEXT,
			"a statically linked program cannot load " ENGINE_SONAME
			": link it with -lprotond, without -static");
		return NULL;
	}
	lib = dlopen(ENGINE_SONAME, RTLD_NOLOAD | RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL)
		lib = beside();
	if (lib == NULL)
		lib = dlopen(ENGINE_SONAME, RTLD_NOW | RTLD_LOCAL);
	symbol = lib != NULL ? dlsym(lib, ENGINE_SYMBOL) : NULL;
	if (symbol == NULL) {
		why = dlerror();
		snprintf(text, PD_TEXT, "cannot load %s beside libprotond: %s", ENGINE_SONAME,
			why != NULL ? why : "it has no " ENGINE_SYMBOL);
		return NULL;
	}
	memcpy(&fn, &symbol, sizeof(fn));
	return fn;
}

const struct protond_engine *pd_engine_load(char *text)
{
	static const struct protond_engine *_Atomic found;
	const struct protond_engine *e = atomic_load(&found);
	protond_engine_fn *fn;

	if (e != NULL)
		return e;
	fn = protond_engine_v1 != NULL ? protond_engine_v1 : engine_find(text);
	if (fn == NULL)
		return NULL;
	e = fn();
	if (e->abi != ENGINE_ABI || e->bytes < sizeof(*e)) {
		snprintf(text, PD_TEXT, "%s is of another version: reinstall protond",
			ENGINE_SONAME);
		return NULL;
	}
	atomic_store(&found, e);
	return e;
}
