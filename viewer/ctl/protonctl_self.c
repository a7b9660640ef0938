/* SPDX-License-Identifier: MIT. protonctl_self.c: what lies beside this program, and the variables
 * that turn other programs on. */
#include "protonctl_self.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "protonctl_call.h"

#define LIBRARY "libprotond.so.0"

/* Where a program or library may lie, seen from our own folder: one build folder, or bin/ and lib/.
 */
static const char *const folders[] = {"", "../bin/", "../sbin/", "../libexec/protond/", "../lib/",
	"../lib/x86_64-linux-gnu/", "../lib/aarch64-linux-gnu/", "../lib64/", "../"};

int self_find(const char *name, char *ret, size_t n)
{
	char self[4096], path[4352];
	const ssize_t k = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash, *real;
	size_t i;

	if (k <= 0)
		return -ENOENT;
	self[k] = '\0';
	slash = strrchr(self, '/');
	if (slash == NULL)
		return -ENOENT;
	slash[1] = '\0';
	for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (snprintf(path, sizeof(path), "%s%s%s", self, folders[i], name) >=
				(int)sizeof(path) ||
			access(path, R_OK) < 0)
			continue;
		real = realpath(path, NULL);
		if (real == NULL)
			continue;
		/* Libraries keep the name under which the loader knows them. */
		if (strstr(name, ".so") != NULL && strrchr(real, '/') != NULL)
			*strrchr(real, '/') = '\0';
		const int len = strstr(name, ".so") != NULL ? snprintf(ret, n, "%s/%s", real, name)
							    : snprintf(ret, n, "%s", real);
		free(real);
		return len < (int)n ? 0 : -ENAMETOOLONG;
	}
	return -ENOENT;
}

int self_find_python(char *ret, size_t n)
{
	const char *const places[] = {
		"protond/python/protond/_run/sitecustomize.py", "_run/sitecustomize.py"};
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (self_find(places[i], ret, n) == 0) {
			*strrchr(ret, '/') = '\0';
			return 0;
		}
	return -ENOENT;
}

static void env_add(struct env_var *v, const char *name, const char *value)
{
	const char *now = getenv(name);

	v->name = name;
	snprintf(v->value, sizeof(v->value), "%s", value);
	v->taken = now != NULL && *now != '\0' && strcmp(now, value) != 0;
}

size_t env_vars(const char *dir, struct env_var ret[ENV_VARS_MAX], struct err *e)
{
	char library[4096];
	size_t n = 0;

	if (self_find(LIBRARY, library, sizeof(library)) < 0) {
		err_set(e, -ENOENT,
			LIBRARY
			" was not found beside protonctl; install protond completely (`make "
			"install`)");
		return 0;
	}
	if (dir != NULL && *dir != '\0') {
		env_add(&ret[n], "PROTOND_RUNTIME_DIR", dir);
		ret[n++].taken = false; /* ours to set */
	}
	for (size_t i = 0; i < BACKEND_COUNT; i++)
		if (backend_terms[i].injection[0] != '\0')
			env_add(&ret[n++], backend_terms[i].injection, library);
	return n;
}

static void put_var(FILE *f, const struct env_var *v, bool csh)
{
	const char *p;

	fprintf(f, csh ? "setenv %s '" : "export %s='", v->name);
	for (p = v->value; *p != '\0'; p++)
		if (*p == '\'')
			fputs("'\\''", f);
		else
			fputc(*p, f);
	fputs(csh ? "';\n" : "'\n", f);
}

static void put_json(const struct env_var *v, size_t n)
{
	size_t i;

	putchar('{');
	for (i = 0; i < n; i++) {
		printf("%s\"%s\":", i > 0 ? "," : "", v[i].name);
		json_text(stdout, v[i].value, strlen(v[i].value));
	}
	putchar('}');
}

void env_line(FILE *f, const char *dir)
{
	struct env_var v[ENV_VARS_MAX];
	struct err e;

	if (env_vars(dir, v, &e) == 0)
		fprintf(f, "%s\n", e.text);
	else
		fputs("eval \"$(protonctl env)\"\n", f);
}

/* The directory that jobs must be told: a private daemon's that they would not find. */
static void env_dir(struct ctl *c, char *ret, size_t n)
{
	const char *set = getenv("PROTOND_RUNTIME_DIR");
	struct rpc *r;

	ret[0] = '\0';
	if (set != NULL && *set != '\0')
		snprintf(ret, n, "%s", set);
	else if (ctl_open(c, &r) == 0) {
		snprintf(ret, n, "%s", rpc_daemon(r)->dir);
		rpc_close(r);
	} else
		ctl_warn(c, "no daemon is running; jobs will find one that is started later");
}

static int cmd_env(struct ctl *c)
{
	const char *shell = ctl_option(c, "shell");
	struct env_var v[ENV_VARS_MAX];
	char dir[4096];
	size_t i, n;

	if (shell == NULL)
		shell = c->json ? "json" : "sh";
	if (strcmp(shell, "sh") != 0 && strcmp(shell, "csh") != 0 && strcmp(shell, "json") != 0)
		return ctl_usage(c, "--shell %s: use sh, csh or json", shell);
	env_dir(c, dir, sizeof(dir));
	n = env_vars(dir, v, &c->err);
	if (n == 0)
		return ctl_fail(c);
	for (i = 0; i < n; i++)
		if (v[i].taken)
			ctl_warn(c,
				"%s names another tool (%.100s) and is left out here; unset it to "
				"use protond",
				v[i].name, getenv(v[i].name));
	if (strcmp(shell, "json") == 0) {
		if (c->json)
			json_begin(stdout, c->cmd->name);
		put_json(v, n);
		if (c->json)
			ctl_json_end(c, stdout);
		else
			putchar('\n');
	} else
		for (i = 0; i < n; i++)
			if (!v[i].taken)
				put_var(stdout, &v[i], strcmp(shell, "csh") == 0);
	ctl_warnings(c);
	return CTL_OK;
}

/* clang-format off */
static const struct option_def env_options[] = {
	{0, "shell", "SHELL", "sh, csh or json (default: sh)", "sh csh json"},
	{0, NULL, NULL, NULL, NULL},
};
/* clang-format on */

const struct command command_env = {.name = "env",
	.run = cmd_env,
	.args = "",
	.help = "the variables that let the jobs of a shell, a container or a batch job be "
		"recorded",
	.examples = "eval \"$(protonctl env)\"\nprotonctl env --shell json\n",
	.options = env_options};
