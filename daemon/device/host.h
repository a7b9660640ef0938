/* SPDX-License-Identifier: MIT. host.h: the host's numbers, from /proc and /sys. For protond-device,
 * one thread. */
#ifndef PROTOND_HOST_H
#define PROTOND_HOST_H

#include "device_msg.h"

enum host_file { HOST_CPU, HOST_MEMORY, HOST_IO, HOST_NETWORK, HOST_DISKS, HOST_FILES };

struct host {
	const char *root; /* what /proc and /sys are below; "": the machine's */
	uint64_t before[DEVICE_N], known;
	int fd[HOST_FILES]; /* which stay open; 0: not yet */
};

/* Fills in the host's quantities: what its counters rose by since the last call, those that were
 * known then. */
void host_read(struct host *h, struct device_reading *ret);

#endif
