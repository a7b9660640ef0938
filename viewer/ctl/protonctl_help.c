/* SPDX-License-Identifier: MIT. protonctl_help.c: help and the man page, from the table. */
#include "protonctl_help.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "human.h"
#include "json.h"
#include "protonctl_call.h"
#include "protonctl_options.h"
#include "tool_verbs.h"

#define EXAMPLES                                                                \
	"  protonctl run -- python train.py     record a run, print its tree\n" \
	"  protonctl jobs                       what protond sees\n"            \
	"  protonview tree @last                open the last session again\n"

static bool is_listed(const struct command *cmd)
{
	return cmd->help != NULL;
}

/* Words in lines of HELP_COLUMNS, behind what stands at their left. */
static void put_words(FILE *f, const char *left, uint32_t indent, const char *words)
{
	struct text t = {0};

	term_help(&t, left, indent, words);
	fwrite(t.s, 1, t.n, f);
	text_fini(&t);
}

static void put_options(FILE *f, const struct option_def *o)
{
	char left[64];

	for (; o->name != NULL; o++) {
		snprintf(left, sizeof(left), "  %c%c%s--%s%s%s", o->key != 0 ? '-' : ' ',
			o->key != 0 ? o->key : ' ', o->key != 0 ? ", " : "  ", o->name,
			o->arg != NULL ? " " : "", o->arg != NULL ? o->arg : "");
		put_words(f, left, 29, o->help);
	}
}

/* A paragraph of the source, whose lines end where the source's do. */
static void put_paragraph(FILE *f, const char *lines)
{
	char words[4096];
	size_t i;

	snprintf(words, sizeof(words), "%s", lines);
	for (i = 0; words[i] != '\0'; i++)
		if (words[i] == '\n')
			words[i] = words[i + 1] == '\0' ? '\0' : ' ';
	put_words(f, "", 0, words);
}

void help_all(FILE *f, const struct command *const *table)
{
	char left[32];

	fputs("protonctl: record what programs do, and look at it while they run.\n\n" EXAMPLES
	      "\nCommands:\n",
		f);
	for (; *table != NULL; table++) {
		snprintf(left, sizeof(left), "  %s", (*table)->name);
		if (is_listed(*table))
			put_words(f, left, 14, (*table)->help);
	}
	putc('\n', f);
	put_paragraph(f, "A SESSION is named by its name, its id, the beginning of its uuid, @last "
			 "(@-1: the one before), @auto (the newest automatic one), @job:PID or "
			 "@tag:TAG. `protonctl help COMMAND` says more. Exit codes: 0 ok, 1 not "
			 "found, 2 usage, 3 daemon unreachable, 4 partial data.");
}

void help_command(FILE *f, const struct command *cmd)
{
	const char *line = cmd->examples, *end;
	char words[256];

	snprintf(words, sizeof(words), "protonctl %s: %s.", cmd->name,
		cmd->help != NULL ? cmd->help : "");
	put_words(f, "", 0, words);
	fputs("\nExamples:\n", f);
	for (; *line != '\0'; line = end + 1) {
		end = strchr(line, '\n');
		fprintf(f, "  %.*s\n", (int)(end - line), line);
	}
	snprintf(words, sizeof(words), "protonctl %s [options]%s%s", cmd->name,
		*cmd->args != '\0' ? " " : "", cmd->args);
	putc('\n', f);
	put_words(f, "Usage: ", 7, words);
	if (cmd->alias != NULL)
		fprintf(f, "       (also: protonctl %s)\n", cmd->alias);
	if (cmd->more != NULL) {
		putc('\n', f);
		put_paragraph(f, cmd->more);
	}
	fputs("\nOptions:\n", f);
	put_options(f, cmd->options);
	put_options(f, common_options);
}

void help_unknown(FILE *f, int argc, char *const *argv)
{
	const struct verbs_question q =
		verbs_question(argv[1], verbs_of_ctl, "protonview", verbs_of_view);
	char line[512];

	if (verbs_have(verbs_of_view, argv[1])) {
		verbs_line("protonview", argc, argv, line, sizeof(line));
		fputs("that is protonview's: `", f);
		text_put(f, line, 0);
		fputs("`", f);
		return;
	}
	fputs("there is no command '", f);
	text_put(f, argv[1], 0);
	fprintf(f, "'%s `protonctl help` lists the commands.", *q.text != '\0' ? q.text : ".");
}

int help_refuse(bool json, int argc, char *const *argv)
{
	char words[1024] = "";
	FILE *f = fmemopen(words, sizeof(words), "w");

	if (f != NULL) {
		help_unknown(f, argc, argv);
		(void)fclose(f);
	}
	if (json)
		json_error(stdout, argv[1], -EINVAL, words);
	else
		fprintf(stderr, "protonctl: %s\n", words);
	return CTL_USAGE;
}

static int help_text(struct ctl *c, const struct command *cmd)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (f != NULL && cmd != NULL)
		help_command(f, cmd);
	else if (f != NULL && c->argc > 0)
		job_options_help(f);
	else if (f != NULL)
		help_all(f, c->table);
	if (f == NULL || fclose(f) != 0) {
		free(text);
		err_set(&c->err, -ENOMEM, "out of memory");
		return ctl_fail(c);
	}
	ctl_text(c, text);
	free(text);
	return CTL_OK;
}

static int cmd_help(struct ctl *c)
{
	const bool options = c->argc > 0 && strcmp(c->argv[0], "options") == 0;
	const struct command *cmd =
		c->argc > 0 && !options ? command_find(c->table, c->argv[0]) : NULL;

	if (c->argc > 0 && !options && cmd == NULL)
		return help_refuse(c->json, 2, (char *[]){NULL, c->argv[0]});
	return help_text(c, cmd);
}

const struct command command_help = {.name = "help",
	.run = cmd_help,
	.max = 1,
	.args = "[COMMAND|options]",
	.help = "this list, one command's help, or what can be set for jobs (`help options`)",
	.examples = "protonctl help run\n",
	.options = no_options,
	.completes = 'h'};

/* --- the man page */

/* troff reads '-' as a hyphen, '\' as its own, and a dot or quote at the beginning as a request. */
static void man_text(const char *text)
{
	bool begins = true;

	for (; *text != '\0'; text++) {
		if (begins && (*text == '.' || *text == '\''))
			fputs("\\&", stdout);
		if (*text == '-' || *text == '\\')
			fputs(*text == '-' ? "\\-" : "\\e", stdout);
		else
			putchar(*text);
		begins = *text == '\n';
	}
}

static void man_options(const struct option_def *o)
{
	for (; o->name != NULL; o++) {
		fputs(".TP\n.B ", stdout);
		if (o->key != 0)
			printf("\\-%c, ", o->key);
		fputs("\\-\\-", stdout);
		man_text(o->name);
		if (o->arg != NULL)
			printf(" \\fI%s\\fR", o->arg);
		putchar('\n');
		man_text(o->help);
		putchar('\n');
	}
}

static int cmd_man(struct ctl *c)
{
	const struct command *const *at;

	fputs(".TH PROTONCTL 1 \"\" \"protond " PROTOND_BUILD_VERSION "\"\n.SH NAME\n"
	      "protonctl \\- record what programs do, and look at it while they run\n.SH "
	      "SYNOPSIS\n"
	      ".B protonctl\n.I command\n[options]\n.SH COMMANDS\n",
		stdout);
	for (at = c->table; *at != NULL; at++) {
		if (!is_listed(*at))
			continue;
		printf(".SS %s %s\n", (*at)->name, (*at)->args);
		man_text((*at)->help);
		fputs(".\n", stdout);
		if ((*at)->alias != NULL)
			printf("Also: %s.\n", (*at)->alias);
		if ((*at)->more != NULL)
			man_text((*at)->more);
		man_options((*at)->options);
		fputs(".PP\n.nf\n", stdout);
		man_text((*at)->examples);
		fputs(".fi\n", stdout);
	}
	fputs(".SH EXAMPLES\nThose of each command stand with it.\n.nf\n", stdout);
	man_text(EXAMPLES);
	fputs(".fi\n.SH COMMON OPTIONS\n", stdout);
	man_options(common_options);
	fputs(".SH EXIT STATUS\n0 ok, 1 not found, 2 usage, 3 daemon unreachable, 4 partial "
	      "data; run has its\n"
	      "program's own.\n.SH ENVIRONMENT\nFor jobs; the daemon's are in protond(8).\n",
		stdout);
	job_options_man(man_text);
	fputs(".SH SEE ALSO\nprotonview(1), protond(8)\n", stdout);
	return CTL_OK;
}

const struct command command_man = {.name = "__man",
	.alias = "--man",
	.run = cmd_man,
	.args = "",
	.examples = "",
	.options = no_options};
