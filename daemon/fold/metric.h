/* SPDX-License-Identifier: MIT. metric.h: values that a job gives to its scopes. */
#ifndef PROTOND_METRIC_H
#define PROTOND_METRIC_H

struct lane;
struct metric;
struct part;
struct rec_metric;

void tree_metric(struct part *part, const struct lane *lane, const struct rec_metric *m);
/* For restore: finds or makes; NULL: a ceiling, counted, or out of memory. */
struct metric *tree_metric_put(struct part *part, const struct metric *key);

#endif
