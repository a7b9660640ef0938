/* SPDX-License-Identifier: MIT. bottlenecks.h: the rules' verdicts on a session: what is slow, how much, where, what to do, and
 * what that gives back at most. Structs in, structs out. */
#ifndef PROTOND_VIEWER_BOTTLENECKS_H
#define PROTOND_VIEWER_BOTTLENECKS_H

#include "facts.h"
#include "rules.h"

#define VERDICTS_MAX 64u

enum severity { SEVERITY_NONE, SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH };

/* Where a verdict is seen: what of the page, and of protonview, shows it. */
#define VERDICT_VIEWS(X) X(tree) X(steps) X(ranks) X(series) X(summary)
enum verdict_view {
#define X(name) VIEW_##name,
	VERDICT_VIEWS(X)
#undef X
};

struct verdict {
	enum rule_id rule;
	enum severity severity;
	enum facts_whole of; /* what share and gain are of; WHOLE_NONE: the whole */
	double share;        /* NAN: it has none */
	double gain_ns;      /* in all, what mending gives back at most; NAN: not known */
	uint32_t node;       /* of the tree; PROFILE_NONE: it has no place there */
	uint32_t step;       /* that shows it best: place in facts.step, from 1; 0: any may */
	enum verdict_view view;
	const char *advice;
	char words[240]; /* what: numbers, and no text of a job */
};

enum rule_state {
	RULE_CLEAN,
	RULE_FOUND,
	RULE_LACKS,  /* data that it needs was not recorded */
	RULE_UNSURE, /* there is too little of it */
};

struct rule_row {
	const char *id, *unit, *what, *advice;
	uint32_t needs; /* bits of enum rule_need */
	double threshold;
	enum severity most;
};

enum rule_need {
#define X(name, words, how) NEED_##name,
	RULE_NEEDS(X)
#undef X
		NEED_N
};

struct need_row {
	const char *words, *how;
};

extern const struct rule_row rule_rows[RULE_N];
extern const struct need_row need_rows[NEED_N];
extern const char *const severity_words[]; /* "", "LOW", "MEDIUM", "HIGH" */
extern const char *const verdict_views[],
	*const rule_states[]; /* "clean", "found", "lacks", "unsure" */

struct rule_settings {
	double threshold[RULE_N];
	double high, medium; /* severities, in % of the whole */
};

struct bottlenecks {
	struct verdict
		verdict[VERDICTS_MAX]; /* severity first, then gain, then the table's order */
	uint32_t n, left_out;
	double threshold[RULE_N]; /* that were used */
	struct {
		enum rule_state state;
		uint32_t lacks; /* bits */
		char note
			[160]; /* of a clean one what was seen all the same, of an unsure one why; "": nothing */
	} rule[RULE_N];
};

void rule_defaults(struct rule_settings *s);
/* "RULE.threshold=V", "severity.high=V", "severity.medium=V" or "preset=strict|default", parted by commas. -EINVAL with words. */
int rule_set(struct rule_settings *s, const char *words, struct err *e);
/* -1: no such severity. */
int severity_of(const char *word);

void bottlenecks_find(
	const struct facts *f, const struct rule_settings *s, struct bottlenecks *ret);

/* --- for rules_*.c */

struct judge {
	const struct facts *f;
	const struct rule_settings *set;
	struct bottlenecks *to;
	enum rule_id id;
	double threshold;
};

typedef void rule_fn(struct judge *j);
#define X(id, ...) rule_fn rule_##id;
RULES(X)
#undef X

/* Adds one, with its words; severity by share where it has none, and never above the rule's most. */
void judge_say(struct judge *j, struct verdict v, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Of a rule that found nothing to mend. */
void judge_note(struct judge *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Of one that cannot tell. */
void judge_unsure(struct judge *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "1.250 ms", for words; buf: where it may stand. */
struct time_words {
	char text[24];
};
const char *time_words(double ns, struct time_words *buf);
/* "of the steps", "of the recorded time", "of the GPU's work" and the like. */
const char *whole_words(enum facts_whole w);
/* "a step", or "a second" of a part without steps. */
const char *each_words(const struct facts *f);
double whole_ns_of(const struct facts *f, enum facts_whole w);
/* Of a verdict's gain; NAN: not known, or not of steps. */
double gain_of_step(const struct facts *f, const struct verdict *v);

#endif
