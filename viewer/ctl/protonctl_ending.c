/* SPDX-License-Identifier: MIT. protonctl_ending.c: the wait at the end of `run`. */
#include "protonctl_ending.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static void on_first(int sig)
{
	static const char words[] =
		"protonctl: the program has ended, and its session waits for protond; once more "
		"ends this, and protond stores it when it can\n";

	(void)sig;
	(void)!write(STDERR_FILENO, words, sizeof(words) - 1);
}

static void heed(int sig)
{
	const struct sigaction once = {.sa_handler = on_first, .sa_flags = (int)SA_RESETHAND};
	struct sigaction now;

	if (sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
		(void)sigaction(sig, &once, NULL);
}

static void mask(int how)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigprocmask(how, &set, NULL);
}

void ending_begin(void)
{
	heed(SIGINT);
	heed(SIGTERM);
	mask(SIG_UNBLOCK);
}

void ending_end(void)
{
	mask(SIG_BLOCK);
}
