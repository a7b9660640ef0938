/* SPDX-License-Identifier: MIT. metric_terms.h: what the value of a job's own metric may be.
 * Anybody may include it. */
#ifndef PROTOND_TERMS_METRIC_TERMS_H
#define PROTOND_TERMS_METRIC_TERMS_H

enum metric_type { METRIC_I64 = 1, METRIC_U64 = 2, METRIC_F64 = 3, METRIC_STR = 4 };

#endif
