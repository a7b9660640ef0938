/* SPDX-License-Identifier: MIT. web_export.c: a session as a file, in any of the formats that `export`
 * has. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "export_format.h"
#include "web_ask.h"

/* What every file system takes. */
static void name_file(struct web_ask *a, const char *ending)
{
	char *to = a->to->file, *end = to + sizeof(a->to->file) - 24;
	char title[100];

	web_title(a->w, a->id, title, sizeof(title));
	for (const char *s = title; *s != '\0' && to < end; s++)
		*to++ = (char)(isalnum((unsigned char)*s) || strchr("-_", *s) != NULL ? *s : '_');
	snprintf(to, 24, ".%s", ending);
}

static int keep(struct web_ask *a, FILE *file)
{
	const long bytes = fflush(file) == 0 ? ftell(file) : -1;

	a->to->fd = bytes < 0 ? -1 : dup(fileno(file));
	if (a->to->fd < 0)
		return err_set(&a->run->e, neg_errno(), "a file for it: %s", strerror(errno));
	a->to->fd_bytes = (uint64_t)bytes;
	a->to->type = "application/octet-stream";
	return 0;
}

int web_export(struct web_ask *a)
{
	char file[64], *args[1] = {NULL};
	const char *ref;
	enum format format;
	FILE *to;
	int r = web_ref(a, &ref);

	if (r < 0)
		return r;
	snprintf(file, sizeof(file), "x.%s", a->rest != NULL ? a->rest : "");
	format = strchr(file, '/') == NULL ? format_of_file(file) : FORMAT_COUNT;
	if (format == FORMAT_COUNT)
		return err_set(&a->run->e, -ENOENT, "the address must end in " FORMAT_FILES);
	to = tmpfile();
	if (to == NULL)
		return err_set(&a->run->e, neg_errno(), "a file for it: %s", strerror(errno));
	memcpy(args, &ref, sizeof(ref)); /* read only, as argv is */
	a->run->o.verb = VERB_export;
	a->run->o.args = args;
	a->run->o.n_args = 1;
	r = run_export(a->run, &export_formats[format], to);
	if (r == 0)
		r = keep(a, to);
	if (r == 0)
		name_file(a, export_formats[format].ending);
	(void)fclose(to);
	return r;
}
