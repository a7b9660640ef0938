/* SPDX-License-Identifier: MIT. cupti_dump_file.h: the file that PROTOND_RAW_DUMP writes;
 * docs/replay.md has it in words. cupti_dump.c and tests/replay include it.
 *
 * A file is a header and then chunks, each 8-aligned: struct dump_chunk, `bytes` of payload, zeroes
 * up to the next multiple of 8. `seq` orders the chunks in time; in the file they may stand a
 * little out of order, but a STRING and a DEVICE before the first chunk that names them.
 * Little-endian.
 */
#ifndef PROTOND_CUPTI_DUMP_FILE_H
#define PROTOND_CUPTI_DUMP_FILE_H

#include <stdint.h>

#define DUMP_MAGIC      0x3149545055434450ull /* "PDCUPTI1" */
#define DUMP_VERSION    1u
#define DUMP_STRIDES    64u
#define DUMP_LEVELS_MAX 300u /* of a path */

struct dump_header {
	uint64_t magic;
	uint32_t version;
	uint32_t cupti_version, driver_version;
	uint32_t flags;                /* enum dump_flags */
	uint16_t stride[DUMP_STRIDES]; /* bytes of a record, by kind; 0 unknown */
};

enum dump_flags {
	DUMP_OF_REPLAY = 1, /* written while a dump was played back: proves the writer, not CUPTI */
	DUMP_SYNTHETIC = 2, /* made by tests/replay/gen */
};

enum dump_type {
	DUMP_STRING = 1,   /* struct dump_string, text */
	DUMP_DEVICE = 2,   /* struct ring_device */
	DUMP_LEVEL = 3,    /* struct dump_level */
	DUMP_CALLBACK = 4, /* struct dump_callback, n_path × struct dump_step */
	DUMP_BUFFER = 5,   /* struct dump_buffer, n_fixups × struct dump_fixup, the bytes */
	DUMP_FLUSH = 6,    /* struct dump_flush */
};

struct dump_chunk {
	uint32_t type; /* enum dump_type; unknown ones are skipped */
	uint32_t bytes;
	uint64_t seq;
};

struct dump_string {
	uint32_t id; /* 1, 2, 3, ...; 0 is "no string" */
	uint32_t bytes;
};

struct dump_level {
	uint32_t level; /* 0 none, 1 armed, 2 on */
	uint32_t pad0;
};

struct dump_callback {
	uint32_t domain, cbid, site, correlation;
	uint32_t thread; /* 0, 1, 2, ... in the order of appearance */
	uint32_t symbol; /* string id */
	uint32_t context;
	int32_t ret;
	uint64_t node, original; /* DUMP_PARAMS: the event's handle, the stream's */
	uint32_t graph, exec;    /* DUMP_PARAMS: the stream's number by CUPTI; UINT32_MAX: none */
	uint64_t realtime_ns;
	uint32_t n_path;
	uint32_t flags; /* enum dump_callback_flags */
};

enum dump_callback_flags { DUMP_PARAMS = 1 }; /* the end of a call of a stream or an event */

enum dump_step_kind { STEP_SCOPE = 1, STEP_STATE = 2, STEP_OP = 3 };

struct dump_step {
	uint32_t kind; /* enum dump_step_kind; scopes first, then at most one state and one op */
	uint32_t name; /* string id */
};

struct dump_buffer {
	uint64_t valid;
	uint32_t forced; /* delivered while FlushAll(1) ran */
	uint32_t n_fixups;
};

struct dump_fixup { /* an 8-byte pointer to text in the bytes, which are zero there */
	uint32_t offset, string;
};

struct dump_flush {
	uint32_t force, begin;
};

#endif
