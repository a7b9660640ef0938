/* SPDX-License-Identifier: MIT. protonctl_delete.c: the verbs that remove sessions: delete, prune.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "human.h"
#include "json.h"
#include "protonctl_answer.h"
#include "protonctl_call.h"
#include "protonctl_daemon.h"

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
	struct named n;

	wire_kv_str(b, "session", session);
	wire_kv_bool(b, "force", ctl_option(d->c, "force") != NULL);
	if (d->status == CTL_UNREACHABLE || ctl_call(d->c, d->rpc, &r) < 0) {
		delete_failed(d, session);
		return;
	}
	answer_session(r.result, session, &n);
	if (d->c->json) {
		fputs(d->n_gone > 0 ? "," : "", d->gone);
		fprintf(d->gone, "{\"id\":%ld,\"name\":", n.s.row.id);
		json_text(d->gone, n.s.name, strlen(n.s.name));
		fputc('}', d->gone);
	} else {
		text_put(stdout, n.s.name, 0);
		printf(", id %ld, is deleted\n", n.s.row.id);
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

	if (daemon_of_sessions(&d.rpc, &c->err) < 0)
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
	{0, "force", NULL, "also those that are still recording: they end, and what they recorded is lost", NULL},
	{0, NULL, NULL, NULL, NULL},
};

const struct command command_delete = {.name = "delete",
	.run = cmd_delete,
	.min = 1,
	.max = -1,
	.args = "SESSION...",
	.help = "delete sessions; of several with one name, the newest",
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

#define SLICE_MS 200

/* What is asked for, again and again until there is no more. */
struct pruning {
	struct ctl *c;
	struct rpc *rpc;
	uint64_t seconds, bytes, keep;
	bool all_users, dry, older; /* older: the daemon does not know slices */
	FILE *gone;                 /* list of the envelope */
	uint64_t n, n_named, took, rows;
	bool said; /* a line that shows how far it is */
};

static void say_progress(struct pruning *p)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[Kprotonctl prune: %lu session%s, %lu rows deleted ...", p->n,
		p->n == 1 ? "" : "s", p->rows);
	(void)fflush(stderr);
	p->said = true;
}

static void end_progress(struct pruning *p)
{
	if (p->said)
		fputs("\r\033[K", stderr);
	p->said = false;
}

static void take_pruned(struct pruning *p, const msgpack_object *result)
{
	const msgpack_object *gone = wire_get(result, "sessions");
	char name[128];
	uint32_t i;

	p->n += wire_u64_or(result, "deleted", 0);
	p->took += wire_u64_or(result, "bytes", 0);
	p->rows += wire_u64_or(result, "rows", 0);
	for (i = 0; gone != NULL && gone->type == MSGPACK_OBJECT_ARRAY && i < gone->via.array.size;
		i++) {
		const msgpack_object *o = &gone->via.array.ptr[i];

		if (p->c->json) {
			fputs(p->n_named++ > 0 ? "," : "", p->gone);
			json_value(p->gone, o);
			continue;
		}
		end_progress(p);
		text_put(stdout, wire_text(o, "name", name, sizeof(name)), 0);
		printf(p->dry ? ", id %ld\n" : ", id %ld, is deleted\n", wire_i64_or(o, "id", 0));
	}
}

static void ask_prune(struct pruning *p)
{
	struct wire_buf *b = rpc_begin(p->rpc, "prune");

	if (p->older) {
		wire_kv_u64(b, "older_than_s", p->seconds);
		wire_kv_u64(b, "max_bytes", p->bytes);
		return;
	}
	wire_kv_u64(b, "age_s", p->seconds);
	wire_kv_u64(b, "size", p->bytes);
	wire_kv_u64(b, "keep", p->keep);
	wire_kv_bool(b, "all_users", p->all_users);
	wire_kv_bool(b, "dry_run", p->dry);
	wire_kv_u64(b, "slice_ms", SLICE_MS);
}

/* An older protond deletes all users' sessions, by age and size, and says so only then. */
static bool older_may(struct pruning *p)
{
	if (p->c->err.code != -EINVAL || p->older || p->n > 0 || p->keep != 0 || p->dry ||
		(!p->all_users && rpc_daemon(p->rpc)->uid != getuid()))
		return false;
	p->older = true;
	return true;
}

static int prune_slices(struct pruning *p)
{
	struct rpc_reply r = {.fd = -1};
	bool more = true;

	while (more) {
		ask_prune(p);
		if (ctl_call(p->c, p->rpc, &r) < 0) {
			if (older_may(p))
				continue;
			end_progress(p);
			return -1;
		}
		take_pruned(p, r.result);
		more = false;
		(void)wire_get_bool(r.result, "more", &more);
		rpc_reply_free(&r);
		if (more)
			say_progress(p);
	}
	end_progress(p);
	return 0;
}

static void say_pruned(const struct pruning *p, const char *sessions)
{
	char size[32];

	if (p->c->json) {
		json_begin(stdout, p->c->cmd->name);
		printf("{\"deleted\":%lu,\"bytes\":%lu,\"dry_run\":%s,\"sessions\":[%s]}", p->n,
			p->took, p->dry ? "true" : "false", sessions);
		ctl_json_end(p->c, stdout);
		return;
	}
	printf("%lu session%s", p->n, p->n == 1 ? " " : "s ");
	text_bytes(p->took, size);
	if (p->dry)
		printf("would be deleted, about %s\n", size);
	else
		puts(p->n == 1 ? "is deleted" : "are deleted");
}

static int prune_all(struct pruning *p)
{
	char *gone = NULL;
	size_t bytes;
	int status = CTL_OK;

	p->gone = open_memstream(&gone, &bytes);
	if (p->gone == NULL || prune_slices(p) < 0)
		status = ctl_fail(p->c);
	if (p->gone != NULL && fclose(p->gone) == 0 && status == CTL_OK)
		say_pruned(p, gone);
	free(gone);
	return status;
}

static bool a_number(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *ret > 0 &&
	       *ret <= UINT32_MAX;
}

static int cmd_prune(struct ctl *c)
{
	static const uint64_t times[] = {86400, 3600, 60},
			      sizes[] = {1ull << 30, 1ull << 20, 1ull << 10};
	const char *age = ctl_option(c, "older-than"), *size = ctl_option(c, "max-size"),
		   *keep = ctl_option(c, "keep");
	struct pruning p = {.c = c,
		.all_users = ctl_option(c, "all-users") != NULL,
		.dry = ctl_option(c, "dry-run") != NULL};
	int status;

	if (age != NULL && !with_unit(age, "dhm", times, &p.seconds))
		return ctl_usage(c, "--older-than %s: give a number and d, h or m, as in 30d", age);
	if (size != NULL && !with_unit(size, "GMK", sizes, &p.bytes))
		return ctl_usage(c, "--max-size %s: give a number and G, M or K, as in 2G", size);
	if (keep != NULL && !a_number(keep, &p.keep))
		return ctl_usage(c, "--keep %s: give a number of sessions, 1 or more", keep);
	if (age == NULL && size == NULL && keep == NULL)
		return ctl_usage(c, "say which sessions: give --older-than, --max-size or --keep");
	if (daemon_of_sessions(&p.rpc, &c->err) < 0)
		return ctl_fail(c);
	status = prune_all(&p);
	rpc_close(p.rpc);
	return status;
}

/* clang-format off */
static const struct option_def prune_options[] = {
	{0, "older-than", "AGE",  "sessions that ended longer ago: 30d, 12h, 90m", NULL},
	{0, "max-size",   "SIZE", "the oldest, until what is left takes less: 2G, 500M", NULL},
	{0, "keep",       "N",    "keep each user's newest N; alone: delete all but these", NULL},
	{0, "all-users",  NULL,   "of all users (root, group protond); else your own", NULL},
	{0, "dry-run",    NULL,   "only say which would go", NULL},
	{0, NULL, NULL, NULL, NULL},
};

const struct command command_prune = {.name = "prune",
	.run = cmd_prune,
	.args = "",
	.help = "remove old sessions",
	.more =
		"Deletes finalized sessions, the oldest first. --max-size counts your sessions; with --all-users, the\n"
		"whole database. Others are served meanwhile. Ctrl-C ends it; what was deleted by then stays deleted.\n",
	.examples =
		"protonctl prune --older-than 30d\n"
		"protonctl prune --max-size 2G --dry-run\n"
		"protonctl prune --keep 20\n",
	.options = prune_options};
/* clang-format on */
