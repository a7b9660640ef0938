/* SPDX-License-Identifier: MIT. count.c: GPU work counted by name, by nothing of protond's.
 *
 * CUDA_INJECTION64_PATH=libcount.so: the process's only CUPTI tool; kernels, copies and memsets on,
 * every record counted. COUNT_CUPTI names the library where none is mapped yet.
 * LD_PRELOAD=libcount.so: beside another tool that finds CUPTI's functions by dlsym(). Each buffer
 * that CUPTI gives back to that tool is counted before the tool sees it: the same run, twice read.
 * With COUNT_CALLS also PID.calls, a struct call for each copy and memset that the program asks for.
 *
 * Into the folder COUNT_OUT: PID.names, a line "kind TAB name" for each thing, and PID.count, a
 * struct counter for each line, in the same order, kept up to date; the first is of all records.
 * Steps with CUPTI's own cuptiActivityGetNextRecord(). Offsets are those of CUPTI's headers, which
 * are asked at compile time where they are.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define MEMCPY            1u
#define MEMSET            2u
#define KERNEL            3u
#define CONCURRENT_KERNEL 10u
#define MEMCPY_PEER       22u

#ifdef __has_include
#if __has_include(<cupti.h>)
#include <cupti.h>
#define SAME(ours, theirs) _Static_assert((ours) == (theirs), "CUPTI's headers differ")
SAME(MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(KERNEL, CUPTI_ACTIVITY_KIND_KERNEL);
SAME(CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(MEMCPY_PEER, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME(16, offsetof(CUpti_ActivityKernel4, start));
SAME(24, offsetof(CUpti_ActivityKernel4, end));
SAME(104, offsetof(CUpti_ActivityKernel4, name));
SAME(4, offsetof(CUpti_ActivityMemcpy, copyKind));
SAME(8, offsetof(CUpti_ActivityMemcpy, bytes));
SAME(16, offsetof(CUpti_ActivityMemcpy, start));
SAME(24, offsetof(CUpti_ActivityMemcpy, end));
SAME(8, offsetof(CUpti_ActivityMemset, bytes));
SAME(16, offsetof(CUpti_ActivityMemset, start));
SAME(24, offsetof(CUpti_ActivityMemset, end));
SAME(16, offsetof(CUpti_CallbackData, functionParams));
SAME(24, offsetof(CUpti_CallbackData, functionReturnValue));
SAME(64, offsetof(CUpti_CallbackData, correlationId));
#endif
#endif

#define NAMES_MAX  16384u /* a power of two; what is beyond counts as "(other)" */
#define NAME_BYTES 32768u
#define BUFFER     (1u << 20)

typedef void request_fn(uint8_t **buffer, size_t *bytes, size_t *records);
typedef void complete_fn(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);
typedef int register_fn(request_fn *request, complete_fn *complete);
typedef void callback_fn(void *user, uint32_t domain, uint32_t cbid, const void *data);
typedef int subscribe_fn(void **subscriber, callback_fn *callback, void *user);
typedef int next_fn(uint8_t *buffer, size_t valid, void **record);
typedef int enable_fn(uint32_t kind);
typedef int number_fn(uint32_t number);
typedef int dropped_fn(void *context, uint32_t stream, size_t *records);
typedef void *dlsym_fn(void *handle, const char *name);

struct counter { /* [0]: of all records; its bytes are those of buffers. [1]: of surplus names */
	uint64_t count, ns, bytes, untimed;
};

struct call {
	uint32_t cbid, correlation;
	int32_t result; /* CUresult */
	uint32_t pad0;
	uint64_t destination, source, bytes; /* of a memset `source` is its value */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below but the functions */
static struct counter *counters;
static uint64_t hashes[NAMES_MAX];
static uint32_t places[NAMES_MAX]; /* of a hash: index of its counter */
static uint32_t n_names;
static int names_fd = -1;

static next_fn *next_record;
static register_fn *theirs_register;
static complete_fn *theirs_complete;
static subscribe_fn *theirs_subscribe;
static callback_fn *theirs_callback;
static number_fn *flush_all;
static dropped_fn *dropped;

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name);
__attribute__((visibility("default"))) int InitializeInjection(void);

static bool open_files(void)
{
	const char *folder = getenv("COUNT_OUT");
	size_t bytes = NAMES_MAX * sizeof(struct counter);
	char path[4096];
	void *p;
	int fd;

	if (counters != NULL)
		return true;
	if (folder == NULL || names_fd >= 0)
		return false;
	(void)snprintf(path, sizeof(path), "%s/%d.names", folder, (int)getpid());
	names_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	(void)snprintf(path, sizeof(path), "%s/%d.count", folder, (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (names_fd < 0 || fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
		(void)fprintf(stderr, "count: %s cannot be written\n", path);
		return false;
	}
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (p == MAP_FAILED)
		return false;
	counters = p;
	n_names = 2;
	return write(names_fd, "all\t\n0\t(other)\n", 15) == 15;
}

/* A kernel's name may be in a module that is gone: then "". Never past the page that ends it. */
static void name_of(const void *record, char *ret, size_t size)
{
	uintptr_t at;
	size_t n = 0, step;
	struct iovec here, there;

	memcpy(&at, (const char *)record + 104, sizeof(at));
	while (at != 0 && n + 1 < size) {
		step = 4096 - (at & 4095);
		step = step < size - 1 - n ? step : size - 1 - n;
		here = (struct iovec){ret + n, step};
		there = (struct iovec){(void *)at, step};
		if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)step)
			break;
		if (memchr(ret + n, '\0', step) != NULL)
			return;
		n += step;
		at += step;
	}
	ret[n] = '\0';
}

static struct counter *counter_of(uint32_t kind, const char *name)
{
	static char line[NAME_BYTES + 32];
	uint64_t h = 14695981039346656037u;
	uint32_t i;
	int n = snprintf(line, sizeof(line), "%u\t%s\n", kind, name);
	size_t k;

	for (k = 0; k < (size_t)n; k++)
		h = (h ^ (uint8_t)line[k]) * 1099511628211u;
	h += h == 0;
	for (i = (uint32_t)h & (NAMES_MAX - 1); hashes[i] != 0; i = (i + 1) & (NAMES_MAX - 1))
		if (hashes[i] == h)
			return &counters[places[i]];
	if (n_names >= NAMES_MAX / 2)
		return &counters[1];
	hashes[i] = h;
	places[i] = n_names;
	if (write(names_fd, line, (size_t)n) != n)
		(void)fprintf(stderr, "count: a name could not be written\n");
	return &counters[n_names++];
}

static uint64_t u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void count_record(const uint8_t *r)
{
	static char name[NAME_BYTES];
	struct counter *c;
	uint32_t kind;
	uint64_t begin = u64(r + 16), end = u64(r + 24);

	memcpy(&kind, r, sizeof(kind));
	name[0] = '\0';
	if (kind == CONCURRENT_KERNEL || kind == KERNEL) {
		kind = CONCURRENT_KERNEL;
		name_of(r, name, sizeof(name));
	} else if (kind == MEMCPY) {
		(void)snprintf(name, sizeof(name), "%u", (unsigned)r[4]);
	} else if (kind != MEMSET && kind != MEMCPY_PEER) {
		return;
	}
	c = counter_of(kind, name);
	c->count++;
	counters[0].count++;
	if (kind != CONCURRENT_KERNEL)
		c->bytes += u64(r + 8);
	if (begin == 0 || end < begin) {
		c->untimed++;
		counters[0].untimed++;
	} else {
		c->ns += end - begin;
		counters[0].ns += end - begin;
	}
}

static void count_buffer(uint8_t *buffer, size_t valid)
{
	void *record = NULL;

	(void)pthread_mutex_lock(&lock);
	if (open_files()) {
		counters[0].bytes += valid;
		while (valid > 0 && next_record(buffer, valid, &record) == 0)
			count_record(record);
	}
	(void)pthread_mutex_unlock(&lock);
}

/* --- beside another tool */

static void tap_complete(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	if (buffer != NULL)
		count_buffer(buffer, valid);
	theirs_complete(context, stream, buffer, bytes, valid);
}

static int tap_register(request_fn *request, complete_fn *complete)
{
	theirs_complete = complete;
	return theirs_register(request, tap_complete);
}

/* The calls whose parameters begin with two words and a number of bytes, or of values. */
static bool is_plain(uint32_t cbid)
{
	return (cbid >= 276 && cbid <= 281) || cbid == 305 || cbid == 306 || cbid == 216 ||
	       cbid == 220;
}

static void tap_callback(void *user, uint32_t domain, uint32_t cbid, const void *data)
{
	static int fd = -1;
	struct call c = {.cbid = cbid};
	const void *params, *result;
	char path[4096];
	uint32_t site;

	memcpy(&site, data, sizeof(site));
	memcpy(&params, (const char *)data + 16, sizeof(params));
	if (domain == 1 && site == 1 && is_plain(cbid) && params != NULL) { /* leaves a call */
		memcpy(&result, (const char *)data + 24, sizeof(result));
		memcpy(&c.correlation, (const char *)data + 64, sizeof(c.correlation));
		memcpy(&c.destination, params, 3 * sizeof(uint64_t));
		memcpy(&c.result, result, sizeof(c.result));
		(void)pthread_mutex_lock(&lock);
		if (fd < 0) {
			(void)snprintf(path, sizeof(path), "%s/%d.calls", getenv("COUNT_OUT"),
				(int)getpid());
			fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
		}
		if (write(fd, &c, sizeof(c)) != sizeof(c))
			(void)fprintf(stderr, "count: a call could not be written\n");
		(void)pthread_mutex_unlock(&lock);
	}
	theirs_callback(user, domain, cbid, data);
}

static int tap_subscribe(void **subscriber, callback_fn *callback, void *user)
{
	theirs_callback = callback;
	return theirs_subscribe(subscriber, tap_callback, user);
}

static bool into(void *p, void *field)
{
	memcpy(field, &p, sizeof(p));
	return p != NULL;
}

static dlsym_fn *libc_dlsym(void)
{
	static dlsym_fn *real;

	if (real == NULL && !into(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"), &real))
		(void)into(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"), &real);
	return real;
}

/* dlsym() of the whole process. A call in tail position, so that RTLD_NEXT is still the caller's. */
void *dlsym(void *handle, const char *name)
{
	register_fn *ours = tap_register;
	subscribe_fn *calls = tap_subscribe;
	void *p;

	if (strcmp(name, "cuptiSubscribe") == 0 && getenv("COUNT_CALLS") != NULL &&
		into(libc_dlsym()(handle, name), &theirs_subscribe)) {
		memcpy(&p, &calls, sizeof(p));
		return p;
	}
	if (strcmp(name, "cuptiActivityRegisterCallbacks") != 0)
		return libc_dlsym()(handle, name);
	if (!into(libc_dlsym()(handle, name), &theirs_register) ||
		!into(libc_dlsym()(handle, "cuptiActivityGetNextRecord"), &next_record))
		return NULL;
	memcpy(&p, &ours, sizeof(p));
	return p;
}

/* --- alone */

static void request(uint8_t **buffer, size_t *bytes, size_t *records)
{
	*buffer = aligned_alloc(8, BUFFER);
	*bytes = *buffer != NULL ? BUFFER : 0;
	*records = 0;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	size_t lost = 0;

	(void)bytes;
	count_buffer(buffer, valid);
	free(buffer);
	if (dropped != NULL && dropped(context, stream, &lost) == 0 && lost > 0)
		(void)fprintf(stderr, "count: CUPTI dropped %zu records\n", lost);
}

static void flush(void)
{
	(void)flush_all(1);
}

static void *library(void)
{
	static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
	const char *named = getenv("COUNT_CUPTI");
	void *h = NULL;
	size_t i;

	for (i = 0; h == NULL && i < sizeof(names) / sizeof(names[0]); i++)
		h = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
	if (h == NULL && named != NULL)
		h = dlopen(named, RTLD_NOW);
	for (i = 0; h == NULL && i < sizeof(names) / sizeof(names[0]); i++)
		h = dlopen(names[i], RTLD_NOW);
	return h;
}

int InitializeInjection(void)
{
	static const uint32_t kinds[] = {MEMCPY, MEMSET, CONCURRENT_KERNEL};
	dlsym_fn *find = libc_dlsym();
	void *h = library();
	register_fn *set;
	enable_fn *enable;
	number_fn *period;
	size_t i;

	if (h == NULL || !into(find(h, "cuptiActivityRegisterCallbacks"), &set) ||
		!into(find(h, "cuptiActivityGetNextRecord"), &next_record) ||
		!into(find(h, "cuptiActivityFlushAll"), &flush_all) ||
		!into(find(h, "cuptiActivityEnable"), &enable)) {
		(void)fprintf(stderr, "count: no CUPTI here\n");
		return 0;
	}
	(void)into(find(h, "cuptiActivityGetNumDroppedRecords"), &dropped);
	if (set(request, complete) != 0) {
		(void)fprintf(stderr, "count: CUPTI is taken\n");
		return 0;
	}
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (enable(kinds[i]) != 0)
			(void)fprintf(stderr, "count: CUPTI refuses kind %u\n", kinds[i]);
	if (into(find(h, "cuptiActivityFlushPeriod"), &period))
		(void)period(200);
	(void)atexit(flush);
	return 1;
}
