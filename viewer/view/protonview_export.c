/* SPDX-License-Identifier: MIT. protonview_export.c: the verb export: a source as a file of a
 * foreign format. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export_format.h"
#include "output.h"
#include "protonview_verb.h"
#include "text.h"

/* One that could not be demangled says so: speedscope tries again, and its page runs out of memory
 * over a name that grows without end. */
static const char *name_for_people(struct run *run, struct profile *p, const char *name)
{
	const char *shown = names_show(run->names, name);
	struct text t = {0};
	const char *ret;

	if (strncmp(shown, "_Z", 2) == 0)
		text_str(&t, "[mangled] ");
	else if (strcmp(shown, name) == 0)
		return name;
	text_str(&t, shown);
	ret = t.failed ? NULL : profile_text(p, t.s, t.n);
	text_fini(&t);
	return ret;
}

/* What people read has the names that people read; what is read back has those that were recorded.
 */
static int show_names(struct run *run, struct profile *p)
{
	uint32_t i;

	if (names_read(run->names, p) < 0)
		return -ENOMEM;
	for (i = 0; i < p->n_nodes; i++) {
		p->node[i].name = name_for_people(run, p, p->node[i].name);
		if (p->node[i].name == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int export_tree(struct run *run, const struct export_format *f, FILE *to)
{
	struct source_options o = {.select = {.lean = true, .file = f->protons}};
	struct source s;
	char *text;
	size_t n;
	int r = run_source_by(run, run->o.args[0], &o, &s);

	if (r < 0)
		return r;
	if (f->read == NULL)
		r = show_names(run, s.p);
	if (r == 0)
		r = f->tree(s.p, &text, &n);
	profile_free(s.p);
	if (r == -EFBIG)
		return err_set(&run->e, r,
			"as %s, which writes each path out, it would be over %zu MiB: export a "
			"part of it (--process, --phase)",
			f->name, EXPORT_TEXT_MAX >> 20);
	if (r < 0)
		return err_set(&run->e, r, "out of memory");
	r = fwrite(text, 1, n, to) == n ? 0 : -errno;
	free(text);
	return r;
}

static const char *show_name(void *names, const char *name)
{
	return names_show(names, name);
}

/* Names are demangled all at once, those of the tree: it has every node that the timeline has. */
static int export_timeline(struct run *run, const struct export_format *f, FILE *to)
{
	struct source_options o = {.timeline = f->timeline, .to = to, .select.file = f->protons};
	struct profile *p = NULL;
	struct source s;
	int r = 0;

	if (!f->protons) {
		o.select.show = show_name;
		o.select.show_arg = run->names;
		r = run_source(run, run->o.args[0], true, &p);
	}
	if (r == 0 && p != NULL)
		r = run_names(run, p);
	if (r == 0)
		r = run_source_by(run, run->o.args[0], &o, &s);
	profile_free(p);
	return r;
}

int view_export(struct run *run)
{
	const char *path = run->o.value[OPT_OUTPUT], *asked = run->o.value[OPT_FORMAT];
	const struct export_format *f;
	enum format format;
	struct output o;
	int r;

	if (path == NULL || *path == '\0')
		return err_set(&run->e, -EINVAL, "export needs -o FILE (- is standard output)");
	format = asked != NULL            ? format_of(asked)
		 : strcmp(path, "-") == 0 ? FORMAT_hatchet
					  : format_of_file(path);
	if (format == FORMAT_COUNT)
		return err_set(&run->e, -EINVAL,
			"%s: unknown format; the name must end in " FORMAT_FILES
			"; or say it with -f",
			path);
	if (strcmp(path, "-") != 0 && !run_given(run, OPT_FORCE) && access(path, F_OK) == 0 &&
		!output_is_special(path))
		return err_set(&run->e, -EEXIST, "%s exists; --force overwrites it", path);
	r = output_open(path, &o, &run->e);
	if (r < 0)
		return r;
	f = &export_formats[format];
	r = f->timeline != NULL ? export_timeline(run, f, o.file) : export_tree(run, f, o.file);
	r = output_close(path, &o, run_given(run, OPT_FORCE), r, &run->e);
	if (strcmp(path, "-") == 0 && ferror(stdout))
		run->write_error = r;
	return r;
}
