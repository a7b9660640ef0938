/* SPDX-License-Identifier: MIT. gpu_names.h: what a program calls its GPUs, and their streams, contexts and events. The fold's
 * files include it. */
#ifndef PROTOND_FOLD_GPU_NAMES_H
#define PROTOND_FOLD_GPU_NAMES_H

#include "gpu_label.h"

struct process;
struct row_device;

struct gpu_names { /* of a GPU, as its process numbers it */
	uint32_t ordinal;
	char label[GPU_LABEL_BYTES];
	char streams[GPU_STREAMS_BYTES];
};

/* object: NAMED_GPU, the GPU itself; else of gpu_terms.h. What finds no room is counted as lost. */
void gpu_names_put(struct process *p, uint32_t ordinal, uint64_t object, const char *name);
void gpu_names_fill(const struct process *p, struct row_device *r);
void gpu_names_restore(struct process *p, const struct row_device *r);

#endif
