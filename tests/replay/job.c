/* SPDX-License-Identifier: MIT. job.c: pd_replay_job: a job whose GPU is a recording.
 *
 * PROTOND_CUPTI_PATH=STUB PD_REPLAY_DUMP=FILE pd_replay_job [NAME [hatchet]]: opens a session
 * through libprotond, as any job, then plays the dump: the recorded threads enter the recorded
 * scopes and "launch". With a format it ends the session where the recording ended; without, it
 * ends as the recorded program did: what CUPTI gave only in the exit handler's forced flush comes
 * then. PD_REPLAY_FORK: the first thread in a scope forks a child there, which has a session and a
 * scope of its own, "child". PD_REPLAY_STOP=N: it stops (SIGSTOP) where it leaves its n-th scope.
 * Exit status 0, 1 on any failure.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protond.h"
#include "replay.h"

static struct {
	const char *name, *format;
	int session;
	int failed;
	bool forks;
	_Atomic int stop_in; /* scopes */
	pthread_mutex_t fork_lock;
} job = {.fork_lock = PTHREAD_MUTEX_INITIALIZER};

static void say(const char *what, int r)
{
	if (r >= 0)
		return;
	(void)fprintf(stderr, "pd_replay_job: %s: %s (%s)\n", what, strerror(-r), protond_error());
	job.failed = 1;
}

static void child(void)
{
	int session = protond_start("child", NULL);

	say("start", session);
	protond_scope_enter(protond_name("child"));
	protond_scope_exit();
	say("deactivate", protond_deactivate(session, PROTOND_FLUSH));
	say("finalize", protond_finalize(session, NULL));
	exit(job.failed);
}

/* While the others go on. */
static void fork_once(void)
{
	int status = -1;
	pid_t pid = -1;

	(void)pthread_mutex_lock(&job.fork_lock);
	if (job.forks) {
		job.forks = false;
		pid = fork();
		if (pid == 0)
			child();
		if (waitpid(pid, &status, 0) != pid || status != 0) {
			(void)fprintf(stderr, "pd_replay_job: the child ended with %#x\n", status);
			job.failed = 1;
		}
	}
	(void)pthread_mutex_unlock(&job.fork_lock);
}

static void enter(void *user, enum replay_step kind, const char *name)
{
	const uint32_t id = protond_name(name);

	(void)user;
	if (kind == REPLAY_STATE)
		protond_state_enter(id);
	else if (kind == REPLAY_OP)
		protond_op_enter(id);
	else
		protond_scope_enter(id);
	if (kind == REPLAY_SCOPE)
		fork_once();
}

static void leave(void *user, enum replay_step kind)
{
	(void)user;
	if (kind == REPLAY_STATE)
		protond_state_exit();
	else if (kind == REPLAY_OP)
		protond_op_exit();
	else
		protond_scope_exit();
	if (kind == REPLAY_SCOPE && atomic_fetch_sub(&job.stop_in, 1) == 1)
		(void)kill(getpid(), SIGSTOP);
}

/* The recorded agent went armed or on or off here. Armed is the environment's: PROTOND_GPU=armed.
 */
static void level(void *user, uint32_t to)
{
	(void)user;
	if (to == 2 && job.session < 0) {
		job.session = protond_start(job.name, NULL);
		say("start", job.session);
	} else if (to < 2 && job.session >= 0 && job.format != NULL) {
		say("deactivate", protond_deactivate(job.session, PROTOND_FLUSH));
		say("finalize", protond_finalize(job.session, job.format));
		job.session = -1;
	}
}

/* What libcuda does inside cuInit(): under `protonctl run` the agent waits for it. */
static void play_cuda_init(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *h = path != NULL ? dlopen(path, RTLD_NOW) : NULL;
	void *p = h != NULL ? dlsym(h, "InitializeInjection") : NULL;
	int (*init)(void);

	memcpy(&init, &p, sizeof(init));
	if (p != NULL)
		(void)init();
}

int main(int argc, char **argv)
{
	const struct replay_ops ops = {.enter = enter, .exit = leave, .level = level};
	const char *stub = getenv("PROTOND_CUPTI_PATH");
	void *h = stub != NULL ? dlopen(stub, RTLD_NOW) : NULL;
	void *p = h != NULL ? dlsym(h, "pd_replay_run") : NULL;
	struct replay_told told = {0};
	pd_replay_run_fn *run;
	int r;

	job.name = argc > 1 ? argv[1] : "replay";
	job.format = argc > 2 ? argv[2] : NULL;
	job.session = -1;
	job.forks = getenv("PD_REPLAY_FORK") != NULL;
	job.stop_in = getenv("PD_REPLAY_STOP") != NULL ? atoi(getenv("PD_REPLAY_STOP")) : 0;
	if (p == NULL) {
		(void)fprintf(stderr, "pd_replay_job: PROTOND_CUPTI_PATH is not the replay stub\n");
		return 1;
	}
	memcpy(&run, &p, sizeof(run));
	play_cuda_init();
	r = run(&ops, &told);
	say("replay", r);
	level(NULL, 0); /* a recording that was cut short has no end */
	(void)fprintf(stderr,
		"pd_replay_job: %" PRIu64 " callbacks played, %" PRIu64
		" of them unasked for, %" PRIu64 " records delivered\n",
		told.callbacks, told.skipped, told.records);
	return job.failed;
}
