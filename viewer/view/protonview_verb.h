/* SPDX-License-Identifier: MIT. protonview_verb.h: one run of protonview, and what its verbs share:
 * source, view, filters, names. For protonview_*.c. */
#ifndef PROTOND_VIEWER_PROTONVIEW_VERB_H
#define PROTOND_VIEWER_PROTONVIEW_VERB_H

#include "print.h"
#include "protonview_options.h"
#include "source.h"

/* One run of the program. */
struct run {
	struct options o;
	struct term term;
	struct print_options print;
	struct names *names;
	struct xla_dump *xla; /* of --xla-dump; NULL: it was not needed yet */
	struct warnings warnings;
	struct text out;
	struct err e;
	uint32_t hidden; /* nodes, by --rows */
	bool session;    /* the source is one, whatever file is called so */
	bool partial, failed_gate;
	int write_error; /* of standard output */
	bool flowing;    /* some of it is written */
};

#define X(name, min, max, args, help) int view_##name(struct run *run);
VIEW_VERBS(X) /* each 0, or -errno with words in run->e */
#undef X

bool run_given(const struct run *run, enum option_id id);
/* The number that an option was given; *ret stays without it. -EINVAL with words. */
int run_count(struct run *run, enum option_id id, const char *name, uint32_t *ret);

/* Names from the outermost scope down, "step / forward / [memcpy DtoH]", and a NUL; of the root "". */
void run_path(struct run *run, struct text *t, const struct profile *p, uint32_t node,
	const char *between);
/* Notes it when what was opened is not all there is. */
void run_note_parts(struct run *run, const struct source *s);
/* Whether the command line asks for a part of a timeline. */
bool run_part(const struct run *run);
void run_note_left(struct run *run, const struct export_left *left); /* what a timeline lacks */
/* Reads --xla-dump, once. Sources have its names then: of a tree also op_name and source. */
int run_xla(struct run *run);
/* A source by the command line's options, and by what the caller set in *o. */
int run_source_by(struct run *run, const char *ref, struct source_options *o, struct source *ret);
/* A source in a foreign format, as `export` writes it: the first of the command line. */
struct export_format;
int run_export(struct run *run, const struct export_format *f, FILE *to);
/* The timeline of the first source, by what o->timeline makes of it; names as they are shown. */
int run_timeline(struct run *run, struct source_options *o, struct source *ret);
/* Its profile; lean: without durations, and configurations where only others show them. */
int run_source(struct run *run, const char *ref, bool lean, struct profile **ret);
/* metrics NULL: those that are shown by default. */
int run_view(struct run *run, const struct profile *p, const char *metrics, struct view **ret);
int run_filter(struct run *run, struct view *v);
int run_rows(struct run *run, struct view *v); /* as --rows has it */
/* As a tree, or as JSON, below the head of a session. */
int run_show_tree(struct run *run, const struct view *v, const struct profile *head);
int run_names(struct run *run, const struct profile *p); /* demangles them */
/* Its nodes have the names that people read from here on. -ENOMEM */
int run_show_names(struct run *run, struct profile *p);
/* Says what the default depth cuts off: in the envelope, or below the tree. */
void run_note_depth(struct run *run, const struct view *v);

#endif
