/* SPDX-License-Identifier: MIT. stub.c: a libcupti.so.13 that has no GPU and plays a raw dump back.
 *
 * The functions that the agent uses, with CUPTI's own error codes: 999 without a driver, 39 for a
 * second subscriber, 21 for an unknown kind. The dump's machine is what the driver's functions
 * tell. play.c drives it. In a forked child the real one hangs; this one ends the child.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stub.h"

#define API          __attribute__((visibility("default")))
#define DRIVER_CBIDS 807u /* of 13.0 */

API const int pd_replay_cupti = 1; /* tells the agent what it has loaded */

struct stub stub = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pid_t loaded_in;

static void load(void)
{
	/* CUPTI 13.0 update 1, where no dump is named */
	static const struct {
		uint8_t kind;
		uint16_t bytes;
	} defaults[] = {{1, 96}, {2, 88}, {3, 216}, {4, 40}, {5, 40}, {8, 184}, {9, 32}, {10, 216},
		{22, 96}};
	const char *path = getenv("PD_REPLAY_DUMP"), *v;
	size_t i;

	loaded_in = getpid();
	stub.dump.header.cupti_version = 130001;
	stub.dump.header.driver_version = 13000;
	for (i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		stub.dump.header.stride[defaults[i].kind] = defaults[i].bytes;
	if (path != NULL) {
		stub.load_error = dump_read(path, &stub.dump);
		if (stub.load_error < 0)
			(void)fprintf(stderr, "replay: cannot read %s: %s\n", path,
				strerror(-stub.load_error));
	}
	v = getenv("PD_REPLAY_STORM");
	if (v != NULL) {
		stub.storms = true;
		stub.load_error = storm_load(&stub.dump, v);
		if (stub.load_error < 0)
			(void)fprintf(stderr, "replay: PD_REPLAY_STORM: '%s'\n", v);
	}
	v = getenv("PD_REPLAY_ERROR");
	stub.subscribe_error = v != NULL ? atoi(v) : stub.load_error < 0 ? CUPTI_UNKNOWN : 0;
}

void stub_load(void)
{
	(void)pthread_once(&once, load);
	if (getpid() == loaded_in)
		return;
	(void)fprintf(stderr, "replay: CUPTI was called in a forked child\n");
	abort();
}

API int cuptiGetVersion(uint32_t *ret);
API int cuptiGetVersion(uint32_t *ret)
{
	stub_load();
	*ret = stub.dump.header.cupti_version;
	return CUPTI_OK;
}

API int cuptiSubscribe(void **ret, cupti_callback_fn *callback, void *user);
API int cuptiSubscribe(void **ret, cupti_callback_fn *callback, void *user)
{
	int r = CUPTI_OK;

	stub_load();
	if (ret == NULL || callback == NULL)
		return CUPTI_INVALID_PARAMETER;
	if (stub.subscribe_error != 0)
		return stub.subscribe_error;
	(void)pthread_mutex_lock(&stub.lock);
	if (stub.callback != NULL) {
		r = CUPTI_OTHER_SUBSCRIBER;
	} else {
		stub.callback = callback;
		stub.user = user;
		*ret = &stub;
	}
	(void)pthread_mutex_unlock(&stub.lock);
	return r;
}

API int cuptiUnsubscribe(void *subscriber);
API int cuptiUnsubscribe(void *subscriber)
{
	int r = CUPTI_INVALID_PARAMETER;

	stub_load();
	(void)pthread_mutex_lock(&stub.lock);
	if (subscriber == &stub && stub.callback != NULL) {
		stub.callback = NULL;
		memset(stub.enabled, 0, sizeof(stub.enabled));
		r = CUPTI_OK;
	}
	(void)pthread_mutex_unlock(&stub.lock);
	return r;
}

API int cuptiEnableCallback(uint32_t on, void *subscriber, uint32_t domain, uint32_t cbid);
API int cuptiEnableCallback(uint32_t on, void *subscriber, uint32_t domain, uint32_t cbid)
{
	stub_load();
	if (subscriber != &stub || domain >= STUB_DOMAINS || cbid >= DRIVER_CBIDS)
		return CUPTI_INVALID_PARAMETER;
	(void)pthread_mutex_lock(&stub.lock);
	stub.enabled[domain][cbid] = on != 0;
	(void)pthread_mutex_unlock(&stub.lock);
	return CUPTI_OK;
}

/* Only the driver's domain was recorded. */
API int cuptiEnableDomain(uint32_t on, void *subscriber, uint32_t domain);
API int cuptiEnableDomain(uint32_t on, void *subscriber, uint32_t domain)
{
	(void)on;
	return subscriber != &stub || domain >= STUB_DOMAINS ? CUPTI_INVALID_PARAMETER : CUPTI_OK;
}

static int kind_set(uint32_t kind, bool on)
{
	stub_load();
	if (stub.subscribe_error == CUPTI_UNKNOWN)
		return CUPTI_UNKNOWN;
	if (kind >= KIND_MAX || stub.dump.header.stride[kind] == 0)
		return CUPTI_INVALID_KIND;
	(void)pthread_mutex_lock(&stub.lock);
	stub.kind[kind] = on;
	(void)pthread_mutex_unlock(&stub.lock);
	return CUPTI_OK;
}

API int cuptiActivityEnable(uint32_t kind);
API int cuptiActivityEnable(uint32_t kind)
{
	return kind_set(kind, true);
}

API int cuptiActivityDisable(uint32_t kind);
API int cuptiActivityDisable(uint32_t kind)
{
	return kind_set(kind, false);
}

API int cuptiActivityRegisterCallbacks(cupti_request_fn *request, cupti_complete_fn *complete);
API int cuptiActivityRegisterCallbacks(cupti_request_fn *request, cupti_complete_fn *complete)
{
	if (request == NULL || complete == NULL)
		return CUPTI_INVALID_PARAMETER;
	(void)pthread_mutex_lock(&stub.lock);
	stub.request = request;
	stub.complete = complete;
	(void)pthread_mutex_unlock(&stub.lock);
	return CUPTI_OK;
}

API int cuptiActivityFlushAll(uint32_t flag);
API int cuptiActivityFlushAll(uint32_t flag)
{
	stub_load();
	if (stub.subscribe_error == CUPTI_UNKNOWN)
		return CUPTI_UNKNOWN;
	play_flush(flag != 0);
	return CUPTI_OK;
}

API int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
API int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *at = *record;
	uint32_t kind;
	size_t left;

	stub_load();
	if (buffer == NULL || record == NULL)
		return CUPTI_INVALID_PARAMETER;
	left = at != NULL ? valid - (size_t)(at - buffer) : valid;
	if (left < sizeof(kind))
		return CUPTI_MAX_LIMIT;
	memcpy(&kind, at != NULL ? at : buffer, sizeof(kind));
	if (kind >= KIND_MAX || stub.dump.header.stride[kind] == 0)
		return CUPTI_INVALID_KIND;
	if (at != NULL) {
		if (left < stub.dump.header.stride[kind] + sizeof(kind))
			return CUPTI_MAX_LIMIT;
		at += stub.dump.header.stride[kind];
		memcpy(&kind, at, sizeof(kind));
		if (kind >= KIND_MAX || stub.dump.header.stride[kind] == 0)
			return CUPTI_INVALID_KIND;
		*record = at;
		return CUPTI_OK;
	}
	*record = buffer;
	return CUPTI_OK;
}

API int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *ret);
API int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *ret)
{
	(void)context;
	(void)stream;
	(void)pthread_mutex_lock(&stub.lock);
	*ret = stub.dropped;
	stub.dropped = 0;
	(void)pthread_mutex_unlock(&stub.lock);
	return CUPTI_OK;
}

API int cuptiActivitySetAttribute(uint32_t attribute, size_t *bytes, void *value);
API int cuptiActivitySetAttribute(uint32_t attribute, size_t *bytes, void *value)
{
	(void)attribute;
	return bytes == NULL || value == NULL          ? CUPTI_INVALID_PARAMETER
	       : stub.subscribe_error == CUPTI_UNKNOWN ? CUPTI_UNKNOWN
						       : CUPTI_OK;
}

API int cuptiSetThreadIdType(uint32_t type);
API int cuptiSetThreadIdType(uint32_t type)
{
	return type > 1 ? CUPTI_INVALID_PARAMETER : CUPTI_OK;
}

API int cuptiFinalize(void);
API int cuptiFinalize(void)
{
	stub_load();
	if (stub.subscribe_error == CUPTI_OTHER_SUBSCRIBER)
		stub.subscribe_error = CUPTI_OK; /* whoever that was */
	return CUPTI_OK;
}

/* Handles are the recorded ids themselves. */
API int cuptiGetGraphNodeId(void *node, uint64_t *ret);
API int cuptiGetGraphNodeId(void *node, uint64_t *ret)
{
	*ret = (uint64_t)(uintptr_t)node;
	return node != NULL ? CUPTI_OK : CUPTI_INVALID_PARAMETER;
}

API int cuptiGetGraphId(void *graph, uint32_t *ret);
API int cuptiGetGraphId(void *graph, uint32_t *ret)
{
	*ret = (uint32_t)(uintptr_t)graph;
	return graph != NULL ? CUPTI_OK : CUPTI_INVALID_PARAMETER;
}

API int cuptiGetGraphExecId(void *exec, uint32_t *ret);
API int cuptiGetGraphExecId(void *exec, uint32_t *ret)
{
	return cuptiGetGraphId(exec, ret);
}

/* The number is in the handle, and so is the context (STUB_STREAM). The default ones have none: they
 * are the context's that is given, or nobody's. */
API int cuptiGetStreamIdEx(void *context, void *stream, uint8_t of_thread, uint32_t *ret);
API int cuptiGetStreamIdEx(void *context, void *stream, uint8_t of_thread, uint32_t *ret)
{
	const uint64_t handle = (uintptr_t)stream;

	if (ret == NULL)
		return CUPTI_INVALID_PARAMETER;
	if (handle == 0 && context != NULL) {
		*ret = of_thread != 0 ? STUB_THREAD_STREAM : STUB_DEFAULT_STREAM;
		return CUPTI_OK;
	}
	if (handle <= STREAM_OF_THREAD || (uint32_t)(handle >> 4) == UINT32_MAX ||
		(context != NULL && (uintptr_t)context != handle >> 36))
		return CUPTI_INVALID_STREAM;
	*ret = (uint32_t)(handle >> 4);
	return CUPTI_OK;
}

/* --- the recorded machine's driver --- */

/* NULL: no such device was recorded. */
static const struct ring_device *device_find(int ordinal)
{
	size_t i;

	for (i = 0; i < stub.dump.n_items; i++) {
		const struct ring_device *d = (const void *)stub.dump.item[i].bytes;

		if (stub.dump.item[i].type == DUMP_DEVICE && (int)d->ordinal == ordinal)
			return d;
	}
	return NULL;
}

static const struct ring_device *device_at(int ordinal)
{
	static const struct ring_device none;
	const struct ring_device *d = device_find(ordinal);

	return d != NULL ? d : &none;
}

API int cuDriverGetVersion(int *ret);
API int cuDriverGetVersion(int *ret)
{
	stub_load();
	*ret = (int)stub.dump.header.driver_version;
	return 0;
}

API int cuDeviceGet(int *ret, int ordinal);
API int cuDeviceGet(int *ret, int ordinal)
{
	*ret = ordinal;
	return device_find(ordinal) != NULL ? 0 : 101;
}

API int cuDeviceGetUuid_v2(uint8_t *ret, int device);
API int cuDeviceGetUuid_v2(uint8_t *ret, int device)
{
	memcpy(ret, device_at(device)->uuid, 16);
	return 0;
}

API int cuDeviceGetName(char *ret, int bytes, int device);
API int cuDeviceGetName(char *ret, int bytes, int device)
{
	(void)snprintf(ret, (size_t)bytes, "%.63s", device_at(device)->name);
	return 0;
}

API int cuDeviceTotalMem_v2(size_t *ret, int device);
API int cuDeviceTotalMem_v2(size_t *ret, int device)
{
	*ret = device_at(device)->memory_bytes;
	return 0;
}

API int cuDeviceGetAttribute(int *ret, int which, int device);
API int cuDeviceGetAttribute(int *ret, int which, int device)
{
	const struct ring_device *d = device_at(device);
	const struct {
		int which;
		uint32_t value;
	} facts[] = {{DEV_CLOCK, d->clock_khz}, {DEV_SMS, d->num_sms}, {DEV_PCI_BUS, d->pci_bus},
		{DEV_PCI_DEVICE, d->pci_device}, {DEV_MEMORY_CLOCK, d->memory_clock_khz},
		{DEV_BUS_WIDTH, d->bus_width}, {DEV_PCI_DOMAIN, d->pci_domain},
		{DEV_MAJOR, d->arch / 10}, {DEV_MINOR, d->arch % 10}};
	size_t i;

	for (i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		if (facts[i].which != which)
			continue;
		*ret = (int)facts[i].value;
		return 0;
	}
	return 1;
}
