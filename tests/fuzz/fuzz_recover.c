/* SPDX-License-Identifier: MIT. fuzz_recover.c: a database and its WAL, of which an input changes
 * bytes and cuts the end off. Whatever `recover` makes of them is a sound database. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_profile.h"
#include "recover.h"
#include "schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Small pages, so that a few rows are trees of three levels; a free page; values on overflow pages;
 * the last session is in the WAL alone. */
#define ROWS "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM i WHERE n<400) "
#define FILL                                                                                   \
	ROWS "INSERT INTO node SELECT n,randomblob(16),n/7,1,'scope '||n FROM i;" ROWS         \
	     "INSERT INTO cell(session,process,segment,node,device,class,count,sum_ns,min_ns," \
	     "max_ns,bytes,untimed,open,hist) "                                                \
	     "SELECT 1+n%2,1,0,n,-1,0,1,2,1,1,0,0,0,randomblob(n%40*4) FROM i;" ROWS           \
	     "INSERT INTO trace SELECT 1+n%2,1,n,n,1,n,randomblob(n*20),randomblob(n) FROM i " \
	     "WHERE n<30;"                                                                     \
	     "INSERT INTO loss VALUES(1,1,1,1);INSERT INTO reading "                           \
	     "VALUES(1,0,0,1,2,randomblob(40));INSERT INTO step "                              \
	     "VALUES(1,1,0,3,1,2,randomblob(40));"                                             \
	     "INSERT INTO memory VALUES(1,1,randomblob(40));DELETE FROM trace WHERE number=29;"
#define SESSION(id)                                                                               \
	"INSERT INTO session SELECT " #id ",randomblob(16),'name',0,'run','','','none','both',"   \
	"'shadow','on','active','all',NULL,NULL,NULL,1,'cmd','on',1,NULL,1,1,1,1,NULL,NULL,NULL," \
	"NULL,0,'';"                                                                              \
	"INSERT INTO member VALUES(" #id ",1);INSERT INTO active VALUES(" #id ",1,NULL);"

static char dir[] = "/tmp/fuzz_recover.XXXXXX", path[2][64];
static uint8_t *image[2]; /* the database, its WAL */
static size_t image_bytes[2];

static void remove_files(void)
{
	(void)unlink(path[0]);
	(void)unlink(path[1]);
	(void)rmdir(dir);
}

static void take_image(int which, const char *suffix)
{
	char from[64];
	FILE *f;

	(void)snprintf(from, sizeof(from), "%s/made%s", dir, suffix);
	f = fopen(from, "re");
	MUST(f != NULL && fseek(f, 0, SEEK_END) == 0);
	image_bytes[which] = (size_t)ftell(f);
	image[which] = malloc(image_bytes[which]);
	rewind(f);
	MUST(image[which] != NULL &&
		fread(image[which], 1, image_bytes[which], f) == image_bytes[which]);
	(void)fclose(f);
	(void)snprintf(path[which], sizeof(path[which]), "%s/f%s", dir, suffix);
}

static void make_images(void)
{
	char made[64], pragmas[160];
	sqlite3 *db;
	bool fresh;

	MUST(mkdtemp(dir) != NULL);
	(void)atexit(remove_files);
	(void)snprintf(made, sizeof(made), "%s/made", dir);
	MUST(sqlite3_open(made, &db) == SQLITE_OK);
	(void)snprintf(pragmas, sizeof(pragmas),
		"PRAGMA page_size=512;PRAGMA auto_vacuum=INCREMENTAL;PRAGMA application_id=%d;"
		"PRAGMA user_version=%d;PRAGMA journal_mode=WAL",
		SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
	MUST(sqlite3_exec(db, pragmas, NULL, NULL, NULL) == SQLITE_OK);
	MUST(schema_mend(db, false, &fresh) == SQLITE_OK);
	MUST(sqlite3_exec(db, FILL SESSION(1) "PRAGMA wal_checkpoint(TRUNCATE);" SESSION(2), NULL,
		     NULL, NULL) == SQLITE_OK);
	take_image(0, "");
	take_image(1, "-wal");
	(void)sqlite3_close(db);
	(void)unlink(made);
}

static uint64_t take(const uint8_t **p, size_t *n, size_t bytes)
{
	uint64_t v = 0;

	bytes = bytes < *n ? bytes : *n;
	memcpy(&v, *p, bytes);
	*p += bytes;
	*n -= bytes;
	return v;
}

static void write_file(int which, const uint8_t *bytes, size_t n)
{
	const int fd = open(path[which], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	MUST(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	(void)close(fd);
}

/* Each change: of which file, where, how many bytes (0: the file ends there), the bytes. */
static void write_changed(const uint8_t *p, size_t n)
{
	uint8_t *bytes[2];
	size_t size[2] = {image_bytes[0], image_bytes[1]}, at, some;
	int i, which;

	for (i = 0; i < 2; i++) {
		bytes[i] = malloc(image_bytes[i]);
		MUST(bytes[i] != NULL);
		memcpy(bytes[i], image[i], image_bytes[i]);
	}
	while (n > 0) {
		which = (int)take(&p, &n, 1) & 1;
		at = take(&p, &n, 3) % image_bytes[which];
		some = take(&p, &n, 1);
		if (some == 0)
			size[which] = at;
		for (; some > 0 && at < image_bytes[which]; some--)
			bytes[which][at++] = (uint8_t)take(&p, &n, 1);
	}
	for (i = 0; i < 2; i++) {
		write_file(i, bytes[i], size[i]);
		free(bytes[i]);
	}
}

static void look(void *arg, int64_t id, const char *name, const char *lacks)
{
	struct profile *p = NULL;
	struct err e = {0};

	MUST(name != NULL && (lacks == NULL || *lacks != '\0'));
	if (profile_load(arg, id, NULL, &p, &e) < 0)
		MUST(e.text[0] != '\0');
	else
		check_tree(p);
	profile_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct recover r = {.session = look};
	struct err e = {0};
	sqlite3_stmt *q;
	sqlite3 *to;
	int code;

	if (image[0] == NULL)
		make_images();
	write_changed(bytes, n);
	MUST(sqlite3_open(":memory:", &to) == SQLITE_OK);
	r.arg = to;
	code = recover(path[0], to, &r, &e);
	MUST(code == 0 || (code < 0 && e.code == code && e.text[0] != '\0'));
	MUST(sqlite3_prepare_v2(to, "PRAGMA integrity_check", -1, &q, NULL) == SQLITE_OK);
	MUST(sqlite3_step(q) == SQLITE_ROW &&
		strcmp((const char *)sqlite3_column_text(q, 0), "ok") == 0);
	(void)sqlite3_finalize(q);
	(void)sqlite3_close(to);
	return 0;
}
