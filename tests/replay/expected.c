/* SPDX-License-Identifier: MIT. expected.c: what a raw dump must give, found by a second way.
 *
 * expected DUMP [LIBCUPTI]: prints the tree as sorted lines "path TAB count TAB total ns TAB
 * untimed". Shares no code with the agent, the daemon or the replay stub: it has its own reading of
 * the file (docs/replay.md) and of CUPTI's records, and steps through buffers with
 * cuptiActivityGetNextRecord of LIBCUPTI when that is the recorded version, else by the recorded
 * strides. The last line on standard error says which.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_TEXT 4096
#define WHY_OP    3

struct chunk {
	uint32_t type, n;
	uint64_t seq;
	const unsigned char *p;
};

struct launch { /* keyed by epoch and correlation */
	uint64_t key;
	char *path;
	bool op;
};

struct gnode {
	uint64_t id;
	char *path;
	bool op;
};

struct leaf {
	char *path;
	uint64_t count, ns, untimed;
};

struct thread {
	bool inside;
	uint32_t nodes;
};

static unsigned char *file;
static size_t file_n;
static struct chunk *chunks;
static size_t n_chunks;
static struct launch *launches;
static size_t n_launches;
static struct gnode *gnodes;
static size_t n_gnodes;
static struct leaf *leaves;
static size_t n_leaves;
static const unsigned char **strings;
static uint32_t n_strings;
static struct thread threads[4096];
static uint64_t epoch;
static int (*next_record)(unsigned char *, size_t, void **);

static void die(const char *what)
{
	(void)fprintf(stderr, "expected: %s\n", what);
	exit(1);
}

static void *grow(void *p, size_t n, size_t size)
{
	if ((n & (n - 1)) == 0) {
		p = realloc(p, (n == 0 ? 1 : 2 * n) * size);
		if (p == NULL)
			die("no memory");
	}
	return p;
}

static uint16_t u16(const unsigned char *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t u32(const unsigned char *p)
{
	return u16(p) | (uint32_t)u16(p + 2) << 16;
}

static uint64_t u64(const unsigned char *p)
{
	return u32(p) | (uint64_t)u32(p + 4) << 32;
}

static char *keep(const char *t)
{
	char *c = strdup(t);

	if (c == NULL)
		die("no memory");
	return c;
}

static void read_file(const char *name)
{
	FILE *f = fopen(name, "rb");
	long n;

	if (f == NULL || fseek(f, 0, SEEK_END) != 0 || (n = ftell(f)) < 0)
		die("cannot read the dump");
	rewind(f);
	file = malloc((size_t)n + 1);
	if (file == NULL || fread(file, 1, (size_t)n, f) != (size_t)n)
		die("cannot read the dump");
	file_n = (size_t)n;
	(void)fclose(f);
	if (file_n < 152 || memcmp(file, "PDCUPTI1", 8) != 0)
		die("not a dump");
}

static int by_seq(const void *a, const void *b)
{
	const struct chunk *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void read_chunks(void)
{
	size_t at = 152;
	struct chunk c;

	while (at + 16 <= file_n) {
		c = (struct chunk){
			u32(file + at), u32(file + at + 4), u64(file + at + 8), file + at + 16};
		if (c.n > file_n - at - 16)
			break;
		if (c.type == 1) {
			while (n_strings <= u32(c.p)) {
				strings = grow(strings, n_strings, sizeof(*strings));
				strings[n_strings++] = NULL;
			}
			strings[u32(c.p)] = c.p;
		} else {
			chunks = grow(chunks, n_chunks, sizeof(*chunks));
			chunks[n_chunks++] = c;
		}
		at += 16 + ((c.n + 7u) & ~7u);
	}
	if (n_chunks > 0)
		qsort(chunks, n_chunks, sizeof(*chunks), by_seq);
}

static void add_text(char *to, uint32_t id)
{
	const unsigned char *s = id < n_strings ? strings[id] : NULL;
	size_t have = strlen(to);

	if (s != NULL)
		(void)snprintf(
			to + have, PATH_TEXT - have, "/%.*s", (int)u32(s + 4), (const char *)s + 8);
}

static void path_of(const struct chunk *c, char *to, bool *op)
{
	uint32_t i, n = u32(c->p + 64);

	to[0] = '\0';
	*op = false;
	for (i = 0; i < n && 72 + 8 * i + 8 <= c->n; i++) {
		add_text(to, u32(c->p + 72 + 8 * i + 4));
		*op = u32(c->p + 72 + 8 * i) == WHY_OP;
	}
}

static struct gnode *gnode(uint64_t id)
{
	size_t i = n_gnodes;

	while (i-- > 0)
		if (gnodes[i].id == id)
			return &gnodes[i];
	return NULL;
}

static void on_resource(const struct chunk *c, uint32_t cbid, struct thread *t)
{
	char path[PATH_TEXT];
	const struct gnode *from;
	struct gnode g = {.id = u64(c->p + 32)};

	if (cbid == 13) { /* created */
		t->nodes += t->inside;
		path_of(c, path, &g.op);
	} else if (cbid == 20 && (from = gnode(u64(c->p + 40))) != NULL) { /* cloned */
		(void)snprintf(path, sizeof(path), "%s", from->path);
		g.op = from->op;
	} else {
		return;
	}
	g.path = keep(path);
	gnodes = grow(gnodes, n_gnodes, sizeof(*gnodes));
	gnodes[n_gnodes++] = g;
}

static void on_callback(const struct chunk *c)
{
	const uint32_t domain = u32(c->p), cbid = u32(c->p + 4), site = u32(c->p + 8);
	struct thread *t = &threads[u32(c->p + 16) % 4096];
	struct launch l = {.key = epoch << 32 | u32(c->p + 12)};
	char path[PATH_TEXT];

	if (domain == 3) {
		on_resource(c, cbid, t);
		return;
	}
	if (domain != 1 || (cbid >= 495 && cbid <= 498) || cbid == 539 || cbid == 540 ||
		cbid == 720 || cbid == 721)
		return; /* stream capture begins and ends */
	if (site == 0) {
		*t = (struct thread){.inside = true};
		return;
	}
	if (t->inside && t->nodes == 0 && u32(c->p + 28) == 0) { /* it did launch, and well */
		path_of(c, path, &l.op);
		l.path = keep(path);
		launches = grow(launches, n_launches, sizeof(*launches));
		launches[n_launches++] = l;
	}
	t->inside = false;
}

static const struct launch *launch_of(uint32_t correlation)
{
	static size_t hint;
	const uint64_t key = epoch << 32 | correlation;
	size_t i;

	for (i = 0; i < n_launches; i++, hint++)
		if (launches[hint % n_launches].key == key)
			return &launches[hint % n_launches];
	return NULL;
}

static struct leaf *leaf_of(const char *path)
{
	static size_t last;
	size_t i;

	for (i = 0; i < n_leaves; i++)
		if (strcmp(leaves[(last + i) % n_leaves].path, path) == 0) {
			last = (last + i) % n_leaves;
			return &leaves[last];
		}
	leaves = grow(leaves, n_leaves, sizeof(*leaves));
	leaves[n_leaves++] = (struct leaf){.path = keep(path)};
	return &leaves[n_leaves - 1];
}

static void count(uint32_t correlation, uint64_t node, const char *name, const unsigned char *times)
{
	const struct launch *l = launch_of(correlation);
	const struct gnode *g = node != 0 ? gnode(node) : NULL;
	const uint64_t start = u64(times), end = u64(times + 8);
	char path[2 * PATH_TEXT + 64];
	struct leaf *leaf;
	bool op = l != NULL && l->op;

	(void)snprintf(path, sizeof(path), "%s", l == NULL ? "/(no launch)" : l->path);
	if (g != NULL && g->path[0] != '\0') {
		(void)snprintf(path + strlen(path), PATH_TEXT, "/<captured_at>%s", g->path);
		op = g->op;
	}
	if (!op)
		(void)snprintf(path + strlen(path), PATH_TEXT, "/%s", name);
	leaf = leaf_of(path);
	leaf->count++;
	if (start != 0 && end >= start)
		leaf->ns += end - start;
	else
		leaf->untimed++;
}

static const char *copy_name(uint32_t kind)
{
	static const char *const names[] = {"[copy other]", "[copy h2d]", "[copy d2h]",
		"[copy h2d]", "[copy d2h]", "[copy d2d]", "[copy d2d]", "[copy d2d]", "[copy d2d]",
		"[copy other]", "[copy p2p]"};

	return kind <= 10 ? names[kind] : names[0];
}

static void kernel_name(const struct chunk *c, uint32_t offset, char *to)
{
	uint32_t i, n = u32(c->p + 12);

	to[0] = '\0';
	for (i = 0; i < n; i++)
		if (u32(c->p + 16 + 8 * i) == offset)
			add_text(to, u32(c->p + 16 + 8 * i + 4));
}

static void on_record(const struct chunk *c, const unsigned char *base, const unsigned char *r)
{
	const unsigned char *stride = file + 24;
	const uint32_t kind = u32(r) & 0x7fffffff, bytes = u16(stride + 2 * (kind % 64));
	char name[PATH_TEXT] = "";

	switch (kind) {
	case 3:
	case 10:
		kernel_name(c, (uint32_t)(r - base) + 104, name);
		count(u32(r + 92), bytes >= 160 ? u64(r + 144) : 0,
			name[0] != '\0' ? name + 1 : name, r + 16);
		break;
	case 1:
		count(u32(r + 44), bytes >= 72 ? u64(r + 64) : 0, copy_name(r[4]), r + 16);
		break;
	case 22:
		count(u32(r + 60), bytes >= 80 ? u64(r + 72) : 0, copy_name(10), r + 16);
		break;
	case 2:
		count(u32(r + 44), bytes >= 72 ? u64(r + 64) : 0, "[memset]", r + 16);
		break;
	default:
		break;
	}
}

static void on_buffer(const struct chunk *c)
{
	const uint64_t valid = u64(c->p);
	const unsigned char *base = c->p + 16 + 8 * (size_t)u32(c->p + 12);
	unsigned char *copy;
	void *r = NULL;
	uint32_t step, kind;
	uint64_t at;

	if (next_record != NULL) {
		copy = malloc(valid + 1);
		if (copy == NULL)
			die("no memory");
		memcpy(copy, base, valid);
		while (next_record(copy, valid, &r) == 0)
			on_record(c, copy, r);
		free(copy);
		return;
	}
	for (at = 0; at + 8 <= valid; at += step) {
		kind = u32(base + at) & 0x7fffffff;
		step = kind < 64 ? u16(file + 24 + 2 * kind) : 0;
		if (step == 0 || step > valid - at)
			return;
		on_record(c, base, base + at);
	}
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct leaf *)a)->path, ((const struct leaf *)b)->path);
}

static const char *judge(const char *library)
{
	int (*version)(uint32_t *);
	uint32_t v = 0;
	void *h = library != NULL ? dlopen(library, RTLD_NOW) : NULL;

	if (h == NULL)
		return "the recorded strides";
	*(void **)&version = dlsym(h, "cuptiGetVersion");
	*(void **)&next_record = dlsym(h, "cuptiActivityGetNextRecord");
	if (version == NULL || version(&v) != 0 || v != u32(file + 12)) {
		next_record = NULL;
		return "the recorded strides (another version of CUPTI is installed)";
	}
	return "cuptiActivityGetNextRecord of the installed CUPTI";
}

int main(int argc, char **argv)
{
	const char *how;
	uint32_t was = 0;
	size_t i;

	if (argc != 2 && argc != 3) {
		(void)fprintf(stderr, "usage: expected DUMP [LIBCUPTI]\n");
		return 2;
	}
	read_file(argv[1]);
	read_chunks();
	how = judge(argc == 3 ? argv[2] : NULL);
	for (i = 0; i < n_chunks; i++) { /* launches first: a record may overtake its call's exit */
		if (chunks[i].type == 3 && was == 0)
			epoch++;
		if (chunks[i].type == 3)
			was = u32(chunks[i].p);
		if (chunks[i].type == 4)
			on_callback(&chunks[i]);
	}
	for (i = 0, epoch = 0, was = 0; i < n_chunks; i++) {
		if (chunks[i].type == 3 && was == 0)
			epoch++;
		if (chunks[i].type == 3)
			was = u32(chunks[i].p);
		if (chunks[i].type == 5)
			on_buffer(&chunks[i]);
	}
	if (n_leaves > 0)
		qsort(leaves, n_leaves, sizeof(*leaves), by_path);
	for (i = 0; i < n_leaves; i++)
		(void)printf("%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", leaves[i].path,
			leaves[i].count, leaves[i].ns, leaves[i].untimed);
	(void)fprintf(stderr, "expected: %zu launches, records read by %s\n", n_launches, how);
	return 0;
}
