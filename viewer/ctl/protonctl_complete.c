/* SPDX-License-Identifier: MIT. protonctl_complete.c: completion of protonctl's words, from the
 * table. */
#include <string.h>

#include "complete.h"
#include "protonctl.h"

int cmd_completion(struct ctl *c)
{
	const char *script = complete_script(c->argv[0]);

	if (script == NULL)
		return ctl_usage(c, "no completion for '%s': bash, zsh or fish", c->argv[0]);
	(void)fputs(script, stdout);
	return CTL_OK;
}

/* Sessions, or the pids of jobs; silent when there is no daemon. */
static void put_asked(struct ctl *c, const char *what, const char *begin)
{
	const bool jobs = strcmp(what, "jobs") == 0;
	struct rpc_reply r = {.fd = -1};
	const msgpack_object *list;
	char name[128], command[256];
	uint32_t i;

	if (ctl_ask(c, what, &r) < 0)
		return;
	list = wire_get(r.result, what);
	for (i = 0; list != NULL && list->type == MSGPACK_OBJECT_ARRAY && i < list->via.array.size;
		i++) {
		const msgpack_object *o = &list->via.array.ptr[i];

		if (jobs)
			(void)snprintf(name, sizeof(name), "%lu", wire_u64_or(o, "pid", 0));
		else
			(void)wire_text(o, "name", name, sizeof(name));
		(void)wire_text(o, "command", command, sizeof(command));
		complete_put(begin, name, command);
	}
	rpc_reply_free(&r);
}

static void put_commands(const char *begin)
{
	size_t i;

	for (i = 0; i < n_commands; i++)
		if (commands[i].help != NULL)
			complete_put(begin, commands[i].name, commands[i].help);
}

static bool option_of(const void *of, size_t i, struct complete_option *ret)
{
	const struct option_def *o = ctl_option_at(of, i);

	if (o != NULL)
		*ret = (struct complete_option){o->key, o->name, o->help, o->arg != NULL, o->words};
	return o != NULL;
}

int cmd_complete(struct ctl *c)
{
	const char *begin = c->argv[c->argc - 1];
	const struct command *cmd = command_find(c->argv[0]);
	int plain;

	if (c->argc == 1)
		put_commands(begin);
	if (c->argc == 1 || cmd == NULL)
		return CTL_OK;
	plain = complete_options(c->argc - 1, c->argv + 1, option_of, cmd, cmd->passes);
	if (plain < 0 || (cmd->max >= 0 && plain >= cmd->max))
		return CTL_OK;
	switch (cmd->completes) {
	case 's':
	case 'b':
		complete_put(begin, "@last", "the newest");
		put_asked(c, "sessions", begin);
		if (cmd->completes == 'b')
			put_asked(c, "jobs", begin);
		break;
	case 'j':
		put_asked(c, "jobs", begin);
		break;
	case 'h':
		put_commands(begin);
		complete_put(begin, "options", "what can be set for a job");
		break;
	case 'w':
		complete_words(begin, "bash zsh fish");
		break;
	case 'c':
		if (plain == 0)
			(void)puts(COMPLETE_COMMAND);
		break;
	default:
		break;
	}
	return CTL_OK;
}
