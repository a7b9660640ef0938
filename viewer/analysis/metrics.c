/* SPDX-License-Identifier: MIT. metrics.c: derived metrics, by Proton's rules: what is asked for,
 * which raw metric answers it, and the arithmetic. docs/metrics.md has the formulas. */
#include "metrics.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter_terms.h"
#include "guess.h"
#include "metrics_peak.h"
#include "metrics_raw.h"
#include "text.h"

#define METADATA "__proton_launch_metadata"

enum how { HOW_TIME, HOW_AVERAGE, HOW_RATE, HOW_DEPTH };

struct derived {
	const char *name;
	enum how how;
	const char *source; /* raw metric, without its unit */
	double scale; /* TIME, AVERAGE: ns in one; RATE: of one unit a second; DEPTH: unused */
	const char *unit;
};

/* clang-format off */
#define TIMES(prefix, how, source)                                                                 \
	{prefix "/s", how, source, 1e9, "s"}, {prefix "/ms", how, source, 1e6, "ms"},              \
	{prefix "/us", how, source, 1e3, "us"}, {prefix "/ns", how, source, 1, "ns"}
#define RATES(thing, source)                                                                       \
	{thing "/s", HOW_RATE, source, 1, thing "/s"},                                             \
	{"g" thing "/s", HOW_RATE, source, 1e9, "g" thing "/s"},                                   \
	{"t" thing "/s", HOW_RATE, source, 1e12, "t" thing "/s"}
static const struct derived derived[] = {
	TIMES("time", HOW_TIME, "time"),
	TIMES("avg_time", HOW_AVERAGE, "time"),
	TIMES("cpu_time", HOW_TIME, "cpu_time"),
	TIMES("avg_cpu_time", HOW_AVERAGE, "cpu_time"),
	TIMES("copy_time", HOW_TIME, "copy_time"),
	TIMES("sync_time", HOW_TIME, "sync_time"),
	TIMES("overhead_time", HOW_TIME, "overhead_time"),
	TIMES("launch_time", HOW_TIME, "launch_time"),
	TIMES("avg_launch_time", HOW_AVERAGE, "launch_time"),
	TIMES("launch_delay", HOW_TIME, "launch_delay"),
	{"queue_depth", HOW_DEPTH, "launch_delay", 1, ""},
	TIMES("sample_time", HOW_TIME, "sample_time"),
	TIMES("off_cpu_time", HOW_TIME, "off_cpu_time"),
	TIMES("run_queue_time", HOW_TIME, "run_queue_time"),
	TIMES("task_clock", HOW_TIME, "task_clock"),
	{"ipc", HOW_AVERAGE, "instructions", 1, ""},
	TIMES("avg_launch_delay", HOW_AVERAGE, "launch_delay"),
	TIMES("api_time", HOW_TIME, "api_time"),
	TIMES("avg_api_time", HOW_AVERAGE, "api_time"),
	TIMES(GPU_TIME, HOW_TIME, GPU_TIME),
	TIMES(SELF "time", HOW_TIME, SELF "time"),
	TIMES(SELF GPU_TIME, HOW_TIME, SELF GPU_TIME),
	TIMES(SELF "cpu_time", HOW_TIME, SELF "cpu_time"),
	{GPU_TIME, HOW_TIME, GPU_TIME, 1, "ns"}, {GPU_COUNT, HOW_TIME, GPU_COUNT, 1, ""},
	RATES("flop", "flops"),
	RATES("flop8", "flops8"), RATES("flop16", "flops16"),
	RATES("flop32", "flops32"), RATES("flop64", "flops64"),
	RATES("byte", "bytes"),
};
static const struct { const char *name; uint32_t width; } flops[] = {
	{"flops8", 8}, {"flops16", 16}, {"flops32", 32}, {"flops64", 64},
};
/* clang-format on */

/* --- the view */

static bool is_metadata(const char *name)
{
	size_t n = sizeof(METADATA) - 1;

	return *name == '_' && strncmp(name, METADATA, n) == 0 &&
	       (name[n] == '\0' || name[n] == ':');
}

static bool has_value(const struct profile *p, uint32_t node)
{
	uint32_t i;

	for (i = 0; i < p->n_metrics; i++)
		if (profile_value(p, node, i)->type != VALUE_NONE)
			return true;
	return false;
}

enum { DROPPED = 0, KEPT = 1, EMPTY = 2 };

int view_new(const struct profile *p, struct view **ret_view)
{
	struct view *v = calloc(1, sizeof(*v));
	uint32_t i;

	if (v == NULL)
		return -ENOMEM;
	v->p = p;
	v->keep = calloc(p->n_nodes, 1);
	if (v->keep == NULL) {
		free(v);
		return -ENOMEM;
	}
	v->keep[0] = KEPT;
	for (i = 1; i < p->n_nodes; i++)
		if (v->keep[p->node[i].parent] != DROPPED && !is_metadata(p->node[i].name))
			v->keep[i] = has_value(p, i) ? KEPT : EMPTY;
	/* A parent comes before its children, so from the end the children are settled first. */
	for (i = p->n_nodes - 1; i > 0; i--) {
		if (v->keep[i] == EMPTY)
			v->keep[i] = DROPPED;
		else if (v->keep[i] == KEPT)
			v->keep[p->node[i].parent] = KEPT;
	}
	*ret_view = v;
	return 0;
}

void view_free(struct view *v)
{
	uint32_t i;

	if (v == NULL)
		return;
	for (i = 0; i < v->n_columns; i++)
		free(v->col[i].v);
	free(v->keep);
	free(v);
}

int view_add_column(struct view *v, const struct column *like, double **ret_v)
{
	double *numbers = raw_numbers_new(v->p->n_nodes);

	if (numbers == NULL || v->n_columns == VIEW_COLUMNS_MAX) {
		free(numbers);
		return -ENOMEM;
	}
	v->col[v->n_columns] = *like;
	v->col[v->n_columns++].v = numbers;
	*ret_v = numbers;
	return 0;
}

double view_total(const struct view *v, uint32_t column)
{
	const struct column *c = &v->col[column];
	const struct profile *p = v->p;
	uint8_t *inside;
	double sum = 0;
	uint32_t i;

	if (c->inclusive)
		return c->v[0];
	inside = c->nested ? calloc(p->n_nodes, 1) : NULL;
	for (i = 0; i < p->n_nodes; i++) {
		if (inside != NULL && i > 0)
			inside[i] = inside[p->node[i].parent] || !isnan(c->v[p->node[i].parent]);
		if (!isnan(c->v[i]) && (inside == NULL || !inside[i]))
			sum += c->v[i];
	}
	free(inside);
	return sum;
}

/* --- raw metrics */

double value_number(const struct value *v)
{
	switch (v->type) {
	case VALUE_I64:
		return (double)v->i;
	case VALUE_U64:
		return (double)v->u;
	case VALUE_F64:
		return v->f;
	default:
		return (double)NAN;
	}
}

void metric_bare(const char *name, char *buf, size_t n)
{
	size_t len = strcspn(name, "("), i;

	while (len > 0 && isspace((unsigned char)name[len - 1]))
		len--;
	while (len > 0 && isspace((unsigned char)*name)) {
		name++;
		len--;
	}
	if (len >= n)
		len = n - 1;
	for (i = 0; i < len; i++)
		buf[i] = (char)tolower((unsigned char)name[i]);
	buf[len] = '\0';
}

void metric_unit(const char *name, char *buf, size_t n)
{
	const char *unit = strchr(name, '(');
	const size_t len = unit == NULL ? 0 : strcspn(unit + 1, ")");

	*buf = '\0';
	if (unit != NULL)
		snprintf(
			buf, n, "%.*s", (int)(len < n ? len : text_cut(unit + 1, n - 1)), unit + 1);
}

/* Of any profile: that one has none of it does not make it look mistyped. */
static bool is_known(const char *request)
{
	bool known = strcmp(request, "count") == 0 || strcmp(request, "util") == 0;
	size_t i;

	for (i = 0; i < sizeof(derived) / sizeof(derived[0]); i++)
		known |= strcmp(request, derived[i].name) == 0 ||
			 strcmp(request, derived[i].source) == 0;
	return known;
}

/* What the switch counters counts, or is made of that. */
static bool is_counted(const char *request)
{
	const size_t n = strcspn(request, "/ (");
	const char *metric;
	uint32_t i;

	for (i = 0; i < COUNTER_MAX; i++) {
		metric = cpu_counter(i)->metric;
		if (strcspn(metric, " ") == n && strncmp(metric, request, n) == 0)
			return true;
	}
	return strcmp(request, "ipc") == 0;
}

/* A known name is missing from this profile; any other may be mistyped. */
static int unknown_metric(const struct profile *p, const char *request, struct err *e)
{
	struct guess g = {.word = request};
	const char *slash = strchr(request, '/');
	const bool is_time =
		strncmp(request, "time", 4) == 0 || strncmp(request, "avg_time", 8) == 0;
	const bool known = is_known(request);
	uint32_t i;
	char bare[256];

	if (is_counted(request))
		return err_set(e, -ENOENT,
			"this profile has no metric '%s': `-s counters` counts it, where the CPU "
			"or "
			"the kernel lets it, and a note in `protonview tree` says what they did "
			"not",
			request);
	if (is_time && raw_find(p, "copy_time") != PROFILE_NONE)
		return err_set(e, -ENOENT,
			"this profile has copies and no kernels, and so no metric '%s'; ask for "
			"gpu_time%s",
			request, slash != NULL ? slash : "");
	for (i = 0; i < sizeof(derived) / sizeof(derived[0]); i++)
		if (raw_has(p, derived[i].source))
			guess_try(&g, derived[i].name);
	for (i = 0; i < p->n_metrics; i++) {
		metric_bare(p->metric[i].name, bare, sizeof(bare));
		guess_try(&g, bare);
	}
	if (known && raw_time_is_cpu(p))
		return err_set(e, -ENOENT,
			"this profile has no GPU work and so no metric '%s'; scopes have time%s "
			"and calls, and -l lists what else there is",
			request, slash != NULL ? slash : "");
	return err_set(e, -ENOENT, "this profile has no metric '%s'; -l lists those it has%s",
		request, known ? "" : g.question);
}

static int get_raw(
	const struct view *v, const char *name, const char *request, struct raw *ret, struct err *e)
{
	const int r = raw_new(v, name, ret);

	if (r == -ENOENT)
		return unknown_metric(v->p, request, e);
	return r < 0 ? err_set(e, r, "out of memory") : 0;
}

static struct column *name_column(
	struct view *v, const char *name, bool inclusive, const char *unit)
{
	struct column *c = &v->col[v->n_columns];

	*c = (struct column){.inclusive = inclusive};
	snprintf(c->name, sizeof(c->name), "%.*s%s", (int)text_cut(name, 100), name,
		inclusive ? " (inc)" : "");
	snprintf(c->unit, sizeof(c->unit), "%s", unit);
	return c;
}

/* "time" or "time (ns)": the raw column. */
static int add_raw(struct view *v, const char *request, struct err *e)
{
	const char *name;
	struct column *c;
	struct raw raw;
	uint32_t i, n = 0;
	int r = get_raw(v, request, request, &raw, e);

	if (r < 0)
		return r;
	for (i = 0; i < v->p->n_nodes; i++)
		n += isnan(raw.v[i]) ? 0u : 1u;
	for (i = 0; n == 0 && i < v->p->n_nodes; i++) {
		if (profile_value(v->p, i, raw.metric)->type < VALUE_STR)
			continue;
		free(raw.v);
		return err_set(e, -EINVAL,
			"metric '%s' is not a single number, so it cannot be a column", request);
	}
	name = raw.is_computed ? request : v->p->metric[raw.metric].name;
	c = name_column(v, name, raw.inclusive, "");
	metric_unit(v->p->metric[raw.metric].name, c->unit, sizeof(c->unit));
	c->nested = strncmp(name, "cpu_time", 8) == 0 || strcmp(name, "calls") == 0;
	c->is_cpu = raw.is_cpu;
	c->v = raw.v;
	v->n_columns++;
	return 0;
}

/* "X/%": of ROOT's when inclusive, of the column's sum when not. */
static int add_share(struct view *v, const char *request, const char *slash, struct err *e)
{
	struct column *c;
	struct raw raw;
	char name[256];
	uint32_t i;
	int r;

	snprintf(name, sizeof(name), "%.*s", (int)(slash - request), request);
	if (strcmp(slash, "/%") != 0 && raw_has(v->p, name))
		return err_set(e, -EINVAL, "metric '%s': unknown unit '%s'", request, slash + 1);
	r = get_raw(v, name, request, &raw, e);
	if (r < 0)
		return r;
	for (i = 0; i < v->p->n_nodes; i++)
		raw.v[i] = raw.v[i] / raw.whole * 100;
	c = name_column(v, request, raw.inclusive, "%");
	c->is_cpu = raw.is_cpu;
	c->v = raw.v;
	v->n_columns++;
	return 0;
}

/* --- derived metrics */

/* What a derived metric is divided by; NULL: nothing. */
static const char *divisor(const struct view *v, const struct derived *d)
{
	if (d->how == HOW_TIME || d->how == HOW_DEPTH)
		return NULL;
	if (d->how == HOW_RATE)
		return "time";
	if (strcmp(d->source, "launch_time") == 0)
		return "launches";
	if (strcmp(d->source, "launch_delay") == 0)
		return "launch_delays";
	if (strcmp(d->source, "api_time") == 0)
		return "api_calls";
	if (strcmp(d->source, "instructions") == 0)
		return "cycles";
	/* Proton's files count kernels alone, and its averages are of these. */
	if (raw_find(v->p, "calls") != PROFILE_NONE &&
		(strcmp(d->source, "cpu_time") == 0 || raw_time_is_cpu(v->p)))
		return "calls";
	return "count";
}

static int add_derived(struct view *v, const struct derived *d, struct err *e)
{
	const char *by_name = divisor(v, d);
	struct raw raw, by = {.v = NULL};
	const double recorded = (double)v->p->head.duration_ns;
	/* Little's law: how many wait is how long they waited, by how long one looked. */
	const double scale = d->how == HOW_DEPTH ? recorded : d->scale;
	struct column *c;
	uint32_t i;
	int r = d->how == HOW_DEPTH && !(recorded > 0)
			? err_set(e, -ENOENT,
				  "metric '%s' needs the time that was recorded, which this "
				  "profile does not say",
				  d->name)
			: get_raw(v, d->source, d->name, &raw, e);

	if (r < 0)
		return r;
	if (by_name != NULL) {
		r = raw_new(v, by_name, &by);
		if (r < 0) {
			free(raw.v);
			return err_set(e, r, "metric '%s' needs '%s', which is not in this profile",
				d->name, by_name);
		}
	}
	for (i = 0; i < v->p->n_nodes; i++) {
		if (by.v != NULL) /* by nothing is no number */
			raw.v[i] /= by.v[i] == 0         ? (double)NAN
				    : d->how == HOW_RATE ? by.v[i] / 1e9
							 : by.v[i];
		raw.v[i] /= scale;
	}
	free(by.v);
	/* Proton names all of these (inc), cpu_time too, which does not add up to its parents. */
	c = name_column(v, d->name, strncmp(d->name, SELF, strlen(SELF)) != 0, d->unit);
	c->nested = strcmp(d->source, "cpu_time") == 0;
	c->inclusive &= !c->nested;
	c->more_is_better = d->how == HOW_RATE || strcmp(d->name, "ipc") == 0;
	c->is_cpu = raw.is_cpu;
	c->v = raw.v;
	v->n_columns++;
	return 0;
}

static const struct profile_device *device_of(
	const struct profile *p, uint32_t node, uint32_t id, uint32_t type)
{
	const struct value *i = profile_value(p, node, id), *t = profile_value(p, node, type);
	uint32_t n;

	if (i->type != VALUE_STR || t->type != VALUE_STR)
		return NULL;
	for (n = 0; n < p->n_devices; n++)
		if (strcmp(p->device[n].id, i->s) == 0 && strcmp(p->device[n].type, t->s) == 0)
			return &p->device[n];
	return NULL;
}

const struct profile_device *metric_device(const struct profile *p, uint32_t node)
{
	const uint32_t id = profile_find_metric(p, "device_id"),
		       type = profile_find_metric(p, "device_type");

	return id == PROFILE_NONE || type == PROFILE_NONE ? NULL : device_of(p, node, id, type);
}

/* The least time that the node's own flops and bytes could take on its device, seconds. */
static int least_time(const struct profile *p, uint32_t node, const struct profile_device *d,
	double *ret_s, struct err *e)
{
	double by_flops = 0, by_bytes, own, peak;
	uint32_t bytes = profile_find_metric(p, "bytes"), m;
	size_t i;
	int r;

	for (i = 0; i < sizeof(flops) / sizeof(flops[0]); i++) {
		m = profile_find_metric(p, flops[i].name);
		own = m == PROFILE_NONE ? (double)NAN : value_number(profile_value(p, node, m));
		if (isnan(own))
			continue;
		r = peak_flops(d, flops[i].width, &peak, e);
		if (r < 0)
			return r;
		by_flops += own / peak;
	}
	*ret_s = by_flops;
	own = bytes == PROFILE_NONE ? (double)NAN : value_number(profile_value(p, node, bytes));
	if (isnan(own))
		return 0;
	r = peak_bytes(d, &peak, e);
	if (r < 0)
		return r;
	by_bytes = own / peak;
	if (by_bytes > by_flops)
		*ret_s = by_bytes;
	return 0;
}

static int fill_util(struct view *v, double *numbers, struct err *e)
{
	const struct profile *p = v->p;
	uint32_t id = profile_find_metric(p, "device_id"),
		 type = profile_find_metric(p, "device_type"), i;
	const struct profile_device *d;
	double least;
	int r;

	for (i = 0; i < p->n_nodes; i++) {
		d = id == PROFILE_NONE || type == PROFILE_NONE ? NULL : device_of(p, i, id, type);
		least = (double)NAN;
		if (d != NULL && v->keep[i]) {
			r = least_time(p, i, d, &least, e);
			if (r < 0)
				return r;
		}
		numbers[i] = least / (numbers[i] / 1e9);
	}
	return 0;
}

static int add_util(struct view *v, struct err *e)
{
	bool any = profile_find_metric(v->p, "bytes") != PROFILE_NONE;
	struct column *c;
	struct raw time;
	size_t i;
	int r;

	for (i = 0; i < sizeof(flops) / sizeof(flops[0]); i++)
		any |= profile_find_metric(v->p, flops[i].name) != PROFILE_NONE;
	if (!any)
		return err_set(e, -ENOENT,
			"util needs one of the metrics flops8, flops16, flops32, flops64 and "
			"bytes; this profile has none of them");
	r = raw_find(v->p, "time") == PROFILE_NONE ? -ENOENT : raw_new(v, "time", &time);
	if (r < 0)
		return err_set(e, r, "util needs kernels' time, which is not in this profile");
	r = fill_util(v, time.v, e);
	if (r < 0) {
		free(time.v);
		return r;
	}
	c = name_column(v, "util", false, "");
	c->more_is_better = true;
	c->v = time.v;
	v->n_columns++;
	return 0;
}

static int add_metric(struct view *v, const char *request, struct err *e)
{
	const char *slash = strchr(request, '/');
	size_t i;

	if (v->n_columns == VIEW_COLUMNS_MAX)
		return err_set(e, -EINVAL, "more than %u metrics", VIEW_COLUMNS_MAX);
	if (strcmp(request, "util") == 0)
		return add_util(v, e);
	for (i = 0; i < sizeof(derived) / sizeof(derived[0]); i++)
		if (strcmp(request, derived[i].name) == 0)
			return add_derived(v, &derived[i], e);
	if (slash != NULL)
		return add_share(v, request, slash, e);
	return add_raw(v, request, e);
}

static void note_missing(struct view *v, const char *request)
{
	const size_t n = strlen(v->missing);

	(void)snprintf(
		v->missing + n, sizeof(v->missing) - n, "%s'%s'", n > 0 ? ", " : "", request);
}

int view_derive(struct view *v, const char *list, struct err *e)
{
	char request[256];
	size_t n;
	int r = 0, missing = 0;

	if (list == NULL)
		list = view_default(v->p);
	for (; r == 0 && list != NULL; list = list[n] == ',' ? list + n + 1 : NULL) {
		n = strcspn(list, ",");
		if (n == 0 || n >= sizeof(request))
			return err_set(e, -EINVAL, "-m: a name in the list is empty or too long");
		snprintf(request, sizeof(request), "%.*s", (int)n, list);
		r = add_metric(v, request, e);
		if (r != -ENOENT || !is_known(request))
			continue;
		missing = -ENOENT;
		r = 0;
		note_missing(v, request);
	}
	return r == 0 && v->n_columns == 0 ? missing : r;
}

static const char *default_of_scopes(const struct profile *p)
{
	if (raw_find(p, "calls") == PROFILE_NONE)
		return "cpu_time/ms";
	if (raw_has(p, "instructions") && raw_has(p, "cycles"))
		return "cpu_time/ms,calls,instructions,ipc";
	return raw_has(p, "task_clock") ? "cpu_time/ms,calls,task_clock/ms" : "cpu_time/ms,calls";
}

const char *view_default(const struct profile *p)
{
	static const char *const gpu[] = {GPU_TIME "/ms", GPU_TIME "/ms," GPU_COUNT,
		GPU_TIME "/ms,cpu_time/ms", GPU_TIME "/ms," GPU_COUNT ",cpu_time/ms",
		GPU_TIME "/ms,sample_time/ms", GPU_TIME "/ms," GPU_COUNT ",sample_time/ms",
		GPU_TIME "/ms,cpu_time/ms,sample_time/ms",
		GPU_TIME "/ms," GPU_COUNT ",cpu_time/ms,sample_time/ms"};
	const bool sampled = raw_has(p, "sample_time");
	const bool cpu = raw_find(p, "cpu_time") != PROFILE_NONE;
	const bool count = raw_has(p, GPU_COUNT);
	uint32_t i;

	if (raw_has(p, GPU_TIME))
		return gpu[(sampled ? 4 : 0) + (cpu ? 2 : 0) + (count ? 1 : 0)];
	if (sampled)
		return cpu ? "cpu_time/ms,sample_time/ms,off_cpu_time/ms"
			   : "sample_time/ms,off_cpu_time/ms";
	if (cpu)
		return default_of_scopes(p);
	for (i = 0; i < p->n_metrics; i++)
		if (p->metric[i].kind != KIND_PROPERTY && strchr(p->metric[i].name, ',') == NULL &&
			strcmp(metric_shape(p, i), "number") == 0)
			return p->metric[i].name;
	return NULL;
}

const char *metrics_derived(uint32_t i)
{
	return i < sizeof(derived) / sizeof(derived[0]) ? derived[i].name : NULL;
}

const char *metric_shape(const struct profile *p, uint32_t metric)
{
	const char *shape = "number";
	uint32_t i;

	for (i = 0; i < p->n_nodes; i++) {
		const struct value *v = profile_value(p, i, metric);

		if (!isnan(value_number(v)))
			return "number";
		if (v->type >= VALUE_STR)
			shape = v->type == VALUE_STR ? "text" : "list";
	}
	return shape;
}
