/* SPDX-License-Identifier: MIT. protonctl_line.c: a command line of protonctl, what it calls, what
 * it says.
 */
#include "protonctl.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "paths.h"

const struct command *command_find(const char *name)
{
	size_t i;

	for (i = 0; i < n_commands; i++)
		if (strcmp(commands[i].name, name) == 0 ||
			(commands[i].alias != NULL && strcmp(commands[i].alias, name) == 0))
			return &commands[i];
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

/* --- words
 * ---------------------------------------------------------------------------------------- */

int ctl_exit_code(int code)
{
	switch (code) {
	case -ENOTCONN:
	case -ETIMEDOUT:
	case -EPROTO:
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
		(void)fprintf(stderr, "protonctl %s: ", c->cmd->name);
		text_put(stderr, c->err.text, 0);
		(void)fputc('\n', stderr);
	}
	return ctl_exit_code(c->err.code);
}

int ctl_usage(struct ctl *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(c->err.text, sizeof(c->err.text), fmt, ap);
	va_end(ap);
	c->err.code = -EINVAL;
	(void)ctl_fail(c);
	if (!c->json)
		(void)fprintf(stderr,
			"Usage: protonctl %s [options] %s\nSee `protonctl help %s`.\n",
			c->cmd->name, c->cmd->args, c->cmd->name);
	return c->cmd->passes ? CTL_RUN_FAILED
			      : CTL_USAGE; /* below 125 it would be the program's */
}

void ctl_warn(struct ctl *c, const char *fmt, ...)
{
	va_list ap;

	if (c->n_warnings == CTL_WARNINGS_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(c->warning[c->n_warnings++], sizeof(c->warning[0]), fmt, ap);
	va_end(ap);
}

void ctl_warnings(const struct ctl *c)
{
	size_t i;

	for (i = 0; i < c->n_warnings && !c->json; i++) {
		(void)fputs("protonctl: warning: ", stderr);
		text_put(stderr, c->warning[i], 0);
		(void)fputc('\n', stderr);
	}
}

/* --- calls
 * ---------------------------------------------------------------------------------------- */

int ctl_open(struct ctl *c, struct rpc **ret)
{
	return rpc_open(ret, &c->err);
}

void ctl_db_words(const struct rpc *rpc, char *buf, size_t n)
{
	const char *db = rpc_daemon(rpc)->db, *set = getenv("PROTOND_DB");
	char usual[4096];

	*buf = '\0';
	if (*db == '\0' || rpc_daemon(rpc)->uid != geteuid())
		return; /* not for this user to open */
	if ((set != NULL && *set != '\0') ||
		(paths_db(0, usual, sizeof(usual)) == 0 && strcmp(usual, db) != 0))
		(void)snprintf(buf, n, "PROTOND_DB=%s ", db);
}

int ctl_call(struct ctl *c, struct rpc *r, struct rpc_reply *ret)
{
	return rpc_call(r, RPC_TIMEOUT_MS, ret, &c->err);
}

int ctl_ask(struct ctl *c, const char *method, struct rpc_reply *ret)
{
	struct rpc *r;
	int code = ctl_open(c, &r);

	if (code < 0)
		return code;
	(void)rpc_begin(r, method);
	code = ctl_call(c, r, ret);
	rpc_close(r);
	return code;
}

static void json_close(const struct ctl *c)
{
	const char *warnings[CTL_WARNINGS_MAX];
	size_t i;

	for (i = 0; i < c->n_warnings; i++)
		warnings[i] = c->warning[i];
	json_end(stdout, warnings, c->n_warnings);
}

bool ctl_json(struct ctl *c, const struct rpc_reply *r)
{
	if (!c->json)
		return false;
	json_begin(stdout, c->cmd->name);
	json_value(stdout, r->result);
	json_close(c);
	return true;
}

void ctl_json_list(
	struct ctl *c, const char *key, const msgpack_object *item, uint32_t n, uint64_t more)
{
	uint32_t i;

	json_begin(stdout, c->cmd->name);
	(void)printf("{\"%s\":[", key);
	for (i = 0; i < n; i++) {
		(void)fputs(i > 0 ? "," : "", stdout);
		json_value(stdout, &item[i]);
	}
	(void)printf("],\"more\":%lu}", more);
	json_close(c);
}

void ctl_json_deleted(struct ctl *c, int n, const char *sessions, const char *failed)
{
	if (!c->json)
		return;
	json_begin(stdout, c->cmd->name);
	(void)printf("{\"deleted\":%d,\"sessions\":[%s],\"failed\":[%s]}", n, sessions, failed);
	json_close(c);
}

/* --- command line
 * ---------------------------------------------------------------------------------- */

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

int ctl_parse(struct ctl *c, int argc, char **argv)
{
	struct option longs[CTL_OPTIONS_MAX + 1];
	char shorts[3 * CTL_OPTIONS_MAX];
	int k, place;

	getopt_tables(c->cmd, longs, shorts);
	c->argv = argv;
	opterr = 0;
	optind = 1;
	while ((k = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (k == 1) { /* a positional word */
			c->argv[c->argc++] = optarg;
			continue;
		}
		place = k >= 1000 ? k - 1000 : place_of_key(c->cmd, k);
		if (k == ':')
			return ctl_usage(c, "%s needs a value", argv[optind - 1]);
		if (place < 0 || k == '?')
			return ctl_usage(c, "there is no option %s", argv[optind - 1]);
		c->value[place] = optarg != NULL ? optarg : "";
	}
	while (optind < argc)
		c->argv[c->argc++] = argv[optind++];
	c->json = ctl_option(c, "json") != NULL;
	if (ctl_option(c, "help") != NULL) {
		help_command(stdout, c->cmd);
		return CTL_OK;
	}
	for (k = 0; k < c->argc && c->cmd->completes != 0; k++) {
		if (*c->argv[k] == '\0' && strchr("sjb", c->cmd->completes) != NULL)
			return ctl_usage(c, "an empty word names nothing: is a variable not set?");
	}
	if (c->argc < c->cmd->min)
		return ctl_usage(c, "it needs %s", c->cmd->args);
	if (c->cmd->max >= 0 && c->argc > c->cmd->max)
		return ctl_usage(c, "'%s' is one word too many", c->argv[c->cmd->max]);
	return -1;
}
