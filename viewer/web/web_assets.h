/* SPDX-License-Identifier: MIT. web_assets.h: the page's files, in the program: gzipped at build,
 * with the SHA-256 of what is in them. */
#ifndef PROTOND_WEB_WEB_ASSETS_H
#define PROTOND_WEB_WEB_ASSETS_H

#include <stddef.h>

/* clang-format off */
#define WEB_ASSETS(X) /* C name, file of dist/, type */                   \
	X(index_html, "index.html", "text/html; charset=utf-8")           \
	X(app_js,     "app.js",     "text/javascript; charset=utf-8")     \
	X(app_css,    "app.css",    "text/css; charset=utf-8")
/* clang-format on */

enum web_asset_id {
#define X(name, file, type) ASSET_##name,
	WEB_ASSETS(X)
#undef X
		ASSET_N
};

struct web_asset {
	const char *file, *type;
	const char *gz, *gz_end;
	const char *sha256; /* 64 hex digits */
};
extern const struct web_asset web_assets[ASSET_N];

/* Unpacked; the caller's. -ENOMEM. */
int web_asset_plain(const struct web_asset *a, char **ret, size_t *ret_n);

#endif
