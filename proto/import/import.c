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

static int read_file(struct stage *s, int fd, const struct import_options *o)
{
	char head[1025] = "";
	const ssize_t n = pread(fd, head, sizeof(head) - 1, 0);
	int r = strcmp(head, "SQLite format 3") == 0      ? nsys_read(s, fd, o->file)
		: is_hatchet(head, n > 0 ? (size_t)n : 0) ? hatchet_in_read(s, fd, o->file)
							  : chrome_read(s, fd, o->file);

	if (r == 0)
		r = stage_place(s, o);
	if (r == 0)
		r = stage_run(s, "COMMIT");
	return r;
}

int import_file(int fd, const struct import_options *o, struct sqlite3 *to,
	struct import_taken *ret, struct err *e)
{
	struct stage s = {.db = to, .e = e};
	int r = begin(&s);

	if (r == 0)
		r = stage_open(&s, to, o, e);
	if (r == 0)
		r = read_file(&s, fd, o);
	*ret = s.taken;
	ret->source = term_word(&term_process_sources, s.source, "unknown");
	stage_close(&s);
	return r;
}
