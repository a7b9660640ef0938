/* SPDX-License-Identifier: MIT. sqlite.c: the format sqlite: the tables of docs/sql.md as a
 * database that any SQLite reads. */
#include <sqlite3.h>

#include "db_file.h"
#include "export_format.h"
#include "sql_memory.h"
#include "sql_tables.h"

struct from {
	struct sqlite3 *db;
	int64_t id;
	const struct profile_select *select;
	struct export_left left;
};

static int show_names(struct profile *p, const struct profile_select *s)
{
	for (uint32_t i = 0; s != NULL && s->show != NULL && i < p->n_nodes; i++) {
		const char *name = s->show(s->show_arg, p->node[i].name);

		p->node[i].name = profile_text(p, name, strlen(name));
		if (p->node[i].name == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int fill(struct sqlite3 *to, void *arg, struct err *e)
{
	struct from *f = arg;
	struct profile *p = NULL;
	int r = sql_tables_make(to, e);

	if (r == 0)
		r = profile_load(f->db, f->id, f->select, &p, e);
	if (r == 0 && show_names(p, f->select) < 0)
		r = err_set(e, -ENOMEM, "out of memory");
	if (r == 0)
		r = sql_tables_tree(to, p, e);
	profile_free(p);
	if (r == 0)
		r = sql_memory_fill(to, f->db, f->id, f->select, NULL, e);
	if (r == 0)
		r = sql_tables_timeline(to, f->db, f->id, f->select, &f->left, e);
	return r == -ENODATA ? 0 : r; /* its tables are empty */
}

int sqlite_write(struct sqlite3 *db, int64_t id, const struct profile_select *s, FILE *to,
	struct export_left *ret_left, struct err *e)
{
	struct from f = {.db = db, .id = id, .select = s};
	const int r = db_file_write(fill, &f, to, e);

	if (ret_left != NULL)
		*ret_left = f.left;
	return r;
}
