/* SPDX-License-Identifier: MIT. print_json.c: the one envelope of all JSON that protonview prints.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "loss_terms.h"
#include "order.h"
#include "print_json.h"

static char last(const struct text *t)
{
	return t->n > 0 ? t->s[t->n - 1] : '\0';
}

static void member(struct text *t, const char *name)
{
	if (last(t) != '{')
		text_char(t, ',');
	text_json(t, name);
	text_char(t, ':');
}

static void member_u64(struct text *t, const char *name, uint64_t v)
{
	member(t, name);
	text_fmt(t, "%llu", (unsigned long long)v);
}

static void member_text(struct text *t, const char *name, const char *s)
{
	member(t, name);
	if (s == NULL)
		text_str(t, "null");
	else
		text_json(t, s);
}

static void devices(struct text *t, const struct profile *p)
{
	static const char *const part_columns[] = {
#define X(name, column, ...) #column,
		GPU_PARTS(X)
#undef X
	};
	uint32_t i, k;

	member(t, "devices");
	text_char(t, '[');
	for (i = 0; i < p->n_devices; i++) {
		text_str(t, i == 0 ? "{" : ",{");
		member_text(t, "type", p->device[i].type);
		member_text(t, "id", p->device[i].id);
		member_text(t, "name", p->device[i].name);
		member_text(t, "arch", p->device[i].arch_text);
		member_u64(t, "num_sms", p->device[i].num_sms);
		member_u64(t, "clock_khz", p->device[i].clock_khz);
		member_u64(t, "memory_clock_khz", p->device[i].memory_clock_khz);
		member_u64(t, "bus_width", p->device[i].bus_width);
		member_u64(t, "busy_ns", p->device[i].busy_ns);
		for (k = 0; k < PART_MAX && p->device[i].has_parts; k++)
			member_u64(t, part_columns[k], p->device[i].part_ns[k]);
		text_char(t, '}');
	}
	text_char(t, ']');
}

static void drops(struct text *t, const struct profile_head *h)
{
	uint32_t i;

	member(t, "drops");
	text_char(t, '[');
	for (i = 0; i < h->n_losses; i++) {
		text_str(t, i == 0 ? "{" : ",{");
		member_u64(t, "cause", h->losses[i].cause);
		member_u64(t, "count", h->losses[i].count);
		member(t, "exact");
		text_str(t, h->losses[i].about ? "false" : "true");
		member_text(t, "words", loss_words(h->losses[i].cause));
		text_char(t, '}');
	}
	text_char(t, ']');
	member(t, "notes");
	text_char(t, '[');
	for (i = 0; i < h->n_notes; i++) {
		if (i > 0)
			text_char(t, ',');
		text_json(t, h->notes[i]);
	}
	text_char(t, ']');
}

/* Only of a session that has it: the switch overhead. */
static void overhead(struct text *t, const struct profile *p)
{
	struct overhead_sums s;

	if (!overhead_read(p, &s))
		return;
	member(t, "overhead_in_calls");
	text_str(t, "{\"driver_ns\":");
	text_json_f64(t, s.driver_ns);
	text_str(t, ",\"cupti_ns\":");
	text_json_f64(t, s.ours_ns);
	text_str(t, ",\"other_ns\":");
	text_json_f64(t, s.other_ns);
	text_char(t, '}');
}

void envelope_throughput(struct text *t, const struct throughput *h)
{
	const struct {
		const char *key;
		double v;
	} members[] = {{"iterations_per_sec", h->iterations}, {"samples_per_sec", h->samples},
		{"tokens_per_sec", h->tokens}, {"flops_per_sec", h->flops}, {"mfu", h->mfu}};
	size_t i;

	text_char(t, '{');
	for (i = 0; i < sizeof(members) / sizeof(*members); i++) {
		member(t, members[i].key);
		text_json_f64(t, members[i].v);
	}
	text_char(t, '}');
}

/* Only of a session that has steps. */
static void throughput(struct text *t, const struct profile *p)
{
	struct throughput h;

	if (p->head.rates.steps == 0)
		return;
	throughput_of(p, &p->head.rates, &h);
	member_u64(t, "steps", p->head.rates.steps);
	member_u64(t, "warm_up", p->head.rates.warm);
	member(t, "throughput");
	envelope_throughput(t, &h);
}

void envelope_session(struct text *t, const struct profile *p)
{
	const struct profile_head *h;

	member(t, "session");
	if (p == NULL) {
		text_str(t, "null");
		return;
	}
	h = &p->head;
	text_char(t, '{');
	member_text(t, "name", h->name);
	member_u64(t, "id", h->id);
	member_text(t, "uuid", h->uuid);
	member_text(t, "state", h->state);
	member_text(t, "source", h->source);
	member_text(t, "command", h->command);
	member_text(t, "tags", h->tags);
	member_text(t, "note", h->note);
	member_u64(t, "created_ns", h->created_ns > 0 ? (uint64_t)h->created_ns : 0);
	member_u64(t, "duration_ns", h->duration_ns);
	member_u64(t, "processes", h->n_processes);
	devices(t, p);
	member_u64(t, "launches", h->launches);
	member_u64(t, "matched", h->matched);
	member_u64(t, "unmatched", h->unmatched);
	drops(t, h);
	member(t, "overhead");
	text_json_f64(t, h->overhead);
	member(t, "recording_cost");
	text_json_f64(t, h->recording_cost);
	overhead(t, p);
	throughput(t, p);
	member_text(t, "gpu_why", h->gpu_why);
	text_char(t, '}');
}

void envelope_open(struct text *t, const char *kind, const struct profile *p)
{
	text_str(t, "{\"protond\":\"1\"");
	member_text(t, "kind", kind);
	member(t, "data");
	text_char(t, '{');
	envelope_session(t, p);
}

void envelope_columns(struct text *t, const struct envelope_column *c, uint32_t n)
{
	uint32_t i;

	member(t, "columns");
	text_char(t, '[');
	for (i = 0; i < n; i++) {
		text_str(t, i == 0 ? "{" : ",{");
		member_text(t, "name", c[i].name);
		member_text(t, "unit", c[i].unit);
		member_text(t, "type", c[i].type);
		text_char(t, '}');
	}
	text_char(t, ']');
	member(t, "rows");
	text_char(t, '[');
}

/* A row stays open until the next one or the end closes it: "[[1,2" "],[" "3,4" "]]". */
void envelope_row(struct text *t)
{
	if (last(t) != '[')
		text_str(t, "],");
	text_char(t, '[');
}

static void value(struct text *t)
{
	if (last(t) != '[')
		text_char(t, ',');
}

void envelope_string(struct text *t, const char *s)
{
	value(t);
	if (s == NULL)
		text_str(t, "null");
	else
		text_json(t, s);
}

void envelope_integer(struct text *t, int64_t v)
{
	value(t);
	text_fmt(t, "%lld", (long long)v);
}

void envelope_boolean(struct text *t, bool v)
{
	value(t);
	text_str(t, v ? "true" : "false");
}

void envelope_number(struct text *t, double v)
{
	value(t);
	text_json_f64(t, v);
}

static void close_with(struct text *t, const struct warnings *w)
{
	uint32_t i;

	member(t, "warnings");
	text_char(t, '[');
	for (i = 0; i < w->n; i++) {
		if (i > 0)
			text_char(t, ',');
		text_json(t, w->text[i]);
	}
	text_str(t, "]}\n");
}

void envelope_rows_end(struct text *t)
{
	text_str(t, last(t) == '[' ? "]" : "]]");
}

void envelope_close(struct text *t, const struct warnings *w)
{
	envelope_rows_end(t);
	text_char(t, '}');
	close_with(t, w);
}

void envelope_data(struct text *t, const char *kind, const char *key, const char *value,
	const struct warnings *w)
{
	text_str(t, "{\"protond\":\"1\"");
	member_text(t, "kind", kind);
	member(t, "data");
	text_char(t, '{');
	member_text(t, key, value);
	text_char(t, '}');
	close_with(t, w);
}

void envelope_error(
	struct text *t, const char *kind, int code, const char *words, const struct warnings *w)
{
	text_str(t, "{\"protond\":\"1\"");
	member_text(t, "kind", kind);
	member(t, "error");
	text_fmt(t, "{\"code\":%d", code);
	member_text(t, "text", words);
	text_char(t, '}');
	close_with(t, w);
}

void envelope_metrics(struct text *t, const struct profile *p)
{
	static const struct envelope_column columns[] = {{"name", "", "string"},
		{"unit", "", "string"}, {"kind", "", "string"}, {"shape", "", "string"}};
	static const char *const kinds[] = {[KIND_INCLUSIVE] = "inclusive",
		[KIND_EXCLUSIVE] = "exclusive",
		[KIND_PROPERTY] = "property"};
	char name[256], unit[64];
	uint32_t i;

	envelope_columns(t, columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; i < p->n_metrics; i++) {
		metric_bare(p->metric[i].name, name, sizeof(name));
		metric_unit(p->metric[i].name, unit, sizeof(unit));
		envelope_row(t);
		envelope_string(t, name);
		envelope_string(t, unit);
		envelope_string(t, kinds[p->metric[i].kind]);
		envelope_string(t, metric_shape(p, i));
	}
}

/* --- trees */

static const struct envelope_column node_columns[] = {{"id", "", "integer"},
	{"parent", "", "integer"}, {"depth", "", "integer"}, {"kind", "", "string"},
	{"name", "", "string"}, {"display", "", "string"}};
#define NODE_COLUMNS (sizeof(node_columns) / sizeof(node_columns[0]))

static void json_node(
	struct text *t, const struct profile *p, uint32_t node, const struct print_options *o)
{
	const char *name;
	char buf[1024];

	envelope_row(t);
	envelope_integer(t, node);
	envelope_integer(t, node == 0 ? -1 : (int64_t)p->node[node].parent);
	envelope_integer(t, p->node[node].depth);
	envelope_string(t, kind_word(p->node[node].kind));
	name = frame_format(o->format, p->node[node].name, buf, sizeof(buf));
	envelope_string(t, name);
	envelope_string(t, names_show(o->names, name));
}

static bool is_shown(const struct view *v, uint32_t node, const struct print_options *o)
{
	return v->keep[node] && v->p->node[node].depth < o->depth;
}

void envelope_tree(struct text *t, const struct view *v, const struct print_options *o)
{
	struct envelope_column columns[NODE_COLUMNS + VIEW_COLUMNS_MAX];
	uint32_t i, c;

	for (i = 0; i < NODE_COLUMNS; i++)
		columns[i] = node_columns[i];
	for (c = 0; c < v->n_columns; c++)
		columns[NODE_COLUMNS + c] =
			(struct envelope_column){v->col[c].name, v->col[c].unit, "number"};
	envelope_columns(t, columns, NODE_COLUMNS + v->n_columns);
	for (i = 0; i < v->p->n_nodes; i++) {
		if (!is_shown(v, i, o))
			continue;
		json_node(t, v->p, i, o);
		for (c = 0; c < v->n_columns; c++)
			envelope_number(t, v->col[c].v[i]);
	}
}

void envelope_diff(struct text *t, const struct diff *d, const struct print_options *o)
{
	struct envelope_column columns[NODE_COLUMNS + 3 * VIEW_COLUMNS_MAX];
	char names[3 * VIEW_COLUMNS_MAX][160];
	static const char *const sides[] = {"before", "after", "change"};
	uint32_t i, c, s, n = NODE_COLUMNS;

	for (i = 0; i < NODE_COLUMNS; i++)
		columns[i] = node_columns[i];
	for (c = 0; c < d->view->n_columns; c++) {
		for (s = 0; s < 3; s++) {
			snprintf(names[c * 3 + s], sizeof(names[0]), "%s %s", d->view->col[c].name,
				sides[s]);
			columns[n++] = (struct envelope_column){
				names[c * 3 + s], d->view->col[c].unit, "number"};
		}
	}
	envelope_columns(t, columns, n);
	for (i = 0; i < d->p->n_nodes; i++) {
		if (!is_shown(d->view, i, o))
			continue;
		json_node(t, d->p, i, o);
		for (c = 0; c < d->view->n_columns; c++) {
			envelope_number(t, d->before[c][i]);
			envelope_number(t, d->after[c][i]);
			envelope_number(t, d->view->col[c].v[i]);
		}
	}
}
