/* SPDX-License-Identifier: MIT. protonctl_complete.c: completion of protonctl's words, from the
 * table. */
#include <stdio.h>
#include <string.h>

#include "complete.h"
#include "offer.h"
#include "protonctl_call.h"

static int cmd_completion(struct ctl *c)
{
	const char *script = complete_script(c->argv[0]);

	if (script == NULL)
		return ctl_usage(c, "no completion for '%s'; use bash, zsh or fish", c->argv[0]);
	ctl_text(c, script);
	return CTL_OK;
}

const struct command command_completion = {.name = "completion",
	.run = cmd_completion,
	.min = 1,
	.max = 1,
	.args = "bash|zsh|fish",
	.help = "a script that completes the words of protonctl and protonview",
	.examples = "source <(protonctl completion bash)\nprotonctl completion fish | source\n",
	.options = no_options,
	.completes = 'w'};

static void put_commands(const struct command *const *table, const char *begin)
{
	for (; *table != NULL; table++)
		if ((*table)->help != NULL)
			complete_put(begin, (*table)->name, (*table)->help);
}

/* Of "one|two|three". */
static void put_words(const char *args, const char *begin)
{
	char words[128];
	char *bar;

	snprintf(words, sizeof(words), "%s", args);
	while ((bar = strchr(words, '|')) != NULL)
		*bar = ' ';
	complete_words(begin, words);
}

static bool option_of(const void *of, size_t i, struct complete_option *ret)
{
	const struct option_def *o = ctl_option_at(of, i);

	if (o != NULL)
		*ret = (struct complete_option){o->key, o->name, o->help, o->arg != NULL, o->words};
	return o != NULL;
}

static int cmd_complete(struct ctl *c)
{
	const char *begin = c->argv[c->argc - 1];
	const struct command *cmd = command_find(c->table, c->argv[0]);
	int plain;

	if (c->argc == 1)
		put_commands(c->table, begin);
	if (c->argc == 1 || cmd == NULL)
		return CTL_OK;
	plain = complete_options(c->argc - 1, c->argv + 1, option_of, cmd, cmd->passes);
	if (plain < 0 || (cmd->max >= 0 && plain >= cmd->max))
		return CTL_OK;
	switch (cmd->completes) {
	case 's':
	case 'b':
		offer_sessions(begin);
		if (cmd->completes == 'b')
			offer_jobs(begin, "");
		break;
	case 'l':
		offer_live_sessions(begin);
		break;
	case 'j':
		offer_jobs(begin, "");
		break;
	case 'h':
		put_commands(c->table, begin);
		complete_put(begin, "options", "what can be set for a job");
		break;
	case 'w':
		put_words(cmd->args, begin);
		break;
	case 'c':
		if (plain == 0)
			puts(COMPLETE_COMMAND);
		break;
	default:
		break;
	}
	return CTL_OK;
}

const struct command command_complete = {.name = "__complete",
	.run = cmd_complete,
	.min = 1,
	.max = -1,
	.args = "-- WORD...",
	.examples = "",
	.options = no_options,
	.passes = true};
