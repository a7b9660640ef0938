/* SPDX-License-Identifier: MIT. view_bench.c: how long protonview's verbs take for a large session.
 *
 * Usage: view_bench PROTONVIEW [NODES [ROUNDS [VERB...]]], of tree if no VERB is given. Makes a
 * database by the schema with one session of NODES nodes (100 000), three quarters of them scopes
 * and a quarter kernels, beside a second session of the same size that is not asked for; then
 * prints the wall and CPU time of whole runs, output to a file.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "schema.h"

#define ROUNDS_MAX 1000u

#pragma GCC diagnostic ignored "-Woverlength-strings" /* the schema is one literal */

static void must(sqlite3 *db, int r)
{
	if (r == SQLITE_OK || r == SQLITE_DONE)
		return;
	(void)fprintf(stderr, "view_bench: %s\n", sqlite3_errmsg(db));
	exit(1);
}

static void sql(sqlite3 *db, const char *text)
{
	must(db, sqlite3_exec(db, text, NULL, NULL, NULL));
}

/* Four children a scope; node n of a session has row id base + n. */
static void fill(sqlite3 *db, int session, uint32_t base, uint32_t nodes)
{
	sqlite3_stmt *node, *cell;
	uint32_t i, leaf;
	char name[96];

	must(db,
		sqlite3_prepare_v2(db, "INSERT INTO node VALUES(?1,?2,?3,?4,?5)", -1, &node, NULL));
	must(db, sqlite3_prepare_v2(db,
			 "INSERT INTO "
			 "cell(session,process,segment,node,device,class,count,sum_ns,min_ns,"
			 "max_ns,bytes,untimed,open,hist) "
			 "VALUES(?1,1,0,?2,?3,?4,?5,?6,1000,90000,0,0,0,?7)",
			 -1, &cell, NULL));
	for (i = 1; i <= nodes; i++) {
		leaf = i > nodes / 4 * 3;
		(void)snprintf(name, sizeof(name),
			leaf ? "void kernel_%u<float, 128, true>(float*)" : "layer.%u/forward", i);
		(void)sqlite3_bind_int64(node, 1, base + i);
		(void)sqlite3_bind_text(node, 5, name, -1, SQLITE_TRANSIENT);
		/* hash: any 16 unequal bytes */
		(void)snprintf(name, sizeof(name), "%08x%08x", base, i);
		(void)sqlite3_bind_blob(node, 2, name, 16, SQLITE_TRANSIENT);
		(void)sqlite3_bind_int64(node, 3, i == 1 ? 0 : base + (i + 2) / 4);
		(void)sqlite3_bind_int64(node, 4, leaf ? 5 : 1);
		must(db, sqlite3_step(node));
		(void)sqlite3_reset(node);
		(void)sqlite3_bind_int64(cell, 1, session);
		(void)sqlite3_bind_int64(cell, 2, base + i);
		(void)sqlite3_bind_int64(cell, 3, leaf ? 0 : -1);
		(void)sqlite3_bind_int64(cell, 4, leaf ? 1 : 0);
		(void)sqlite3_bind_int64(cell, 5, 10 + i % 90);
		(void)sqlite3_bind_int64(cell, 6, 12345 * (int64_t)(1 + i % 1000));
		(void)sqlite3_bind_zeroblob(cell, 7, 64);
		must(db, sqlite3_step(cell));
		(void)sqlite3_reset(cell);
	}
	(void)sqlite3_finalize(node);
	(void)sqlite3_finalize(cell);
}

static void make(const char *path, uint32_t nodes)
{
	sqlite3 *db;
	char text[96];
	bool fresh;

	must(NULL, sqlite3_open(path, &db));
	sql(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
	must(db, schema_mend(db, false, &fresh));
	(void)snprintf(text, sizeof(text),
		"PRAGMA application_id = %d; PRAGMA user_version = %d; BEGIN",
		SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
	sql(db, text);
	sql(db, "INSERT INTO "
		"process(id,ring,host,boot_id,pid,pid_start,ns_pid,uid,parent,token,command,"
		"exe,cwd,job_id,rank,local_rank,world_size,started_ns,ended_ns,end_reason,source,"
		"version,gpu_state,gpu_code,gpu_text,cupti_version,driver_version,cupti_path,agent_"
		"ns,"
		"flags,clock,tsc_khz,n_lanes,lane_bytes,created_clock,created_monotonic_ns,"
		"created_realtime_ns,counters) "
		"VALUES(1,x'01','h',x'00',1,1,1,1,NULL,NULL,'cmd','exe','cwd',NULL,NULL,"
		"NULL,NULL,1,NULL,NULL,'live','1',2,0,'',0,0,'',1000,0,0,0,1,1,0,0,0,x'');"
		"INSERT INTO session(id,uuid,name,uid,source,backend,mode,hook,data,context,"
		"cpu,state,match,token,owner,job_number,pid,command,gpu,created_ns,finalized_ns,"
		"active_ns,launches,matched,daemon_ns) SELECT value, CAST('uuid' || value AS "
		"BLOB), 'bench' || "
		"value, 1, 'run',"
		" 'cupti','','','tree','shadow','on','finalized','all',NULL,NULL,NULL,1,'cmd','on',"
		"value,NULL,"
		" 1000000000,0,0,0 FROM (SELECT 1 AS value UNION SELECT 2);"
		"INSERT INTO member VALUES(1,1),(2,1);"
		"INSERT INTO device "
		"VALUES(1,0,x'01',0,'CUDA','GPU','',90,132,1980000,3201000,6144,1,NULL,NULL)");
	fill(db, 1, 0, nodes);
	fill(db, 2, nodes, nodes);
	sql(db, "COMMIT");
	must(db, sqlite3_close(db));
}

static double ms_of(const struct timeval *t)
{
	return (double)t->tv_sec * 1e3 + (double)t->tv_usec / 1e3;
}

static double once(const char *program, const char *verb, const char *db, double *ret_cpu)
{
	struct timespec a, b;
	struct rusage used;
	int status, null;
	pid_t pid;

	(void)clock_gettime(CLOCK_MONOTONIC, &a);
	pid = fork();
	if (pid == 0) {
		null = open("/tmp/view_bench.out", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		(void)dup2(null, STDOUT_FILENO);
		(void)execl(program, program, verb, "bench1", "--db", db, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid || status != 0) {
		(void)fprintf(stderr, "view_bench: %s %s failed\n", program, verb);
		exit(1);
	}
	*ret_cpu = ms_of(&used.ru_utime) + ms_of(&used.ru_stime);
	(void)clock_gettime(CLOCK_MONOTONIC, &b);
	return (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(
	const char *program, const char *verb, const char *db, uint32_t nodes, uint32_t rounds)
{
	double ms[ROUNDS_MAX], cpu[ROUNDS_MAX];
	uint32_t i;

	for (i = 0; i < rounds; i++)
		ms[i] = once(program, verb, db, &cpu[i]);
	qsort(ms, rounds, sizeof(ms[0]), by_value);
	qsort(cpu, rounds, sizeof(cpu[0]), by_value);
	(void)printf("protonview %s, %u nodes: median %.1f ms, least %.1f, most %.1f; CPU %.1f, "
		     "%.1f, %.1f (%u runs)\n",
		verb, nodes, ms[rounds / 2], ms[0], ms[rounds - 1], cpu[rounds / 2], cpu[0],
		cpu[rounds - 1], rounds);
}

int main(int argc, char **argv)
{
	uint32_t nodes = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 100000;
	uint32_t rounds = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 15;
	char path[] = "/tmp/view_bench.XXXXXX", extra[64];
	int fd, k;

	if (argc < 2 || nodes < 8 || rounds < 1 || rounds > ROUNDS_MAX) {
		(void)fprintf(stderr, "usage: view_bench PROTONVIEW [NODES [ROUNDS [VERB...]]]\n");
		return 2;
	}
	fd = mkstemp(path);
	if (fd < 0)
		return 1;
	(void)close(fd);
	make(path, nodes);
	for (k = 4; k < argc || k == 4; k++)
		measure(argv[1], k < argc ? argv[k] : "tree", path, nodes, rounds);
	(void)unlink(path);
	(void)unlink("/tmp/view_bench.out");
	(void)snprintf(extra, sizeof(extra), "%s-wal", path);
	(void)unlink(extra);
	(void)snprintf(extra, sizeof(extra), "%s-shm", path);
	(void)unlink(extra);
	return 0;
}
