/* SPDX-License-Identifier: MIT. protonctl_file.c: the file that a session is written to. */
#include "protonctl_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <spawn.h>
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

/* --- by protonview, which has the names that people read */

/* What it complains of, without its name. */
static void read_complaint(int fd, char text[static 400])
{
	const char *prefix = "protonview: ";
	char more[256];
	size_t n = 0;
	ssize_t got;

	do { /* to the end, or its next word would end it */
		got = n < 399 ? read(fd, text + n, 399 - n) : read(fd, more, sizeof(more));
		n += n < 399 && got > 0 ? (size_t)got : 0;
	} while (got > 0 || (got < 0 && errno == EINTR));
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	n = strncmp(text, prefix, strlen(prefix)) == 0 ? strlen(prefix) : 0;
	memmove(text, text + n, strlen(text + n) + 1);
}

static int spawn_view(char *const argv[], int *ret_fd, pid_t *ret_pid, struct err *e)
{
	posix_spawn_file_actions_t actions;
	char view[4096];
	int fd[2], code;

	if (self_find("protonview", view, sizeof(view)) < 0)
		return err_set(e, -ENOENT, "there is no protonview beside protonctl to write it");
	if (pipe2(fd, O_CLOEXEC) < 0)
		return err_set(e, neg_errno(), "%s", strerror(errno));
	code = posix_spawn_file_actions_init(&actions);
	if (code == 0) {
		(void)posix_spawn_file_actions_adddup2(&actions, fd[1], STDERR_FILENO);
		(void)posix_spawn_file_actions_adddup2(
			&actions, fd[1], STDOUT_FILENO); /* ours is a job's */
		code = posix_spawn(ret_pid, view, &actions, NULL, argv, environ);
		(void)posix_spawn_file_actions_destroy(&actions);
	}
	(void)close(fd[1]);
	*ret_fd = fd[0];
	if (code == 0)
		return 0;
	(void)close(fd[0]);
	return err_set(e, -code, "%s: %s", view, strerror(code));
}

static int export_view(
	const struct rpc *r, const char *session, const char *path, bool force, struct err *e)
{
	char of[64], to[4096], format[32] = "", why[400];
	char *const page[] = {(char[]){"protonview"}, (char[]){"report"}, of, (char[]){"-o"}, to,
		force ? (char[]){"--force"} : NULL, NULL};
	char *const file[] = {(char[]){"protonview"}, (char[]){"export"}, of, (char[]){"-f"},
		format, (char[]){"-o"}, to, force ? (char[]){"--force"} : NULL, NULL};
	int fd = -1, status = 0, code;
	pid_t pid;

	snprintf(of, sizeof(of), "%s", session);
	if (!is_page(path))
		snprintf(format, sizeof(format), "%s", format_names[format_of_file(path)]);
	if ((size_t)snprintf(to, sizeof(to), "%s", path) >= sizeof(to))
		return err_set(e, -ENAMETOOLONG, "its name is too long");
	(void)setenv("PROTOND_RUNTIME_DIR", rpc_daemon(r)->dir, 1);
	(void)unsetenv("PROTOND_DB"); /* the daemon's own, whatever it says */
	code = spawn_view(is_page(path) ? page : file, &fd, &pid, e);
	if (code < 0)
		return code;
	read_complaint(fd, why);
	(void)close(fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	/* 4: it is there without what nobody has any more, and the session says so. */
	if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 4))
		return 0;
	return err_set(e, -EIO, "%s", *why != '\0' ? why : "protonview was ended");
}

/* --- by the daemon: formats that Proton has, which keep names as they were recorded */

static int export_daemon(
	struct rpc *r, const char *session, const char *path, bool force, struct err *e)
{
	struct rpc_reply reply = {.fd = -1};
	struct wire_buf *b;
	int code;

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
	return code < 0 && code != -EPROTO ? err_set(e, code, "%s", strerror(-code)) : code;
}

int export_file(struct rpc *r, const char *session, const char *path, bool force, struct err *e)
{
	struct err why = {0};
	const int code = !is_page(path) && format_is_protons(format_of_file(path))
				 ? export_daemon(r, session, path, force, &why)
				 : export_view(r, session, path, force, &why);

	if (code < 0)
		err_set(e, code,
			"%s was not written: %s; the session is stored, and `protonview %s %s "
			"-o FILE` writes it",
			path, why.text, is_page(path) ? "report" : "export", session);
	return code;
}
