/* SPDX-License-Identifier: MIT. end.h: the end of a program that left only our threads. park.c
 * includes it. */
#ifndef PROTOND_END_H
#define PROTOND_END_H

/* Ends the process if only our threads are left. */
void pd_end_with_program(void);

#endif
