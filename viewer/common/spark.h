/* SPDX-License-Identifier: MIT. spark.h: numbers as a line of bars. Pure. */
#ifndef PROTOND_VIEWER_SPARK_H
#define PROTOND_VIEWER_SPARK_H

#include <stdbool.h>

#include "text.h"

#define SPARK_MAX 64u

/* One column each: least is the lowest bar, most the highest; what is beyond is an arrow. ASCII unless utf8. */
void spark(struct text *t, const double *v, uint32_t n, double least, double most, bool utf8);
/* Where the highest bar should be: most, or, where a few tower over four fifths of them, so that these would have no bar, twice as high as
 * these. Of SPARK_MAX at most. */
double spark_top(const double *v, uint32_t n, double least, double most);

#endif
