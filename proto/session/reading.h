/* SPDX-License-Identifier: MIT. reading.h: what a GPU or its host did while a session recorded: up to
 * READINGS_MAX readings as the bytes of a row of `reading`. Pure; any thread. */
#ifndef PROTOND_SESSION_READING_H
#define PROTOND_SESSION_READING_H

#include <stddef.h>
#include <stdint.h>

#include "device_terms.h"
#include "err.h"

#define READINGS_MAX 32u

struct reading_point {
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t known;            /* bit q: value[q] is */
	float value[DEVICE_N];
};

struct reading_gpu {
	uint32_t pci_domain, pci_bus, pci_device;
	char name[64]; /* "": of the host */
};

/* *ret is malloc()ed. -ENOMEM. */
int reading_pack(const struct reading_gpu *g, const struct reading_point *p, uint32_t n, void **ret,
	uint32_t *ret_n);
/* Bytes of a stranger's database: at most READINGS_MAX points, in order, all values finite. -EBADMSG with words,
 * -ENOMEM. Quantities that this program does not know are skipped. */
int reading_unpack(const void *bytes, size_t n, struct reading_gpu *ret_gpu,
	struct reading_point ret[READINGS_MAX], uint32_t *ret_n, struct err *e);

#endif
