/* SPDX-License-Identifier: MIT. memory.c: reading another process, and its exported symbols.
 *
 * Symbols are looked up in the memory and not in the file: a file may be gone, replaced, in another container, or a pipe.
 */
#include "memory.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define SEGMENTS_MOST 64u
#define DYNAMIC_MOST  256u
#define BUCKETS_MOST  (1u << 24)
#define CHAIN_MOST    4096u
#define SYMBOL_MOST   32u
#define SYMBOLS_MOST  (1u << 20)
#define SYMBOLS_READ  128u /* at once */

static bool read_process(struct memory *m, uint64_t at, void *ret, size_t n)
{
	const struct iovec to = {.iov_base = ret, .iov_len = n};
	struct iovec from = {.iov_len = n};
	ssize_t got;

	memcpy(&from.iov_base, &at, sizeof(at));
	got = process_vm_readv(m->pid, &to, 1, &from, 1, 0);
	if (got < 0)
		m->err = errno;
	return got >= 0 && (size_t)got == n;
}

struct memory memory_of(int pid)
{
	return (struct memory){.read = read_process, .pid = pid, .fd = -1};
}

static bool read_file(struct memory *m, uint64_t at, void *ret, size_t n)
{
	const ssize_t got = at <= INT64_MAX ? pread(m->fd, ret, n, (off_t)at) : -1;

	if (got < 0)
		m->err = errno;
	return got >= 0 && (size_t)got == n;
}

struct memory memory_self(void)
{
	struct memory m = memory_of(getpid());
	const uint64_t at = (uint64_t)(uintptr_t)&m;
	uint64_t word;

	if (m.read(&m, at, &word, sizeof(word)) || (m.err != EPERM && m.err != ENOSYS))
		return m;
	m.fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	if (m.fd >= 0)
		m.read = read_file;
	return m;
}

void memory_fini(struct memory *m)
{
	if (m->fd >= 0)
		(void)close(m->fd);
	m->fd = -1;
}

bool memory_read_all(struct memory *m, const struct memory_piece *piece, uint32_t n)
{
	struct iovec to[MEMORY_PIECES], from[MEMORY_PIECES];
	size_t all = 0;
	ssize_t got;
	uint32_t i;

	for (i = 0; i < n && m->read != read_process; i++)
		if (!m->read(m, piece[i].at, piece[i].to, piece[i].n))
			return false;
	if (i == n || n > MEMORY_PIECES)
		return i == n;
	for (i = 0; i < n; i++) {
		to[i] = (struct iovec){piece[i].to, piece[i].n};
		from[i].iov_len = piece[i].n;
		memcpy(&from[i].iov_base, &piece[i].at, sizeof(piece[i].at));
		all += piece[i].n;
	}
	got = process_vm_readv(m->pid, to, n, from, n, 0);
	return got >= 0 && (size_t)got == all;
}

struct symbols {
	uint64_t base, bias, hash, table, strings, strings_bytes;
	uint32_t first, end; /* those that are searched by address */
};

static uint32_t name_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name != '\0'; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

/* The loader adds the bias to what the dynamic section says, in most objects. */
static uint64_t placed(const struct symbols *s, uint64_t at)
{
	return at < s->base ? at + s->bias : at;
}

static bool read_dynamic(struct memory *m, struct symbols *s, uint64_t at)
{
	Elf64_Dyn d;
	uint32_t i;

	for (i = 0; i < DYNAMIC_MOST; i++) {
		if (!m->read(m, at + i * sizeof(d), &d, sizeof(d)))
			return false;
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_GNU_HASH)
			s->hash = placed(s, d.d_un.d_ptr);
		else if (d.d_tag == DT_SYMTAB)
			s->table = placed(s, d.d_un.d_ptr);
		else if (d.d_tag == DT_STRTAB)
			s->strings = placed(s, d.d_un.d_ptr);
		else if (d.d_tag == DT_STRSZ)
			s->strings_bytes = d.d_un.d_val;
	}
	return s->hash != 0 && s->table != 0 && s->strings != 0;
}

static bool read_object(struct memory *m, struct symbols *s)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;
	uint64_t dynamic = 0;
	uint32_t i;
	bool placed_at = false;

	if (!m->read(m, s->base, &e, sizeof(e)) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
		e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof(p))
		return false;
	for (i = 0; i < e.e_phnum && i < SEGMENTS_MOST; i++) {
		if (!m->read(m, s->base + e.e_phoff + i * sizeof(p), &p, sizeof(p)))
			return false;
		if (p.p_type == PT_LOAD && !placed_at) {
			s->bias = s->base - (p.p_vaddr & ~UINT64_C(4095));
			placed_at = true;
		}
		if (p.p_type == PT_DYNAMIC)
			dynamic = p.p_vaddr;
	}
	return placed_at && dynamic != 0 && read_dynamic(m, s, s->bias + dynamic);
}

/* The value of symbol i, if that is its name; else 0. */
static uint64_t symbol_at(struct memory *m, const struct symbols *s, uint32_t i, const char *name)
{
	const size_t bytes = strlen(name) + 1;
	char is[SYMBOL_MOST];
	Elf64_Sym sym;

	if (bytes > sizeof(is) || !m->read(m, s->table + i * sizeof(sym), &sym, sizeof(sym)) ||
		sym.st_shndx == SHN_UNDEF || sym.st_name >= s->strings_bytes ||
		!m->read(m, s->strings + sym.st_name, is, bytes) || memcmp(is, name, bytes) != 0)
		return 0;
	return s->bias + sym.st_value;
}

uint64_t memory_symbol(struct memory *m, uint64_t base, const char *name)
{
	struct symbols s = {.base = base};
	const uint32_t hash = name_hash(name);
	uint32_t head[4], i, at, step; /* buckets, first symbol, words of the filter, its shift */
	uint64_t buckets, found;

	if (!read_object(m, &s) || !m->read(m, s.hash, head, sizeof(head)) || head[0] == 0 ||
		head[0] > BUCKETS_MOST || head[2] > BUCKETS_MOST)
		return 0;
	buckets = s.hash + sizeof(head) + head[2] * UINT64_C(8);
	if (!m->read(m, buckets + hash % head[0] * UINT64_C(4), &at, sizeof(at)) || at < head[1])
		return 0;
	for (step = 0; step < CHAIN_MOST; step++, at++) {
		if (!m->read(m, buckets + (head[0] + (uint64_t)(at - head[1])) * 4, &i, sizeof(i)))
			return 0;
		if ((i | 1) == (hash | 1)) {
			found = symbol_at(m, &s, at, name);
			if (found != 0)
				return found;
		}
		if ((i & 1) != 0)
			return 0;
	}
	return 0;
}

/* One more than the number of the last symbol: what the last chain ends with. */
static uint32_t symbols_end(struct memory *m, const struct symbols *s, const uint32_t head[4])
{
	const uint64_t buckets = s->hash + 4 * sizeof(*head) + head[2] * UINT64_C(8);
	uint32_t bucket[SYMBOLS_READ], last = 0, i, j, n, hash = 0;

	for (i = 0; i < head[0]; i += n) {
		n = head[0] - i < SYMBOLS_READ ? head[0] - i : SYMBOLS_READ;
		if (!m->read(m, buckets + i * UINT64_C(4), bucket, n * sizeof(*bucket)))
			return 0;
		for (j = 0; j < n; j++)
			last = bucket[j] > last ? bucket[j] : last;
	}
	for (i = 0; last >= head[1] && i < CHAIN_MOST && (hash & 1) == 0; i++, last++)
		if (!m->read(m, buckets + (head[0] + (uint64_t)(last - head[1])) * 4, &hash,
			    sizeof(hash)))
			return 0;
	return last;
}

static bool is_function_at(const struct symbols *s, const Elf64_Sym *sym, uint64_t at)
{
	const uint64_t from = at - s->bias - sym->st_value;
	const uint8_t type = ELF64_ST_TYPE(sym->st_info);

	return sym->st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC) &&
	       (from < sym->st_size || from == 0) && sym->st_name < s->strings_bytes;
}

/* A name that is longer ends in what it began with. */
static bool symbol_name(
	struct memory *m, const struct symbols *s, uint32_t at, char *ret, size_t most)
{
	const uint64_t left = s->strings_bytes - at;
	const size_t n = left < most ? (size_t)left : most;

	if (n < 2 || !m->read(m, s->strings + at, ret, n))
		return false;
	ret[n - 1] = '\0';
	return *ret != '\0';
}

static bool symbols_search(
	struct memory *m, const struct symbols *s, uint64_t at, char *ret, size_t most)
{
	const uint32_t end = s->end < SYMBOLS_MOST ? s->end : SYMBOLS_MOST;
	Elf64_Sym sym[SYMBOLS_READ];
	char name[MEMORY_NAME];
	size_t least = SIZE_MAX;
	uint32_t i, j, n;

	for (i = s->first; i < end; i += n) {
		n = end - i < SYMBOLS_READ ? end - i : SYMBOLS_READ;
		if (!m->read(m, s->table + i * sizeof(*sym), sym, n * sizeof(*sym)))
			break;
		for (j = 0; j < n; j++) {
			if (!is_function_at(s, &sym[j], at) ||
				!symbol_name(m, s, sym[j].st_name, name, sizeof(name)) ||
				strspn(name, "_") >= least)
				continue;
			least = strspn(name, "_");
			(void)snprintf(ret, most, "%s", name);
		}
	}
	return least != SIZE_MAX;
}

bool memory_symbol_at(struct memory *m, uint64_t base, uint64_t at, char *ret, size_t most)
{
	struct symbols s = {.base = base};
	uint32_t head[4];

	if (!read_object(m, &s) || !m->read(m, s.hash, head, sizeof(head)) ||
		head[0] > BUCKETS_MOST || head[2] > BUCKETS_MOST)
		return false;
	s.first = head[1];
	s.end = symbols_end(m, &s, head);
	return symbols_search(m, &s, at, ret, most);
}

bool file_symbol_at(int fd, uint64_t bias, uint64_t at, char *ret, size_t most)
{
	struct memory m = {.read = read_file, .fd = fd};
	struct symbols s = {.bias = bias};
	Elf64_Ehdr e;
	Elf64_Shdr table, strings;
	uint32_t i;

	if (!m.read(&m, 0, &e, sizeof(e)) || e.e_shentsize != sizeof(table))
		return false;
	for (i = 0; i < e.e_shnum; i++) {
		if (!m.read(&m, e.e_shoff + i * sizeof(table), &table, sizeof(table)))
			return false;
		if (table.sh_type == SHT_SYMTAB)
			break;
	}
	if (i == e.e_shnum || table.sh_link >= e.e_shnum ||
		!m.read(&m, e.e_shoff + table.sh_link * sizeof(strings), &strings, sizeof(strings)))
		return false;
	s.table = table.sh_offset;
	s.end = table.sh_size / sizeof(Elf64_Sym) < SYMBOLS_MOST
			? (uint32_t)(table.sh_size / sizeof(Elf64_Sym))
			: SYMBOLS_MOST;
	s.strings = strings.sh_offset;
	s.strings_bytes = strings.sh_size;
	return symbols_search(&m, &s, at, ret, most);
}
