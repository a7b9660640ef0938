/* SPDX-License-Identifier: MIT. profile_rows.c: rows of a store. */
#include "profile_rows.h"

#include <stdlib.h>

uint64_t load_sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int device_order(const void *a, const void *b)
{
	const struct load_device *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return (x->device > y->device) - (x->device < y->device);
}

struct load_device *load_device(const struct load *l, int64_t process, int64_t device)
{
	const struct load_device key = {.process = process, .device = device};

	return l->n_devices == 0
		       ? NULL
		       : bsearch(&key, l->device, l->n_devices, sizeof(*l->device), device_order);
}

uint64_t load_u64(sqlite3_stmt *st, int column)
{
	int64_t v = sqlite3_column_int64(st, column);

	return v < 0 ? 0 : (uint64_t)v;
}

uint64_t load_plausible(struct load *l, int64_t v, enum damage of)
{
	if (v >= 0 && v <= PLAUSIBLE_MAX)
		return (uint64_t)v;
	l->damaged |= 1u << of;
	return 0;
}

const char *load_text(struct load *l, sqlite3_stmt *st, int column)
{
	const char *s = (const char *)sqlite3_column_text(st, column);

	return profile_text(l->p, s == NULL ? "" : s, (size_t)sqlite3_column_bytes(st, column));
}

int load_db_error(struct load *l)
{
	int code = sqlite3_errcode(l->db);

	if (code == SQLITE_NOMEM)
		return err_set(l->e, -ENOMEM, "out of memory");
	return err_set(l->e, -EBADMSG, "the database cannot be read: %s", sqlite3_errmsg(l->db));
}

int load_prepare(struct load *l, const char *sql, sqlite3_stmt **ret)
{
	if (sqlite3_prepare_v2(l->db, sql, -1, ret, NULL) != SQLITE_OK)
		return load_db_error(l);
	if (sqlite3_bind_parameter_count(*ret) >= 1)
		(void)sqlite3_bind_int64(*ret, 1, l->session);
	return 0;
}

int load_step(struct load *l, sqlite3_stmt *st)
{
	switch (sqlite3_step(st)) {
	case SQLITE_ROW:
		return 1;
	case SQLITE_DONE:
		return 0;
	default:
		return load_db_error(l);
	}
}
