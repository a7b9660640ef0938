/* SPDX-License-Identifier: MIT. gpu_label.h: what a program calls its GPU and the GPU's streams, as a
 * row of `device` has it: a label, and a line "NUMBER NAME" for each stream that has a name. Whoever
 * writes or reads such a row includes it. */
#ifndef PROTOND_SESSION_GPU_LABEL_H
#define PROTOND_SESSION_GPU_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_LABEL_BYTES   64u   /* of a name */
#define GPU_STREAMS_BYTES 4096u /* of all of a GPU's streams */

/* NULL: it has none. Of any bytes; NULL is none. *ret_bytes: of the name. */
const char *gpu_stream_label(const char *streams, uint32_t stream, size_t *ret_bytes);
/* The name of a stream from now on, UTF-8; what would break a line is a space then. False: no room. */
bool gpu_stream_label_put(char streams[GPU_STREAMS_BYTES], uint32_t stream, const char *name);
/* "stream 7", or "stream 7: copies"; of a further row "…, 2": row counts from 0. */
#define GPU_STREAM_WORDS 128u
void gpu_stream_words(
	const char *streams, uint32_t stream, uint32_t row, char ret[GPU_STREAM_WORDS]);

#endif
