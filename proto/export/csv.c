/* SPDX-License-Identifier: MIT. csv.c: the formats csv and csv_kernels: RFC 4180, a header with
 * units in brackets, times in whole nanoseconds. No I/O.
 *
 * A name that a spreadsheet would take for a formula gets a "'" in front. */
#include <math.h>
#include <stdlib.h>

#include "export_format.h"
#include "tree_rows.h"

static void comma(struct rows *r)
{
	if (r->in_row)
		text_char(&r->out, ',');
	r->in_row = true;
}

static void quoted(struct text *t, const char *s)
{
	text_char(t, '"');
	if (*s != '\0' && strchr("=+-@\t\r", *s) != NULL)
		text_char(t, '\'');
	for (; *s != '\0'; s++) {
		if (*s == '"')
			text_char(t, '"');
		text_char(t, *s);
	}
	text_char(t, '"');
}

static void csv_column(struct rows *r, const char *name, const char *unit, const char *type)
{
	struct text t = {0};
	char *s;

	(void)type;
	comma(r);
	text_str(&t, name);
	if (unit[0] != '\0') {
		text_str(&t, " [");
		text_str(&t, unit);
		text_char(&t, ']');
	}
	if (text_take(&t, &s, &(size_t){0}) < 0) {
		r->out.failed = true;
		return;
	}
	quoted(&r->out, s);
	free(s);
}

static void csv_text(struct rows *r, const char *s)
{
	comma(r);
	quoted(&r->out, s);
}

static void csv_number(struct rows *r, const struct value *v)
{
	comma(r);
	if (v->type == VALUE_I64)
		text_fmt(&r->out, "%lld", (long long)v->i);
	else if (v->type == VALUE_U64)
		text_fmt(&r->out, "%llu", (unsigned long long)v->u);
	else if (v->type == VALUE_F64 && isfinite(v->f))
		text_json_f64(&r->out, v->f);
}

/* Each line but the last ends where the next one begins. */
static void csv_begin(struct rows *r)
{
	text_str(&r->out, "\r\n");
	r->in_row = false;
}

static void csv_nothing(struct rows *r)
{
	(void)r;
}

static void csv_end(struct rows *r)
{
	text_str(&r->out, "\r\n");
}

const struct rows_form rows_csv = {
	csv_column, csv_begin, csv_text, csv_number, csv_nothing, csv_end};

static int write_rows(const struct profile *p, rows_fn *rows, char **ret_text, size_t *ret_bytes)
{
	struct rows r = {.form = &rows_csv};
	int ret = rows(p, &r);

	if (ret == 0)
		ret = text_take(&r.out, ret_text, ret_bytes);
	text_fini(&r.out);
	return ret;
}

int csv_write(const struct profile *p, char **ret_text, size_t *ret_bytes)
{
	return write_rows(p, rows_nodes, ret_text, ret_bytes);
}

int csv_kernels_write(const struct profile *p, char **ret_text, size_t *ret_bytes)
{
	return write_rows(p, rows_kernels, ret_text, ret_bytes);
}
