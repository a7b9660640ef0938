/* SPDX-License-Identifier: MIT. json.c: the formats json and json_kernels: the rows of the csv
 * ones, in the envelope that the tools' --json has. No I/O. */
#include "export_format.h"
#include "tree_rows.h"

static void comma(struct rows *r, bool *any)
{
	if (*any)
		text_char(&r->out, ',');
	*any = true;
}

static void json_column(struct rows *r, const char *name, const char *unit, const char *type)
{
	comma(r, &r->any);
	text_str(&r->out, "{\"name\":");
	text_json(&r->out, name);
	text_str(&r->out, ",\"unit\":");
	text_json(&r->out, unit);
	text_fmt(&r->out, ",\"type\":\"%s\"}", type);
}

static void json_heads_end(struct rows *r)
{
	text_str(&r->out, "],\"rows\":[");
	r->any = false;
}

static void json_begin(struct rows *r)
{
	text_str(&r->out, r->any ? "],\n[" : "\n[");
	r->any = true;
	r->in_row = false;
}

static void json_text(struct rows *r, const char *s)
{
	comma(r, &r->in_row);
	text_json(&r->out, s);
}

static void json_number(struct rows *r, const struct value *v)
{
	comma(r, &r->in_row);
	if (v->type == VALUE_I64)
		text_fmt(&r->out, "%lld", (long long)v->i);
	else if (v->type == VALUE_U64)
		text_fmt(&r->out, "%llu", (unsigned long long)v->u);
	else if (v->type == VALUE_F64)
		text_json_f64(&r->out, v->f);
	else
		text_str(&r->out, "null");
}

static void json_rows_end(struct rows *r)
{
	text_str(&r->out, r->any ? "]\n]},\"warnings\":[]}\n" : "]},\"warnings\":[]}\n");
}

const struct rows_form rows_json = {
	json_column, json_begin, json_text, json_number, json_heads_end, json_rows_end};

static void put_session(struct text *t, const struct profile_head *h)
{
	const struct {
		const char *name, *text;
	} words[] = {{"name", h->name}, {"uuid", h->uuid}, {"state", h->state},
		{"source", h->source}, {"command", h->command}};

	text_fmt(t, "{\"id\":%llu", (unsigned long long)h->id);
	for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++) {
		text_fmt(t, ",\"%s\":", words[i].name);
		if (words[i].text != NULL)
			text_json(t, words[i].text);
		else
			text_str(t, "null");
	}
	text_fmt(t, ",\"created_ns\":%lld,\"duration_ns\":%llu}", (long long)h->created_ns,
		(unsigned long long)h->duration_ns);
}

static int write_rows(const struct profile *p, const char *kind, rows_fn *rows, char **ret_text,
	size_t *ret_bytes)
{
	struct rows r = {.form = &rows_json};
	int ret;

	text_fmt(&r.out, "{\"protond\":\"1\",\"kind\":\"%s\",\"data\":{\"session\":", kind);
	put_session(&r.out, &p->head);
	text_str(&r.out, ",\"columns\":[");
	ret = rows(p, &r);
	if (ret == 0)
		ret = text_take(&r.out, ret_text, ret_bytes);
	text_fini(&r.out);
	return ret;
}

int json_write(const struct profile *p, char **ret_text, size_t *ret_bytes)
{
	return write_rows(p, "nodes", rows_nodes, ret_text, ret_bytes);
}

int json_kernels_write(const struct profile *p, char **ret_text, size_t *ret_bytes)
{
	return write_rows(p, "kernels", rows_kernels, ret_text, ret_bytes);
}
