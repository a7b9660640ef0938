/* SPDX-License-Identifier: MIT. range_name.h: the names of ranges that have numbers in them, as
 * frameworks write them: a name and values, so that a loop is one scope and not thousands. The job
 * and the readers of other profilers' files include it.
 *
 * Two ways of writing are known, and no other name is touched:
 *
 *   aten::mm, seq = 17, op_id = 4, sizes = [[2, 3], [3, 2]]      PyTorch's emit_nvtx
 *   XlaModule:#hlo_module=jit_step,program_id=3#                 XLA's, TraceMe's
 *
 * Nothing is copied or kept: all that is returned points into the text.
 */
#ifndef PROTOND_TERMS_RANGE_NAME_H
#define PROTOND_TERMS_RANGE_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DOMAINS_BYTES 128u /* of a session's list of domains */
#define RANGE_VALUES  8u   /* further ones are counted */

struct range_word {
	const char *s;
	uint32_t n;
};

struct range_value {
	struct range_word key, text;
	int64_t number; /* of one that is a number */
	bool is_number;
};

struct range_name {
	struct range_word label, of; /* "XlaCompile", "jit_f"; either may be empty, not both */
	uint32_t n, left;            /* values; and those that had no room */
	struct range_value value[RANGE_VALUES];
};

/* clang-format off */
/* What emit_nvtx puts behind a name. */
#define RANGE_TORCH_KEYS(X) X("seq") X("op_id") X("sizes") X("input_op_ids")
/* The word of XLA's that says what a range is of, the first one that is there. alone: without the label. */
#define RANGE_NAMING_KEYS(X) /* key  alone */ \
        X("hlo_op", true) X("hlo_module", true) X("module", false) X("name", false)
/* clang-format on */

static inline bool range_is(struct range_word w, const char *text)
{
	return w.n == strlen(text) && memcmp(w.s, text, w.n) == 0;
}

static inline bool range_number(struct range_word w, int64_t *ret)
{
	const bool minus = w.n > 1 && *w.s == '-';
	int64_t v = 0;
	uint32_t i;

	if (w.n == 0 || w.n - minus > 18)
		return false;
	for (i = minus; i < w.n; i++) {
		if (w.s[i] < '0' || w.s[i] > '9')
			return false;
		v = v * 10 + (w.s[i] - '0');
	}
	*ret = minus ? -v : v;
	return true;
}

static inline void range_add(struct range_name *r, struct range_word key, struct range_word text)
{
	struct range_value *v = &r->value[r->n];

	if (r->n == RANGE_VALUES) {
		r->left++;
		return;
	}
	*v = (struct range_value){.key = key, .text = text};
	v->is_number = range_number(text, &v->number);
	r->n++;
}

/* ", KEY = " of PyTorch's at s; the bytes of it, and the key. 0: it is none. */
static inline uint32_t range_torch_key(const char *s, uint32_t n, struct range_word *ret)
{
#define X(key)                                                                        \
	if (n > sizeof(key) + 4 && memcmp(s, ", " key " = ", sizeof(key) + 4) == 0) { \
		*ret = (struct range_word){s + 2, sizeof(key) - 1};                   \
		return sizeof(key) + 4;                                               \
	}
	RANGE_TORCH_KEYS(X)
#undef X
	return 0;
}

static inline bool range_read_torch(const char *s, uint32_t n, struct range_name *ret)
{
	const char *end = s + n, *at = s, *value = NULL;
	struct range_word key = {NULL, 0}, next;
	uint32_t bytes;

	while ((at = memchr(at, ',', (size_t)(end - at))) != NULL) {
		bytes = range_torch_key(at, (uint32_t)(end - at), &next);
		if (bytes == 0) {
			at++;
			continue;
		}
		if (value == NULL)
			*ret = (struct range_name){.label = {s, (uint32_t)(at - s)}};
		else
			range_add(ret, key, (struct range_word){value, (uint32_t)(at - value)});
		key = next;
		at = value = at + bytes;
	}
	if (value == NULL || ret->label.n == 0)
		return false;
	range_add(ret, key, (struct range_word){value, (uint32_t)(end - value)});
	return true;
}

static inline bool range_is_key(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* "KEY=" at s: the bytes of it. 0: what stands there goes on with the value before it. */
static inline uint32_t range_xla_key(const char *s, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && range_is_key(s[i]))
		i++;
	return i > 0 && i < n && s[i] == '=' ? i + 1 : 0;
}

static inline void range_name_it(struct range_name *r)
{
	static const struct {
		const char *key;
		bool alone;
	} naming[] = {
#define X(key, alone) {key, alone},
		RANGE_NAMING_KEYS(X)
#undef X
	};
	uint32_t i, k;

	for (k = 0; k < sizeof(naming) / sizeof(*naming); k++)
		for (i = 0; i < r->n; i++) {
			if (!range_is(r->value[i].key, naming[k].key) || r->value[i].text.n == 0)
				continue;
			r->of = r->value[i].text;
			if (naming[k].alone)
				r->label.n = 0;
			r->n--;
			memmove(&r->value[i], &r->value[i + 1], (r->n - i) * sizeof(r->value[0]));
			return;
		}
}

static inline bool range_read_xla(const char *s, uint32_t n, struct range_name *ret)
{
	const char *hash = memchr(s, '#', n), *end = s + n - 1, *at, *next;
	uint32_t key, skip;

	if (hash == NULL || hash == end || range_xla_key(hash + 1, (uint32_t)(end - hash - 1)) == 0)
		return false;
	*ret = (struct range_name){.label = {s, (uint32_t)(hash - s)}};
	if (ret->label.n > 0 && s[ret->label.n - 1] == ':')
		ret->label.n--;
	for (at = hash + 1; at < end; at = next + 1) {
		key = range_xla_key(at, (uint32_t)(end - at));
		for (next = at + key; next < end; next++) {
			skip = (uint32_t)(end - next) - 1;
			if (*next == ',' && range_xla_key(next + 1, skip) != 0)
				break;
		}
		range_add(ret, (struct range_word){at, key - 1},
			(struct range_word){at + key, (uint32_t)(next - at) - key});
	}
	range_name_it(ret);
	return ret->label.n + ret->of.n > 0;
}

/* False: the name has no such values, or is none without them; *ret means nothing. */
static inline bool range_name_read(const char *s, uint32_t n, struct range_name *ret)
{
	if (n > 0 && s[n - 1] == '#')
		return range_read_xla(s, n, ret);
	return n > 0 && range_read_torch(s, n, ret);
}

/* The name without its values, "XlaCompile: jit_f", cut to `cap`; the bytes of it. */
static inline uint32_t range_name_text(const struct range_name *r, char *ret, uint32_t cap)
{
	const struct range_word part[] = {
		r->label, {": ", r->label.n > 0 && r->of.n > 0 ? 2 : 0}, r->of};
	uint32_t used = 0, n, i;

	for (i = 0; i < 3; i++) {
		n = part[i].n < cap - used ? part[i].n : cap - used;
		if (n > 0)
			memcpy(ret + used, part[i].s, n);
		used += n;
	}
	return used;
}

/* Is a domain on a list, words parted by commas? `default` is the one without a name; of "-TSL" all
 * but TSL. An empty list has all. */
static inline bool range_domain_is_in(const char *list, const char *name, uint32_t n)
{
	bool only = false, in = false;
	uint32_t bytes, minus;

	for (; *list != '\0'; list += bytes + (list[bytes] == ',')) {
		bytes = (uint32_t)strcspn(list, ",");
		minus = *list == '-';
		only |= minus == 0 && bytes > 0;
		if (bytes - minus != n || memcmp(list + minus, name, n) != 0)
			continue;
		if (minus != 0)
			return false;
		in = true;
	}
	return in || !only;
}

#endif
