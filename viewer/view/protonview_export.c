/* SPDX-License-Identifier: MIT. protonview_export.c: the verb export: a source as a file of a
 * foreign format. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export_format.h"
#include "output.h"
#include "protonview_verb.h"

static int export_tree(struct run *run, export_tree_fn *write, FILE *to)
{
	struct profile *p = NULL;
	char *text;
	size_t n;
	int r = run_source(run, run->o.args[0], true, &p);

	if (r < 0)
		return r;
	r = write(p, &text, &n);
	profile_free(p);
	if (r < 0)
		return err_set(&run->e, r, "out of memory");
	r = fwrite(text, 1, n, to) == n ? 0 : -errno;
	free(text);
	return r;
}

static int export_timeline(struct run *run, export_timeline_fn *write, FILE *to)
{
	struct source_options o = {.timeline = write, .to = to};
	struct source s;

	return run_source_by(run, run->o.args[0], &o, &s);
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
	r = f->timeline != NULL ? export_timeline(run, f->timeline, o.file)
				: export_tree(run, f->tree, o.file);
	r = output_close(path, &o, run_given(run, OPT_FORCE), r, &run->e);
	if (strcmp(path, "-") == 0 && ferror(stdout))
		run->write_error = r;
	return r;
}
