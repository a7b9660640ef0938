/* SPDX-License-Identifier: MIT. gpu_report.h: what a job says of its GPU: the same bytes from the
 * backend through libprotond to the daemon. Job and daemon include it. */
#ifndef PROTOND_ABI_GPU_REPORT_H
#define PROTOND_ABI_GPU_REPORT_H

#include <stdint.h>

struct gpu_report {
	uint16_t state;  /* enum gpu_state */
	uint16_t vendor; /* enum gpu_vendor */
	int32_t code;    /* the vendor's, or -errno; 0 */
	uint32_t library_version;
	uint32_t driver_version; /* 0: no driver */
	char path[256];          /* of the vendor's library */
	char words[256];         /* why not, and what to do */
};
_Static_assert(sizeof(struct gpu_report) == 528, "rendezvous ABI");

#endif
