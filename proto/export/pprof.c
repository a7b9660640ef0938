/* SPDX-License-Identifier: MIT. pprof.c: the format pprof: gzipped perftools.profiles.Profile, as
 * `go tool pprof`, Pyroscope and Parca read it (https://github.com/google/pprof, profile.proto). A
 * sample is a node's path, leaf first, with what the node costs by itself. No I/O. */
#include <stdlib.h>
#include <zlib.h>

#include "cost.h"
#include "export_format.h"
#include "name_set.h"
#include "protobuf.h"

/* Numbers of fields in profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_DEFAULT_TYPE = 14,
	TYPE_TYPE = 1,
	TYPE_UNIT = 2,
	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_TEXT = 2,
	MAPPING_ID = 1,
	MAPPING_FILE = 5,
	MAPPING_HAS_FUNCTIONS = 7,
	LOCATION_ID = 1,
	LOCATION_MAPPING = 2,
	LOCATION_LINE = 4,
	LINE_FUNCTION = 1,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
};

struct writer {
	const struct profile *p;
	struct costs c;
	struct name_set strings; /* 0 is "" */
	uint32_t *string;        /* [n_nodes]: of its name */
	uint32_t device_id, device_type;
	struct text out, part, list;
	bool failed;
};

static uint32_t string(struct writer *w, const char *s)
{
	const uint32_t at = name_set_add(&w->strings, s);

	w->failed |= at == TABLE_NONE;
	return at;
}

static void put_types(struct writer *w)
{
	static const char *const unit[COST_N] = {
#define X(name, unit) [COST_##name] = (unit),
		COSTS(X)
#undef X
	};

	for (unsigned k = 0; k < w->c.n; k++) {
		pb_number(&w->part, TYPE_TYPE, string(w, cost_names[k]));
		pb_number(&w->part, TYPE_UNIT, string(w, unit[k]));
		pb_message(&w->out, PROFILE_SAMPLE_TYPE, &w->part);
	}
}

static void put_label(struct writer *w, const char *key, uint32_t metric, uint32_t node)
{
	const struct value *v = metric != PROFILE_NONE ? profile_value(w->p, node, metric) : NULL;

	if (v == NULL || v->type != VALUE_STR)
		return;
	pb_number(&w->list, LABEL_KEY, string(w, key));
	pb_number(&w->list, LABEL_TEXT, string(w, v->s));
	pb_message(&w->part, SAMPLE_LABEL, &w->list);
}

/* Location and function of a node have its number + 1, of a name its string's: each node is a
 * place, and what has one name is one function. */
static void put_sample(struct writer *w, uint32_t node)
{
	uint32_t at;

	for (at = node; at != 0 && at != PROFILE_NONE; at = w->p->node[at].parent)
		pb_varint(&w->list, w->string[at]);
	if (node == 0)
		pb_varint(&w->list, w->string[0]);
	pb_message(&w->part, SAMPLE_LOCATION, &w->list);
	for (unsigned k = 0; k < w->c.n; k++)
		pb_varint(&w->list, w->c.self[node][k]);
	pb_message(&w->part, SAMPLE_VALUE, &w->list);
	put_label(w, "device", w->device_id, node);
	put_label(w, "device_type", w->device_type, node);
	pb_message(&w->out, PROFILE_SAMPLE, &w->part);
}

static int put_samples(struct writer *w)
{
	uint32_t i;
	unsigned k;

	for (i = 0; i < w->p->n_nodes; i++) {
		for (k = 0; k < COST_N && w->c.self[i][k] == 0; k++)
			;
		if (k < COST_N)
			put_sample(w, i);
		if (w->out.failed)
			return -ENOMEM;
		if (w->out.n > EXPORT_TEXT_MAX)
			return -EFBIG;
	}
	return 0;
}

/* A name is a function, and the one place in it. */
static void put_functions(struct writer *w, uint32_t names)
{
	uint32_t i;

	for (i = 1; i < names; i++) {
		pb_number(&w->part, FUNCTION_ID, i);
		pb_number(&w->part, FUNCTION_NAME, i);
		pb_message(&w->out, PROFILE_FUNCTION, &w->part);
		pb_number(&w->list, LINE_FUNCTION, i);
		pb_number(&w->part, LOCATION_ID, i);
		pb_number(&w->part, LOCATION_MAPPING, 1);
		pb_message(&w->part, LOCATION_LINE, &w->list);
		pb_message(&w->out, PROFILE_LOCATION, &w->part);
	}
}

static void put_mapping(struct writer *w)
{
	const char *command = w->p->head.command;

	pb_number(&w->part, MAPPING_ID, 1);
	pb_number(&w->part, MAPPING_FILE, string(w, command != NULL ? command : "protond"));
	pb_number(&w->part, MAPPING_HAS_FUNCTIONS, 1);
	pb_message(&w->out, PROFILE_MAPPING, &w->part);
}

static int put_profile(struct writer *w)
{
	uint32_t i, names;
	int r;

	(void)string(w, "");
	w->string = calloc(w->p->n_nodes, sizeof(*w->string));
	if (w->string == NULL)
		return -ENOMEM;
	for (i = 0; i < w->p->n_nodes; i++)
		w->string[i] = string(w, w->p->node[i].name[0] != '\0' ? w->p->node[i].name : "?");
	names = w->strings.n;
	put_types(w);
	r = put_samples(w);
	if (r < 0)
		return r;
	put_mapping(w);
	put_functions(w, names);
	pb_number(&w->out, PROFILE_TIME_NANOS, (uint64_t)w->p->head.created_ns);
	pb_number(&w->out, PROFILE_DURATION_NANOS, w->p->head.duration_ns);
	pb_number(&w->out, PROFILE_DEFAULT_TYPE, string(w, cost_names[w->c.main]));
	for (i = 0; i < w->strings.n; i++)
		pb_string(&w->out, PROFILE_STRING, w->strings.name[i]);
	return w->failed || w->out.failed ? -ENOMEM : w->out.n > 2 * EXPORT_TEXT_MAX ? -EFBIG : 0;
}

static int gzip(const struct text *from, struct text *to)
{
	z_stream z = {.next_in = (unsigned char *)from->s, .avail_in = (unsigned)from->n};
	int r = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8,
		Z_DEFAULT_STRATEGY); /* + 16: gzip's head and tail */
	size_t most;

	if (r != Z_OK)
		return -ENOMEM;
	most = deflateBound(&z, from->n);
	if (text_reserve(to, most) < 0) {
		(void)deflateEnd(&z);
		return -ENOMEM;
	}
	z.next_out = (unsigned char *)to->s;
	z.avail_out = (unsigned)most;
	r = deflate(&z, Z_FINISH);
	to->n = z.total_out;
	(void)deflateEnd(&z);
	return r == Z_STREAM_END ? 0 : -EIO;
}

int pprof_write(const struct profile *p, char **ret_text, size_t *ret_bytes)
{
	struct writer w = {.p = p,
		.device_id = profile_find_metric(p, "device_id"),
		.device_type = profile_find_metric(p, "device_type")};
	struct text zipped = {0};
	int r = costs_new(p, &w.c);

	if (r == 0)
		r = put_profile(&w);
	if (r == 0)
		r = gzip(&w.out, &zipped);
	if (r == 0)
		r = text_take(&zipped, ret_text, ret_bytes);
	text_fini(&zipped);
	text_fini(&w.out);
	text_fini(&w.part);
	text_fini(&w.list);
	costs_free(&w.c);
	name_set_fini(&w.strings);
	free(w.string);
	return r;
}
