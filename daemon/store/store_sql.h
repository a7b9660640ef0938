/* SPDX-License-Identifier: MIT. store_sql.h: all SQL of the daemon, one table, prepared once. */
#ifndef PROTOND_STORE_SQL_H
#define PROTOND_STORE_SQL_H

/* Statements with all columns of a table come from its list in tables.h: "INSERT OR REPLACE INTO
 * t", or what is below, and "SELECT columns" before these. */
/* clang-format off */
#define SQL_ENDED    "state IN ('finalized','interrupted')"
#define SQL_LIVE     "(SELECT id FROM session WHERE NOT " SQL_ENDED ")"
#define SQL_LOADED   "(SELECT id FROM process WHERE ended_ns IS NULL UNION " \
                     "SELECT process FROM member WHERE session IN " SQL_LIVE ")"

#define STORE_SQL(X)                                                                                        \
	X(BEGIN,         "BEGIN IMMEDIATE")                                                                 \
	X(COMMIT,        "COMMIT")                                                                          \
	/* a position or a counter never goes back */                                                       \
	X(META_RAISE,    "INSERT INTO meta(key,value) VALUES(?1,?2) ON CONFLICT(key) "                      \
	                 "DO UPDATE SET value=max(value,excluded.value)")                                   \
	X(META_GET,      "SELECT value FROM meta WHERE key=?1")                                             \
	X(NODE_FIND,     "SELECT id FROM node WHERE hash=?1")                                               \
	X(NODE_PARENT,   "SELECT parent FROM node WHERE id=?1")                                             \
	/* one that nobody described: its description may still come */                                       \
	X(NODE_UNKNOWN,  "INSERT INTO node(hash,parent,kind,name) VALUES(?1,0,?2,'" NODE_UNKNOWN "')")        \
	/* of what is gone the last one tells how much that is */                                           \
	X(TRACE_DROP,    "DELETE FROM trace WHERE session=?1 AND process=?2 AND number<?3 AND bytes IS NULL") \
	X(PENDING_DROP,  "DELETE FROM pending WHERE process=?1")                                            \
	X(PROCESS_ENDED, "SELECT 1 FROM process WHERE ring=?1 AND ended_ns IS NOT NULL")                    \
	X(NEXT_PROCESS,  "SELECT max(coalesce((SELECT max(id) FROM process),0)+1,"                          \
	                 "coalesce((SELECT value FROM meta WHERE key='next_process'),1))")                  \
	X(NEXT_SESSION,  "SELECT max(coalesce((SELECT max(id) FROM session),0)+1,"                          \
	                 "coalesce((SELECT value FROM meta WHERE key='next_session'),1))")

/* Rows that are brought up to date in place, where two laws of uniqueness hold: X(table, the column by
 * which a row is found, condition). All but the first column change. */
#define STORE_UPSERTS(X)                                                                                    \
	X(process, "id",   "")                                                                              \
	X(session, "id",   "")                                                                              \
	X(node,    "hash", " WHERE node.name='" NODE_UNKNOWN "'")

/* Which rows a load reads. */
#define STORE_LOADS(X)                                                                                      \
	X(process, "FROM process WHERE id IN " SQL_LOADED " ORDER BY id")                                   \
	X(session, "FROM session WHERE NOT " SQL_ENDED " ORDER BY id")                                      \
	X(member,  "FROM member WHERE session IN " SQL_LIVE)                                                \
	X(active,  "FROM active WHERE session IN " SQL_LIVE)                                                \
	X(segment, "FROM segment WHERE session IN " SQL_LIVE)                                               \
	X(node,    "FROM node WHERE id IN (WITH RECURSIVE need(id) AS ("                                    \
	           "SELECT node FROM cell WHERE session IN " SQL_LIVE                                       \
	           " UNION SELECT node FROM metric WHERE session IN " SQL_LIVE                              \
	           " UNION SELECT node FROM config WHERE session IN " SQL_LIVE                              \
	           " UNION SELECT node.parent FROM node JOIN need ON node.id=need.id "                      \
	           "WHERE node.parent<>0) SELECT id FROM need) ORDER BY id")                                \
	X(cell,    "FROM cell WHERE session IN " SQL_LIVE)                                                  \
	X(metric,  "FROM metric WHERE session IN " SQL_LIVE)                                                \
	X(config,  "FROM config WHERE session IN " SQL_LIVE)                                                \
	X(device,  "FROM device WHERE process IN " SQL_LOADED)                                              \
	X(busy,    "FROM busy WHERE session IN " SQL_LIVE)                                                  \
	/* session 0: what a process lost outside of any session */                                         \
	X(loss,    "FROM loss WHERE session IN " SQL_LIVE " OR (session=0 AND process IN " SQL_LOADED ") "  \
	           "ORDER BY session,process,cause")                                                        \
	X(note,    "FROM note WHERE session IN " SQL_LIVE " OR (session=0 AND process IN " SQL_LOADED ") "  \
	           "ORDER BY session,process,number")                                                       \
	X(lane,    "FROM lane WHERE process IN " SQL_LOADED)                                                \
	X(pending, "FROM pending WHERE process=0 OR process IN " SQL_LOADED)                                \
	/* the youngest; the clock starts again at each boot, so it does not say which those are */         \
	X(anchor,  "FROM (SELECT * FROM anchor ORDER BY realtime_ns DESC LIMIT 1000) ORDER BY realtime_ns") \
	X(trace,   "FROM trace WHERE session IN " SQL_LIVE " ORDER BY rowid")                               \
	X(reading, "FROM reading WHERE session IN " SQL_LIVE)                                               \
	X(step,    "FROM step WHERE session IN " SQL_LIVE)                                                  \
	X(memory,  "FROM memory WHERE session IN " SQL_LIVE)

/* SQL that runs seldom, so it is prepared when it is needed; ?1 is a session or a process. */
/* What makes a session leave. The first of them is its own row. */
#define STORE_FORGET_SESSION(X)                                                                             \
	X("DELETE FROM session WHERE id=?1")                                                                \
	X("INSERT OR REPLACE INTO meta(key,value) VALUES(" META_DROP(?1) ",?1)")                             \
	X("INSERT OR REPLACE INTO meta(key,value) VALUES('sweep',?1)")
/* The youngest goes first: its pages are at the end of the file, and go back without moving others. */
#define META_DROP(id)      "printf('drop %020d'," #id ")"
#define STORE_NEXT_DROP    "SELECT value FROM meta WHERE key>='drop ' AND key<'drop!' ORDER BY key DESC LIMIT 1"
#define STORE_DROP_IS_OVER "DELETE FROM meta WHERE key=" META_DROP(?1)
/* X(table, how one of its rows is named, so many at once). Then it is over. */
#define STORE_DROP_SESSION(X)                                                                               \
	X(cell,    "session,process,segment,node,device,class", 256)                                     \
	X(metric,  "session,process,segment,node,name", 256)                                             \
	X(config,  "session,process,node,config", 256)                                                   \
	X(busy,    "session,process,device", 256)                                                        \
	X(trace,   "rowid", 16)                                                                         \
	X(reading, "session,gpu,number", 64)                                                             \
	X(step,    "session,process,number", 64)                                                         \
	X(memory,  "session,process", 64)                                                         \
	X(loss,    "session,process,cause", 256)                                                         \
	X(note,    "session,process,number", 256)                                                        \
	X(active,  "session,begin_ns", 256)                                                              \
	X(segment, "session,segment", 256)                                                               \
	X(member,  "session,process", 256)
/* A process that has ended and is in no session. */
#define STORE_DROP_PROCESS(X)                                                                               \
	X("DELETE FROM process WHERE id=?1 AND ended_ns IS NOT NULL")                                       \
	X("DELETE FROM device WHERE process=?1")                                                            \
	X("DELETE FROM lane WHERE process=?1")                                                              \
	X("DELETE FROM pending WHERE process=?1")                                                           \
	X("DELETE FROM loss WHERE session=0 AND process=?1")                                                \
	X("DELETE FROM note WHERE session=0 AND process=?1")
#define STORE_ANCHORS_FROM                                                                                  \
	"SELECT min("                                                                                       \
	"coalesce((SELECT min(created_ns) FROM session),9223372036854775807),"                              \
	"coalesce((SELECT min(started_ns) FROM process),9223372036854775807),"                              \
	"coalesce((SELECT realtime_ns FROM anchor ORDER BY realtime_ns DESC LIMIT 1 OFFSET 999),0))"
#define STORE_LABEL_GET "SELECT name,note,tags FROM session WHERE id=?1"
#define STORE_LABEL_PUT                                                                                     \
	"UPDATE session SET name=?2,note=nullif(?3,''),tags=nullif(?4,'') WHERE id=?1"
#define STORE_OLD_ANCHORS                                                                                   \
	"DELETE FROM anchor WHERE (ring_clock,clock) IN "                                                   \
	"(SELECT ring_clock,clock FROM anchor WHERE realtime_ns<?1 LIMIT 256)"
/* Of more than 65 536 anchors, a day's, every second one of the older half. */
#define STORE_THIN                                                                                          \
	"DELETE FROM anchor WHERE (SELECT count(*) FROM anchor)>65536 AND (ring_clock,clock) IN "           \
	"(SELECT ring_clock,clock FROM (SELECT ring_clock,clock,row_number() OVER (ORDER BY realtime_ns) i " \
	"FROM anchor) WHERE i<=32768 AND i%2=0)"
/* clang-format on */

#define NODE_UNKNOWN \
	"(unknown)" /* a node that rows refer to and nobody described; never lost, named later */

#endif
