/* SPDX-License-Identifier: MIT. flat.h: one row for each name, or kind of work, over all the paths it
 * stands on: what runs on the GPU, else the scopes. */
#ifndef PROTOND_VIEWER_FLAT_H
#define PROTOND_VIEWER_FLAT_H

#include "metrics.h"

#define FLAT_BARS 24u

/* What is a row: a name; GPU work of a family (family.h); of a class ("compute", "h2d"); the name of a
 * call of the vendor's library, which the switches of a session record. */
#define FLAT_BY(X) X(name) X(family) X(class) X(call)
enum flat_by {
#define X(word) FLAT_BY_##word,
	FLAT_BY(X)
#undef X
};
#define FLAT_BY_WORDS "name family class call"

struct flat_bars { /* a row's durations, as a histogram of few bars for people to see */
	uint32_t n;
	double from_ns[FLAT_BARS + 1]; /* bar i has [from_ns[i], from_ns[i + 1]) */
	uint64_t count[FLAT_BARS];
};

struct flat_row {
	const char *name;
	uint8_t class; /* enum cell_class */
	uint32_t paths, configs;
	uint32_t names; /* that are in it */
	double count, sum_ns;
	double self_ns; /* of scopes: without the scopes inside; NAN: not known */
	double share;   /* of flat.total_ns, a recursive scope's time once; NAN: that is 0 */
	double avg_ns, min_ns, p50_ns, p99_ns, max_ns; /* NAN: not known */
	const struct profile_config
		*config;              /* the most frequent one; NULL: not known, or not of a name */
	const struct flat_bars *bars; /* NULL: not known */
};

struct flat {
	struct flat_row *row;   /* by sum_ns, the highest first */
	struct flat_bars *bars; /* the rows' */
	uint32_t n;
	double total_ns; /* of all rows; for scopes, of those that stand in no other */
	enum flat_by by;
	bool is_cpu;   /* the rows are scopes */
	bool has_hist; /* p50 and p99 are known, within 3 %; */
	bool coarse;   /* some of them within 22 % (hist.h) */
};

/* What the view is to derive, before it is filtered, so that self_ns is known; NULL: nothing. */
const char *flat_metrics(const struct profile *p);
int flat_by(const char *word); /* -EINVAL */
/* Borrows the profile's strings. -ENOMEM; -ENODATA: no times at all, or none of that kind. */
int flat_new(const struct view *v, enum flat_by by, struct flat **ret);
/* The rows as nodes below ROOT, each with the sums of its own values, for other metrics than a row
 * has; borrows the devices' strings. What needs the tree is not known of it: self_X, and X/% of
 * scopes. */
int flat_profile(const struct view *v, struct profile **ret); /* -ENOMEM, -ENODATA */
/* By "sum" (as it is), "self", "count", "avg", "min", "p50", "p99", "max", the highest first, or by
 * "name". -EINVAL. */
#define FLAT_SORTS "sum self count avg min p50 p99 max name"
int flat_sort(struct flat *f, const char *key);
/* How far p50 and p99 may be off, in words. */
const char *flat_accuracy(const struct flat *f);
void flat_free(struct flat *f); /* NULL is fine */

#endif
