/* SPDX-License-Identifier: MIT. export.c: a stored session as text in a sealed memfd, made on the
 * storage thread: commit first, then load it as anybody would, then write the format. */
#include "loop.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile.h"

/* One list of what can be written. */
typedef int export_write_fn(const struct profile *p, char **ret_text, size_t *ret_bytes);
static const struct export_format {
	const char *name;
	export_write_fn *write;
} formats[] = {
	{"hatchet", hatchet_write},
	{"hatchet_msgpack", hatchet_write_msgpack},
};

struct export
{
	struct daemon *d;
	uint8_t session[16];
	const struct export_format *format;
	struct profile_select select;
	struct export_result result;
	export_done_fn *done;
	void *arg;
};

static int find_session(struct sqlite3 *db, const uint8_t uuid[16], int64_t *ret_id, char name[128])
{
	sqlite3_stmt *s = NULL;
	const unsigned char *text;
	int r = -ENOENT;

	if (sqlite3_prepare_v2(db, "SELECT id, name FROM session WHERE uuid = ?1", -1, &s, NULL) !=
		SQLITE_OK)
		return -EIO;
	if (sqlite3_bind_blob(s, 1, uuid, 16, SQLITE_STATIC) == SQLITE_OK &&
		sqlite3_step(s) == SQLITE_ROW) {
		*ret_id = sqlite3_column_int64(s, 0);
		text = sqlite3_column_text(s, 1);
		(void)snprintf(name, 128, "%s", text != NULL ? (const char *)text : "");
		r = 0;
	}
	(void)sqlite3_finalize(s);
	return r;
}

static int sealed_memfd(const char *text, size_t bytes)
{
	const int fd = memfd_create("protond-export", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t at = 0;
	ssize_t n;
	int r;

	if (fd < 0)
		return neg_errno();
	while (at < bytes) {
		n = write(fd, text + at, bytes - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			goto fail;
		at += (size_t)n;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0 &&
		lseek(fd, 0, SEEK_SET) == 0)
		return fd;
fail:
	r = neg_errno();
	(void)close(fd);
	return r;
}

/* Storage thread. */
static int export_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct export *x = arg;
	struct profile *p;
	size_t bytes;
	char *text;
	int64_t id;
	int r = find_session(db, x->session, &id, x->result.name);

	if (r < 0)
		return err_set(e, r, "the session is not in the database");
	r = profile_load(db, id, &x->select, &p, e);
	if (r < 0)
		return r;
	r = x->format->write(p, &text, &bytes);
	profile_free(p);
	if (r < 0)
		return err_set(e, r, "the session cannot be written as %s", x->format->name);
	x->result.fd = sealed_memfd(text, bytes);
	x->result.bytes = bytes;
	free(text);
	return x->result.fd < 0 ? err_set(e, x->result.fd, "no memory for %zu bytes of %s", bytes,
					  x->format->name)
				: 0;
}

static void export_on_done(void *arg, int r, const struct err *e)
{
	struct export *x = arg;

	x->done(x->arg, r, e, r == 0 ? &x->result : NULL);
	free(x);
}

static void export_on_stored(void *arg, int r, const struct err *e)
{
	struct export *x = arg;

	if (r < 0)
		export_on_done(x, r, e);
	else
		store_call(x->d->store, export_work, x, export_on_done);
}

static void export_fail(export_done_fn *done, void *arg, int r, const char *words)
{
	struct err e;

	(void)err_set(&e, r, "%s", words);
	done(arg, r, &e, NULL);
}

void export_session(struct daemon *d, const uint8_t session[16], const char *format,
	uint32_t phases, export_done_fn *done, void *arg)
{
	struct export *x;
	size_t i;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (strcmp(formats[i].name, format) == 0)
			break;
	}
	if (i == sizeof(formats) / sizeof(formats[0])) {
		export_fail(done, arg, -EINVAL, "unknown format: use hatchet or hatchet_msgpack");
		return;
	}
	x = calloc(1, sizeof(*x));
	if (x == NULL) {
		export_fail(done, arg, -ENOMEM, "no memory for an export");
		return;
	}
	x->d = d;
	x->format = &formats[i];
	x->select = (struct profile_select){.one_phase = phases > 0, .phase = phases - 1};
	x->result.fd = -1;
	x->done = done;
	x->arg = arg;
	memcpy(x->session, session, 16);
	daemon_commit(d, export_on_stored, x);
}
