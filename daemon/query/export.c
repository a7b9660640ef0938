/* SPDX-License-Identifier: MIT. export.c: a stored session as text in a sealed memfd: commit first,
 * then load it as anybody would, then write the format; a tree on a thread of the store's. */
#include "export.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon.h"
#include "export_format.h"
#include "memfd.h"
#include "must.h"
#include "profile.h"
#include "store.h"
#include "store_ask.h"

#define EXPORT_BYTES_MAX (1ull << 30)
#define EXPORT_MAGIC     0x45585054u
#define TIMELINES_MAX    4u /* written at once; the others wait */
#define ENDING           "protond is shutting down; the session is stored"

struct export
{
	uint32_t magic;
	struct daemon *d;
	uint8_t session[16];
	const struct export_format *format;
	struct profile_select select;
	struct export_result result;
	export_done_fn *done;
	void *arg;
	uint32_t uid; /* who gets it */
	/* a timeline */
	uv_thread_t thread;
	uv_async_t async; /* its thread is done */
	struct export *next;
	struct err err;
	int r, fd;
	bool begun;
	_Atomic bool cancelled;
};

static struct export *export_of(void *p)
{
	struct export *x = p;

	MUST(x != NULL && x->magic == EXPORT_MAGIC);
	return x;
}

/* Done with, told and off the list. */
static void export_free(struct export *x)
{
	x->magic = 0;
	free(x);
}

/* On the store's thread for what is long. */
static int export_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct export *x = export_of(arg);
	struct profile *p;
	size_t bytes;
	char *text;
	int64_t id;
	int r = store_ask_id(db, x->session, &id, x->result.name, e);

	if (r < 0)
		return r;
	r = profile_load(db, id, &x->select, &p, e);
	if (r < 0)
		return r;
	r = x->format->tree(p, &text, &bytes);
	profile_free(p);
	if (r < 0)
		return err_set(e, r, "the session cannot be written as %s", x->format->name);
	x->result.fd = memfd_of(text, bytes);
	x->result.bytes = bytes;
	free(text);
	return x->result.fd < 0 ? err_set(e, x->result.fd, "no memory for %zu bytes of %s", bytes,
					  x->format->name)
				: 0;
}

static void export_tell(struct export *x, int r, const struct err *e)
{
	struct err words;

	if (r == 0) {
		r = memfd_lend(x->d->lent, x->uid, &x->result.fd, &words);
		if (r < 0)
			close(x->result.fd);
		e = &words;
	}
	x->done(x->arg, r, e, r == 0 ? &x->result : NULL);
}

static void export_on_done(void *arg, int r, const struct err *e)
{
	export_tell(export_of(arg), r, e);
	export_free(arg);
}

/* --- a timeline --- */

/* A thread and a connection of its own, which hold up nobody. Not a thread of libuv's pool: that
 * ends the process when there are no threads to be had.
 */

/* What fwrite() ends in: a ceiling, and an end that can be asked for. */
static ssize_t timeline_put(void *cookie, const char *bytes, size_t n)
{
	struct export *x = export_of(cookie);
	ssize_t done;

	errno = x->cancelled ? ECANCELED : EFBIG;
	if (x->cancelled || x->result.bytes + n > EXPORT_BYTES_MAX)
		return 0;
	done = write(x->fd, bytes, n);
	x->result.bytes += done > 0 ? (uint64_t)done : 0;
	return done < 0 ? 0 : done;
}

static int timeline_write(struct export *x, struct sqlite3 *db, int64_t id)
{
	const cookie_io_functions_t io = {.write = timeline_put};
	FILE *to = fopencookie(x, "w", io);
	int r;

	if (to == NULL)
		return err_set(&x->err, -ENOMEM, "no memory for an export");
	setvbuf(to, NULL, _IONBF, 0);
	r = x->format->timeline(db, id, &x->select, to, NULL, &x->err);
	fclose(to);
	if (r == -EFBIG)
		err_set(&x->err, r,
			"the timeline is over 1 GiB of JSON; `protonview export -f %s -o FILE` "
			"writes it "
			"of any length, --phase and --process less of it",
			x->format->name);
	if (r == -ECANCELED)
		err_set(&x->err, r, ENDING);
	return r;
}

static void timeline_read(struct export *x)
{
	struct sqlite3 *db = NULL;
	int64_t id;

	x->r = x->fd = memfd_new();
	if (x->r < 0)
		return;
	x->r = store_ask_open(store_path(x->d->store), &db, &x->err);
	if (x->r == 0)
		x->r = store_ask_id(db, x->session, &id, x->result.name, &x->err);
	if (x->r == 0)
		x->r = timeline_write(x, db, id);
	store_ask_close(db);
	if (x->r == 0)
		x->r = memfd_seal(x->fd);
}

static void timeline_work(void *arg)
{
	struct export *x = export_of(arg);

	timeline_read(x);
	uv_async_send(&x->async);
}

static void timeline_on_closed(uv_handle_t *h)
{
	export_free(export_of(h->data));
}

/* Off the list, its thread is over or never was: tells, and gives everything back. */
static void timeline_end(struct export *x)
{
	struct export **at;

	for (at = &x->d->exports; *at != x; at = &(*at)->next)
		;
	*at = x->next;
	x->result.fd = x->fd;
	if (x->r < 0 && x->fd >= 0)
		close(x->fd);
	if (x->r < 0 && x->err.code == 0)
		err_set(&x->err, x->r, "the timeline cannot be written: %s", strerror(-x->r));
	export_tell(x, x->r, &x->err);
	if (x->begun)
		uv_close((uv_handle_t *)&x->async, timeline_on_closed);
	else
		export_free(x);
}

static void timelines_go(struct daemon *d);

static void timeline_on_done(uv_async_t *async)
{
	struct export *x = export_of(async->data);
	struct daemon *d = x->d;

	uv_thread_join(&x->thread);
	timeline_end(x);
	timelines_go(d);
}

/* Signals are the loop thread's. */
static int timeline_begin(struct export *x)
{
	sigset_t all, old;
	int r = uv_async_init(&x->d->loop, &x->async, timeline_on_done);

	if (r < 0)
		return r;
	x->begun = true;
	x->async.data = x;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	r = uv_thread_create(&x->thread, timeline_work, x);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

/* The oldest that waits is the last on the list. */
static void timelines_go(struct daemon *d)
{
	struct export *x, *oldest;
	uint32_t running;
	int r;

	do {
		oldest = NULL;
		running = 0;
		for (x = d->exports; x != NULL; x = x->next) {
			running += x->begun;
			oldest = x->begun ? oldest : x;
		}
		if (oldest == NULL || running >= TIMELINES_MAX)
			return;
		r = d->ends ? err_set(&oldest->err, -ESHUTDOWN, ENDING) : timeline_begin(oldest);
		if (r == 0)
			continue; /* from here on it is the thread's */
		if (oldest->err.code == 0)
			err_set(&oldest->err, r, "no thread to write the timeline: %s",
				uv_strerror(r));
		oldest->r = r;
		timeline_end(oldest);
	} while (true);
}

void export_stop(struct daemon *d)
{
	struct export *x;

	MUST(d->ends);
	for (x = d->exports; x != NULL; x = x->next)
		x->cancelled = true;
	while (d->exports != NULL)
		uv_run(&d->loop, UV_RUN_ONCE);
}

static void export_on_stored(void *arg, int r, const struct err *e)
{
	struct export *x = export_of(arg);

	struct err ending;

	if (r < 0) {
		export_on_done(x, r, e);
	} else if (x->d->ends) { /* its store may be gone before a thread is done with it */
		export_on_done(x, err_set(&ending, -ESHUTDOWN, ENDING), &ending);
	} else if (x->format->timeline == NULL) {
		store_ask(x->d->store, STORE_LONG, export_work, x, export_on_done);
	} else {
		x->next = x->d->exports;
		x->d->exports = x;
		timelines_go(x->d);
	}
}

static void export_fail(export_done_fn *done, void *arg, int r, const char *words)
{
	struct err e;

	err_set(&e, r, "%s", words);
	done(arg, r, &e, NULL);
}

void export_session(struct daemon *d, uint32_t uid, const uint8_t session[16], const char *format,
	uint32_t phases, export_done_fn *done, void *arg)
{
	struct export *x;

	if (format_of(format) == FORMAT_COUNT) {
		export_fail(done, arg, -EINVAL, "unknown format: use " FORMAT_WORDS);
		return;
	}
	if (format_from(format_of(format)) == FORMAT_FROM_FOLDER) {
		export_fail(done, arg, -EINVAL, FORMAT_IS_FOLDER);
		return;
	}
	x = calloc(1, sizeof(*x));
	if (x == NULL) {
		export_fail(done, arg, -ENOMEM, "no memory for an export");
		return;
	}
	x->magic = EXPORT_MAGIC;
	x->d = d;
	x->format = &export_formats[format_of(format)];
	x->select = (struct profile_select){
		.one_phase = phases > 0, .phase = phases - 1, .file = x->format->protons};
	x->result.fd = x->fd = -1;
	x->done = done;
	x->arg = arg;
	x->uid = uid;
	memcpy(x->session, session, 16);
	daemon_commit(d, export_on_stored, x);
}
