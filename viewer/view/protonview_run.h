/* SPDX-License-Identifier: MIT. protonview_run.h: protonview without its main, for tests. */
#ifndef PROTOND_VIEWER_PROTONVIEW_RUN_H
#define PROTOND_VIEWER_PROTONVIEW_RUN_H

#define EXIT_OK      0
#define EXIT_NOT     1 /* not found, or a gate failed */
#define EXIT_USAGE   2
#define EXIT_DAEMON  3
#define EXIT_PARTIAL 4

int protonview_run(int argc, char **argv); /* exit status */

#endif
