/* SPDX-License-Identifier: MIT. status.c: how the daemon is, and what its jobs' GPU libraries are.
 */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attached.h"
#include "daemon.h"
#include "fold.h"
#include "host_clock.h"
#include "journal.h"
#include "sink.h"
#include "store.h"

void query_identity(const struct daemon *d, struct daemon_identity *ret)
{
	*ret = (struct daemon_identity){.version = PROTOND_BUILD_VERSION,
		.db = store_path(d->store),
		.pid = (uint32_t)getpid(),
		.uid = geteuid(),
		.private = d->private};
	memcpy(ret->store, d->store_uuid, 16);
}

/* --- status --- */

struct totals {
	const struct asker *who;
	uint32_t sessions, processes;
	uint64_t events, drops, kernels, agent_ns;
	uint64_t drops_seen; /* of those that the asker may see */
	uint32_t forged;     /* processes, likewise */
	uint32_t gpu[GPU_RESIDUAL + 1];
	char gpu_text[256]; /* of one that the asker may see */
};

static void totals_session(void *arg, const struct fold_session *s)
{
	struct totals *t = arg;

	t->sessions += !session_is_over(s->state) ? 1 : 0;
}

/* Each job says what it likes of itself. */
static void add(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

static void totals_process(void *arg, const struct fold_process *p)
{
	struct totals *t = arg;
	const bool may = asker_may(t->who, p->uid);

	t->forged += p->forged && may;
	if (!p->forged) {
		add(&t->events, p->events);
		add(&t->drops, p->drops);
		add(&t->kernels, p->kernels);
		add(&t->agent_ns, p->agent_ns);
		add(&t->drops_seen, may ? p->drops : 0);
	}
	if (p->ended)
		return;
	t->processes++;
	if (p->gpu_state <= GPU_RESIDUAL)
		t->gpu[p->gpu_state]++;
	if (p->gpu_state == GPU_FAILED && p->gpu_text != NULL && asker_may(t->who, p->uid))
		snprintf(t->gpu_text, sizeof(t->gpu_text), "%s", p->gpu_text);
}

static uint64_t rss_bytes(void)
{
	uint64_t size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f == NULL)
		return 0;
	if (fscanf(f, "%lu %lu", &size, &pages) != 2)
		pages = 0;
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static double cpu_s(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return 0;
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static uint64_t file_bytes(const char *path, const char *suffix)
{
	char name[4096];
	struct stat st;

	if (snprintf(name, sizeof(name), "%s%s", path, suffix) >= (int)sizeof(name) ||
		stat(name, &st) < 0)
		return 0;
	return (uint64_t)st.st_size;
}

static void warn(struct daemon_status *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void warn(struct daemon_status *s, const char *fmt, ...)
{
	va_list ap;

	if (s->n_warnings == STATUS_WARNINGS)
		return;
	va_start(ap, fmt);
	vsnprintf(s->warning[s->n_warnings++], sizeof(s->warning[0]), fmt, ap);
	va_end(ap);
}

static void sessions_refused(
	const struct daemon *d, const struct asker *a, struct daemon_status *ret)
{
	const struct fold_refused r = fold_refused(d->fold);
	struct err e = {0};

	if (r.n == 0)
		return;
	fold_refused_words(d->fold, r.uid, r.code, &e);
	warn(ret, "%lu session%s refused, the last: %.250s", r.n, r.n == 1 ? " was" : "s were",
		asker_may(a, r.uid) ? e.text : "another user's");
}

static void rings_refused(const struct daemon *d, const struct asker *a, struct daemon_status *ret)
{
	const bool may = d->bad_ring_text[0] != '\0' && asker_may(a, d->bad_ring_uid);

	if (d->bad_rings > 0)
		warn(ret,
			"%lu ring%s refused: what a job wrote there breaks the rules of "
			"rings%s%.200s",
			d->bad_rings, d->bad_rings == 1 ? " was" : "s were",
			may ? ", the last: " : "", may ? d->bad_ring_text : "");
}

static void connections_refused(
	const struct daemon *d, const struct asker *a, struct daemon_status *ret)
{
	const bool may = d->refused_text[0] != '\0' && asker_may(a, d->refused_uid);

	if (d->refused_connections > 0)
		warn(ret, "%lu connections were refused%s%.250s", d->refused_connections,
			may ? ", the last: " : "", may ? d->refused_text : "");
}

/* What a sink beside the database did not get. */
static void sinks_behind(const struct daemon *d, struct daemon_status *ret)
{
	struct sink_state s[SINKS_MAX];
	const uint32_t n = sinks_state(d->sinks, s, SINKS_MAX);
	uint32_t i;

	for (i = 0; i < n; i++)
		if (!s[i].must_have && s[i].lost > 0)
			warn(ret, "%s did not get %lu batches%s: %.250s", s[i].name, s[i].lost,
				s[i].in_gap ? " and is behind" : "", s[i].last.text);
}

static void status_warnings(const struct daemon *d, const struct asker *a, const struct totals *t,
	struct daemon_status *ret)
{
	if (t->drops_seen > 0)
		warn(ret,
			"%lu events were dropped; `protonctl jobs --all` shows whose, and the tree "
			"of "
			"that session shows why",
			t->drops_seen);
	if (t->forged > 0)
		warn(ret,
			"%u job%s more events than there was time for, and %s not counted here; "
			"`protonctl jobs --all --json` says \"forged\" of %s",
			t->forged, t->forged == 1 ? " claims" : "s claim",
			t->forged == 1 ? "is" : "are", t->forged == 1 ? "it" : "them");
	if (t->gpu[GPU_FAILED] > 0)
		warn(ret, "%u job%s without GPU data%s%s", t->gpu[GPU_FAILED],
			t->gpu[GPU_FAILED] == 1 ? "" : "s", t->gpu_text[0] != '\0' ? ": " : "",
			t->gpu_text);
	rings_refused(d, a, ret);
	if (d->skipped_entries > 0)
		warn(ret,
			"%lu entr%s of the journal left out, because each ended protond twice; "
			"its log says which: please report them",
			d->skipped_entries, d->skipped_entries == 1 ? "y was" : "ies were");
	if (d->readings_dropped > 0)
		warn(ret,
			"%lu reading%s of GPUs and their host dropped, as the journal had no room: "
			"series have gaps there",
			d->readings_dropped, d->readings_dropped == 1 ? " was" : "s were");
	if (d->readings_refused > 0)
		warn(ret,
			"%lu message%s of protond-device refused: readings break their own rules; "
			"is it of another version?",
			d->readings_refused, d->readings_refused == 1 ? " was" : "s were");
	if (d->unable_jobs > 0 && asker_may(a, d->unable_uid))
		warn(ret, "%lu job%s could not record, the last: %.250s", d->unable_jobs,
			d->unable_jobs == 1 ? "" : "s", d->unable_text);
	sessions_refused(d, a, ret);
	if (d->held_back > 0 && asker_may(a, d->held_back_uid))
		warn(ret,
			"jobs of user %u wrote faster than the database takes it, and had to wait "
			"until their share of the journal was stored; what did not fit meanwhile "
			"was dropped",
			d->held_back_uid);
	if (d->given_up > 0 && asker_may(a, d->given_up_uid))
		warn(ret,
			"%lu ring%s of ended jobs given up, the last of user %u: one user may "
			"leave "
			"256 MiB that are not drained yet",
			d->given_up, d->given_up == 1 ? " was" : "s were", d->given_up_uid);
	sinks_behind(d, ret);
	connections_refused(d, a, ret);
	if (d->home_trouble.code < 0)
		warn(ret,
			"the journal has no place (%.200s): remove what is in its way; until then "
			"jobs are drained into the database",
			d->home_trouble.text);
	if (d->journal_trouble < 0)
		warn(ret,
			"the journal in %s cannot grow (%s); make room there, for until then "
			"nothing "
			"more is read from jobs",
			d->runtime, strerror(-d->journal_trouble));
	if (d->store_trouble.code < 0)
		warn(ret, "%s", d->store_trouble.text);
	else if (store_queued(d->store) > 8)
		warn(ret, "the database cannot keep up; is its disk slow or full?");
}

void query_status(const struct daemon *d, const struct asker *a, struct daemon_status *ret)
{
	const char *db = store_path(d->store);
	struct totals t = {.who = a};

	fold_each_session(d->fold, totals_session, &t);
	fold_each_process(d->fold, totals_process, &t);
	*ret = (struct daemon_status){
		.uptime_s = (double)(mono_ns() - d->started_mono_ns) * 1e-9,
		.cpu_s = cpu_s(),
		.agents_cpu_s = (double)t.agent_ns * 1e-9,
		.jobs = attached_jobs(d->intake),
		.sessions = t.sessions,
		.events = t.events,
		.kernels = t.kernels,
		.drops = t.drops,
		.journal_bytes = journal_bytes_since(d->journal, d->stored_position),
		.rss_bytes = rss_bytes(),
		.db_bytes = file_bytes(db, "") + file_bytes(db, "-wal"),
		.idle_exit_s = d->idle_exit_s,
		.unstored = d->store_lacks,
		.runtime_dir = d->runtime,
		.auto_session = d->auto_session,
	};
	memcpy(ret->gpu, t.gpu, sizeof(ret->gpu));
	status_warnings(d, a, &t, ret);
}

/* --- backends --- */

struct cupti_seen {
	const struct asker *who;
	bool may; /* the words are of a job that the asker may see */
	uint32_t version, driver, state;
	char path[256], text[256];
};

static void cupti_look(void *arg, const struct fold_process *p)
{
	struct cupti_seen *c = arg;
	const bool may = asker_may(c->who, p->uid);

	if ((p->cupti_version == 0 && p->gpu_state != GPU_FAILED) || (c->may && !may))
		return;
	if (c->may == may && c->version != 0 && p->cupti_version == 0)
		return; /* one job that works says more than one that does not */
	c->version = p->cupti_version;
	c->driver = p->driver_version;
	c->state = p->gpu_state;
	c->may = may;
	snprintf(c->path, sizeof(c->path), "%s", may && p->cupti_path != NULL ? p->cupti_path : "");
	snprintf(c->text, sizeof(c->text), "%s",
		!may                  ? "of another user's job"
		: p->gpu_text != NULL ? p->gpu_text
				      : "");
}

static void backend_item(
	struct backend_state *b, const char *name, const char *state, const char *text)
{
	b->name = name;
	b->state = state;
	snprintf(b->text, sizeof(b->text), "%s", text);
}

uint32_t query_backends(
	const struct daemon *d, const struct asker *a, struct backend_state ret[BACKENDS_MAX])
{
	struct cupti_seen c = {.who = a};
	char text[640];

	fold_each_process(d->fold, cupti_look, &c);
	if (c.version != 0) {
		snprintf(text, sizeof(text), "CUPTI %u, driver %u%s%s", c.version, c.driver,
			c.path[0] != '\0' ? ", " : "", c.path);
		backend_item(&ret[0], "cupti", c.state == GPU_FAILED ? "failed" : "works",
			c.state == GPU_FAILED ? c.text : text);
	} else if (c.state == GPU_FAILED) {
		backend_item(&ret[0], "cupti", "failed", c.text);
	} else {
		backend_item(&ret[0], "cupti", "unknown",
			"no job has used it since this daemon started; `protonctl doctor` looks "
			"for "
			"the library");
	}
	backend_item(&ret[1], "none", "works", "CPU scopes only");
	return BACKENDS_MAX;
}
