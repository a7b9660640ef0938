/* SPDX-License-Identifier: MIT. main.c: protond's command line, and who it is when it starts. */
#include "loop.h"

#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "home.h"
#include "host_clock.h"
#include "log.h"
#include "paths.h"
#include "verbs.h"

#define FILES_AT_ONCE 16384u /* 4 096 jobs */
#define EXIT_USAGE    2
#define EXIT_RUNNING  3

/* clang-format off */
#define OPTIONS(X) /* id  name         argument  help */                                                      \
	X(PRIVATE,    "private",    NULL,   "the user's own daemon: own directories, ends when idle")          \
	X(FOREGROUND, "foreground", NULL,   "write the log to standard error, also when private")           \
	X(CONFIG,     "config",     "FILE", "read FILE instead of the usual configuration")                    \
	X(CHECK,      "check",      NULL,   "say where configuration and database are, and what is wrong there (for a user other than root: as --private)") \
	X(VERSION,    "version",    NULL,   "print the version")                                               \
	X(HELP,       "help",       NULL,   "print this")                                                      \
	X(MAN,        "man",        NULL,   "print the manual page (roff)")
/* clang-format on */

enum option_id {
	OPTION_NONE = 256,
#define X(id, name, argument, help) OPTION_##id,
	OPTIONS(X)
#undef X
};

static const struct option_row {
	const char *name, *argument, *help;
	int id;
} rows[] = {
#define X(id, name, argument, help) {name, argument, help, OPTION_##id},
	OPTIONS(X)
#undef X
};
#define ROWS_N (sizeof(rows) / sizeof(rows[0]))

struct options {
	bool private, foreground, check;
	const char *config;
};

#define HELP_COLUMNS 80

/* What stands at the left, then words behind it, in lines that fit. */
static void print_row(const char *left, int indent, const char *words)
{
	int column = printf("%-*s", indent, left), n;
	const char *before = "";

	if (column > indent)
		column = printf("\n%*s", indent, "") - 1;
	for (; *words != '\0'; words += n + (words[n] == ' ')) {
		n = (int)strcspn(words, " ");
		if (column > indent && column + 1 + n > HELP_COLUMNS) {
			column = printf("\n%*s", indent, "") - 1;
			before = "";
		}
		column += printf("%s%.*s", before, n, words);
		before = " ";
	}
	(void)putchar('\n');
}

static void print_help(void)
{
	char left[32], words[256];
	size_t i;

	(void)printf("usage: protond [options]\n\n"
		     "The daemon of the GPU profiler protond. It stays in the foreground; a "
		     "service\nmanager or protonctl starts it.\n\n");
	for (i = 0; i < ROWS_N; i++) {
		(void)snprintf(left, sizeof(left), "  --%s %s", rows[i].name,
			rows[i].argument != NULL ? rows[i].argument : "");
		print_row(left, 21, rows[i].help);
	}
	(void)printf("\nconfiguration: key = value lines in /etc/protond.conf (private:\n"
		     "~/.config/protond.conf), or variables PROTOND_KEY:\n\n");
#define X(key, type, def, help)                                                                 \
	(void)snprintf(                                                                         \
		words, sizeof(words), "%s%s%s", help, *(def) != '\0' ? "; default " : "", def); \
	print_row("  " #key, 25, words);
	CONFIG(X)
#undef X
}

/* Texts of the tables go behind a zero-width escape: a line may begin with a dot. */
static void print_man(void)
{
	size_t i;

	(void)printf(".TH PROTOND 8 \"\" \"protond %s\"\n.SH NAME\n"
		     "protond \\- the always-on profiler of GPU jobs\n.SH SYNOPSIS\n.B protond\n"
		     "[options]\n.SH DESCRIPTION\n"
		     "Drains the rings of the user's jobs (of all users, as a service), joins what "
		     "the GPU did with the\nscopes that launched it, and keeps the call trees of "
		     "every session in SQLite. It stays in the\nforeground; a service manager or\n"
		     ".BR protonctl (1)\nstarts it.\n.SH OPTIONS\n",
		PROTOND_BUILD_VERSION);
	for (i = 0; i < ROWS_N; i++)
		(void)printf(".TP\n.B \\-\\-%s%s%s\n\\&%s\n", rows[i].name,
			rows[i].argument != NULL ? " " : "",
			rows[i].argument != NULL ? rows[i].argument : "", rows[i].help);
	(void)printf(".SH CONFIGURATION\n.I key = value\nlines in\n.I /etc/protond.conf\n"
		     "(private:\n.IR ~/.config/protond.conf ),\n"
		     "or variables PROTOND_KEY in upper case.\n");
#define X(key, type, def, help) \
	(void)printf(           \
		".TP\n.B %s\n\\&%s%s%s\n", #key, help, *(def) != '\0' ? "; default " : "", def);
	CONFIG(X)
#undef X
	(void)printf(".SH EXAMPLES\n.nf\n"
		     "protond --check                  where configuration and database are, and "
		     "what is wrong there\n"
		     "protond --private --foreground   a user's own, with its log on the terminal\n"
		     "protonctl daemon start           the same in the background, until protonctl "
		     "daemon stop\n.fi\n");
	(void)printf(
		".SH EXIT STATUS\n0 ended in order or another private protond answers; 1 could not "
		"start or go on; 2 usage;\n3 another protond holds the directory.\n"
		".SH SEE ALSO\n.BR protonctl (1),\n.BR protonview (1)\n");
}

/* Exit status. */
static int printed(void)
{
	if (fflush(stdout) == 0)
		return 0;
	(void)fprintf(stderr, "protond: standard output: %s\n", strerror(errno));
	return 1;
}

/* Exit status, or -1 to go on. */
static int parse_options(int argc, char **argv, struct options *o)
{
	struct option longs[ROWS_N + 1];
	size_t i;
	int c;

	memset(longs, 0, sizeof(longs));
	for (i = 0; i < ROWS_N; i++)
		longs[i] = (struct option){rows[i].name,
			rows[i].argument != NULL ? required_argument : no_argument, NULL,
			rows[i].id};
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == OPTION_PRIVATE) {
			o->private = true;
		} else if (c == OPTION_FOREGROUND) {
			o->foreground = true;
		} else if (c == OPTION_CHECK) {
			o->check = true;
		} else if (c == OPTION_CONFIG) {
			o->config = optarg;
		} else if (c == OPTION_VERSION) {
			(void)printf("protond %s\n", PROTOND_BUILD_VERSION);
			return printed();
		} else if (c == OPTION_HELP) {
			print_help();
			return printed();
		} else if (c == OPTION_MAN) {
			print_man();
			return printed();
		} else {
			(void)fprintf(stderr, "protond: see `protond --help`\n");
			return EXIT_USAGE;
		}
	}
	if (optind == argc)
		return -1;
	(void)fprintf(stderr,
		"protond: what is '%s'? It takes options only; see `protond --help`\n",
		argv[optind]);
	return EXIT_USAGE;
}

/* One descriptor for each job's socket, pidfd, ring and control file. The kernel's table of them
 * has room for many from the start: later, with threads, each time it grows the one who needs a
 * descriptor waits for all CPUs, 15 to 45 ms (expand_files(), synchronize_rcu()). */
static void raise_files(void)
{
	struct rlimit l;
	int fd, high;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return;
	if (l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l);
	}
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	high = fd < 0 ? -1
		      : fcntl(fd, F_DUPFD_CLOEXEC,
				(int)(l.rlim_cur < FILES_AT_ONCE ? l.rlim_cur : FILES_AT_ONCE) - 1);
	if (high >= 0)
		(void)close(high);
	if (fd >= 0)
		(void)close(fd);
}

static int complain(const struct err *e, int status)
{
	char line[sizeof(e->text)]; /* SQLite's words may be several */
	size_t i, n = strlen(e->text);

	for (i = 0; i <= n; i++)
		line[i] = (char)(e->text[i] == '\n' ? ' ' : e->text[i]);
	(void)fprintf(stderr, "%sprotond: %s\n", log_priority(LOG_ERR), line);
	return status;
}

/* 64 ranks start a private daemon each: one gets the lock, the others are content when it answers.
 * When it ends instead, the next one has the lock. */
static int other_answers(struct protond *p, struct err *e)
{
	const uint64_t until = uv_hrtime() + 5000000000ull; /* protonctl's WAIT_MS has one more */
	int r;

	while (uv_hrtime() < until) {
		if (home_answers(p->d.runtime))
			return 0;
		(void)poll(NULL, 0, 20);
		r = home_open(&p->d, e);
		if (r != -EBUSY)
			return r < 0 ? complain(e, 1) : 0;
	}
	(void)fprintf(stderr,
		"%sprotond: another protond holds %s/lock and does not answer; look at its log, or "
		"stop it\n",
		log_priority(LOG_ERR), p->d.runtime);
	return EXIT_RUNNING;
}

static int run(struct protond *p)
{
	struct err e = {0};
	int r = home_open(&p->d, &e);

	if (r == -EBUSY && p->d.private)
		r = other_answers(p, &e);
	else if (r == -EBUSY)
		r = complain(&e, EXIT_RUNNING);
	else if (r < 0)
		r = complain(&e, 1);
	if (r != 0 || p->d.lock_fd < 0) {
		config_free(&p->config);
		return r;
	}
	r = protond_init(p, &e);
	if (r < 0)
		home_unmake(&p->d);
	r = r < 0 ? complain(&e, 1) : protond_run(p);
	protond_fini(p);
	return r;
}

/* What was read, and where it leads. Exit status. */
static int checked(const struct options *o, const struct daemon_config *c)
{
	char file[512] = "none", db[4096] = PATHS_SERVICE_DB;

	if (o->config != NULL)
		(void)snprintf(file, sizeof(file), "%s", o->config);
	else
		(void)paths_config(o->private, file, sizeof(file));
	if (o->private)
		(void)paths_private_db(db, sizeof(db));
	(void)printf("configuration  %s%s\ndatabase       %s\n", file,
		access(file, F_OK) < 0 ? " (is not there)" : "", c->db[0] != '\0' ? c->db : db);
	return printed();
}

int main(int argc, char **argv)
{
	static struct protond daemon;
	struct options o = {0};
	struct err e = {0};
	int r = parse_options(argc, argv, &o);

	if (r >= 0)
		return r;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGIO, SIG_IGN); /* somebody opens what memfd.c has a lease of for a moment */
	(void)umask(022);
	/* Fixed, for malloc would raise it: tables and batches go back to the system when they are
	 * freed, not when what lies above them is. */
	(void)mallopt(M_MMAP_THRESHOLD, 32 << 10);
	o.private = o.private || (o.check && geteuid() != 0); /* a user has no other */
	log_set_level(o.private && !o.foreground ? LOG_WARN : LOG_INFO);
	host_clock_open();
	protond_bind(&daemon);
	daemon.d.private = o.private;
	daemon.d.verbs = verb_table;
	if (config_load(&daemon.config, o.config, o.private, &e) < 0)
		return complain(&e, EXIT_USAGE);
	if (o.check) {
		r = checked(&o, &daemon.config);
		config_free(&daemon.config);
		return r;
	}
	if (o.private)
		(void)chdir("/"); /* it was started anywhere, and keeps no folder busy */
	raise_files();
	return run(&daemon);
}
