/* SPDX-License-Identifier: MIT. fuzz_config.c: any bytes as protond.conf. Either every line of it
 * was understood, and what is set are numbers and words; or the file and line are named, with a
 * remedy, and nothing is left behind. Read from the file it is the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config.h"
#include "ring.h"

#define MUST(e) ((e) ? (void)0 : (void)(fprintf(stderr, "not true: %s\n", #e), abort()))

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static int file = -1;
static char path[40];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	MUST(clearenv() == 0); /* PROTOND_* variables would come on top */
	file = memfd_create("fuzz", MFD_CLOEXEC);
	MUST(file >= 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	return 0;
}

static void check_same(const struct daemon_config *a, const struct daemon_config *b)
{
#define SAME_STR(key)           MUST(strcmp(a->key, b->key) == 0);
#define SAME_U64(key)           MUST(a->key == b->key);
#define X(key, type, def, help) SAME_##type(key)
	CONFIG(X)
#undef X
}

/* What config_load() takes has no value that the daemon would trip over. */
static void check_values(const struct daemon_config *c)
{
	enum auto_mode mode;
	struct err e;

	MUST(c->commit_ms > 0 && c->lanes <= RING_LANES_MAX);
	MUST(c->lane_kb == 0 || (c->lane_kb <= UINT32_MAX && ring_is_pow2((uint32_t)c->lane_kb)));
	MUST(config_auto(c, &mode, &e) == 0 && mode <= AUTO_FULL);
}

/* The same text behind the same defaults, by hand. */
static int parse(struct daemon_config *c, const uint8_t *p, size_t n, struct err *e)
{
	MUST(ftruncate(file, 0) == 0);
	MUST(config_load(c, path, true, e) == 0);
	return config_parse(c, (const char *)p, n, "fuzz.conf", e);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct daemon_config by_hand, loaded;
	struct err e = {0}, why = {0};
	int r, x;

	r = parse(&by_hand, p, n, &e);
	MUST(r <= 0 && (r == 0 || (r == e.code && strncmp(e.text, "fuzz.conf:", 10) == 0)));
	MUST(memchr(e.text, '\0', sizeof(e.text)) != NULL);
	MUST(ftruncate(file, 0) == 0 && pwrite(file, p, n, 0) == (ssize_t)n);
	x = config_load(&loaded, path, true, &why);
	MUST(x == 0 || (x == why.code && x < 0 && why.text[0] != '\0'));
	MUST(x < 0 || r == 0 || n >= 65536);
	if (x == 0) {
		check_same(&by_hand, &loaded);
		check_values(&loaded);
		config_free(&loaded);
	}
	config_free(&by_hand);
	return 0;
}
