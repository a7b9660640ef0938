/* SPDX-License-Identifier: MIT. protonctl.h: what the files of protonctl share: the table of
 * commands, a parsed command line, and words for people. */
#ifndef PROTOND_PROTONCTL_H
#define PROTOND_PROTONCTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "err.h"
#include "rpc.h"

/* Exit codes; those of `run` are 125, 126, 127, as with env(1). */
enum ctl_exit {
	CTL_OK = 0,
	CTL_NOT_FOUND = 1,
	CTL_USAGE = 2,
	CTL_UNREACHABLE = 3,
	CTL_PARTIAL = 4,
	CTL_RUN_FAILED = 125,
	CTL_RUN_CANNOT = 126,
	CTL_RUN_MISSING = 127,
};

#define CTL_OPTIONS_MAX  24
#define CTL_WARNINGS_MAX 16

struct option_def {
	char key;         /* 0: long only */
	const char *name; /* long; NULL ends a table */
	const char *arg;  /* NULL: a flag */
	const char *help;
	const char *words; /* of the argument, space-separated, for completion; NULL: any */
};

struct ctl;
typedef int ctl_fn(struct ctl *c); /* returns the exit code */

struct command {
	const char *name, *alias; /* alias NULL: none */
	ctl_fn *run;
	int min, max;     /* positional arguments; max -1: any */
	const char *args; /* as usage shows them */
	const char *help; /* one line */
	const char *more; /* further words for --help, or NULL */
	const char *examples;
	const struct option_def *options; /* NULL-terminated; common ones come on top */
	bool passes;                      /* the first word that is no option ends the options */
	/* Positional words: 's' session, 'j' pid of a job, 'b' both, 'c' program, 'h' topic of
	 * help, 'w' shell, 0 files. */
	char completes;
};

extern const struct command commands[];
extern const size_t n_commands;
extern const struct option_def common_options[];

/* A parsed command line. */
struct ctl {
	const struct command *cmd;
	const char *value[CTL_OPTIONS_MAX]; /* by place in cmd->options, then common_options */
	int argc;                           /* positional */
	char **argv;
	bool json, color;
	struct err err;
	char warning[CTL_WARNINGS_MAX][640]; /* a daemon's words, and ours */
	size_t n_warnings;
};

/* --- protonctl.c
 * ------------------------------------------------------------------------------------ */

/* The i-th option of a command, its own before the common ones; NULL behind the last. */
const struct option_def *ctl_option_at(const struct command *cmd, size_t i);
const struct command *command_find(const char *name); /* by name or alias; NULL */
/* Options into c->value, positional words to the front of argv. Exit code, or -1: go on. */
int ctl_parse(struct ctl *c, int argc, char **argv);
/* The value of an option, "" for a given flag, NULL when not given. */
const char *ctl_option(const struct ctl *c, const char *name);
int ctl_exit_code(int code); /* of -errno */
/* Says c->err (as JSON where asked for) and gives its exit code. */
int ctl_fail(struct ctl *c);
int ctl_usage(struct ctl *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ctl_warn(struct ctl *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints the warnings to stderr; with --json they are in the envelope instead. */
void ctl_warnings(const struct ctl *c);
/* 0, or -errno in c->err. */
int ctl_open(struct ctl *c, struct rpc **ret);
#define CTL_DB_WORDS 4200
/* "PROTOND_DB=FILE ", for words that name a command of protonview's, where that may look for
 * another database than the daemon's; "" */
void ctl_db_words(const struct rpc *rpc, char *buf, size_t n);
int ctl_call(struct ctl *c, struct rpc *r, struct rpc_reply *ret);
/* Opens, calls `method` with no further params, closes. 0, or -errno in c->err. */
int ctl_ask(struct ctl *c, const char *method, struct rpc_reply *ret);
/* With --json: the envelope around the answer. True: that is all there is to print. */
bool ctl_json(struct ctl *c, const struct rpc_reply *r);
/* With --json: a list of that key, and how many more there are. */
void ctl_json_list(
	struct ctl *c, const char *key, const msgpack_object *item, uint32_t n, uint64_t more);
/* With --json: what was deleted, as `prune` says it, and what was not; objects, with commas
 * between.
 */
void ctl_json_deleted(struct ctl *c, int n, const char *sessions, const char *failed);

/* --- protonctl_help.c
 * ------------------------------------------------------------------------------- */

void help_all(FILE *f);
void help_command(FILE *f, const struct command *cmd);

/* --- protonctl_launch.c: the runs of one launch on a node are one session --------------------- */

struct launch {
	int fd; /* -1: a run alone */
	char path[256];
	struct launch_session {
		uint8_t token[16];
		char uuid[40];
		int64_t id;
	} session;
};
/* 1: another rank has begun the session, which is in l->session. 0: begin it, then launch_begin().
 */
int launch_join(struct launch *l, const char *name);
void launch_begin(struct launch *l); /* l->session is filled in */
bool launch_leave(struct launch *l); /* true: nobody else is left, so the session ends */

/* --- protonctl_options.c: what can be set for a job ------------------------------------------- */

void job_options_help(FILE *f);
void job_options_man(void (*text)(const char *)); /* text() prints what troff must not read */
/* Each variable whose value the table does not permit, in words. */
typedef void job_option_wrong_fn(void *arg, const char *words);
void job_options_check(job_option_wrong_fn *fn, void *arg);
void help_did_you_mean(FILE *f, const char *name);
ctl_fn cmd_help, cmd_man;

/* --- protonctl_complete.c
 * --------------------------------------------------------------------------- */

ctl_fn cmd_completion, cmd_complete;

/* --- protonctl_text.c
 * ------------------------------------------------------------------------------- */

/* Text of a job: control characters and bytes that are not UTF-8 are shown as '?', at most n
 * columns (0: all) with "..." at the end. */
void text_put(FILE *f, const char *text, size_t n);
bool text_is_harmless(const char *text);    /* text_put() changes nothing of it */
void text_duration(double s, char ret[32]); /* "1.20 s", "3 min 4 s" */
void text_bytes(uint64_t n, char ret[32]);
void text_when(int64_t realtime_ns, char ret[32]); /* local time */
bool text_u64(const char *text, uint64_t max, uint64_t *ret);

/* --- protonctl_self.c: what lies beside this program
 * ------------------------------------------------ */

/* An executable or library of ours: beside us, in ../bin, ../lib and so on. -ENOENT. */
int self_find(const char *name, char *ret, size_t n);
/* The folder whose sitecustomize.py names what PyTorch does. -ENOENT: no Python package. */
int self_find_python(char *ret, size_t n);

/* One variable that turns a process on. */
struct env_var {
	const char *name;
	char value[2048];
	bool taken; /* the environment has another value, of another tool */
};
#define ENV_VARS_MAX 4
/* The variables for jobs of the daemon in `dir`. Returns how many; 0 with words when the library is
 * nowhere. */
size_t env_vars(const char *dir, struct env_var ret[ENV_VARS_MAX], struct err *e);
void env_line(FILE *f, const char *dir); /* "eval \"$(protonctl env)\"" or the reason why not */

/* --- protonctl_daemon.c
 * ------------------------------------------------------------------------------- */

/* Connects; when no daemon runs, starts a private one and connects to that. */
int daemon_ensure(struct rpc **ret, bool *ret_started, struct err *e);

/* --- commands
 * ----------------------------------------------------------------------------------------- */

ctl_fn cmd_run, cmd_start, cmd_stop, cmd_activate, cmd_finalize, cmd_pause, cmd_resume,
	cmd_sessions, cmd_jobs, cmd_where, cmd_top, cmd_status, cmd_env, cmd_backends, cmd_doctor,
	cmd_delete, cmd_prune, cmd_shutdown, cmd_version;

/* Session options that run and start share, into the open params. -EINVAL in c->err. */
int session_params(struct ctl *c, struct wire_buf *b);
/* Expands %h %p %q{VAR} %%. -EINVAL, -ENAMETOOLONG with words. */
int expand_name(const char *text, int64_t pid, char *ret, size_t n, struct err *e);
/* Whether -o FILE can be written, before there is anything to write. -EINVAL, -EEXIST, ... in
 * c->err. */
int output_check(struct ctl *c, const char *path);
/* Exports a session as .hatchet into a file that is complete or not there. `force`: over an old
 * one. */
int export_file(struct rpc *r, const char *session, const char *path, bool force, struct err *e);

#endif
