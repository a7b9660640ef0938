/* SPDX-License-Identifier: MIT. protonview_report.c: the verb report: the page of a session as one
 * file. */
#include <string.h>
#include <unistd.h>

#include "output.h"
#include "web_report.h"

static int write_report(struct run *run, const char *path, struct web *w)
{
	struct text page = {0};
	struct output o;
	int r = output_open(path, &o, &run->e);

	if (r < 0)
		return r;
	r = web_report(w, &page, &run->e);
	if (r == 0 && fwrite(page.s, 1, page.n, o.file) != page.n)
		r = -errno;
	text_fini(&page);
	r = output_close(path, &o, run_given(run, OPT_FORCE), r, &run->e);
	if (strcmp(path, "-") == 0 && ferror(stdout))
		run->write_error = r;
	return r;
}

int view_report(struct run *run)
{
	const char *path = run->o.value[OPT_OUTPUT];
	struct web *w = NULL;
	int r;

	if (path == NULL || *path == '\0')
		return err_set(&run->e, -EINVAL, "report needs -o FILE (- is standard output)");
	if (strcmp(path, "-") == 0 && run_given(run, OPT_JSON))
		return err_set(&run->e, -EINVAL,
			"standard output cannot take both: give --json a FILE, or leave it out");
	if (strcmp(path, "-") != 0 && !run_given(run, OPT_FORCE) && access(path, F_OK) == 0 &&
		!output_is_special(path))
		return err_set(&run->e, -EEXIST, "%s exists; --force overwrites it", path);
	r = web_new(run->o.value[OPT_DB], run->o.args, 1, &w, &run->e);
	if (r == 0)
		r = write_report(run, path, w);
	web_free(w);
	return r;
}
