/* SPDX-License-Identifier: MIT. chrome_events.c: Chrome's trace events as text. */
#include "chrome_events.h"

#include <inttypes.h>

#include "op_terms.h"

void chrome_number(struct text *t, uint64_t v)
{
	char buf[24];
	size_t at = sizeof(buf);

	do {
		buf[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	text_add(t, buf + at, sizeof(buf) - at);
}

void chrome_micros(struct text *t, uint64_t ns)
{
	char rest[4] = {'.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
		(char)('0' + ns % 10)};

	chrome_number(t, ns / 1000);
	text_add(t, rest, sizeof(rest));
}

void chrome_comma(struct chrome *c)
{
	if (c->any)
		text_char(c->t, ',');
	c->any = true;
}

void chrome_event(struct chrome *c, const char *ph, const char *cat, const char *name, int64_t pid,
	uint64_t tid, uint64_t ns)
{
	struct text *t = c->t;

	chrome_comma(c);
	text_str(t, "\n{\"ph\":\"");
	text_str(t, ph);
	text_str(t, "\",\"cat\":\"");
	text_str(t, cat);
	text_str(t, "\",\"name\":");
	text_json(t, name);
	if (pid != CHROME_NO_PID) {
		text_str(t, ",\"pid\":");
		chrome_number(t, (uint64_t)pid);
	}
	text_str(t, ",\"tid\":");
	chrome_number(t, tid);
	text_str(t, ",\"ts\":");
	chrome_micros(t, ns);
}

void chrome_metadata(struct chrome *c, const char *what, int64_t pid, uint64_t tid, const char *key,
	const char *words, uint64_t index)
{
	struct text *t = c->t;

	chrome_comma(c);
	text_str(t, "\n{\"ph\":\"M\",\"name\":\"");
	text_str(t, what);
	text_str(t, "\",\"pid\":");
	chrome_number(t, (uint64_t)pid);
	text_str(t, ",\"tid\":");
	chrome_number(t, tid);
	text_str(t, ",\"args\":{\"");
	text_str(t, key);
	text_str(t, "\":");
	if (words != NULL)
		text_json(t, words);
	else
		chrome_number(t, index);
	text_str(t, "}}");
}

void chrome_arrow_from(
	struct chrome *c, const char *cat, const char *name, int64_t pid, uint64_t tid, uint64_t ns)
{
	chrome_event(c, "s", cat, name, pid, tid, ns);
	text_str(c->t, ",\"id\":");
	chrome_number(c->t, c->flows);
	text_str(c->t, ",\"bp\":\"e\"}"); /* says nothing here, but Proton's have it */
}

void chrome_arrow_to(
	struct chrome *c, const char *cat, const char *name, int64_t pid, uint64_t tid, uint64_t ns)
{
	chrome_event(c, "f", cat, name, pid, tid, ns);
	text_str(c->t, ",\"id\":");
	chrome_number(c->t, c->flows);
	text_str(c->t, ",\"bp\":\"e\"}");
}

void chrome_device_properties(struct chrome *c, const struct timeline_device *d)
{
	chrome_comma(c);
	text_fmt(c->t, "{\"id\":%" PRIu64 ",\"name\":", d->ordinal);
	text_json(c->t, d->name);
	text_fmt(c->t,
		",\"computeMajor\":%" PRIu64 ",\"computeMinor\":%" PRIu64 ",\"numSms\":%" PRIu64
		",\"totalGlobalMem\":%" PRIu64 "}",
		d->arch / 10, d->arch % 10, d->num_sms, d->memory_bytes);
}

/* --- metrics */

static bool is_op_array(const char *name)
{
#define X(key)                      \
	if (strcmp(name, key) == 0) \
		return true;
	OP_ARRAYS(X)
#undef X
	return false;
}

void chrome_held(struct text *t, const struct held *h)
{
	double f;

	memcpy(&f, &h->bits, sizeof(f));
	if (h->type == VALUE_STR && is_op_array(h->name) && operator_is_array(h->text))
		text_str(t, h->text);
	else if (h->type == VALUE_STR)
		text_json(t, h->text);
	else if (h->type == VALUE_F64)
		text_json_f64(t, f);
	else if (h->type == VALUE_I64)
		text_fmt(t, "%" PRId64, (int64_t)h->bits);
	else
		chrome_number(t, h->bits);
}

void chrome_taken(const struct timeline *w, struct text *t, uint32_t n)
{
	uint32_t at, next, i;

	for (at = 0; at < n; at = next) {
		const char *name = w->held[w->taken[at]].name;

		for (next = at + 1; next < n; next++)
			if (strcmp(w->held[w->taken[next]].name, name) != 0)
				break;
		text_str(t, at > 0 ? "," : "");
		text_json(t, name);
		text_str(t, next - at > 1 ? ":[" : ":");
		for (i = at; i < next; i++) {
			text_str(t, i > at ? "," : "");
			chrome_held(t, &w->held[w->taken[i]]);
		}
		text_str(t, next - at > 1 ? "]" : "");
	}
}

void chrome_color(struct text *t, const struct known *k)
{
	if (k->color != 0)
		text_fmt(t, ",\"color\":\"#%06" PRIx32 "\"", k->color & (NAMED_COLOR - 1));
}

bool chrome_object(struct text *t, const char *key, const char *streams, uint64_t object)
{
	char name[GPU_LABEL_BYTES];

	gpu_object_name(streams, object, name);
	if (name[0] == '\0')
		return false;
	text_fmt(t, ",\"%s\":", key);
	text_json(t, name);
	return true;
}

void chrome_call(struct text *t, const struct trace_call *c)
{
	if (gpu_counts_samples(gpu_classes[c->class].counts)) {
		text_fmt(t, ",\"samples\":%" PRIu32 ",\"on_cpu\":%s,\"ready\":%s", c->correlation,
			c->class == CLASS_SAMPLE ? "true" : "false",
			c->class == CLASS_SAMPLE_READY ? "true" : "false");
		return;
	}
	text_fmt(t, ",\"correlation\":%" PRIu32, c->correlation);
	if (c->stream != UINT32_MAX)
		text_fmt(t, ",\"stream\":%" PRIu32, c->stream);
	if (c->event != 0)
		text_fmt(t, ",\"event\":\"0x%" PRIx64 "\"", c->event);
}
