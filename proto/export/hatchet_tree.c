/* SPDX-License-Identifier: MIT. hatchet_tree.c: the tree in a .hatchet file, of JSON or
 * MessagePack. No I/O. */
#include "hatchet_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
	/* The file names no kinds: a leaf with GPU time is a kernel, one with copies' time a copy. */
	if (json_array_size(children) == 0 && json_object_get(metrics, "time (ns)") != NULL)
		kind = NODE_KERNEL;
	else if (json_array_size(children) == 0 &&
		 json_object_get(metrics, "copy_time (ns)") != NULL)
		kind = gpu_class_of_leaf(text) == CLASS_MEMSET ? NODE_SET : NODE_COPY;
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
		snprintf(text, sizeof(text), "%s", json_string_value(arch));
	else if (json_is_integer(arch))
		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(arch));
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

/* --- the file */

int hatchet_tree_read(json_t *file, struct profile **ret_profile, struct err *e)
{
	struct reader r = {.e = e, .p = profile_new(), .index = json_object()};
	json_t *root = json_array_get(file, 0);
	int ret = 0;

	if (r.p == NULL || r.index == NULL)
		ret = err_set(e, -ENOMEM, "out of memory");
	else if (!json_is_object(root))
		ret = bad(&r, "it is not a list that begins with a tree");
	if (ret == 0)
		ret = walk(&r, root);
	if (ret == 0 && profile_reserve(r.p, r.n_nodes) < 0)
		ret = err_set(e, -ENOMEM, "out of memory for so many nodes and metrics");
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
