/* SPDX-License-Identifier: MIT. jobs.c: which jobs there are. */
#include "jobs.h"

#include <stdlib.h>
#include <string.h>

#include "attached.h"
#include "daemon.h"
#include "words.h"

#define TEXT_SHOWN   1024u
#define SESSIONS_MAX 1024u /* as many as the fold has */

/* A value of the info text: NUL-separated KEY=VALUE. */
static const char *info_value(
	const char *info, uint32_t bytes, const char *key, char *buf, size_t n)
{
	const size_t key_n = strlen(key);
	uint32_t at = 0;

	buf[0] = '\0';
	while (at < bytes) {
		const size_t len = strnlen(info + at, bytes - at);

		if (len > key_n && memcmp(info + at, key, key_n) == 0 && info[at + key_n] == '=') {
			const size_t v = len - key_n - 1 < n ? len - key_n - 1 : n - 1;

			memcpy(buf, info + at + key_n + 1, v);
			buf[v] = '\0';
			return buf;
		}
		at += (uint32_t)len + 1;
	}
	return buf;
}

/* The same, as it is shown. */
static void info_clean(const char *info, uint32_t bytes, const char *key, char *buf, size_t n)
{
	char text[TEXT_SHOWN];

	info_value(info, bytes, key, text, sizeof(text));
	words_field(buf, n, text, sizeof(text));
}

/* --- every attached job --- */

struct each_live {
	const struct daemon *d;
	live_job_fn *fn;
	void *arg;
};

static void live_of_fold(void *arg, const struct fold_process *p)
{
	const struct each_live *l = arg;
	const struct live_job j = {.pid = p->pid != 0 ? p->pid : p->ns_pid,
		.uid = p->uid,
		.ring = p->ring,
		.command = p->command != NULL ? p->command : ""};

	if (!p->ended)
		l->fn(l->arg, &j);
}

static void live_of_intake(void *arg, uint32_t pid, uint32_t uid, const uint8_t ring[16],
	const char *info, uint32_t info_bytes, uint32_t gpu_state, const char *gpu_text)
{
	const struct each_live *l = arg;
	struct fold_process known;
	char command[TEXT_SHOWN];
	const struct live_job j = {.pid = pid,
		.uid = uid,
		.command = info_value(info, info_bytes, "command", command, sizeof(command))};

	(void)gpu_state;
	(void)gpu_text;
	if (ring == NULL || !fold_get_process(l->d->fold, ring, &known))
		l->fn(l->arg, &j);
}

void jobs_each_live(const struct daemon *d, live_job_fn *fn, void *arg)
{
	struct each_live l = {.d = d, .fn = fn, .arg = arg};

	fold_each_process(d->fold, live_of_fold, &l);
	attached_each(d->intake, live_of_intake, &l);
}

struct of_pid {
	const struct daemon *d;
	const struct asker *who;
	uint32_t pid, n, uid;
};

static void of_pid_look(void *arg, const struct live_job *j)
{
	struct of_pid *o = arg;

	if (j->pid != o->pid || !asker_may(o->who, j->uid) ||
		(j->ring != NULL && !attached_lives(o->d->intake, j->ring)))
		return;
	o->n = o->uid == j->uid ? o->n + 1 : 1;
	o->uid = j->uid;
}

uint32_t jobs_of_pid(const struct daemon *d, const struct asker *a, uint32_t pid, uint32_t *ret_uid)
{
	struct of_pid o = {.d = d, .who = a, .pid = pid};

	jobs_each_live(d, of_pid_look, &o);
	*ret_uid = o.uid;
	return o.n;
}

/* --- those that are shown --- */

struct job_list {
	const struct daemon *d;
	const struct asker *who;
	bool all;
	job_view_fn *fn;
	void *arg;
	int64_t in[SESSIONS_MAX]; /* of one job, that the asker may see */
};

static void job_of_fold(void *arg, const struct fold_process *p)
{
	struct job_list *l = arg;
	struct job_view j = {.process = p,
		.pid = p->pid,
		.uid = p->uid,
		.gpu_state = p->gpu_state,
		.rank = p->rank,
		.command = p->command,
		.cwd = p->cwd,
		.gpu_text = p->gpu_text,
		.sessions = l->in};

	if (!asker_may(l->who, p->uid) || (p->ended && !l->all))
		return;
	j.n_sessions = fold_sessions_of(p, asker_sees(l->who), l->in, SESSIONS_MAX);
	l->fn(l->arg, &j);
}

/* A job that has no ring yet: nothing is recorded of it. */
static void job_of_intake(void *arg, uint32_t pid, uint32_t uid, const uint8_t ring[16],
	const char *info, uint32_t info_bytes, uint32_t gpu_state, const char *gpu_text)
{
	struct job_list *l = arg;
	struct fold_process known;
	char command[TEXT_SHOWN], cwd[TEXT_SHOWN], rank[TEXT_SHOWN];
	struct job_view j = {.pid = pid,
		.uid = uid,
		.gpu_state = gpu_state,
		.rank = -1,
		.command = command,
		.cwd = cwd,
		.gpu_text = gpu_text,
		.sessions = l->in};

	if (!asker_may(l->who, uid) || (ring != NULL && fold_get_process(l->d->fold, ring, &known)))
		return;
	info_clean(info, info_bytes, "command", command, sizeof(command));
	info_clean(info, info_bytes, "cwd", cwd, sizeof(cwd));
	info_value(info, info_bytes, "rank", rank, sizeof(rank));
	if (*rank != '\0')
		j.rank = strtol(rank, NULL, 10);
	l->fn(l->arg, &j);
}

int query_jobs(struct daemon *d, const struct asker *a, bool all, job_view_fn *fn, void *arg)
{
	struct job_list *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->d = d;
	l->who = a;
	l->all = all;
	l->fn = fn;
	l->arg = arg;
	fold_each_process(d->fold, job_of_fold, l);
	attached_each(d->intake, job_of_intake, l);
	free(l);
	return 0;
}
