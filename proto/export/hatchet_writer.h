/* SPDX-License-Identifier: MIT. hatchet_writer.h: what the two writers of .hatchet share, JSON's
 * and MessagePack's: metrics by the names they have there, devices in order. No I/O. */
#ifndef PROTOND_EXPORT_HATCHET_WRITER_H
#define PROTOND_EXPORT_HATCHET_WRITER_H

#include "profile.h"
#include "text.h"

/* What a file calls one metric: one of ours, or a vector, whose elements we keep apart: "v[0]
 * (bytes)", "v[1] (bytes)", … are its "v (bytes)". */
struct hatchet_column {
	const char *name;
	char *owned;       /* the name of a vector; free() it */
	uint32_t first, n; /* place of the first metric in element[], and how many there are */
	bool hint;         /* ROOT shows a 0 for it */
};

struct hatchet_writer {
	const struct profile *p;
	struct hatchet_column column[PROFILE_METRICS_MAX]; /* in the order they are written in */
	uint32_t element[PROFILE_METRICS_MAX], n_columns;
	struct text out;
};

struct hatchet_writer *hatchet_writer_new(const struct profile *p); /* NULL: out of memory */
void hatchet_writer_free(struct hatchet_writer *w);
/* Columns are by name until then; then a kernel's time, count and device come first. */
void hatchet_fixed_first(struct hatchet_writer *w);

/* How many of a column's elements the node has: always the first so many. */
uint32_t hatchet_elements(
	const struct hatchet_writer *w, const struct hatchet_column *c, uint32_t node);
/* Whether the node shows the column, be it as a hint. */
bool hatchet_has(const struct hatchet_writer *w, const struct hatchet_column *c, uint32_t node);
/* By type and id; free() it. NULL: out of memory. */
const struct profile_device **hatchet_devices(const struct profile *p);

#endif
