/* SPDX-License-Identifier: MIT. view_help.h: what the viewer's tests share: a database by the
 * schema with one training run in it, temporary files, and Check's frame. */
#ifndef PROTOND_VIEW_HELP_H
#define PROTOND_VIEW_HELP_H

#include "quick.h"
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile.h"
#include "schema.h"

#pragma GCC diagnostic ignored "-Woverlength-strings" /* the schema is one literal */

static inline void help_exec(sqlite3 *db, const char *sql)
{
	char *words = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &words) != SQLITE_OK)
		ck_abort_msg("%s: %s", sql, words);
}

static inline sqlite3 *help_db(const char *path)
{
	sqlite3 *db;
	char sql[96];
	bool fresh;

	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(schema_mend(db, false, &fresh), SQLITE_OK);
	(void)snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
	help_exec(db, sql);
	return db;
}

/* id, pid, rank ("NULL"), end_reason ("NULL" or "'killed'"), gpu_state, gpu_text */
static inline void help_process(sqlite3 *db, int id, int pid, const char *rank, const char *end,
	int gpu_state, const char *gpu_text)
{
	char sql[1024];

	(void)snprintf(sql, sizeof(sql),
		"INSERT INTO "
		"process(id,ring,host,boot_id,pid,pid_start,ns_pid,uid,command,exe,cwd,rank,"
		"started_ns,end_reason,source,version,gpu_state,gpu_code,gpu_text,cupti_version,"
		"driver_version,cupti_path,agent_ns,flags,clock,tsc_khz,n_lanes,lane_bytes,created_"
		"clock,"
		"created_monotonic_ns,created_realtime_ns,counters) "
		"VALUES(%d,x'%032x','node1',zeroblob(16),"
		"%d,1,%d,1000,'python "
		"train.py','/bin/x','/tmp',%s,1,%s,'live','0.1',%d,0,'%s',0,0,'',"
		"5000000,65536,0,0,1,1,0,0,0,x'')",
		id, (unsigned)id, pid, pid, rank, end, gpu_state, gpu_text);
	help_exec(db, sql);
}

static inline void help_session(
	sqlite3 *db, int id, const char *name, const char *source, const char *gpu)
{
	char sql[768];

	(void)snprintf(sql, sizeof(sql),
		"INSERT INTO "
		"session(id,uuid,name,uid,source,backend,mode,hook,data,context,cpu,state,match,"
		"pid,command,gpu,created_ns,active_ns,launches,matched,daemon_ns) "
		"VALUES(%d,x'%08x%024x',"
		"'%s',1000,'%s','cupti','','','tree','shadow','on','finalized','all',1,'cmd','%s',"
		"%d000000000,1000000000,0,0,5000000)",
		id, 0xabc00000u + (unsigned)id, (unsigned)id, name, source, gpu, 1700000000 + id);
	help_exec(db, sql);
}

/* Two ranks of one run on one device (uuid 11…) and a second device of rank 1.
 *
 *   ROOT ─ step (cpu) ─ forward (cpu) ─ sgemm (kernel)
 *                     └ [memcpy HtoD]
 *        └ nccl (comm kernel, rank 1 only)
 */
static inline void help_train(sqlite3 *db)
{
	help_process(db, 1, 4242, "0", "'exited'", 2, "");
	help_process(db, 2, 4243, "1", "'killed'", 2, "");
	help_session(db, 7, "train", "run", "on");
	help_exec(db,
		"UPDATE session SET launches = 20, matched = 18 WHERE id = 7;"
		"UPDATE process SET ended_ns = iif(id = 1, 10000000000, 1000000000);"
		"INSERT INTO member VALUES(7,1),(7,2);"
		"INSERT INTO active VALUES(7,1000,400001000),(7,500000000,1100000000);"
		"INSERT INTO segment VALUES(7,0,1000,500000000),(7,1,500000000,1100000000);"
		"INSERT INTO node VALUES(11,x'01',0,1,'step'),(12,x'02',11,1,'forward'),"
		" (13,x'03',12,5,'sgemm'),(14,x'04',11,6,'[memcpy HtoD]'),(15,x'05',0,5,'nccl'),"
		" (99,x'06',0,1,'of another session');"
		"INSERT INTO device VALUES"
		" (1,0,x'11111111111111111111111111111111',0,'CUDA','NVIDIA "
		"H200','',90,132,1980000,3201000,6144,1,NULL,NULL),"
		" (1,1,x'33333333333333333333333333333333',1,'CUDA','NVIDIA "
		"H200','',90,132,1980000,3201000,6144,1,NULL,NULL),"
		" (2,0,x'22222222222222222222222222222222',0,'CUDA','NVIDIA "
		"H200','',90,132,1980000,3201000,6144,1,NULL,NULL),"
		" (2,1,x'11111111111111111111111111111111',1,'CUDA','NVIDIA "
		"H200','',90,132,1980000,3201000,6144,1,NULL,NULL);"
		"INSERT INTO busy(session,process,device,busy_ns,first_ns,last_ns) "
		"VALUES(7,1,0,250000000,1,2),(7,2,0,500000000,1,2),(7,2,1,250000000,1,2);"
		"INSERT INTO loss VALUES(7,1,1,3),(7,2,1,4),(7,2,11,2);"
		"INSERT INTO note VALUES(7,1,0,5,'a gap'),(7,2,0,6,'a gap'),"
		"(7,2,1,7,'process 4243 was killed (signal 9) with 0 scopes open');"
		/* session process segment node device class count sum min max bytes untimed open
		   hist */
		"INSERT INTO cell(session,process,segment,node,device,class,count,sum_ns,min_ns,"
		"max_ns,bytes,untimed,open,hist) VALUES(7,1,0,11,-1,0,2,1000,400,600,0,0,0,NULL),"
		" (7,1,1,11,-1,0,1,500,500,500,0,0,1,NULL),"
		" (7,1,0,12,-1,0,2,700,300,400,0,0,0,NULL),"
		" (7,1,0,13,0,1,10,2000,100,300,0,0,0,x'0000000000000000000000000400000000000000"
		"06000000'),"
		" (7,2,0,13,0,1,4,900,50,350,0,1,0,x'01000000000000000200000000000000'),"
		" (7,2,1,13,1,1,1,100,100,100,0,0,0,x'00000000000000000000000001000000'),"
		" (7,1,0,14,0,3,3,64,10,40,4096,0,0,NULL),"
		" (7,2,0,15,0,2,5,5000,900,1100,0,0,0,NULL);"
		"INSERT INTO metric "
		"VALUES(7,1,0,13,'flops8',0,1000000,2),(7,2,0,13,'flops8',0,500000,1),"
		" (7,1,0,12,'loss',1,0.5,1),(7,1,0,12,'tag',2,'first',1),(7,2,1,12,'tag',2,'second'"
		",1);"
		"INSERT INTO config VALUES(7,1,13,0,128,1,1,256,1,1,40,1024,0,9),"
		" (7,2,13,0,64,2,1,128,1,1,32,0,512,5);");
}

/* A file under /tmp that the caller unlinks. */
static inline void help_temporary(char path[64])
{
	int fd;

	(void)snprintf(path, 64, "/tmp/protond-view-XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	(void)close(fd);
}

static inline uint32_t help_node(const struct profile *p, const char *name)
{
	uint32_t i;

	for (i = 0; i < p->n_nodes; i++)
		if (strcmp(p->node[i].name, name) == 0)
			return i;
	ck_abort_msg("no node '%s'", name);
	return PROFILE_NONE;
}

static inline const struct value *help_value(
	const struct profile *p, const char *node, const char *metric)
{
	uint32_t m = profile_find_metric(p, metric);

	ck_assert_msg(m != PROFILE_NONE, "no metric '%s'", metric);
	return profile_value(p, help_node(p, node), m);
}

#define HELP_SUITE(name, TESTS)                \
	Suite *suite(void)                     \
	{                                      \
		Suite *s = suite_create(name); \
		TCase *t = tcase_create(name); \
                                               \
		TESTS(HELP_ADD)                \
		tcase_set_timeout(t, 60);      \
		suite_add_tcase(s, t);         \
		return s;                      \
	}
#define HELP_ADD(test) tcase_add_test(t, test);

#endif
