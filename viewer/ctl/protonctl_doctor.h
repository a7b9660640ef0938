/* SPDX-License-Identifier: MIT. protonctl_doctor.h: the checks of `protonctl doctor`, and what they
 * share: the findings, and the daemon that was asked. For protonctl_doctor*.c. */
#ifndef PROTOND_PROTONCTL_DOCTOR_H
#define PROTOND_PROTONCTL_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "rpc.h"

#define FINDINGS_MAX 64

enum grade { GOOD, NOTE, BAD };

struct finding {
	enum grade grade;
	const char *what; /* the thing looked at */
	char text[400], mend[400];
};

struct doctor {
	struct rpc *rpc;         /* NULL: no daemon answers, for the reason in `why` */
	struct err why;          /* likewise */
	struct rpc_reply status; /* the daemon's; .result NULL: none */
	char dir[4096];          /* the runtime directory; "": there is none */
	struct finding finding[FINDINGS_MAX];
	size_t n;
};

void found(struct doctor *d, enum grade grade, const char *what, const char *mend, const char *fmt,
	...) __attribute__((format(printf, 5, 6)));

/* Who answers at control.sock, in the eyes of our own namespaces. False: nobody. */
struct doctor_peer {
	int64_t pid;  /* 0: not to be seen from here */
	uint32_t uid; /* of who listens: the daemon, or its service manager */
	bool same;    /* it is in our pid namespace */
};
bool doctor_peer(const struct doctor *d, struct doctor_peer *ret);
/* A number behind `key` at the beginning of a line of a file. False: no such file or line. */
bool doctor_number(const char *path, const char *key, uint64_t *ret);

/* clang-format off */
/* In the order of the report. A check is a function doctor_NAME() in a file and its row here. */
#define CHECKS(X) \
	/* protonctl_doctor_place.c: directories, sockets, database */ \
	X(runtime) X(daemon) X(database) \
	/* protonctl_doctor_version.c: what is installed, how it is set, and what runs */ \
	X(beside) X(settings) X(versions) \
	/* protonctl_doctor_system.c: kernel, limits, container, what a logout takes away */ \
	X(kernel) X(limits) X(container) X(logout) \
	/* protonctl_doctor_gpu.c: driver, CUPTI, privileges, protond-device, other tools */ \
	X(gpu) X(readings) X(others)
/* clang-format on */

/* Looks at a few things and adds what it found. */
typedef void doctor_fn(struct doctor *d);
#define X(name) doctor_fn doctor_##name;
CHECKS(X)
#undef X

/* dlopen in a child: a library may do anything when it is loaded. fn runs there with the library's
 * handle and writes its answer; "" is none. False: it did not load, or gave no answer: why stands
 * in ret. */
typedef void doctor_probe_fn(void *library, char *ret, size_t n);
bool doctor_probe(const char *library, doctor_probe_fn *fn, char *ret, size_t n);

#endif
