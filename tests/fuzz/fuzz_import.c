/* SPDX-License-Identifier: MIT. fuzz_import.c: any bytes as another profiler's file. What becomes a
 * session is a sound one, with as many events as were said. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_profile.h"
#include "holder_rows.h"
#include "import.h"
#include "timeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

struct seen {
	uint64_t scopes, calls, work, values;
};

static void on_scope(struct timeline *w, const struct timeline_scope *s)
{
	struct seen *seen = w->mine;

	MUST(s->end_ns >= s->begin_ns);
	seen->scopes++;
	seen->calls += (s->flags & TRACE_CALL) != 0;
	seen->values += s->n_metrics;
}

static void on_metric(struct timeline *w, const struct held *h, uint64_t ns)
{
	struct seen *seen = w->mine;

	(void)h;
	(void)ns;
	seen->values++;
}

static void on_op(struct timeline *w, const struct timeline_op *o)
{
	struct seen *seen = w->mine;

	MUST(o->end_ns >= o->start_ns);
	seen->work++;
}

static int on_holders(void *arg, const struct holder_row *r)
{
	uint32_t i;

	(void)arg;
	for (i = 0; i < r->h->n_accounts; i++)
		MUST(r->h->account[i]->live <= r->h->account[i]->peak);
	return 0;
}

static void check_session(sqlite3 *db, const struct import_taken *taken)
{
	static const struct timeline_form form = {
		.scope = on_scope, .op = on_op, .metric = on_metric};
	struct seen seen = {0};
	struct profile *p = NULL;
	struct profile_select all = {0};
	struct err e = {0};
	struct export_left left = {0};

	MUST(holder_each(db, 1, NULL, on_holders, NULL, &e) == 0);
	MUST(profile_load(db, 1, &all, &p, &e) == 0);
	check_tree(p);
	profile_free(p);
	MUST(timeline_write(&form, &seen, db, 1, NULL, NULL, &left, &e) == 0);
	MUST(left.gone == 0 && left.summed == 0 && seen.scopes == taken->scopes &&
		seen.calls == taken->calls && seen.work == taken->kernels + taken->copies &&
		seen.values == taken->values);
}

static int file_of(const uint8_t *bytes, size_t n)
{
	const int fd = memfd_create("fuzz", MFD_CLOEXEC);

	MUST(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

/* Bytes of odd length are two files, as of two ranks. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const struct import_input in[] = {
		{file_of(bytes, n), "fuzz"}, {file_of(bytes, n), "fuzz, too"}};
	const struct import_options o = {.name = "fuzz", .in = in, .n_files = 1 + n % 2};
	struct import_taken taken;
	struct err e = {0};
	sqlite3 *db;
	int r;

	MUST(sqlite3_open(":memory:", &db) == SQLITE_OK);
	r = import_files(&o, db, &taken, &e);
	if (r == 0)
		check_session(db, &taken);
	else
		MUST(r < 0 && e.code == r && e.text[0] != '\0');
	(void)sqlite3_close(db);
	(void)close(in[0].fd);
	(void)close(in[1].fd);
	return 0;
}
