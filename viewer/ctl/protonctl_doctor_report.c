/* SPDX-License-Identifier: MIT. protonctl_doctor_report.c: doctor: looks for what keeps protond
 * from working here, and says for each finding how to mend it. Changes nothing but for making the
 * runtime directory that protond would make. Here: the order, and the report. */
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "protonctl_call.h"
#include "protonctl_doctor.h"

static void report_json(const struct doctor *d)
{
	static const char *const grades[] = {"ok", "note", "bad"};
	size_t i;

	json_begin(stdout, "doctor");
	fputs("{\"findings\":[", stdout);
	for (i = 0; i < d->n; i++) {
		const struct finding *f = &d->finding[i];

		printf("%s{\"grade\":\"%s\",\"what\":", i > 0 ? "," : "", grades[f->grade]);
		json_text(stdout, f->what, strlen(f->what));
		fputs(",\"text\":", stdout);
		json_text(stdout, f->text, strlen(f->text));
		fputs(",\"mend\":", stdout);
		json_text(stdout, f->mend, strlen(f->mend));
		putchar('}');
	}
	fputs("]}", stdout);
	json_end(stdout, NULL, 0);
}

#define WORDS_AT 29 /* the column */

static void report(const struct ctl *c, const struct doctor *d)
{
	static const char *const marks[] = {"ok  ", "note", "BAD "};
	struct text t = {0};
	size_t i, line;

	for (i = 0; i < d->n; i++) {
		const struct finding *f = &d->finding[i];

		line = t.n;
		term_style(&c->term, &t, f->grade == BAD ? STYLE_BAD : STYLE_PLAIN);
		text_str(&t, marks[f->grade]);
		term_style(&c->term, &t, STYLE_PLAIN);
		text_fmt(&t, "  %-22s ", f->what);
		term_name(&c->term, &t, f->text, 0);
		term_wrap(&c->term, &t, line, WORDS_AT);
		text_char(&t, '\n');
		if (f->mend[0] == '\0')
			continue;
		line = t.n;
		text_fmt(&t, "%*s%s ", WORDS_AT, "", c->term.utf8 ? "→" : "->");
		term_name(&c->term, &t, f->mend, 0);
		term_wrap(&c->term, &t, line, WORDS_AT + 2);
		text_char(&t, '\n');
	}
	ctl_print(&t);
}

static int cmd_doctor(struct ctl *c)
{
	static doctor_fn *const looks[] = {
#define X(name) doctor_##name,
		CHECKS(X)
#undef X
	};
	static struct doctor d;
	size_t i, bad = 0;

	d.status.fd = -1;
	if (rpc_open(&d.rpc, &d.why) < 0)
		d.rpc = NULL;
	if (d.rpc != NULL) {
		(void)rpc_begin(d.rpc, "status");
		(void)rpc_call(d.rpc, RPC_TIMEOUT_MS, &d.status, &d.why);
	}
	for (i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
		looks[i](&d);
	for (i = 0; i < d.n; i++)
		bad += d.finding[i].grade == BAD ? 1 : 0;
	if (c->json)
		report_json(&d);
	else
		report(c, &d);
	rpc_reply_free(&d.status);
	rpc_close(d.rpc);
	return bad > 0 ? CTL_NOT_FOUND : CTL_OK;
}

const struct command command_doctor = {.name = "doctor",
	.run = cmd_doctor,
	.args = "",
	.help = "find what is wrong, and say how to mend it",
	.examples = "protonctl doctor\n",
	.options = no_options};
