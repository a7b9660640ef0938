/* SPDX-License-Identifier: MIT. device_msg.h: what protond-device says, one message a packet of a
 * SEQPACKET socket, and what it is asked for. Whoever reads it checks it (device_reading_is_sane()).
 */
#ifndef PROTOND_ABI_DEVICE_MSG_H
#define PROTOND_ABI_DEVICE_MSG_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device_terms.h"

#define DEVICE_MAGIC     0x31564450u /* "PDV1" */
#define DEVICE_GPUS_MAX  64u
#define DEVICE_HOST      UINT32_MAX /* gpu: of the host */
#define DEVICE_PROCESSES 32u        /* of a GPU, in one reading */
#define DEVICE_HZ_MAX    10u

enum device_kind { DEVICE_READING = 1, DEVICE_TROUBLE = 2, DEVICE_WANT = 3 };

struct device_head {
	uint32_t magic;
	uint32_t kind; /* enum device_kind */
};

/* To the helper. */
struct device_want {
	struct device_head head;
	uint32_t hz; /* readings a second, at most DEVICE_HZ_MAX; 0: none until the next WANT */
	uint32_t pad0;
};

struct device_process {
	uint32_t pid, pad0; /* as NVML has it: of the host's namespace */
	uint64_t bytes;
};

/* From the helper: the host's, and one of each GPU. */
struct device_reading {
	struct device_head head;
	uint32_t gpu; /* as NVML counts them, or DEVICE_HOST */
	uint32_t n_processes;
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC: the reading before, and this one */
	uint64_t known;            /* bit q: value[q] was read */
	double value[DEVICE_N];    /* in the unit of device_terms.h */
	uint32_t pci_domain, pci_bus, pci_device, pad0;
	char name[64]; /* of the GPU */
	struct device_process process[DEVICE_PROCESSES];
};
_Static_assert(DEVICE_N <= 64, "a bit for each quantity");
_Static_assert(
	sizeof(struct device_process) == 16 &&
		sizeof(struct device_reading) == 40 + 8 * DEVICE_N + 80 + 16 * DEVICE_PROCESSES,
	"no hole in a reading");

/* From the helper, once for each trouble. */
struct device_said {
	struct device_head head;
	uint32_t trouble; /* enum device_trouble */
	int32_t code;     /* NVML's, or errno; 0 */
	char text[128];   /* what NVML or the loader says */
};

/* Text of another process: ends in a NUL within n. */
static inline bool device_text_ends(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (s[i] == '\0')
			return true;
	return false;
}

/* Bytes from a helper, which may lie: whatever is true of them later is checked here. */
static inline bool device_reading_is_sane(const void *bytes, size_t n, uint64_t now_ns)
{
	const struct device_reading *r = bytes;
	uint32_t i;

	if (n != sizeof(*r) || r->head.magic != DEVICE_MAGIC || r->head.kind != DEVICE_READING ||
		(r->gpu >= DEVICE_GPUS_MAX && r->gpu != DEVICE_HOST) ||
		r->n_processes > DEVICE_PROCESSES || r->begin_ns >= r->end_ns ||
		r->end_ns > now_ns || r->known >> DEVICE_N != 0 ||
		!device_text_ends(r->name, sizeof(r->name)))
		return false;
	for (i = 0; i < DEVICE_N; i++) {
		const bool of_host = device_words(i)->of == DEVICE_OF_HOST;

		if ((r->known >> i & 1) == 0)
			continue;
		if (of_host != (r->gpu == DEVICE_HOST) || !isfinite(r->value[i]) ||
			r->value[i] < 0 || r->value[i] > 1e18)
			return false;
	}
	return true;
}

static inline bool device_said_is_sane(const void *bytes, size_t n)
{
	const struct device_said *s = bytes;

	return n == sizeof(*s) && s->head.magic == DEVICE_MAGIC && s->head.kind == DEVICE_TROUBLE &&
	       device_text_ends(s->text, sizeof(s->text));
}

#endif
