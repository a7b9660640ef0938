/* SPDX-License-Identifier: MIT. journal_kill.c: a writer killed at any instant leaves a journal
 * that has every flushed entry once, in order, and no half of one. */
#include "quick.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "journal.h"

#define ROUNDS 200u

/* Shared with the child; written by it alone. */
struct told {
	_Atomic uint64_t staged, flushed; /* entries, over all rounds */
};

struct seen {
	uint64_t next;
	uint32_t bad;
};

static uint32_t rng_state = 1;

static uint32_t rng(void)
{
	rng_state = rng_state * 1664525u + 1013904223u;
	return rng_state >> 8;
}

/* The entry's number, then bytes that follow from it. */
static int append(struct journal *j, uint64_t number, uint32_t bytes)
{
	void *p;
	int r = journal_stage(j, J_LANE, NULL, bytes, &p);

	if (r < 0)
		return r;
	memset(p, (int)number, bytes);
	memcpy(p, &number, sizeof(number));
	return journal_commit(j, bytes) == NULL ? -EINVAL : 0;
}

static int see(void *arg, const struct journal_entry *e)
{
	struct seen *s = arg;
	const uint8_t *p = (const uint8_t *)(e + 1);
	uint64_t number;

	memcpy(&number, p, sizeof(number));
	s->bad += number != s->next;
	s->bad += p[sizeof(number)] != (uint8_t)number;
	s->bad += p[15] != (uint8_t)number;
	s->next = number + 1;
	return 0;
}

static int nothing(void *arg, const struct journal_entry *e)
{
	(void)arg;
	(void)e;
	return 0;
}

/* Dies by the kernel's hand at a random instant: while it stages, writes, or begins a segment. */
static void writer(int dir, uint64_t number, uint32_t seed, struct told *told)
{
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct itimerspec when = {0};
	struct journal *j;
	struct err e;
	uint32_t i, n;
	timer_t timer;

	rng_state = seed;
	when.it_value.tv_nsec = 20000 + (long)(rng() % 4000000);
	if (journal_open(dir, &j, &e) < 0 || timer_create(CLOCK_MONOTONIC, &ev, &timer) < 0 ||
		timer_settime(timer, 0, &when, NULL) < 0)
		_exit(2);
	for (;;) {
		n = 1 + rng() % 5;
		for (i = 0; i < n; i++, number++) {
			if (append(j, number, 16 + rng() % (rng() % 8 == 0 ? 1u << 20 : 4000)) < 0)
				_exit(3);
			atomic_store(&told->staged, number + 1);
		}
		if (journal_flush(j) < 0)
			_exit(4);
		atomic_store(&told->flushed, number);
	}
}

static void remove_all(const char *path, int dir)
{
	DIR *d = opendir(path);
	struct dirent *f;

	while (d != NULL && (f = readdir(d)) != NULL)
		if (f->d_name[0] == 'j')
			(void)unlinkat(dir, f->d_name, 0);
	if (d != NULL)
		(void)closedir(d);
}

/* Runs a writer to its death and reads what it left from `position` on. */
static void round_of(int dir, uint32_t seed, struct told *told, uint64_t *position, uint64_t *torn)
{
	uint64_t first = atomic_load(&told->staged);
	struct seen s = {.next = first};
	struct journal *j;
	struct err e = {0};
	int status, gap = 0;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		writer(dir, first, seed, told);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %d", status);

	ck_assert_msg(journal_open(dir, &j, &e) == 0, "%s", e.text);
	ck_assert_int_eq(journal_replay(j, *position, see, &s, &gap), 0);
	ck_assert_uint_eq(s.bad, 0);
	/* All that was flushed; of what was only staged a whole number of entries, from the front.
	 */
	ck_assert_uint_ge(s.next, atomic_load(&told->flushed));
	ck_assert_uint_le(s.next, atomic_load(&told->staged) + 1);
	*torn += journal_lost(j) > 0;
	*position = journal_position(j);
	journal_forget(j, *position, 0, NULL, NULL);
	ck_assert_int_eq(journal_replay(j, *position, nothing, NULL, &gap), 0);
	journal_close(j);
	atomic_store(&told->staged, s.next);
	atomic_store(&told->flushed, s.next);
}

START_TEST(killed_at_any_instant)
{
	char path[64];
	struct told *told = mmap(
		NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t position = 0, torn = 0;
	uint32_t i;
	int dir;

	(void)snprintf(path, sizeof(path), "%s/protond-kill-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_ptr_ne(told, MAP_FAILED);
	for (i = 0; i < ROUNDS; i++)
		round_of(dir, 1000 + i, told, &position, &torn);
	(void)printf("journal_kill: %u rounds, %llu entries, %llu torn tails cut\n", ROUNDS,
		(unsigned long long)atomic_load(&told->flushed), (unsigned long long)torn);
	ck_assert_uint_gt(atomic_load(&told->flushed), ROUNDS);
	remove_all(path, dir);
	(void)close(dir);
	(void)rmdir(path);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("journal_kill");
	TCase *c = tcase_create("kill");

	tcase_set_timeout(c, 240);
	tcase_add_test(c, killed_at_any_instant);
	suite_add_tcase(s, c);
	return s;
}
