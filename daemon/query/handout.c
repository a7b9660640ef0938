/* SPDX-License-Identifier: MIT. handout.c: one session as a file that is handed out. */
#include "handout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "change.h"
#include "daemon.h"
#include "memfd.h"
#include "must.h"
#include "store.h"
#include "store_ask.h"

#define PORTABLE_MAGIC 0x504f5254u
#define EXPORT_MAGIC   0x4558504fu

struct portable {
	uint32_t magic;
	struct daemon *d;
	uint32_t uid;
	int64_t id;
	bool timeline;
	int fd; /* -1: none */
	int64_t bytes;
	portable_fn *done;
	void *arg;
};

static struct portable *portable_of(void *p)
{
	struct portable *x = p;

	MUST(x != NULL && x->magic == PORTABLE_MAGIC);
	return x;
}

/* On the store's thread. */
static int portable_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct portable *x = portable_of(arg);
	unsigned char *image = NULL;
	int r = store_portable(db, x->id, x->timeline, &image, &x->bytes, e);

	if (r < 0)
		return r;
	r = x->fd = memfd_of(image, (size_t)x->bytes);
	store_image_free(image);
	return r < 0 ? err_set(e, r, "no memory for the session's file: %s", strerror(-r)) : 0;
}

static void portable_on_done(void *arg, int r, const struct err *e)
{
	struct portable *x = portable_of(arg);
	struct refusal no;
	struct err words;

	if (r < 0) {
		refuse_err(&no, e, "`protonctl sessions` lists what is stored");
	} else {
		r = memfd_lend(x->d->lent, x->uid, &x->fd, &words);
		if (r < 0) {
			close(x->fd);
			refuse_err(&no, &words, LENT_HELP);
		}
	}
	x->done(x->arg, r < 0 ? &no : NULL, r < 0 ? -1 : x->fd, (uint64_t)x->bytes);
	x->magic = 0;
	free(x);
}

void query_portable(struct daemon *d, const struct asker *a, const struct session_ref *s,
	bool timeline, portable_fn *done, void *arg)
{
	struct portable *x = calloc(1, sizeof(*x));
	struct refusal no;

	if (x == NULL) {
		refuse_memory(&no);
		done(arg, &no, -1, 0);
		return;
	}
	*x = (struct portable){.magic = PORTABLE_MAGIC,
		.d = d,
		.uid = a->uid,
		.id = s->id,
		.timeline = timeline,
		.fd = -1,
		.done = done,
		.arg = arg};
	store_ask(d->store, STORE_LONG, portable_work, x, portable_on_done);
}

bool query_needs_portable(const struct asker *a)
{
	return a->uid != geteuid();
}

/* --- text of a format --- */

struct exporting {
	uint32_t magic;
	struct daemon *d;
	uint32_t uid;
	uint8_t session[16];
	char format[32];
	query_export_fn *done;
	void *arg;
};

static struct exporting *exporting_of(void *p)
{
	struct exporting *x = p;

	MUST(x != NULL && x->magic == EXPORT_MAGIC);
	return x;
}

static void exporting_end(
	struct exporting *x, const struct refusal *no, const struct export_result *result)
{
	x->done(x->arg, no, result);
	x->magic = 0;
	free(x);
}

static void export_on_written(
	void *arg, int r, const struct err *e, const struct export_result *result)
{
	struct refusal no;

	if (r < 0)
		refuse_err(&no, e,
			r == -EDQUOT ? LENT_HELP : "`protonctl help finalize` lists the formats");
	exporting_end(exporting_of(arg), r < 0 ? &no : NULL, r < 0 ? NULL : result);
}

static void export_drained(void *arg, const struct refusal *no)
{
	struct exporting *x = exporting_of(arg);

	if (no != NULL)
		exporting_end(x, no, NULL);
	else
		export_session(x->d, x->uid, x->session, x->format, 0, export_on_written, x);
}

void query_export(struct daemon *d, const struct asker *a, const struct session_ref *s,
	const char *format, query_export_fn *done, void *arg)
{
	struct exporting *x = calloc(1, sizeof(*x));
	struct refusal no;

	if (x == NULL) {
		refuse_memory(&no);
		done(arg, &no, NULL);
		return;
	}
	*x = (struct exporting){
		.magic = EXPORT_MAGIC, .d = d, .uid = a->uid, .done = done, .arg = arg};
	memcpy(x->session, s->uuid, 16);
	snprintf(x->format, sizeof(x->format), "%s", format);
	query_drain(d, s, export_drained, x);
}
