/* SPDX-License-Identifier: MIT. cupti_load.c: the loaded library: its functions, version, strides,
 * and what its errors mean. Any thread that may wait.
 *
 * The stride oracle: fill a buffer with one kind at every 8 bytes and ask next_record() twice; the
 * distance is the size of that kind's record in this very library. Needs no driver.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cupti_find.h"
#include "cupti_load.h"
#include "cupti_state.h"

#define ORACLE_BYTES 4096u

static int say(struct backend_error *e, int32_t code, int r, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int say(struct backend_error *e, int32_t code, int r, const char *fmt, ...)
{
	va_list ap;

	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return r;
}

/* clang-format off */
static const struct {
	int result, err;
	const char *words;
} meanings[] = {
	{CUPTI_OTHER_SUBSCRIBER, -EBUSY,
		"another tool holds CUPTI in this process (torch.profiler, nsys, ncu, Proton); scopes "
		"go on. End that tool and resume, or run without it"},
	{CUPTI_UNKNOWN, -ENODEV,
		"no usable NVIDIA driver here (no GPU, driver not loaded, or not passed into the "
		"container); scopes go on. nvidia-smi must work where the job runs"},
	{CUPTI_NOT_INITIALIZED, -ENOTSUP,
		"the driver is too old for this CUPTI; scopes go on. Update the driver, or point "
		"PROTOND_CUPTI_PATH to the libcupti of an older CUDA"},
	{CUPTI_NO_PRIVILEGE, -EPERM,
		"this user may not profile the GPU; scopes go on. Load the nvidia module with "
		"NVreg_RestrictProfilingToAdminUsers=0, or run with CAP_SYS_ADMIN"},
	{CUPTI_VIRTUALIZED_NO_PRIVILEGE, -EPERM,
		"this virtual GPU may not be profiled; scopes go on. The host must allow profiling "
		"for this vGPU"},
	{CUPTI_VIRTUALIZED, -ENOTSUP, "CUPTI does not support this virtual GPU; scopes go on"},
	{CUPTI_CONFIDENTIAL, -ENOTSUP,
		"CUPTI does not work in confidential computing mode; scopes go on"},
	{CUPTI_WSL, -ENOTSUP, "CUPTI does not support this GPU under WSL; scopes go on"},
	{CUPTI_MAX_LIMIT, -EBUSY,
		"another tool holds CUPTI in this process; scopes go on. End that tool and resume"},
	{CUPTI_HARDWARE_BUSY, -EBUSY, "another tool holds the GPU's counters; scopes go on"},
};
/* clang-format on */

int cupti_error(struct backend_error *e, int result, const char *call)
{
	size_t i;

	for (i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (meanings[i].result == result)
			return say(e, result, meanings[i].err, "%s", meanings[i].words);
	return say(e, result, -EIO, "%s answered CUPTI error %d; scopes go on", call, result);
}

void cupti_strides(int (*next)(uint8_t *, size_t, void **), uint16_t ret_stride[KIND_MAX])
{
	_Alignas(8) uint8_t buf[ORACLE_BYTES];
	uint32_t kind;
	size_t i;
	void *a, *b;
	ptrdiff_t d;

	for (kind = 0; kind < KIND_MAX; kind++) {
		ret_stride[kind] = 0;
		memset(buf, 0, sizeof(buf));
		for (i = 0; i < sizeof(buf); i += 8)
			memcpy(buf + i, &kind, sizeof(kind));
		a = NULL;
		if (kind == 0 || next(buf, sizeof(buf), &a) != CUPTI_OK || a == NULL)
			continue;
		b = a;
		if (next(buf, sizeof(buf), &b) != CUPTI_OK)
			continue;
		d = (uint8_t *)b - (uint8_t *)a;
		if (d >= 8 && d <= (ptrdiff_t)ORACLE_BYTES / 2 && d % 8 == 0)
			ret_stride[kind] = (uint16_t)d;
	}
}

static void *driver_open(void)
{
	void *h = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

	return h != NULL ? h : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
}

/* dlsym() gives an object pointer; POSIX says that it converts. */
static void symbol_into(void *handle, const char *name, void *field)
{
	void *p = handle != NULL ? dlsym(handle, name) : NULL;

	memcpy(field, &p, sizeof(p));
}

static void driver_load(void *handle)
{
#define X(field, symbol, params) symbol_into(handle, symbol, &cupti.cuda.field);
	DRIVER_SYMBOLS(X)
#undef X
}

static uint32_t driver_version(void)
{
	int v = 0;

	if (cupti.cuda.version == NULL || cupti.cuda.version(&v) != CUDA_OK || v < 0)
		return 0;
	return (uint32_t)v;
}

static int symbols_load(void *handle, const char *path, struct backend_error *e)
{
#define X(field, symbol, required, params)                                                         \
	symbol_into(handle, symbol, &cupti.api.field);                                             \
	if ((required) && cupti.api.field == NULL)                                                 \
		return say(e, -ENOSYS, -ENOSYS,                                                    \
			"%.120s lacks %s: not a libcupti that protond knows (11.0 to 13.x)", path, \
			symbol);
	CUPTI_SYMBOLS(X)
#undef X
	return 0;
}

/* Where the library really is: what dlopen was given may be a bare SONAME. */
static void path_keep(const char *path)
{
	Dl_info info;
	void *p;

	memcpy(&p, &cupti.api.get_version, sizeof(p));
	if (dladdr(p, &info) != 0 && info.dli_fname != NULL)
		path = info.dli_fname;
	snprintf(cupti.path, sizeof(cupti.path), "%s", path);
}

static int strides_load(struct backend_error *e)
{
	cupti_strides(cupti.api.next_record, cupti.stride);
	if (cupti.stride[KIND_CONCURRENT_KERNEL] < K_MIN || cupti.stride[KIND_MEMCPY] < C_MIN ||
		cupti.stride[KIND_MEMSET] < S_MIN)
		return say(e, -ENOTSUP, -ENOTSUP,
			"%.120s (version %u) has activity records that protond cannot read",
			cupti.path, cupti.version);
	if (cupti.stride[KIND_MEMCPY_PEER] < P_MIN)
		cupti.stride[KIND_MEMCPY_PEER] = 0;
	return 0;
}

int cupti_load(struct backend_error *e)
{
	struct cupti_found f;
	int r;

	if (cupti.loaded)
		return 0;
	driver_load(driver_open());
	cupti.driver = driver_version();
	r = cupti_find(cupti.driver / 1000, &f);
	if (r == -ELIBBAD)
		return say(e, r, r, "PROTOND_CUPTI_PATH holds no libcupti that loads: %.120s",
			dlerror() != NULL ? "see LD_DEBUG=libs" : "no such file");
	if (r < 0)
		return say(e, r, r,
			"no libcupti found (%s); scopes go on. Install the CUPTI of your CUDA, or "
			"set "
			"PROTOND_CUPTI_PATH to its file or folder",
			f.tried);
	r = symbols_load(f.handle, f.path, e);
	if (r < 0)
		return r;
	if (dlsym(f.handle, "pd_replay_cupti") != NULL) {
		cupti.replay = true;
		driver_load(f.handle); /* the stub plays the recorded machine's driver too */
		cupti.driver = driver_version();
	}
	path_keep(f.path);
	if (cupti.api.get_version(&cupti.version) != CUPTI_OK)
		cupti.version = 0;
	r = strides_load(e);
	if (r < 0)
		return r;
	cupti.loaded = true;
	return 0;
}
