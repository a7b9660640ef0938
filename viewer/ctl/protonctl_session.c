/* SPDX-License-Identifier: MIT. protonctl_session.c: the commands that make, change and end
 * sessions. */
#include "protonctl.h"

#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "formats.h"
#include "json.h"
#include "output.h"

#define EXPORT_TIMEOUT_MS 300000 /* a long timeline takes its time */

static const char *const shared_options[] = {"backend", "context", "data", "hook", "mode", "cpu"};

int session_params(struct ctl *c, struct wire_buf *b)
{
	const char *v;
	size_t i;

	for (i = 0; i < sizeof(shared_options) / sizeof(shared_options[0]); i++) {
		v = ctl_option(c, shared_options[i]);
		if (v != NULL)
			wire_kv_str(b, shared_options[i], v);
	}
	return 0;
}

/* A call whose only parameter is a session or a pid: 0, exit code printed else. */
static int call_one(struct ctl *c, const char *method, const char *key, const char *value,
	struct rpc_reply *ret)
{
	struct rpc *rpc;
	struct wire_buf *b;
	uint64_t pid;
	int code = ctl_open(c, &rpc);

	if (code < 0)
		return ctl_fail(c);
	b = rpc_begin(rpc, method);
	if (value != NULL && strcmp(key, "pid") == 0 && text_u64(value, INT32_MAX, &pid))
		wire_kv_u64(b, key, pid);
	else if (value != NULL)
		wire_kv_str(b, key, value);
	code = ctl_call(c, rpc, ret);
	rpc_close(rpc);
	return code < 0 ? ctl_fail(c) : CTL_OK;
}

static int change(struct ctl *c, const char *method, const char *done)
{
	struct rpc_reply r = {.fd = -1};
	const int code = call_one(c, method, "session", c->argv[0], &r);

	if (code == CTL_OK && !ctl_json(c, &r)) {
		text_put(stdout, c->argv[0], 0);
		(void)printf(" %s\n", done);
	}
	rpc_reply_free(&r);
	return code;
}

int cmd_stop(struct ctl *c)
{
	return change(c, "stop",
		"is stopped; `protonctl activate` goes on, `protonctl finalize` ends it");
}

int cmd_activate(struct ctl *c)
{
	return change(c, "activate", "records again");
}

static void say_unsettled(struct ctl *c, const struct rpc_reply *r)
{
	bool settled = true;

	(void)wire_get_bool(r->result, "settled", &settled);
	if (!settled)
		ctl_warn(c,
			"not every job has answered yet; `protonctl jobs` shows what each records");
}

static int pause_or_resume(struct ctl *c, const char *method, const char *done)
{
	struct rpc_reply r = {.fd = -1};
	uint64_t pid, n;
	int code;

	if (c->argc > 0 && !text_u64(c->argv[0], INT32_MAX, &pid))
		return ctl_usage(c, "%s is not a pid", c->argv[0]);
	code = call_one(c, method, "pid", c->argc > 0 ? c->argv[0] : NULL, &r);
	if (code == CTL_OK && !ctl_json(c, &r)) {
		n = wire_u64_or(r.result, "jobs", 0);
		(void)printf("%lu job%s %s\n", n, n == 1 ? "" : "s", done);
		say_unsettled(c, &r);
		ctl_warnings(c);
	}
	rpc_reply_free(&r);
	return code;
}

int cmd_pause(struct ctl *c)
{
	return pause_or_resume(c, "pause", "let go of CUPTI; `protonctl resume` takes it again");
}

int cmd_resume(struct ctl *c)
{
	return pause_or_resume(c, "resume", "may use CUPTI again");
}

/* --- start
 * ---------------------------------------------------------------------------------------- */

int cmd_start(struct ctl *c)
{
	const char *pid_text = ctl_option(c, "pid"), *match = ctl_option(c, "match");
	const bool all = ctl_option(c, "all") != NULL;
	struct rpc_reply r = {.fd = -1};
	struct wire_buf *b;
	struct rpc *rpc;
	uint64_t pid = 0, jobs;
	int code;

	if ((pid_text != NULL) + (match != NULL) + all != 1)
		return ctl_usage(c, "which jobs: exactly one of --pid, --all, --match");
	if (pid_text != NULL && (!text_u64(pid_text, INT32_MAX, &pid) || pid == 0))
		return ctl_usage(c, "--pid %s is not a pid", pid_text);
	if (ctl_open(c, &rpc) < 0)
		return ctl_fail(c);
	b = rpc_begin(rpc, "start");
	wire_kv_str(b, "name", c->argv[0]);
	if (pid != 0)
		wire_kv_u64(b, "pid", pid);
	if (all)
		wire_kv_bool(b, "all", true);
	if (match != NULL)
		wire_kv_str(b, "match", match);
	(void)session_params(c, b);
	code = ctl_call(c, rpc, &r);
	if (code == -ESRCH && !c->json) {
		(void)ctl_fail(c);
		(void)fputs("To make a shell's programs visible from now on:\n  ", stderr);
		env_line(stderr, rpc_daemon(rpc)->dir);
	}
	rpc_close(rpc);
	if (code < 0)
		return code == -ESRCH && !c->json ? CTL_NOT_FOUND : ctl_fail(c);
	if (!ctl_json(c, &r)) {
		jobs = wire_u64_or(r.result, "jobs", 0);
		text_put(stdout, c->argv[0], 0);
		(void)printf(" records: id %ld, %lu job%s now%s. End it with `protonctl finalize "
			     "%ld`.\n",
			wire_i64_or(r.result, "id", 0), jobs, jobs == 1 ? "" : "s",
			jobs == 0 ? ", and those that come" : "", wire_i64_or(r.result, "id", 0));
		say_unsettled(c, &r);
	}
	ctl_warnings(c);
	rpc_reply_free(&r);
	return CTL_OK;
}

/* --- finalize
 * ------------------------------------------------------------------------------------- */

int output_check(struct ctl *c, const char *path)
{
	struct err *e = &c->err;
	char dir[4096];
	struct stat st;

	if (format_of_file(path) == FORMAT_COUNT)
		return err_set(
			e, -EINVAL, "%s ends in no format that is known: " FORMAT_FILES, path);
	if (ctl_option(c, "force") == NULL && lstat(path, &st) == 0)
		return err_set(
			e, -EEXIST, "%s is there already; take another name, or --force", path);
	(void)snprintf(dir, sizeof(dir), "%s", path);
	if (access(dirname(dir), W_OK) < 0)
		return err_set(e, -errno, "%s cannot be written: %s", path, strerror(errno));
	return 0;
}

int cmd_finalize(struct ctl *c)
{
	const char *output = ctl_option(c, "output"), *timeout = ctl_option(c, "timeout");
	struct rpc_reply r = {.fd = -1};
	struct rpc *rpc;
	struct wire_buf *b;
	uint64_t seconds = 5;
	char id[24], db[CTL_DB_WORDS];
	int code;

	if (timeout != NULL && !text_u64(timeout, 60, &seconds))
		return ctl_usage(c, "--timeout %s: 0 to 60 seconds", timeout);
	if ((output != NULL && output_check(c, output) < 0) || ctl_open(c, &rpc) < 0)
		return ctl_fail(c);
	b = rpc_begin(rpc, "finalize");
	wire_kv_str(b, "session", c->argv[0]);
	wire_kv_u64(b, "timeout_ms", seconds * 1000);
	code = rpc_call(rpc, (int)(seconds * 1000) + RPC_TIMEOUT_MS, &r, &c->err);
	(void)snprintf(id, sizeof(id), "%ld", code == 0 ? wire_i64_or(r.result, "id", 0) : 0);
	ctl_db_words(rpc, db, sizeof(db));
	if (code == 0 && output != NULL)
		code = export_file(rpc, id, output, ctl_option(c, "force") != NULL, &c->err);
	rpc_close(rpc);
	if (code < 0) {
		rpc_reply_free(&r);
		return ctl_fail(c);
	}
	if (!ctl_json(c, &r)) {
		text_put(stdout, c->argv[0], 0);
		(void)printf(" is stored: id %s, %lu launches, %lu without a GPU record%s%s. Open "
			     "it with `%sprotonview tree %s`.\n",
			id, wire_u64_or(r.result, "launches", 0),
			wire_u64_or(r.result, "unmatched", 0), output != NULL ? ", in " : "",
			output != NULL ? output : "", db, id);
	}
	rpc_reply_free(&r);
	return CTL_OK;
}

/* --- delete, prune, shutdown
 * -------------------------------------------------------------------------- */

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
	(void)fputs(d->n_failed > 1 ? ",{\"session\":" : "{\"session\":", d->failed);
	json_text(d->failed, session, strlen(session));
	(void)fprintf(d->failed, ",\"code\":%d,\"text\":", e->code);
	json_text(d->failed, e->text, strlen(e->text));
	(void)fputc('}', d->failed);
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
		(void)fputs(d->n_gone > 0 ? "," : "", d->gone);
		json_value(d->gone, r.result);
	} else {
		text_put(stdout, wire_text(r.result, "name", name, sizeof(name)), 0);
		(void)printf(", id %ld, is deleted\n", wire_i64_or(r.result, "id", 0));
	}
	d->n_gone++;
	rpc_reply_free(&r);
}

int cmd_delete(struct ctl *c)
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
		(void)err_set(&c->err, -ENOMEM, "no memory to say what was deleted");
		d.status = ctl_fail(c);
	} else if (c->argc > 1 || d.n_failed == 0) {
		ctl_json_deleted(c, d.n_gone, gone, failed);
	}
	free(gone);
	free(failed);
	return d.status;
}

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
		(void)printf(", id %ld, is deleted\n", wire_i64_or(o, "id", 0));
	}
	(void)printf("%lu session%s deleted\n", n, n == 1 ? " is" : "s are");
}

int cmd_prune(struct ctl *c)
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
		return ctl_usage(c, "--older-than %s: a number and d, h or m: 30d", age);
	if (size != NULL && !with_unit(size, "GMK", sizes, &bytes))
		return ctl_usage(c, "--max-size %s: a number and G, M or K: 2G", size);
	if (age == NULL && size == NULL)
		return ctl_usage(c, "which ones: --older-than, --max-size, or both");
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

#define END_MS 10000

/* The daemon stores what it has, then ends: the next command must not meet it. */
static void await_end(int64_t pid)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0), .events = POLLIN};

	if (p.fd < 0)
		return; /* gone, or of another pid namespace */
	if (rpc_daemon_state(pid) != 0)
		(void)poll(&p, 1, END_MS);
	(void)close(p.fd);
}

int cmd_shutdown(struct ctl *c)
{
	struct rpc_reply r = {.fd = -1};
	struct rpc *rpc;
	int64_t pid;

	if (ctl_open(c, &rpc) < 0)
		return ctl_fail(c);
	pid = rpc_daemon(rpc)->pid;
	(void)rpc_begin(rpc, "stop_daemon");
	if (ctl_call(c, rpc, &r) < 0) {
		rpc_close(rpc);
		return ctl_fail(c);
	}
	rpc_close(rpc);
	await_end(pid);
	if (!ctl_json(c, &r))
		(void)puts("protond ends; jobs go on and are found again by the next one");
	rpc_reply_free(&r);
	return CTL_OK;
}

/* --- files
 * ---------------------------------------------------------------------------------------- */

/* name%h-%p-%q{RANK} → text. Appends; false: it does not fit. */
static bool append(char *ret, size_t n, const char *text, size_t bytes)
{
	const size_t have = strlen(ret);

	if (have + bytes >= n)
		return false;
	memcpy(ret + have, text, bytes);
	ret[have + bytes] = '\0';
	return true;
}

/* One %-item at p (behind the '%'): how many bytes it is long, 0: none, and its text. */
static size_t expand_item(const char *p, int64_t pid, char *text, size_t n)
{
	const char *end, *v;
	char name[128];

	text[0] = '\0';
	switch (*p) {
	case '%':
		(void)snprintf(text, n, "%%");
		return 1;
	case 'h':
		if (gethostname(text, n) < 0)
			(void)snprintf(text, n, "localhost");
		text[n - 1] = '\0';
		return 1;
	case 'p':
		(void)snprintf(text, n, "%ld", (long)pid);
		return 1;
	case 'q':
		end = strchr(p, '}');
		if (p[1] != '{' || end == NULL || (size_t)(end - p) >= sizeof(name))
			return 0;
		memcpy(name, p + 2, (size_t)(end - p) - 2);
		name[end - p - 2] = '\0';
		v = getenv(name);
		(void)snprintf(text, n, "%s", v != NULL ? v : "");
		return (size_t)(end - p) + 1;
	default:
		return 0;
	}
}

int expand_name(const char *text, int64_t pid, char *ret, size_t n, struct err *e)
{
	char item[512];
	const char *p = text;
	size_t k;

	ret[0] = '\0';
	while (*p != '\0') {
		k = strcspn(p, "%");
		if (!append(ret, n, p, k))
			return err_set(e, -ENAMETOOLONG, "'%s' is too long", text);
		p += k;
		if (*p == '\0')
			break;
		k = expand_item(p + 1, pid, item, sizeof(item));
		if (k == 0)
			return err_set(e, -EINVAL,
				"'%s': after %% comes h (host), p (pid), q{VARIABLE} or %%", text);
		if (!append(ret, n, item, strlen(item)))
			return err_set(e, -ENAMETOOLONG, "'%s' is too long", text);
		p += 1 + k;
	}
	return 0;
}

static int copy_fd(int from, FILE *to)
{
	char buf[4096];
	ssize_t n;

	if (lseek(from, 0, SEEK_SET) < 0)
		return neg_errno();
	while ((n = read(from, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || fwrite(buf, 1, (size_t)n, to) != (size_t)n)
			return neg_errno();
	}
	return 0;
}

static int place_file(int from, const char *path, bool force)
{
	struct err words = {0};
	struct output o;
	int r = output_open(path, &o, &words);

	return r < 0 ? r : output_close(path, &o, force, copy_fd(from, o.file), &words);
}

int export_file(struct rpc *r, const char *session, const char *path, bool force, struct err *e)
{
	struct wire_buf *b = rpc_begin(r, "export");
	struct rpc_reply reply = {.fd = -1};
	int code;

	wire_kv_str(b, "session", session);
	wire_kv_str(b, "format", format_names[format_of_file(path)]);
	code = rpc_call(r, EXPORT_TIMEOUT_MS, &reply, e);
	if (code < 0)
		return code;
	if (reply.fd < 0)
		code = err_set(e, -EPROTO, "protond sent no file for session %s", session);
	else
		code = place_file(reply.fd, path, force);
	rpc_reply_free(&reply);
	if (code < 0 && code != -EPROTO)
		(void)err_set(e, code,
			"%s was not written: %s; the session is stored: protonview export %s", path,
			strerror(-code), session);
	return code;
}
