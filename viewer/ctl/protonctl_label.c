/* SPDX-License-Identifier: MIT. protonctl_label.c: the verbs that say what a session is called: tag,
 * note, rename. */
#include <stdio.h>

#include "human.h"
#include "protonctl_answer.h"
#include "protonctl_call.h"
#include "protonctl_daemon.h"

/* Says each text to the session of the first word. Exit code; what failed was said. */
static int label(struct ctl *c, const char *key, int n, char **texts, struct named *ret)
{
	struct rpc_reply r = {.fd = -1};
	char id[24] = "";
	struct wire_buf *b;
	struct rpc *rpc;
	int i, code = daemon_of_sessions(&rpc, &c->err);

	if (code < 0)
		return ctl_fail(c);
	for (i = 0; code == 0 && i < n; i++) {
		rpc_reply_free(&r);
		b = rpc_begin(rpc, "label");
		wire_kv_str(b, "session", i == 0 ? c->argv[0] : id);
		wire_kv_str(b, key, texts[i]);
		code = ctl_call(c, rpc, &r);
		if (code == 0)
			answer_session(r.result, i == 0 ? c->argv[0] : "", ret);
		snprintf(id, sizeof(id), "%ld", code == 0 ? ret->s.row.id : 0);
	}
	rpc_close(rpc);
	if (code < 0)
		return ctl_fail(c);
	if (ctl_json(c, &r))
		ret->words[0] = '\0';
	rpc_reply_free(&r);
	return CTL_OK;
}

/* "session 12 'train' VERB: TEXT" */
static int say(int code, const struct named *n, const char *verb, const char *text)
{
	if (code != CTL_OK || n->words[0] == '\0')
		return code;
	printf("session %s %s", n->words, verb);
	text_put(stdout, text, 0);
	putchar('\n');
	return code;
}

static int cmd_tag(struct ctl *c)
{
	const char *key = ctl_option(c, "remove") != NULL ? "untag" : "tag";
	struct named n;
	const int code = label(c, key, c->argc - 1, c->argv + 1, &n);

	return say(code, &n, code == CTL_OK && *n.s.tags == '\0' ? "has no tags" : "has the tags: ",
		code == CTL_OK ? n.s.tags : "");
}

static int cmd_note(struct ctl *c)
{
	const bool remove = ctl_option(c, "remove") != NULL;
	char *none = (char[]){""};
	struct named n;
	int code;

	if (remove != (c->argc == 1))
		return ctl_usage(c, "give either a TEXT or --remove");
	code = label(c, "note", 1, remove ? &none : c->argv + 1, &n);
	return say(code, &n, code == CTL_OK && *n.s.note == '\0' ? "has no note" : "has the note: ",
		code == CTL_OK ? n.s.note : "");
}

static int cmd_rename(struct ctl *c)
{
	struct named n;

	return say(label(c, "name", 1, c->argv + 1, &n), &n, "has its new name", "");
}

/* clang-format off */
static const struct option_def tag_options[] = {
	{'r', "remove", NULL, "remove these tags", NULL},
	{0, NULL, NULL, NULL, NULL},
};

static const struct option_def note_options[] = {
	{'r', "remove", NULL, "remove the note", NULL},
	{0, NULL, NULL, NULL, NULL},
};

const struct command command_tag = {.name = "tag",
	.run = cmd_tag,
	.min = 2,
	.max = -1,
	.args = "SESSION TAG...",
	.help = "give a session tags; @tag:TAG is the newest that has it",
	.more =
		"A tag has 1 to 31 letters, digits or ._:+=/-; all of a session together take at most 255 bytes.\n",
	.examples =
		"protonctl tag @last baseline h200\n"
		"protonview diff @tag:baseline @last\n"
		"protonctl sessions --tag baseline\n"
		"protonctl tag --remove @tag:baseline baseline\n",
	.options = tag_options,
	.completes = 's'};

const struct command command_note = {.name = "note",
	.run = cmd_note,
	.min = 1,
	.max = 2,
	.args = "SESSION [TEXT]",
	.help = "attach a line of text to a session",
	.more = "`sessions` shows it. At most 127 bytes.\n",
	.examples =
		"protonctl note @last 'batch 64, new loader'\n"
		"protonctl note --remove @last\n",
	.options = note_options,
	.completes = 's'};

const struct command command_rename = {.name = "rename",
	.run = cmd_rename,
	.min = 2,
	.max = 2,
	.args = "SESSION NAME",
	.help = "give a session another name",
	.examples = "protonctl rename @last before-the-fix\n",
	.options = no_options,
	.completes = 's'};
/* clang-format on */
