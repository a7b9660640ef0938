/* SPDX-License-Identifier: MIT. fuzz_device.c: messages of a protond-device that lies. What is believed is
 * finite and in order of time, and whatever was believed comes back from its rows.
 *
 * Input: pieces of {place, 2 bytes; length; what then} and bytes, put over a lawful reading; it is told, or
 * what it says of trouble is, or the session's rows are stored. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "device_msg.h"
#include "readings.h"

#define MUST(e) ((e) ? (void)0 : (void)(fprintf(stderr, "not true: %s\n", #e), abort()))
#define NOW     (1ull << 60)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void take(struct readings *all, const struct device_reading *r)
{
	uint32_t q;

	if (!device_reading_is_sane(r, sizeof(*r), NOW))
		return;
	MUST(r->begin_ns < r->end_ns && r->end_ns <= NOW);
	MUST(r->n_processes <= DEVICE_PROCESSES && strlen(r->name) < sizeof(r->name));
	for (q = 0; q < DEVICE_N; q++)
		MUST((r->known >> q & 1) == 0 || (isfinite(r->value[q]) && r->value[q] >= 0));
	MUST(readings_take(all, r));
	MUST(all->n <= READING_OF);
}

static void store(struct readings *all)
{
	struct reading_point p[READINGS_MAX];
	struct reading_gpu g;
	struct batch b = {0};
	uint32_t i, k, n;

	MUST(readings_put(all, &b, 1));
	for (i = 0; i < b.reading.n; i++) {
		const struct row_reading *row = &b.reading.row[i];

		MUST(reading_unpack(row->bytes, row->n, &g, p, &n, NULL) == 0 && n > 0);
		MUST(row->begin_ns == p[0].begin_ns && row->end_ns == p[n - 1].end_ns);
		for (k = 1; k < n; k++)
			MUST(p[k].begin_ns >= p[k - 1].end_ns);
	}
	batch_free(&b);
	readings_clean(all);
}

static void piece(struct readings *all, struct device_reading *r, uint8_t what)
{
	struct device_said s;

	if (what % 4 == 0) {
		take(all, r);
		r->begin_ns = r->end_ns;
		r->end_ns += 1000;
	} else if (what % 4 == 1) {
		memcpy(&s, r, sizeof(s));
		MUST(!device_said_is_sane(&s, sizeof(s)) || strlen(s.text) < sizeof(s.text));
	} else if (what % 4 == 2) {
		store(all);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct device_reading r = {.head = {DEVICE_MAGIC, DEVICE_READING},
		.begin_ns = 1,
		.end_ns = 1001,
		.known = 1ull << DEVICE_power,
		.name = "H"};
	struct readings all = {0};
	size_t at, bytes;

	while (n >= 4) {
		at = (size_t)(p[0] | p[1] << 8) % sizeof(r);
		bytes = p[2] % 17u;
		bytes = bytes < n - 4 ? bytes : n - 4;
		bytes = bytes < sizeof(r) - at ? bytes : sizeof(r) - at;
		memcpy((uint8_t *)&r + at, p + 4, bytes);
		piece(&all, &r, p[3]);
		p += 4 + bytes;
		n -= 4 + bytes;
	}
	store(&all);
	readings_fini(&all);
	return 0;
}
