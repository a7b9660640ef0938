/* SPDX-License-Identifier: MIT. fuzz_journal.c: any bytes as a journal segment. What is replayed is
 * sane and lies in the file; lost bytes are counted; what is appended afterwards is read again.
 *
 * The first byte says what to do: bit 0: give plausible entries a right CRC, so that the fuzzer
 * gets behind it; bit 1: replay from an odd position. */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal.h"

#define MUST(e) ((e) ? (void)0 : (void)(fprintf(stderr, "not true: %s\n", #e), abort()))

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

struct seen {
	uint64_t n, bytes;
	uint16_t last_type;
};

static int dir = -1;
static char dir_path[64];

static void remove_dir(void)
{
	(void)unlinkat(dir, "journal.1", 0);
	(void)unlinkat(dir, "journal.2", 0);
	(void)rmdir(dir_path);
}

static void make_dir(void)
{
	(void)snprintf(dir_path, sizeof(dir_path), "%s/protond-fuzz-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	MUST(mkdtemp(dir_path) != NULL);
	dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(dir >= 0);
	(void)atexit(remove_dir);
}

static int see(void *arg, const struct journal_entry *e)
{
	struct seen *s = arg;
	const uint8_t *body = (const uint8_t *)e + offsetof(struct journal_entry, type);

	MUST(e->magic == JOURNAL_MAGIC && e->bytes >= sizeof(*e) && e->bytes % 8 == 0);
	MUST(e->bytes <= JOURNAL_ENTRY_MAX);
	MUST(crc32c(0, body, e->bytes - offsetof(struct journal_entry, type)) == e->crc);
	s->n++;
	s->bytes += e->bytes;
	s->last_type = e->type;
	return 0;
}

static void repair(uint8_t *p, size_t n)
{
	const uint32_t magic = JOURNAL_MAGIC;
	uint32_t bytes, crc;
	size_t at = 0;

	while (n - at >= sizeof(struct journal_entry)) {
		memcpy(&bytes, p + at + 4, sizeof(bytes));
		if (bytes < sizeof(struct journal_entry) || bytes % 8 != 0 || bytes > n - at)
			return;
		memcpy(p + at, &magic, sizeof(magic));
		crc = crc32c(0, p + at + 12, bytes - 12);
		memcpy(p + at + 8, &crc, sizeof(crc));
		at += bytes;
	}
}

static void write_segment(const uint8_t *p, size_t n, int mode)
{
	uint8_t *copy = malloc(n + 1);
	int fd;

	MUST(copy != NULL);
	memcpy(copy, p, n);
	if ((mode & 1) != 0)
		repair(copy, n);
	(void)unlinkat(dir, "journal.2", 0);
	fd = openat(dir, "journal.1", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	MUST(fd >= 0 && write(fd, copy, n) == (ssize_t)n);
	(void)close(fd);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct seen before = {0}, after = {0}, odd = {0};
	struct journal *j;
	struct err e;
	uint64_t lost;
	int gap = 1;
	void *payload;

	if (n == 0 || n > (1u << 20))
		return 0;
	if (dir < 0)
		make_dir();
	write_segment(p + 1, n - 1, p[0]);
	MUST(journal_open(dir, &j, &e) == 0);
	MUST(journal_replay(j, 0, see, &before, &gap) == 0);
	lost = journal_lost(j);
	MUST(before.bytes + lost == n - 1); /* nothing lost silently */
	MUST(lost == 0 ? gap == 0 : gap == 0 || gap == -EBADMSG);
	if ((p[0] & 2) != 0)
		MUST(journal_replay(j, 1ull << 32 | (n / 2), see, &odd, &gap) == 0);
	MUST(journal_stage(j, 0x7777, NULL, 13, &payload) == 0);
	memcpy(payload, "thirteenbytes", 13);
	MUST(journal_commit(j, 13) != NULL && journal_flush(j) == 0);
	MUST(journal_replay(j, 0, see, &after, &gap) == 0);
	MUST(after.n == before.n + 1 && after.last_type == 0x7777);
	journal_close(j);
	return 0;
}
