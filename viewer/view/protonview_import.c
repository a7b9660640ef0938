/* SPDX-License-Identifier: MIT. protonview_import.c: the verb import: another profiler's file as a
 * portable session. */
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "human.h"
#include "import.h"
#include "input.h"
#include "output.h"
#include "progress.h"
#include "protonview_verb.h"

static void line(struct run *run, uint64_t n, const char *words)
{
	const size_t from = run->out.n;

	text_fmt(&run->out, "%12llu  %s\n", (unsigned long long)n, words);
	term_wrap(&run->term, &run->out, from, 14);
}

/* What there is of events; a tree has none. */
static void report_events(struct run *run, const struct import_taken *t)
{
	line(run, t->events, "events read");
	line(run, t->scopes, "scopes");
	line(run, t->calls, "of them calls that wait for the GPU, or may");
	line(run, t->values, "values that were set in scopes");
	line(run, t->blocks, "times that torch's allocator gave memory, or got it back");
	line(run, t->kernels, "kernels");
	line(run, t->copies, "copies and memsets");
	line(run, t->matched, "launches with their GPU work");
	line(run, t->unmatched, "launches without");
}

static void report(struct run *run, const struct import_taken *t)
{
	uint32_t i;

	text_fmt(&run->out, "source=%s\n", t->source);
	if (strcmp(t->source, "hatchet") == 0)
		line(run, t->events, "nodes read");
	else
		report_events(run, t);
	for (i = 0; i < LEFT_MAX; i++)
		if (t->left[i] > 0)
			line(run, t->left[i], import_left_words[i]);
}

static void step(void *progress, double part)
{
	progress_step(progress, part, 1, 0);
}

static int import_to(
	struct run *run, const struct import_input *in, const char *path, const char *name)
{
	struct progress progress;
	const struct import_options o = {.name = name,
		.in = in,
		.n_files = (uint32_t)run->o.n_args,
		.progress = step,
		.progress_arg = &progress};
	struct import_taken taken = {0};
	sqlite3 *to = NULL;
	int r;

	progress_begin(&progress, "importing");
	if (sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
		SQLITE_OK)
		r = err_set(&run->e, -EIO, "%s: %s", path, sqlite3_errmsg(to));
	else
		r = import_files(&o, to, &taken, &run->e);
	progress_end(&progress);
	if (sqlite3_close(to) != SQLITE_OK && r == 0)
		r = err_set(&run->e, -EIO, "%s cannot be written", path);
	if (r == 0)
		report(run, &taken);
	return r;
}

/* FILE's name without folder and .gz, .json and the like. */
static void base_of(const char *file, char ret[NAME_MAX + 1])
{
	static const char *const endings[] = {".gz", ".json", ".pt.trace", ".sqlite", ".hatchet",
		".hatchet_msgpack", ".chrome_trace"};
	const char *slash = strrchr(file, '/');
	size_t i, n, end;

	(void)snprintf(ret, NAME_MAX + 1, "%s", slash != NULL ? slash + 1 : file);
	n = strlen(ret);
	for (i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		end = strlen(endings[i]);
		if (n > end && strcmp(ret + n - end, endings[i]) == 0)
			ret[n -= end] = '\0';
	}
}

static int open_all(struct run *run, struct import_input *ret)
{
	int i;

	for (i = 0; i < run->o.n_args; i++) {
		ret[i] = (struct import_input){
			.fd = input_open(run->o.args[i],
				"import reads a file that another profiler wrote", &run->e),
			.file = run->o.args[i]};
		if (ret[i].fd < 0)
			return ret[i].fd;
	}
	return 0;
}

static int import_all(struct run *run, const struct import_input *in, const char *base)
{
	const char *to = run->o.value[OPT_OUTPUT];
	const bool force = run_given(run, OPT_FORCE);
	char usual[NAME_MAX + 16], word[PATH_MAX];
	struct output o;
	int r;

	(void)snprintf(usual, sizeof(usual), "%s.protond", base);
	to = to == NULL ? usual : to;
	if (strcmp(to, "-") == 0 || output_is_special(to))
		return err_set(&run->e, -EINVAL, "import writes a database, which must be a file");
	if (!force && access(to, F_OK) == 0)
		return err_set(&run->e, -EEXIST, "%s exists; --force overwrites it", to);
	r = output_open(to, &o, &run->e);
	if (r == 0) {
		r = import_to(
			run, in, o.temporary, run_given(run, OPT_AS) ? run->o.value[OPT_AS] : base);
		r = output_close(to, &o, force, r, &run->e);
	}
	if (r == 0)
		text_fmt(&run->out, "written to %s: `protonview tree %s` shows it\n", to,
			word_quoted(word, sizeof(word), to));
	return r;
}

int view_import(struct run *run)
{
	struct import_input *in = calloc((size_t)run->o.n_args, sizeof(*in));
	char base[NAME_MAX + 1];
	int i, r = in == NULL ? err_set(&run->e, -ENOMEM, "out of memory") : open_all(run, in);

	base_of(run->o.args[0], base);
	if (r == 0)
		r = import_all(run, in, base);
	for (i = 0; in != NULL && i < run->o.n_args && in[i].file != NULL; i++)
		if (in[i].fd >= 0)
			(void)close(in[i].fd);
	free(in);
	return r;
}
