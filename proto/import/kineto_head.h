/* SPDX-License-Identifier: MIT. kineto_head.h: what a file of PyTorch's profiler (Kineto) says beside its
 * events, and the numbers that it has in names. For chrome.c. */
#ifndef PROTOND_IMPORT_KINETO_HEAD_H
#define PROTOND_IMPORT_KINETO_HEAD_H

#include "json_stream.h"
#include "stage.h"

#define KINETO_STEP_MAX 64u
#define KINETO_CUDA     1 /* "Device Type", of c10::DeviceType; ROCm's, too */

/* [{"id":0,"name":…,"computeMajor":9,"computeMinor":0,"numSms":132,"totalGlobalMem":…},…] */
void kineto_devices(struct stage *s, struct json_slice of);
/* {"backend":"nccl","rank":1,"world_size":2,…} */
void kineto_rank(struct stage *s, struct json_slice of);
/* "ProfilerStep#7", as which each step would be a path of its own; *ret: {"ProfilerStep":"7"}. False: it is none. */
bool kineto_step(struct json_slice cat, struct json_slice name, char ret[KINETO_STEP_MAX]);

#endif
