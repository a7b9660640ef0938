/* SPDX-License-Identifier: MIT. kineto_head.c: the devices, the rank and the steps of a file of PyTorch's
 * profiler. */
#include "kineto_head.h"

#include <stdio.h>
#include <string.h>

#include "step_name.h"
#include "text.h"

static void take_device(struct json m, struct text *word, struct stage_device *ret)
{
	struct json_slice key, x;

	while (json_next(&m, '}', &key, &x)) {
		word->n = 0;
		if (json_is(key, "name") && json_string(x, word) && !word->failed)
			snprintf(ret->name, sizeof(ret->name), "%.*s",
				(int)(word->n < 64 ? word->n : 64), word->n > 0 ? word->s : "");
		else if (json_is(key, "id"))
			ret->ordinal = json_clamp32(json_integer(x, 0));
		else if (json_is(key, "computeMajor"))
			ret->arch += 10 * json_clamp32(json_integer(x, 0) % 1000);
		else if (json_is(key, "computeMinor"))
			ret->arch += json_clamp32(json_integer(x, 0) % 10);
		else if (json_is(key, "numSms"))
			ret->num_sms = json_clamp32(json_integer(x, 0));
		else if (json_is(key, "totalGlobalMem"))
			ret->memory_bytes = (uint64_t)json_integer(x, 0) & INT64_MAX;
	}
}

void kineto_devices(struct stage *s, struct json_slice of)
{
	struct json j = json_of(of), m;
	struct stage_device *d, got;
	struct text word = {0};
	struct json_slice v;

	if (!json_open(&j, '['))
		return;
	while (json_next(&j, ']', NULL, &v)) {
		m = json_of(v);
		got = (struct stage_device){.ordinal = STAGE_NONE};
		if (!json_open(&m, '{'))
			continue;
		take_device(m, &word, &got);
		d = got.ordinal == STAGE_NONE ? NULL : stage_device(s, got.ordinal);
		if (d != NULL)
			*d = got;
	}
	text_fini(&word);
}

void kineto_rank(struct stage *s, struct json_slice of)
{
	struct stage_file *file = stage_reading(s);
	struct json j = json_of(of);
	struct json_slice key, v;

	if (!json_open(&j, '{'))
		return;
	while (json_next(&j, '}', &key, &v))
		if (json_is(key, "rank"))
			file->rank = json_integer(v, -1);
		else if (json_is(key, "world_size"))
			file->world = json_integer(v, -1);
}

bool kineto_step(struct json_slice cat, struct json_slice name, char ret[KINETO_STEP_MAX])
{
	static const char begin[] = "\"ProfilerStep#";
	const size_t n = sizeof(begin) - 1, digits = name.n - n - 1; /* to the quote */

	if (!json_is(cat, "user_annotation") || name.n < n + 2 || digits > 18 ||
		memcmp(name.s, begin, n) != 0 || strspn(name.s + n, "0123456789") != digits)
		return false;
	(void)snprintf(
		ret, KINETO_STEP_MAX, "{\"" STEP_OWN "\":\"%.*s\"}", (int)digits, name.s + n);
	return true;
}
