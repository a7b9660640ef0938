/* SPDX-License-Identifier: MIT. top_rows.h: the rows of a full-screen `top`: what took the time between
 * two looks, as a list or as a tree. No I/O. */
#ifndef PROTOND_VIEWER_TOP_ROWS_H
#define PROTOND_VIEWER_TOP_ROWS_H

#include "top_look.h"

enum top_sort { TOP_BY_GPU, TOP_BY_CPU, TOP_BY_CALLS, TOP_BY_P99, TOP_BY_NAME, TOP_SORTS };
extern const char *const top_sort_words[TOP_SORTS];

#define TOP_TOGGLED 4096u /* nodes that are opened or closed by hand */
#define TOP_FILTER  64u

struct top_view {
	enum top_sort sort;
	bool tree, all_open;
	char filter[TOP_FILTER]; /* a part of a path, whatever the case; "": all */
	uint64_t *toggled;       /* [n_toggled], keys of nodes: not as is usual at their depth */
	uint32_t n_toggled;
};

struct top_row {
	const char *name; /* of the tree: its own; else the path */
	uint32_t name_bytes;
	uint64_t key; /* of the node, the same in the next look */
	uint32_t depth;
	uint8_t class; /* of what its durations are of */
	bool has_children, is_open;
	double gpu_ns, cpu_ns; /* of the tree, gpu_ns with all below */
	uint64_t calls;
	double p50_ns, p99_ns; /* NAN: not known */
};

struct top_rows {
	struct top_row *row;
	uint32_t n;
	bool has_gpu;
};

/* What happened since `before` (NULL: all); names point into `now`. -ENOMEM. */
int top_rows_new(const struct look *before, const struct look *now, const struct top_view *v,
	struct top_rows *ret);
void top_rows_free(struct top_rows *r);
/* Opens or closes a node. False: TOP_TOGGLED, or no memory. */
bool top_toggle(struct top_view *v, uint64_t key);

#endif
