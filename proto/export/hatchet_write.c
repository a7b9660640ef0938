/* SPDX-License-Identifier: MIT. hatchet_write.c: Triton Proton's .hatchet, as JSON and as
 * MessagePack. No I/O.
 *
 *   "\n" [ ROOT node, {"CUDA": {"0": {arch, bus_width, clock_rate, memory_clock_rate, num_sms}}} ]
 * "\n" node: {"children": [...], "frame": {"name", "type": "function"}, "metrics": {name: value}}
 *
 * Four spaces an indent, keys sorted by byte. ROOT carries a 0 for each inclusive metric: that, and
 * nothing else, tells a reader which metrics parents sum.
 */
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"
#include "text.h"

/* What a file calls one metric: one of ours, or a vector, whose elements we keep apart: "v[0]
 * (bytes)", "v[1] (bytes)", … are its "v (bytes)". */
struct column {
	const char *name;
	char *owned;       /* the name of a vector; free() it */
	uint32_t first, n; /* place of the first metric in element[], and how many there are */
	bool hint;         /* ROOT shows a 0 for it */
};

struct writer {
	const struct profile *p;
	struct column column[PROFILE_METRICS_MAX]; /* by name */
	uint32_t element[PROFILE_METRICS_MAX], n_columns;
	struct text out;
};

static void writer_free(struct writer *w)
{
	uint32_t i;

	for (i = 0; i < w->n_columns; i++)
		free(w->column[i].owned);
	text_fini(&w->out);
	free(w);
}

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

/* How many of a column's elements the node has; they are the first ones. */
static uint32_t elements_of(const struct writer *w, const struct column *c, uint32_t node)
{
	uint32_t n = 0;

	while (n < c->n && profile_value(w->p, node, w->element[c->first + n])->type != VALUE_NONE)
		n++;
	return n;
}

static void put_column(struct writer *w, const struct column *c, uint32_t node, uint32_t level)
{
	static const struct value zero = {.type = VALUE_I64};
	const uint32_t n = elements_of(w, c, node);
	const struct value *v;
	uint32_t i;

	if (c->owned == NULL) {
		v = profile_value(w->p, node, w->element[c->first]);
		put_value(&w->out, v->type == VALUE_NONE ? &zero : v, level);
		return;
	}
	text_char(&w->out, '[');
	for (i = 0; i < n; i++) {
		line(&w->out, level + 1, "");
		put_value(&w->out, profile_value(w->p, node, w->element[c->first + i]), level + 1);
		if (i + 1 < n)
			text_char(&w->out, ',');
	}
	line(&w->out, level, "");
	text_char(&w->out, ']');
}

static bool has_column(const struct writer *w, const struct column *c, uint32_t node)
{
	return elements_of(w, c, node) > 0 || (node == 0 && c->hint);
}

static void put_metrics(struct writer *w, uint32_t node, uint32_t level)
{
	const struct column *c;
	bool any = false;

	text_char(&w->out, '{');
	for (c = w->column; c < w->column + w->n_columns; c++) {
		if (!has_column(w, c, node))
			continue;
		if (any)
			text_char(&w->out, ',');
		line(&w->out, level + 1, "");
		any = true;
		text_json(&w->out, c->name);
		text_str(&w->out, ": ");
		put_column(w, c, node, level + 1);
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

/* "v[7] (bytes)" → 7, how long "v" is, and where " (bytes)" begins; false: no such name. */
struct element {
	uint32_t k;
	size_t base;
	const char *rest;
};

static bool element_read(const char *name, struct element *ret)
{
	const char *open = strchr(name, '['), *at;

	if (open == NULL || open == name || (open[1] == '0' && open[2] != ']'))
		return false;
	*ret = (struct element){.base = (size_t)(open - name)};
	for (at = open + 1; *at >= '0' && *at <= '9' && ret->k < PROFILE_METRICS_MAX; at++)
		ret->k = ret->k * 10 + (uint32_t)(*at - '0');
	ret->rest = at + 1;
	return at > open + 1 && *at == ']' && (at[1] == '\0' || at[1] == ' ');
}

/* The metric of the same vector with this number. */
static uint32_t find_element(
	const struct profile *p, const char *name, const struct element *of, uint32_t k)
{
	struct element e;
	uint32_t i;

	for (i = 0; i < p->n_metrics; i++)
		if (element_read(p->metric[i].name, &e) && e.k == k && e.base == of->base &&
			memcmp(p->metric[i].name, name, e.base) == 0 &&
			strcmp(e.rest, of->rest) == 0)
			return i;
	return PROFILE_NONE;
}

/* Whether each node has the first so many of its elements, or none. */
static bool has_no_gaps(const struct writer *w, const struct column *c)
{
	uint32_t node, i;

	for (node = 0; node < w->p->n_nodes; node++)
		for (i = elements_of(w, c, node); i < c->n; i++)
			if (profile_value(w->p, node, w->element[c->first + i])->type != VALUE_NONE)
				return false;
	return true;
}

/* The vector that this metric is the first element of; 0: it is none; -ENOMEM. */
static int take_vector(struct writer *w, uint32_t metric, uint32_t first)
{
	const struct profile *p = w->p;
	const char *name = p->metric[metric].name;
	struct column *c = &w->column[w->n_columns];
	struct element e;
	uint32_t at = metric;

	if (!element_read(name, &e) || e.k != 0)
		return 0;
	*c = (struct column){.first = first};
	for (; at != PROFILE_NONE && c->n < PROFILE_METRICS_MAX - first; c->n++) {
		w->element[first + c->n] = at;
		at = find_element(p, name, &e, c->n + 1);
	}
	c->owned = malloc(strlen(name) + 1);
	if (c->owned == NULL)
		return -ENOMEM;
	memcpy(c->owned, name, e.base);
	memcpy(c->owned + e.base, e.rest, strlen(e.rest) + 1);
	c->name = c->owned;
	if (profile_find_metric(p, c->owned) == PROFILE_NONE && has_no_gaps(w, c)) {
		w->n_columns++;
		return (int)c->n;
	}
	free(c->owned);
	return 0;
}

static bool is_summed(const struct profile *p, uint32_t metric)
{
	bool summed = p->metric[metric].kind == KIND_INCLUSIVE;
	uint32_t n;

	for (n = 0; n < p->n_nodes && summed; n++)
		summed = profile_value(p, n, metric)->type < VALUE_STR;
	return summed;
}

static int by_name(const void *a, const void *b)
{
	const struct column *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int find_columns(struct writer *w)
{
	const struct profile *p = w->p;
	bool taken[PROFILE_METRICS_MAX] = {false};
	uint32_t i, used = 0;
	int n;

	for (i = 0; i < p->n_metrics; i++) {
		n = taken[i] ? 0 : take_vector(w, i, used);
		if (n < 0)
			return n;
		for (; n > 0; n--)
			taken[w->element[used++]] = true;
	}
	for (i = 0; i < p->n_metrics; i++) {
		if (taken[i])
			continue;
		w->column[w->n_columns++] = (struct column){
			.name = p->metric[i].name, .first = used, .n = 1, .hint = is_summed(p, i)};
		w->element[used++] = i;
	}
	if (w->n_columns > 1)
		qsort(w->column, w->n_columns, sizeof(*w->column), by_name);
	return 0;
}

/* NULL: out of memory. */
static struct writer *writer_new(const struct profile *p)
{
	struct writer *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->p = p;
	if (find_columns(w) == 0)
		return w;
	writer_free(w);
	return NULL;
}

int hatchet_write(const struct profile *p, char **ret_text, size_t *ret_bytes)
{
	struct writer *w = writer_new(p);
	int r;

	if (w == NULL)
		return -ENOMEM;
	text_str(&w->out, "\n[");
	put_tree(w);
	text_char(&w->out, ',');
	r = put_devices(w);
	text_str(&w->out, "\n]\n");
	if (r == 0)
		r = text_take(&w->out, ret_text, ret_bytes);
	writer_free(w);
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

static void pack_column(
	const struct writer *w, msgpack_packer *k, const struct column *c, uint32_t node)
{
	static const struct value zero = {.type = VALUE_I64};
	const uint32_t n = elements_of(w, c, node);
	uint32_t i;

	if (c->owned != NULL)
		(void)msgpack_pack_array(k, n);
	for (i = 0; i < n; i++)
		pack_value(k, profile_value(w->p, node, w->element[c->first + i]));
	if (n == 0)
		pack_value(k, &zero);
}

static void pack_metrics(const struct writer *w, msgpack_packer *k, uint32_t node)
{
	const struct column *c;
	uint32_t n = 0;

	for (c = w->column; c < w->column + w->n_columns; c++)
		n += has_column(w, c, node);
	(void)msgpack_pack_map(k, n);
	for (c = w->column; c < w->column + w->n_columns; c++) {
		if (!has_column(w, c, node))
			continue;
		pack_str(k, c->name);
		pack_column(w, k, c, node);
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
	struct writer *w = writer_new(p);
	msgpack_packer k;
	int r;

	if (w == NULL)
		return -ENOMEM;
	msgpack_packer_init(&k, &w->out, pack_grow);
	(void)msgpack_pack_array(&k, 2);
	pack_tree(w, &k);
	r = pack_devices(p, &k);
	if (r == 0)
		r = text_take(&w->out, ret_bytes, ret_n);
	writer_free(w);
	return r;
}
