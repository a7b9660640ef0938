/* SPDX-License-Identifier: MIT. filter.c: which nodes of a view stay. */
#include "filter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "order.h"

#define STEPS_MAX 1000000u /* of matching one name: a pattern may need exponential time */

static int compile(const char *pattern, pcre2_code **ret, struct err *e)
{
	unsigned char text[128];
	PCRE2_SIZE at = 0;
	int code = 0;

	*ret = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
		PCRE2_ANCHORED | PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
	if (*ret != NULL)
		return 0;
	(void)pcre2_get_error_message(code, text, sizeof(text));
	return err_set(e, -EINVAL, "bad regular expression '%s': %s (at character %zu)", pattern,
		text, at + 1);
}

/* hit[i] for every kept node. */
static int match_names(const struct view *v, const char *pattern, uint8_t *hit, struct err *e)
{
	pcre2_match_context *limits = pcre2_match_context_create(NULL);
	pcre2_match_data *md = NULL;
	pcre2_code *re = NULL;
	uint32_t i;
	int r, m;

	r = compile(pattern, &re, e);
	if (r == 0)
		md = pcre2_match_data_create_from_pattern(re, NULL);
	if (r == 0 && (md == NULL || limits == NULL))
		r = err_set(e, -ENOMEM, "out of memory");
	if (limits != NULL)
		(void)pcre2_set_match_limit(limits, STEPS_MAX);
	if (r == 0)
		(void)pcre2_jit_compile(
			re, PCRE2_JIT_COMPLETE); /* for speed alone: it may not be there */
	for (i = 0; r == 0 && i < v->p->n_nodes; i++) {
		if (!v->keep[i])
			continue;
		m = pcre2_match(re, (PCRE2_SPTR)v->p->node[i].name, PCRE2_ZERO_TERMINATED, 0, 0, md,
			limits);
		if (m < 0 && m != PCRE2_ERROR_NOMATCH)
			r = err_set(e, -EINVAL,
				"regular expression '%s' takes too long to match a name; simplify "
				"it",
				pattern);
		hit[i] = m >= 0;
	}
	pcre2_match_data_free(md);
	pcre2_match_context_free(limits);
	pcre2_code_free(re);
	return r;
}

/* keep[i] = hit[i], or an ancestor of a hit. */
static void keep_upwards(struct view *v, uint8_t *hit)
{
	uint32_t i;

	for (i = v->p->n_nodes - 1; i > 0; i--)
		if (hit[i])
			hit[v->p->node[i].parent] = 1;
	memcpy(v->keep, hit, v->p->n_nodes);
}

int filter_include(struct view *v, const char *pattern, struct err *e)
{
	uint8_t *hit = calloc(v->p->n_nodes, 1);
	uint32_t i;
	int r;

	if (hit == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	r = match_names(v, pattern, hit, e);
	for (i = 1; i < v->p->n_nodes && r == 0; i++)
		hit[i] |= v->keep[i] && hit[v->p->node[i].parent];
	if (r == 0)
		keep_upwards(v, hit);
	free(hit);
	return r;
}

int filter_exclude(struct view *v, const char *pattern, struct err *e)
{
	uint8_t *hit = calloc(v->p->n_nodes, 1);
	uint32_t i;
	int r;

	if (hit == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	r = match_names(v, pattern, hit, e);
	for (i = 0; i < v->p->n_nodes && r == 0; i++)
		if (hit[i] || (i > 0 && !v->keep[v->p->node[i].parent]))
			v->keep[i] = 0;
	free(hit);
	return r;
}

int filter_threshold(struct view *v, const char *text, struct err *e)
{
	char *end;
	double least = strtod(text, &end);
	uint8_t *hit;
	uint32_t i;

	if (end == text || (*end != '\0' && strcmp(end, "%") != 0) || isnan(least))
		return err_set(e, -EINVAL, "-t '%s' is not a number", text);
	if (least == 0 || v->n_columns == 0)
		return 0;
	if (*end == '%')
		least = view_total(v, 0) * least / 100;
	hit = calloc(v->p->n_nodes, 1);
	if (hit == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	for (i = 0; i < v->p->n_nodes; i++)
		hit[i] = v->keep[i] && v->col[0].v[i] >= least;
	keep_upwards(v, hit);
	free(hit);
	return 0;
}

int filter_rows(struct view *v, uint32_t rows, uint32_t *ret_hidden)
{
	uint8_t *hit = calloc(v->p->n_nodes, 1);
	uint32_t n, i, *row = order_by_value(v, &n);
	const int r = hit == NULL || row == NULL ? -ENOMEM : 0;

	*ret_hidden = 0;
	for (i = 0; r == 0 && i < n && rows > 0; i++) {
		hit[row[i]] = 1;
		rows -= row[i] != 0;
	}
	if (r == 0)
		keep_upwards(v, hit);
	for (i = 0; r == 0 && i < n; i++)
		*ret_hidden += !v->keep[row[i]];
	free(row);
	free(hit);
	return r;
}

uint32_t filter_cut(const struct view *v, uint32_t depth, uint32_t *ret_deepest)
{
	uint32_t n = 0, i;

	*ret_deepest = 0;
	for (i = 0; i < v->p->n_nodes; i++) {
		if (!v->keep[i])
			continue;
		n += v->p->node[i].depth >= depth;
		if (v->p->node[i].depth >= *ret_deepest)
			*ret_deepest = v->p->node[i].depth + 1;
	}
	return n;
}

bool filter_is_empty(const struct view *v)
{
	return !v->keep[0];
}
