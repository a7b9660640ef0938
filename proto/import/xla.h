/* SPDX-License-Identifier: MIT. xla.h: what XLA's profiler (jax, TensorFlow) says of GPU work: its events
 * have no categories, and words where others have numbers. For chrome.c. */
#ifndef PROTOND_IMPORT_XLA_H
#define PROTOND_IMPORT_XLA_H

#include "json_stream.h"
#include "stage.h"

/* kernel_details: "regs:50 static_shared:0 dynamic_shared:8192 grid:128,1,1 block:128,1,1 …" */
void xla_config(struct json_slice details, struct trace_config *ret);
/* memcpy_details: "… size:4096 …"; 0: it does not say. */
uint64_t xla_bytes(struct json_slice details);
/* Device and stream, by what process and thread are called: "/device:GPU:0", "Stream #14(Compute)". */
void xla_place(const struct stage *s, uint32_t thread, struct stage_op *o);

#endif
