/* SPDX-License-Identifier: MIT. web_bottlenecks.c: the rules' verdicts, as `protonview bottlenecks` has them. */
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bottlenecks.h"
#include "rule_limits.h"
#include "web_ask.h"
#include "web_evidence.h"

static int read_store(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	return facts_read(arg, db, id, s, 0, ret_left, e);
}

/* As people read it, from the outermost scope down; null: it has no place in the tree. */
static void put_where(struct web_ask *a, const struct profile *p, uint32_t node)
{
	uint32_t up[PROFILE_DEPTH_MAX + 1], n = 0;
	struct text *t = &a->to->body;

	json_in(t, "where", '[');
	for (; node != PROFILE_NONE && node != 0 && n <= PROFILE_DEPTH_MAX;
		node = p->node[node].parent)
		up[n++] = node;
	while (n-- > 0)
		json_str(t, names_show(a->run->print.names, p->node[up[n]].name));
	json_close(t, ']');
}

static void put_times(struct text *t, const char *key, uint64_t from, uint64_t to)
{
	if (to <= from) {
		json_key_str(t, key, NULL);
		return;
	}
	json_in(t, key, '[');
	json_u64(t, from);
	json_u64(t, to);
	json_close(t, ']');
}

/* The innermost line of source that it stands in; NULL: none is known. */
static const char *line_of_source(const struct profile *p, uint32_t node)
{
	uint32_t n;

	for (n = 0; node != PROFILE_NONE && n <= PROFILE_DEPTH_MAX;
		n++, node = p->node[node].parent)
		if (p->node[node].kind == NODE_FRAME)
			return p->node[node].name;
	return NULL;
}

static void put_verdict(struct web_ask *a, const struct facts *f, const struct verdict *v,
	const struct evidence *seen)
{
	const double whole = whole_ns_of(f, v->of);
	struct text *t = &a->to->body;

	json_open(t, '{');
	json_key_str(t, "rule", rule_rows[v->rule].id);
	json_key_str(t, "severity", severity_words[v->severity]);
	json_key_str(t, "words", v->words);
	json_key_str(t, "advice", v->advice);
	json_key_str(t, "view", verdict_views[v->view]);
	json_key_f64(t, "share", v->share);
	json_key_f64(t, "gain", v->gain_ns);
	json_key_f64(t, "gain_step", gain_of_step(f, v));
	json_key_f64(t, "gain_share", whole > 0 ? v->gain_ns / whole : (double)NAN);
	json_key_str(t, "of", whole_words(v->of));
	put_where(a, f->p, v->node);
	json_key_str(t, "name",
		v->node == PROFILE_NONE || v->node == 0 ? NULL : f->p->node[v->node].name);
	json_key_str(t, "line", line_of_source(f->p, v->node));
	put_times(t, "time", seen->t0, seen->t1);
	put_times(t, "mark", seen->from, seen->to);
	json_close(t, '}');
}

static void put_rules(struct text *t, const struct bottlenecks *b)
{
	uint32_t i, k;

	json_in(t, "rules", '[');
	for (i = 0; i < RULE_N; i++) {
		json_open(t, '{');
		json_key_str(t, "rule", rule_rows[i].id);
		json_key_str(t, "state", rule_states[b->rule[i].state]);
		json_key_str(t, "what", rule_rows[i].what);
		json_key_f64(t, "threshold", b->threshold[i]);
		json_key_str(t, "unit", rule_rows[i].unit);
		json_key_str(t, "note", *b->rule[i].note != '\0' ? b->rule[i].note : NULL);
		json_in(t, "lacks", '[');
		for (k = 0; k < NEED_N; k++)
			if ((b->rule[i].lacks >> k & 1) != 0)
				json_str(t, need_rows[k].words);
		json_close(t, ']');
		json_in(t, "record", '[');
		for (k = 0; k < NEED_N; k++)
			if ((b->rule[i].lacks >> k & 1) != 0)
				json_str(t, need_rows[k].how);
		json_close(t, ']');
		json_close(t, '}');
	}
	json_close(t, ']');
}

static void put_answer(struct web_ask *a, const struct facts *f, const struct bottlenecks *b,
	const struct evidence *seen)
{
	struct text *t = &a->to->body;
	uint32_t i;

	text_char(t, '{');
	json_in(t, "verdicts", '[');
	for (i = 0; i < b->n; i++)
		put_verdict(a, f, &b->verdict[i], &seen[i]);
	json_close(t, ']');
	put_rules(t, b);
	web_warnings(a);
	text_char(t, '}');
}

/* Of a session that is over and kept a timeline; else none. */
static void look(struct web_ask *a, const struct facts *f, const struct bottlenecks *b,
	struct evidence *seen)
{
	struct names *const names = a->run->print.names;
	struct zoom *z;
	uint32_t i;

	memset(seen, 0, b->n * sizeof(*seen));
	if (f->stored && b->n > 0 && web_zoom(a, &z) == 0)
		for (i = 0; i < b->n; i++)
			evidence_find(z, f, &b->verdict[i], &seen[i]);
	a->run->e = (struct err){0}; /* what a verdict says does not need it */
	a->run->print.names = names;
}

int web_bottlenecks(struct web_ask *a)
{
	struct evidence seen[VERDICTS_MAX];
	struct bottlenecks *b = malloc(sizeof(*b));
	struct rule_settings set;
	const struct profile *p;
	struct facts *f = NULL;
	int r = web_profile(a, &p);

	if (r == 0 && (b == NULL || facts_new(p, NULL, &f) < 0))
		r = err_set(&a->run->e, -ENOMEM, "out of memory");
	/* A phase is judged by its tree: what is beside it is of all of the session. So is what goes on:
	 * the page asks anew all the time, and a timeline may be long. */
	if (r == 0 && p->head.uuid != NULL && profile_is_over(&p->head) &&
		web_query_get(&a->q, "phase") == NULL) {
		web_alone(a);
		r = web_db(a, read_store, f, NULL);
	}
	if (r == 0)
		r = rule_limits_usual(&set, &a->run->e);
	if (r == 0) {
		bottlenecks_find(f, &set, b);
		look(a, f, b, seen);
		put_answer(a, f, b, seen);
	}
	facts_free(f);
	free(b);
	(void)malloc_trim(0);
	return r;
}
