/* SPDX-License-Identifier: MIT. protonctl_call.c: what a verb asks the daemon, and the answer as
 * JSON. */
#include "protonctl_call.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "human.h"
#include "json.h"
#include "paths.h"

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
		snprintf(buf, n, "PROTOND_DB=%s ", word_quoted(usual, sizeof(usual), db));
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

void ctl_json_end(const struct ctl *c, FILE *f)
{
	const char *warnings[CTL_WARNINGS_MAX];
	size_t i;

	for (i = 0; i < c->n_warnings; i++)
		warnings[i] = c->warning[i];
	json_end(f, warnings, c->n_warnings);
}

bool ctl_json(struct ctl *c, const struct rpc_reply *r)
{
	if (!c->json)
		return false;
	json_begin(stdout, c->cmd->name);
	json_value(stdout, r->result);
	ctl_json_end(c, stdout);
	return true;
}

void ctl_json_list(
	struct ctl *c, const char *key, const msgpack_object *item, uint32_t n, uint64_t more)
{
	uint32_t i;

	json_begin(stdout, c->cmd->name);
	printf("{\"%s\":[", key);
	for (i = 0; i < n; i++) {
		fputs(i > 0 ? "," : "", stdout);
		json_value(stdout, &item[i]);
	}
	printf("],\"more\":%lu}", more);
	ctl_json_end(c, stdout);
}

void ctl_text(struct ctl *c, const char *text)
{
	if (!c->json) {
		fputs(text, stdout);
		return;
	}
	json_begin(stdout, c->cmd->name);
	fputs("{\"text\":", stdout);
	json_text(stdout, text, strlen(text));
	putchar('}');
	ctl_json_end(c, stdout);
}
