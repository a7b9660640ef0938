/* SPDX-License-Identifier: MIT. codec.c: messages of the control protocol, written and read. */
#include "codec.h"

#include <stdlib.h>
#include <string.h>

#define CONTAINER_HEAD \
	5u /* array32 and map32: always this form, so that the count can be filled in */

/* --- writing */

void wire_buf_init(struct wire_buf *b, size_t max)
{
	*b = (struct wire_buf){.max = max};
}

void wire_buf_free(struct wire_buf *b)
{
	free(b->bytes);
	*b = (struct wire_buf){.max = b->max};
}

size_t wire_buf_room(const struct wire_buf *b)
{
	return b->failed != 0 || b->n > b->max ? 0 : b->max - b->n;
}

static int buf_write(void *arg, const char *p, size_t n)
{
	struct wire_buf *b = arg;
	size_t cap = b->cap;
	char *grown;

	if (b->failed != 0)
		return -1;
	if (n > wire_buf_room(b)) {
		b->failed = -EMSGSIZE;
		return -1;
	}
	while (cap < b->n + n)
		cap = cap == 0 ? 512 : cap * 2;
	if (cap != b->cap) {
		grown = realloc(b->bytes, cap);
		if (grown == NULL) {
			b->failed = -ENOMEM;
			return -1;
		}
		b->bytes = grown;
		b->cap = cap;
	}
	memcpy(b->bytes + b->n, p, n);
	b->n += n;
	return 0;
}

/* A packer for one value, which counts in the container that is open. */
static msgpack_packer packer(struct wire_buf *b)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, b, buf_write);
	if (b->depth > 0)
		b->open[b->depth - 1].n++;
	return pk;
}

static void container(struct wire_buf *b, bool map)
{
	static const char head[CONTAINER_HEAD];

	if (b->depth > 0)
		b->open[b->depth - 1].n++;
	if (b->depth == sizeof(b->open) / sizeof(b->open[0])) {
		b->failed = -E2BIG;
		return;
	}
	b->open[b->depth].at = b->n;
	b->open[b->depth].n = 0;
	b->open[b->depth].map = map;
	b->depth++;
	(void)buf_write(b, head, sizeof(head));
}

void wire_map(struct wire_buf *b)
{
	container(b, true);
}

void wire_array(struct wire_buf *b)
{
	container(b, false);
}

void wire_close(struct wire_buf *b)
{
	uint32_t n;
	uint8_t *p;

	if (b->depth == 0) {
		b->failed = -EINVAL;
		return;
	}
	b->depth--;
	if (b->failed != 0)
		return;
	n = b->open[b->depth].n / (b->open[b->depth].map ? 2 : 1);
	p = (uint8_t *)b->bytes + b->open[b->depth].at;
	p[0] = b->open[b->depth].map ? 0xdf : 0xdd;
	p[1] = (uint8_t)(n >> 24);
	p[2] = (uint8_t)(n >> 16);
	p[3] = (uint8_t)(n >> 8);
	p[4] = (uint8_t)n;
}

void wire_nil(struct wire_buf *b)
{
	msgpack_packer pk = packer(b);

	msgpack_pack_nil(&pk);
}

void wire_bool(struct wire_buf *b, bool v)
{
	msgpack_packer pk = packer(b);

	(void)(v ? msgpack_pack_true(&pk) : msgpack_pack_false(&pk));
}

void wire_u64(struct wire_buf *b, uint64_t v)
{
	msgpack_packer pk = packer(b);

	msgpack_pack_uint64(&pk, v);
}

void wire_i64(struct wire_buf *b, int64_t v)
{
	msgpack_packer pk = packer(b);

	msgpack_pack_int64(&pk, v);
}

void wire_f64(struct wire_buf *b, double v)
{
	msgpack_packer pk = packer(b);

	msgpack_pack_double(&pk, v);
}

void wire_strn(struct wire_buf *b, const char *s, size_t n)
{
	msgpack_packer pk = packer(b);

	msgpack_pack_str(&pk, n);
	msgpack_pack_str_body(&pk, s, n);
}

void wire_str(struct wire_buf *b, const char *s)
{
	if (s == NULL)
		wire_nil(b);
	else
		wire_strn(b, s, strlen(s));
}

void wire_bin(struct wire_buf *b, const void *p, size_t n)
{
	msgpack_packer pk = packer(b);

	msgpack_pack_bin(&pk, n);
	msgpack_pack_bin_body(&pk, p, n);
}

void wire_raw(struct wire_buf *b, const char *packed, size_t n, uint32_t n_values)
{
	if (n == 0 || buf_write(b, packed, n) < 0 || b->depth == 0)
		return;
	b->open[b->depth - 1].n += n_values;
}

void wire_kv_bool(struct wire_buf *b, const char *key, bool v)
{
	wire_str(b, key);
	wire_bool(b, v);
}

void wire_kv_u64(struct wire_buf *b, const char *key, uint64_t v)
{
	wire_str(b, key);
	wire_u64(b, v);
}

void wire_kv_i64(struct wire_buf *b, const char *key, int64_t v)
{
	wire_str(b, key);
	wire_i64(b, v);
}

void wire_kv_f64(struct wire_buf *b, const char *key, double v)
{
	wire_str(b, key);
	wire_f64(b, v);
}

void wire_kv_str(struct wire_buf *b, const char *key, const char *s)
{
	wire_str(b, key);
	wire_str(b, s);
}

void wire_kv_bin(struct wire_buf *b, const char *key, const void *p, size_t n)
{
	wire_str(b, key);
	wire_bin(b, p, n);
}

static void frame_begin(struct wire_buf *b)
{
	static const char header[WIRE_HEADER];

	b->n = 0;
	b->failed = 0;
	b->depth = 0;
	(void)buf_write(b, header, sizeof(header));
	wire_array(b);
}

void wire_request(struct wire_buf *b, uint32_t msgid, const char *method)
{
	frame_begin(b);
	wire_u64(b, WIRE_REQUEST);
	wire_u64(b, msgid);
	wire_str(b, method);
}

void wire_response(struct wire_buf *b, uint32_t msgid)
{
	frame_begin(b);
	wire_u64(b, WIRE_RESPONSE);
	wire_u64(b, msgid);
	wire_nil(b);
}

void wire_failure(struct wire_buf *b, uint32_t msgid, const struct err *e, const char *next)
{
	frame_begin(b);
	wire_u64(b, WIRE_RESPONSE);
	wire_u64(b, msgid);
	wire_map(b);
	wire_kv_i64(b, "code", e->code);
	wire_kv_str(b, "text", e->text);
	wire_kv_str(b, "next", next != NULL ? next : "");
	wire_close(b);
	wire_nil(b);
}

int wire_frame_end(struct wire_buf *b)
{
	size_t n;

	while (b->depth > 0)
		wire_close(b);
	if (b->failed != 0)
		return b->failed;
	n = b->n - WIRE_HEADER;
	if (n > WIRE_FRAME_MAX)
		return -EMSGSIZE;
	b->bytes[0] = (char)(n & 0xff);
	b->bytes[1] = (char)(n >> 8 & 0xff);
	b->bytes[2] = (char)(n >> 16 & 0xff);
	b->bytes[3] = (char)(n >> 24 & 0xff);
	return 0;
}

/* --- reading */

static bool is_u32(const msgpack_object *o)
{
	return o->type == MSGPACK_OBJECT_POSITIVE_INTEGER && o->via.u64 <= UINT32_MAX;
}

static bool take_method(const msgpack_object *o, struct wire_msg *m)
{
	m->method_bytes = o->type == MSGPACK_OBJECT_STR ? o->via.str.size : 0;
	m->method = m->method_bytes > 0 ? o->via.str.ptr : "";
	return o->type == MSGPACK_OBJECT_STR;
}

static bool take_params(const msgpack_object *o, struct wire_msg *m)
{
	m->params = o;
	return o->type == MSGPACK_OBJECT_MAP;
}

/* Whether a[0..n) is one of the three messages. */
static bool message_shape(const msgpack_object *a, uint32_t n, struct wire_msg *m)
{
	if (n < 3 || !is_u32(&a[0]))
		return false;
	switch (a[0].via.u64) {
	case WIRE_REQUEST:
		m->type = WIRE_REQUEST;
		m->msgid = (uint32_t)a[1].via.u64;
		return n == 4 && is_u32(&a[1]) && take_method(&a[2], m) && take_params(&a[3], m);
	case WIRE_RESPONSE:
		m->type = WIRE_RESPONSE;
		m->msgid = (uint32_t)a[1].via.u64;
		if (n != 4 || !is_u32(&a[1]))
			return false;
		m->error = a[2].type == MSGPACK_OBJECT_NIL ? NULL : &a[2];
		m->result = &a[3];
		return true;
	case WIRE_NOTIFICATION:
		m->type = WIRE_NOTIFICATION;
		return n == 3 && take_method(&a[1], m) && take_params(&a[2], m);
	default:
		return false;
	}
}

int wire_parse(const char *p, size_t n, struct wire_msg *ret, struct err *e)
{
	struct wire_msg m = {.type = WIRE_REQUEST};
	size_t off = 0;
	int r = wire_check(p, n);

	if (r == -E2BIG)
		return err_set(e, r,
			"the message is nested deeper than %u or has more than %u objects",
			WIRE_DEPTH_MAX, WIRE_OBJECTS_MAX);
	if (r < 0)
		return err_set(e, r, "the message is not MessagePack");
	msgpack_unpacked_init(&m.owned);
	if (msgpack_unpack_next(&m.owned, p, n, &off) != MSGPACK_UNPACK_SUCCESS) {
		wire_msg_free(&m);
		return err_set(e, -ENOMEM, "the message could not be unpacked");
	}
	if (m.owned.data.type != MSGPACK_OBJECT_ARRAY ||
		!message_shape(m.owned.data.via.array.ptr, m.owned.data.via.array.size, &m)) {
		wire_msg_free(&m);
		return err_set(e, -EBADMSG,
			"the message is not [0, msgid, method, params map] or its answer");
	}
	*ret = m;
	return 0;
}

void wire_msg_free(struct wire_msg *m)
{
	msgpack_unpacked_destroy(&m->owned);
	*m = (struct wire_msg){.type = WIRE_REQUEST};
}

const msgpack_object *wire_get(const msgpack_object *map, const char *key)
{
	const size_t n = strlen(key);
	uint32_t i;

	if (map == NULL || map->type != MSGPACK_OBJECT_MAP)
		return NULL;
	for (i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *kv = &map->via.map.ptr[i];

		if (kv->key.type == MSGPACK_OBJECT_STR && kv->key.via.str.size == n &&
			(n == 0 ||
				memcmp(kv->key.via.str.ptr, key, n) == 0)) /* "" has no pointer */
			return kv->val.type == MSGPACK_OBJECT_NIL ? NULL : &kv->val;
	}
	return NULL;
}

static int copy_bytes(char *ret, const char *p, size_t n)
{
	if (n > 0)
		memcpy(ret, p, n);
	ret[n] = '\0';
	return 0;
}

int wire_get_str(const msgpack_object *map, const char *key, char *ret, size_t n)
{
	const msgpack_object *o = wire_get(map, key);

	if (o == NULL)
		return 0;
	if (o->type != MSGPACK_OBJECT_STR || o->via.str.size >= n)
		return -EINVAL;
	if (o->via.str.size > 0 && memchr(o->via.str.ptr, 0, o->via.str.size) != NULL)
		return -EINVAL;
	return copy_bytes(ret, o->via.str.ptr, o->via.str.size);
}

int wire_get_u64(const msgpack_object *map, const char *key, uint64_t *ret)
{
	const msgpack_object *o = wire_get(map, key);

	if (o == NULL)
		return 0;
	if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
		return -EINVAL;
	*ret = o->via.u64;
	return 0;
}

int wire_get_bool(const msgpack_object *map, const char *key, bool *ret)
{
	const msgpack_object *o = wire_get(map, key);

	if (o == NULL)
		return 0;
	if (o->type != MSGPACK_OBJECT_BOOLEAN)
		return -EINVAL;
	*ret = o->via.boolean;
	return 0;
}

int wire_get_bin(const msgpack_object *map, const char *key, void *ret, size_t n)
{
	const msgpack_object *o = wire_get(map, key);

	if (o == NULL)
		return 0;
	if (o->type != MSGPACK_OBJECT_BIN || o->via.bin.size != n)
		return -EINVAL;
	memcpy(ret, o->via.bin.ptr, n);
	return 0;
}

uint64_t wire_u64_or(const msgpack_object *map, const char *key, uint64_t or)
{
	const msgpack_object *o = wire_get(map, key);

	return o != NULL && o->type == MSGPACK_OBJECT_POSITIVE_INTEGER ? o->via.u64 : or ;
}

int64_t wire_i64_or(const msgpack_object *map, const char *key, int64_t or)
{
	const msgpack_object *o = wire_get(map, key);

	if (o != NULL && o->type == MSGPACK_OBJECT_POSITIVE_INTEGER && o->via.u64 <= INT64_MAX)
		return (int64_t)o->via.u64;
	return o != NULL && o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER ? o->via.i64 : or ;
}

double wire_f64_or(const msgpack_object *map, const char *key, double or)
{
	const msgpack_object *o = wire_get(map, key);

	if (o == NULL)
		return or ;
	if (o->type == MSGPACK_OBJECT_FLOAT32 || o->type == MSGPACK_OBJECT_FLOAT64)
		return o->via.f64;
	if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
		return (double)o->via.u64;
	return or ;
}

const char *wire_text(const msgpack_object *map, const char *key, char *buf, size_t n)
{
	const msgpack_object *o = wire_get(map, key);
	size_t bytes = o != NULL && o->type == MSGPACK_OBJECT_STR ? o->via.str.size : 0;

	if (bytes >= n)
		bytes = n - 1;
	if (bytes > 0)
		memcpy(buf, o->via.str.ptr, bytes);
	buf[bytes] = '\0';
	return buf;
}
