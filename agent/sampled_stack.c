/* SPDX-License-Identifier: MIT. sampled_stack.c: the Python stack of another thread, read as it runs.
 *
 * The thread is neither stopped nor waits, so what is read may be of two instants. Frames lie side by side: each page is
 * copied once a look, and a look during which the innermost frame became another is made anew, a few times; then the
 * last one stands. A code object's name is kept by its address. What else tells that it is still the same one is read
 * again at every look: the first line, the addresses of its texts, and their lengths and hashes.
 *
 * A module stands right below the one that imports it, without the frames of importlib between them: those are one, where
 * they are innermost.
 */
#include "sampled_stack.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "agent.h"
#include "core.h"

#define TRIES       3u
#define STEPS_MOST  (2 * STACK_FRAMES) /* with what C put in between */
#define PAGES       8u
#define PAGE        4096u
#define CODES_BITS  12
#define PATHS_BITS  15
#define NAMES_OF_US 16384u /* that the program's own scopes have left */
#define PATHS_OF_US 16384u
#define FRAME_TEXT  1024
#define UNREADABLE  "(unreadable)"
/* The machinery of imports is a handful of frames between a module and each that it imports. */
#define IMPORTLIB "<frozen importlib"
#define IMPORTING "(import)"

struct code {
	uint64_t at; /* 0: none */
	struct cpython_code is;
	uint8_t id[2][CPYTHON_TEXT_ID_BYTES]; /* of name and file */
	uint32_t name;                        /* ring name */
};

struct step {
	uint32_t parent, name, path; /* path PATH_ROOT: none */
};

/* Memory as it was when a page of it was first read. */
struct paged {
	struct memory m; /* first: it is read as one */
	struct memory *under;
	uint32_t n;
	uint64_t page[PAGES];
	uint8_t bytes[PAGES][PAGE];
};

struct stacks {
	struct memory *m;
	struct paged paged;
	struct cpython py, frames;   /* frames: by pages */
	uint32_t names, paths;       /* that were made for it */
	uint64_t native;             /* of the last stack: stacks_native() */
	uint32_t importing;          /* IMPORTING, once it was seen, else NAME_OTHER */
	uint64_t code[STACK_FRAMES]; /* the stack at hand, innermost first; likewise: */
	uint32_t name[STACK_FRAMES];
	uint8_t head[STACK_FRAMES][CPYTHON_CODE_BYTES];
	uint8_t id[STACK_FRAMES][2][CPYTHON_TEXT_ID_BYTES];
	struct code codes[1u << CODES_BITS];
	struct step steps[1u << PATHS_BITS];
};

static bool read_paged(struct memory *m, uint64_t at, void *ret, size_t n)
{
	struct paged *p = (struct paged *)(void *)m;
	const uint64_t page = at & ~(uint64_t)(PAGE - 1);
	uint32_t i;

	for (i = 0; i < p->n && p->page[i] != page; i++)
		;
	if (at - page + n > PAGE || i == PAGES)
		return p->under->read(p->under, at, ret, n);
	if (i == p->n) {
		if (!p->under->read(p->under, page, p->bytes[i], PAGE))
			return p->under->read(p->under, at, ret, n);
		p->page[p->n++] = page;
	}
	memcpy(ret, p->bytes[i] + (at - page), n);
	return true;
}

struct stacks *stacks_new(struct memory *m)
{
	struct stacks *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (s == MAP_FAILED)
		return NULL;
	(void)madvise(s, sizeof(*s), MADV_DONTFORK);
	s->m = m;
	s->paged.m.read = read_paged;
	s->paged.under = m;
	s->importing = NAME_OTHER;
	return s;
}

void stacks_free(struct stacks *s)
{
	if (s != NULL)
		(void)munmap(s, sizeof(*s));
}

bool stacks_python(struct stacks *s, const struct cpython_symbols *symbols)
{
	cpython_open(&s->py, s->m, symbols);
	s->frames = s->py;
	s->frames.m = &s->paged.m;
	return s->py.known;
}

const struct cpython *stacks_cpython(const struct stacks *s)
{
	return &s->py;
}

/* --- names and paths -------------------------------------------------------------------------- */

uint32_t stacks_name(struct stacks *s, const char *text)
{
	const uint32_t before = atomic_load_explicit(&core.counts->names, memory_order_relaxed);
	uint32_t name;

	if (s->names >= NAMES_OF_US) {
		agent_count(&core.counts->names_refused, 1);
		return NAME_OTHER;
	}
	name = agent_name(text, strlen(text));
	s->names += name >= before;
	return name;
}

/* Over our share it stands where its parent does. */
uint32_t stacks_below(struct stacks *s, uint32_t parent, uint32_t name)
{
	struct step *k =
		&s->steps[(parent * 0x9e3779b1u ^ name * 0x85ebca6bu) >> (32 - PATHS_BITS)];
	const uint32_t before = atomic_load_explicit(&core.counts->paths, memory_order_relaxed);
	uint32_t path;

	if (k->parent == parent && k->name == name && k->path != PATH_ROOT)
		return k->path;
	if (s->paths >= PATHS_OF_US) {
		agent_count(&core.counts->paths_refused, 1);
		return parent;
	}
	path = agent_path_child(parent, PATH_KIND_FRAME, name);
	s->paths += path >= before;
	*k = (struct step){parent, name, path};
	return path;
}

uint32_t stacks_named(struct stacks *s, const char *text)
{
	return stacks_below(s, PATH_ROOT, stacks_name(s, text));
}

/* --- code objects ----------------------------------------------------------------------------- */

static bool code_is(const struct code *c, uint64_t at, const struct cpython_code *is)
{
	return c->at == at && c->is.name == is->name && c->is.file == is->file &&
	       c->is.lines == is->lines && c->is.first == is->first;
}

static struct code *code_place(struct stacks *s, uint64_t at)
{
	return &s->codes[(at >> 4) * 0x9e3779b97f4a7c15ull >> (64 - CODES_BITS)];
}

static uint32_t code_name(struct stacks *s, const struct cpython_code *c)
{
	char file[701], function[251], text[FRAME_TEXT];

	cpython_text(&s->py, c->name, function, sizeof(function));
	cpython_text(&s->py, c->file, file, sizeof(file));
	if (*function == '\0' && *file == '\0')
		return stacks_name(s, UNREADABLE);
	if (strncmp(file, IMPORTLIB, sizeof(IMPORTLIB) - 1) == 0) {
		s->importing = stacks_name(s, IMPORTING);
		return s->importing;
	}
	(void)snprintf(text, sizeof(text), "%s:%d@%s", file, c->first, function);
	return stacks_name(s, text);
}

/* Frame i's, whose code object's bytes and whose texts' were read. */
static uint32_t frame_name(struct stacks *s, uint32_t i, bool have_id)
{
	struct code *c = code_place(s, s->code[i]);
	struct cpython_code is;

	if (!cpython_code_in(&s->py, s->head[i], &is))
		return stacks_name(s, UNREADABLE);
	if ((!have_id || !code_is(c, s->code[i], &is)) &&
		(!s->m->read(s->m, is.name + CPYTHON_TEXT_ID, s->id[i][0], CPYTHON_TEXT_ID_BYTES) ||
			!s->m->read(s->m, is.file + CPYTHON_TEXT_ID, s->id[i][1],
				CPYTHON_TEXT_ID_BYTES)))
		return stacks_name(s, UNREADABLE);
	if (code_is(c, s->code[i], &is) && memcmp(c->id, s->id[i], sizeof(c->id)) == 0)
		return c->name;
	*c = (struct code){.at = s->code[i], .is = is, .name = code_name(s, &is)};
	memcpy(c->id, s->id[i], sizeof(c->id));
	return c->name;
}

/* All code objects with one call, and what is known of their texts with another. */
static void names_read(struct stacks *s, uint32_t n)
{
	struct memory_piece piece[2 * STACK_FRAMES];
	struct cpython_code is;
	uint32_t i;
	bool have;

	if (n == 0)
		return;
	for (i = 0; i < n; i++)
		piece[i] = (struct memory_piece){s->code[i], s->head[i], CPYTHON_CODE_BYTES};
	if (!memory_read_all(s->m, piece, n))
		for (i = 0; i < n; i++)
			if (!s->m->read(s->m, s->code[i], s->head[i], CPYTHON_CODE_BYTES))
				memset(s->head[i], 0, CPYTHON_CODE_BYTES);
	for (i = 0; i < n; i++) {
		if (!cpython_code_in(&s->py, s->head[i], &is) ||
			!code_is(code_place(s, s->code[i]), s->code[i], &is))
			is = (struct cpython_code){.name = s->code[i], .file = s->code[i]};
		piece[2 * i] = (struct memory_piece){
			is.name + CPYTHON_TEXT_ID, s->id[i][0], CPYTHON_TEXT_ID_BYTES};
		piece[2 * i + 1] = (struct memory_piece){
			is.file + CPYTHON_TEXT_ID, s->id[i][1], CPYTHON_TEXT_ID_BYTES};
	}
	have = memory_read_all(s->m, piece, 2 * n);
	for (i = 0; i < n; i++)
		s->name[i] = frame_name(s, i, have);
}

/* --- stacks ----------------------------------------------------------------------------------- */

/* How many frames; *ret_at: the next one, which is not among them. */
static uint32_t frames_read(struct stacks *s, uint64_t frame, uint64_t *ret_at)
{
	struct cpython_frame f;
	uint32_t n = 0, step;

	s->paged.n = 0;
	s->native = 0;
	for (step = 0; frame != 0 && n < STACK_FRAMES && step < STEPS_MOST; step++) {
		if (!cpython_frame(&s->frames, frame, &f)) {
			frame = 0;
			break;
		}
		if (!f.entry)
			s->code[n++] = f.code;
		else if (s->native == 0)
			s->native = frame;
		frame = f.previous;
	}
	*ret_at = frame;
	return n;
}

uint32_t stacks_path(struct stacks *s, uint64_t interpreter, uint64_t state, uint32_t tid)
{
	struct cpython_thread t, then;
	uint32_t path = PATH_ROOT, n = 0, try;
	uint64_t more = 0;

	for (try = 0; try < TRIES; try++) {
		if (!cpython_thread(&s->py, interpreter, state, &t) || t.tid != tid)
			return PATH_ROOT;
		n = frames_read(s, t.frame, &more);
		s->native = t.native != 0 ? t.native : s->native;
		if (!cpython_thread(&s->py, interpreter, state, &then) || then.frame == t.frame)
			break;
	}
	names_read(s, n);
	if (more != 0)
		path = stacks_named(s, STACK_CUT);
	while (n-- > 0)
		if (n == 0 || s->name[n] != s->importing || s->importing == NAME_OTHER)
			path = stacks_below(s, path, s->name[n]);
	return path;
}

struct stacks_mark stacks_mark(
	const struct stacks *s, uint64_t interpreter, uint64_t state, uint32_t tid)
{
	struct stacks_mark mark = {0};
	struct cpython_thread t;
	struct cpython_frame f;

	if (cpython_thread(&s->py, interpreter, state, &t) && t.tid == tid && t.frame != 0 &&
		cpython_frame(&s->py, t.frame, &f))
		mark = (struct stacks_mark){t.frame, f.code, f.instruction};
	return mark;
}

uint64_t stacks_native(const struct stacks *s)
{
	return s->native;
}
