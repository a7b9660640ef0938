/* SPDX-License-Identifier: MIT. xla.c: what XLA's profiler says of GPU work. */
#include "xla.h"

#include <string.h>

/* What stands behind a word; nothing: the word is not there. */
static struct json_slice behind(struct json_slice of, const char *word)
{
	const char *at = of.n > 0 ? memmem(of.s, of.n, word, strlen(word)) : NULL;

	if (at == NULL)
		return (struct json_slice){of.s, 0};
	at += strlen(word);
	return (struct json_slice){at, (size_t)(of.s + of.n - at)};
}

/* The number at its begin, which is passed over, with a comma; 0: there is none. */
static int64_t number(struct json_slice *at)
{
	struct json_slice of = {at->s, 0};
	int64_t v;

	if (at->n == 0)
		return 0;
	while (of.n < at->n && of.s[of.n] >= '0' && of.s[of.n] <= '9')
		of.n++;
	at->s += of.n;
	at->n -= of.n;
	if (at->n > 0 && *at->s == ',') {
		at->s++;
		at->n--;
	}
	return of.n > 0 && json_decimal(of, 0, &v, NULL) ? v : 0;
}

static uint32_t number32(struct json_slice *at)
{
	const int64_t v = number(at);

	return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX - 1;
}

static uint32_t detail(struct json_slice of, const char *word)
{
	struct json_slice at = behind(of, word);

	return number32(&at);
}

void xla_config(struct json_slice details, struct trace_config *ret)
{
	struct json_slice grid = behind(details, " grid:"), block = behind(details, " block:");
	int i;

	ret->registers = detail(details, "regs:");
	ret->static_shared = detail(details, "static_shared:");
	ret->dynamic_shared = detail(details, "dynamic_shared:");
	for (i = 0; i < 3; i++) {
		ret->grid[i] = number32(&grid);
		ret->block[i] = number32(&block);
	}
}

uint64_t xla_bytes(struct json_slice details)
{
	struct json_slice at = behind(details, "size:");

	return (uint64_t)number(&at);
}

static struct json_slice title(const struct stage *s, uint32_t name)
{
	return name == STAGE_NONE ? (struct json_slice){NULL, 0}
				  : (struct json_slice){s->name[name].s, s->name[name].n};
}

void xla_place(const struct stage *s, uint32_t thread, struct stage_op *o)
{
	struct json_slice gpu = behind(title(s, s->process[o->process].title), "GPU:"),
			  stream = behind(title(s, s->thread[thread].title), "Stream #");

	if (gpu.n > 0)
		o->device = number32(&gpu);
	if (stream.n > 0)
		o->stream = number32(&stream);
}
