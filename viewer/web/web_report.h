/* SPDX-License-Identifier: MIT. web_report.h: the page as one file, with its answers inside: to be
 * mailed, kept, and opened where there is no protond. */
#ifndef PROTOND_WEB_WEB_REPORT_H
#define PROTOND_WEB_WEB_REPORT_H

#include "web_api.h"

/* Of what web_new() was given first. -errno with words. */
int web_report(struct web *w, struct text *out, struct err *e);

#endif
