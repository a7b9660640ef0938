/* SPDX-License-Identifier: MIT. ended.c: what jobs that have ended left. */
#include "ended.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "daemon.h"
#include "inquire.h"
#include "must.h"
#include "store.h"
#include "store_ask.h"

#define ENDED_MAGIC   0x454e4445u
#define ENDED_BYTES   (256u << 10) /* of texts; nobody shows more in one answer */
#define COMMAND_SHOWN 1023u

/* INVARIANT: notes of one job stand together; job[i].note is set when all rows are there, for the
 * array of notes moves as it grows. */
struct ended {
	uint32_t magic;
	struct daemon *d;
	struct ended_wish wish;
	ended_fn *done;
	void *arg;
	struct arena *texts;
	size_t bytes;
	int64_t process; /* of the last row */
	struct ended_job *job;
	const char **note;
	uint32_t n_jobs, n_notes;
	bool more;
};

static struct ended *ended_of(void *p)
{
	struct ended *x = p;

	MUST(x != NULL && x->magic == ENDED_MAGIC);
	return x;
}

static void ended_free(struct ended *x)
{
	x->magic = 0;
	arena_free(x->texts);
	free(x->job);
	free(x->note);
	free(x);
}

/* --- on the store's thread --- */

static const char *keep(struct ended *x, const char *text, size_t most)
{
	const size_t n = strnlen(text, most);

	x->bytes += n;
	return arena_text(x->texts, text, n);
}

static int job_add(struct ended *x, const struct ended_row *r)
{
	struct ended_job *j = &x->job[x->n_jobs];

	*j = (struct ended_job){.pid = r->pid,
		.rank = r->rank,
		.ring_bytes = r->ring_bytes < sizeof(j->ring) ? r->ring_bytes : sizeof(j->ring),
		.command = keep(x, r->command != NULL ? r->command : "", COMMAND_SHOWN),
		.end = r->end != NULL ? keep(x, r->end, COMMAND_SHOWN) : NULL,
		.session = r->session,
		.session_name =
			keep(x, r->session_name != NULL ? r->session_name : "", COMMAND_SHOWN)};
	if (j->command == NULL || j->session_name == NULL || (r->end != NULL && j->end == NULL))
		return -ENOMEM;
	if (j->ring_bytes > 0)
		memcpy(j->ring, r->ring, j->ring_bytes);
	x->process = r->process;
	x->n_jobs++;
	return 0;
}

/* A row per note, or one of a job that has none. */
static int ended_add(void *arg, const struct ended_row *r)
{
	struct ended *x = ended_of(arg);

	if (x->bytes > ENDED_BYTES) {
		x->more = true;
		return 1;
	}
	if ((x->n_jobs == 0 || r->process != x->process) && job_add(x, r) < 0)
		return -ENOMEM;
	if (r->note == NULL)
		return 0;
	x->note[x->n_notes] = keep(x, r->note, SIZE_MAX);
	if (x->note[x->n_notes] == NULL)
		return -ENOMEM;
	x->n_notes++;
	x->job[x->n_jobs - 1].n_notes++;
	return 0;
}

static int ended_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct ended *x = ended_of(arg);
	const char *const *note;
	uint32_t i;
	int r = store_ask_ended(db, &x->wish, ended_add, x, e);

	note = x->note;
	for (i = 0; i < x->n_jobs; i++) {
		x->job[i].note = note;
		note += x->job[i].n_notes;
	}
	return r;
}

/* --- on the loop --- */

static void ended_on_done(void *arg, int r, const struct err *e)
{
	struct ended *x = ended_of(arg);
	const struct ended_list l = {.job = x->job, .n = x->n_jobs, .more = x->more};
	struct refusal no;

	if (r < 0)
		refuse_err(&no, e, NEXT_DOCTOR);
	x->done(x->arg, r < 0 ? &no : NULL, r < 0 ? NULL : &l);
	ended_free(x);
}

void query_ended(struct daemon *d, const struct asker *a, int64_t session, uint32_t pid,
	ended_fn *done, void *arg)
{
	struct ended *x = calloc(1, sizeof(*x));
	struct refusal no;

	if (x != NULL) {
		*x = (struct ended){.magic = ENDED_MAGIC,
			.d = d,
			.wish = {.session = session, .uid = asker_sees(a), .pid = pid},
			.done = done,
			.arg = arg,
			.texts = arena_new(),
			.job = calloc(STORE_ASK_ROWS, sizeof(*x->job)),
			.note = calloc(STORE_ASK_ROWS, sizeof(*x->note))};
		if (x->texts != NULL && x->job != NULL && x->note != NULL) {
			inquire(d, a->uid, ended_work, x, ended_on_done);
			return;
		}
		ended_free(x);
	}
	refuse_memory(&no);
	done(arg, &no, NULL);
}
