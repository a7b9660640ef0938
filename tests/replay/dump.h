/* SPDX-License-Identifier: MIT. dump.h: a raw dump of CUPTI, read: its chunks in order of time. */
#ifndef REPLAY_DUMP_H
#define REPLAY_DUMP_H

#include <stddef.h>
#include <stdint.h>

#include "../../agent/backend/cupti/cupti_dump_file.h"

struct dump_item {
	enum dump_type type;
	uint64_t seq;
	const uint8_t *bytes; /* payload, 8-aligned */
	uint32_t n;
};

struct dump {
	struct dump_header header;
	struct dump_item *item; /* all but strings, by seq */
	size_t n_items;
	char **string; /* by id, NUL-terminated; [0] is NULL */
	uint32_t n_strings;
	uint32_t n_threads;
	uint8_t *file;
};

/* Reads and checks a whole file: what it holds is inside its bounds. 0; -errno of the file;
 * -EBADMSG. */
int dump_read(const char *path, struct dump *ret);
void dump_free(struct dump *d);

/* Views into an item of the right type; its counts are checked by dump_read(). */
const struct dump_step *dump_steps(const struct dump_item *i);
const struct dump_fixup *dump_fixups(const struct dump_item *i);
const uint8_t *dump_bytes(const struct dump_item *i); /* of a BUFFER */

#endif
