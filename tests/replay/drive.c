/* SPDX-License-Identifier: MIT. drive.c: the real CUPTI backend over a fake core, fed by the stub.
 *
 * drive STUB: plays PD_REPLAY_DUMP and prints the tree that the backend's records make (standard
 * output, as expected does) and what it counted (standard error: one line of key=value). A thread
 * flushes all the while, as the agent's does.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_core.h"
#include "replay.h"

static struct {
	pthread_mutex_t lock; /* of the backend's verbs */
	pthread_cond_t ended;
	bool end;
	int failed;
} d = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static void enter(void *user, enum replay_step kind, const char *name)
{
	(void)user;
	fake_enter(kind == REPLAY_STATE ? PATH_KIND_STATE
		   : kind == REPLAY_OP  ? PATH_KIND_OP
					: PATH_KIND_SCOPE,
		name);
}

static void leave(void *user, enum replay_step kind)
{
	(void)user;
	(void)kind;
	fake_exit();
}

static void level(void *user, uint32_t to)
{
	struct backend_error e = {0};
	bool residual;
	int r;

	(void)user;
	(void)pthread_mutex_lock(&d.lock);
	r = to == 0 ? backend_cupti.stop(false, &residual)
		    : backend_cupti.start(to == 1, getenv("DRIVE_TAKE") != NULL, &e);
	(void)pthread_mutex_unlock(&d.lock);
	if (r < 0) {
		(void)fprintf(stderr, "drive: start: %d %s\n", e.code, e.text);
		d.failed = r;
	}
}

static void *flusher(void *arg)
{
	struct timespec t;

	(void)pthread_mutex_lock(&d.lock);
	while (!d.end) {
		(void)backend_cupti.flush(false);
		(void)clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += 2000000;
		if (t.tv_nsec >= 1000000000) {
			t.tv_nsec -= 1000000000;
			t.tv_sec++;
		}
		(void)pthread_cond_timedwait(&d.ended, &d.lock, &t);
	}
	(void)pthread_mutex_unlock(&d.lock);
	return arg;
}

static pd_replay_run_fn *player(const char *stub)
{
	void *h = dlopen(stub, RTLD_NOW), *p = h != NULL ? dlsym(h, "pd_replay_run") : NULL;
	pd_replay_run_fn *run;

	memcpy(&run, &p, sizeof(run));
	return run;
}

static void tell(const struct replay_told *t, const struct backend_status *s)
{
	const struct ring_counts *c = agent_counts();

	(void)fprintf(stderr,
		"replay=%d cupti=%u callbacks=%" PRIu64 " skipped=%" PRIu64 " played=%" PRIu64
		" left_out=%" PRIu64 " unwalked=%" PRIu64 " launches=%" PRIu64 " kernels=%" PRIu64
		" copies=%" PRIu64 " sets=%" PRIu64 " unanswered=%" PRIu64 " running=%" PRIu64
		" untimed=%" PRIu64 " dropped=%" PRIu64 " refused=%" PRIu64 " invalid=%" PRIu64
		" unknown=%" PRIu64 " pending=%" PRIu64 "\n",
		s->replay, s->gpu.library_version, t->callbacks, t->skipped, t->records, t->dropped,
		t->unwalked, fake_records(REC_LAUNCH), fake_records(REC_KERNEL),
		fake_records(REC_COPY), fake_records(REC_SET), fake_unanswered(),
		fake_flagged(GPU_FLAG_RUNNING), fake_flagged(GPU_FLAG_UNTIMED), c->gpu_dropped,
		c->gpu_refused, c->gpu_invalid, c->gpu_unknown, backend_cupti.pending());
}

int main(int argc, char **argv)
{
	const struct replay_ops ops = {.enter = enter, .exit = leave, .level = level};
	struct replay_told told = {0};
	struct backend_status s = {0};
	struct backend_error e = {0};
	pd_replay_run_fn *run = argc == 2 ? player(argv[1]) : NULL;
	pthread_t thread;
	int r;

	if (run == NULL) {
		(void)fprintf(stderr, "usage: PD_REPLAY_DUMP=FILE drive STUB\n");
		return 2;
	}
	if (backend_cupti.probe(&s, &e) < 0)
		(void)fprintf(stderr, "drive: probe: %s\n", e.text);
	if (pthread_create(&thread, NULL, flusher, NULL) != 0)
		return 1;
	r = run(&ops, &told);
	(void)pthread_mutex_lock(&d.lock);
	d.end = true;
	(void)pthread_cond_signal(&d.ended);
	(void)pthread_mutex_unlock(&d.lock);
	(void)pthread_join(thread, NULL);
	fake_tree(stdout);
	tell(&told, &s);
	fake_reset();
	return r < 0 || d.failed < 0;
}
