/* SPDX-License-Identifier: MIT. hatchet.c: the format hatchet: Triton Proton's .hatchet, as JSON.
 * No I/O.
 *
 *   "\n" [ ROOT node, {"CUDA": {"0": {arch, bus_width, clock_rate, memory_clock_rate, num_sms}}} ]
 * "\n" node: {"children": [...], "frame": {"name", "type": "function"}, "metrics": {name: value}}
 *
 * Four spaces an indent, keys sorted by byte. ROOT carries a 0 for each inclusive metric: that, and
 * nothing else, tells a reader which metrics parents sum. */
#include <stdlib.h>
#include <string.h>

#include "export_format.h"
#include "hatchet_tree.h"
#include "hatchet_writer.h"

/* --- writing */

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

static void put_column(
	struct hatchet_writer *w, const struct hatchet_column *c, uint32_t node, uint32_t level)
{
	static const struct value zero = {.type = VALUE_I64};
	const uint32_t n = hatchet_elements(w, c, node);
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

static void put_metrics(struct hatchet_writer *w, uint32_t node, uint32_t level)
{
	const struct hatchet_column *c;
	bool any = false;

	text_char(&w->out, '{');
	for (c = w->column; c < w->column + w->n_columns; c++) {
		if (!hatchet_has(w, c, node))
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

static void open_node(struct hatchet_writer *w, uint32_t node, uint32_t level)
{
	line(&w->out, level, "{");
	line(&w->out, level + 1, "\"children\": [");
	if (w->p->node[node].first_child == PROFILE_NONE)
		text_char(&w->out, ']');
}

static void close_node(struct hatchet_writer *w, uint32_t node, uint32_t level)
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
static void put_tree(struct hatchet_writer *w)
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

static int put_devices(struct hatchet_writer *w)
{
	const struct profile *p = w->p;
	const struct profile_device **order = hatchet_devices(p);
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

int hatchet_write(const struct profile *p, char **ret_text, size_t *ret_bytes)
{
	struct hatchet_writer *w = hatchet_writer_new(p);
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
	hatchet_writer_free(w);
	return r;
}

/* --- reading */

bool hatchet_sniff(const char *bytes, size_t n)
{
	size_t i = 0;

	while (i < n && strchr(" \t\r\n", bytes[i]) != NULL && bytes[i] != '\0')
		i++;
	return i < n && bytes[i] == '[';
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

int hatchet_read(const char *bytes, size_t n, struct profile **ret_profile, struct err *e)
{
	json_t *file;
	int r;

	if (n > HATCHET_FILE_MAX)
		return err_set(e, -EFBIG, "a .hatchet file may have 1 GiB at most");
	r = parse(bytes, n, &file, e);
	return r < 0 ? r : hatchet_tree_read(file, ret_profile, e);
}
