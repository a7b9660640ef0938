/* SPDX-License-Identifier: MIT. metrics.h: a profile seen through chosen metrics: columns of
 * numbers, one a node, and which nodes are kept. docs/metrics.md has the formulas. */
#ifndef PROTOND_VIEWER_METRICS_H
#define PROTOND_VIEWER_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "profile.h"

#define VIEW_COLUMNS_MAX 16u

struct column {
	char name[128]; /* "time/ms (inc)": Proton's names */
	char unit[16];  /* "ms", "%", "flop/s", "" */
	bool inclusive;
	bool more_is_better; /* rates; else a higher value is a regression */
	bool nested;         /* exclusive, but a scope's value holds its inner scopes' (cpu_time) */
	bool is_cpu;         /* time of scopes */
	double *v;           /* [n_nodes], NAN: none */
};

struct view {
	const struct profile *p; /* borrowed */
	uint8_t *keep;           /* [n_nodes]; ancestors of a kept node are kept */
	uint32_t n_columns;
	struct column col[VIEW_COLUMNS_MAX];
	char missing[256]; /* names that were asked for beside others, and have nothing to show */
};

/* Drops the launch-metadata subtrees and the nodes that neither have nor lead to a metric. */
int view_new(const struct profile *p, struct view **ret_view); /* -ENOMEM */
void view_free(struct view *v);                                /* NULL is fine */

/* Adds the columns of a comma-separated list; NULL: view_default(). One that this profile lacks, where
 * another one of the list has a column, is in `missing` only. -ENOENT unknown metric, -EINVAL unsupported unit or too many, -ENOTSUP no peak figures for the device. */
int view_derive(struct view *v, const char *list, struct err *e);
const char *view_default(const struct profile *p); /* NULL: the profile has no metric */
int view_add_column(struct view *v, const struct column *like, double **ret_v); /* NANs */

/* A column's total: ROOT's value, or the sum of an exclusive column (of a nested one: over its
 * outermost scopes). */
double view_total(const struct view *v, uint32_t column);

/* Parts of a raw metric's name: of "Time (ns)", "time", which -m takes, and the unit "ns". */
void metric_bare(const char *name, char *buf, size_t n);
void metric_unit(const char *name, char *buf, size_t n);
/* "number"; of what -m cannot show, "text" or "list". */
const char *metric_shape(const struct profile *p, uint32_t metric);
const char *metrics_derived(uint32_t i);    /* the i-th name that -m may have; NULL: no more */
double value_number(const struct value *v); /* NAN: not a number */
/* That its device_id and device_type name; NULL. */
const struct profile_device *metric_device(const struct profile *p, uint32_t node);

#endif
