/* SPDX-License-Identifier: MIT. readings.h: what GPUs and their host did while a session recorded. Each
 * has rows of READINGS_MAX readings; after READING_ROWS of them a reading is a mean of two, then of four,
 * and so on: a session of any length has a bounded number of rows. */
#ifndef PROTOND_READINGS_H
#define PROTOND_READINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "device_msg.h"
#include "reading.h"

struct batch;

#define READING_ROWS 256u /* of one width: 2 hours at one a second */
#define READING_OF   16u  /* GPUs and the host, of one session; readings of others are left out */

struct readings_of {
	uint32_t gpu;    /* DEVICE_HOST: the host */
	uint32_t number; /* of the row that grows */
	struct reading_gpu name;
	struct reading_point point[READINGS_MAX];
	struct reading_point next; /* what is not yet as wide as it must be */
	struct reading_point last; /* of each quantity the newest; end_ns: the newest of all */
	uint32_t n, in_next;
	bool dirty;
};

struct readings {
	struct readings_of *of[READING_OF];
	uint32_t n;
};

/* False: no memory. */
bool readings_take(struct readings *all, const struct device_reading *r);
/* The next row has that number, or a later one: stored ones stay. False: no memory. */
bool readings_restore(struct readings *all, uint32_t gpu, uint32_t number);
bool readings_put(const struct readings *all, struct batch *b, int64_t session);
/* Of the GPU in that slot; NULL: there is none. */
const struct readings_of *readings_find(
	const struct readings *all, uint32_t domain, uint32_t bus, uint32_t device);
void readings_clean(struct readings *all); /* after readings_put(): full rows are begun anew */
void readings_fini(struct readings *all);

#endif
