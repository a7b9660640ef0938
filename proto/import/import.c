/* SPDX-License-Identifier: MIT. import.c: which kind of file it is, and the session's database
 * around what its reader finds. */
#include "import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "export_format.h"
#include "readers.h"
#include "schema.h"

static int begin(struct stage *s)
{
	char pragmas[192];
	bool fresh;
	int r;

	(void)snprintf(pragmas, sizeof(pragmas),
		"PRAGMA journal_mode=OFF;PRAGMA synchronous=OFF;PRAGMA application_id=%d;"
		"PRAGMA user_version=%d",
		SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
	r = stage_run(s, pragmas);
	return r == 0 && schema_mend(s->db, false, &fresh) != SQLITE_OK ? stage_wrong(s) : r;
}

/* "[{" and a key that only a tree's node has, or MessagePack. */
static bool is_hatchet(const char *head, size_t n)
{
	static const char *const keys[] = {"frame", "metrics", "children"};
	const char *p = head;
	size_t i;

	if (hatchet_msgpack_sniff(head, n))
		return true;
	p += strspn(p, " \n\r\t");
	p += *p == '[';
	p += strspn(p, " \n\r\t");
	p += *p == '{';
	p += strspn(p, " \n\r\t");
	for (i = 0; i < sizeof(keys) / sizeof(*keys) && *p == '"'; i++)
		if (strncmp(p + 1, keys[i], strlen(keys[i])) == 0 && p[1 + strlen(keys[i])] == '"')
			return true;
	return false;
}

static int read_file(struct stage *s, const struct import_input *in)
{
	char head[1025] = "";
	const ssize_t n = pread(in->fd, head, sizeof(head) - 1, 0);

	if (!stage_file(s, in->file))
		return stage_no_memory(s);
	return strcmp(head, "SQLite format 3") == 0      ? nsys_read(s, in->fd, in->file)
	       : is_hatchet(head, n > 0 ? (size_t)n : 0) ? hatchet_in_read(s, in->fd, in->file)
							 : chrome_read(s, in->fd, in->file);
}

/* Trees have no times; files of several kinds call the same by several names. */
static int check_beside(struct stage *s, enum process_source first)
{
	int64_t apart;

	if (s->source == FROM_HATCHET || s->source != first)
		return err_set(s->e, -EBADMSG,
			"%s is not a timeline of the kind of %s: they cannot be one session",
			stage_reading(s)->name, s->file->name);
	if (__builtin_sub_overflow(stage_reading(s)->base_ns, s->file->base_ns, &apart) ||
		apart > STAGE_APART_MAX || apart < -STAGE_APART_MAX)
		return err_set(s->e, -EBADMSG,
			"%s begins more than a year from %s: they cannot be one session",
			stage_reading(s)->name, s->file->name);
	return 0;
}

static int read_files(struct stage *s, const struct import_options *o)
{
	enum process_source first = FROM_LIVE;
	uint32_t i;
	int r = 0;

	for (i = 0; i < o->n_files && r == 0; i++) {
		r = read_file(s, &o->in[i]);
		first = i == 0 ? s->source : first;
		if (r == 0 && o->n_files > 1)
			r = check_beside(s, first);
	}
	if (r == 0)
		r = stage_place(s, o);
	if (r == 0)
		r = stage_run(s, "COMMIT");
	return r;
}

int import_files(
	const struct import_options *o, struct sqlite3 *to, struct import_taken *ret, struct err *e)
{
	struct stage s = {.db = to, .e = e};
	int r = begin(&s);

	if (r == 0)
		r = stage_open(&s, to, o, e);
	if (r == 0)
		r = read_files(&s, o);
	*ret = s.taken;
	ret->source = term_word(&term_process_sources, s.source, "unknown");
	stage_close(&s);
	return r;
}
