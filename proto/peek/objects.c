/* SPDX-License-Identifier: MIT. objects.c: code by address. The kernel's list of mappings is read when an address is met that
 * is in none of them, and an object's headers when it is first met. It is known by its first bytes from then on, which hold
 * its build id: whoever uses what is kept of it asks whether they are still there.
 */
#include "objects.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SHARE         100u /* of the time, one part is for reading the list */
#define LINE_MOST     4096u
#define LINES_MOST    65536u
#define SEGMENTS_MOST 64u
#define DELETED       " (deleted)"

/* --- the kernel's list ------------------------------------------------------------------------ */

struct mapping {
	uint64_t begin, end, offset, inode;
	uint32_t device;
	bool code;
	const char *path;
};

static uint64_t number(const char **at, uint32_t base)
{
	uint64_t v = 0;
	const char *p = *at;
	uint32_t digit;

	for (;; p++) {
		if (*p >= '0' && *p <= '9')
			digit = (uint32_t)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			digit = (uint32_t)(*p - 'a') + 10;
		else
			break;
		v = v * base + digit;
	}
	*at = *p != '\0' ? p + 1 : p;
	return v;
}

/* "begin-end perms offset major:minor inode   path" */
static struct mapping mapping_of(const char *p)
{
	struct mapping m;

	m.begin = number(&p, 16);
	m.end = number(&p, 16);
	m.code = memchr(p, 'x', strcspn(p, " ")) != NULL;
	p += strcspn(p, " ");
	p += strspn(p, " ");
	m.offset = number(&p, 16);
	m.device = (uint32_t)number(&p, 16) << 20;
	m.device |= (uint32_t)number(&p, 16);
	m.inode = number(&p, 10);
	m.path = p + strspn(p, " ");
	return m;
}

/* The list as it is read, beside what is known. */
struct reading {
	const struct object *old;
	struct object *next;
	uint32_t n_old, at, n, same;
	struct mapping first; /* the last one that was a file's beginning */
};

static void on_line(struct reading *r, const char *line)
{
	const struct mapping m = mapping_of(line);
	struct object *is = &r->next[r->n];

	if (m.offset == 0)
		r->first = m;
	if (!m.code || r->n == OBJECTS_MOST || m.inode != r->first.inode ||
		m.device != r->first.device || (m.inode == 0 && m.begin != r->first.begin))
		return;
	r->n++;
	while (r->at < r->n_old && r->old[r->at].begin < m.begin)
		r->at++;
	if (r->at < r->n_old && r->old[r->at].begin == m.begin && r->old[r->at].end == m.end &&
		r->old[r->at].base == r->first.begin &&
		strncmp(r->old[r->at].path, m.path, OBJECT_PATH - 1) == 0) {
		*is = r->old[r->at];
		r->same++;
		return;
	}
	*is = (struct object){.begin = m.begin, .end = m.end, .base = r->first.begin};
	(void)snprintf(is->path, sizeof(is->path), "%s", m.path);
}

static void read_list(struct reading *r)
{
	char buf[LINE_MOST];
	size_t have = 0;
	ssize_t got;
	char *p, *end;
	const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	uint32_t n = 0;
	bool rest = false; /* of a line that is longer than buf, and was taken */

	while (fd >= 0 && n < LINES_MOST &&
		(got = read(fd, buf + have, sizeof(buf) - 1 - have)) > 0) {
		have += (size_t)got;
		buf[have] = '\0';
		for (p = buf; (end = strchr(p, '\n')) != NULL; p = end + 1, n++) {
			*end = '\0';
			if (!rest)
				on_line(r, p);
			rest = false;
		}
		have = (size_t)(buf + have - p);
		memmove(buf, p, have + 1);
		if (have < sizeof(buf) - 1)
			continue;
		if (!rest)
			on_line(r, buf);
		rest = true;
		have = 0;
	}
	if (fd >= 0)
		(void)close(fd);
}

static void look(struct objects *o)
{
	struct reading r = {.old = o->object[o->which],
		.next = o->object[1 - o->which],
		.n_old = o->n,
		.first = {.inode = UINT64_MAX}};

	read_list(&r);
	o->round += r.same != o->n;
	o->which = 1 - o->which;
	o->n = r.n;
}

/* --- an object -------------------------------------------------------------------------------- */

static bool object_read(struct memory *m, struct object *ret)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;
	uint64_t frames = 0;
	bool placed = false;
	uint32_t i;

	if (!m->read(m, ret->base, ret->proof, sizeof(ret->proof)))
		return false;
	memcpy(&e, ret->proof, sizeof(e));
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
		e.e_phentsize != sizeof(p))
		return false;
	for (i = 0; i < e.e_phnum && i < SEGMENTS_MOST; i++) {
		if (!m->read(m, ret->base + e.e_phoff + i * sizeof(p), &p, sizeof(p)))
			return false;
		if (p.p_type == PT_LOAD && !placed) {
			ret->bias = ret->base - (p.p_vaddr & ~UINT64_C(4095));
			placed = true;
		}
		if (p.p_type == PT_GNU_EH_FRAME)
			frames = p.p_vaddr;
	}
	ret->frames = frames != 0 ? ret->bias + frames : 0;
	return placed;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts = {0};

	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The first that ends behind pc. */
static uint32_t place_of(const struct objects *o, uint64_t pc)
{
	uint32_t low = 0, high = o->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (o->object[o->which][middle].end > pc)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static const struct object *mapping_at(const struct objects *o, uint64_t pc)
{
	const uint32_t i = place_of(o, pc);

	return i < o->n && o->object[o->which][i].begin <= pc ? &o->object[o->which][i] : NULL;
}

const struct object *objects_known(const struct objects *o, uint64_t pc)
{
	const struct object *is = mapping_at(o, pc);

	return is != NULL && !is->none ? is : NULL;
}

const struct object *objects_find(struct objects *o, uint64_t pc, bool *ret_later)
{
	const struct object *is = mapping_at(o, pc);
	struct object *mine;
	uint64_t now, began;

	*ret_later = false;
	if (is == NULL) {
		now = clock_ns(CLOCK_MONOTONIC);
		*ret_later = now - o->looked_ns < o->cost_ns * SHARE;
		if (*ret_later)
			return NULL;
		began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		look(o);
		o->looked_ns = now;
		o->cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
		is = mapping_at(o, pc);
	}
	if (is == NULL)
		return NULL;
	mine = &o->object[o->which][is - o->object[o->which]];
	if (!mine->read) {
		mine->none = !object_read(o->m, mine);
		mine->read = true;
	}
	return mine->none ? NULL : mine;
}

bool objects_prove(struct objects *o, const uint64_t *begin, uint32_t n)
{
	uint8_t now[OBJECT_PROOF];
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct object *is = mapping_at(o, begin[i]);

		if (is != NULL && is->read && o->m->read(o->m, is->base, now, sizeof(now)) &&
			memcmp(now, is->proof, sizeof(now)) == 0)
			continue;
		o->n = 0;
		o->round++;
		return false;
	}
	return true;
}

/* Of functions that are not exported the file alone has names: if it is still there, and the same. */
static bool function_in_file(const struct object *o, uint64_t at, char *ret, size_t most)
{
	const int fd = open(o->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	uint8_t proof[OBJECT_PROOF];
	struct stat st;
	bool there;

	if (fd < 0)
		return false;
	there = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		pread(fd, proof, sizeof(proof), 0) == (ssize_t)sizeof(proof) &&
		memcmp(proof, o->proof, sizeof(proof)) == 0 &&
		file_symbol_at(fd, o->bias, at, ret, most);
	(void)close(fd);
	return there;
}

void object_function(struct memory *m, const struct object *o, uint64_t at, char *ret, size_t most)
{
	const char *slash = strrchr(o->path, '/'), *file = slash != NULL ? slash + 1 : o->path,
		   *deleted = strstr(file, DELETED);
	const size_t n = deleted != NULL ? (size_t)(deleted - file) : strlen(file);

	if (memory_symbol_at(m, o->base, at, ret, most) || function_in_file(o, at, ret, most))
		return;
	(void)snprintf(
		ret, most, "[%.*s+0x%llx]", (int)n, file, (unsigned long long)(at - o->base));
}
