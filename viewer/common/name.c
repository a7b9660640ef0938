/* SPDX-License-Identifier: MIT. name.c: names of kernels as people read them.
 *
 * A mangled name of 300 bytes can stand for gigabytes of text, and the C++ runtime's demangler sets
 * no limit. So a child process demangles, with little processor time for each name: what is too
 * much ends the child, that name stays as it is, and another child goes on behind it. */
#include "name.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena.h"
#include "text.h"

#define MANGLED_MAX 8192  /* bytes of a name that is tried */
#define SHOWN_MAX   16384 /* bytes of what it stands for */
#define CPU_MS      50    /* for one name; a real one takes microseconds */
#define CHILDREN    8     /* after so many bad names the rest stays as it is */
#define ANONYMOUS   "(anonymous namespace)::"

/* Of the C++ runtime (libstdc++), by the Itanium C++ ABI. */
char *__cxa_demangle(const char *mangled, char *buf, size_t *n, int *status);

struct name {
	const char *mangled; /* the profile's own until it has an answer, then ours */
	const char *shown;   /* NULL: as it is */
};

struct names {
	bool full;
	struct name *name;
	uint32_t n, cap;
	uint32_t asked;  /* so many of them had their turn */
	uint32_t *index; /* by mangled name: name + 1, 0 empty; a power of two of them */
	uint32_t index_cap;
	struct arena *arena;
	struct text path; /* what names_show_path() gave */
	char scratch[SHOWN_MAX + 1];
};

/* --- shortening */

/* Of each `what`: n bytes from `at` on. */
static void cut_out(char *s, const char *what, size_t at, size_t n)
{
	for (s = strstr(s, what); s != NULL; s = strstr(s, what))
		memmove(s + at, s + at + n, strlen(s + at + n) + 1);
}

/* The group of parentheses at the very end: "f<(A)1>(int)" becomes "f<(A)1>". */
static void cut_parameters(char *s)
{
	static const char tail[] = " const", operator[] = "operator";
	size_t n = strlen(s), at, depth = 0;

	if (n > sizeof(tail) && strcmp(s + n - sizeof(tail) + 1, tail) == 0)
		n -= sizeof(tail) - 1;
	if (n == 0 || s[n - 1] != ')')
		return;
	for (at = n; at > 0; at--) {
		depth += s[at - 1] == ')';
		if (s[at - 1] == '(' && --depth == 0)
			break;
	}
	if (at < 2 || s[at - 2] == ' ')
		return;
	at--;
	if (at >= sizeof(operator) - 1 &&
		strncmp(s + at - (sizeof(operator) - 1), operator, sizeof(operator) - 1) == 0)
		return;
	s[at] = '\0';
}

void name_shorten(char *demangled)
{
	if (strncmp(demangled, "void ", 5) == 0)
		memmove(demangled, demangled + 5, strlen(demangled + 5) + 1);
	cut_out(demangled, ANONYMOUS, 0, sizeof(ANONYMOUS) - 1);
	cut_parameters(demangled);
	cut_out(demangled, "> >", 1, 1); /* the blank */
}

/* --- the table */

int names_new(bool full, struct names **ret)
{
	struct names *n = calloc(1, sizeof(*n));

	if (n == NULL)
		return -ENOMEM;
	n->full = full;
	n->arena = arena_new();
	if (n->arena == NULL) {
		free(n);
		return -ENOMEM;
	}
	*ret = n;
	return 0;
}

void names_free(struct names *n)
{
	if (n == NULL)
		return;
	arena_free(n->arena);
	text_fini(&n->path);
	free(n->name);
	free(n->index);
	free(n);
}

static uint32_t *find(const struct names *n, const char *mangled)
{
	uint64_t h = 0xcbf29ce484222325u;
	const char *s;
	uint32_t at;

	for (s = mangled; *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	for (at = (uint32_t)(h ^ h >> 32) & (n->index_cap - 1); n->index[at] != 0;
		at = (at + 1) & (n->index_cap - 1))
		if (strcmp(n->name[n->index[at] - 1].mangled, mangled) == 0)
			break;
	return &n->index[at];
}

static int grow(struct names *n)
{
	uint32_t cap = n->cap == 0 ? 256 : n->cap * 2, i;
	struct name *name = realloc(n->name, cap * sizeof(*name));
	uint32_t *index = calloc((size_t)cap * 2, sizeof(*index));

	if (name != NULL)
		n->name = name;
	if (name == NULL || index == NULL) {
		free(index);
		return -ENOMEM;
	}
	free(n->index);
	n->index = index;
	n->index_cap = cap * 2;
	n->cap = cap;
	for (i = 0; i < n->n; i++)
		*find(n, n->name[i].mangled) = i + 1;
	return 0;
}

static int add(struct names *n, const char *mangled)
{
	uint32_t *at;

	if (n->n == n->cap && grow(n) < 0)
		return -ENOMEM;
	at = find(n, mangled);
	if (*at != 0)
		return 0;
	n->name[n->n].shown = NULL;
	n->name[n->n].mangled = arena_text(n->arena, mangled, strlen(mangled));
	if (n->name[n->n].mangled == NULL)
		return -ENOMEM;
	*at = ++n->n;
	return 0;
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && name[1] == 'Z';
}

const char *names_show(struct names *n, const char *name)
{
	uint32_t at;

	if (n == NULL)
		return name;
	if (is_mangled(name)) {
		at = n->index_cap > 0 ? *find(n, name) : 0;
		return at > 0 && n->name[at - 1].shown != NULL ? n->name[at - 1].shown : name;
	}
	if (*name != 'v' || n->full || strncmp(name, "void ", 5) != 0 || strlen(name) > SHOWN_MAX)
		return name;
	memcpy(n->scratch, name, strlen(name) + 1);
	name_shorten(n->scratch);
	return n->scratch[0] != '\0' ? n->scratch : name;
}

const char *names_show_path(struct names *n, const char *path)
{
	char *copy = n != NULL ? strdup(path) : NULL, *rest = copy, *name;

	if (copy == NULL)
		return path;
	n->path.n = 0;
	while ((name = strsep(&rest, "/")) != NULL) {
		text_str(&n->path, names_show(n, name));
		text_char(&n->path, rest != NULL ? '/' : '\0');
	}
	free(copy);
	return n->path.failed ? path : n->path.s;
}

/* --- the child */

/* Writes the answer for each name from `at` on, with a NUL behind it; "" is "as it is". */
static void child(const struct names *n, uint32_t at, int fd)
{
	struct itimerval limit = {.it_value.tv_usec = CPU_MS * 1000L};
	struct text out = {0};
	char *shown;
	ssize_t some;
	int status;

	(void)signal(SIGPROF, SIG_DFL);
	(void)signal(SIGPIPE, SIG_DFL);
	for (; at < n->n; at++) {
		(void)setitimer(ITIMER_PROF, &limit, NULL);
		shown = strlen(n->name[at].mangled) > MANGLED_MAX
				? NULL
				: __cxa_demangle(n->name[at].mangled, NULL, NULL, &status);
		if (shown != NULL && strlen(shown) <= SHOWN_MAX)
			text_str(&out, shown);
		text_char(&out, '\0');
		free(shown);
		if (out.failed)
			break;
		some = write(fd, out.s, out.n);
		if (some != (ssize_t)out.n)
			break;
		out.n = 0;
	}
	_exit(0);
}

static int keep(struct names *n, uint32_t at, char *shown)
{
	if (!n->full)
		name_shorten(shown);
	if (*shown == '\0')
		return 0;
	n->name[at].shown = arena_text(n->arena, shown, strlen(shown));
	return n->name[at].shown == NULL ? -ENOMEM : 0;
}

/* Takes answers until the child ends; *at: the name whose answer comes next. */
static int take(struct names *n, uint32_t *at, int fd)
{
	char buf[4096];
	size_t used = 0;
	ssize_t got, i;
	int r = 0;

	while ((got = read(fd, buf, sizeof(buf))) > 0 || (got < 0 && errno == EINTR)) {
		for (i = 0; i < got && r == 0 && *at < n->n; i++) {
			n->scratch[used] = buf[i];
			if (buf[i] != '\0') {
				used += used < SHOWN_MAX;
				continue;
			}
			used = 0;
			r = keep(n, (*at)++, n->scratch);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

int names_demangle(struct names *n)
{
	uint32_t at = n->asked, tries;
	int fds[2], r = 0;
	pid_t pid;

	n->asked = n->n;
	for (tries = 0; r == 0 && at < n->n && tries < CHILDREN; tries++, at++) {
		if (pipe2(fds, O_CLOEXEC) < 0)
			return 0;
		pid = fork();
		if (pid == 0)
			child(n, at, fds[1]);
		(void)close(fds[1]);
		if (pid > 0)
			r = take(n, &at, fds[0]);
		(void)close(fds[0]);
		if (pid < 0)
			return 0;
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return r;
}

int names_add(struct names *n, const char *path)
{
	char *copy = strdup(path), *rest = copy, *name;
	int r = copy == NULL ? -ENOMEM : 0;

	while (r == 0 && (name = strsep(&rest, "/")) != NULL)
		if (is_mangled(name))
			r = add(n, name);
	free(copy);
	return r;
}

int names_read(struct names *n, const struct profile *p)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < p->n_nodes && r == 0; i++)
		if (is_mangled(p->node[i].name))
			r = add(n, p->node[i].name);
	return r < 0 ? r : names_demangle(n);
}
