/* SPDX-License-Identifier: MIT. sums.h: what threads added up where their lanes had no room. */
#ifndef PROTOND_SUMS_H
#define PROTOND_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

struct process;

#define SUMS_OPEN_MAX 65536u /* of one process; what is over counts when it is final */

/* As much of one as is counted. Of a SUM all but count and time, of a TOTAL all but count and sum, is of
 * no meaning. */
struct open_sum {
	uint64_t pos;
	uint64_t last; /* clock up to which its events are counted; 0: not known */
	uint32_t lane;
	bool total;
	union {
		struct {
			uint64_t time;
			uint32_t count[SUM_BUCKETS];
		};
		struct {
			uint64_t n, sum;
		};
	};
};

/* A record that is long enough, at its position in its lane. final: it does not grow any more. */
void sums_scopes(struct process *p, uint32_t lane, uint64_t pos, const uint8_t *rec, bool final);
void sums_metrics(struct process *p, uint32_t lane, uint64_t pos, const uint8_t *rec, bool final);
/* For restore: one more. False: out of memory. */
bool sums_put(struct process *p, const struct open_sum *x);
void sums_forget(struct process *p);

#endif
