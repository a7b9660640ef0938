/* SPDX-License-Identifier: MIT. gpu_label.c: names of a GPU's streams in one text. */
#include "gpu_label.h"

#include <stdio.h>
#include <string.h>

#include "gpu_terms.h"
#include "text.h"

/* What its line begins with; returns how long that is. */
static int key_of(uint64_t object, char ret[32])
{
	const unsigned long long number = object & ((1ull << 56) - 1);

	return GPU_OBJECT(object) == GPU_OBJECT_STREAM    ? snprintf(ret, 32, "%llu ", number)
	       : GPU_OBJECT(object) == GPU_OBJECT_CONTEXT ? snprintf(ret, 32, "c%llu ", number)
							  : snprintf(ret, 32, "e%llx ", number);
}

/* The object's line and what is behind its line break; *ret_end stays as it was: there is none. */
static const char *line_of(const char *streams, uint64_t object, const char **ret_end)
{
	char number[32];
	const int n = key_of(object, number);
	const char *at = streams, *end;

	while (at != NULL && *at != '\0') {
		end = strchrnul(at, '\n');
		end += *end == '\n';
		if (strncmp(at, number, (size_t)n) == 0) {
			*ret_end = end;
			break;
		}
		at = end;
	}
	return at;
}

const char *gpu_object_label(const char *streams, uint64_t object, size_t *ret_bytes)
{
	const char *end = NULL, *at = line_of(streams, object, &end);

	if (end == NULL)
		return NULL;
	at = strchr(at, ' ') + 1;
	*ret_bytes = strcspn(at, "\n");
	return *ret_bytes > 0 ? at : NULL;
}

void gpu_object_name(const char *streams, uint64_t object, char ret[GPU_LABEL_BYTES])
{
	size_t n = 0;
	const char *name = gpu_object_label(streams, object, &n);

	n = n < GPU_LABEL_BYTES ? n : text_cut(name, GPU_LABEL_BYTES - 1);
	if (name != NULL)
		memcpy(ret, name, n);
	ret[name != NULL ? n : 0] = '\0';
}

bool gpu_object_label_put(char streams[GPU_STREAMS_BYTES], uint64_t object, const char *name)
{
	const char *end = NULL;
	char line[32 + GPU_LABEL_BYTES], *old, *at;
	size_t n = (size_t)key_of(object, line);

	n += (size_t)snprintf(line + n, sizeof(line) - n, "%.*s\n",
		(int)text_cut(name, GPU_LABEL_BYTES - 1), name);
	for (at = line; at < line + n - 1; at++)
		*at = (unsigned char)*at < ' ' ? ' ' : *at;
	old = streams + (line_of(streams, object, &end) - streams);
	if (end != NULL)
		memmove(old, end, strlen(end) + 1);
	if (strlen(streams) + n >= GPU_STREAMS_BYTES)
		return false;
	memcpy(streams + strlen(streams), line, n + 1);
	return true;
}

void gpu_stream_words(
	const char *streams, uint32_t stream, uint32_t row, char ret[GPU_STREAM_WORDS])
{
	size_t bytes = 0;
	const char *name = gpu_object_label(streams, stream, &bytes);
	char more[16] = "";

	if (row > 0)
		(void)snprintf(more, sizeof(more), ", %u", row + 1);
	if (name == NULL)
		(void)snprintf(ret, GPU_STREAM_WORDS, "stream %u%s", stream, more);
	else
		(void)snprintf(ret, GPU_STREAM_WORDS, "stream %u: %.*s%s", stream,
			(int)(bytes < GPU_LABEL_BYTES ? bytes
						      : text_cut(name, GPU_LABEL_BYTES - 1)),
			name, more);
}
