/* SPDX-License-Identifier: MIT. protonview_options.c: the one list of protonview's verbs and
 * options, parsed and printed. */
#include "protonview_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "complete.h"
#include "guess.h"
#include "metrics.h"
#include "term.h"

#define LONG_BASE 256 /* getopt's value of an option is LONG_BASE + its id */

static const struct option_text {
	char letter;
	const char *name, *argument;
	unsigned verbs;
	const char *help;
} option_texts[OPT_MAX] = {
#define X(id, letter, name, argument, verbs, help) {letter, name, argument, verbs, help},
	OPTIONS(X)
#undef X
};

static const struct verb_text {
	const char *name;
	unsigned bit;
	int min, max;
	const char *args, *help;
} verb_texts[VERB_MAX] = {
#define X(name, min, max, args, help) {#name, ON_##name, min, max, args, help},
	VIEW_VERBS(X)
#undef X
};

/* --- parsing */

static int find_verb(const char *word)
{
	int i;

	if (strcmp(word, "ls") == 0)
		return VERB_sessions;
	if (strcmp(word, "idle") == 0)
		return VERB_breakdown;
	for (i = 0; i < VERB_MAX; i++)
		if (strcmp(verb_texts[i].name, word) == 0)
			return i;
	return -1;
}

static int no_verb(const char *word, const char *next, struct err *e)
{
	const struct verbs_question q =
		verbs_question(word, verbs_of_view, "protonctl", verbs_of_ctl);

	if (q.text[0] == '\0' && find_verb(next) >= 0)
		return err_set(e, -EINVAL, "the verb stands first: `protonview %s %s`", next, word);
	return err_set(
		e, -EINVAL, "unknown verb '%s'%s (`protonview help` lists them)", word, q.text);
}

static void tables(char letters[OPT_MAX * 2 + 4], struct option longs[OPT_MAX + 1])
{
	int i, n = 0;

	letters[n++] = '-'; /* hand over words that are not options, too */
	letters[n++] = ':'; /* tell a missing argument from an unknown option */
	for (i = 0; i < OPT_MAX; i++) {
		longs[i] = (struct option){.name = option_texts[i].name,
			.has_arg =
				option_texts[i].argument != NULL ? required_argument : no_argument,
			.val = LONG_BASE + i};
		if (option_texts[i].letter == 0)
			continue;
		letters[n++] = option_texts[i].letter;
		if (option_texts[i].argument != NULL)
			letters[n++] = ':';
	}
	letters[n] = '\0';
	longs[OPT_MAX] = (struct option){0};
}

static int option_of(int c)
{
	int i;

	if (c >= LONG_BASE)
		return c - LONG_BASE;
	for (i = 0; i < OPT_MAX; i++)
		if (option_texts[i].letter == c)
			return i;
	return -1;
}

static int unknown_option(const char *word, struct err *e)
{
	const bool is_long = strncmp(word, "--", 2) == 0;
	struct guess g = {.word = is_long ? word + 2 : ""};
	int i;

	for (i = 0; i < OPT_MAX && is_long; i++)
		guess_try(&g, option_texts[i].name);
	return err_set(e, -EINVAL,
		g.best[0] != '\0' ? "unknown option '%s'; did you mean '--%s'?"
				  : "unknown option '%s'%s",
		word, g.best);
}

static int set_option(struct options *o, int c, const char *arg, const char *word, struct err *e)
{
	int id = option_of(c);

	if (c == ':')
		return err_set(e, -EINVAL, "option '%s' needs an argument", word);
	if (c == '?' || id < 0)
		return unknown_option(word, e);
	o->value[id] = arg != NULL ? arg : "";
	return 0;
}

static int wrong_verb(int option, const struct options *o, struct err *e)
{
	char verbs[16 * VERB_MAX] = ""; /* a name and a comma each */
	size_t n = 0;
	int i;

	for (i = 0; i < VERB_MAX; i++)
		if ((option_texts[option].verbs & verb_texts[i].bit) != 0)
			n += (size_t)snprintf(verbs + n, sizeof(verbs) - n, "%s%s",
				n > 0 ? ", " : "", verb_texts[i].name);
	return err_set(e, -EINVAL, "option --%s does not go with '%s', but with %s",
		option_texts[option].name, verb_texts[o->verb].name, verbs);
}

/* Once the verb is known: options may stand before it. */
static int check_options(const struct options *o, struct err *e)
{
	int i;

	for (i = 0; i < OPT_MAX; i++)
		if (o->value[i] != NULL && (option_texts[i].verbs & verb_texts[o->verb].bit) == 0)
			return wrong_verb(i, o, e);
	return 0;
}

/* The first word that is no option may be the verb. */
static void take_word(struct options *o, char *word)
{
	const int verb = o->implied && o->n_args == 0 ? find_verb(word) : -1;

	if (verb < 0) {
		o->args[o->n_args++] = word;
		return;
	}
	o->verb = (enum verb_id)verb;
	o->implied = false;
}

int options_parse(int argc, char **argv, struct options *ret, struct err *e)
{
	static char proton_diff[] = "--diff-profile"; /* Proton spells it with one dash, too */
	struct option longs[OPT_MAX + 1];
	char letters[OPT_MAX * 2 + 4];
	const struct verb_text *verb;
	int c, i, r;

	*ret = (struct options){
		.verb = argc > 1 ? VERB_tree : VERB_help, .implied = argc > 1, .args = argv};
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "-diff") == 0)
			argv[i] = proton_diff;
		else if (strcmp(argv[i], "--recover") == 0)
			argv[i] += 2; /* the verb */
	tables(letters, longs);
	opterr = 0;
	optind = 0;
	for (;;) {
		const char *word = optind < argc ? argv[optind == 0 ? 1 : optind] : "";

		c = getopt_long(argc, argv, letters, longs, NULL);
		if (c == -1)
			break;
		if (c == 1) {
			take_word(ret, optarg);
			continue;
		}
		if (c == '?' || c == ':')
			word = argv[optind - 1] != NULL ? argv[optind - 1] : word;
		r = set_option(ret, c, optarg, word, e);
		if (r < 0)
			return r;
	}
	while (optind < argc) /* behind -- */
		ret->args[ret->n_args++] = argv[optind++];
	r = check_options(ret, e);
	if (r < 0)
		return r;
	verb = &verb_texts[ret->verb];
	if (ret->value[OPT_HELP] != NULL || ret->value[OPT_VERSION] != NULL ||
		ret->value[OPT_MAN] != NULL)
		return 0;
	if (ret->implied && ret->n_args > verb->max)
		return no_verb(ret->args[0], ret->args[1], e);
	if (ret->n_args < verb->min)
		return err_set(e, -EINVAL, "missing argument: %s", verb->args);
	if (ret->n_args > verb->max)
		return err_set(e, -EINVAL, "unexpected argument '%s'", ret->args[verb->max]);
	return 0;
}

void options_usage(FILE *f, enum verb_id verb)
{
	const struct verb_text *v = &verb_texts[verb];

	fprintf(f, "Usage: protonview %s [options]%s%s\nSee `protonview help %s`.\n", v->name,
		*v->args != '\0' ? " " : "", v->args, v->name);
}

/* --- help */

#define EXAMPLES                                                                           \
	"  protonview tree @last                the newest session\n"                      \
	"  protonview FILE.hatchet -m util      Proton's flags work as in proton-viewer\n" \
	"  protonview flat @last -n 20          what takes most, over all paths\n"         \
	"  protonview diff @-1 @last --gate 5   fail when it became 5% slower\n"           \
	"  protonview export @last -o run.json  its timeline, for ui.perfetto.dev\n"

static void option_help(struct text *t, const struct option_text *o)
{
	char left[64];

	snprintf(left, sizeof(left), "  %c%c%c --%s%s%s", o->letter != 0 ? '-' : ' ',
		o->letter != 0 ? o->letter : ' ', o->letter != 0 ? ',' : ' ', o->name,
		o->argument != NULL ? " " : "", o->argument != NULL ? o->argument : "");
	term_help(t, left, 28, o->help);
}

static void sources_help(struct text *t)
{
	text_str(t,
		"\nSOURCE is a .hatchet file (- is standard input), a portable session file, or a\n"
		"session: its name, its id, the beginning of its uuid, @last for the newest that\n"
		"somebody asked for (@-1: the one before), @auto for the newest automatic one,\n"
		"@job:PID for a process's, or @tag:TAG for the newest that has this tag.\n"
		"\nExit status: 0 done; 1 not found, or a gate failed; 2 wrong usage; 3 the "
		"daemon\n"
		"did not answer; 4 a part of the data could not be read, or not be printed.\n");
}

static void formats_help(struct text *t)
{
	static const char *const from_words[] = {"tree", "timeline", "timeline", "session"};
	char left[64];

	text_str(t, "\n  -f               FILE ends in      from      read by\n");
#define X(name, from, read, whose, ending, readers)                          \
	snprintf(left, sizeof(left), "  %-15s  .%-16s %-9s ", #name, ending, \
		from_words[format_from(FORMAT_##name)]);                     \
	term_help(t, left, 47, readers);
	FORMATS(X)
#undef X
}

int options_help(struct text *t, const char *verb, struct err *e)
{
	int only = verb == NULL ? -1 : find_verb(verb), i;
	char left[64], words[128];

	if (verb != NULL && only < 0)
		return no_verb(verb, "", e);
	if (only >= 0) {
		snprintf(left, sizeof(left), "usage: protonview %s ", verb_texts[only].name);
		snprintf(words, sizeof(words), "[options]%s%s",
			*verb_texts[only].args != '\0' ? " " : "", verb_texts[only].args);
		term_help(t, left, (uint32_t)strlen(left), words);
		text_char(t, '\n');
		term_help(t, "", 0, verb_texts[only].help);
	} else {
		text_str(t, "protonview: what protond recorded.\n\n" EXAMPLES "\n");
		for (i = 0; i < VERB_MAX; i++) {
			snprintf(left, sizeof(left), "  %-9s %s", verb_texts[i].name,
				verb_texts[i].args);
			term_help(t, left, 28, verb_texts[i].help);
		}
	}
	text_char(t, '\n');
	for (i = 0; i < OPT_MAX; i++)
		if (only < 0 || (option_texts[i].verbs & verb_texts[only].bit) != 0)
			option_help(t, &option_texts[i]);
	if (only == VERB_export)
		formats_help(t);
	sources_help(t);
	return 0;
}

/* --- completion */

/* What the value of an option may be; NULL: any. */
static const char *words_of(enum option_id id, const struct verb_text *verb)
{
	static char metrics[1024];
	const char *name;
	size_t n = 0;
	uint32_t i;

#define X(name, ...) #name " "
	if (id == OPT_FORMAT && verb->bit == ON_export)
		return FORMATS(X);
#undef X
	if (id == OPT_FORMAT)
		return "full file_function_line function_line file_function";
	if (id == OPT_SORT)
		return verb->bit == ON_flat ? FLAT_SORTS : "seen value name";
	if (id == OPT_COLOR)
		return "auto always never";
	if (id != OPT_METRICS)
		return NULL;
	for (i = 0; (name = metrics_derived(i)) != NULL && n < sizeof(metrics); i++)
		n += (size_t)snprintf(metrics + n, sizeof(metrics) - n, "%s ", name);
	return metrics;
}

static bool complete_option(const void *of, size_t i, struct complete_option *ret)
{
	const struct verb_text *verb = of;
	size_t k;

	for (k = 0; k < OPT_MAX; k++) {
		const struct option_text *o = &option_texts[k];

		if ((o->verbs & verb->bit) == 0 || i-- > 0)
			continue;
		*ret = (struct complete_option){o->letter, o->name, o->help, o->argument != NULL,
			words_of((enum option_id)k, verb)};
		return true;
	}
	return false;
}

static void put_verbs(const char *begin)
{
	int i;

	for (i = 0; i < VERB_MAX; i++)
		complete_put(begin, verb_texts[i].name, verb_texts[i].help);
}

static bool takes_value(const char *word)
{
	int i;

	for (i = 0; i < OPT_MAX; i++)
		if (option_texts[i].argument != NULL &&
			(word[1] == '-' ? strcmp(word + 2, option_texts[i].name) == 0
					: word[1] == option_texts[i].letter && word[2] == '\0'))
			return true;
	return false;
}

/* Where the verb stands, or would: the first word that is no option; n: nowhere. */
static int verb_place(int n, char *const *word)
{
	int i;

	for (i = 0; i < n && strcmp(word[i], "--") != 0; i++) {
		if (word[i][0] != '-' || word[i][1] == '\0')
			return i;
		if (takes_value(word[i])) /* bash: --name = value */
			i += i + 1 < n && strcmp(word[i + 1], "=") == 0 ? 2 : 1;
	}
	return n;
}

void options_complete(int n, char *const *word, void (*sessions)(const char *begin))
{
	const char *begin = n > 0 ? word[n - 1] : "";
	const int at = verb_place(n, word), first = at < n - 1 ? find_verb(word[at]) : -1;
	const struct verb_text *verb = &verb_texts[first < 0 ? VERB_tree : first];
	int plain;

	if (n > 0 && at == n - 1) {
		put_verbs(begin);
		sessions(begin);
		return;
	}
	plain = n > 0 ? complete_options(n, word, complete_option, verb, false) : -1;
	plain -= first >= 0; /* the verb itself */
	if (plain >= 0 && plain < verb->max && (verb->bit & (ON_help | ON_import)) == 0)
		sessions(begin);
	else if (plain == 0 && verb->bit == ON_help)
		put_verbs(begin);
}

/* --- the manual page */

static void roff(struct text *t, const char *s)
{
	for (; *s != '\0'; s++) {
		if (*s == '\\' || *s == '-')
			text_char(t, '\\');
		text_char(t, *s);
	}
	text_char(t, '\n');
}

void options_man(struct text *t)
{
	int i;

	text_str(t, ".TH PROTONVIEW 1\n.SH NAME\nprotonview \\- show what protond recorded\n.SH "
		    "SYNOPSIS\n");
	for (i = 0; i < VERB_MAX; i++) {
		text_fmt(t, ".B protonview %s\n[options]%s", verb_texts[i].name,
			*verb_texts[i].args != '\0' ? " " : "");
		roff(t, verb_texts[i].args);
		text_str(t, ".br\n");
	}
	text_str(t, ".SH VERBS\n");
	for (i = 0; i < VERB_MAX; i++) {
		text_fmt(t, ".TP\n.B %s\n", verb_texts[i].name);
		roff(t, verb_texts[i].help);
	}
	text_str(t, ".SH OPTIONS\n");
	for (i = 0; i < OPT_MAX; i++) {
		text_str(t, ".TP\n");
		if (option_texts[i].letter != 0)
			text_fmt(t, ".BR \\-%c , \" \" ", option_texts[i].letter);
		else
			text_str(t, ".BR ");
		text_fmt(t, "\\-\\-%s", option_texts[i].name);
		if (option_texts[i].argument != NULL)
			text_fmt(t, " \" \" \\fI%s\\fR", option_texts[i].argument);
		text_char(t, '\n');
		roff(t, option_texts[i].help);
	}
	text_str(t, ".SH EXAMPLES\n.nf\n");
	roff(t, EXAMPLES);
	text_str(t, ".fi\n.SH SOURCES AND EXIT STATUS\n.nf\n");
	sources_help(t);
	text_str(t, ".fi\n.SH SEE ALSO\n.BR protonctl (1),\n.BR protond (8)\n");
}
