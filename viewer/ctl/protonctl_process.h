/* SPDX-License-Identifier: MIT. protonctl_process.h: why a process is not among protond's jobs, as
 * far as the user may see it. For verbs that are given a pid. */
#ifndef PROTOND_PROTONCTL_PROCESS_H
#define PROTOND_PROTONCTL_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "process 7 (train) does not load libprotond". False: nothing is known of it here. */
bool process_words(uint64_t pid, char *ret, size_t n);

#endif
