/* SPDX-License-Identifier: MIT. protonview_export.c: the verb export: a source as a file of a
 * foreign format. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export_format.h"
#include "output.h"
#include "protonview_verb.h"

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
		r = run_show_names(run, s.p);
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

struct timeline_to {
	export_timeline_fn *write;
	FILE *file;
};

static int write_timeline(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	uint64_t *ret_gone, struct err *e)
{
	const struct timeline_to *to = arg;

	return to->write(db, id, s, to->file, ret_gone, e);
}

static int export_timeline(struct run *run, const struct export_format *f, FILE *file)
{
	struct timeline_to to = {f->timeline, file};
	struct source_options o = {
		.timeline = write_timeline, .arg = &to, .select.file = f->protons};
	struct source s;

	return f->protons ? run_source_by(run, run->o.args[0], &o, &s) : run_timeline(run, &o, &s);
}

/* By -f, else by what FILE's name ends in. */
static int find_format(struct run *run, const char *path, enum format *ret)
{
	const char *asked = run->o.value[OPT_FORMAT], *flavour = run->o.value[OPT_FLAVOUR];

	*ret = asked != NULL            ? format_of(asked)
	       : strcmp(path, "-") != 0 ? format_of_file(path)
	       : flavour != NULL        ? FORMAT_chrome_trace
					: FORMAT_hatchet;
	if (*ret == FORMAT_COUNT)
		return err_set(&run->e, -EINVAL,
			"%s: unknown format; the name must end in " FORMAT_FILES
			"; or say it with -f",
			path);
	if (flavour == NULL)
		return 0;
	if (strcmp(flavour, "kineto") != 0 ||
		(*ret != FORMAT_chrome_trace && *ret != FORMAT_kineto))
		return err_set(&run->e, -EINVAL,
			"--flavour %s: the one there is is kineto, of chrome_trace (.json)",
			flavour);
	*ret = FORMAT_kineto;
	return 0;
}

int view_export(struct run *run)
{
	const char *path = run->o.value[OPT_OUTPUT];
	const struct export_format *f;
	enum format format;
	struct output o;
	int r;

	if (path == NULL || *path == '\0')
		return err_set(&run->e, -EINVAL, "export needs -o FILE (- is standard output)");
	if (strcmp(path, "-") == 0 && run_given(run, OPT_JSON))
		return err_set(&run->e, -EINVAL,
			"standard output cannot take both: give --json a FILE, or leave it out");
	r = find_format(run, path, &format);
	if (r < 0)
		return r;
	/* A tree adds up what a timeline has in single events: it has no windows. */
	if (export_formats[format].timeline == NULL &&
		(run_given(run, OPT_WINDOW) || run_given(run, OPT_STEP)))
		return err_set(&run->e, -EINVAL,
			"--window and --step go with formats of timelines (chrome_trace, pftrace, "
			"sqlite), and with `protonview sql`");
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
