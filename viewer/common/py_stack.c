/* SPDX-License-Identifier: MIT. py_stack.c: the stacks of all of Python's threads in a process. */
#include "py_stack.h"

#include <stdlib.h>

#include "cpython.h"

#define INTERPRETERS_MOST 64u
#define STATES_MOST       10000u
#define TRIES             3u
#define FRAMES_ALL        (4 * PY_FRAMES_MOST) /* followed in one process, of all threads and tries */

struct python {
	struct cpython py;
	uint64_t interpreter, gil;
	uint32_t left; /* frames that may be followed still */
};

/* What a frame was at the instant it was passed. */
struct place {
	uint64_t code, instruction;
};

static void read_frame(const struct cpython *py, const struct place *p, struct py_frame *ret)
{
	uint8_t bytes[CPYTHON_CODE_BYTES];
	struct cpython_code code;

	*ret = (struct py_frame){.line = 0};
	if (!py->m->read(py->m, p->code, bytes, sizeof(bytes)) ||
		!cpython_code_in(py, bytes, &code))
		return;
	cpython_text(py, code.name, ret->name, sizeof(ret->name));
	cpython_text(py, code.file, ret->file, sizeof(ret->file));
	ret->line = cpython_line(py, p->code, &code, p->instruction);
}

static void read_stack(struct python *p, uint64_t thread, struct py_stack *s)
{
	struct place inner[PY_ENDS], outer[PY_ENDS], top = {0, 0};
	const struct cpython *py = &p->py;
	struct cpython_thread t = {.frame = 0};
	struct cpython_frame f;
	uint64_t at, seen = 0, from;
	uint32_t i, k, n = 0, n_outer, walked;

	s->changed = s->broken = false;
	(void)cpython_thread(py, p->interpreter, thread, &t);
	from = t.frame;
	for (at = from, walked = 0; at != 0; at = f.previous, walked++) {
		if (n == PY_FRAMES_MOST || p->left == 0 || at == seen ||
			!cpython_frame(py, at, &f)) {
			s->broken = true;
			break;
		}
		p->left--;
		if ((walked & (walked - 1)) == 0) /* Brent's: a loop comes by here again */
			seen = at;
		if (f.entry)
			continue;
		if (n == 0)
			top = (struct place){at, f.instruction};
		*(n < PY_ENDS ? &inner[n] : &outer[n % PY_ENDS]) =
			(struct place){f.code, f.instruction};
		n++;
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
	s->changed =
		!cpython_thread(py, p->interpreter, thread, &t) || t.frame != from ||
		(n != 0 && (!cpython_frame(py, top.code, &f) || f.instruction != top.instruction));
}

static uint32_t count_threads(struct python *p)
{
	uint64_t at = cpython_first_thread(&p->py, p->interpreter);
	struct cpython_thread t;
	uint32_t n;

	for (n = 0; at != 0 && n < STATES_MOST; n++, at = t.next)
		if (!cpython_thread(&p->py, p->interpreter, at, &t))
			break;
	return n;
}

/* Of more than there is room for the oldest, which are last. */
static void read_threads(struct python *p, struct py_process *ret)
{
	const uint32_t room = PY_THREADS_MOST - ret->n, n = count_threads(p),
		       over = n > room ? n - room : 0;
	uint64_t at = cpython_first_thread(&p->py, p->interpreter);
	struct cpython_thread t;
	uint32_t i, try;

	p->gil = cpython_gil_holder(&p->py, p->interpreter);
	for (i = 0; at != 0 && i < STATES_MOST; i++, at = t.next) {
		struct py_stack *s = &ret->threads[ret->n];

		if (!cpython_thread(&p->py, p->interpreter, at, &t))
			return;
		if (i < over || ret->n == PY_THREADS_MOST) {
			ret->more++;
			continue;
		}
		s->tid = t.tid;
		s->gil = at == p->gil;
		for (try = 0; try < TRIES; try++) {
			read_stack(p, at, s);
			if (!s->changed && !s->broken)
				break;
		}
		ret->n++;
	}
}

bool py_process_read(struct memory *m, uint64_t base, struct py_process *ret)
{
	const struct cpython_symbols symbols = {.runtime = memory_symbol(m, base, "_PyRuntime"),
		.version = memory_symbol(m, base, "Py_Version"),
		.code_type = memory_symbol(m, base, "PyCode_Type"),
		.text_type = memory_symbol(m, base, "PyUnicode_Type")};
	struct python p = {.left = FRAMES_ALL};
	uint32_t i;

	*ret = (struct py_process){.version = 0};
	if (symbols.runtime == 0)
		return false;
	cpython_open(&p.py, m, &symbols);
	ret->version = p.py.version;
	ret->known = p.py.known;
	ret->free_threaded = p.py.free_threaded;
	if (!ret->known)
		return true;
	ret->threads = calloc(PY_THREADS_MOST, sizeof(*ret->threads));
	if (ret->threads == NULL)
		return true;
	for (i = 0; i < INTERPRETERS_MOST; i++) {
		p.interpreter = cpython_interpreter(&p.py, p.interpreter);
		if (p.interpreter == 0)
			break;
		read_threads(&p, ret);
	}
	return true;
}

void py_process_fini(struct py_process *p)
{
	free(p->threads);
	*p = (struct py_process){.version = 0};
}
