/* SPDX-License-Identifier: MIT. nvtx_payload.c: values in the payloads of NVTX's extension.
 *
 * A schema is a list of entries: a type, a name, an offset; one may be a schema or an enumeration
 * that was registered before, or an array. We keep a flat list of fields, and where the message is.
 * The tables are filled once a schema, never emptied, and read without a lock: an entry is complete
 * before it is said to be there. What has no room in them, or is not read (unions, half precision,
 * what follows an array whose length only the payload knows) is counted with each payload.
 *
 * A payload is read within the bytes that it says it has; an array behind a pointer only where it
 * lies in a payload of the same event. */
#include "nvtx_payload.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "nvtx_name.h"

#define SCHEMAS      64u
#define FIELDS       32u
#define ENTRIES      256u /* of a schema that are looked at */
#define ENUMS        16u
#define WORDS        64u
#define PAYLOADS_MAX 8u /* of one event */
#define NAME_MOST    96u
#define LIST_MOST    8u    /* elements of an array that are shown */
#define SUM_MOST     1024u /* elements of an array that are summed */
#define TEXT_MOST    192u
#define LIST_TEXT    (LIST_MOST * 21 + 8)
_Static_assert(LIST_TEXT <= TEXT_MOST, "a list is a text");

enum schema_has {
	HAS_ENTRIES = 1 << 4,
	HAS_N = 1 << 5,
	HAS_BYTES = 1 << 6,
	HAS_PACK = 1 << 7,
	HAS_ID = 1 << 8
};
enum enum_has { ENUM_ENTRIES = 1 << 2, ENUM_N = 1 << 3, ENUM_BYTES = 1 << 4, ENUM_ID = 1 << 5 };
enum schema_type { SCHEMA_STATIC = 1, SCHEMA_DYNAMIC = 2 };
#define ID_FIRST      (1u << 24) /* below are types, and blobs of bytes */
#define ID_BLOB       1022u
#define ID_RAW        1023u
#define DYNAMIC_FIRST (1ull << 32)
#define ENUM_FIRST    (1ull << 33)

enum entry_flag {
	ENTRY_POINTER = 1 << 1,
	ENTRY_OFFSET = 3 << 2, /* from here or there: not read */
	ENTRY_ARRAY = 7 << 4,
	ARRAY_FIXED = 1 << 4,
	ARRAY_INDEX = 3 << 4,
	ENTRY_HIDDEN = 1 << 9,
	ENTRY_MESSAGE = 1 << 10,
};
enum entry_type { ENTRY_TEXT = 75, ENTRY_TEXT_U8 = 76, ENTRY_STRING = 80 };

/* clang-format off */
#define TYPES(X) /* NVTX's number of a type, bytes, how it is read: 'i', 'u' or 'f', or 's', a size */ \
	X(1, sizeof(char), 'i') X(2, sizeof(char), 'u') X(3, sizeof(short), 'i') X(4, sizeof(short), 'u') \
	X(5, sizeof(int), 'i') X(6, sizeof(int), 'u') X(7, sizeof(long), 'i') X(8, sizeof(long), 'u') \
	X(9, sizeof(long long), 'i') X(10, sizeof(long long), 'u') X(11, 1, 'i') X(12, 1, 'u') X(13, 2, 'i') \
	X(14, 2, 'u') X(15, 4, 'i') X(16, 4, 'u') X(17, 8, 'i') X(18, 8, 'u') X(19, 4, 'f') X(20, 8, 'f') \
	X(22, sizeof(size_t), 's') X(23, sizeof(void *), 'u') X(32, 1, 'u') X(43, 4, 'f') X(44, 8, 'f') \
	X(68, 4, 'u') X(69, 4, 'u') X(70, 8, 'u') X(71, 4, 'u') X(72, 8, 'u') X(73, 4, 'u') X(74, 8, 'u') \
	X(75, sizeof(char *), 't') X(76, sizeof(char *), 't') X(80, sizeof(void *), 'h')
/* clang-format on */

static const struct type {
	uint8_t bytes;
	char how; /* also 't', a text's place; 'h', a registered string; 'e', of an enumeration; 0: none */
} types[] = {
#define X(number, bytes, how) [number] = {(uint8_t)(bytes), (how)},
	TYPES(X)
#undef X
};
#define TYPES_END (sizeof(types) / sizeof(*types))

struct field {
	uint32_t offset, name;
	uint32_t count;     /* elements of an array; 0: it is none, or its length is a field */
	uint32_t length_at; /* where that is */
	struct type type, length; /* length.bytes 0: there is none */
	uint8_t of;               /* the enumeration */
	bool pointer;
};

static struct schema {
	_Atomic bool there;
	bool whole; /* its bytes are known */
	uint64_t id;
	const void *domain;
	size_t bytes;
	uint32_t align, n, left,
		message; /* left: what is not read; message: its pointer's offset + 1; 0: none */
	struct field field[FIELDS];
} schemas[SCHEMAS];
static _Atomic uint32_t claimed;

static struct words {
	_Atomic bool there;
	uint64_t id;
	const void *domain;
	uint8_t bytes;
	uint32_t n;
	struct {
		uint64_t value;
		uint32_t name;
		bool is_flag;
	} word[WORDS];
} enums[ENUMS];
static _Atomic uint32_t enums_claimed;

static const struct protond_host *host;
static uint32_t payload_name; /* of a value without one */

void nvtx_payloads_begin(const struct protond_host *whose)
{
	host = whose;
	payload_name = host->intern("payload", 7);
}

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

static const struct words *find_enum(const void *domain, uint64_t id)
{
	const uint32_t n = atomic_load_explicit(&enums_claimed, memory_order_relaxed);

	for (uint32_t i = 0; i < n && i < ENUMS; i++)
		/* acquire: likewise */
		if (atomic_load_explicit(&enums[i].there, memory_order_acquire) &&
			enums[i].id == id && enums[i].domain == domain)
			return &enums[i];
	return NULL;
}

static bool is_sum(char how)
{
	return how == 's' || how == 'f';
}

/* "Message size [bytes]" is a metric "Message size (bytes)", "Root" a property; a field of a schema
 * in a schema is "outer.inner". */
static uint32_t metric_name(const char *outer, const char *name, uint32_t bytes, char how)
{
	char text[2 * NAME_MOST + 16];
	const int n = snprintf(text, sizeof(text), "%.*s%s%.*s%s", (int)NAME_MOST, outer,
		*outer != '\0' ? "." : "", (int)(bytes < NAME_MOST ? bytes : NAME_MOST), name,
		is_sum(how) ? "" : " (pty)");

	for (int i = 0; i < n; i++)
		text[i] = (char)(text[i] == '[' ? '(' : text[i] == ']' ? ')' : text[i]);
	return host->intern(text, (uint32_t)n);
}

/* --- schemas ---------------------------------------------------------------------------------- */

/* A schema while its entries are read. */
struct reading {
	struct schema *s;
	const struct payload_schema *of;
	const void *domain;
	uint64_t next; /* behind the last entry */
	bool known;    /* whether it is */
	struct {
		uint32_t offset;
		struct type type; /* of a number that stands by itself */
	} entry[ENTRIES];
};

/* An entry that is another schema. */
static void add_nested(
	struct reading *r, const struct schema *in, const char *name, uint64_t offset)
{
	struct schema *s = r->s;
	static const char kind[] = " (pty)";
	uint32_t n;

	s->left += in->left;
	for (uint32_t i = 0; i < in->n; i++) {
		struct field f = in->field[i];
		const char *text = host->name(f.name, &n);

		if (s->n == FIELDS || offset + f.offset + f.length_at >= UINT32_MAX) {
			s->left++;
			continue;
		}
		if (!is_sum(f.type.how) && n > sizeof(kind) - 1)
			n -= (uint32_t)sizeof(kind) - 1;
		f.name = metric_name(name, text, n, f.type.how);
		f.offset += (uint32_t)offset;
		f.length_at += (uint32_t)offset;
		s->field[s->n++] = f;
	}
}

static const char *name_of_entry(const struct reading *r, const struct payload_entry *e)
{
	if (e->name != NULL && *e->name != '\0')
		return e->name;
	return r->of->name != NULL && (r->of->fields & 1u << 1) != 0 ? r->of->name : "payload";
}

/* False: of a kind that is not read. */
static bool add_field(struct reading *r, const struct payload_entry *e, struct field f)
{
	const uint64_t array = e->flags & ENTRY_ARRAY;
	const char *name = name_of_entry(r, e);

	if (f.type.how == 't' && (array != 0 || e->detail != 0 || f.pointer))
		return false;
	if (f.type.how == 't' && (e->flags & ENTRY_MESSAGE) != 0) {
		r->s->message = f.offset + 1;
		return true;
	}
	if (array == ARRAY_FIXED)
		f.count = (uint32_t)e->detail;
	if (array == ARRAY_INDEX && e->detail < (uint64_t)(e - r->of->entry)) {
		f.length = r->entry[e->detail].type;
		f.length_at = r->entry[e->detail].offset;
	}
	if ((array != 0 && f.count == 0 && f.length.bytes == 0) ||
		(array != 0 && strchr("the", f.type.how) != NULL) || r->s->n == FIELDS)
		return false;
	f.name = metric_name("", name, (uint32_t)strnlen(name, NAME_MOST), f.type.how);
	r->s->field[r->s->n++] = f;
	return true;
}

/* Its bytes, if it stands there itself and we know them. */
static uint64_t bytes_of(const struct payload_entry *e, uint64_t one)
{
	const bool text = e->type == ENTRY_TEXT || e->type == ENTRY_TEXT_U8;

	if ((e->flags & ENTRY_POINTER) != 0)
		return sizeof(void *);
	if (text && e->detail != 0) /* as many bytes of text */
		return e->detail;
	if ((e->flags & ENTRY_ARRAY) == ARRAY_FIXED)
		return e->detail <= UINT32_MAX ? e->detail * one : 0;
	return (e->flags & ENTRY_ARRAY) == 0 ? one : 0;
}

static void add_entry(struct reading *r, uint32_t i)
{
	const struct payload_entry *e = &r->of->entry[i];
	const struct schema *in = e->type >= ID_FIRST ? find(r->domain, e->type) : NULL;
	const struct words *w = e->type >= ID_FIRST ? find_enum(r->domain, e->type) : NULL;
	struct field f = {.type = e->type < TYPES_END ? types[e->type] : (struct type){0, 0},
		.pointer = (e->flags & ENTRY_POINTER) != 0};
	uint64_t align, bytes, offset = e->offset, pack = r->of->pack;
	bool taken = false;

	if (w != NULL)
		f = (struct field){
			.type = {w->bytes, 'e'}, .of = (uint8_t)(w - enums), .pointer = f.pointer};
	align = in != NULL ? in->align : f.type.bytes > 0 ? f.type.bytes : sizeof(void *);
	if ((r->of->fields & HAS_PACK) != 0 && pack > 0 && pack < align)
		align = pack;
	if (offset == 0 && i > 0)
		offset = (r->next + align - 1) / align * align;
	if ((e->offset == 0 && i > 0 && !r->known) || offset >= UINT32_MAX) {
		r->s->left++;
		return;
	}
	bytes = bytes_of(e, in != NULL ? in->whole ? in->bytes : 0 : f.type.bytes);
	r->known = bytes > 0;
	r->next = offset + bytes;
	r->s->align = align > r->s->align ? (uint32_t)align : r->s->align;
	f.offset = (uint32_t)offset;
	r->entry[i].offset = f.offset;
	if ((e->flags & (ENTRY_ARRAY | ENTRY_POINTER | ENTRY_OFFSET)) == 0 && f.type.how != 0 &&
		strchr("ius", f.type.how) != NULL)
		r->entry[i].type = f.type;
	if ((e->flags & ENTRY_HIDDEN) != 0)
		return;
	if (in != NULL && (e->flags & (ENTRY_ARRAY | ENTRY_POINTER | ENTRY_OFFSET)) == 0) {
		add_nested(r, in, name_of_entry(r, e), offset);
		taken = true;
	} else if (f.type.how != 0 && (e->flags & ENTRY_OFFSET) == 0) {
		taken = add_field(r, e, f);
	}
	r->s->left += !taken;
}

static void read_entries(struct schema *s, const void *domain, const struct payload_schema *of)
{
	struct reading r = {.s = s, .of = of, .domain = domain, .known = true};
	uint32_t i;

	for (i = 0; i < of->entries && i < ENTRIES; i++)
		add_entry(&r, i);
	if (of->entries > ENTRIES)
		s->left += (uint32_t)(of->entries - ENTRIES < 1u << 16 ? of->entries - ENTRIES
								       : 1u << 16);
	s->whole = (of->fields & HAS_BYTES) != 0 && of->bytes > 0;
	s->bytes = s->whole ? of->bytes : (r.next + s->align - 1) / s->align * s->align;
	s->whole = s->whole || r.known;
}

uint64_t nvtx_schema(const void *domain, const struct payload_schema *of)
{
	struct schema *s;
	uint32_t i;

	if (of == NULL || of->entry == NULL ||
		(of->fields & (HAS_ENTRIES | HAS_N)) != (HAS_ENTRIES | HAS_N))
		return 0;
	if ((of->fields & HAS_ID) != 0 && find(domain, of->id) != NULL)
		return of->id;
	if (atomic_load_explicit(&claimed, memory_order_relaxed) >= SCHEMAS)
		return 0;
	i = atomic_fetch_add_explicit(&claimed, 1, memory_order_relaxed);
	if (i >= SCHEMAS)
		return 0;
	s = &schemas[i];
	s->id = (of->fields & HAS_ID) != 0 ? of->id : DYNAMIC_FIRST + i;
	s->domain = domain;
	s->align = 1;
	if (of->type == SCHEMA_STATIC || of->type == SCHEMA_DYNAMIC)
		read_entries(s, domain, of);
	else
		s->left = 1; /* a union */
	atomic_store_explicit(&s->there, true, memory_order_release);
	return s->id;
}

uint64_t nvtx_enum(const void *domain, const struct payload_enum *of)
{
	struct words *w;
	uint32_t i;

	if (of == NULL || of->word == NULL ||
		(of->fields & (ENUM_ENTRIES | ENUM_N)) != (ENUM_ENTRIES | ENUM_N))
		return 0;
	if ((of->fields & ENUM_ID) != 0 && find_enum(domain, of->id) != NULL)
		return of->id;
	if (atomic_load_explicit(&enums_claimed, memory_order_relaxed) >= ENUMS)
		return 0;
	i = atomic_fetch_add_explicit(&enums_claimed, 1, memory_order_relaxed);
	if (i >= ENUMS)
		return 0;
	w = &enums[i];
	w->id = (of->fields & ENUM_ID) != 0 ? of->id : ENUM_FIRST + i;
	w->domain = domain;
	w->bytes = (of->fields & ENUM_BYTES) != 0 &&
				   (of->bytes == 1 || of->bytes == 2 || of->bytes == 8)
			   ? (uint8_t)of->bytes
			   : 4;
	for (i = 0; i < of->words && i < WORDS; i++) {
		const char *name = of->word[i].name != NULL ? of->word[i].name : "";

		w->word[i].value = of->word[i].value;
		w->word[i].name = host->intern(name, (uint32_t)strnlen(name, NAME_MOST));
		w->word[i].is_flag = of->word[i].is_flag != 0;
	}
	w->n = i;
	atomic_store_explicit(&w->there, true, memory_order_release);
	return w->id;
}

/* --- a payload ---------------------------------------------------------------------------------- */

static uint64_t bytes_had(const struct payloads *p, uint32_t i)
{
	const struct schema *s;

	if (p->at[i].at == NULL)
		return 0;
	if (p->at[i].bytes != SIZE_MAX)
		return p->at[i].bytes;
	if (p->at[i].schema < TYPES_END)
		return types[p->at[i].schema].bytes;
	s = find(p->domain, p->at[i].schema);
	return s != NULL && s->whole ? s->bytes : 0;
}

static uint32_t how_many(const struct payloads *p)
{
	return p->at == NULL ? 0 : p->n < PAYLOADS_MAX ? (uint32_t)p->n : PAYLOADS_MAX;
}

const char *nvtx_payload_message(const struct payloads *p)
{
	const char *text = NULL;

	for (uint32_t i = 0; i < how_many(p) && text == NULL; i++) {
		const struct schema *s = find(p->domain, p->at[i].schema);

		if (s != NULL && s->message > 0 &&
			s->message - 1 + (uint64_t)sizeof(text) <= bytes_had(p, i))
			memcpy(&text, (const char *)p->at[i].at + s->message - 1, sizeof(text));
	}
	return text;
}

/* A number as 64 bits: of a float those of a double. */
static uint64_t bits_of(struct type type, const void *at)
{
	uint64_t bits = 0;
	float f32;
	double f64;

	memcpy(&bits, at, type.bytes); /* little-endian, as all that we run on */
	if (type.how == 'f' && type.bytes == sizeof(f32)) {
		memcpy(&f32, at, sizeof(f32));
		f64 = (double)f32;
		memcpy(&bits, &f64, sizeof(bits));
	} else if (type.how == 'i' && type.bytes < sizeof(bits)) {
		const uint64_t sign = 1ull << (type.bytes * 8 - 1);

		bits = (bits ^ sign) - sign;
	}
	return bits;
}

static uint32_t metric_type(char how)
{
	return how == 'f' ? METRIC_F64 : how == 'i' ? METRIC_I64 : METRIC_U64;
}

static uint32_t put_number(char *ret, char how, uint64_t bits)
{
	const bool minus = how == 'i' && (int64_t)bits < 0;
	char digit[20];
	uint32_t n = 0, used = 0;

	bits = minus ? -bits : bits;
	do
		digit[n++] = (char)('0' + bits % 10);
	while ((bits /= 10) > 0);
	if (minus)
		ret[used++] = '-';
	while (n > 0)
		ret[used++] = digit[--n];
	return used;
}

/* --- what is given --- */

struct giving {
	struct pd_thread *t;
	const struct payloads *p;
	uint64_t context;
	uint64_t lost;
};

static void give_text(struct giving *g, uint32_t name, const char *s, size_t n)
{
	const uint32_t text = nvtx_text(s, n);

	if (text != 0)
		agent_metric_at(g->t, g->context, name, METRIC_STR, text);
	else
		g->lost++;
}

/* The words of a value: the one that it is, or the flags that are in it; else the number. */
static void give_words(struct giving *g, const struct field *f, uint64_t bits)
{
	const struct words *w = &enums[f->of];
	char text[TEXT_MOST];
	uint32_t used = 0, n;
	uint64_t rest = bits;

	for (uint32_t i = 0; i < w->n; i++)
		if (w->word[i].value == bits) {
			agent_metric_at(g->t, g->context, f->name, METRIC_STR, w->word[i].name);
			return;
		}
	for (uint32_t i = 0; i < w->n; i++) {
		const char *word = host->name(w->word[i].name, &n);

		if (!w->word[i].is_flag || (rest & w->word[i].value) == 0 ||
			used + n + 24 > sizeof(text))
			continue;
		memcpy(text + used, word, n);
		used += n;
		text[used++] = '|';
		rest &= ~w->word[i].value;
	}
	if (rest != 0 || used == 0)
		used += put_number(text + used, 'u', rest);
	else
		used--;
	give_text(g, f->name, text, used);
}

/* "[1,2,3]". */
static void give_list(struct giving *g, const struct field *f, const char *at, uint64_t n)
{
	char text[LIST_TEXT];
	uint32_t used = 0;

	text[used++] = '[';
	for (uint64_t i = 0; i < n && i < LIST_MOST; i++) {
		if (i > 0)
			text[used++] = ',';
		used += put_number(
			text + used, f->type.how, bits_of(f->type, at + i * f->type.bytes));
	}
	memcpy(text + used, n > LIST_MOST ? ",..]" : "]", n > LIST_MOST ? 4 : 1);
	give_text(g, f->name, text, used + (n > LIST_MOST ? 4 : 1));
}

static void give_sum(struct giving *g, const struct field *f, const char *at, uint64_t n)
{
	const uint64_t most = n < SUM_MOST ? n : SUM_MOST;
	uint64_t sum = 0, bits;
	double f64 = 0, one;

	for (uint64_t i = 0; i < most; i++) {
		bits = bits_of(f->type, at + i * f->type.bytes);
		memcpy(&one, &bits, sizeof(one));
		sum += bits;
		f64 += f->type.how == 'f' ? one : 0;
	}
	if (f->type.how == 'f')
		memcpy(&sum, &f64, sizeof(sum));
	agent_metric_at(g->t, g->context, f->name, metric_type(f->type.how), sum);
	g->lost += n - most;
}

static void give_one(struct giving *g, const struct field *f, const char *at)
{
	const uint64_t bits = bits_of(f->type, at);
	const char *text = (const char *)(uintptr_t)bits;
	uint32_t name;

	switch (f->type.how) {
	case 't':
		if (text != NULL)
			give_text(g, f->name, text, strnlen(text, TEXT_MOST));
		return;
	case 'h':
		name = nvtx_string_text(text);
		if (name != 0)
			agent_metric_at(g->t, g->context, f->name, METRIC_STR, name);
		else
			g->lost += text != NULL;
		return;
	case 'e':
		give_words(g, f, bits);
		return;
	default:
		agent_metric_at(g->t, g->context, f->name, metric_type(f->type.how), bits);
	}
}

/* Does what a pointer says lie in a payload of this event? */
static bool is_within(const struct payloads *p, const char *at, uint64_t bytes)
{
	for (uint32_t i = 0; i < how_many(p); i++) {
		const uintptr_t from = (uintptr_t)p->at[i].at, to = from + bytes_had(p, i);

		if ((uintptr_t)at >= from && (uintptr_t)at <= to && bytes <= to - (uintptr_t)at)
			return true;
	}
	return false;
}

/* False: it is not there. */
static bool give_field(struct giving *g, const struct field *f, uint32_t i)
{
	const char *base = g->p->at[i].at, *at = base + f->offset, *to;
	const uint64_t had = bytes_had(g->p, i);
	uint64_t n = f->count > 0 ? f->count : 1, bytes;

	if (f->length.bytes > 0) {
		if (f->length_at + (uint64_t)f->length.bytes > had)
			return false;
		n = bits_of(f->length, base + f->length_at);
	}
	if (n > UINT32_MAX)
		return false;
	bytes = n * f->type.bytes;
	if (f->offset + (f->pointer ? sizeof(to) : bytes) > had)
		return false;
	if (f->pointer) {
		memcpy(&to, at, sizeof(to));
		at = to;
		if (!is_within(g->p, at, bytes))
			return false;
	}
	if (f->count == 0 && f->length.bytes == 0)
		give_one(g, f, at);
	else if (is_sum(f->type.how))
		give_sum(g, f, at, n);
	else
		give_list(g, f, at, n);
	return true;
}

static void give_payload(struct giving *g, uint32_t i)
{
	const struct payload_data *p = &g->p->at[i];
	const struct field bare = {.name = payload_name,
		.type = p->schema < TYPES_END ? types[p->schema] : (struct type){0, 0}};
	const struct schema *s = p->schema >= ID_FIRST ? find(g->p->domain, p->schema) : NULL;

	if (p->at == NULL || p->schema == ID_BLOB || p->schema == ID_RAW)
		return;
	if (s == NULL) {
		if (bare.type.how == 0 || strchr("th", bare.type.how) != NULL ||
			!give_field(g, &bare, i))
			g->lost++;
		return;
	}
	g->lost += s->left;
	for (uint32_t k = 0; k < s->n; k++)
		g->lost += !give_field(g, &s->field[k], i);
}

void nvtx_payload_give(struct pd_thread *t, const struct payloads *p, uint64_t context)
{
	struct giving g = {.t = t, .p = p, .context = context};

	if (t == NULL || p->at == NULL || p->n == 0 || !agent_metrics_on())
		return;
	for (uint32_t i = 0; i < how_many(p); i++)
		give_payload(&g, i);
	g.lost += p->n > PAYLOADS_MAX ? (p->n - PAYLOADS_MAX) & UINT16_MAX : 0;
	if (g.lost > 0)
		agent_lost(t, LOST_NVTX, g.lost);
}
