/* SPDX-License-Identifier: MIT. step_rates.h: how fast steps went, and what they were told of samples, tokens and
 * flops, a second; and which at the begin of a process are no measure of it, because libraries load, compile, tune and
 * allocate there. */
#ifndef PROTOND_SESSION_STEP_RATES_H
#define PROTOND_SESSION_STEP_RATES_H

#include <stdint.h>

#include "err.h"

struct sqlite3;

#define STEP_WARM_LEAST 10u /* steps of a process: fewer have no median to speak of */
#define STEP_WARM_SLOW  1.5 /* times the median */

/* clang-format off */
/* The number that steps are told, by its name without unit and kind; "": the steps themselves. */
#define STEP_RATES(X) /* name  what is told */                        \
	X(STEPS, "") X(SAMPLES, "samples") X(TOKENS, "tokens")         \
	X(FLOPS8, "flops8") X(FLOPS16, "flops16") X(FLOPS32, "flops32") \
	X(FLOPS64, "flops64") X(FLOPS, "flops")
/* clang-format on */

enum step_rate {
#define X(name, told) RATE_##name,
	STEP_RATES(X)
#undef X
		RATE_MAX
};

/* Of the number that a metric of this name is; RATE_MAX: of none. */
enum step_rate step_rate_of(const char *metric);

struct step_rates {
	uint64_t steps, warm;    /* all; those of them that do not count */
	double a_s[RATE_MAX];    /* of all processes together; 0: none was told */
	uint32_t told[RATE_MAX]; /* processes that were told it */
};

/* Sums of the steps of one process that count: of those that were told it, how much, and how long they took; and how long any
 * of them went on, which is less where several go on at once, as requests do. */
struct step_rate_sums {
	double v[RATE_MAX], ns[RATE_MAX];
	double any_ns;
	uint64_t until_ns; /* from where on that is known; 0: nothing is */
};
/* In the order of their ends, the last one first. */
void step_rates_went_on(struct step_rate_sums *s, uint64_t begin_ns, uint64_t end_ns);
void step_rates_add(struct step_rates *r, const struct step_rate_sums *s);

/* The median of n numbers, which are sorted; NAN of none. */
double step_median(double *v, uint32_t n);
/* How many of the first of n durations are over STEP_WARM_SLOW times the median, a quarter at most. NAN and 0 where there
 * are too few. scratch: room for n. */
uint32_t step_warm(const double *ns, uint32_t n, double *scratch, double *ret_median);

/* By the stored steps of a session. process: as step_each() has it. -ENOMEM, -EBADMSG with words. */
int step_rates_load(struct sqlite3 *db, int64_t session, const char *process,
	struct step_rates *ret, struct err *e);

#endif
