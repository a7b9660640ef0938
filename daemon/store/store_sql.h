/* SPDX-License-Identifier: MIT. store_sql.h: all SQL of the daemon, one table, prepared once. */
#ifndef PROTOND_STORE_SQL_H
#define PROTOND_STORE_SQL_H

/* Columns as they are bound and read: one list makes INSERT, UPDATE, SELECT and the indices. */
/* clang-format off */
#define PROCESS_COLUMNS(X)                                                                         \
	X(ring) X(host) X(boot_id) X(pid) X(pid_start) X(ns_pid) X(uid) X(parent) X(token)         \
	X(command) X(exe) X(cwd) X(job_id) X(rank) X(local_rank) X(world_size) X(started_ns)       \
	X(ended_ns) X(end_reason) X(source) X(version) X(gpu_state) X(gpu_code) X(gpu_text)        \
	X(cupti_version) X(driver_version) X(cupti_path) X(agent_ns) X(flags) X(clock) X(tsc_khz)  \
	X(n_lanes) X(lane_bytes) X(created_clock) X(created_monotonic_ns) X(created_realtime_ns)   \
	X(counters)
#define SESSION_COLUMNS(X)                                                                         \
	X(uuid) X(name) X(uid) X(source) X(backend) X(mode) X(hook) X(data) X(context) X(cpu)      \
	X(state) X(match) X(token) X(owner) X(job_number) X(pid) X(command) X(gpu) X(created_ns)   \
	X(finalized_ns) X(active_ns) X(launches) X(matched) X(daemon_ns)

#define SQL_NAME(c)  "\"" #c "\","
#define SQL_MARK(c)  "?,"
#define SQL_SET(c)   "\"" #c "\"=excluded.\"" #c "\","

#define SQL_LIVE     "(SELECT id FROM session WHERE state<>'finalized')"
#define SQL_LOADED   "(SELECT id FROM process WHERE ended_ns IS NULL UNION " \
                     "SELECT process FROM member WHERE session IN " SQL_LIVE ")"

#define STORE_SQL(X)                                                                                        \
	X(BEGIN,         "BEGIN IMMEDIATE")                                                                 \
	X(COMMIT,        "COMMIT")                                                                          \
	/* a position or a counter never goes back */                                                       \
	X(META_RAISE,    "INSERT INTO meta(key,value) VALUES(?1,?2) ON CONFLICT(key) "                      \
	                 "DO UPDATE SET value=max(value,excluded.value)")                                   \
	X(META_GET,      "SELECT value FROM meta WHERE key=?1")                                             \
	X(PROCESS_PUT,   "INSERT INTO process(" PROCESS_COLUMNS(SQL_NAME) "id) VALUES("                     \
	                 PROCESS_COLUMNS(SQL_MARK) "?) ON CONFLICT(id) DO UPDATE SET "                      \
	                 PROCESS_COLUMNS(SQL_SET) "id=excluded.id")                                         \
	X(SESSION_PUT,   "INSERT INTO session(" SESSION_COLUMNS(SQL_NAME) "id) VALUES("                     \
	                 SESSION_COLUMNS(SQL_MARK) "?) ON CONFLICT(id) DO UPDATE SET "                      \
	                 SESSION_COLUMNS(SQL_SET) "id=excluded.id")                                         \
	X(MEMBER_PUT,    "INSERT OR REPLACE INTO member(session,process) VALUES(?1,?2)")                    \
	X(ACTIVE_PUT,    "INSERT OR REPLACE INTO active(session,begin_ns,end_ns) VALUES(?1,?2,?3)")         \
	X(SEGMENT_PUT,   "INSERT OR REPLACE INTO segment(session,segment,begin_ns,end_ns) "                 \
	                 "VALUES(?1,?2,?3,?4)")                                                             \
	X(NODE_FIND,     "SELECT id FROM node WHERE hash=?1")                                               \
	X(NODE_PUT,      "INSERT INTO node(hash,parent,kind,name) VALUES(?1,?2,?3,?4) ON CONFLICT(hash) "   \
	                 "DO UPDATE SET parent=excluded.parent,kind=excluded.kind,name=excluded.name "      \
	                 "WHERE node.name='" NODE_UNKNOWN "'")                                              \
	X(CELL_PUT,      "INSERT OR REPLACE INTO cell(session,process,segment,node,device,class,count,"     \
	                 "sum_ns,min_ns,max_ns,bytes,untimed,open,hist) "                                   \
	                 "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)")                          \
	X(METRIC_PUT,    "INSERT OR REPLACE INTO metric(session,process,segment,node,name,kind,value,"      \
	                 "count) VALUES(?1,?2,?3,?4,?5,?6,?7,?8)")                                          \
	X(CONFIG_PUT,    "INSERT OR REPLACE INTO config(session,process,node,config,grid_x,grid_y,grid_z,"  \
	                 "block_x,block_y,block_z,registers,static_shared,dynamic_shared,count) "           \
	                 "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)")                          \
	X(DEVICE_PUT,    "INSERT OR REPLACE INTO device(process,device,uuid,ordinal,type,name,pci,arch,"    \
	                 "num_sms,clock_khz,memory_clock_khz,bus_width,memory_bytes) "                      \
	                 "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)")                              \
	X(BUSY_PUT,      "INSERT OR REPLACE INTO busy(session,process,device,busy_ns,first_ns,last_ns) "    \
	                 "VALUES(?1,?2,?3,?4,?5,?6)")                                                       \
	X(TRACE_PUT,     "INSERT OR REPLACE INTO trace(session,process,number,first,events,end_ns,bytes) " \
	                 "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                    \
	/* of what is gone the last one tells how much that is */                                           \
	X(TRACE_DROP,    "DELETE FROM trace WHERE session=?1 AND process=?2 AND number<?3 AND bytes IS NULL") \
	X(LOSS_PUT,      "INSERT OR REPLACE INTO loss(session,process,cause,count) VALUES(?1,?2,?3,?4)")    \
	X(NOTE_PUT,      "INSERT OR REPLACE INTO note(session,process,number,ns,text) "                     \
	                 "VALUES(?1,?2,?3,?4,?5)")                                                          \
	X(LANE_PUT,      "INSERT OR REPLACE INTO lane(process,lane,head) VALUES(?1,?2,?3)")                 \
	X(PENDING_PUT,   "INSERT OR REPLACE INTO pending(process,launches) VALUES(?1,?2)")                  \
	X(PENDING_DROP,  "DELETE FROM pending WHERE process=?1")                                            \
	X(ANCHOR_PUT,    "INSERT OR REPLACE INTO anchor(clock,monotonic_ns,realtime_ns,error_ns,ring_clock) "          \
	                 "VALUES(?1,?2,?3,?4,?5)")                                                          \
	X(PROCESS_LOAD,  "SELECT " PROCESS_COLUMNS(SQL_NAME) "id FROM process WHERE id IN " SQL_LOADED      \
	                 " ORDER BY id")                                                                    \
	X(PROCESS_ENDED, "SELECT 1 FROM process WHERE ring=?1 AND ended_ns IS NOT NULL")                    \
	X(SESSION_LOAD,  "SELECT " SESSION_COLUMNS(SQL_NAME) "id FROM session WHERE state<>'finalized' "    \
	                 "ORDER BY id")                                                                     \
	X(MEMBER_LOAD,   "SELECT session,process FROM member WHERE session IN " SQL_LIVE)                   \
	X(ACTIVE_LOAD,   "SELECT session,begin_ns,end_ns FROM active WHERE session IN " SQL_LIVE)           \
	X(SEGMENT_LOAD,  "SELECT session,segment,begin_ns,end_ns FROM segment WHERE session IN " SQL_LIVE)  \
	X(NODE_LOAD,     "WITH RECURSIVE need(id) AS ("                                                     \
	                 "SELECT node FROM cell WHERE session IN " SQL_LIVE                                 \
	                 " UNION SELECT node FROM metric WHERE session IN " SQL_LIVE                        \
	                 " UNION SELECT node FROM config WHERE session IN " SQL_LIVE                        \
	                 " UNION SELECT node.parent FROM node JOIN need ON node.id=need.id "                \
	                 "WHERE node.parent<>0) "                                                           \
	                 "SELECT node.id,parent,hash,kind,name FROM node JOIN need ON node.id=need.id "     \
	                 "ORDER BY node.id")                                                                \
	X(CELL_LOAD,     "SELECT session,process,segment,hash,device,class,count,sum_ns,min_ns,max_ns,"     \
	                 "bytes,untimed,open,hist FROM cell JOIN node ON node.id=cell.node "                \
	                 "WHERE session IN " SQL_LIVE)                                                      \
	X(METRIC_LOAD,   "SELECT session,process,segment,hash,metric.name,metric.kind,value,count "         \
	                 "FROM metric JOIN node ON node.id=metric.node WHERE session IN " SQL_LIVE)         \
	X(CONFIG_LOAD,   "SELECT session,process,hash,config,grid_x,grid_y,grid_z,block_x,block_y,"         \
	                 "block_z,registers,static_shared,dynamic_shared,count FROM config "                \
	                 "JOIN node ON node.id=config.node WHERE session IN " SQL_LIVE)                     \
	X(DEVICE_LOAD,   "SELECT process,device,uuid,ordinal,type,name,pci,arch,num_sms,clock_khz,"         \
	                 "memory_clock_khz,bus_width,memory_bytes FROM device WHERE process IN " SQL_LOADED) \
	X(BUSY_LOAD,     "SELECT session,process,device,busy_ns,first_ns,last_ns FROM busy "                \
	                 "WHERE session IN " SQL_LIVE)                                                      \
	X(TRACE_LOAD,    "SELECT session,process,number,first,events,end_ns,coalesce(length(bytes),0) "     \
	                 "FROM trace WHERE session IN " SQL_LIVE " ORDER BY rowid")                         \
	/* session 0: what a process lost outside of any session */                                         \
	X(LOSS_LOAD,     "SELECT session,process,cause,count FROM loss WHERE session IN " SQL_LIVE          \
	                 " OR (session=0 AND process IN " SQL_LOADED ") ORDER BY 1,2,3")                    \
	X(NOTE_LOAD,     "SELECT session,process,number,ns,text FROM note WHERE session IN " SQL_LIVE       \
	                 " OR (session=0 AND process IN " SQL_LOADED ") ORDER BY 1,2,3")                    \
	X(LANE_LOAD,     "SELECT process,lane,head FROM lane WHERE process IN " SQL_LOADED)                 \
	X(PENDING_LOAD,  "SELECT process,launches FROM pending WHERE process=0 OR process IN " SQL_LOADED)               \
	/* the youngest; the clock starts again at each boot, so it does not say which those are */         \
	X(ANCHOR_LOAD,   "SELECT clock,monotonic_ns,realtime_ns,error_ns,ring_clock FROM (SELECT * FROM anchor "       \
	                 "ORDER BY realtime_ns DESC LIMIT 1000) ORDER BY realtime_ns")                      \
	X(NEXT_PROCESS,  "SELECT max(coalesce((SELECT max(id) FROM process),0)+1,"                          \
	                 "coalesce((SELECT value FROM meta WHERE key='next_process'),1))")                  \
	X(NEXT_SESSION,  "SELECT max(coalesce((SELECT max(id) FROM session),0)+1,"                          \
	                 "coalesce((SELECT value FROM meta WHERE key='next_session'),1))")

/* SQL that runs seldom, so it is prepared when it is needed; ?1 is a session or a process. */
#define STORE_DROP_SESSION(X)                                                                               \
	X("INSERT OR REPLACE INTO meta(key,value) VALUES('sweep',?1)")                                      \
	X("DELETE FROM cell WHERE session=?1")                                                              \
	X("DELETE FROM metric WHERE session=?1")                                                            \
	X("DELETE FROM config WHERE session=?1")                                                            \
	X("DELETE FROM busy WHERE session=?1")                                                              \
	X("DELETE FROM trace WHERE session=?1")                                                             \
	X("DELETE FROM loss WHERE session=?1")                                                              \
	X("DELETE FROM note WHERE session=?1")                                                              \
	X("DELETE FROM active WHERE session=?1")                                                            \
	X("DELETE FROM segment WHERE session=?1")                                                           \
	X("DELETE FROM member WHERE session=?1")                                                            \
	X("DELETE FROM session WHERE id=?1")
#define STORE_SWEEP                                                                                         \
	"DELETE FROM process WHERE ended_ns IS NOT NULL AND id NOT IN (SELECT process FROM member);"        \
	"DELETE FROM device WHERE process NOT IN (SELECT id FROM process);"                                 \
	"DELETE FROM lane WHERE process NOT IN (SELECT id FROM process);"                                   \
	"DELETE FROM pending WHERE process!=0 AND process NOT IN (SELECT id FROM process);"                                \
	"DELETE FROM loss WHERE session=0 AND process NOT IN (SELECT id FROM process);"                     \
	"DELETE FROM note WHERE session=0 AND process NOT IN (SELECT id FROM process);"                     \
	"DELETE FROM anchor WHERE realtime_ns<min("                                                         \
	"coalesce((SELECT min(created_ns) FROM session),9223372036854775807),"                              \
	"coalesce((SELECT min(started_ns) FROM process),9223372036854775807),"                              \
	"coalesce((SELECT realtime_ns FROM anchor ORDER BY realtime_ns DESC LIMIT 1 OFFSET 999),0));"
/* Of more than 65 536 anchors, a day's, every second one of the older half. */
#define STORE_THIN                                                                                          \
	"DELETE FROM anchor WHERE (SELECT count(*) FROM anchor)>65536 AND (ring_clock,clock) IN "           \
	"(SELECT ring_clock,clock FROM (SELECT ring_clock,clock,row_number() OVER (ORDER BY realtime_ns) i " \
	"FROM anchor) WHERE i<=32768 AND i%2=0)"
/* Rows of a portable file, in this order; ?1 is the session. */
#define STORE_PORTABLE(X)                                                                                   \
	X(session, "SELECT * FROM session WHERE id=?1")                                                     \
	X(member,  "SELECT * FROM member WHERE session=?1")                                                 \
	X(process, "SELECT * FROM process WHERE id IN (SELECT process FROM member WHERE session=?1)")       \
	X(device,  "SELECT * FROM device WHERE process IN (SELECT process FROM member WHERE session=?1)")   \
	X(active,  "SELECT * FROM active WHERE session=?1")                                                 \
	X(segment, "SELECT * FROM segment WHERE session=?1")                                                \
	X(cell,    "SELECT * FROM cell WHERE session=?1")                                                   \
	X(metric,  "SELECT * FROM metric WHERE session=?1")                                                 \
	X(config,  "SELECT * FROM config WHERE session=?1")                                                 \
	X(busy,    "SELECT * FROM busy WHERE session=?1")                                                   \
	X(trace,   "SELECT * FROM trace WHERE session=?1 ORDER BY rowid")                                   \
	X(loss,    "SELECT * FROM loss WHERE session=?1 OR (session=0 AND process IN "                      \
	           "(SELECT process FROM member WHERE session=?1))")                                        \
	X(note,    "SELECT * FROM note WHERE session=?1 OR (session=0 AND process IN "                      \
	           "(SELECT process FROM member WHERE session=?1))")                                        \
	X(anchor,  "SELECT * FROM anchor WHERE realtime_ns BETWEEN "                                        \
	           "(SELECT created_ns-60000000000 FROM session WHERE id=?1) AND "                          \
	           "(SELECT coalesce(finalized_ns+60000000000,9223372036854775807) FROM session "           \
	           "WHERE id=?1)")                                                                          \
	X(node,    "WITH RECURSIVE need(id) AS (SELECT node FROM cell WHERE session=?1 "                    \
	           "UNION SELECT node FROM metric WHERE session=?1 "                                        \
	           "UNION SELECT node FROM config WHERE session=?1 "                                        \
	           "UNION SELECT node.parent FROM node JOIN need ON node.id=need.id "                       \
	           "WHERE node.parent<>0) SELECT * FROM node WHERE id IN (SELECT id FROM need)")
/* clang-format on */

#define NODE_UNKNOWN \
	"(unknown)" /* a node that rows refer to and nobody described; never lost, named later */

#endif
