/* SPDX-License-Identifier: MIT. end.c: the end of a program whose main thread has ended. Its process
 * ends with its last thread: but that would be one of ours, which never end. Parked thread. */
#include "end.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doorbell.h"
#include "info.h"

#define FIELD_STATE   3
#define FIELD_THREADS 20
#define FIELD_CODE    52

/* By a system call, or by a seccomp filter that kills threads: the kernel gives the process's parent
 * what the main thread ended with. */
static void end_as(int status)
{
	sigset_t one;

	if (WIFSIGNALED(status)) {
		sigemptyset(&one);
		sigaddset(&one, WTERMSIG(status));
		(void)signal(WTERMSIG(status), SIG_DFL);
		(void)pthread_sigmask(SIG_UNBLOCK, &one, NULL);
		(void)kill(getpid(), WTERMSIG(status));
	}
	_exit(WEXITSTATUS(status));
}

/* The engine's threads are made and ended by this one alone. /proc/self is of the main thread, which
 * is still listed when it has ended. */
void pd_end_with_program(void)
{
	const struct protond_engine *e = atomic_load_explicit(&HOT->engine, memory_order_acquire);
	/* the main thread, this one, the engine's */
	const unsigned long rest = 2 + (e != NULL ? e->threads() : 0);
	char buf[PD_STAT];
	const char *word = pd_stat(buf, FIELD_STATE);

	if (word == NULL || *word != 'Z')
		return;
	word = pd_stat(buf, FIELD_THREADS);
	if (word == NULL || strtoul(word, NULL, 10) != rest)
		return;
	if (atomic_load(&pd.main_gone))
		(exit)(0); /* pthread_exit(): as the C library does behind a program's last thread */
	word = pd_stat(buf, FIELD_CODE);
	if (word != NULL)
		end_as((int)strtol(word, NULL, 10));
}
