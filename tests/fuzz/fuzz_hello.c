/* SPDX-License-Identifier: MIT. fuzz_hello.c: any bytes, with any mode, as the file beside agent.sock
 * that a job reads before it has met the daemon. What is believed is of our ABI, says what the file
 * says, and names no directory but its own; what others may write, or what is no hello, is not. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../libclient/hello.h"
#include "rendezvous.h"
#include "ring.h"

#define MUST(e) ((e) ? (void)0 : (void)(fprintf(stderr, "not true: %s\n", #e), abort()))

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static char dir[] = "/dev/shm/fuzz_hello.XXXXXX", path[sizeof(dir) + sizeof(RV_HELLO)];
static int file = -1;

static void clean(void)
{
	(void)unlink(path);
	(void)rmdir(dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	MUST(mkdtemp(dir) != NULL && atexit(clean) == 0);
	(void)snprintf(path, sizeof(path), "%s/" RV_HELLO, dir);
	file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	MUST(file >= 0);
	return 0;
}

static void check_welcome(
	const struct rv_welcome *w, const struct rv_hello *h, mode_t mode, size_t n)
{
	char rings[sizeof(w->rings)];

	MUST(n >= sizeof(*h) && n <= RV_HELLO_MAX && (mode & 022) == 0);
	MUST(h->mark == RV_HELLO_MARK && w->abi >> 16 == RING_ABI >> 16);
	MUST(w->abi == h->abi && w->want == h->want && memcmp(w->store, h->store, 16) == 0);
	MUST(w->n_lanes == h->n_lanes && w->lane_bytes == h->lane_bytes);
	(void)snprintf(rings, sizeof(rings), "%s/" RV_RINGS_DIR, dir);
	MUST(strcmp(w->rings, (h->flags & RV_HELLO_NAMED) != 0 ? rings : "") == 0);
}

/* One byte of mode, one that says whether the mark is put in, then the file. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static uint8_t bytes[RV_HELLO_MAX + 64];
	struct rv_welcome w;
	struct rv_hello h = {0};
	mode_t mode;

	if (n < 2 || n - 2 > sizeof(bytes))
		return 0;
	mode = 0400 | (p[0] & 077);
	memcpy(bytes, p + 2, n - 2);
	h.mark = RV_HELLO_MARK;
	if ((p[1] & 1) != 0 && n - 2 >= sizeof(h.mark))
		memcpy(bytes, &h.mark, sizeof(h.mark));
	n -= 2;
	MUST(ftruncate(file, 0) == 0 && pwrite(file, bytes, n, 0) == (ssize_t)n);
	MUST(fchmod(file, mode) == 0);
	memset(&w, 0xa5, sizeof(w));
	memcpy(&h, bytes, n < sizeof(h) ? n : sizeof(h));
	if (pd_hello(dir, &w))
		check_welcome(&w, &h, mode, n);
	else
		MUST(n < sizeof(h) || n > RV_HELLO_MAX || (mode & 022) != 0 ||
			h.mark != RV_HELLO_MARK || h.abi >> 16 != RING_ABI >> 16);
	return 0;
}
