/* SPDX-License-Identifier: MIT. cupti_dump.c: PROTOND_RAW_DUMP=DIR, for developers: all that CUPTI
 * tells, written down so that it can be played back without a GPU (tests/replay).
 *
 * Correctness before speed: each callback writes under one spinlock, into a buffer that goes to the
 * file when it is full and at each flush. A job that is being dumped is not one to measure.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cupti_dump.h"
#include "cupti_dump_file.h"
#include "cupti_peek.h"
#include "keep.h"

#define OUT_BYTES    (4u << 20)
#define STRINGS      65536u /* power of two */
#define STRINGS_FULL (STRINGS / 4 * 3)
#define TEXT_MAX     8192u
#define THREADS      65536u
#define FIXUPS_MAX   16384u /* a buffer holds fewer records */
_Static_assert(PATH_DEPTH_MAX <= DUMP_LEVELS_MAX, "the reader's bound");

static struct {
	_Atomic uint64_t seq;
	atomic_flag lock;
	int fd;
	uint8_t *out;
	size_t used;
	uint64_t *hash; /* of the strings, by slot; 0 free */
	uint32_t *id;
	uint32_t strings;
	int32_t *tids;
	uint32_t threads;
	struct dump_fixup *fixups;
} dump = {.fd = -1};

static void lock(void)
{
	/* Acquire: pairs with the release in unlock(). */
	while (atomic_flag_test_and_set_explicit(&dump.lock, memory_order_acquire))
		sched_yield();
}

static void unlock(void)
{
	atomic_flag_clear_explicit(&dump.lock, memory_order_release);
}

uint64_t cupti_dump_seq(void)
{
	return atomic_fetch_add_explicit(&dump.seq, 1, memory_order_relaxed);
}

static void write_out(const uint8_t *p, size_t bytes)
{
	ssize_t n;

	while (bytes > 0) {
		n = write(dump.fd, p, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) { /* the disk is full: what stands in the file is whole chunks, and
				 stays */
			cupti_set_odd(ODD_DUMP, false);
			return;
		}
		p += n;
		bytes -= (size_t)n;
	}
}

static void push_out(void)
{
	write_out(dump.out, dump.used);
	dump.used = 0;
}

static void append(const void *p, size_t bytes)
{
	if (bytes > OUT_BYTES - dump.used)
		push_out();
	if (bytes > OUT_BYTES) {
		write_out(p, bytes);
		return;
	}
	memcpy(dump.out + dump.used, p, bytes);
	dump.used += bytes;
}

/* A chunk's head; its parts follow by append(), then chunk_end(). */
static void chunk(enum dump_type type, size_t bytes, uint64_t seq)
{
	struct dump_chunk c = {.type = type, .bytes = (uint32_t)bytes, .seq = seq};

	append(&c, sizeof(c));
}

static void chunk_end(size_t bytes)
{
	static const uint8_t zero[8];

	append(zero, (8 - bytes % 8) % 8);
}

static void *space(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p != MAP_FAILED ? p : NULL;
}

void cupti_dump_init(void)
{
	struct dump_header h = {.magic = DUMP_MAGIC,
		.version = DUMP_VERSION,
		.cupti_version = cupti.version,
		.driver_version = cupti.driver,
		.flags = cupti.replay ? DUMP_OF_REPLAY : 0};
	const char *dir = agent_env("PROTOND_RAW_DUMP");
	char path[512];

	if (dump.fd >= 0 || dir == NULL || dir[0] == '\0')
		return;
	dump.out = space(OUT_BYTES);
	dump.hash = space(STRINGS * sizeof(*dump.hash));
	dump.id = space(STRINGS * sizeof(*dump.id));
	dump.tids = space(THREADS * sizeof(*dump.tids));
	dump.fixups = space(FIXUPS_MAX * sizeof(*dump.fixups));
	if (dump.out == NULL || dump.hash == NULL || dump.id == NULL || dump.tids == NULL ||
		dump.fixups == NULL)
		return;
	snprintf(path, sizeof(path), "%s/%d.cuptidump", dir, (int)getpid());
	dump.fd = fd_keep(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
	if (dump.fd < 0)
		return;
	memcpy(h.stride, cupti.stride, sizeof(h.stride));
	append(&h, sizeof(h));
	cupti_set_odd(ODD_DUMP, true);
}

static uint64_t hash_of(const char *text, size_t bytes)
{
	uint64_t h = 0xcbf29ce484222325ull;
	size_t i;

	for (i = 0; i < bytes; i++)
		h = (h ^ (uint8_t)text[i]) * 0x100000001b3ull;
	return h != 0 ? h : 1;
}

/* Locked. The string's id, written at its first use. 0: too many. */
static uint32_t string_id(const char *text, size_t bytes)
{
	struct dump_string s = {.bytes = (uint32_t)bytes};
	uint64_t h = hash_of(text, bytes);
	uint32_t i = (uint32_t)(h >> 32) & (STRINGS - 1);

	while (dump.hash[i] != 0 && dump.hash[i] != h)
		i = (i + 1) & (STRINGS - 1);
	if (dump.hash[i] == h)
		return dump.id[i];
	if (dump.strings >= STRINGS_FULL)
		return 0;
	dump.hash[i] = h;
	s.id = dump.id[i] = ++dump.strings;
	chunk(DUMP_STRING, sizeof(s) + bytes, cupti_dump_seq());
	append(&s, sizeof(s));
	append(text, bytes);
	chunk_end(sizeof(s) + bytes);
	return s.id;
}

/* Locked. */
static uint32_t thread_number(void)
{
	int32_t tid = gettid();
	uint32_t i;

	for (i = 0; i < dump.threads; i++)
		if (dump.tids[i] == tid)
			return i;
	if (dump.threads < THREADS)
		dump.tids[dump.threads++] = tid;
	return i;
}

struct steps {
	struct dump_step step[PATH_DEPTH_MAX];
	uint32_t n;
};

static uint32_t kind_of(uint32_t path_kind)
{
	return path_kind == PATH_KIND_STATE ? STEP_STATE
	       : path_kind == PATH_KIND_OP  ? STEP_OP
					    : STEP_SCOPE;
}

/* Locked. Where the thread stands, from the root down. */
static void steps_of(struct steps *s)
{
	struct agent_step at;
	struct dump_step swap;
	bool op;
	uint32_t i, path = agent_where(&op);

	for (s->n = 0; s->n < PATH_DEPTH_MAX && agent_path_step(path, &at); path = at.parent)
		s->step[s->n++] =
			(struct dump_step){kind_of(at.kind), string_id(at.text, at.bytes)};
	for (i = 0; i < s->n / 2; i++) {
		swap = s->step[i];
		s->step[i] = s->step[s->n - 1 - i];
		s->step[s->n - 1 - i] = swap;
	}
}

static uint64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void cupti_dump_callback(uint32_t domain, uint32_t cbid, const struct cupti_callback *d,
	const struct cupti_dump_ids *g)
{
	struct dump_callback c = {.domain = domain, .cbid = cbid, .realtime_ns = realtime_ns()};
	struct steps s;
	size_t bytes;

	lock();
	c.thread = thread_number();
	steps_of(&s);
	if (d != NULL) {
		c.site = d->site;
		c.correlation = d->correlation;
		c.context = d->context_uid;
		if (d->symbol != NULL)
			c.symbol = string_id(d->symbol, strnlen(d->symbol, TEXT_MAX));
		if (d->site == SITE_EXIT && d->ret_value != NULL)
			memcpy(&c.ret, d->ret_value, sizeof(c.ret));
	}
	if (g != NULL) {
		c.node = g->node;
		c.original = g->original;
		c.graph = g->graph;
		c.exec = g->exec;
	}
	c.flags = d != NULL && g != NULL ? DUMP_PARAMS : 0;
	c.n_path = s.n;
	bytes = sizeof(c) + s.n * sizeof(s.step[0]);
	chunk(DUMP_CALLBACK, bytes, cupti_dump_seq());
	append(&c, sizeof(c));
	append(s.step, s.n * sizeof(s.step[0]));
	chunk_end(bytes);
	unlock();
}

/* Locked. Notes the name pointers of `b`; they are zeroed in the copy. */
static uint32_t fixups_of(const struct cupti_buffer *b, uint8_t *copy)
{
	static char text[TEXT_MAX];
	uint32_t kind, stride, n = 0;
	uint64_t at;

	for (at = 0; at + 8 <= b->valid && n < FIXUPS_MAX; at += stride) {
		const char *name;
		size_t bytes;

		memcpy(&kind, copy + at, sizeof(kind));
		kind &= ~KIND_INCOMPLETE;
		stride = kind < KIND_MAX ? cupti.stride[kind] : 0;
		if (stride == 0 || stride > b->valid - at)
			break;
		if (kind != KIND_CONCURRENT_KERNEL && kind != KIND_KERNEL)
			continue;
		memcpy(&name, copy + at + K_NAME, sizeof(name));
		memset(copy + at + K_NAME, 0, sizeof(name));
		bytes = name != NULL ? cupti_peek(name, text, sizeof(text)) : 0;
		if (bytes > 0)
			dump.fixups[n++] =
				(struct dump_fixup){(uint32_t)at + K_NAME, string_id(text, bytes)};
	}
	return n;
}

void cupti_dump_buffer(const struct cupti_buffer *b)
{
	struct dump_buffer d = {.valid = b->valid, .forced = b->forced};
	uint8_t *copy = space(b->valid + 1);
	size_t bytes;

	if (copy == NULL)
		return;
	memcpy(copy, b->bytes, b->valid);
	lock();
	d.n_fixups = fixups_of(b, copy);
	bytes = sizeof(d) + d.n_fixups * sizeof(struct dump_fixup) + b->valid;
	chunk(DUMP_BUFFER, bytes, b->seq);
	append(&d, sizeof(d));
	append(dump.fixups, d.n_fixups * sizeof(struct dump_fixup));
	append(copy, b->valid);
	chunk_end(bytes);
	unlock();
	munmap(copy, b->valid + 1);
}

/* A chunk of one fixed struct. */
static void small(enum dump_type type, const void *p, size_t bytes)
{
	lock();
	chunk(type, bytes, cupti_dump_seq());
	append(p, bytes);
	chunk_end(bytes);
	unlock();
}

void cupti_dump_flush(bool force, bool begin)
{
	const struct dump_flush f = {.force = force, .begin = begin};

	small(DUMP_FLUSH, &f, sizeof(f));
}

void cupti_dump_level(enum cupti_level level)
{
	const struct dump_level l = {.level = level};

	small(DUMP_LEVEL, &l, sizeof(l));
}

void cupti_dump_device(const struct ring_device *d)
{
	small(DUMP_DEVICE, d, sizeof(*d));
}

void cupti_dump_sync(void)
{
	lock();
	push_out();
	unlock();
}
