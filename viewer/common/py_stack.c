/* SPDX-License-Identifier: MIT. py_stack.c: interpreters, threads, frames and code objects of CPython 3.11.
 *
 * Offsets are those of 3.11's headers with Py_BUILD_CORE, which are the same in every 3.11.N. Another minor version has
 * others: it is named, and nothing of it is read.
 */
#include "py_stack.h"

#include <stdlib.h>
#include <string.h>

#define INTERPRETERS_MOST 64u
#define STATES_MOST       10000u
#define TRIES             3u
#define FRAMES_ALL        (4 * PY_FRAMES_MOST) /* followed in one process, of all threads and tries */

enum offset {
	RUNTIME_INTERPRETERS = 40,
	RUNTIME_GIL_HOLDER = 368,
	RUNTIME_GIL_LOCKED = 376,
	INTERPRETER_NEXT = 0,
	INTERPRETER_THREADS = 16,
	THREAD_NEXT = 8,
	THREAD_CFRAME = 56,
	THREAD_TID = 160,
	CFRAME_CURRENT = 8,
	FRAME_CODE = 32,
	FRAME_PREVIOUS = 48,
	FRAME_INSTRUCTION = 56,
	FRAME_BYTES = 64,
	OBJECT_TYPE = 8,
	CODE_FIRST_LINE = 72,
	CODE_FILE = 112,
	CODE_NAME = 128,
	CODE_LINES = 136,
	CODE_BYTES = 144,
	CODE_INSTRUCTIONS = 184,
	BYTES_SIZE = 16,
	BYTES_DATA = 32,
	TEXT_LENGTH = 16,
	TEXT_STATE = 32,
	TEXT_ASCII = 48,
	TEXT_WIDE = 72,
};

struct python {
	struct memory *m;
	uint64_t runtime, code_type, text_type, gil;
	uint32_t left; /* frames that may be followed still */
};

/* What a frame was at the instant it was passed. */
struct place {
	uint64_t code, instruction;
};

static uint64_t word(struct memory *m, uint64_t at)
{
	uint64_t v;

	return m->read(m, at, &v, sizeof(v)) ? v : 0;
}

static uint64_t word_in(const uint8_t *bytes, uint32_t at)
{
	uint64_t v;

	memcpy(&v, bytes + at, sizeof(v));
	return v;
}

/* --- names --- */

static uint32_t unit(const uint8_t *p, uint32_t width)
{
	uint32_t v = 0;

	memcpy(&v, p, width);
	return v;
}

/* A character as UTF-8; a byte that Python could not decode (U+DC80..) is that byte again. */
static uint32_t put_character(uint32_t c, char ret[4])
{
	if (c >= 0xdc80 && c <= 0xdcff) {
		ret[0] = (char)(c - 0xdc00);
		return 1;
	}
	if ((c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		c = 0xfffd;
	if (c < 0x80) {
		ret[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		ret[0] = (char)(0xc0 | c >> 6);
		ret[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		ret[0] = (char)(0xe0 | c >> 12);
		ret[1] = (char)(0x80 | (c >> 6 & 63));
		ret[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	ret[0] = (char)(0xf0 | c >> 18);
	ret[1] = (char)(0x80 | (c >> 12 & 63));
	ret[2] = (char)(0x80 | (c >> 6 & 63));
	ret[3] = (char)(0x80 | (c & 63));
	return 4;
}

static void read_text(const struct python *py, uint64_t at, char *ret, size_t most)
{
	static const char cut[] = "\u2026";
	uint8_t head[TEXT_ASCII], data[512];
	uint32_t state, width, bytes, got;
	uint64_t length, i;
	char c[4];
	size_t n = 0;

	*ret = '\0';
	if (!py->m->read(py->m, at, head, sizeof(head)) ||
		word_in(head, OBJECT_TYPE) != py->text_type)
		return;
	state = unit(head + TEXT_STATE, 4);
	width = state >> 2 & 7;
	length = word_in(head, TEXT_LENGTH);
	if ((width != 1 && width != 2 && width != 4) || (state >> 5 & 1) == 0)
		return;
	bytes = (uint32_t)(length < sizeof(data) / width ? length : sizeof(data) / width) * width;
	most -= sizeof(cut);
	if (!py->m->read(py->m, at + ((state >> 6 & 1) != 0 ? TEXT_ASCII : TEXT_WIDE), data, bytes))
		return;
	for (i = 0; i < bytes; i += width) {
		got = put_character(unit(data + i, width), c);
		if (n + got >= most)
			break;
		if (c[0] == '\0') /* the name goes on behind it */
			c[0] = '?';
		memcpy(ret + n, c, got);
		n += got;
	}
	ret[n] = '\0';
	if (i / width < length)
		memcpy(ret + n, cut, sizeof(cut));
}

/* --- lines --- */

struct lines {
	struct memory *m;
	uint64_t at, left; /* not read yet */
	uint8_t buf[256];
	uint32_t i, n;
};

static bool next_byte(struct lines *l, uint8_t *ret)
{
	if (l->i == l->n) {
		l->n = (uint32_t)(l->left < sizeof(l->buf) ? l->left : sizeof(l->buf));
		l->i = 0;
		if (l->n == 0 || !l->m->read(l->m, l->at, l->buf, l->n)) {
			l->n = 0;
			return false;
		}
		l->at += l->n;
		l->left -= l->n;
	}
	*ret = l->buf[l->i++];
	return true;
}

static bool next_number(struct lines *l, uint32_t *ret)
{
	uint32_t shift;
	uint8_t b = 64;

	*ret = 0;
	for (shift = 0; shift < 30 && (b & 64) != 0; shift += 6) {
		if (!next_byte(l, &b))
			return false;
		*ret |= (uint32_t)(b & 63) << shift;
	}
	return (b & 64) == 0;
}

#define LINES_MOST  (1u << 20) /* bytes of a table that are followed */
#define ENTRY_SHORT 10u        /* below: the same line; to 12: 0 to 2 lines on */
#define ENTRY_LINE  13u
#define ENTRY_LONG  14u
#define ENTRY_NONE  15u

/* The location table of PEP 626 as 3.11 writes it (Objects/locations.md): the line of a code unit; 0: it has none. */
static int32_t line_of(struct lines *l, int64_t at, int32_t first)
{
	int64_t line = first, unit_at = 0;
	uint32_t v, code, skip;
	uint8_t head, b;

	while (next_byte(l, &head)) {
		code = head >> 3 & 15;
		skip = code < ENTRY_SHORT ? 1 : code < ENTRY_LINE ? 2 : 0;
		if (code >= ENTRY_SHORT && code < ENTRY_LINE)
			line += code - ENTRY_SHORT;
		if (code == ENTRY_LINE || code == ENTRY_LONG) {
			if (!next_number(l, &v))
				return 0;
			line += (v & 1) != 0 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
		}
		for (; skip > 0; skip--)
			if (!next_byte(l, &b))
				return 0;
		if (code == ENTRY_LONG)
			for (skip = 0; skip < 3; skip++)
				if (!next_number(l, &v))
					return 0;
		unit_at += (head & 7) + 1;
		if (at < unit_at)
			return code == ENTRY_NONE || line < 1 || line > INT32_MAX ? 0
										  : (int32_t)line;
	}
	return 0;
}

static void read_frame(const struct python *py, const struct place *p, struct py_frame *ret)
{
	struct lines l = {.m = py->m};
	uint8_t code[CODE_BYTES];
	uint64_t table, start = p->code + CODE_INSTRUCTIONS;
	int32_t first;

	*ret = (struct py_frame){.line = 0};
	if (!py->m->read(py->m, p->code, code, sizeof(code)) ||
		word_in(code, OBJECT_TYPE) != py->code_type)
		return;
	read_text(py, word_in(code, CODE_NAME), ret->name, sizeof(ret->name));
	read_text(py, word_in(code, CODE_FILE), ret->file, sizeof(ret->file));
	memcpy(&first, code + CODE_FIRST_LINE, sizeof(first));
	table = word_in(code, CODE_LINES);
	l.left = word(py->m, table + BYTES_SIZE);
	l.at = table + BYTES_DATA;
	if (p->instruction < start) /* it has not begun */
		ret->line = first > 0 ? first : 0;
	else if (l.left <= LINES_MOST)
		ret->line = line_of(&l, (int64_t)((p->instruction - start) / 2), first);
}

/* --- stacks --- */

static uint64_t current_frame(const struct python *py, uint64_t thread)
{
	const uint64_t cframe = word(py->m, thread + THREAD_CFRAME);

	return cframe != 0 ? word(py->m, cframe + CFRAME_CURRENT) : 0;
}

static void read_stack(struct python *py, uint64_t thread, struct py_stack *s)
{
	struct place inner[PY_ENDS], outer[PY_ENDS], p, top = {0, 0};
	const uint64_t from = current_frame(py, thread);
	uint64_t at = from, seen = 0;
	uint8_t frame[FRAME_BYTES];
	uint32_t i, k, n = 0, n_outer;

	s->changed = s->broken = false;
	for (; at != 0; at = word_in(frame, FRAME_PREVIOUS), n++) {
		if (n == PY_FRAMES_MOST || py->left == 0 || at == seen ||
			!py->m->read(py->m, at, frame, sizeof(frame))) {
			s->broken = true;
			break;
		}
		py->left--;
		if ((n & (n - 1)) == 0) /* Brent's: a loop comes by here again */
			seen = at;
		p = (struct place){word_in(frame, FRAME_CODE), word_in(frame, FRAME_INSTRUCTION)};
		if (n == 0)
			top = p;
		if (n < PY_ENDS)
			inner[n] = p;
		else
			outer[n % PY_ENDS] = p;
	}
	s->n = n;
	s->n_inner = n < PY_ENDS ? n : PY_ENDS;
	s->n_outer = n_outer = n - s->n_inner < PY_ENDS ? n - s->n_inner : PY_ENDS;
	for (i = 0; i < s->n_inner; i++)
		read_frame(py, &inner[i], &s->inner[i]);
	for (i = 0; i < n_outer; i++) {
		k = (n - n_outer + i) % PY_ENDS;
		read_frame(py, &outer[k], &s->outer[i]);
	}
	s->changed = current_frame(py, thread) != from ||
		     (from != 0 && word(py->m, from + FRAME_INSTRUCTION) != top.instruction);
}

static void read_threads(struct python *py, uint64_t interpreter, struct py_process *ret)
{
	uint64_t t = word(py->m, interpreter + INTERPRETER_THREADS);
	uint32_t i, try;

	for (i = 0; t != 0 && i < STATES_MOST; i++, t = word(py->m, t + THREAD_NEXT)) {
		struct py_stack *s = &ret->threads[ret->n];

		if (ret->n == PY_THREADS_MOST) {
			ret->more++;
			continue;
		}
		s->tid = word(py->m, t + THREAD_TID);
		s->gil = t == py->gil;
		for (try = 0; try < TRIES; try++) {
			read_stack(py, t, s);
			if (!s->changed && !s->broken)
				break;
		}
		ret->n++;
	}
}

bool py_process_read(struct memory *m, uint64_t base, struct py_process *ret)
{
	struct python py = {.m = m, .left = FRAMES_ALL};
	uint64_t at, interpreter;
	uint32_t i, locked = 0;

	*ret = (struct py_process){.version = 0};
	py.runtime = memory_symbol(m, base, "_PyRuntime");
	if (py.runtime == 0)
		return false;
	at = memory_symbol(m, base, "Py_Version");
	ret->version = at != 0 ? word(m, at) : 0;
	py.code_type = memory_symbol(m, base, "PyCode_Type");
	py.text_type = memory_symbol(m, base, "PyUnicode_Type");
	ret->known = ret->version >> 16 == 0x030b && py.code_type != 0 && py.text_type != 0;
	if (!ret->known)
		return true;
	ret->threads = calloc(PY_THREADS_MOST, sizeof(*ret->threads));
	if (ret->threads == NULL)
		return true;
	if (m->read(m, py.runtime + RUNTIME_GIL_LOCKED, &locked, sizeof(locked)) && locked == 1)
		py.gil = word(m, py.runtime + RUNTIME_GIL_HOLDER);
	interpreter = word(m, py.runtime + RUNTIME_INTERPRETERS);
	for (i = 0; interpreter != 0 && i < INTERPRETERS_MOST; i++) {
		read_threads(&py, interpreter, ret);
		interpreter = word(m, interpreter + INTERPRETER_NEXT);
	}
	return true;
}

void py_process_fini(struct py_process *p)
{
	free(p->threads);
	*p = (struct py_process){.version = 0};
}
