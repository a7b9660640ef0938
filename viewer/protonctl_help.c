/* SPDX-License-Identifier: MIT. protonctl_help.c: help, completion and the man page, from the
 * table. */
#include "protonctl.h"

#include <string.h>

#include "guess.h"

static bool is_listed(const struct command *cmd)
{
	return cmd->help != NULL;
}

static void put_options(FILE *f, const struct option_def *o)
{
	char left[64];

	for (; o->name != NULL; o++) {
		(void)snprintf(left, sizeof(left), "%c%c%s--%s%s%s", o->key != 0 ? '-' : ' ',
			o->key != 0 ? o->key : ' ', o->key != 0 ? ", " : "  ", o->name,
			o->arg != NULL ? " " : "", o->arg != NULL ? o->arg : "");
		(void)fprintf(f, "  %-26s %s\n", left, o->help);
	}
}

void help_all(FILE *f)
{
	size_t i;

	(void)fputs("protonctl: record what programs do, and look at it while they run.\n\n"
		    "  protonctl run -- python train.py     record a run, print its tree\n"
		    "  protonctl jobs                       what protond sees\n"
		    "  protonview tree @last                open the last session again\n\n"
		    "Commands:\n",
		f);
	for (i = 0; i < n_commands; i++)
		if (is_listed(&commands[i]))
			(void)fprintf(f, "  %-11s %s\n", commands[i].name, commands[i].help);
	(void)fputs("\nSessions are named by their name, id, the beginning of their uuid, @last, "
		    "or @-1 for the\n"
		    "one before. `protonctl help COMMAND` says more. Exit codes: 0 ok, 1 not "
		    "found, 2 usage,\n"
		    "3 daemon unreachable, 4 partial data.\n",
		f);
}

void help_command(FILE *f, const struct command *cmd)
{
	const char *line = cmd->examples, *end;

	(void)fprintf(f, "protonctl %s: %s.\n\nExamples:\n", cmd->name,
		cmd->help != NULL ? cmd->help : "");
	for (; *line != '\0'; line = end + 1) {
		end = strchr(line, '\n');
		(void)fprintf(f, "  %.*s\n", (int)(end - line), line);
	}
	(void)fprintf(f, "\nUsage: protonctl %s [options] %s\n", cmd->name, cmd->args);
	if (cmd->alias != NULL)
		(void)fprintf(f, "       (also: protonctl %s)\n", cmd->alias);
	if (cmd->more != NULL)
		(void)fprintf(f, "\n%s", cmd->more);
	(void)fputs("\nOptions:\n", f);
	put_options(f, cmd->options);
	put_options(f, common_options);
}

void help_did_you_mean(FILE *f, const char *name)
{
	struct guess g = {.word = name};
	size_t i;

	for (i = 0; i < n_commands; i++)
		if (is_listed(&commands[i]))
			guess_try(&g, commands[i].name);
	if (g.best[0] != '\0')
		(void)fprintf(f, " Did you mean '%s'?", g.best);
	(void)fputs(" `protonctl help` lists the commands.\n", f);
}

int cmd_help(struct ctl *c)
{
	const struct command *cmd;

	if (c->argc == 0) {
		help_all(stdout);
		return CTL_OK;
	}
	if (strcmp(c->argv[0], "options") == 0) {
		job_options_help(stdout);
		return CTL_OK;
	}
	cmd = command_find(c->argv[0]);
	if (cmd == NULL) {
		(void)fputs("protonctl: there is no command '", stderr);
		text_put(stderr, c->argv[0], 0);
		(void)fputs("'.", stderr);
		help_did_you_mean(stderr, c->argv[0]);
		return CTL_USAGE;
	}
	help_command(stdout, cmd);
	return CTL_OK;
}

/* --- the man page
 * --------------------------------------------------------------------------------- */

/* troff reads '-' as a hyphen, '\' as its own, and a dot or quote at the beginning as a request. */
static void man_text(const char *text)
{
	bool begins = true;

	for (; *text != '\0'; text++) {
		if (begins && (*text == '.' || *text == '\''))
			(void)fputs("\\&", stdout);
		if (*text == '-' || *text == '\\')
			(void)fputs(*text == '-' ? "\\-" : "\\e", stdout);
		else
			(void)putchar(*text);
		begins = *text == '\n';
	}
}

static void man_options(const struct option_def *o)
{
	for (; o->name != NULL; o++) {
		(void)fputs(".TP\n.B ", stdout);
		if (o->key != 0)
			(void)printf("\\-%c, ", o->key);
		(void)fputs("\\-\\-", stdout);
		man_text(o->name);
		if (o->arg != NULL)
			(void)printf(" \\fI%s\\fR", o->arg);
		(void)putchar('\n');
		man_text(o->help);
		(void)putchar('\n');
	}
}

int cmd_man(struct ctl *c)
{
	size_t i;

	(void)c;
	(void)fputs(".TH PROTONCTL 1 \"\" \"protond " PROTOND_BUILD_VERSION "\"\n.SH NAME\n"
		    "protonctl \\- record what programs do, and look at it while they run\n.SH "
		    "SYNOPSIS\n"
		    ".B protonctl\n.I command\n[options]\n.SH COMMANDS\n",
		stdout);
	for (i = 0; i < n_commands; i++) {
		if (!is_listed(&commands[i]))
			continue;
		(void)printf(".SS %s %s\n", commands[i].name, commands[i].args);
		man_text(commands[i].help);
		(void)fputs(".\n", stdout);
		if (commands[i].alias != NULL)
			(void)printf("Also: %s.\n", commands[i].alias);
		if (commands[i].more != NULL)
			man_text(commands[i].more);
		man_options(commands[i].options);
		(void)fputs(".PP\n.nf\n", stdout);
		man_text(commands[i].examples);
		(void)fputs(".fi\n", stdout);
	}
	(void)fputs(".SH COMMON OPTIONS\n", stdout);
	man_options(common_options);
	(void)fputs(".SH EXIT STATUS\n0 ok, 1 not found, 2 usage, 3 daemon unreachable, 4 partial "
		    "data; run has its\n"
		    "program's own.\n.SH ENVIRONMENT\nFor jobs; the daemon's are in protond(8).\n",
		stdout);
	job_options_man(man_text);
	(void)fputs(".SH SEE ALSO\nprotonview(1), protond(8)\n", stdout);
	return CTL_OK;
}

/* --- completion
 * ------------------------------------------------------------------------------------- */

/* Inside single quotes, for a shell. */
static void put_quoted(const char *text)
{
	for (; *text != '\0'; text++)
		if (*text == '\'')
			(void)fputs("'\\''", stdout);
		else
			(void)putchar(*text);
}

static void bash_options(const struct option_def *o)
{
	for (; o->name != NULL; o++)
		(void)printf(" --%s", o->name);
}

static void complete_bash(void)
{
	size_t i;

	(void)fputs("_protonctl() {\n  local cur=${COMP_WORDS[COMP_CWORD]} "
		    "prev=${COMP_WORDS[COMP_CWORD-1]} w=\n"
		    "  if [ \"$COMP_CWORD\" -eq 1 ]; then COMPREPLY=($(compgen -W \"",
		stdout);
	for (i = 0; i < n_commands; i++)
		if (is_listed(&commands[i]))
			(void)printf("%s ", commands[i].name);
	(void)fputs("\" -- \"$cur\")); return; fi\n  case ${COMP_WORDS[1]} in\n", stdout);
	for (i = 0; i < n_commands; i++) {
		if (!is_listed(&commands[i]))
			continue;
		(void)printf("  %s%s%s) w='", commands[i].name,
			commands[i].alias != NULL ? "|" : "",
			commands[i].alias != NULL ? commands[i].alias : "");
		bash_options(commands[i].options);
		bash_options(common_options);
		(void)putchar('\'');
		if (commands[i].completes == 's')
			(void)fputs("\" $(protonctl __complete sessions 2>/dev/null)\"", stdout);
		if (commands[i].completes == 'j')
			(void)fputs("\" $(protonctl __complete jobs 2>/dev/null)\"", stdout);
		if (commands[i].completes == 'c')
			(void)fputs("\" $(compgen -c -- \"$cur\")\"", stdout);
		(void)fputs(";;\n", stdout);
	}
	(void)fputs("  esac\n  COMPREPLY=($(compgen -o default -W \"$w\" -- \"$cur\"))\n}\n"
		    "complete -o default -F _protonctl protonctl\n",
		stdout);
}

static void complete_zsh(void)
{
	size_t i;

	(void)fputs("#compdef protonctl\n_protonctl() {\n  if (( CURRENT == 2 )); then\n    local "
		    "-a c\n    c=(\n",
		stdout);
	for (i = 0; i < n_commands; i++) {
		if (!is_listed(&commands[i]))
			continue;
		(void)printf("      '%s:", commands[i].name);
		put_quoted(commands[i].help);
		(void)puts("'");
	}
	(void)fputs("    )\n    _describe command c\n  else\n    compadd -- $(protonctl __complete "
		    "sessions 2>/dev/null)\n"
		    "    _files\n  fi\n}\n_protonctl \"$@\"\n",
		stdout);
}

static void complete_fish(void)
{
	size_t i;
	const struct option_def *o;

	for (i = 0; i < n_commands; i++) {
		if (!is_listed(&commands[i]))
			continue;
		(void)printf("complete -c protonctl -n __fish_use_subcommand -f -a %s -d '",
			commands[i].name);
		put_quoted(commands[i].help);
		(void)puts("'");
		for (o = commands[i].options; o->name != NULL; o++) {
			(void)printf(
				"complete -c protonctl -n '__fish_seen_subcommand_from %s' -l %s%s",
				commands[i].name, o->name, o->arg != NULL ? " -x" : "");
			if (o->words != NULL)
				(void)printf(" -a '%s'", o->words);
			(void)fputs(" -d '", stdout);
			put_quoted(o->help);
			(void)puts("'");
		}
	}
}

int cmd_completion(struct ctl *c)
{
	static const struct {
		const char *shell;
		void (*put)(void);
	} shells[] = {{"bash", complete_bash}, {"zsh", complete_zsh}, {"fish", complete_fish}};
	size_t i;

	for (i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
		if (strcmp(shells[i].shell, c->argv[0]) == 0) {
			shells[i].put();
			return CTL_OK;
		}
	return ctl_usage(c, "no completion for '%s': bash, zsh or fish", c->argv[0]);
}

/* Words for the scripts above, one a line; silent when there is no daemon. */
int cmd_complete(struct ctl *c)
{
	const bool jobs = strcmp(c->argv[0], "jobs") == 0;
	struct rpc_reply r = {.fd = -1};
	const msgpack_object *list;
	char text[128];
	uint32_t i;

	if (ctl_ask(c, jobs ? "jobs" : "sessions", &r) < 0)
		return CTL_UNREACHABLE;
	list = wire_get(r.result, jobs ? "jobs" : "sessions");
	if (!jobs)
		(void)puts("@last");
	for (i = 0; list != NULL && list->type == MSGPACK_OBJECT_ARRAY && i < list->via.array.size;
		i++) {
		const msgpack_object *o = &list->via.array.ptr[i];

		if (jobs) {
			(void)printf("%lu\n", wire_u64_or(o, "pid", 0));
			continue;
		}
		if (strpbrk(wire_text(o, "name", text, sizeof(text)), " \t'\"\\$`") == NULL) {
			text_put(stdout, text, 0);
			(void)putchar('\n');
		}
	}
	rpc_reply_free(&r);
	return CTL_OK;
}
