/* SPDX-License-Identifier: MIT. nvtx_name.c: what NVTX's ranges are called. A name with numbers in
 * it is a name and properties (range_name.h has the rule). A range's name also says its domain, for
 * sessions that leave some out: its process-local text is MARK, the domain, MARK, the name
 * (engine.h), which the ring's path has apart.
 *
 * A handle is a number that no pointer is: what is not ours is never looked into. */
#include "nvtx_name.h"

#include <stdatomic.h>
#include <string.h>
#include <wchar.h>

#include "longname.h"
#include "range_name.h"

#define TEXT_MAX    4096u /* bytes of a message that are looked at */
#define DOMAIN_MOST 64u   /* of a domain's name */
#define STRING_MOST 256u  /* of a registered string: XLA registers whole programs */
#define VALUE_MOST  128u  /* of a property's text */
#define KEY_MOST    64u
#define TEXTS       4096u /* different texts of properties */
#define TEXT_TRIES  8u
#define CATEGORIES  64u /* that have a name */

static const struct protond_host *host;
static const char *domains;           /* PROTOND_NVTX_DOMAINS */
static bool default_out;              /* the one without a name is not */
static _Atomic uint32_t xla_pass;     /* the name's id, once it was seen */
static _Atomic uint64_t texts[TEXTS]; /* hashes of those that properties had; 0: free */

/* --- text --- */

static uint32_t utf8(uint32_t c, char ret[4])
{
	if (c < 0x80) {
		ret[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		ret[0] = (char)(0xc0 | c >> 6);
		ret[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		ret[0] = (char)(0xe0 | c >> 12);
		ret[1] = (char)(0x80 | (c >> 6 & 0x3f));
		ret[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	ret[0] = (char)(0xf0 | (c >> 18 & 7));
	ret[1] = (char)(0x80 | (c >> 12 & 0x3f));
	ret[2] = (char)(0x80 | (c >> 6 & 0x3f));
	ret[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

static uint32_t narrow(const wchar_t *s, char ret[TEXT_MAX])
{
	uint32_t n = 0;

	while (s != NULL && *s != L'\0' && n + 4 < TEXT_MAX)
		n += utf8((uint32_t)*s++, ret + n);
	return n;
}

uint32_t nvtx_text(const char *s, size_t n)
{
	const uint32_t bytes = n < VALUE_MOST ? (uint32_t)n : VALUE_MOST;
	const uint64_t hash = name_hash(s, bytes) | 1;
	uint64_t seen;

	for (uint32_t i = 0; i < TEXT_TRIES; i++) {
		_Atomic uint64_t *slot = &texts[((hash >> 32) + i) & (TEXTS - 1)];

		seen = atomic_load_explicit(slot, memory_order_relaxed);
		if (seen == 0)
			(void)atomic_compare_exchange_strong_explicit(
				slot, &seen, hash, memory_order_relaxed, memory_order_relaxed);
		if (seen == 0 || seen == hash)
			return host->intern(s, bytes);
	}
	return 0;
}

/* --- handles --- */

/* From the top: 16 bits that make it none of anybody's pointers; an id; another, or 0; what it is. */
#define HANDLE        (0x7d9aull << 48)
#define HANDLE_IS(h)  ((h) >> 48 == HANDLE >> 48)
#define HANDLE_ID(h)  ((uint32_t)((h) >> 32 & 0xffff))
#define HANDLE_RAW(h) ((uint32_t)((h) >> 16 & 0xffff))
enum handle_kind { HANDLE_STRING = 1, HANDLE_DOMAIN = 2, HANDLE_DOMAIN_OUT = 3 };
_Static_assert(NAMES_MAX <= 1u << 16 && sizeof(uintptr_t) == 8, "an id is 16 bits of a handle");

static const void *handle_of(enum handle_kind kind, uint32_t id, uint32_t raw)
{
	return (const void *)(uintptr_t)(HANDLE | (uint64_t)id << 32 | raw << 16 | kind);
}

/* 0: it is another's, or of another kind. */
static uint64_t handle_read(const void *handle, enum handle_kind first, enum handle_kind last)
{
	const uint64_t h = (uintptr_t)handle, kind = h & 0xffff;

	return HANDLE_IS(h) && kind >= first && kind <= last ? h : 0;
}

/* --- names --- */

static bool begins(const char *s, uint32_t n, const char *with)
{
	return n >= strlen(with) && memcmp(s, with, strlen(with)) == 0;
}

/* Of the default domain, and of a handle that is not ours, the domain's text is empty. */
static uint32_t in_domain(const void *domain, const char *s, uint32_t n)
{
	const uint64_t h = handle_read(domain, HANDLE_DOMAIN, HANDLE_DOMAIN_OUT);
	char text[DOMAIN_MOST + 2 + NAME_BYTES_MAX];
	uint32_t bytes = 0, used = 1;
	const char *of = h != 0 ? host->name(HANDLE_ID(h), &bytes) : "";

	bytes = bytes < DOMAIN_MOST ? bytes : DOMAIN_MOST;
	text[0] = (char)NAME_DOMAIN_MARK;
	memcpy(text + 1, of, bytes);
	used += bytes;
	text[used++] = (char)NAME_DOMAIN_MARK;
	if (n <= NAME_BYTES_MAX)
		memcpy(text + used, s, n);
	else
		name_cut(s, n, text + used);
	return host->intern(text, used + (n < NAME_BYTES_MAX ? n : NAME_BYTES_MAX));
}

/* XLA compiles by thousands of ranges, "XlaPass:#name=fusion,module=jit_f,program_id=3#" and
 * "XlaPassPipeline:#...", inside one another. All are one name, and where one stands in another
 * they are one scope. */
static uint32_t name_of(const void *domain, const char *s, uint32_t n, bool *ret_values)
{
	static const char pass[] = "XlaPass";
	char text[NAME_BYTES_MAX];
	struct range_name r;
	uint32_t id;

	*ret_values = false;
	if (begins(s, n, pass)) {
		id = in_domain(domain, pass, sizeof(pass) - 1);
		atomic_store_explicit(&xla_pass, id, memory_order_relaxed);
		return id;
	}
	if (!range_name_read(s, n, &r))
		return in_domain(domain, s, n);
	*ret_values = r.n > 0;
	return in_domain(domain, text, range_name_text(&r, text, sizeof(text)));
}

bool nvtx_is_pass(uint32_t name)
{
	return name != 0 && name == atomic_load_explicit(&xla_pass, memory_order_relaxed);
}

/* Where the text of a message is: there, or narrowed in `room`. */
static const char *text_of(int32_t type, const void *message, char room[TEXT_MAX], uint32_t *ret_n)
{
	const uint64_t h = handle_read(message, HANDLE_STRING, HANDLE_STRING);

	*ret_n = 0;
	if (type == MESSAGE_REGISTERED && h != 0)
		return host->name(HANDLE_RAW(h), ret_n);
	if (type == MESSAGE_ASCII && message != NULL) {
		*ret_n = (uint32_t)strnlen(message, TEXT_MAX);
		return message;
	}
	if (type != MESSAGE_WIDE)
		return "";
	*ret_n = narrow(message, room);
	return room;
}

static struct title title_of(
	const void *domain, int32_t type, const void *message, char room[TEXT_MAX])
{
	struct title ret = {.message = message};
	uint32_t n;
	const char *s = text_of(type, message, room, &n);
	bool values;

	ret.name = name_of(domain, s, n, &values);
	ret.type = values ? type : MESSAGE_NONE;
	return ret;
}

static struct title title_registered(const void *handle)
{
	const uint64_t h = handle_read(handle, HANDLE_STRING, HANDLE_STRING);

	return (struct title){.name = HANDLE_ID(h), /* of none of ours: (other) */
		.type = HANDLE_RAW(h) != 0 ? MESSAGE_REGISTERED : MESSAGE_NONE,
		.message = handle};
}

static __attribute__((noinline)) struct title title_wide(const void *domain, const void *message)
{
	char room[TEXT_MAX];

	return title_of(domain, MESSAGE_WIDE, message, room);
}

struct title nvtx_title(const void *domain, int32_t type, const void *message)
{
	if (type == MESSAGE_REGISTERED)
		return title_registered(message);
	if (type == MESSAGE_WIDE)
		return title_wide(domain, message);
	return title_of(domain, type, message, NULL);
}

/* --- the values in names --- */

static void value_give(struct pd_thread *t, const struct range_value *v, uint64_t context)
{
	static const char kind[] = " (pty)";
	/* "name" is what viewers call a node */
	const struct range_word key =
		range_is(v->key, "name") ? (struct range_word){"op_name", 7} : v->key;
	const uint32_t n = key.n < KEY_MOST ? key.n : KEY_MOST;
	char text[KEY_MOST + sizeof(kind)];
	uint32_t name, value;

	memcpy(text, key.s, n);
	memcpy(text + n, kind, sizeof(kind) - 1);
	name = host->intern(text, n + (uint32_t)sizeof(kind) - 1);
	if (v->is_number) {
		agent_metric_at(t, context, name, METRIC_I64, (uint64_t)v->number);
		return;
	}
	value = nvtx_text(v->text.s, v->text.n);
	if (value != 0)
		agent_metric_at(t, context, name, METRIC_STR, value);
	else
		agent_lost(t, LOST_NVTX, 1);
}

static void values_give(struct pd_thread *t, const char *s, uint32_t n, uint64_t context)
{
	struct range_name r;

	if (!range_name_read(s, n, &r))
		return; /* the program has changed it meanwhile */
	for (uint32_t i = 0; i < r.n; i++)
		value_give(t, &r.value[i], context);
	if (r.left > 0)
		agent_lost(t, LOST_NVTX, r.left);
}

static __attribute__((noinline)) void values_give_wide(
	struct pd_thread *t, const void *message, uint64_t context)
{
	char room[TEXT_MAX];
	const uint32_t n = narrow(message, room);

	values_give(t, room, n, context);
}

void nvtx_title_give(struct pd_thread *t, const struct title *title, uint64_t context)
{
	uint32_t n;
	const char *s;

	if (title->type == MESSAGE_NONE || !agent_metrics_on())
		return;
	if (title->type == MESSAGE_WIDE) {
		values_give_wide(t, title->message, context);
		return;
	}
	s = text_of(title->type, title->message, NULL, &n);
	values_give(t, s, n, context);
}

/* --- strings that are registered --- */

static const void *string_of(const void *domain, const char *s, uint32_t n)
{
	const char *text = s;
	char shorter[STRING_MOST];
	bool values;
	uint32_t id;

	while (n > 0 && *text == '\n') { /* of a list that XLA begins with a new line */
		text++;
		n--;
	}
	if (n > STRING_MOST && !range_name_read(text, n, &(struct range_name){0})) {
		name_cut_to(text, n, shorter, STRING_MOST);
		text = shorter;
		n = STRING_MOST;
	}
	id = name_of(domain, text, n, &values);
	return handle_of(
		HANDLE_STRING, id, values && n <= NAME_BYTES_MAX ? host->intern(text, n) : 0);
}

const void *nvtx_string(const void *domain, int32_t type, const void *text)
{
	char room[TEXT_MAX];
	uint32_t n;
	const char *s = text_of(type, text, room, &n);

	return string_of(domain, s, n);
}

uint32_t nvtx_string_text(const void *handle)
{
	const uint64_t h = handle_read(handle, HANDLE_STRING, HANDLE_STRING);

	return HANDLE_RAW(h) != 0 ? HANDLE_RAW(h) : HANDLE_ID(h);
}

/* --- categories --- */

static struct {
	_Atomic uint64_t key; /* 0: free */
	_Atomic uint32_t name;
} categories[CATEGORIES];

/* A domain that is not ours counts as the one without a name. */
static uint64_t category_key(const void *domain, uint32_t category)
{
	const uint64_t h = handle_read(domain, HANDLE_DOMAIN, HANDLE_DOMAIN_OUT);

	return 1ull << 63 | (h != 0 ? (uint64_t)HANDLE_ID(h) : 0) << 32 | category;
}

bool nvtx_category_put(const void *domain, uint32_t category, uint32_t name)
{
	const uint64_t key = category_key(domain, category);
	uint64_t was;

	for (uint32_t i = 0; i < CATEGORIES; i++) {
		was = atomic_load_explicit(&categories[i].key, memory_order_relaxed);
		if (was == 0)
			(void)atomic_compare_exchange_strong_explicit(&categories[i].key, &was, key,
				memory_order_relaxed, memory_order_relaxed);
		if (was != 0 && was != key)
			continue;
		atomic_store_explicit(&categories[i].name, name, memory_order_relaxed);
		return true;
	}
	return false;
}

uint32_t nvtx_category(const void *domain, uint32_t category)
{
	const uint64_t key = category_key(domain, category);
	uint64_t at = 1;

	for (uint32_t i = 0; i < CATEGORIES && at != 0; i++) {
		at = atomic_load_explicit(&categories[i].key, memory_order_relaxed);
		if (at == key)
			return atomic_load_explicit(&categories[i].name, memory_order_relaxed);
	}
	return 0;
}

/* --- domains --- */

uint32_t nvtx_plain(int32_t type, const void *text)
{
	char room[TEXT_MAX];
	uint32_t n;
	const char *s = text_of(type, text, room, &n);

	return host->intern(s, n < DOMAIN_MOST ? n : DOMAIN_MOST);
}

const void *nvtx_domain(int32_t type, const void *text)
{
	char room[TEXT_MAX];
	uint32_t n;
	const char *s = text_of(type, text, room, &n);

	return handle_of(range_domain_is_in(domains, s, n) ? HANDLE_DOMAIN : HANDLE_DOMAIN_OUT,
		host->intern(s, n), 0);
}

/* A domain that is not ours is none that is listed. */
bool nvtx_is_out(const void *domain)
{
	if (domain == NULL)
		return default_out;
	if (handle_read(domain, HANDLE_DOMAIN, HANDLE_DOMAIN) != 0)
		return false;
	return *domains != '\0' || handle_read(domain, HANDLE_DOMAIN_OUT, HANDLE_DOMAIN_OUT) != 0;
}

void nvtx_names_begin(const struct protond_host *whose)
{
	host = whose;
	domains = agent_env("PROTOND_NVTX_DOMAINS");
	domains = domains != NULL ? domains : "";
	default_out = !range_domain_is_in(domains, "default", 7);
}
