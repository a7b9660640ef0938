/* SPDX-License-Identifier: MIT. nvml.h: the GPUs' numbers, by NVML and its GPM. For protond-device,
 * one thread. Any call may take as long as the driver likes. */
#ifndef PROTOND_NVML_H
#define PROTOND_NVML_H

#include "device_msg.h"

struct nvml;

/* What cannot be measured: once for each trouble. code: NVML's; text: NVML's or the loader's. */
typedef void trouble_fn(void *arg, enum device_trouble trouble, int code, const char *text);

/* NULL: there are no GPUs to be measured, which was said; or no memory. */
struct nvml *nvml_open(trouble_fn *say, void *arg);
uint32_t nvml_gpus(const struct nvml *n);
/* Fills in a reading of GPU g, but for its head and times. slow: what the driver is slow for, too. The first one has
 * no rises of counters. */
void nvml_read(struct nvml *n, uint32_t g, bool slow, struct device_reading *ret);
void nvml_close(
	struct nvml *n); /* NULL is fine; the library stays as it is until the process ends */

#endif
