/* SPDX-License-Identifier: MIT. offer.h: the sessions and jobs that a shell may complete, the same
 * for protonctl and protonview. */
#ifndef PROTOND_VIEWER_OFFER_H
#define PROTOND_VIEWER_OFFER_H

/* Prints what begins so, as complete_put(): sessions by name, and the words with @ that stand for
 * one. Silent when nothing answers. */
void offer_sessions(const char *begin);
void offer_live_sessions(const char *begin); /* those that are not over */
/* Pids of jobs, each behind `before`. */
void offer_jobs(const char *begin, const char *before);

#endif
