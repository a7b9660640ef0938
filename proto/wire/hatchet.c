/* SPDX-License-Identifier: MIT. hatchet.c: Triton Proton's .hatchet, read and written. No I/O.
 *
 *   "\n" [ ROOT node, {"CUDA": {"0": {arch, bus_width, clock_rate, memory_clock_rate, num_sms}}} ]
 * "\n" node: {"children": [...], "frame": {"name", "type": "function"}, "metrics": {name: value}}
 *
 * Four spaces an indent, keys sorted by byte. ROOT carries a 0 for each inclusive metric: that, and
 * nothing else, tells a reader which metrics parents sum.
 */
#include <jansson.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"
#include "text.h"

#define FILE_MAX ((size_t)1 << 30)

/* --- writing
 * -------------------------------------------------------------------------------------- */

struct writer {
	const struct profile *p;
	uint32_t order[PROFILE_METRICS_MAX]; /* metrics sorted by name */
	bool hint[PROFILE_METRICS_MAX];      /* ROOT shows a 0 for it */
	struct text out;
};

static void indent(struct text *t, uint32_t level)
{
	static const char spaces[] =
		"                                                                ";
	size_t n = (size_t)level * 4, some;

	for (; n > 0; n -= some) {
		some = n < sizeof(spaces) - 1 ? n : sizeof(spaces) - 1;
		text_add(t, spaces, some);
	}
}

static void line(struct text *t, uint32_t level, const char *s)
{
	text_char(t, '\n');
	indent(t, level);
	text_str(t, s);
}

static void put_value(struct text *t, const struct value *v, uint32_t level)
{
	uint32_t i;

	switch (v->type) {
	case VALUE_I64:
		text_fmt(t, "%lld", (long long)v->i);
		break;
	case VALUE_U64:
		text_fmt(t, "%llu", (unsigned long long)v->u);
		break;
	case VALUE_F64:
		text_json_f64(t, v->f);
		break;
	case VALUE_STR:
		text_json(t, v->s);
		break;
	default:
		text_char(t, '[');
		for (i = 0; i < v->n; i++) {
			line(t, level + 1, "");
			text_json_f64(t, v->v[i]);
			if (i + 1 < v->n)
				text_char(t, ',');
		}
		if (v->n > 0)
			line(t, level, "");
		text_char(t, ']');
	}
}

static void put_metrics(struct writer *w, uint32_t node, uint32_t level)
{
	static const struct value zero = {.type = VALUE_I64};
	const struct value *v;
	bool any = false;
	uint32_t i, m;

	text_char(&w->out, '{');
	for (i = 0; i < w->p->n_metrics; i++) {
		m = w->order[i];
		v = profile_value(w->p, node, m);
		if (v->type == VALUE_NONE && node == 0 && w->hint[m])
			v = &zero;
		if (v->type == VALUE_NONE)
			continue;
		if (any)
			text_char(&w->out, ',');
		line(&w->out, level + 1, "");
		any = true;
		text_json(&w->out, w->p->metric[m].name);
		text_str(&w->out, ": ");
		put_value(&w->out, v, level + 1);
	}
	if (any)
		line(&w->out, level, "");
	text_char(&w->out, '}');
}

static void open_node(struct writer *w, uint32_t node, uint32_t level)
{
	line(&w->out, level, "{");
	line(&w->out, level + 1, "\"children\": [");
	if (w->p->node[node].first_child == PROFILE_NONE)
		text_char(&w->out, ']');
}

static void close_node(struct writer *w, uint32_t node, uint32_t level)
{
	struct text *t = &w->out;

	if (w->p->node[node].first_child != PROFILE_NONE)
		line(t, level + 1, "]");
	text_char(t, ',');
	line(t, level + 1, "\"frame\": {");
	line(t, level + 2, "\"name\": ");
	text_json(t, w->p->node[node].name);
	text_char(t, ',');
	line(t, level + 2, "\"type\": \"function\"");
	line(t, level + 1, "},");
	line(t, level + 1, "\"metrics\": ");
	put_metrics(w, node, level + 1);
	line(t, level, "}");
}

/* A node's level is 1 at ROOT and grows by two: a list and an object a generation. */
static void put_tree(struct writer *w)
{
	const struct profile_node *node = w->p->node;
	uint32_t at = 0, level = 1;

	open_node(w, 0, level);
	for (;;) {
		if (node[at].first_child != PROFILE_NONE) {
			at = node[at].first_child;
			level += 2;
			open_node(w, at, level);
			continue;
		}
		close_node(w, at, level);
		while (at != 0 && node[at].next_sibling == PROFILE_NONE) {
			at = node[at].parent;
			level -= 2;
			close_node(w, at, level);
		}
		if (at == 0)
			return;
		at = node[at].next_sibling;
		text_char(&w->out, ',');
		open_node(w, at, level);
	}
}

static int by_device(const void *a, const void *b)
{
	const struct profile_device *x = *(const struct profile_device *const *)a;
	const struct profile_device *y = *(const struct profile_device *const *)b;
	int r = strcmp(x->type, y->type);

	return r != 0 ? r : strcmp(x->id, y->id);
}

static void put_device(struct text *t, const struct profile_device *d)
{
	line(t, 3, "");
	text_json(t, d->id);
	text_str(t, ": {");
	line(t, 4, "\"arch\": ");
	text_json(t, d->arch_text);
	text_fmt(t, ",\n                \"bus_width\": %llu", (unsigned long long)d->bus_width);
	text_fmt(t, ",\n                \"clock_rate\": %llu", (unsigned long long)d->clock_khz);
	text_fmt(t, ",\n                \"memory_clock_rate\": %llu",
		(unsigned long long)d->memory_clock_khz);
	text_fmt(t, ",\n                \"num_sms\": %llu", (unsigned long long)d->num_sms);
	line(t, 3, "}");
}

/* free() it. NULL: no memory. */
static const struct profile_device **sorted_devices(const struct profile *p)
{
	const struct profile_device **order = calloc(p->n_devices + 1u, sizeof(*order));
	uint32_t i;

	for (i = 0; order != NULL && i < p->n_devices; i++)
		order[i] = &p->device[i];
	if (order != NULL)
		qsort(order, p->n_devices, sizeof(*order), by_device);
	return order;
}

static int put_devices(struct writer *w)
{
	const struct profile *p = w->p;
	const struct profile_device **order = sorted_devices(p);
	struct text *t = &w->out;
	uint32_t i;

	if (order == NULL)
		return -ENOMEM;
	line(t, 1, "{");
	for (i = 0; i < p->n_devices; i++) {
		if (i == 0 || strcmp(order[i]->type, order[i - 1]->type) != 0) {
			line(t, 2, "");
			text_json(t, order[i]->type);
			text_str(t, ": {");
		}
		put_device(t, order[i]);
		if (i + 1 == p->n_devices)
			line(t, 2, "}");
		else if (strcmp(order[i]->type, order[i + 1]->type) != 0)
			line(t, 2, "},");
		else
			text_char(t, ',');
	}
	if (p->n_devices > 0)
		line(t, 1, "");
	text_char(t, '}');
	free(order);
	return 0;
}

static void sort_metrics(struct writer *w)
{
	const struct profile *p = w->p;
	uint32_t i, j, n;

	for (i = 0; i < p->n_metrics; i++) {
		for (j = i; j > 0 && strcmp(p->metric[w->order[j - 1]].name, p->metric[i].name) > 0;
			j--)
			w->order[j] = w->order[j - 1];
		w->order[j] = i;
		w->hint[i] = p->metric[i].kind == KIND_INCLUSIVE;
		for (n = 0; n < p->n_nodes && w->hint[i]; n++)
			w->hint[i] = profile_value(p, n, i)->type < VALUE_STR;
	}
}

int hatchet_write(const struct profile *p, char **ret_text, size_t *ret_bytes)
{
	struct writer *w = calloc(1, sizeof(*w));
	int r;

	if (w == NULL)
		return -ENOMEM;
	w->p = p;
	sort_metrics(w);
	text_str(&w->out, "\n[");
	put_tree(w);
	text_char(&w->out, ',');
	r = put_devices(w);
	text_str(&w->out, "\n]\n");
	if (r == 0)
		r = text_take(&w->out, ret_text, ret_bytes);
	else
		text_fini(&w->out);
	free(w);
	return r;
}

/* --- writing MessagePack: [root, devices], a node's keys in the order frame, metrics, children
 * ----
 */

static void pack_str(msgpack_packer *k, const char *s)
{
	const size_t n = strlen(s);

	(void)msgpack_pack_str(k, n);
	(void)msgpack_pack_str_body(k, s, n);
}

static void pack_value(msgpack_packer *k, const struct value *v)
{
	uint32_t i;

	switch (v->type) {
	case VALUE_I64:
		(void)msgpack_pack_int64(k, v->i);
		break;
	case VALUE_U64:
		(void)msgpack_pack_uint64(k, v->u);
		break;
	case VALUE_F64:
		(void)msgpack_pack_double(k, v->f);
		break;
	case VALUE_STR:
		pack_str(k, v->s);
		break;
	default:
		(void)msgpack_pack_array(k, v->n);
		for (i = 0; i < v->n; i++)
			(void)msgpack_pack_double(k, v->v[i]);
	}
}

static void pack_metrics(const struct writer *w, msgpack_packer *k, uint32_t node)
{
	static const struct value zero = {.type = VALUE_I64};
	const struct value *v[PROFILE_METRICS_MAX];
	uint32_t i, m, n = 0;

	for (i = 0; i < w->p->n_metrics; i++) {
		m = w->order[i];
		v[i] = profile_value(w->p, node, m);
		if (v[i]->type == VALUE_NONE && node == 0 && w->hint[m])
			v[i] = &zero;
		n += v[i]->type != VALUE_NONE;
	}
	(void)msgpack_pack_map(k, n);
	for (i = 0; i < w->p->n_metrics; i++) {
		if (v[i]->type == VALUE_NONE)
			continue;
		pack_str(k, w->p->metric[w->order[i]].name);
		pack_value(k, v[i]);
	}
}

static void pack_node(const struct writer *w, msgpack_packer *k, uint32_t at)
{
	const struct profile_node *node = w->p->node;
	uint32_t c, n = 0;

	for (c = node[at].first_child; c != PROFILE_NONE; c = node[c].next_sibling)
		n++;
	(void)msgpack_pack_map(k, 3);
	pack_str(k, "frame");
	(void)msgpack_pack_map(k, 2);
	pack_str(k, "name");
	pack_str(k, node[at].name);
	pack_str(k, "type");
	pack_str(k, "function");
	pack_str(k, "metrics");
	pack_metrics(w, k, at);
	pack_str(k, "children");
	(void)msgpack_pack_array(k, n);
}

/* Children follow their parent's array head: no node has to be closed. */
static void pack_tree(const struct writer *w, msgpack_packer *k)
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
	(void)msgpack_pack_map(k, 5);
	pack_str(k, "clock_rate");
	(void)msgpack_pack_uint64(k, d->clock_khz);
	pack_str(k, "memory_clock_rate");
	(void)msgpack_pack_uint64(k, d->memory_clock_khz);
	pack_str(k, "bus_width");
	(void)msgpack_pack_uint64(k, d->bus_width);
	pack_str(k, "arch");
	pack_str(k, d->arch_text);
	pack_str(k, "num_sms");
	(void)msgpack_pack_uint64(k, d->num_sms);
}

static int pack_devices(const struct profile *p, msgpack_packer *k)
{
	const struct profile_device **order = sorted_devices(p);
	uint32_t i, n, types = 0;

	if (order == NULL)
		return -ENOMEM;
	for (i = 0; i < p->n_devices; i++)
		types += i == 0 || strcmp(order[i]->type, order[i - 1]->type) != 0;
	(void)msgpack_pack_map(k, types);
	for (i = 0; i < p->n_devices; i++) {
		if (i == 0 || strcmp(order[i]->type, order[i - 1]->type) != 0) {
			for (n = i; n < p->n_devices; n++)
				if (strcmp(order[n]->type, order[i]->type) != 0)
					break;
			pack_str(k, order[i]->type);
			(void)msgpack_pack_map(k, n - i);
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

int hatchet_write_msgpack(const struct profile *p, char **ret_bytes, size_t *ret_n)
{
	struct writer *w = calloc(1, sizeof(*w));
	msgpack_packer k;
	int r;

	if (w == NULL)
		return -ENOMEM;
	w->p = p;
	sort_metrics(w);
	msgpack_packer_init(&k, &w->out, pack_grow);
	(void)msgpack_pack_array(&k, 2);
	pack_tree(w, &k);
	r = pack_devices(p, &k);
	if (r == 0)
		r = text_take(&w->out, ret_bytes, ret_n);
	else
		text_fini(&w->out);
	free(w);
	return r;
}

/* --- reading
 * -------------------------------------------------------------------------------------- */

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
	double *numbers;
	int ret;

	if (n > UINT32_MAX)
		return bad(r, "a vector is too long");
	numbers = malloc((n + 1) * sizeof(*numbers));
	if (numbers == NULL)
		return err_set(r->e, -ENOMEM, "out of memory");
	for (i = 0; i < n; i++)
		numbers[i] = json_number_value(json_array_get(v, i));
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
	else if (strcmp(text, "<captured_at>") == 0)
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
	ret = parse(text, bytes, &file, e);
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
