/* SPDX-License-Identifier: MIT. protonctl_options.c: what can be set for a job, as people read it,
 * from the table in options.h. */
#include "protonctl.h"

#include <string.h>

#include "options.h"

static const struct job_option {
	const char *name, *who, *type, *def, *words, *help;
} job_options[] = {
#define X(name, who, type, def, words, help) {#name, #who, #type, def, words, help},
	JOB_OPTIONS(X)
#undef X
};
#define N (sizeof(job_options) / sizeof(job_options[0]))

static void variable(const char *name, char ret[64])
{
	size_t n = (size_t)snprintf(ret, 64, "PROTOND_");

	for (; *name != '\0' && n + 1 < 64; name++)
		ret[n++] = (char)(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);
	ret[n] = '\0';
}

static void put(FILE *f, const struct job_option *o)
{
	char name[64];

	variable(o->name, name);
	(void)fprintf(f, "  %-24s %s%s%s%s%s\n", name, o->help, *o->words != '\0' ? "; " : "",
		o->words, *o->def != '\0' ? "; default " : "", o->def);
}

void job_options_help(FILE *f)
{
	size_t i;

	(void)fputs("What can be set for a job.\n\nThe library's, variables:\n\n", f);
	for (i = 0; i < N; i++)
		if (strcmp(job_options[i].who, "lib") == 0)
			put(f, &job_options[i]);
	(void)fputs("\nThe Python package's: variables; `job.name = value` lines in "
		    "/etc/protond.conf or "
		    "~/.config/protond.conf;\nprotond.configure(name=value); --protond-name VALUE "
		    "where a "
		    "program calls protond.add_arguments():\n\n",
		f);
	for (i = 0; i < N; i++)
		if (strcmp(job_options[i].who, "lib") != 0)
			put(f, &job_options[i]);
}

void job_options_man(void (*text)(const char *))
{
	char name[64];
	size_t i;

	for (i = 0; i < N; i++) {
		variable(job_options[i].name, name);
		(void)printf(".TP\n.B %s\n", name);
		text(job_options[i].help);
		if (*job_options[i].words != '\0')
			(void)printf("; %s", job_options[i].words);
		(void)printf("%s%s\n", *job_options[i].def != '\0' ? "; default " : "",
			job_options[i].def);
	}
}
