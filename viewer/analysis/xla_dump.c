/* SPDX-License-Identifier: MIT. xla_dump.c: names of operators out of XLA's dump.
 *
 * Of each module the text after all optimisations is read: its instructions are what runs, and their
 * metadata says what they were in the program:
 *
 *   HloModule jit_step, is_scheduled=true, ...
 *   %fusion.3 = f32[8] fusion(...), metadata={op_name="jit(step)/dot_general" source_file="/x/train.py" source_line=17}
 *
 * Newer ones say `stack_frame_id=2` in place of a file, and have tables before the instructions: FileNames,
 * FileLocations, StackFrames. A kernel is called as its instruction, with _ for what may not be in a name.
 */
#include "xla_dump.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "arena.h"
#include "gpu_terms.h"
#include "profile.h"
#include "table.h"

#define FILES_MAX     4096u
#define LINE_MAX_READ (1u << 20) /* a longer one's rest says nothing that is wanted */
#define BYTES_MAX     (1ull << 30)
#define IDS_MAX       (1u << 20)
#define OPS_MAX       (1u << 20)
#define ENDS          "after_optimizations.txt"

struct operator
{ /* texts: of the arena */
	const char *module, *name, *kernel, *op_name, *file;
	uint32_t line;
};

struct frame {
	uint32_t file, line; /* file: an id of FileNames */
};

/* Tables of a file, by id; 0 is none. */
struct frames {
	const char **file;
	struct frame *location;
	uint32_t *frame; /* its location */
	uint32_t n_files, n_locations, n_frames, cap_files, cap_locations, cap_frames;
	enum { IN_NONE, IN_FILES, IN_LOCATIONS, IN_FRAMES, IN_OTHER } in;
};

struct xla_dump {
	struct arena *arena;
	struct operator* op, **by_kernel;
	uint32_t n, cap;
	const char *module; /* of the file at hand */
	const char **modules;
	uint32_t n_modules, cap_modules;
	struct frames f;
	uint64_t bytes;
	uint32_t n_files;
};

/* --- a line ----------------------------------------------------------------------------------- */

/* What stands in quotes behind `key`, without its escapes. NULL: nothing. */
static const char *quoted(struct xla_dump *d, const char *s, const char *key)
{
	const char *at = strstr(s, key);
	char *text, *to;

	if (at == NULL)
		return NULL;
	at += strlen(key);
	to = text = arena_take(d->arena, strcspn(at, "\n") + 1);
	for (; text != NULL && *at != '\0' && *at != '"' && *at != '\n'; at++) {
		if (*at == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[2] <= '7' &&
			at[3] >= '0' && at[3] <= '7') {
			*to++ = (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + at[3] - '0');
			at += 3;
		} else {
			at += *at == '\\' && at[1] != '\0';
			*to++ = *at;
		}
	}
	return text != NULL && to > text ? text : NULL;
}

static uint32_t number_after(const char *s, const char *key)
{
	const char *at = strstr(s, key);
	const unsigned long v = at != NULL ? strtoul(at + strlen(key), NULL, 10) : 0;

	return v < IDS_MAX ? (uint32_t)v : 0;
}

/* "3 {...": its id, below IDS_MAX; 0: none. */
static uint32_t id_of(const char *line)
{
	return isdigit((unsigned char)*line) ? number_after(line, "") : 0;
}

static bool grow(void **v, uint32_t *n, uint32_t *cap, uint32_t id, size_t bytes)
{
	while (*n <= id) {
		if (!room_for(v, cap, *n, bytes))
			return false;
		memset((char *)*v + *n * bytes, 0, bytes);
		(*n)++;
	}
	return true;
}

static void read_table(struct xla_dump *d, const char *line)
{
	struct frames *f = &d->f;
	const uint32_t id = id_of(line);

	if (id == 0)
		return;
	if (f->in == IN_FILES &&
		grow((void **)&f->file, &f->n_files, &f->cap_files, id, sizeof(*f->file)))
		f->file[id] = quoted(d, line, " \"");
	if (f->in == IN_LOCATIONS && grow((void **)&f->location, &f->n_locations, &f->cap_locations,
					     id, sizeof(*f->location)))
		f->location[id] = (struct frame){
			number_after(line, "file_name_id="), number_after(line, " line=")};
	if (f->in == IN_FRAMES &&
		grow((void **)&f->frame, &f->n_frames, &f->cap_frames, id, sizeof(*f->frame)))
		f->frame[id] = number_after(line, "file_location_id=");
}

static bool begins_table(struct xla_dump *d, const char *line)
{
	static const char *const heads[] = {
		"FileNames", "FileLocations", "StackFrames", "FunctionNames"};

	for (uint32_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		const size_t n = strlen(heads[i]);

		if (strncmp(line, heads[i], n) == 0 && (line[n] == '\n' || line[n] == '\0')) {
			d->f.in = IN_FILES + i;
			return true;
		}
	}
	return false;
}

static void place_of(const struct xla_dump *d, const char *metadata, struct operator* o)
{
	const struct frames *f = &d->f;
	const uint32_t id = number_after(metadata, "stack_frame_id=");
	struct frame at;

	if (id == 0 || id >= f->n_frames || f->frame[id] >= f->n_locations)
		return;
	at = f->location[f->frame[id]];
	if (at.file == 0 || at.file >= f->n_files)
		return;
	o->file = f->file[at.file];
	o->line = at.line;
}

/* False: out of memory. */
static bool read_operator(struct xla_dump *d, const char *line)
{
	const char *at = line + strspn(line, " \t"), *metadata = strstr(at, "metadata={");
	struct operator o = {.module = d->module};
	size_t n;
	char *kernel;

	at += strncmp(at, "ROOT ", 5) == 0 ? 5 : 0;
	at += *at == '%';
	n = strcspn(at, " \n");
	if (metadata == NULL || n == 0 || strncmp(at + n, " = ", 3) != 0 || d->module == NULL)
		return true;
	o.name = arena_text(d->arena, at, n);
	kernel = arena_text(d->arena, at, n);
	if (o.name == NULL || kernel == NULL)
		return false;
	for (o.kernel = kernel; *kernel != '\0'; kernel++)
		*kernel = isalnum((unsigned char)*kernel) ? *kernel : '_';
	o.op_name = quoted(d, metadata, "op_name=\"");
	o.file = quoted(d, metadata, "source_file=\"");
	o.line = number_after(metadata, "source_line=");
	if (o.file == NULL)
		place_of(d, metadata, &o);
	if ((o.op_name == NULL && o.file == NULL) || d->n == OPS_MAX)
		return true;
	if (!ROOM_FOR(d->op, d->cap, d->n))
		return false;
	d->op[d->n++] = o;
	return true;
}

static bool read_line(struct xla_dump *d, const char *line)
{
	static const char head[] = "HloModule ";
	const char *at = line + sizeof(head) - 1;

	if (strncmp(line, head, sizeof(head) - 1) == 0) {
		d->module = arena_text(d->arena, at, strcspn(at, ", \n"));
		if (d->module == NULL || !ROOM_FOR(d->modules, d->cap_modules, d->n_modules))
			return false;
		d->modules[d->n_modules] = d->module;
		d->n_modules += d->n_modules < FILES_MAX;
		return true;
	}
	if (begins_table(d, line))
		return true;
	if (*line == '\n')
		d->f.in = IN_NONE;
	if (d->f.in == IN_NONE)
		return read_operator(d, line);
	read_table(d, line);
	return true;
}

/* --- a folder ---------------------------------------------------------------------------------- */

static void frames_fini(struct frames *f)
{
	free(f->file);
	free(f->location);
	free(f->frame);
	*f = (struct frames){0};
}

static bool read_file(struct xla_dump *d, FILE *from)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	bool ok = true;

	d->module = NULL;
	while (ok && d->bytes < BYTES_MAX && (n = getline(&line, &cap, from)) > 0) {
		d->bytes += (size_t)n;
		ok = (size_t)n > LINE_MAX_READ || read_line(d, line);
	}
	free(line);
	frames_fini(&d->f);
	return ok;
}

static bool is_dump(const char *name)
{
	const size_t n = strlen(name), ends = sizeof(ENDS) - 1;

	return n > ends && strcmp(name + n - ends, ENDS) == 0;
}

static int read_folder(struct xla_dump *d, const char *dir, struct err *e)
{
	DIR *folder = opendir(dir);
	const struct dirent *x;
	char path[4096];
	struct stat st;
	FILE *from;
	int r = 0;

	if (folder == NULL)
		return err_set(e, -errno, "%s: %s", dir, strerror(errno));
	while (r == 0 && d->n_files < FILES_MAX && (x = readdir(folder)) != NULL) {
		if (!is_dump(x->d_name) ||
			snprintf(path, sizeof(path), "%s/%s", dir, x->d_name) >=
				(int)sizeof(path) ||
			stat(path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		from = fopen(path, "re");
		if (from == NULL) {
			r = err_set(e, -errno, "%s: %s", path, strerror(errno));
			break;
		}
		if (!read_file(d, from))
			r = err_set(e, -ENOMEM, "out of memory");
		(void)fclose(from);
		d->n_files++;
	}
	(void)closedir(folder);
	if (r == 0 && d->n_files == 0)
		r = err_set(e, -ENOENT,
			"%s has no dump of XLA's (no file *" ENDS
			"); XLA_FLAGS=\"--xla_dump_to=DIR "
			"--xla_dump_hlo_as_text\" before the program makes one",
			dir);
	return r;
}

/* --- names ------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	const struct operator* x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int by_kernel(const void *a, const void *b)
{
	const struct operator* const * x = a, *const *y = b;

	return strcmp((*x)->kernel, (*y)->kernel);
}

static bool is_same(const struct operator* x, const struct operator* y)
{
	return strcmp(x->op_name != NULL ? x->op_name : "", y->op_name != NULL ? y->op_name : "") ==
		       0 &&
	       strcmp(x->file != NULL ? x->file : "", y->file != NULL ? y->file : "") == 0 &&
	       x->line == y->line;
}

static const struct operator* at_place(const struct xla_dump *d, bool kernel, uint32_t i)
{
	return kernel ? d->by_kernel[i] : &d->op[i];
}

/* Of that module, or of any where that is NULL. NULL: none, or *ret_unsure. */
static const struct operator* find(const struct xla_dump *d, bool kernel, const char *module,
	const char *name, bool *ret_unsure)
{
	const struct operator* o, *found = NULL;
	uint32_t low = 0, high = d->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		o = at_place(d, kernel, middle);
		if (strcmp(kernel ? o->kernel : o->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < d->n; low++) {
		o = at_place(d, kernel, low);
		if (strcmp(kernel ? o->kernel : o->name, name) != 0)
			break;
		if (module != NULL && strcmp(o->module, module) != 0)
			continue;
		*ret_unsure = found != NULL && !is_same(found, o);
		if (*ret_unsure)
			return NULL;
		found = o;
	}
	return found;
}

static const char *last_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* False: out of memory. */
static bool name_node(struct profile *p, uint32_t node, const struct operator* o)
{
	const uint32_t op_name = profile_add_metric(p, "op_name", KIND_PROPERTY),
		       source = profile_add_metric(p, "source", KIND_PROPERTY);
	char place[4200] = "", text[8600];
	int r = 0;

	if (o->file != NULL)
		(void)snprintf(place, sizeof(place), "%.4100s:%u", o->file, o->line);
	(void)snprintf(text, sizeof(text), "%.2000s:%s%.2000s%s%.4200s%s", p->node[node].name,
		o->op_name != NULL ? " " : "", o->op_name != NULL ? last_of(o->op_name) : "",
		*place != '\0' ? " (" : "", last_of(place), *place != '\0' ? ")" : "");
	p->node[node].name = profile_text(p, text, strlen(text));
	if (o->op_name != NULL && op_name != PROFILE_NONE)
		r |= profile_set(
			p, node, op_name, (struct value){.type = VALUE_STR, .s = o->op_name});
	if (*place != '\0' && source != PROFILE_NONE)
		r |= profile_set(p, node, source, (struct value){.type = VALUE_STR, .s = place});
	return r == 0 && p->node[node].name != NULL;
}

static bool is_module(const struct xla_dump *d, const char *name)
{
	for (uint32_t i = 0; i < d->n_modules; i++)
		if (strcmp(d->modules[i], name) == 0)
			return true;
	return false;
}

/* Each node's module is its own name's, or its parent's. What is below an operator is part of it. */
static bool name_all(const struct xla_dump *d, struct profile *p, struct xla_named *told,
	const char **module, bool *inside)
{
	const struct operator* o;
	uint32_t i;

	for (i = 1; i < p->n_nodes; i++) {
		const struct profile_node *n = &p->node[i];
		const bool kernel = n->kind == NODE_KERNEL;
		bool unsure = false;

		module[i] = module[n->parent];
		inside[i] = inside[n->parent];
		if (inside[i] || (!kernel && n->kind != NODE_SCOPE))
			continue;
		o = find(d, kernel, module[i], n->name, &unsure);
		told->unsure += unsure;
		if (o == NULL && !kernel && !unsure && is_module(d, n->name))
			module[i] = n->name;
		if (o == NULL)
			continue;
		inside[i] = true;
		told->named++;
		if (!name_node(p, i, o))
			return false;
	}
	return true;
}

int xla_dump_name(const struct xla_dump *d, struct profile *p, struct xla_named *ret, struct err *e)
{
	const char **module = calloc(p->n_nodes, sizeof(*module));
	bool *inside = calloc(p->n_nodes, sizeof(*inside));
	bool ok = module != NULL && inside != NULL;

	*ret = (struct xla_named){.files = d->n_files, .operators = d->n};
	ok = ok && name_all(d, p, ret, module, inside);
	free(module);
	free(inside);
	return ok ? 0 : err_set(e, -ENOMEM, "out of memory");
}

int xla_dump_open(const char *dir, struct xla_dump **ret, struct err *e)
{
	struct xla_dump *d = calloc(1, sizeof(*d));
	int r = 0;

	if (d != NULL)
		d->arena = arena_new();
	if (d == NULL || d->arena == NULL)
		r = err_set(e, -ENOMEM, "out of memory");
	if (r == 0)
		r = read_folder(d, dir, e);
	if (r == 0) {
		d->by_kernel = calloc((size_t)d->n + 1, sizeof(struct operator*));
		r = d->by_kernel != NULL ? 0 : err_set(e, -ENOMEM, "out of memory");
	}
	if (r < 0) {
		xla_dump_free(d);
		return r;
	}
	if (d->n > 0)
		qsort(d->op, d->n, sizeof(*d->op), by_name);
	for (uint32_t i = 0; i < d->n; i++)
		d->by_kernel[i] = &d->op[i];
	if (d->n > 0)
		qsort(d->by_kernel, d->n, sizeof(struct operator*), by_kernel);
	*ret = d;
	return 0;
}

void xla_dump_free(struct xla_dump *d)
{
	if (d == NULL)
		return;
	free(d->by_kernel);
	free(d->op);
	free(d->modules);
	if (d->arena != NULL)
		arena_free(d->arena);
	free(d);
}
