/* SPDX-License-Identifier: MIT. protonctl_line.c: a command line of protonctl, and what it says. */
#include "protonctl_line.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guess.h"
#include "human.h"
#include "json.h"

/* clang-format off */
const struct option_def common_options[] = {
	{'h', "help",     NULL, "what this command does, with examples", NULL},
	{0,   "json",     NULL, "one JSON envelope on standard output; of `run`, the last line of standard error", NULL},
	{0,   "color",    "WHEN", "auto, always or never; auto: on a terminal, unless NO_COLOR is set", "auto always never"},
	{0,   "no-color", NULL, "as --color never", NULL},
	{0,   NULL,       NULL, NULL, NULL},
};
const struct option_def no_options[] = {{0, NULL, NULL, NULL, NULL}};
/* clang-format on */

const struct command *command_find(const struct command *const *table, const char *name)
{
	for (; *table != NULL; table++)
		if (strcmp((*table)->name, name) == 0 ||
			((*table)->alias != NULL && strcmp((*table)->alias, name) == 0))
			return *table;
	return NULL;
}

const struct option_def *ctl_option_at(const struct command *cmd, size_t i)
{
	size_t own = 0;

	while (cmd->options[own].name != NULL)
		own++;
	if (i < own)
		return &cmd->options[i];
	return common_options[i - own].name != NULL ? &common_options[i - own] : NULL;
}

const char *ctl_option(const struct ctl *c, const char *name)
{
	const struct option_def *o;
	size_t i;

	for (i = 0; (o = ctl_option_at(c->cmd, i)) != NULL; i++)
		if (strcmp(o->name, name) == 0)
			return c->value[i];
	return NULL;
}

/* --- words */

int ctl_exit_code(int code)
{
	switch (code) {
	case -ENOTCONN:
	case -ETIMEDOUT:
	case -EPROTO:
	case -ESHUTDOWN:
		return CTL_UNREACHABLE;
	case -EINVAL:
	case -ENOTUNIQ:
		return CTL_USAGE;
	default:
		return CTL_NOT_FOUND;
	}
}

int ctl_fail(struct ctl *c)
{
	if (c->json) /* standard output of `run` is the program's */
		json_error(
			c->cmd->passes ? stderr : stdout, c->cmd->name, c->err.code, c->err.text);
	else {
		fprintf(stderr, "protonctl %s: ", c->cmd->name);
		text_put(stderr, c->err.text, 0);
		fputc('\n', stderr);
	}
	return ctl_exit_code(c->err.code);
}

int ctl_usage(struct ctl *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->err.text, sizeof(c->err.text), fmt, ap);
	va_end(ap);
	c->err.code = -EINVAL;
	(void)ctl_fail(c);
	if (!c->json)
		fprintf(stderr, "Usage: protonctl %s [options]%s%s\nSee `protonctl help %s`.\n",
			c->cmd->name, *c->cmd->args != '\0' ? " " : "", c->cmd->args, c->cmd->name);
	return c->cmd->passes ? CTL_RUN_FAILED
			      : CTL_USAGE; /* below 125 it would be the program's */
}

void ctl_warn(struct ctl *c, const char *fmt, ...)
{
	va_list ap;

	if (c->n_warnings == CTL_WARNINGS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(c->warning[c->n_warnings++], sizeof(c->warning[0]), fmt, ap);
	va_end(ap);
}

void ctl_warnings(const struct ctl *c)
{
	size_t i;

	for (i = 0; i < c->n_warnings && !c->json; i++) {
		fputs("protonctl: warning: ", stderr);
		text_put(stderr, c->warning[i], 0);
		fputc('\n', stderr);
	}
}

void ctl_print(struct text *t)
{
	if (t->n > 0)
		fwrite(t->s, 1, t->n, stdout);
	text_fini(t);
}

/* --- parsing */

/* getopt's view of the tables: long options with a value of 1000 + place, and the short string. */
static void getopt_tables(const struct command *cmd, struct option *longs, char *shorts)
{
	const struct option_def *o;
	size_t i, n = 0;

	shorts[n++] = cmd->passes ? '+' : '-'; /* '-': positional words are handed over in order */
	shorts[n++] = ':';
	for (i = 0; (o = ctl_option_at(cmd, i)) != NULL && i < CTL_OPTIONS_MAX; i++) {
		longs[i] = (struct option){.name = o->name,
			.has_arg = o->arg != NULL ? required_argument : no_argument,
			.val = (int)(1000 + i)};
		if (o->key == 0)
			continue;
		shorts[n++] = o->key;
		if (o->arg != NULL)
			shorts[n++] = ':';
	}
	longs[i] = (struct option){.name = NULL};
	shorts[n] = '\0';
}

static int place_of_key(const struct command *cmd, int key)
{
	const struct option_def *o;
	size_t i;

	for (i = 0; (o = ctl_option_at(cmd, i)) != NULL; i++)
		if (o->key == key)
			return (int)i;
	return -1;
}

static int unknown_option(struct ctl *c, const char *word)
{
	const bool is_long = strncmp(word, "--", 2) == 0;
	struct guess g = {.word = is_long ? word + 2 : ""};
	const struct option_def *o;
	size_t i;

	for (i = 0; is_long && (o = ctl_option_at(c->cmd, i)) != NULL; i++)
		guess_try(&g, o->name);
	return ctl_usage(c,
		g.best[0] != '\0' ? "unknown option %s; did you mean --%s?" : "unknown option %s%s",
		word, g.best);
}

/* "-sync"; no option of one letter. */
static bool is_signed(const char *word)
{
	return word[0] == '-' && word[1] != '-' && word[1] != '\0' && word[2] != '\0';
}

/* A list that is given once more goes on; any other value holds as it was said last. False: it is too long. */
static bool put_value(struct ctl *c, size_t place, const char *value)
{
	const struct option_def *o = ctl_option_at(c->cmd, place);
	const char *old = c->value[place];
	const char *arg = o != NULL && o->arg != NULL ? o->arg : "";
	const bool is_list = strcmp(arg, "WORDS") == 0 || strcmp(arg, "NAMES") == 0;
	char *to = c->lists + c->lists_n;
	const size_t room = sizeof(c->lists) - c->lists_n;
	int n;

	c->value[place] = value;
	if (!is_list || old == NULL)
		return true;
	n = snprintf(to, room, "%s,%s", old, value);
	if (n < 0 || (size_t)n >= room)
		return false;
	c->lists_n += (size_t)n + 1;
	c->value[place] = to;
	return true;
}

int ctl_parse(struct ctl *c, int argc, char **argv)
{
	struct option longs[CTL_OPTIONS_MAX + 1];
	char shorts[3 * CTL_OPTIONS_MAX];
	int k, place;

	c->json = words_have(c->cmd->passes ? 0 : argc, argv, "--json"); /* until it is parsed */
	getopt_tables(c->cmd, longs, shorts);
	c->argv = argv;
	opterr = 0;
	optind = 1;
	for (;;) {
		while (c->cmd->signs && optind < argc && is_signed(argv[optind]))
			c->argv[c->argc++] = argv[optind++];
		k = getopt_long(argc, argv, shorts, longs, NULL);
		if (k == -1)
			break;
		if (k == 1) { /* a positional word */
			c->argv[c->argc++] = optarg;
			continue;
		}
		place = k >= 1000 ? k - 1000 : place_of_key(c->cmd, k);
		if (k == ':')
			return ctl_usage(c, "%s needs a value", argv[optind - 1]);
		if (place < 0 || k == '?')
			return unknown_option(c, argv[optind - 1]);
		c->json |= strcmp(longs[place].name, "json") == 0;
		if (!put_value(c, (size_t)place, optarg != NULL ? optarg : ""))
			return ctl_usage(c, "--%s: too many words", longs[place].name);
	}
	while (optind < argc)
		c->argv[c->argc++] = argv[optind++];
	c->json = ctl_option(c, "json") != NULL;
	term_init(&c->term, STDOUT_FILENO, ctl_option(c, "no-color") != NULL);
	if (ctl_option(c, "color") != NULL && !term_color(&c->term, ctl_option(c, "color")))
		return ctl_usage(
			c, "--color %s: give auto, always or never", ctl_option(c, "color"));
	c->color = c->term.color;
	if (ctl_option(c, "help") != NULL)
		return CTL_HELP;
	for (k = 0; k < c->argc && c->cmd->completes != 0; k++) {
		if (*c->argv[k] == '\0' && strchr("sljb", c->cmd->completes) != NULL)
			return ctl_usage(c, "empty name; is a shell variable unset?");
	}
	if (c->argc < c->cmd->min)
		return ctl_usage(c, "missing argument: %s", c->cmd->args);
	if (c->cmd->max >= 0 && c->argc > c->cmd->max)
		return ctl_usage(c, "unexpected argument '%s'", c->argv[c->cmd->max]);
	return CTL_GO;
}
