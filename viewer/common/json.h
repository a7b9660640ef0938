/* SPDX-License-Identifier: MIT. json.h: JSON for --json: one envelope, values from MessagePack. */
#ifndef PROTOND_JSON_H
#define PROTOND_JSON_H

#include <stdbool.h>
#include <stdio.h>

#include <msgpack.h>

/* Text as a JSON string. Bytes that are not UTF-8 become U+FFFD; control characters are escaped. */
void json_text(FILE *f, const char *text, size_t n);
/* Any value: binary as hex digits, NaN and infinities as null, keys that are no text left out. */
void json_value(FILE *f, const msgpack_object *o);

/* {"protond":"1","kind":kind,"data": … then `,"warnings":[…]}`. The caller writes the data between.
 */
void json_begin(FILE *f, const char *kind);
void json_end(FILE *f, const char *const *warnings, size_t n);
/* The same with "error": {"code", "text"} in place of data. */
void json_error(FILE *f, const char *kind, int code, const char *text);

/* How many bytes of UTF-8 stand at p (1..4), or 0: not UTF-8. */
size_t json_utf8(const char *p, size_t n);

#endif
