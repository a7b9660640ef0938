/* SPDX-License-Identifier: MIT. protonctl_file.c: the file that a session is written to. */
#include "protonctl_file.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats.h"
#include "output.h"
#include "protonctl_self.h"

#define EXPORT_TIMEOUT_MS 300000 /* a long timeline takes its time */

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

/* The %-item at p, which is behind the '%': returns its length in bytes, 0 if there is none, and
 * writes its text. */
static size_t expand_item(const char *p, int64_t pid, char *text, size_t n)
{
	const char *end, *v;
	char name[128];

	text[0] = '\0';
	switch (*p) {
	case '%':
		snprintf(text, n, "%%");
		return 1;
	case 'h':
		if (gethostname(text, n) < 0)
			snprintf(text, n, "localhost");
		text[n - 1] = '\0';
		return 1;
	case 'p':
		snprintf(text, n, "%ld", (long)pid);
		return 1;
	case 'q':
		end = strchr(p, '}');
		if (p[1] != '{' || end == NULL || (size_t)(end - p) >= sizeof(name))
			return 0;
		memcpy(name, p + 2, (size_t)(end - p) - 2);
		name[end - p - 2] = '\0';
		v = getenv(name);
		snprintf(text, n, "%s", v != NULL ? v : "");
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
				"'%s': only h (host), p (pid), q{VARIABLE} or %% may follow %%",
				text);
		if (!append(ret, n, item, strlen(item)))
			return err_set(e, -ENAMETOOLONG, "'%s' is too long", text);
		p += 1 + k;
	}
	return 0;
}

/* "run.html": the page, which protonview writes. */
static bool is_page(const char *path)
{
	const size_t n = strlen(path);

	return n > 5 && strcmp(path + n - 5, ".html") == 0;
}

int output_check(struct ctl *c, const char *path)
{
	struct err *e = &c->err;
	char dir[4096];
	struct stat st;

	if (format_of_file(path) == FORMAT_COUNT && !is_page(path))
		return err_set(
			e, -EINVAL, "%s: unknown format; the name must end in " OUTPUT_FILES, path);
	if (!is_page(path) && format_from(format_of_file(path)) == FORMAT_FROM_FOLDER)
		return err_set(e, -EINVAL, "%s: " FORMAT_IS_FOLDER, path);
	if (ctl_option(c, "force") == NULL && lstat(path, &st) == 0)
		return err_set(
			e, -EEXIST, "%s already exists; choose another name, or use --force", path);
	snprintf(dir, sizeof(dir), "%s", path);
	if (access(dirname(dir), W_OK) < 0)
		return err_set(e, -errno, "%s cannot be written: %s", path, strerror(errno));
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

/* In the child. It reads the database of the daemon that this program asked; standard output is a
 * job's. */
static _Noreturn void become_report(
	const char *program, const char *db, const char *session, const char *path, bool force)
{
	(void)setenv("PROTOND_DB", db, 1);
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	(void)execl(
		program, program, "report", session, "-o", path, force ? "--force" : NULL, NULL);
	_exit(127);
}

static int page_file(
	const struct rpc *r, const char *session, const char *path, bool force, struct err *e)
{
	char program[4096];
	int status = 0;
	pid_t pid;

	if (self_find("protonview", program, sizeof(program)) < 0)
		return err_set(e, -ENOENT,
			"%s was not written: there is no protonview beside protonctl", path);
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		become_report(program, rpc_daemon(r)->db, session, path, force);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(e, -EIO,
		"%s was not written; the session is stored, and `protonview report %s -o FILE` "
		"writes it",
		path, session);
}

int export_file(struct rpc *r, const char *session, const char *path, bool force, struct err *e)
{
	struct rpc_reply reply = {.fd = -1};
	struct wire_buf *b;
	int code;

	if (is_page(path))
		return page_file(r, session, path, force, e);
	b = rpc_begin(r, "export");
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
		err_set(e, code,
			"%s was not written: %s; the session is stored, and `protonview export %s "
			"-o FILE` writes it",
			path, strerror(-code), session);
	return code;
}
