/* SPDX-License-Identifier: MIT. fake_nvml.c: a libnvidia-ml.so.1 with a scripted GPU, for protond-device.
 * FAKE_NVML: words of what is wrong with it: `none` (no GPU), `perm` (counters for administrators),
 * `init` (fails), `mig`, `hang` (a power reading never ends), `odd` (answers that cannot be).
 * Readings are counted: the n-th has 100 W more than the one before. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvml_abi.h"

#define CALL(symbol) __attribute__((visibility("default"))) int symbol

static struct nvml_device {
	uint32_t reading;
} gpu;
static struct nvml_gpm_sample {
	uint32_t number;
} sample[2];
static uint32_t samples, xids;

static int is(const char *word)
{
	const char *all = getenv("FAKE_NVML");

	return all != NULL && strstr(all, word) != NULL;
}

CALL(nvmlInit_v2)(void);
CALL(nvmlInit_v2)(void)
{
	return is("init") ? 999 : NVML_OK;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(int code);
const char *nvmlErrorString(int code)
{
	return code == NVML_NO_PERMISSION ? "Insufficient Permissions" : "Unknown Error";
}

CALL(nvmlDeviceGetCount_v2)(uint32_t *ret);
CALL(nvmlDeviceGetCount_v2)(uint32_t *ret)
{
	*ret = is("none") ? 0 : 1;
	return NVML_OK;
}

CALL(nvmlDeviceGetHandleByIndex_v2)(uint32_t i, struct nvml_device **ret);
CALL(nvmlDeviceGetHandleByIndex_v2)(uint32_t i, struct nvml_device **ret)
{
	*ret = &gpu;
	return i == 0 ? NVML_OK : 2;
}

CALL(nvmlDeviceGetName)(struct nvml_device *d, char *name, uint32_t n);
CALL(nvmlDeviceGetName)(struct nvml_device *d, char *name, uint32_t n)
{
	(void)d;
	memset(name, 'X', n); /* without an end, where it is odd */
	if (!is("odd"))
		memcpy(name, "Fake \"H\"", 9);
	return NVML_OK;
}

CALL(nvmlDeviceGetPciInfo_v3)(struct nvml_device *d, struct nvml_pci *ret);
CALL(nvmlDeviceGetPciInfo_v3)(struct nvml_device *d, struct nvml_pci *ret)
{
	(void)d;
	*ret = (struct nvml_pci){.domain = 0, .bus = 0x1b, .device = 0};
	return NVML_OK;
}

CALL(nvmlDeviceGetFieldValues)(struct nvml_device *d, int n, struct nvml_field *f);
CALL(nvmlDeviceGetFieldValues)(struct nvml_device *d, int n, struct nvml_field *f)
{
	if (n != 1 || f->id != NVML_FIELD_POWER_INSTANT)
		return 2;
	while (is("hang"))
		(void)pause();
	f->type = NVML_VALUE_UINT;
	f->status = NVML_OK;
	f->value.u32 = 100000 * d->reading++;
	return NVML_OK;
}

CALL(nvmlDeviceGetClockInfo)(struct nvml_device *d, int which, uint32_t *ret);
CALL(nvmlDeviceGetClockInfo)(struct nvml_device *d, int which, uint32_t *ret)
{
	(void)d;
	*ret = which == NVML_CLOCK_SM ? 1410 : 2619;
	return NVML_OK;
}

CALL(nvmlDeviceGetMaxClockInfo)(struct nvml_device *d, int which, uint32_t *ret);
CALL(nvmlDeviceGetMaxClockInfo)(struct nvml_device *d, int which, uint32_t *ret)
{
	(void)d;
	*ret = which == NVML_CLOCK_SM ? 1980 : 2619;
	return NVML_OK;
}

CALL(nvmlDeviceGetMemoryInfo)(struct nvml_device *d, struct nvml_memory *ret);
CALL(nvmlDeviceGetMemoryInfo)(struct nvml_device *d, struct nvml_memory *ret)
{
	(void)d;
	*ret = (struct nvml_memory){1000, 300, 700};
	return NVML_OK;
}

CALL(nvmlDeviceGetViolationStatus)(struct nvml_device *d, int policy, struct nvml_violation *ret);
CALL(nvmlDeviceGetViolationStatus)(struct nvml_device *d, int policy, struct nvml_violation *ret)
{
	if (policy != 0)
		return NVML_NOT_SUPPORTED;
	*ret = (struct nvml_violation){0, 5000000ull * d->reading};
	return NVML_OK;
}

CALL(nvmlDeviceGetComputeRunningProcesses_v3)
(struct nvml_device *d, uint32_t *n, struct nvml_process *p);
CALL(nvmlDeviceGetComputeRunningProcesses_v3)
(struct nvml_device *d, uint32_t *n, struct nvml_process *p)
{
	(void)d;
	p[0] = (struct nvml_process){.pid = 77, .bytes = 600};
	p[1] = (struct nvml_process){.pid = 78, .bytes = UINT64_MAX};
	*n = is("odd") ? 100000 : 2;
	return NVML_OK;
}

CALL(nvmlDeviceGetMigMode)(struct nvml_device *d, uint32_t *now, uint32_t *later);
CALL(nvmlDeviceGetMigMode)(struct nvml_device *d, uint32_t *now, uint32_t *later)
{
	(void)d;
	*now = *later = is("mig") ? 1 : 0;
	return NVML_OK;
}

CALL(nvmlEventSetCreate)(struct nvml_event_set **ret);
CALL(nvmlEventSetCreate)(struct nvml_event_set **ret)
{
	*ret = (struct nvml_event_set *)&xids;
	return NVML_OK;
}

CALL(nvmlDeviceRegisterEvents)(struct nvml_device *d, uint64_t types, struct nvml_event_set *s);
CALL(nvmlDeviceRegisterEvents)(struct nvml_device *d, uint64_t types, struct nvml_event_set *s)
{
	(void)d;
	(void)s;
	return types == NVML_EVENT_XID ? NVML_OK : 2;
}

/* One Xid, after the second reading has begun; without an end where it is odd. */
CALL(nvmlEventSetWait_v2)(struct nvml_event_set *s, struct nvml_event *ret, uint32_t ms);
CALL(nvmlEventSetWait_v2)(struct nvml_event_set *s, struct nvml_event *ret, uint32_t ms)
{
	(void)s;
	(void)ms;
	if (!is("odd") && (gpu.reading != 2 || xids > 0))
		return NVML_TIMEOUT;
	xids++;
	*ret = (struct nvml_event){.device = &gpu, .type = NVML_EVENT_XID, .data = 79};
	return NVML_OK;
}

CALL(nvmlGpmQueryDeviceSupport)(struct nvml_device *d, struct nvml_gpm_support *ret);
CALL(nvmlGpmQueryDeviceSupport)(struct nvml_device *d, struct nvml_gpm_support *ret)
{
	(void)d;
	ret->supported = ret->version == NVML_GPM_VERSION;
	return NVML_OK;
}

CALL(nvmlGpmSampleAlloc)(struct nvml_gpm_sample **ret);
CALL(nvmlGpmSampleAlloc)(struct nvml_gpm_sample **ret)
{
	*ret = &sample[samples++ % 2];
	return NVML_OK;
}

CALL(nvmlGpmSampleGet)(struct nvml_device *d, struct nvml_gpm_sample *s);
CALL(nvmlGpmSampleGet)(struct nvml_device *d, struct nvml_gpm_sample *s)
{
	s->number = d->reading;
	return is("perm") ? NVML_NO_PERMISSION : NVML_OK;
}

/* As many percent as readings lie between the two, times ten, and a quarter of the metrics fails. */
CALL(nvmlGpmMetricsGet)(struct nvml_gpm_get *g);
CALL(nvmlGpmMetricsGet)(struct nvml_gpm_get *g)
{
	uint32_t i;

	for (i = 0; i < g->n; i++) {
		g->metric[i].status = g->metric[i].id >= 60 ? NVML_NOT_SUPPORTED : NVML_OK;
		g->metric[i].value = 10.0 * (g->to->number - g->from->number);
	}
	return g->version == NVML_GPM_VERSION ? NVML_OK : 2;
}
