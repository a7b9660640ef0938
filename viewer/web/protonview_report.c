/* SPDX-License-Identifier: MIT. protonview_report.c: the verb report: the page of a session as one
 * file. */
#include <string.h>
#include <unistd.h>

#include "output.h"
#include "report_text.h"
#include "web_report.h"

enum report_format { REPORT_HTML, REPORT_TXT, REPORT_JSON };

/* -1: no such format. By the file's name where none is given. */
static int format_of_report(const struct run *run)
{
	static const char *const words[] = {
		[REPORT_HTML] = "html", [REPORT_TXT] = "txt", [REPORT_JSON] = "json"};
	const char *word = run->o.value[OPT_FORMAT], *path = run->o.value[OPT_OUTPUT];
	const char *end = path != NULL ? strrchr(path, '.') : NULL;
	int i;

	for (i = 0; word == NULL && i < 3; i++)
		if (end != NULL && strcmp(end + 1, words[i]) == 0)
			return i;
	for (i = 0; word != NULL && i < 3; i++)
		if (strcmp(word, words[i]) == 0)
			return i;
	return word == NULL ? REPORT_HTML : -1;
}

static int write_text(struct run *run, const char *path, const struct text *page)
{
	struct output o;
	int r = output_open(path, &o, &run->e);

	if (r < 0)
		return r;
	if (fwrite(page->s, 1, page->n, o.file) != page->n)
		r = -errno;
	r = output_close(path, &o, run_given(run, OPT_FORCE), r, &run->e);
	if (strcmp(path, "-") == 0 && ferror(stdout))
		run->write_error = r;
	return r;
}

/* What there is to say is known before the file is made. */
static int write_page(struct run *run, const char *path)
{
	struct text page = {0};
	struct web *w = NULL;
	int r = run_xla(run);

	if (r == 0)
		r = web_new(run->o.value[OPT_DB], run->xla, run->o.args, 1, &w, &run->e);
	if (r == 0)
		r = web_report(w, &page, &run->e);
	if (r == 0)
		r = write_text(run, path, &page);
	text_fini(&page);
	web_free(w);
	return r;
}

/* Without a file it stays in run->out. */
static int write_words(struct run *run, const char *path, bool json)
{
	struct text page;
	int r;

	if (path != NULL) {
		run->term.width = 0; /* a file is as wide as its lines */
		run->term.color = false;
	}
	r = report_text(run, json);
	if (r < 0 || path == NULL)
		return r;
	page = run->out;
	run->out = (struct text){0};
	r = page.failed ? err_set(&run->e, -ENOMEM, "out of memory") : write_text(run, path, &page);
	text_fini(&page);
	return r;
}

int view_report(struct run *run)
{
	const char *path = run->o.value[OPT_OUTPUT];
	const int format = format_of_report(run);

	if (format < 0)
		return err_set(&run->e, -EINVAL,
			"report: unknown format '%s'; use html, txt or json",
			run->o.value[OPT_FORMAT]);
	if (format == REPORT_HTML && (path == NULL || *path == '\0'))
		return err_set(&run->e, -EINVAL,
			"report needs -o FILE (- is standard output); -f txt and -f json do "
			"without");
	if (path != NULL && *path == '\0')
		return err_set(&run->e, -EINVAL, "-o needs the name of a file");
	if (run_given(run, OPT_JSON) && (path == NULL || strcmp(path, "-") == 0))
		return err_set(&run->e, -EINVAL,
			"standard output cannot take both: give --json a FILE, or leave it out");
	if (path != NULL && strcmp(path, "-") != 0 && !run_given(run, OPT_FORCE) &&
		access(path, F_OK) == 0 && !output_is_special(path))
		return err_set(&run->e, -EEXIST, "%s exists; --force overwrites it", path);
	return format == REPORT_HTML ? write_page(run, path)
				     : write_words(run, path, format == REPORT_JSON);
}
