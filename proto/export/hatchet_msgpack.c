/* SPDX-License-Identifier: MIT. hatchet_msgpack.c: the format hatchet_msgpack: the same tree as
 * .hatchet, as MessagePack: [root, devices], a node's keys in the order frame, metrics, children;
 * of its metrics a kernel's time, count and device, then all others by name.
 * No I/O. */
#include <jansson.h>
#include <math.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "export_format.h"
#include "hatchet_tree.h"
#include "hatchet_writer.h"

/* --- writing */

static void pack_str(msgpack_packer *k, const char *s)
{
	const size_t n = strlen(s);

	msgpack_pack_str(k, n);
	msgpack_pack_str_body(k, s, n);
}

static void pack_value(msgpack_packer *k, const struct value *v)
{
	uint32_t i;

	switch (v->type) {
	case VALUE_I64:
		msgpack_pack_int64(k, v->i);
		break;
	case VALUE_U64:
		msgpack_pack_uint64(k, v->u);
		break;
	case VALUE_F64:
		msgpack_pack_double(k, v->f);
		break;
	case VALUE_STR:
		pack_str(k, v->s);
		break;
	default:
		msgpack_pack_array(k, v->n);
		for (i = 0; i < v->n; i++)
			msgpack_pack_double(k, v->v[i]);
	}
}

static void pack_column(const struct hatchet_writer *w, msgpack_packer *k,
	const struct hatchet_column *c, uint32_t node)
{
	static const struct value zero = {.type = VALUE_I64};
	const uint32_t n = hatchet_elements(w, c, node);
	uint32_t i;

	if (c->owned != NULL)
		msgpack_pack_array(k, n);
	for (i = 0; i < n; i++)
		pack_value(k, profile_value(w->p, node, w->element[c->first + i]));
	if (n == 0)
		pack_value(k, &zero);
}

static void pack_metrics(const struct hatchet_writer *w, msgpack_packer *k, uint32_t node)
{
	const struct hatchet_column *c;
	uint32_t n = 0;

	for (c = w->column; c < w->column + w->n_columns; c++)
		n += hatchet_has(w, c, node);
	msgpack_pack_map(k, n);
	for (c = w->column; c < w->column + w->n_columns; c++) {
		if (!hatchet_has(w, c, node))
			continue;
		pack_str(k, c->name);
		pack_column(w, k, c, node);
	}
}

static void pack_node(const struct hatchet_writer *w, msgpack_packer *k, uint32_t at)
{
	const struct profile_node *node = w->p->node;
	uint32_t c, n = 0;

	for (c = node[at].first_child; c != PROFILE_NONE; c = node[c].next_sibling)
		n++;
	msgpack_pack_map(k, 3);
	pack_str(k, "frame");
	msgpack_pack_map(k, 2);
	pack_str(k, "name");
	pack_str(k, node[at].name);
	pack_str(k, "type");
	pack_str(k, "function");
	pack_str(k, "metrics");
	pack_metrics(w, k, at);
	pack_str(k, "children");
	msgpack_pack_array(k, n);
}

/* Children follow their parent's array head: no node has to be closed. */
static void pack_tree(const struct hatchet_writer *w, msgpack_packer *k)
{
	const struct profile_node *node = w->p->node;
	uint32_t at = 0;

	for (;;) {
		pack_node(w, k, at);
		if (node[at].first_child != PROFILE_NONE) {
			at = node[at].first_child;
			continue;
		}
		while (at != 0 && node[at].next_sibling == PROFILE_NONE)
			at = node[at].parent;
		if (at == 0)
			return;
		at = node[at].next_sibling;
	}
}

static void pack_device(msgpack_packer *k, const struct profile_device *d)
{
	pack_str(k, d->id);
	msgpack_pack_map(k, 5);
	pack_str(k, "clock_rate");
	msgpack_pack_uint64(k, d->clock_khz);
	pack_str(k, "memory_clock_rate");
	msgpack_pack_uint64(k, d->memory_clock_khz);
	pack_str(k, "bus_width");
	msgpack_pack_uint64(k, d->bus_width);
	pack_str(k, "arch");
	pack_str(k, d->arch_text);
	pack_str(k, "num_sms");
	msgpack_pack_uint64(k, d->num_sms);
}

static int pack_devices(const struct profile *p, msgpack_packer *k)
{
	const struct profile_device **order = hatchet_devices(p);
	uint32_t i, n, types = 0;

	if (order == NULL)
		return -ENOMEM;
	for (i = 0; i < p->n_devices; i++)
		types += i == 0 || strcmp(order[i]->type, order[i - 1]->type) != 0;
	msgpack_pack_map(k, types);
	for (i = 0; i < p->n_devices; i++) {
		if (i == 0 || strcmp(order[i]->type, order[i - 1]->type) != 0) {
			for (n = i; n < p->n_devices; n++)
				if (strcmp(order[n]->type, order[i]->type) != 0)
					break;
			pack_str(k, order[i]->type);
			msgpack_pack_map(k, n - i);
		}
		pack_device(k, order[i]);
	}
	free(order);
	return 0;
}

static int pack_grow(void *t, const char *bytes, size_t n)
{
	text_add(t, bytes, n); /* keeps that memory ran out, until text_take() */
	return 0;
}

int hatchet_msgpack_write(const struct profile *p, char **ret_bytes, size_t *ret_n)
{
	struct hatchet_writer *w = hatchet_writer_new(p);
	msgpack_packer k;
	int r;

	if (w == NULL)
		return -ENOMEM;
	hatchet_fixed_first(w);
	msgpack_packer_init(&k, &w->out, pack_grow);
	msgpack_pack_array(&k, 2);
	pack_tree(w, &k);
	r = pack_devices(p, &k);
	if (r == 0)
		r = text_take(&w->out, ret_bytes, ret_n);
	hatchet_writer_free(w);
	return r;
}

/* --- reading */

/* Into what a JSON parser gives. By hand: msgpack-c takes 32 levels, a tree has
 * hundreds. Every element takes a byte at least, so what a length promises costs nothing until it
 * is there. */

struct packed {
	const uint8_t *at, *end;
	uint32_t depth;
	bool no_memory;
};

static uint64_t big_endian(struct packed *k, uint32_t bytes)
{
	uint64_t v = 0;

	for (; bytes > 0; bytes--)
		v = v << 8 | *k->at++;
	return v;
}

static json_t *made(struct packed *k, json_t *v)
{
	k->no_memory |= v == NULL;
	return v;
}

static json_t *unpack(struct packed *k);

static json_t *unpack_text(struct packed *k, uint64_t n)
{
	json_t *v;

	if (n > (uint64_t)(k->end - k->at))
		return NULL;
	v = json_stringn((const char *)k->at, (size_t)n); /* NULL: no UTF-8, or no memory */
	k->at += n;
	return v;
}

static json_t *unpack_list(struct packed *k, uint64_t n)
{
	json_t *list = made(k, json_array()), *v;

	while (list != NULL && n-- > 0) {
		v = unpack(k);
		if (v == NULL || json_array_append_new(list, v) < 0) {
			k->no_memory |= v != NULL;
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *unpack_map(struct packed *k, uint64_t n)
{
	json_t *map = made(k, json_object()), *key, *v;

	while (map != NULL && n-- > 0) {
		key = unpack(k);
		v = json_is_string(key) ? unpack(k) : NULL;
		if (v == NULL || json_object_setn_new_nocheck(map, json_string_value(key),
					 json_string_length(key), v) < 0) {
			k->no_memory |= v != NULL;
			json_decref(map);
			map = NULL;
		}
		json_decref(key);
	}
	return map;
}

/* JSON has nothing that is not finite: where it stands there is no value, as in its files. */
static json_t *unpack_real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *unpack_f64(uint64_t bits)
{
	double f;

	memcpy(&f, &bits, sizeof(f));
	return unpack_real(f);
}

static json_t *unpack_f32(uint64_t bits)
{
	const uint32_t low = (uint32_t)bits;
	float f;

	memcpy(&f, &low, sizeof(f));
	return unpack_real((double)f);
}

static json_t *unpack_unsigned(uint64_t v)
{
	return v > INT64_MAX ? json_real((double)v) : json_integer((json_int_t)v);
}

/* The types with a length or a value of 1, 2, 4 or 8 bytes behind them. */
static json_t *unpack_wide(struct packed *k, uint8_t type)
{
	static const struct {
		uint8_t first, bytes; /* of the first of a row of types, each twice as wide */
	} rows[] = {{0xca, 4}, {0xcc, 1}, {0xd0, 1}, {0xd9, 1}, {0xdc, 2}, {0xde, 2}};
	static const uint8_t last[] = {0xcb, 0xcf, 0xd3, 0xdb, 0xdd, 0xdf};
	uint32_t i, bytes;
	uint64_t v;

	for (i = 0; i < sizeof(last) && type > last[i]; i++)
		;
	if (i == sizeof(last) || type < rows[i].first)
		return NULL;
	bytes = (uint32_t)rows[i].bytes << (type - rows[i].first);
	if (bytes > (uint64_t)(k->end - k->at))
		return NULL;
	v = big_endian(k, bytes);
	switch (i) {
	case 0:
		return bytes == 4 ? unpack_f32(v) : unpack_f64(v);
	case 1:
		return unpack_unsigned(v);
	case 2: /* the sign stands in the highest of its bits */
		return json_integer((json_int_t)(v << (64 - 8 * bytes)) >> (64 - 8 * bytes));
	case 3:
		return unpack_text(k, v);
	case 4:
		return unpack_list(k, v);
	default:
		return unpack_map(k, v);
	}
}

/* NULL: no such type, cut off, too deep, or out of memory. */
static json_t *unpack(struct packed *k)
{
	json_t *v = NULL;
	uint8_t type;

	if (k->at == k->end || k->depth == HATCHET_DEPTH_MAX)
		return NULL;
	k->depth++;
	type = *k->at++;
	if (type < 0x80)
		v = json_integer(type);
	else if (type >= 0xe0)
		v = json_integer((int8_t)type);
	else if (type >= 0xc4)
		v = unpack_wide(k, type);
	else if (type >= 0xc2)
		v = json_boolean(type == 0xc3);
	else if (type == 0xc0)
		v = json_null();
	else if (type >= 0xa0 && type < 0xc0)
		v = unpack_text(k, type & 0x1f);
	else if (type >= 0x90 && type < 0xa0)
		v = unpack_list(k, type & 0xf);
	else if (type < 0x90)
		v = unpack_map(k, type & 0xf);
	k->depth--;
	return v;
}

bool hatchet_msgpack_sniff(const char *bytes, size_t n)
{
	const uint8_t first = n > 0 ? (uint8_t)*bytes : 0;

	return (first & 0xf0) == 0x90 || first == 0xdc || first == 0xdd; /* a list */
}

static int parse(const char *bytes, size_t n, json_t **ret, struct err *e)
{
	struct packed k = {.at = (const uint8_t *)bytes, .end = (const uint8_t *)bytes + n};

	*ret = unpack(&k);
	if (*ret != NULL && k.at == k.end)
		return 0;
	json_decref(*ret);
	if (k.no_memory)
		return err_set(e, -ENOMEM, "out of memory");
	return err_set(e, -EBADMSG, "not a .hatchet_msgpack profile: invalid at byte %zu of %zu",
		(size_t)(k.at - (const uint8_t *)bytes), n);
}

int hatchet_msgpack_read(const char *bytes, size_t n, struct profile **ret_profile, struct err *e)
{
	json_t *file;
	int r;

	if (n > HATCHET_FILE_MAX)
		return err_set(e, -EFBIG, "a .hatchet file may have 1 GiB at most");
	r = parse(bytes, n, &file, e);
	return r < 0 ? r : hatchet_tree_read(file, ret_profile, e);
}
