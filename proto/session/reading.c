/* SPDX-License-Identifier: MIT. reading.c: readings as bytes: "PDR1", then one zstd frame of the GPU,
 * how many points, when each was and what it knows, then each quantity's values, of those that know it. */
#include "reading.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framed.h"
#include "leb.h"

#define HEAD      (4 * 4 + 64u)
#define POINT_MAX (3 * LEB_MAX + 64 * sizeof(float))
#define RAW_MAX   (HEAD + READINGS_MAX * POINT_MAX)
#define TIME_MAX  (UINT64_MAX / 4)

static const char magic[4] = "PDR1";

static size_t write_raw(
	uint8_t *raw, const struct reading_gpu *g, const struct reading_point *p, uint32_t n)
{
	const uint32_t head[4] = {g->pci_domain, g->pci_bus, g->pci_device, n};
	uint8_t *at = raw;
	uint64_t last = 0;
	uint32_t i, q;

	memcpy(at, head, sizeof(head));
	memcpy(at + sizeof(head), g->name, sizeof(g->name));
	at += HEAD;
	for (i = 0; i < n; i++) {
		at = leb_put(at, p[i].begin_ns - last);
		at = leb_put(at, p[i].end_ns - p[i].begin_ns);
		at = leb_put(at, p[i].known);
		last = p[i].end_ns;
	}
	for (q = 0; q < DEVICE_N; q++)
		for (i = 0; i < n; i++)
			if ((p[i].known >> q & 1) != 0) {
				memcpy(at, &p[i].value[q], sizeof(float));
				at += sizeof(float);
			}
	return (size_t)(at - raw);
}

int reading_pack(const struct reading_gpu *g, const struct reading_point *p, uint32_t n, void **ret,
	uint32_t *ret_n)
{
	uint8_t *raw = malloc(RAW_MAX);
	int r = -ENOMEM;

	if (raw != NULL)
		r = framed_pack(magic, raw, write_raw(raw, g, p, n), ret, ret_n);
	free(raw);
	return r;
}

static bool read_times(const uint8_t **at, const uint8_t *end, struct reading_point *p, uint32_t n)
{
	uint64_t last = 0, step, length;
	bool bad = false;
	uint32_t i;

	for (i = 0; i < n && !bad; i++) {
		step = leb_get(at, end, &bad);
		length = leb_get(at, end, &bad);
		p[i].known = leb_get(at, end, &bad);
		if (step > TIME_MAX || length > TIME_MAX || last > TIME_MAX)
			return false;
		p[i].begin_ns = last + step;
		p[i].end_ns = last = p[i].begin_ns + length;
	}
	return !bad;
}

static bool read_values(const uint8_t *at, const uint8_t *end, struct reading_point *p, uint32_t n)
{
	uint32_t i, q;
	float v;

	for (q = 0; q < 64; q++)
		for (i = 0; i < n; i++) {
			if ((p[i].known >> q & 1) == 0)
				continue;
			if ((size_t)(end - at) < sizeof(v))
				return false;
			memcpy(&v, at, sizeof(v));
			at += sizeof(v);
			if (!isfinite(v))
				return false;
			if (q < DEVICE_N)
				p[i].value[q] = v;
		}
	for (i = 0; i < n; i++)
		p[i].known &= (1ull << DEVICE_N) - 1;
	return at == end;
}

int reading_unpack(const void *bytes, size_t n, struct reading_gpu *ret_gpu,
	struct reading_point ret[READINGS_MAX], uint32_t *ret_n, struct err *e)
{
	uint8_t *raw = malloc(RAW_MAX);
	const uint8_t *at = raw, *end;
	uint32_t head[4];
	size_t got;
	bool ok;

	if (raw == NULL)
		return err_set(e, -ENOMEM, "out of memory for readings");
	got = framed_unpack(magic, bytes, n, raw, RAW_MAX);
	ok = got >= HEAD;
	if (ok) {
		end = raw + got;
		memcpy(head, at, sizeof(head));
		*ret_gpu = (struct reading_gpu){head[0], head[1], head[2], ""};
		memcpy(ret_gpu->name, at + sizeof(head), sizeof(ret_gpu->name));
		ret_gpu->name[sizeof(ret_gpu->name) - 1] = '\0';
		at += HEAD;
		ok = head[3] <= READINGS_MAX && read_times(&at, end, ret, head[3]) &&
		     read_values(at, end, ret, head[3]);
	}
	free(raw);
	if (!ok)
		return err_set(e, -EBADMSG, "a row of readings is damaged");
	*ret_n = head[3];
	return 0;
}
