/* SPDX-License-Identifier: MIT. web_bottlenecks.c: the rules' verdicts, as `protonview bottlenecks` has them. */
#include <math.h>
#include <stdlib.h>

#include "bottlenecks.h"
#include "rule_limits.h"
#include "web_ask.h"

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

static void put_verdict(struct web_ask *a, const struct facts *f, const struct verdict *v)
{
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
	put_where(a, f->p, v->node);
	json_key_str(t, "name",
		v->node == PROFILE_NONE || v->node == 0 ? NULL : f->p->node[v->node].name);
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
		json_close(t, '}');
	}
	json_close(t, ']');
}

static void put_answer(struct web_ask *a, const struct facts *f, const struct bottlenecks *b)
{
	struct text *t = &a->to->body;
	uint32_t i;

	text_char(t, '{');
	json_in(t, "verdicts", '[');
	for (i = 0; i < b->n; i++)
		put_verdict(a, f, &b->verdict[i]);
	json_close(t, ']');
	put_rules(t, b);
	web_warnings(a);
	text_char(t, '}');
}

int web_bottlenecks(struct web_ask *a)
{
	struct bottlenecks *b = malloc(sizeof(*b));
	struct rule_settings set;
	const struct profile *p;
	struct facts *f = NULL;
	int r = web_profile(a, &p);

	if (r == 0 && (b == NULL || facts_new(p, NULL, &f) < 0))
		r = err_set(&a->run->e, -ENOMEM, "out of memory");
	/* A phase is judged by its tree: what is beside it is of all of the session. So is what goes on:
	 * the page asks anew all the time, and a timeline may be long. */
	if (r == 0 && p->head.uuid != NULL && web_is_over(p) &&
		web_query_get(&a->q, "phase") == NULL)
		r = web_db(a, read_store, f, NULL);
	if (r == 0)
		r = rule_limits_usual(&set, &a->run->e);
	if (r == 0) {
		bottlenecks_find(f, &set, b);
		put_answer(a, f, b);
	}
	facts_free(f);
	free(b);
	return r;
}
