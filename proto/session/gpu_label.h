/* SPDX-License-Identifier: MIT. gpu_label.h: what a program calls its GPU and the GPU's streams, contexts and
 * events, as a row of `device` has it: a label, and a line "NUMBER NAME" for each stream that has a name, "cID NAME"
 * for each context and "eHANDLE NAME" for each event. Whoever writes or reads such a row includes it. An object is as
 * gpu_terms.h has it, so that of a stream is its number. */
#ifndef PROTOND_SESSION_GPU_LABEL_H
#define PROTOND_SESSION_GPU_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_LABEL_BYTES   64u   /* of a name */
#define GPU_STREAMS_BYTES 4096u /* of all of a GPU's objects */

/* NULL: it has none. Of any bytes; NULL is none. *ret_bytes: of the name. */
const char *gpu_object_label(const char *streams, uint64_t object, size_t *ret_bytes);
/* Likewise, to ret: "" for none. */
void gpu_object_name(const char *streams, uint64_t object, char ret[GPU_LABEL_BYTES]);
/* Its name from now on, UTF-8; what would break a line is a space then. False: no room. */
bool gpu_object_label_put(char streams[GPU_STREAMS_BYTES], uint64_t object, const char *name);
/* "stream 7", or "stream 7: copies"; of a further row "…, 2": row counts from 0. */
#define GPU_STREAM_WORDS 128u
void gpu_stream_words(
	const char *streams, uint32_t stream, uint32_t row, char ret[GPU_STREAM_WORDS]);

#endif
