/* SPDX-License-Identifier: MIT. protonctl_delete.c: the verbs that remove sessions: delete, prune.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "human.h"
#include "json.h"
#include "protonctl_call.h"

struct deletion {
	struct ctl *c;
	struct rpc *rpc;
	FILE *gone, *failed; /* lists of the envelope */
	int n_gone, n_failed;
	int status; /* of the last that failed; CTL_UNREACHABLE stays */
};

static void delete_failed(struct deletion *d, const char *session)
{
	const struct err *e = &d->c->err;

	d->n_failed++;
	if (d->status != CTL_UNREACHABLE)
		d->status = ctl_exit_code(e->code);
	if (!d->c->json || d->c->argc == 1) {
		(void)ctl_fail(d->c);
		return;
	}
	fputs(d->n_failed > 1 ? ",{\"session\":" : "{\"session\":", d->failed);
	json_text(d->failed, session, strlen(session));
	fprintf(d->failed, ",\"code\":%d,\"text\":", e->code);
	json_text(d->failed, e->text, strlen(e->text));
	fputc('}', d->failed);
}

static void delete_one(struct deletion *d, const char *session)
{
	struct wire_buf *b = rpc_begin(d->rpc, "delete");
	struct rpc_reply r = {.fd = -1};
	char name[128];

	wire_kv_str(b, "session", session);
	wire_kv_bool(b, "force", ctl_option(d->c, "force") != NULL);
	if (d->status == CTL_UNREACHABLE || ctl_call(d->c, d->rpc, &r) < 0) {
		delete_failed(d, session);
		return;
	}
	if (d->c->json) {
		fputs(d->n_gone > 0 ? "," : "", d->gone);
		json_value(d->gone, r.result);
	} else {
		text_put(stdout, wire_text(r.result, "name", name, sizeof(name)), 0);
		printf(", id %ld, is deleted\n", wire_i64_or(r.result, "id", 0));
	}
	d->n_gone++;
	rpc_reply_free(&r);
}

/* As `prune` says it, and what was not; objects, with commas between. */
static void put_json(struct ctl *c, int n, const char *sessions, const char *failed)
{
	if (!c->json)
		return;
	json_begin(stdout, c->cmd->name);
	printf("{\"deleted\":%d,\"sessions\":[%s],\"failed\":[%s]}", n, sessions, failed);
	ctl_json_end(c, stdout);
}

static int cmd_delete(struct ctl *c)
{
	struct deletion d = {.c = c};
	char *gone = NULL, *failed = NULL;
	size_t bytes;
	int i;

	if (ctl_open(c, &d.rpc) < 0)
		return ctl_fail(c);
	d.gone = open_memstream(&gone, &bytes);
	d.failed = open_memstream(&failed, &bytes);
	for (i = 0; d.gone != NULL && d.failed != NULL && i < c->argc; i++)
		delete_one(&d, c->argv[i]);
	rpc_close(d.rpc);
	if (d.gone == NULL || fclose(d.gone) != 0 || d.failed == NULL || fclose(d.failed) != 0) {
		err_set(&c->err, -ENOMEM, "out of memory while listing what was deleted");
		d.status = ctl_fail(c);
	} else if (c->argc > 1 || d.n_failed == 0) {
		put_json(c, d.n_gone, gone, failed);
	}
	free(gone);
	free(failed);
	return d.status;
}

/* clang-format off */
static const struct option_def delete_options[] = {
	{'f', "force", NULL, "also what is not finalized: it records no more, and is lost", NULL},
	{0, NULL, NULL, NULL, NULL},
};

const struct command command_delete = {.name = "delete",
	.run = cmd_delete,
	.min = 1,
	.max = -1,
	.args = "SESSION...",
	.help = "remove sessions; of one name, the newest",
	.more =
		"All are tried: the exit status is not 0 when one could not be deleted, and --json lists under `failed`\n"
		"which, and why.\n",
	.examples =
		"protonctl delete slow\n"
		"protonctl delete 7 8 9\n",
	.options = delete_options,
	.completes = 's'};
/* clang-format on */

/* A number and a unit letter: "30d", "2G". */
static bool with_unit(const char *text, const char *units, const uint64_t *factors, uint64_t *ret)
{
	char *end;
	const char *u;
	unsigned long long v;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	u = *end != '\0' && end[1] == '\0' ? strchr(units, *end) : NULL;
	if (errno != 0 || v == 0 || u == NULL || v > UINT64_MAX / factors[u - units])
		return false;
	*ret = v * factors[u - units];
	return true;
}

static void say_pruned(const msgpack_object *result)
{
	const uint64_t n = wire_u64_or(result, "deleted", 0);
	const msgpack_object *gone = wire_get(result, "sessions");
	char name[128];
	uint32_t i;

	for (i = 0; gone != NULL && gone->type == MSGPACK_OBJECT_ARRAY && i < gone->via.array.size;
		i++) {
		const msgpack_object *o = &gone->via.array.ptr[i];

		text_put(stdout, wire_text(o, "name", name, sizeof(name)), 0);
		printf(", id %ld, is deleted\n", wire_i64_or(o, "id", 0));
	}
	printf("%lu session%s deleted\n", n, n == 1 ? " is" : "s are");
}

static int cmd_prune(struct ctl *c)
{
	static const uint64_t times[] = {86400, 3600, 60},
			      sizes[] = {1ull << 30, 1ull << 20, 1ull << 10};
	const char *age = ctl_option(c, "older-than"), *size = ctl_option(c, "max-size");
	struct rpc_reply r = {.fd = -1};
	struct rpc *rpc;
	struct wire_buf *b;
	uint64_t seconds = 0, bytes = 0;
	int code;

	if (age != NULL && !with_unit(age, "dhm", times, &seconds))
		return ctl_usage(c, "--older-than %s: give a number and d, h or m, as in 30d", age);
	if (size != NULL && !with_unit(size, "GMK", sizes, &bytes))
		return ctl_usage(c, "--max-size %s: give a number and G, M or K, as in 2G", size);
	if (age == NULL && size == NULL)
		return ctl_usage(c, "say which ones: --older-than, --max-size, or both");
	if (ctl_open(c, &rpc) < 0)
		return ctl_fail(c);
	b = rpc_begin(rpc, "prune");
	wire_kv_u64(b, "older_than_s", seconds);
	wire_kv_u64(b, "max_bytes", bytes);
	code = ctl_call(c, rpc, &r);
	rpc_close(rpc);
	if (code < 0)
		return ctl_fail(c);
	if (!ctl_json(c, &r))
		say_pruned(r.result);
	rpc_reply_free(&r);
	return CTL_OK;
}

/* clang-format off */
static const struct option_def prune_options[] = {
	{0, "older-than", "AGE",  "sessions that ended longer ago: 30d, 12h, 90m", NULL},
	{0, "max-size",   "SIZE", "then the oldest, until the database is below: 2G, 500M", NULL},
	{0, NULL, NULL, NULL, NULL},
};
/* clang-format on */

const struct command command_prune = {.name = "prune",
	.run = cmd_prune,
	.args = "",
	.help = "remove old sessions",
	.examples = "protonctl prune --older-than 30d\nprotonctl prune --max-size 2G\n",
	.options = prune_options};
