/* SPDX-License-Identifier: MIT. protonctl.c: the program that controls protond. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "human.h"
#include "protonctl_help.h"
#include "protonctl_line.h"
#include "protonctl_table.h"

static int run(int argc, char **argv)
{
	static struct ctl c = {.table = commands};
	const bool is_version =
		argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0);
	int r;

	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		help_all(argc < 2 ? stderr : stdout, commands);
		return argc < 2 ? CTL_USAGE : CTL_OK;
	}
	c.cmd = command_find(commands, is_version ? "version" : argv[1]);
	if (c.cmd == NULL)
		return help_refuse(words_have(argc, argv, "--json"), argc, argv);
	r = ctl_parse(&c, argc - 1, argv + 1);
	if (r == CTL_HELP)
		help_command(stdout, c.cmd);
	if (r != CTL_GO)
		return r == CTL_HELP ? CTL_OK : r;
	return c.cmd->run(&c);
}

int main(int argc, char **argv)
{
	int r;

	setlocale(LC_CTYPE, ""); /* numbers keep their point in every language */
	(void)signal(SIGPIPE, SIG_DFL);
	(void)setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* whole lines, also when many write at once */
	r = run(argc, argv);
	if ((fflush(stdout) != 0 || ferror(stdout)) && r == CTL_OK) {
		fprintf(stderr, "protonctl: standard output: %s\n", strerror(errno));
		r = CTL_PARTIAL;
	}
	return r;
}
