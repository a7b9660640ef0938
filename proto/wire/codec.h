/* SPDX-License-Identifier: MIT. codec.h: frames and MessagePack of the control protocol, bounded.
 *
 * Writing goes into a wire_buf: open a container, write keys and values, close it; the counts are
 * kept here, so they cannot be wrong. A buffer that would pass its ceiling fails for good and says
 * so at wire_frame_end(). Reading checks the whole frame (depth, number of objects, every length
 * against the bytes that are there, no ext types, nothing behind the message) before an object is
 * built. Single-threaded; no I/O. */
#ifndef PROTOND_WIRE_CODEC_H
#define PROTOND_WIRE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <msgpack.h>

#include "err.h"
#include "wire.h"

#define WIRE_REQUEST_MAX (64u << 10) /* what the daemon reads of one request */
#define WIRE_HEADER      4u          /* the length before a frame */

/* --- writing */

struct wire_buf {
	char *bytes; /* owned */
	size_t n, cap, max;
	int failed; /* -errno of the first failure; writes are ignored from then on */
	uint32_t depth;
	struct {
		size_t at; /* of the container's header */
		uint32_t n;
		bool map;
	} open[WIRE_DEPTH_MAX + 4];
};

void wire_buf_init(struct wire_buf *b, size_t max);
void wire_buf_free(struct wire_buf *b);         /* zeroed is fine */
size_t wire_buf_room(const struct wire_buf *b); /* bytes left below the ceiling */

void wire_map(struct wire_buf *b);
void wire_array(struct wire_buf *b);
void wire_close(struct wire_buf *b); /* the innermost container */
void wire_nil(struct wire_buf *b);
void wire_bool(struct wire_buf *b, bool v);
void wire_u64(struct wire_buf *b, uint64_t v);
void wire_i64(struct wire_buf *b, int64_t v);
void wire_f64(struct wire_buf *b, double v);
void wire_str(struct wire_buf *b, const char *s); /* NULL: nil */
void wire_strn(struct wire_buf *b, const char *s, size_t n);
void wire_bin(struct wire_buf *b, const void *p, size_t n);
/* n_values values that another buffer packed. */
void wire_raw(struct wire_buf *b, const char *packed, size_t n, uint32_t n_values);

/* key and value */
void wire_kv_bool(struct wire_buf *b, const char *key, bool v);
void wire_kv_u64(struct wire_buf *b, const char *key, uint64_t v);
void wire_kv_i64(struct wire_buf *b, const char *key, int64_t v);
void wire_kv_f64(struct wire_buf *b, const char *key, double v);
void wire_kv_str(struct wire_buf *b, const char *key, const char *s);
void wire_kv_bin(struct wire_buf *b, const char *key, const void *p, size_t n);

/* A request up to its params, which the caller writes as one value; then wire_frame_end(). */
void wire_request(struct wire_buf *b, uint32_t msgid, const char *method);
/* A response up to its result (one value), or a whole one with an error. */
void wire_response(struct wire_buf *b, uint32_t msgid);
void wire_failure(struct wire_buf *b, uint32_t msgid, const struct err *e, const char *next);
/* Fills in the length. 0; -EMSGSIZE over the ceiling; -ENOMEM. */
int wire_frame_end(struct wire_buf *b);

/* --- reading */

enum wire_type { WIRE_REQUEST = 0, WIRE_RESPONSE = 1, WIRE_NOTIFICATION = 2 };

struct wire_msg {
	enum wire_type type;
	uint32_t msgid;
	const char *method; /* not NUL-terminated */
	size_t method_bytes;
	const msgpack_object *params; /* a map; of a request or a notification */
	const msgpack_object *error;  /* NULL: none */
	const msgpack_object *result; /* any */
	msgpack_unpacked owned;
};

/* Reads the message in p[0..n) (without the length). The message points into p. 0, or as
 * wire_check(), with words. */
int wire_parse(const char *p, size_t n, struct wire_msg *ret, struct err *e);
void wire_msg_free(struct wire_msg *m); /* zeroed is fine */

/* Values of a map (NULL or another type is an empty map). A missing key leaves *ret alone and is 0;
 * a value of another type, out of range or too long for the buffer is -EINVAL. */
const msgpack_object *wire_get(const msgpack_object *map, const char *key); /* NULL: none or nil */
int wire_get_str(const msgpack_object *map, const char *key, char *ret, size_t n);
int wire_get_u64(const msgpack_object *map, const char *key, uint64_t *ret);
int wire_get_bool(const msgpack_object *map, const char *key, bool *ret);
int wire_get_bin(const msgpack_object *map, const char *key, void *ret, size_t n); /* exactly n */

/* For showing: the value, or the given default whatever the type is. */
uint64_t wire_u64_or(const msgpack_object *map, const char *key, uint64_t or);
int64_t wire_i64_or(const msgpack_object *map, const char *key, int64_t or);
double wire_f64_or(const msgpack_object *map, const char *key, double or);
/* NUL-terminated copy, cut to fit; "" when there is none. Returns buf. */
const char *wire_text(const msgpack_object *map, const char *key, char *buf, size_t n);

#endif
