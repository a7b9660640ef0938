/* SPDX-License-Identifier: MIT. hatchet_read.c: Triton Proton's .hatchet, of JSON or of
 * MessagePack, whichever the bytes are. No I/O. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"

#define FILE_MAX  ((size_t)1 << 30)
#define DEPTH_MAX (2u * PROFILE_DEPTH_MAX + 64) /* of lists and maps */

struct reader {
	struct profile *p;
	struct err *e;
	json_t *index; /* metric name → number, for speed */
	bool adding;   /* second walk: nodes and values; the first counts nodes and finds metrics */
	uint32_t n_nodes;
};

static int bad(struct reader *r, const char *what)
{
	return err_set(r->e, -EBADMSG, "not a .hatchet profile: %s", what);
}

static uint8_t kind_of(const char *name, const json_t *v, bool root)
{
	if (json_is_string(v) || strcmp(name, "device_id") == 0 || strcmp(name, "device_type") == 0)
		return KIND_PROPERTY;
	return root ? KIND_INCLUSIVE : KIND_EXCLUSIVE;
}

static int find_metrics(struct reader *r, json_t *metrics, bool root)
{
	const char *name;
	json_t *v;
	uint32_t at;

	json_object_foreach(metrics, name, v)
	{
		if (json_is_null(v) || json_object_get(r->index, name) != NULL)
			continue;
		at = profile_add_metric(r->p, name, kind_of(name, v, root));
		if (at == PROFILE_NONE)
			return bad(r, "too many metrics");
		if (json_object_set_new_nocheck(r->index, name, json_integer(at)) < 0)
			return err_set(r->e, -ENOMEM, "out of memory");
	}
	return 0;
}

static int set_vector(struct reader *r, uint32_t node, uint32_t metric, const json_t *v)
{
	size_t n = json_array_size(v), i;
	const json_t *element;
	double *numbers;
	int ret;

	if (n > UINT32_MAX)
		return bad(r, "a vector is too long");
	numbers = malloc((n + 1) * sizeof(*numbers));
	if (numbers == NULL)
		return err_set(r->e, -ENOMEM, "out of memory");
	for (i = 0; i < n; i++) {
		element = json_array_get(v, i);
		numbers[i] = json_is_number(element) ? json_number_value(element) : (double)NAN;
	}
	ret = profile_set(r->p, node, metric,
		(struct value){.type = VALUE_VECTOR, .n = (uint32_t)n, .v = numbers});
	free(numbers);
	return ret < 0 ? err_set(r->e, ret, "out of memory") : 0;
}

static int set_metrics(struct reader *r, uint32_t node, json_t *metrics)
{
	const char *name;
	uint32_t at;
	json_t *v;
	int ret;

	json_object_foreach(metrics, name, v)
	{
		struct value set = {.type = VALUE_NONE};

		if (json_is_null(v))
			continue;
		at = (uint32_t)json_integer_value(json_object_get(r->index, name));
		if (json_is_array(v)) {
			ret = set_vector(r, node, at, v);
			if (ret < 0)
				return ret;
			continue;
		}
		if (json_is_integer(v))
			set = (struct value){.type = VALUE_I64, .i = json_integer_value(v)};
		else if (json_is_real(v))
			set = (struct value){.type = VALUE_F64, .f = json_real_value(v)};
		else if (json_is_string(v))
			set = (struct value){.type = VALUE_STR, .s = json_string_value(v)};
		if (profile_set(r->p, node, at, set) < 0)
			return err_set(r->e, -ENOMEM, "out of memory");
	}
	return 0;
}

/* One node of the file; *ret_at: its number, when adding. */
static int visit(struct reader *r, json_t *node, uint32_t parent, uint32_t *ret_at)
{
	json_t *name = json_object_get(json_object_get(node, "frame"), "name");
	json_t *metrics = json_object_get(node, "metrics"),
	       *children = json_object_get(node, "children");
	const char *text = json_string_value(name);
	uint8_t kind = NODE_SCOPE;

	if (text == NULL)
		return bad(r, "a node has no frame name");
	if (r->adding && strlen(text) != json_string_length(name)) /* NUL inside */
		text = profile_text(r->p, text, json_string_length(name));
	if (text == NULL)
		return err_set(r->e, -ENOMEM, "out of memory");
	if ((metrics != NULL && !json_is_object(metrics)) ||
		(children != NULL && !json_is_array(children)))
		return bad(r, "a node's metrics or children are of the wrong type");
	if (!r->adding) {
		if (r->n_nodes++ == PROFILE_NODES_MAX)
			return bad(r, "too many nodes");
		return find_metrics(r, metrics, parent == PROFILE_NONE);
	}
	if (parent == PROFILE_NONE) {
		*ret_at = 0;
		r->p->node[0].name = profile_text(r->p, text, strlen(text));
		if (r->p->node[0].name == NULL)
			return err_set(r->e, -ENOMEM, "out of memory");
		return set_metrics(r, 0, metrics);
	}
	/* The file names no kinds: a leaf with GPU time is a kernel. */
	if (json_array_size(children) == 0 && json_object_get(metrics, "time (ns)") != NULL)
		kind = NODE_KERNEL;
	else if (strcmp(text, NODE_CAPTURED_NAME) == 0)
		kind = NODE_CAPTURED;
	*ret_at = profile_add_node(r->p, parent, text, kind);
	if (*ret_at == PROFILE_NONE)
		return bad(r, "the tree is too deep or too large");
	r->p->node[*ret_at].class = kind == NODE_KERNEL ? CLASS_COMPUTE : 0;
	return set_metrics(r, *ret_at, metrics);
}

struct level {
	json_t *children;
	size_t next;
	uint32_t at;
};

static int walk(struct reader *r, json_t *root)
{
	struct level *stack = calloc(PROFILE_DEPTH_MAX + 1, sizeof(*stack)), *top;
	uint32_t depth = 0;
	json_t *child;
	int ret;

	if (stack == NULL)
		return err_set(r->e, -ENOMEM, "out of memory");
	stack[0].children = json_object_get(root, "children");
	ret = visit(r, root, PROFILE_NONE, &stack[0].at);
	while (ret == 0) {
		top = &stack[depth];
		if (top->next == json_array_size(top->children)) {
			if (depth-- == 0)
				break;
			continue;
		}
		child = json_array_get(top->children, top->next++);
		if (depth == PROFILE_DEPTH_MAX) {
			ret = bad(r, "the tree is too deep");
			break;
		}
		stack[++depth] = (struct level){.children = json_object_get(child, "children")};
		ret = visit(r, child, top->at, &stack[depth].at);
	}
	free(stack);
	return ret;
}

static uint64_t number_of(const json_t *device, const char *key)
{
	double v = json_number_value(json_object_get(device, key));

	return v >= 0 && v < 1e18 ? (uint64_t)v : 0;
}

static int read_device(struct reader *r, const char *type, const char *id, const json_t *v)
{
	const json_t *arch = json_object_get(v, "arch");
	struct profile *p = r->p;
	struct profile_device *d;
	char text[32] = "";

	if (p->n_devices == 65536)
		return bad(r, "too many devices");
	if ((p->n_devices & (p->n_devices - 1)) == 0) {
		d = realloc(p->device, (p->n_devices == 0 ? 1 : p->n_devices * 2u) * sizeof(*d));
		if (d == NULL)
			return err_set(r->e, -ENOMEM, "out of memory");
		p->device = d;
	}
	if (json_is_string(arch))
		(void)snprintf(text, sizeof(text), "%s", json_string_value(arch));
	else if (json_is_integer(arch))
		(void)snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(arch));
	d = &p->device[p->n_devices];
	*d = (struct profile_device){.type = profile_text(p, type, strlen(type)),
		.id = profile_text(p, id, strlen(id)),
		.name = "",
		.arch = (uint32_t)strtoul(text, NULL, 10),
		.arch_text = profile_text(p, text, strlen(text)),
		.num_sms = number_of(v, "num_sms"),
		.clock_khz = number_of(v, "clock_rate"),
		.memory_clock_khz = number_of(v, "memory_clock_rate"),
		.bus_width = number_of(v, "bus_width")};
	if (d->type == NULL || d->id == NULL || d->arch_text == NULL)
		return err_set(r->e, -ENOMEM, "out of memory");
	p->n_devices++;
	return 0;
}

static int read_devices(struct reader *r, json_t *types)
{
	const char *type, *id;
	json_t *devices, *v;
	int ret;

	json_object_foreach(types, type, devices)
	{
		json_object_foreach(devices, id, v)
		{
			ret = read_device(r, type, id, v);
			if (ret < 0)
				return ret;
		}
	}
	return 0;
}

/* --- MessagePack, into what a JSON parser gives. By hand: msgpack-c takes 32 levels, a tree has
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

	if (k->at == k->end || k->depth == DEPTH_MAX)
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

static bool is_msgpack(const char *bytes, size_t n)
{
	const uint8_t first = n > 0 ? (uint8_t)*bytes : 0;

	return (first & 0xf0) == 0x90 || first == 0xdc || first == 0xdd; /* a list */
}

static int parse_msgpack(const char *bytes, size_t n, json_t **ret, struct err *e)
{
	struct packed k = {.at = (const uint8_t *)bytes, .end = (const uint8_t *)bytes + n};

	*ret = unpack(&k);
	if (*ret != NULL && k.at == k.end)
		return 0;
	json_decref(*ret);
	if (k.no_memory)
		return err_set(e, -ENOMEM, "out of memory");
	return err_set(e, -EBADMSG, "not a .hatchet_msgpack profile: byte %zu of %zu",
		(size_t)(k.at - (const uint8_t *)bytes), n);
}

/* --- the file */

static int parse(const char *text, size_t bytes, json_t **ret, struct err *e)
{
	json_error_t je;

	*ret = json_loadb(text, bytes, JSON_ALLOW_NUL, &je);
	/* An unsigned count above 2^63: read again, whole numbers as doubles. */
	if (*ret == NULL && json_error_code(&je) == json_error_numeric_overflow)
		*ret = json_loadb(text, bytes, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &je);
	if (*ret == NULL && json_error_code(&je) == json_error_out_of_memory)
		return err_set(e, -ENOMEM, "out of memory");
	if (*ret == NULL)
		return err_set(
			e, -EBADMSG, "not a .hatchet profile: %s (line %d)", je.text, je.line);
	return 0;
}

int hatchet_read(const char *text, size_t bytes, struct profile **ret_profile, struct err *e)
{
	struct reader r = {.e = e};
	json_t *file, *root;
	int ret;

	if (bytes > FILE_MAX)
		return err_set(e, -EFBIG, "a .hatchet file over 1 GiB is not read");
	ret = (is_msgpack(text, bytes) ? parse_msgpack : parse)(text, bytes, &file, e);
	if (ret < 0)
		return ret;
	root = json_array_get(file, 0);
	r.p = profile_new();
	r.index = json_object();
	if (r.p == NULL || r.index == NULL)
		ret = err_set(e, -ENOMEM, "out of memory");
	else if (!json_is_object(root))
		ret = bad(&r, "it is not a list that begins with a tree");
	if (ret == 0)
		ret = walk(&r, root);
	if (ret == 0 && profile_reserve(r.p, r.n_nodes) < 0)
		ret = err_set(e, -ENOMEM, "nodes × metrics are too many");
	r.adding = true;
	if (ret == 0)
		ret = walk(&r, root);
	if (ret == 0)
		ret = read_devices(&r, json_array_get(file, 1));
	json_decref(r.index);
	json_decref(file);
	if (ret < 0) {
		profile_free(r.p);
		return ret;
	}
	r.p->head.source = "hatchet";
	*ret_profile = r.p;
	return 0;
}
