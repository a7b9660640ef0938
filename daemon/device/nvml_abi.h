/* SPDX-License-Identifier: MIT. nvml_abi.h: what we use of NVML's public ABI, so that neither a build
 * nor a start needs NVIDIA's headers or library. For nvml.c and what stands in for the library. */
#ifndef PROTOND_NVML_ABI_H
#define PROTOND_NVML_ABI_H

#include <stdint.h>

enum {
	NVML_OK = 0,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_TIMEOUT = 10,
};
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum { NVML_ECC_CORRECTED = 0, NVML_ECC_UNCORRECTED = 1, NVML_ECC_VOLATILE = 0 };
enum { NVML_FIELD_POWER_INSTANT = 186, NVML_EVENT_XID = 8, NVML_GPM_VERSION = 1 };
enum { NVML_VALUE_DOUBLE = 0, NVML_VALUE_UINT = 1 };

struct nvml_device;
struct nvml_event_set;
struct nvml_gpm_sample;

struct nvml_memory {
	uint64_t total, free, used;
};
struct nvml_pci {
	char bus_id_legacy[16];
	uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
};
struct nvml_violation {
	uint64_t reference_us, violation_ns;
};
struct nvml_field {
	uint32_t id, scope;
	int64_t timestamp, latency_us;
	uint32_t type;
	int32_t status;
	union {
		double f64;
		uint32_t u32;
		uint64_t u64;
	} value;
};
struct nvml_process {
	uint32_t pid;
	uint64_t bytes;
	uint32_t gpu_instance, compute_instance;
};
struct nvml_event {
	struct nvml_device *device;
	uint64_t type, data;
	uint32_t gpu_instance, compute_instance;
};
struct nvml_gpm_support {
	uint32_t version, supported;
};
struct nvml_gpm_metric {
	uint32_t id;
	int32_t status;
	double value;
	const char *words[3];
};
/* The library's own has more, of which it reads and writes n. */
#define NVML_GPM_METRICS 16
struct nvml_gpm_get {
	uint32_t version, n;
	struct nvml_gpm_sample *from, *to;
	struct nvml_gpm_metric metric[NVML_GPM_METRICS];
};
_Static_assert(sizeof(struct nvml_pci) == 68 && sizeof(struct nvml_field) == 40 &&
		       sizeof(struct nvml_process) == 24 && sizeof(struct nvml_event) == 32 &&
		       sizeof(struct nvml_gpm_metric) == 40,
	"NVML ABI");

/* clang-format off */
/* X(member, symbol, whether nothing can be done without it, parameters). All return a nvmlReturn_t. */
#define NVML_CALLS(X)                                                                                          \
	X(init,         nvmlInit_v2,                             true,  (void))                                \
	X(count,        nvmlDeviceGetCount_v2,                   true,  (uint32_t *))                          \
	X(handle,       nvmlDeviceGetHandleByIndex_v2,           true,  (uint32_t, struct nvml_device **))     \
	X(name,         nvmlDeviceGetName,                       false, (struct nvml_device *, char *, uint32_t)) \
	X(pci,          nvmlDeviceGetPciInfo_v3,                 false, (struct nvml_device *, struct nvml_pci *)) \
	X(fields,       nvmlDeviceGetFieldValues,                false, (struct nvml_device *, int, struct nvml_field *)) \
	X(power,        nvmlDeviceGetPowerUsage,                 false, (struct nvml_device *, uint32_t *))    \
	X(power_limit,  nvmlDeviceGetEnforcedPowerLimit,         false, (struct nvml_device *, uint32_t *))    \
	X(clock,        nvmlDeviceGetClockInfo,                  false, (struct nvml_device *, int, uint32_t *)) \
	X(clock_max,    nvmlDeviceGetMaxClockInfo,               false, (struct nvml_device *, int, uint32_t *)) \
	X(temperature,  nvmlDeviceGetTemperature,                false, (struct nvml_device *, int, uint32_t *)) \
	X(memory,       nvmlDeviceGetMemoryInfo,                 false, (struct nvml_device *, struct nvml_memory *)) \
	X(violation,    nvmlDeviceGetViolationStatus,            false, (struct nvml_device *, int, struct nvml_violation *)) \
	X(processes,    nvmlDeviceGetComputeRunningProcesses_v3, false, (struct nvml_device *, uint32_t *, struct nvml_process *)) \
	X(ecc,          nvmlDeviceGetTotalEccErrors,             false, (struct nvml_device *, int, int, uint64_t *)) \
	X(mig,          nvmlDeviceGetMigMode,                    false, (struct nvml_device *, uint32_t *, uint32_t *)) \
	X(event_set,    nvmlEventSetCreate,                      false, (struct nvml_event_set **))            \
	X(event_add,    nvmlDeviceRegisterEvents,                false, (struct nvml_device *, uint64_t, struct nvml_event_set *)) \
	X(event_wait,   nvmlEventSetWait_v2,                     false, (struct nvml_event_set *, struct nvml_event *, uint32_t)) \
	X(gpm_support,  nvmlGpmQueryDeviceSupport,               false, (struct nvml_device *, struct nvml_gpm_support *)) \
	X(gpm_alloc,    nvmlGpmSampleAlloc,                      false, (struct nvml_gpm_sample **))           \
	X(gpm_sample,   nvmlGpmSampleGet,                        false, (struct nvml_device *, struct nvml_gpm_sample *)) \
	X(gpm_metrics,  nvmlGpmMetricsGet,                       false, (struct nvml_gpm_get *))
/* clang-format on */

#endif
