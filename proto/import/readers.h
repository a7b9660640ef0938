/* SPDX-License-Identifier: MIT. readers.h: the readers, one for each kind of file. For import.c. */
#ifndef PROTOND_IMPORT_READER_H
#define PROTOND_IMPORT_READER_H

#include "stage.h"

int chrome_read(struct stage *s, int fd, const char *what);
int nsys_read(struct stage *s, int fd, const char *what);
int hatchet_in_read(struct stage *s, int fd, const char *what);

#endif
