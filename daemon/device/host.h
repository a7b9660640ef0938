/* SPDX-License-Identifier: MIT. host.h: the host's numbers, from /proc and /sys. For protond-device,
 * one thread. */
#ifndef PROTOND_HOST_H
#define PROTOND_HOST_H

#include "device_msg.h"

#define HOST_FILES 5

struct host {
	const char *root; /* what /proc and /sys are below; "": the machine's */
	uint64_t before[DEVICE_N], known;
	int fd[HOST_FILES]; /* of /proc, which stay open; 0: not tried yet, -1: not there */
};

/* Fills in the host's quantities: what its counters rose by since the last call, those that were
 * known then. */
void host_read(struct host *h, struct device_reading *ret);

#endif
