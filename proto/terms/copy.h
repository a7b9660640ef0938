/* SPDX-License-Identifier: MIT. copy.h: what a copy went between, in names of ours: the numbers in
 * rec_copy. A vendor's walker says what they are in its own numbers. Anybody may include it. */
#ifndef PROTOND_TERMS_COPY_H
#define PROTOND_TERMS_COPY_H

/* clang-format off */
/* class: enum copy_class of record.h. An array is memory of the device. */
#define COPY_KINDS(X) /* name  number  class */ \
        X(UNKNOWN,         0, OTHER) \
        X(HOST_DEVICE,     1, H2D)   \
        X(DEVICE_HOST,     2, D2H)   \
        X(HOST_ARRAY,      3, H2D)   \
        X(ARRAY_HOST,      4, D2H)   \
        X(ARRAY_ARRAY,     5, D2D)   \
        X(ARRAY_DEVICE,    6, D2D)   \
        X(DEVICE_ARRAY,    7, D2D)   \
        X(DEVICE_DEVICE,   8, D2D)   \
        X(HOST_HOST,       9, OTHER) \
        X(PEER,           10, P2P)
/* What is at either end of a copy, or was set. */
#define MEMORY_KINDS(X) /* name  number */ \
        X(UNKNOWN,        0) \
        X(PAGEABLE,       1) \
        X(PINNED,         2) \
        X(DEVICE,         3) \
        X(ARRAY,          4) \
        X(MANAGED,        5) \
        X(DEVICE_STATIC,  6) \
        X(MANAGED_STATIC, 7)
/* clang-format on */

enum copy_kind {
#define X(name, number, class) COPY_KIND_##name = (number),
	COPY_KINDS(X)
#undef X
		COPY_KIND_MAX
};

enum memory_kind {
#define X(name, number) MEMORY_##name = (number),
	MEMORY_KINDS(X)
#undef X
};

#endif
