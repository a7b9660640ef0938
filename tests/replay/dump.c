/* SPDX-License-Identifier: MIT. dump.c: reads a raw dump and checks every count in it once. */
#include "dump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../proto/abi/ring.h"

#define FILE_MAX    (1ull << 30)
#define STRINGS_MAX (1u << 20)
#define THREADS_MAX 4096u

const struct dump_step *dump_steps(const struct dump_item *i)
{
	return (const void *)(i->bytes + sizeof(struct dump_callback));
}

const struct dump_fixup *dump_fixups(const struct dump_item *i)
{
	return (const void *)(i->bytes + sizeof(struct dump_buffer));
}

const uint8_t *dump_bytes(const struct dump_item *i)
{
	const struct dump_buffer *b = (const void *)i->bytes;

	return i->bytes + sizeof(*b) + b->n_fixups * sizeof(struct dump_fixup);
}

static int slurp(const char *path, uint8_t **ret, size_t *ret_bytes)
{
	FILE *f = fopen(path, "rbe");
	size_t n = 0, cap = 1u << 16, got;
	uint8_t *p = NULL, *more;
	int r = -ENOMEM;

	if (f == NULL)
		return errno > 0 ? -errno : -EIO;
	for (;;) {
		more = cap <= FILE_MAX ? realloc(p, cap) : NULL;
		if (more == NULL)
			break;
		p = more;
		got = fread(p + n, 1, cap - n, f);
		n += got;
		if (n < cap) {
			r = ferror(f) ? -EIO : 0;
			break;
		}
		cap *= 2;
	}
	(void)fclose(f);
	if (r < 0) {
		free(p);
		return r;
	}
	*ret = p;
	*ret_bytes = n;
	return 0;
}

static int take_string(struct dump *d, const uint8_t *p, uint32_t n)
{
	struct dump_string s;
	char **more;

	if (n < sizeof(s))
		return -EBADMSG;
	memcpy(&s, p, sizeof(s));
	if (s.bytes != n - sizeof(s) || s.id == 0 || s.id > STRINGS_MAX)
		return -EBADMSG;
	if (s.id >= d->n_strings) {
		more = realloc(d->string, (s.id + 1) * sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		d->string = more;
		while (d->n_strings <= s.id)
			d->string[d->n_strings++] = NULL;
	}
	if (d->string[s.id] != NULL)
		return -EBADMSG;
	d->string[s.id] = strndup((const char *)p + sizeof(s), s.bytes);
	return d->string[s.id] != NULL ? 0 : -ENOMEM;
}

static int take_item(struct dump *d, const struct dump_item *i)
{
	struct dump_item *more;

	if ((d->n_items & (d->n_items - 1)) == 0) {
		more = realloc(d->item, (d->n_items == 0 ? 1 : d->n_items * 2) * sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		d->item = more;
	}
	d->item[d->n_items++] = *i;
	return 0;
}

static int check_string(const struct dump *d, uint32_t id)
{
	return id < d->n_strings && (id == 0 || d->string[id] != NULL) ? 0 : -EBADMSG;
}

static int check_callback(struct dump *d, const struct dump_item *i)
{
	const struct dump_callback *c = (const void *)i->bytes;
	uint32_t k;

	if (i->n < sizeof(*c) || c->n_path > DUMP_LEVELS_MAX || c->thread >= THREADS_MAX ||
		i->n != sizeof(*c) + c->n_path * sizeof(struct dump_step) ||
		check_string(d, c->symbol) < 0)
		return -EBADMSG;
	for (k = 0; k < c->n_path; k++)
		if (dump_steps(i)[k].name == 0 || check_string(d, dump_steps(i)[k].name) < 0)
			return -EBADMSG;
	if (c->thread >= d->n_threads)
		d->n_threads = c->thread + 1;
	return 0;
}

static int check_buffer(const struct dump *d, const struct dump_item *i)
{
	const struct dump_buffer *b = (const void *)i->bytes;
	uint32_t k;

	if (i->n < sizeof(*b) || b->valid > i->n || b->n_fixups > i->n ||
		i->n != sizeof(*b) + b->n_fixups * sizeof(struct dump_fixup) + b->valid)
		return -EBADMSG;
	for (k = 0; k < b->n_fixups; k++)
		if (dump_fixups(i)[k].offset > b->valid ||
			b->valid - dump_fixups(i)[k].offset < 8 ||
			check_string(d, dump_fixups(i)[k].string) < 0)
			return -EBADMSG;
	return 0;
}

static int check(struct dump *d, const struct dump_item *i)
{
	switch (i->type) {
	case DUMP_CALLBACK:
		return check_callback(d, i);
	case DUMP_BUFFER:
		return check_buffer(d, i);
	case DUMP_DEVICE:
		return i->n == sizeof(struct ring_device) ? 0 : -EBADMSG;
	case DUMP_LEVEL:
		return i->n == sizeof(struct dump_level) ? 0 : -EBADMSG;
	case DUMP_FLUSH:
		return i->n == sizeof(struct dump_flush) ? 0 : -EBADMSG;
	case DUMP_STRING:
	default:
		return 0;
	}
}

static int by_seq(const void *a, const void *b)
{
	const struct dump_item *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int parse(struct dump *d, size_t bytes)
{
	struct dump_chunk c;
	struct dump_item i;
	size_t at, k;
	int r = 0;

	if (bytes < sizeof(d->header))
		return -EBADMSG;
	memcpy(&d->header, d->file, sizeof(d->header));
	if (d->header.magic != DUMP_MAGIC || d->header.version != DUMP_VERSION)
		return -EBADMSG;
	for (at = sizeof(d->header); r == 0 && at + sizeof(c) <= bytes;
		at += ((size_t)c.bytes + 7) & ~(size_t)7) {
		memcpy(&c, d->file + at, sizeof(c));
		at += sizeof(c);
		if (c.bytes > bytes - at)
			break; /* cut by a kill: what is whole counts */
		i = (struct dump_item){
			.type = c.type, .seq = c.seq, .bytes = d->file + at, .n = c.bytes};
		r = c.type == DUMP_STRING ? take_string(d, i.bytes, i.n) : take_item(d, &i);
	}
	for (k = 0; r == 0 && k < d->n_items; k++)
		r = check(d, &d->item[k]);
	if (r == 0 && d->n_items > 0)
		qsort(d->item, d->n_items, sizeof(*d->item), by_seq);
	return r;
}

int dump_read(const char *path, struct dump *ret)
{
	struct dump d = {0};
	size_t bytes = 0;
	int r = slurp(path, &d.file, &bytes);

	if (r == 0)
		r = parse(&d, bytes);
	if (r < 0) {
		dump_free(&d);
		return r;
	}
	*ret = d;
	return 0;
}

void dump_free(struct dump *d)
{
	uint32_t i;

	for (i = 0; i < d->n_strings; i++)
		free(d->string[i]);
	free(d->string);
	free(d->item);
	free(d->file);
	*d = (struct dump){0};
}
