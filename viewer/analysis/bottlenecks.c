/* SPDX-License-Identifier: MIT. bottlenecks.c: each rule is asked for its verdicts, which are put in order. */
#include "bottlenecks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session_terms.h"

#define FLOOR 0.001 /* of the recorded time: whoever gets back less has no worse than a LOW */

/* clang-format off */
#define STEPS      (1u << NEED_STEPS)
#define LOOP       (1u << NEED_LOOP)
#define SCOPES     (1u << NEED_SCOPES)
#define GPU        (1u << NEED_GPU)
#define IDLE       (1u << NEED_IDLE)
#define SYNC       (1u << NEED_SYNC)
#define TIMELINE   (1u << NEED_TIMELINE)
#define PARTS      (1u << NEED_PARTS)
#define COMPILES   (1u << NEED_COMPILES)
#define RANKS      (1u << NEED_RANKS)
#define READINGS   (1u << NEED_READINGS)
#define MEMORY     (1u << NEED_MEMORY)
#define CONFIGS    (1u << NEED_CONFIGS)
#define HISTOGRAMS (1u << NEED_HISTOGRAMS)
#define SESSION    (1u << NEED_SESSION)
const struct rule_row rule_rows[RULE_N] = {
#define X(id, needs, threshold, unit, most, what, advice) \
	[RULE_##id] = {#id, unit, what, advice, needs, threshold, SEVERITY_##most},
	RULES(X)
#undef X
};
/* clang-format on */

const struct need_row need_rows[NEED_N] = {
#define X(name, words, how) [NEED_##name] = {words, how},
	RULE_NEEDS(X)
#undef X
};

const char *const severity_words[] = {"", "LOW", "MEDIUM", "HIGH"};
const char *const rule_states[] = {"clean", "found", "lacks", "unsure"};
const char *const verdict_views[] = {
#define X(name) [VIEW_##name] = #name,
	VERDICT_VIEWS(X)
#undef X
};

/* --- settings */

void rule_defaults(struct rule_settings *s)
{
	uint32_t i;

	for (i = 0; i < RULE_N; i++)
		s->threshold[i] = rule_rows[i].threshold;
	s->high = 30;
	s->medium = 10;
}

/* Others' words for severities and growth, as a preset. */
static void be_strict(struct rule_settings *s)
{
	s->high = 20;
	s->medium = 5;
	s->threshold[RULE_memory_leak] = 5;
}

static bool set_number(struct rule_settings *s, const char *key, size_t n, double v)
{
	static const char behind[] = ".threshold";
	const size_t m = sizeof(behind) - 1;
	uint32_t i;

	if (n == strlen("severity.high") && strncmp(key, "severity.high", n) == 0)
		s->high = v;
	else if (n == strlen("severity.medium") && strncmp(key, "severity.medium", n) == 0)
		s->medium = v;
	else {
		for (i = 0; i < RULE_N; i++)
			if (strlen(rule_rows[i].id) + m == n &&
				strncmp(key, rule_rows[i].id, n - m) == 0 &&
				strncmp(key + n - m, behind, m) == 0)
				break;
		if (i == RULE_N)
			return false;
		s->threshold[i] = v;
	}
	return true;
}

static int set_one(struct rule_settings *s, const char *words, size_t n, struct err *e)
{
	const char *is = memchr(words, '=', n);
	const size_t key = is != NULL ? (size_t)(is - words) : n,
		     rest = is != NULL ? n - key - 1 : 0;
	char digits[32], *end;
	double v;

	if (key == strlen("preset") && strncmp(words, "preset", key) == 0) {
		if (rest == 7 && strncmp(is + 1, "default", rest) == 0)
			rule_defaults(s);
		else if (rest == 6 && strncmp(is + 1, "strict", rest) == 0)
			be_strict(s);
		else
			return err_set(e, -EINVAL, "--set preset=: default or strict");
		return 0;
	}
	if (rest == 0 || rest >= sizeof(digits))
		return err_set(e, -EINVAL,
			"--set '%.*s': write RULE.threshold=NUMBER, severity.high=, "
			"severity.medium= or preset=",
			(int)(n < 64 ? n : 64), words);
	memcpy(digits, is + 1, rest);
	digits[rest] = '\0';
	v = strtod(digits, &end);
	if (*end != '\0' || end == digits || !isfinite(v) || v < 0)
		return err_set(e, -EINVAL, "--set: '%s' is not a number", digits);
	if (!set_number(s, words, key, v))
		return err_set(e, -EINVAL,
			"--set: there is no '%.*s'; `protonview bottlenecks --all` lists the rules",
			(int)(key < 64 ? key : 64), words);
	return 0;
}

int rule_set(struct rule_settings *s, const char *words, struct err *e)
{
	size_t n;
	int r;

	for (;; words += n + 1) {
		n = strcspn(words, ",");
		r = set_one(s, words, n, e);
		if (r < 0 || words[n] == '\0')
			return r;
	}
}

int severity_of(const char *word)
{
	int i;

	for (i = SEVERITY_LOW; i <= SEVERITY_HIGH; i++)
		if (strcmp(severity_words[i], word) == 0)
			return i;
	return -1;
}

/* --- what the session has */

static bool has_memory(const struct facts *f)
{
	uint32_t k;

	for (k = 0; f->step != NULL && k < f->step->n_values; k++)
		if (strncmp(f->step->value_name[k], "allocated", 9) == 0)
			return true;
	return f->leak.stored;
}

/* Whether what compiles would have been seen. */
static bool has_compiles(const struct facts *f)
{
	const struct profile_head *h = &f->p->head;
	uint32_t i;

	for (i = 0; f->step != NULL && i < f->step->n; i++)
		if (f->step->step[i].compiles > 0)
			return true;
	return h->uuid != NULL && (h->row.source == SOURCE_IMPORT ||
					  (h->row.switches & (SWITCH_OPS | SWITCH_OVERHEAD)) != 0);
}

/* The needs that it does not meet. */
static uint32_t lacking(const struct facts *f)
{
	uint32_t n = 0;

	n |= facts_has_steps(f) ? 0 : STEPS;
	n |= f->step_ns > 0 ? 0 : LOOP;
	n |= f->has_cpu ? 0 : SCOPES;
	n |= f->has_gpu ? 0 : GPU;
	n |= isnan(f->idle.share) ? IDLE : 0;
	n |= f->has_sync ? 0 : SYNC;
	n |= f->step != NULL ? 0 : TIMELINE;
	n |= f->has_parts ? 0 : PARTS;
	n |= has_compiles(f) ? 0 : COMPILES;
	n |= f->rank != NULL ? 0 : RANKS;
	n |= f->device != NULL ? 0 : READINGS;
	n |= has_memory(f) ? 0 : MEMORY;
	n |= f->p->n_configs > 0 ? 0 : CONFIGS;
	n |= f->p->durations != NULL || f->step != NULL ? 0 : HISTOGRAMS;
	n |= f->p->head.uuid != NULL && !f->is_part ? 0 : SESSION;
	return n;
}

const char *whole_words(enum facts_whole w)
{
	return w == WHOLE_STEPS  ? "of the steps"
	       : w == WHOLE_GPU  ? "of the GPU's work"
	       : w == WHOLE_USED ? "of the time from the GPU's first work to its last"
				 : "of the recorded time";
}

const char *each_words(const struct facts *f)
{
	return facts_has_steps(f) ? "a step" : "a second";
}

const char *time_words(double ns, struct time_words *buf)
{
	static const struct {
		double below, ns;
		int digits;
		const char *unit;
	} units[] = {{1e3, 1, 0, "ns"}, {1e6, 1e3, 1, "us"}, {1e9, 1e6, 3, "ms"},
		{HUGE_VAL, 1e9, 2, "s"}};
	uint32_t i = 0;

	while (ns >= units[i].below && i + 1 < sizeof(units) / sizeof(*units))
		i++;
	(void)snprintf(buf->text, sizeof(buf->text), "%.*f %s", units[i].digits, ns / units[i].ns,
		units[i].unit);
	return buf->text;
}

double whole_ns_of(const struct facts *f, enum facts_whole w)
{
	return w == WHOLE_STEPS                        ? f->step_ns
	       : w == WHOLE_SESSION || w == WHOLE_USED ? f->session_ns
	       : w == WHOLE_GPU                        ? f->node[0].gpu_ns
						       : 0;
}

double gain_of_step(const struct facts *f, const struct verdict *v)
{
	return v->of == WHOLE_STEPS && f->steps > 0 ? v->gain_ns / f->steps : (double)NAN;
}

/* --- verdicts */

static enum severity by_share(const struct rule_settings *s, double share)
{
	if (isnan(share))
		return SEVERITY_LOW;
	return 100 * share > s->high      ? SEVERITY_HIGH
	       : 100 * share >= s->medium ? SEVERITY_MEDIUM
					  : SEVERITY_LOW;
}

void judge_say(struct judge *j, struct verdict v, const char *fmt, ...)
{
	struct bottlenecks *b = j->to;
	va_list ap;

	b->rule[j->id].state = RULE_FOUND;
	if (b->n == VERDICTS_MAX) {
		b->left_out++;
		return;
	}
	v.rule = j->id;
	if (v.of == WHOLE_NONE)
		v.of = j->f->whole;
	if (v.severity == SEVERITY_NONE)
		v.severity = by_share(j->set, v.share);
	if (v.gain_ns < FLOOR * (double)j->f->p->head.duration_ns)
		v.severity = SEVERITY_LOW;
	if (v.severity > rule_rows[j->id].most)
		v.severity = rule_rows[j->id].most;
	if (v.advice == NULL)
		v.advice = rule_rows[j->id].advice;
	va_start(ap, fmt);
	(void)vsnprintf(v.words, sizeof(v.words), fmt, ap);
	va_end(ap);
	b->verdict[b->n++] = v;
}

void judge_note(struct judge *j, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(j->to->rule[j->id].note, sizeof(j->to->rule[j->id].note), fmt, ap);
	va_end(ap);
}

void judge_unsure(struct judge *j, const char *fmt, ...)
{
	va_list ap;

	j->to->rule[j->id].state = RULE_UNSURE;
	va_start(ap, fmt);
	(void)vsnprintf(j->to->rule[j->id].note, sizeof(j->to->rule[j->id].note), fmt, ap);
	va_end(ap);
}

/* Whether mending it takes idle time of the GPU away. */
static bool is_of_idle(enum rule_id id)
{
	return id == RULE_data_loader || id == RULE_cpu_gpu_sync || id == RULE_alloc_in_loop ||
	       id == RULE_pin_in_loop || id == RULE_host_alone || id == RULE_launch_bound ||
	       id == RULE_unfused_optimizer;
}

static bool is_within(const struct profile *p, uint32_t node, uint32_t of)
{
	while (node != PROFILE_NONE && node != of)
		node = p->node[node].parent;
	return node == of && of != PROFILE_NONE && of != 0;
}

/* All of the idle time there is, or the same place of the tree: what one gives back another cannot, too. */
static bool share_idle(
	const struct facts *f, const struct verdict *a, const struct verdict *b, double all)
{
	return a->rule != b->rule && is_of_idle(a->rule) && is_of_idle(b->rule) && a->of == b->of &&
	       a->gain_ns > 0 && b->gain_ns > 0 &&
	       ((a->of == f->idle.of && all > f->idle.ns) || is_within(f->p, a->node, b->node) ||
		       is_within(f->p, b->node, a->node));
}

/* Time of whole steps, whatever it is made of: others may name a part of it. */
static bool is_of_steps(enum rule_id id)
{
	return id == RULE_slow_steps || id == RULE_jitter || id == RULE_recompiles;
}

static bool share_steps(const struct verdict *a, const struct verdict *b)
{
	return a->rule != b->rule && (is_of_steps(a->rule) || is_of_steps(b->rule)) &&
	       a->of == b->of && a->severity > SEVERITY_LOW && b->severity > SEVERITY_LOW &&
	       a->gain_ns > 0 && b->gain_ns > 0;
}

static void note_shared(struct judge *j, const struct verdict *v, double all)
{
	struct bottlenecks *b = j->to;
	char names[96] = "";
	double together = v->gain_ns;
	struct time_words most;
	bool idle = true;
	uint32_t k, n = 0;

	for (k = 0; k < b->n; k++) {
		const struct verdict *x = &b->verdict[k];
		const bool is_idle = share_idle(j->f, v, x, all);

		if (!is_idle && !share_steps(v, x))
			continue;
		idle &= is_idle;
		together += x->gain_ns;
		if (strstr(names, rule_rows[x->rule].id) != NULL)
			continue;
		(void)snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			n++ > 0 ? ", " : "", rule_rows[x->rule].id);
	}
	j->id = v->rule;
	together = fmin(together, idle ? j->f->idle.ns : whole_ns_of(j->f, v->of));
	if (n > 0)
		judge_note(j, "%s may give back the same %stime: together at most %s%s", names,
			idle ? "idle " : "",
			time_words(
				facts_has_steps(j->f) ? together / j->f->steps : together, &most),
			facts_has_steps(j->f) ? " a step" : "");
}

static void note_all_shared(struct judge *j)
{
	struct bottlenecks *b = j->to;
	double all = 0;
	uint32_t i;

	for (i = 0; i < b->n; i++)
		all += is_of_idle(b->verdict[i].rule) && b->verdict[i].gain_ns > 0
			       ? b->verdict[i].gain_ns
			       : 0;
	for (i = 0; i < b->n; i++)
		if (*b->rule[b->verdict[i].rule].note == '\0')
			note_shared(j, &b->verdict[i], all);
}

static double or_none(double v)
{
	return isnan(v) ? -1 : v;
}

static int by_worth(const void *a, const void *b)
{
	const struct verdict *x = a, *y = b;

	if (x->severity != y->severity)
		return x->severity > y->severity ? -1 : 1;
	if (or_none(x->gain_ns) != or_none(y->gain_ns))
		return or_none(x->gain_ns) > or_none(y->gain_ns) ? -1 : 1;
	return x->rule != y->rule  ? (x->rule < y->rule ? -1 : 1)
	       : x->node < y->node ? -1
				   : x->node > y->node;
}

void bottlenecks_find(const struct facts *f, const struct rule_settings *s, struct bottlenecks *ret)
{
	static rule_fn *const rules[RULE_N] = {
#define X(id, ...) [RULE_##id] = rule_##id,
		RULES(X)
#undef X
	};
	const uint32_t lacks = lacking(f);
	struct judge j = {.f = f, .set = s, .to = ret};
	uint32_t i;

	memset(ret, 0, sizeof(*ret));
	memcpy(ret->threshold, s->threshold, sizeof(ret->threshold));
	for (i = 0; i < RULE_N; i++) {
		j.id = i;
		j.threshold = s->threshold[i];
		ret->rule[i].lacks = lacks & rule_rows[i].needs;
		if (ret->rule[i].lacks != 0)
			ret->rule[i].state = RULE_LACKS;
		else
			rules[i](&j);
	}
	note_all_shared(&j);
	qsort(ret->verdict, ret->n, sizeof(*ret->verdict), by_worth);
}
