/* SPDX-License-Identifier: MIT. export_format.c: the table of foreign formats. */
#include "export_format.h"

#define FROM_TREE(name)     .tree = name##_write,
#define FROM_TIMELINE(name) .timeline = name##_write,
#define FROM_FOLDER(name)   .folder = name##_write,
#define FROM_SESSION(name)  .timeline = name##_write,
#define READ_BACK(name)     .sniff = name##_sniff, .read = name##_read,
#define READ_NOT(name)
#define IS_PROTONS true
#define IS_OURS    false
#define X(id, from, back, whose, end, ...) \
	[FORMAT_##id] = {.name = #id,      \
		.ending = (end),           \
		.protons = IS_##whose,     \
		FROM_##from(id) READ_##back(id)},
const struct export_format export_formats[FORMAT_COUNT] = {FORMATS(X)};
#undef X

/* What is nobody's is the first one's: its reader says what is wrong. */
int export_read(const char *bytes, size_t n, struct profile **ret, struct err *e)
{
	unsigned f;

	for (f = 0; f < FORMAT_COUNT; f++)
		if (export_formats[f].sniff != NULL && export_formats[f].sniff(bytes, n))
			return export_formats[f].read(bytes, n, ret, e);
	return export_formats[0].read(bytes, n, ret, e);
}
