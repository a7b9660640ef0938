/* SPDX-License-Identifier: MIT. report_text.h: a report as a text or as JSON: what it was, what took the most, what is slow, what to
 * do in which part of a step. */
#ifndef PROTOND_VIEWER_REPORT_TEXT_H
#define PROTOND_VIEWER_REPORT_TEXT_H

#include "protonview_verb.h"

/* Of the first source of the command line, to run->out. */
int report_text(struct run *run, bool json);

#endif
