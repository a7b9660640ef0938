/* SPDX-License-Identifier: MIT. protonview_export.c: the verb export: a source as a file of a
 * foreign format. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export_format.h"
#include "output.h"
#include "output_folder.h"
#include "progress.h"
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
	const struct export_format *format;
	FILE *file;
	const char *folder;
	struct progress progress;
};

static bool step(void *arg, uint64_t done, uint64_t all)
{
	struct timeline_to *to = arg;

	progress_step(&to->progress, (double)done, (double)all,
		to->file != NULL ? (uint64_t)ftello(to->file) : 0);
	return to->folder == NULL || !output_folder_ended();
}

static int write_timeline(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	const struct timeline_to *to = arg;

	if (to->folder != NULL)
		return to->format->folder(db, id, s, to->folder, ret_left, e);
	return to->format->timeline(db, id, s, to->file, ret_left, e);
}

static int export_timeline(
	struct run *run, const struct export_format *f, FILE *file, const char *folder)
{
	struct timeline_to to = {.format = f, .file = file, .folder = folder};
	struct source_options o = {.timeline = write_timeline,
		.arg = &to,
		.select = {.file = f->protons, .progress = step, .progress_arg = &to}};
	struct source s;
	int r;

	progress_begin(&to.progress, "exporting");
	r = f->protons ? run_source_by(run, run->o.args[0], &o, &s) : run_timeline(run, &o, &s);
	progress_end(&to.progress);
	return r;
}

static int export_folder(struct run *run, const struct export_format *f, const char *path)
{
	const bool force = run_given(run, OPT_FORCE);
	struct output_folder o;
	int r = output_folder_open(path, EXPORT_FOLDER_MARK, force, &o, &run->e);

	if (r < 0)
		return r;
	r = export_timeline(run, f, NULL, o.temporary);
	return output_folder_close(path, &o, force, r, &run->e);
}

/* By -f, else by what FILE's name ends in. */
static int find_format(struct run *run, const char *path, enum format *ret)
{
	const char *asked = run->o.value[OPT_FORMAT], *flavour = run->o.value[OPT_FLAVOUR];
	char name[PATH_MAX];
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/') /* as a shell completes a folder */
		n--;
	snprintf(name, sizeof(name), "%.*s", (int)(n < PATH_MAX ? n : PATH_MAX - 1), path);
	*ret = asked != NULL            ? format_of(asked)
	       : strcmp(path, "-") != 0 ? format_of_file(name)
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

int run_export(struct run *run, const struct export_format *f, FILE *to)
{
	return f->timeline != NULL ? export_timeline(run, f, to, NULL) : export_tree(run, f, to);
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
	f = &export_formats[format];
	if (format == FORMAT_protond && run_given(run, OPT_XLA_DUMP))
		return err_set(&run->e, -EINVAL,
			"a portable file has what was recorded: give --xla-dump to the verb that "
			"shows it");
	if (f->tree != NULL && (run_given(run, OPT_WINDOW) || run_given(run, OPT_STEP) ||
				       run_given(run, OPT_EVERY)))
		return err_set(&run->e, -EINVAL,
			"--window, --step and --every go with formats of timelines (chrome_trace, "
			"pftrace, "
			"otf2, sqlite), and with `protonview sql`");
	if (f->folder != NULL && strcmp(path, "-") == 0)
		return err_set(&run->e, -EINVAL, FORMAT_IS_FOLDER);
	if (f->folder != NULL)
		return export_folder(run, f, path);
	if (strcmp(path, "-") != 0 && !run_given(run, OPT_FORCE) && access(path, F_OK) == 0 &&
		!output_is_special(path))
		return err_set(&run->e, -EEXIST, "%s exists; --force overwrites it", path);
	r = output_open(path, &o, &run->e);
	if (r < 0)
		return r;
	r = run_export(run, f, o.file);
	r = output_close(path, &o, run_given(run, OPT_FORCE), r, &run->e);
	if (strcmp(path, "-") == 0 && ferror(stdout))
		run->write_error = r;
	return r;
}
