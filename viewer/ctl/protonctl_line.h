/* SPDX-License-Identifier: MIT. protonctl_line.h: a command line of protonctl: what a verb is, what
 * was given to it, and how it says that it failed. For every file of protonctl; knows no verb by
 * name. */
#ifndef PROTOND_PROTONCTL_LINE_H
#define PROTOND_PROTONCTL_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"
#include "term.h"

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
	bool signs;                       /* -WORD is a positional word, as +WORD is */
	/* Positional words: 's' session, 'l' session that is not over, 'j' pid of a job, 'b' both,
	 * 'c' program, 'h' topic of help, 'w' one of the words that args lists, 0 files. */
	char completes;
};

extern const struct option_def common_options[]; /* of every verb */
extern const struct option_def no_options[];

/* A parsed command line. */
struct ctl {
	const struct command *const *table; /* of all verbs, NULL behind the last */
	const struct command *cmd;
	const char *value[CTL_OPTIONS_MAX]; /* by place in cmd->options, then common_options */
	char lists[1024];                   /* of options that were given more than once */
	size_t lists_n;
	int argc; /* positional */
	char **argv;
	bool json, color;
	struct term term; /* standard output */
	struct err err;
	char warning[CTL_WARNINGS_MAX][640]; /* a daemon's words, and ours */
	size_t n_warnings;
};

/* The i-th option of a command, its own before the common ones; NULL behind the last. */
const struct option_def *ctl_option_at(const struct command *cmd, size_t i);
/* By name or alias; NULL: there is none. */
const struct command *command_find(const struct command *const *table, const char *name);
/* Options into c->value, positional words to the front of argv. Exit code, or one of these. */
#define CTL_GO   (-1)
#define CTL_HELP (-2) /* --help was given */
int ctl_parse(struct ctl *c, int argc, char **argv);
/* The value of an option, "" for a given flag, NULL when not given. */
const char *ctl_option(const struct ctl *c, const char *name);
int ctl_exit_code(int code); /* of -errno */
/* Prints c->err, as JSON if asked to; returns its exit code. */
int ctl_fail(struct ctl *c);
int ctl_usage(struct ctl *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ctl_warn(struct ctl *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ctl_print(struct text *t); /* to standard output; ends the text */
/* Prints the warnings to stderr; with --json they are in the envelope instead. */
void ctl_warnings(const struct ctl *c);

#endif
