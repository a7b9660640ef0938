/* SPDX-License-Identifier: MIT. spark.h: numbers as a line of bars. Pure. */
#ifndef PROTOND_VIEWER_SPARK_H
#define PROTOND_VIEWER_SPARK_H

#include <stdbool.h>

#include "text.h"

/* One column each: least is the lowest bar, most the highest. ASCII unless utf8. */
void spark(struct text *t, const double *v, uint32_t n, double least, double most, bool utf8);

#endif
