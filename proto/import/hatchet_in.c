/* SPDX-License-Identifier: MIT. hatchet_in.c: reads .hatchet and .hatchet_msgpack: a tree, whose
 * values become metrics of its nodes as they are. There are no events, so there is no timeline. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export_format.h"
#include "metric_terms.h"
#include "readers.h"
#include "text.h"

#define FILE_MAX ((size_t)1 << 30)

/* Two nodes of one name under one parent are one; of them values that add up do. */
#define METRIC                                                                        \
	"INSERT INTO main.metric(session,process,segment,node,name,kind,value,count)" \
	" VALUES(1,1,0,?1,?2,?3,?4,1) ON CONFLICT DO UPDATE SET"                      \
	" value=iif(kind=2,excluded.value,value+excluded.value)"
/* What its leaf is: the values are the metrics'. */
#define CELL                                                                                      \
	"INSERT OR IGNORE INTO main.cell(session,process,segment,node,device,class,count,sum_ns," \
	"min_ns,max_ns,bytes,untimed,open) VALUES(1,1,0,?1,-1,?2,0,0,0,0,0,0,0)"

struct tree {
	struct stage *s;
	const struct profile *p;
	sqlite3_stmt *metric, *cell;
	uint32_t *node; /* of each node of p */
	uint32_t rest;  /* the metric of an empty node */
};

static bool bind_value(sqlite3_stmt *q, const struct value *v, uint8_t kind)
{
	if (v->type == VALUE_I64 || (v->type == VALUE_U64 && v->u <= INT64_MAX))
		(void)sqlite3_bind_int64(q, 4, v->i);
	else if (v->type == VALUE_U64)
		(void)sqlite3_bind_double(q, 4, (double)v->u);
	else if (v->type == VALUE_F64 && v->f == v->f)
		(void)sqlite3_bind_double(q, 4, v->f);
	else if (v->type == VALUE_F64 && kind == KIND_PROPERTY)
		(void)sqlite3_bind_zeroblob(q, 4, 0);
	else if (v->type == VALUE_F64)
		(void)sqlite3_bind_text(q, 4, "nan", -1, SQLITE_STATIC);
	else if (v->type == VALUE_STR)
		(void)sqlite3_bind_text(q, 4, v->s, -1, SQLITE_STATIC);
	return v->type != VALUE_NONE && v->type != VALUE_VECTOR;
}

static int step(struct tree *t, sqlite3_stmt *q)
{
	const int rc = sqlite3_step(q);

	(void)sqlite3_reset(q);
	return rc == SQLITE_DONE ? 0 : stage_wrong(t->s);
}

/* A leaf without a value, which no row would name: it gets a 0. */
static bool is_empty(const struct profile *p, uint32_t i)
{
	uint32_t m;

	for (m = 0; m < p->n_metrics; m++)
		if (profile_value(p, i, m)->type != VALUE_NONE &&
			profile_value(p, i, m)->type != VALUE_VECTOR)
			return false;
	return p->node[i].first_child == PROFILE_NONE;
}

static int put_values(struct tree *t, uint32_t i)
{
	const struct value *v;
	uint32_t m;
	int r = 0;

	for (m = 0; m < t->p->n_metrics && r == 0; m++) {
		v = profile_value(t->p, i, m);
		t->s->taken.left[LEFT_VECTORS] += v->type == VALUE_VECTOR;
		if (!bind_value(t->metric, v, t->p->metric[m].kind)) {
			if (m != t->rest || !is_empty(t->p, i))
				continue;
			(void)sqlite3_bind_int64(t->metric, 4, 0);
		}
		(void)sqlite3_bind_int64(t->metric, 1, (int64_t)t->node[i] + 1);
		(void)sqlite3_bind_text(t->metric, 2, t->p->metric[m].name, -1, SQLITE_STATIC);
		(void)sqlite3_bind_int(t->metric, 3, t->p->metric[m].kind);
		r = step(t, t->metric);
	}
	return r;
}

static int put_node(struct tree *t, uint32_t i)
{
	const struct profile_node *n = &t->p->node[i];
	uint32_t name;
	int r;

	if (i == 0)
		t->node[0] = 0;
	else if (!stage_name(t->s, n->name, strlen(n->name), &name) ||
		 !stage_child(t->s, t->node[n->parent], n->kind, name, &t->node[i]))
		return stage_no_memory(t->s);
	t->s->taken.events++;
	r = put_values(t, i);
	if (r < 0 || n->class == 0)
		return r;
	(void)sqlite3_bind_int64(t->cell, 1, (int64_t)t->node[i] + 1);
	(void)sqlite3_bind_int(t->cell, 2, n->class);
	return step(t, t->cell);
}

/* What stage_device() has no place for is not in these files' devices either. */
static int put_devices(struct tree *t)
{
	struct stage_device *to;
	uint32_t i;

	for (i = 0; i < t->p->n_devices; i++) {
		const struct profile_device *d = &t->p->device[i];

		to = stage_device(t->s, i);
		if (to == NULL)
			return stage_no_memory(t->s);
		to->arch = d->arch;
		to->num_sms = (uint32_t)d->num_sms;
		to->clock_khz = (uint32_t)d->clock_khz;
		to->memory_clock_khz = (uint32_t)d->memory_clock_khz;
		to->bus_width = (uint32_t)d->bus_width;
		to->type = term_number(&term_device_types, d->type, 1);
		(void)snprintf(to->name, sizeof(to->name), "%s", d->name != NULL ? d->name : "");
	}
	return 0;
}

static int put_tree(struct stage *s, const struct profile *p)
{
	struct tree t = {.s = s, .p = p, .node = calloc(p->n_nodes, sizeof(*t.node))};
	uint32_t i, name;
	int r;

	t.rest = profile_find_metric(p, "time (ns)");
	t.rest = t.rest != PROFILE_NONE ? t.rest : profile_find_metric(p, "cpu_time (ns)");
	r = t.node == NULL ? stage_no_memory(s) : stage_prepare(s, METRIC, &t.metric);

	if (r == 0)
		r = stage_prepare(s, CELL, &t.cell);
	if (r == 0 && (!stage_name(s, "1", 1, &name) || !stage_process(s, name, &i)))
		r = stage_no_memory(s);
	if (r == 0)
		s->process[0].id = 1;
	for (i = 0; i < p->n_nodes && r == 0; i++)
		r = put_node(&t, i);
	if (r == 0)
		r = put_devices(&t);
	(void)sqlite3_finalize(t.metric);
	(void)sqlite3_finalize(t.cell);
	free(t.node);
	return r;
}

static int read_all(struct stage *s, int fd, const char *what, char **ret, size_t *ret_n)
{
	struct text t = {0};
	ssize_t n = 1;

	while (n > 0 && t.n <= FILE_MAX) {
		if (text_reserve(&t, 1u << 20) < 0)
			break;
		n = read(fd, t.s + t.n, 1u << 20);
		t.n += n > 0 ? (size_t)n : 0;
	}
	*ret = t.s;
	*ret_n = t.n;
	if (n == 0)
		return 0;
	return n < 0            ? err_set(s->e, neg_errno(), "%s: %s", what, strerror(errno))
	       : t.n > FILE_MAX ? err_set(s->e, -EFBIG, "%s is over 1 GiB", what)
				: stage_no_memory(s);
}

int hatchet_in_read(struct stage *s, int fd, const char *what)
{
	struct profile *p = NULL;
	struct err why = {0};
	char *bytes = NULL;
	size_t n;
	int r = read_all(s, fd, what, &bytes, &n);

	s->source = FROM_HATCHET;
	if (r == 0) {
		r = export_read(bytes, n, &p, &why);
		if (r < 0)
			(void)err_set(s->e, r, "%s: %s", what, why.text);
	}
	free(bytes);
	if (r == 0)
		r = put_tree(s, p);
	profile_free(p);
	return r;
}
