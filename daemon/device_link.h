/* SPDX-License-Identifier: MIT. device_link.h: the daemon's end of protond-device: a child of a private
 * daemon, a service of its own beside the service. It may be missing, hang, die or lie: its readings are
 * then missing, which is said once, and nothing else is. For the loop. Loop thread. */
#ifndef PROTOND_DAEMON_DEVICE_LINK_H
#define PROTOND_DAEMON_DEVICE_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct daemon;
struct entries;

#define DEVICE_HANGS_NS 10000000000ull
#define DEVICE_TRIES \
	6u /* then no more, until the daemon is started again; a minute of readings forgives */

struct device_link {
	struct daemon *d;
	struct entries *entries;
	int fd;               /* -1: there is none */
	uint32_t hz;          /* as last asked for */
	uint32_t tries, said; /* said: a bit for each trouble */
	uint64_t retry_ns, began_ns, heard_ns;
	bool lives;      /* the child, as far as we know */
	uv_poll_t *poll; /* closed and freed by itself */
	uv_process_t *child;
};

void device_second(struct device_link *l, uint64_t now_ns); /* once a second, or so */
void device_end(struct device_link *l);                     /* before the loop's end */

#endif
