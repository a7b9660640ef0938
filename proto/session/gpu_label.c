/* SPDX-License-Identifier: MIT. gpu_label.c: names of a GPU's streams in one text. */
#include "gpu_label.h"

#include <stdio.h>
#include <string.h>

#include "text.h"

/* The stream's line and what is behind its line break; *ret_end stays as it was: there is none. */
static const char *line_of(const char *streams, uint32_t stream, const char **ret_end)
{
	char number[16];
	const int n = snprintf(number, sizeof(number), "%u ", stream);
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

const char *gpu_stream_label(const char *streams, uint32_t stream, size_t *ret_bytes)
{
	const char *end = NULL, *at = line_of(streams, stream, &end);

	if (end == NULL)
		return NULL;
	at = strchr(at, ' ') + 1;
	*ret_bytes = strcspn(at, "\n");
	return *ret_bytes > 0 ? at : NULL;
}

bool gpu_stream_label_put(char streams[GPU_STREAMS_BYTES], uint32_t stream, const char *name)
{
	const char *end = NULL;
	char line[16 + GPU_LABEL_BYTES], *old, *at;
	size_t n;

	n = (size_t)snprintf(line, sizeof(line), "%u %.*s\n", stream,
		(int)text_cut(name, GPU_LABEL_BYTES - 1), name);
	for (at = line; at < line + n - 1; at++)
		*at = (unsigned char)*at < ' ' ? ' ' : *at;
	old = streams + (line_of(streams, stream, &end) - streams);
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
	const char *name = gpu_stream_label(streams, stream, &bytes);
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
