/* SPDX-License-Identifier: MIT. nvtx_payload.c: numbers in the payloads of NVTX's extension.
 *
 * A schema is a list of entries: a type, a name, an offset. Of a schema we keep the numbers that
 * stand by themselves (no arrays, no pointers, no types of the program's own) and where the message
 * is. The table is filled once a schema, never emptied, and read without a lock: an entry is complete
 * before it is said to be there. */
#include "nvtx_payload.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define SCHEMAS      64u
#define NUMBERS      16u
#define PAYLOADS_MAX 8u /* of one event */
#define NAME_MOST    96u

enum schema_field {
	FIELD_ENTRIES = 1 << 4,
	FIELD_N = 1 << 5,
	FIELD_BYTES = 1 << 6,
	FIELD_ID = 1 << 8
};
#define SCHEMA_STATIC 1u /* all is where its entry says */
#define DYNAMIC_FIRST (1ull << 32)
#define ENTRY_SPECIAL (0xfull << 4 | 0xe) /* an array, a pointer, an offset */
#define ENTRY_MESSAGE (1u << 10)
#define ENTRY_TEXT    75u
#define ENTRY_TEXT_U8 76u

/* clang-format off */
#define TYPES(X) /* NVTX's number of a type, bytes, how it is read: 'i', 'u' or 'f', or 's', a size */ \
	X(1, sizeof(char), 'i') X(2, sizeof(char), 'u') X(3, sizeof(short), 'i') X(4, sizeof(short), 'u') \
	X(5, sizeof(int), 'i') X(6, sizeof(int), 'u') X(7, sizeof(long), 'i') X(8, sizeof(long), 'u') \
	X(9, sizeof(long long), 'i') X(10, sizeof(long long), 'u') X(11, 1, 'i') X(12, 1, 'u') X(13, 2, 'i') \
	X(14, 2, 'u') X(15, 4, 'i') X(16, 4, 'u') X(17, 8, 'i') X(18, 8, 'u') X(19, 4, 'f') X(20, 8, 'f') \
	X(22, sizeof(size_t), 's') X(43, 4, 'f') X(44, 8, 'f')
/* clang-format on */

static const struct type {
	uint8_t bytes;
	char how;
} types[] = {
#define X(number, bytes, how) [number] = {(uint8_t)(bytes), (how)},
	TYPES(X)
#undef X
};

struct number {
	uint32_t offset, name;
	struct type type;
};

static struct schema {
	_Atomic bool there;
	uint64_t id;
	const void *domain;
	size_t bytes;
	uint32_t n, message; /* offset of the message's pointer + 1; 0: none */
	struct number number[NUMBERS];
} schemas[SCHEMAS];
static _Atomic uint32_t claimed;

static const struct schema *find(const void *domain, uint64_t id)
{
	const uint32_t n = atomic_load_explicit(&claimed, memory_order_relaxed);

	for (uint32_t i = 0; i < n && i < SCHEMAS; i++)
		/* acquire: all of it was written before */
		if (atomic_load_explicit(&schemas[i].there, memory_order_acquire) &&
			schemas[i].id == id && schemas[i].domain == domain)
			return &schemas[i];
	return NULL;
}

/* "Message size [bytes]" is a metric "Message size (bytes)", "Root" a property. */
static uint32_t metric_name(const struct protond_host *host, const char *name, char how)
{
	char text[NAME_MOST + 8];
	const int n = snprintf(text, sizeof(text), "%.*s%s", (int)NAME_MOST, name,
		how == 's' || how == 'f' ? "" : " (pty)");

	for (int i = 0; i < n; i++)
		text[i] = (char)(text[i] == '[' ? '(' : text[i] == ']' ? ')' : text[i]);
	return host->intern(text, (uint32_t)n);
}

/* False: it is not known where what follows stands, unless that says so. */
static bool add_entry(const struct protond_host *host, struct schema *s,
	const struct payload_entry *e, uint64_t offset)
{
	const struct type type =
		e->type < sizeof(types) / sizeof(*types) ? types[e->type] : (struct type){0, 0};

	if ((e->flags & ENTRY_SPECIAL) != 0 || offset >= UINT32_MAX)
		return false;
	if (e->type == ENTRY_TEXT || e->type == ENTRY_TEXT_U8) {
		if ((e->flags & ENTRY_MESSAGE) != 0)
			s->message = (uint32_t)offset + 1;
		return true;
	}
	if (type.bytes > 0 && e->name != NULL && s->n < NUMBERS)
		s->number[s->n++] = (struct number){
			(uint32_t)offset, metric_name(host, e->name, type.how), type};
	return type.bytes > 0;
}

static void read_entries(
	const struct protond_host *host, struct schema *s, const struct payload_schema *of)
{
	uint64_t next = 0, bytes, offset;
	bool known = true;

	for (size_t i = 0; i < of->entries && i < 256; i++) {
		const struct payload_entry *e = &of->entry[i];

		bytes = e->type < sizeof(types) / sizeof(*types) && types[e->type].bytes > 0
				? types[e->type].bytes
				: sizeof(void *);
		offset = e->offset;
		if (offset == 0 && i > 0) {
			if (!known)
				continue;
			offset = (next + bytes - 1) / bytes * bytes;
		}
		known = add_entry(host, s, e, offset);
		next = offset + bytes;
	}
	s->bytes = (of->fields & FIELD_BYTES) != 0 && of->bytes > 0 ? of->bytes : next;
}

uint64_t nvtx_schema(
	const struct protond_host *host, const void *domain, const struct payload_schema *of)
{
	struct schema *s;
	uint32_t i;

	if (of == NULL || of->entry == NULL ||
		(of->fields & (FIELD_ENTRIES | FIELD_N)) != (FIELD_ENTRIES | FIELD_N))
		return 0;
	if ((of->fields & FIELD_ID) != 0 && find(domain, of->id) != NULL)
		return of->id;
	if (atomic_load_explicit(&claimed, memory_order_relaxed) >= SCHEMAS)
		return 0;
	i = atomic_fetch_add_explicit(&claimed, 1, memory_order_relaxed);
	if (i >= SCHEMAS)
		return 0;
	s = &schemas[i];
	s->id = (of->fields & FIELD_ID) != 0 ? of->id : DYNAMIC_FIRST + i;
	s->domain = domain;
	if (of->type == SCHEMA_STATIC)
		read_entries(host, s, of);
	atomic_store_explicit(&s->there, true, memory_order_release);
	return s->id;
}

/* --- a payload ---------------------------------------------------------------------------------- */

/* The schema of a payload that has at least `end` bytes; NULL: of none that we know. */
static const struct schema *schema_of(const void *domain, const struct payload_data *p)
{
	return p->at != NULL ? find(domain, p->schema) : NULL;
}

static bool has(const struct payload_data *p, const struct schema *s, uint64_t end)
{
	return end <= (p->bytes != SIZE_MAX ? p->bytes : s->bytes);
}

const char *nvtx_payload_message(const void *domain, const struct payload_data *p, size_t n)
{
	const char *text = NULL;

	for (size_t i = 0; p != NULL && i < n && i < PAYLOADS_MAX && text == NULL; i++) {
		const struct schema *s = schema_of(domain, &p[i]);

		if (s != NULL && s->message > 0 &&
			has(&p[i], s, s->message - 1 + (uint64_t)sizeof(text)))
			memcpy(&text, (const char *)p[i].at + s->message - 1, sizeof(text));
	}
	return text;
}

static void give(struct pd_thread *t, const struct number *x, const void *at)
{
	uint64_t bits = 0;
	float f32;
	double f64;

	memcpy(&bits, at, x->type.bytes); /* little-endian, as all that we run on */
	if (x->type.how == 'f' && x->type.bytes == sizeof(f32)) {
		memcpy(&f32, at, sizeof(f32));
		f64 = (double)f32;
		memcpy(&bits, &f64, sizeof(bits));
	} else if (x->type.how == 'i' && x->type.bytes < sizeof(bits)) {
		const uint64_t sign = 1ull << (x->type.bytes * 8 - 1);

		bits = (bits ^ sign) - sign;
	}
	agent_metric(t, x->name,
		x->type.how == 'f'   ? METRIC_F64
		: x->type.how == 'i' ? METRIC_I64
				     : METRIC_U64,
		bits);
}

void nvtx_payload_give(
	struct pd_thread *t, const void *domain, const struct payload_data *p, size_t n)
{
	for (size_t i = 0; p != NULL && i < n && i < PAYLOADS_MAX; i++) {
		const struct schema *s = schema_of(domain, &p[i]);

		for (uint32_t k = 0; s != NULL && k < s->n; k++)
			if (has(&p[i], s, s->number[k].offset + (uint64_t)s->number[k].type.bytes))
				give(t, &s->number[k], (const char *)p[i].at + s->number[k].offset);
	}
}
