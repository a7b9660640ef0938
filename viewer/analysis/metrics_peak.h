/* SPDX-License-Identifier: MIT. metrics_peak.h: peak arithmetic and memory rates of devices. Pure.
 */
#ifndef PROTOND_VIEWER_METRICS_PEAK_H
#define PROTOND_VIEWER_METRICS_PEAK_H

#include <stdint.h>

#include "err.h"
#include "profile.h"

/* Peak figures of a device, Proton's; -ENOTSUP with words for an architecture without any. */
int peak_flops(
	const struct profile_device *d, uint32_t width_bits, double *ret_per_s, struct err *e);
int peak_bytes(const struct profile_device *d, double *ret_per_s, struct err *e);

#endif
