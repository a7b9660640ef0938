/* SPDX-License-Identifier: MIT. protonctl_options.c: what can be set for a job, as people read it,
 * from the table in options.h. */
#include "protonctl_options.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "options.h"
#include "term.h"

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
	char name[64], left[72], words[512];
	struct text t = {0};

	variable(o->name, name);
	snprintf(left, sizeof(left), "  %s", name);
	snprintf(words, sizeof(words), "%s%s%s%s%s", o->help, *o->words != '\0' ? "; " : "",
		o->words, *o->def != '\0' ? "; default " : "", o->def);
	term_help(&t, left, 27, words);
	fwrite(t.s, 1, t.n, f);
	text_fini(&t);
}

void job_options_help(FILE *f)
{
	size_t i;

	fputs("What can be set for a job.\n\nThe library's, variables:\n\n", f);
	for (i = 0; i < N; i++)
		if (strcmp(job_options[i].who, "lib") == 0)
			put(f, &job_options[i]);
	fputs("\nThe Python package's: variables; `job.name = value` lines in\n"
	      "/etc/protond.conf or ~/.config/protond.conf; protond.configure(name=value);\n"
	      "--protond-name VALUE where a program calls protond.add_arguments():\n\n",
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
		printf(".TP\n.B %s\n", name);
		text(job_options[i].help);
		if (*job_options[i].words != '\0')
			printf("; %s", job_options[i].words);
		printf("%s%s\n", *job_options[i].def != '\0' ? "; default " : "",
			job_options[i].def);
	}
}

/* --- values */

typedef int compare_fn(const char *, const char *, size_t);

/* Whether `word`, so many bytes, is one of space-separated words. */
static bool is_one_of(const char *word, size_t n, const char *words, compare_fn *compare)
{
	size_t k;

	for (; *words != '\0'; words += k + (words[k] == ' ')) {
		k = strcspn(words, " ");
		if (k == n && compare(words, word, n) == 0)
			return true;
	}
	return false;
}

/* As libprotond and Python read it. */
static bool is_permitted(const struct job_option *o, const char *value)
{
	const char *flags = strcmp(o->who, "lib") == 0 ? "0 1" : "0 1 no yes off on false true";
	char *end = NULL;
	size_t n;

	if (strcmp(o->type, "flag") == 0)
		return is_one_of(value, strlen(value), flags, strncasecmp);
	if (strcmp(o->type, "int") == 0)
		return value[strspn(value, "0123456789")] == '\0';
	if (strcmp(o->type, "share") == 0) {
		const double share = strtod(value, &end);

		return share >= 0 && share <= 1 && *end == '\0';
	}
	if (strcmp(o->type, "word") == 0)
		return is_one_of(value, strlen(value), o->words, strncmp);
	if (strcmp(o->type, "dir") == 0)
		return value[0] == '/';
	for (; strcmp(o->type, "words") == 0 && *value != '\0'; value += n + (value[n] == ',')) {
		n = strcspn(value, ",");
		if (n > 0 && !is_one_of(value, n, o->words, strncmp))
			return false;
	}
	return true;
}

void job_options_check(job_option_wrong_fn *fn, void *arg)
{
	char name[64], words[320];
	const char *value;
	size_t i;

	for (i = 0; i < N; i++) {
		const struct job_option *o = &job_options[i];

		variable(o->name, name);
		value = getenv(name);
		if (value == NULL || *value == '\0' || is_permitted(o, value))
			continue;
		snprintf(words, sizeof(words), "%s is '%.64s'; it must be %s%s", name, value,
			strcmp(o->type, "flag") == 0    ? "0 or 1"
			: strcmp(o->type, "int") == 0   ? "a whole number"
			: strcmp(o->type, "share") == 0 ? "0 to 1"
			: strcmp(o->type, "dir") == 0   ? "an absolute path"
			: strcmp(o->type, "words") == 0 ? "some of, with commas: "
							: "one of: ",
			o->words);
		fn(arg, words);
	}
}
