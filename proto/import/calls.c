/* SPDX-License-Identifier: MIT. calls.c: the names of calls, records and copies. */
#include "calls.h"

#include <string.h>

#include "gpu_terms.h"

/* clang-format off */
static const struct {
	const char *word; /* behind "cuda", "cu" or "hip" */
	uint8_t class;
} calls[] = {
	{"DeviceSynchronize", CLASS_DEVICE_SYNC}, {"CtxSynchronize", CLASS_DEVICE_SYNC},
	{"ThreadSynchronize", CLASS_DEVICE_SYNC}, {"StreamSynchronize", CLASS_STREAM_SYNC},
	{"EventSynchronize", CLASS_EVENT_SYNC}, {"StreamWaitEvent", CLASS_STREAM_WAIT},
	{"EventRecord", CLASS_EVENT_RECORD}, {"EventRecordWithFlags", CLASS_EVENT_RECORD},
	{"Memcpy", CLASS_COPY_WAIT}, {"Memcpy2D", CLASS_COPY_WAIT}, {"Memcpy3D", CLASS_COPY_WAIT},
	{"Memcpy2DUnaligned", CLASS_COPY_WAIT}, {"MemcpyHtoD", CLASS_COPY_WAIT},
	{"MemcpyDtoH", CLASS_COPY_WAIT}, {"MemcpyAtoH", CLASS_COPY_WAIT}, {"MemcpyHtoA", CLASS_COPY_WAIT},
	{"MemcpyToSymbol", CLASS_COPY_WAIT}, {"MemcpyFromSymbol", CLASS_COPY_WAIT},
	{"MemcpyWithStream", CLASS_COPY_WAIT},
	{"Malloc", CLASS_ALLOC}, {"MallocPitch", CLASS_ALLOC}, {"MallocManaged", CLASS_ALLOC},
	{"MemAlloc", CLASS_ALLOC}, {"MemAllocPitch", CLASS_ALLOC}, {"MemAllocManaged", CLASS_ALLOC},
	{"Free", CLASS_FREE}, {"MemFree", CLASS_FREE},
	{"MallocHost", CLASS_REGISTER}, {"HostAlloc", CLASS_REGISTER}, {"HostMalloc", CLASS_REGISTER},
	{"FreeHost", CLASS_REGISTER}, {"HostFree", CLASS_REGISTER}, {"HostRegister", CLASS_REGISTER},
	{"HostUnregister", CLASS_REGISTER}, {"MemHostAlloc", CLASS_REGISTER}, {"MemAllocHost", CLASS_REGISTER},
	{"MemFreeHost", CLASS_REGISTER}, {"MemHostRegister", CLASS_REGISTER},
	{"MemHostUnregister", CLASS_REGISTER},
};
/* clang-format on */

uint8_t call_class(const char *name)
{
	static const char *const libraries[] = {"cuda", "cu", "hip"};
	size_t i, n;

	for (i = 0; i < sizeof(libraries) / sizeof(*libraries); i++)
		if (strncmp(name, libraries[i], strlen(libraries[i])) == 0)
			break;
	if (i == sizeof(libraries) / sizeof(*libraries))
		return CLASS_CPU;
	name += strlen(libraries[i]);
	n = strcspn(name, "_");
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (strlen(calls[i].word) == n && memcmp(calls[i].word, name, n) == 0)
			return calls[i].class;
	return CLASS_CPU;
}

uint8_t record_class(const char *name)
{
	static const struct {
		const char *name;
		uint8_t class;
	} records[] = {{"Stream Sync", CLASS_STREAM_SYNC}, {"Event Sync", CLASS_EVENT_SYNC},
		{"Context Sync", CLASS_DEVICE_SYNC}, {"Device Sync", CLASS_DEVICE_SYNC},
		{"Stream Wait Event", CLASS_STREAM_WAIT}};
	size_t i;

	for (i = 0; i < sizeof(records) / sizeof(*records); i++)
		if (strcmp(name, records[i].name) == 0)
			return records[i].class;
	return CLASS_CPU;
}

uint8_t copy_class(const char *name)
{
	static const struct {
		const char *word;
		uint8_t class;
	} copies[] = {{"HtoD", CLASS_H2D}, {"DtoH", CLASS_D2H}, {"DtoD", CLASS_D2D},
		{"PtoP", CLASS_P2P}, {"H2D", CLASS_H2D}, {"D2H", CLASS_D2H}, {"D2D", CLASS_D2D},
		{"P2P", CLASS_P2P}};
	size_t i;

	for (i = 0; i < sizeof(copies) / sizeof(*copies); i++)
		if (strstr(name, copies[i].word) != NULL)
			return copies[i].class;
	return CLASS_OTHER;
}
