/* SPDX-License-Identifier: MIT. web_report.c: one file of HTML: the page's own scripts and styles, by
 * their hashes, and each answer as base64 of what deflate made of it, which no browser runs. */
#include "web_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "json.h"
#include "web_assets.h"
#include "web_json.h"

/* In the page's index.html, each once, in this order. */
#define HEAD   "<head>"
#define TITLE  "<title>protond</title>"
#define STYLE  "<link rel=\"stylesheet\" href=\"app.css\">"
#define SCRIPT "<script src=\"app.js\"></script>"

#define DEFLATE_LEVEL 4 /* a twentieth larger than 6, in a third of the time */
#define TILE_PX       1024u
#define TILE_EMPTY    40u /* bytes of one in which nothing is */
#define TILES_MAX     64u /* of a level, the finest */
#define TILES_BYTES \
	(132u << 10) /* of all tiles, as they stand in the file; the whole is always there */

/* --- encodings */

static void put_base64(struct text *t, const void *bytes, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *b = bytes;
	char four[4];
	size_t i, k;
	uint32_t v;

	if (text_reserve(t, (n + 2) / 3 * 4) < 0)
		return;
	for (i = 0; i < n; i += 3) {
		v = 0;
		for (k = 0; k < 3; k++)
			v = v << 8 | (i + k < n ? b[i + k] : 0u);
		for (k = 0; k < 4; k++)
			four[k] = i + k > n ? '=' : digits[v >> (18 - 6 * k) & 63];
		text_add(t, four, 4);
	}
}

/* "'sha256-…'", as a policy names what may run. */
static void put_hash(struct text *t, const struct web_asset *a)
{
	unsigned char bytes[32];
	unsigned v, i;

	for (i = 0; i < sizeof(bytes); i++) {
		(void)sscanf(a->sha256 + 2 * i, "%2x", &v);
		bytes[i] = (unsigned char)v;
	}
	text_str(t, "'sha256-");
	put_base64(t, bytes, sizeof(bytes));
	text_str(t, "'");
}

static void put_escaped(struct text *t, const char *s)
{
	for (; *s != '\0'; s++)
		if (*s == '<')
			text_str(t, "&lt;");
		else if (*s == '&')
			text_str(t, "&amp;");
		else if (*s == '"')
			text_str(t, "&quot;");
		else
			text_char(t, *s);
}

static int put_deflated(struct text *t, const char *bytes, size_t n)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)n};
	size_t most;
	Bytef *to;
	int r = -ENOMEM;

	if (n > UINT32_MAX / 2 ||
		deflateInit2(&z, DEFLATE_LEVEL, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	most = deflateBound(&z, (uLong)n);
	to = malloc(most);
	z.next_out = to;
	z.avail_out = (uInt)most;
	if (to != NULL && deflate(&z, Z_FINISH) == Z_STREAM_END) {
		put_base64(t, to, most - z.avail_out);
		r = 0;
	}
	(void)deflateEnd(&z);
	free(to);
	return r;
}

/* --- answers */

static int put_data(struct text *t, const char *path, const char *bytes, size_t n)
{
	int r;

	text_str(t, "<script type=\"application/octet-stream\" data-path=\"");
	put_escaped(t, path);
	text_str(t, "\">");
	r = put_deflated(t, bytes, n);
	text_str(t, "</script>\n");
	return r;
}

/* What there is to choose from: this one. */
static int put_list(struct text *t, const char *id)
{
	struct text list = {0};
	int r;

	text_str(&list, "{\"columns\":[],\"rows\":[],\"report\":true,\"open\":[");
	json_str(&list, id);
	text_str(&list, "],\"warnings\":[]}");
	r = list.failed ? -ENOMEM : put_data(t, "api/sessions", list.s, list.n);
	text_fini(&list);
	return r;
}

/* An error is not put: "meta" says what is not there. */
static int put_answer(struct web *w, const char *path, struct text *t, bool needed)
{
	struct web_answer a;
	int r = 0;

	web_answer(w, path, &a);
	if (a.status == 200 && (a.body.n > TILE_EMPTY || strstr(path, "/window?") == NULL))
		r = put_data(t, path, a.body.s, a.body.n);
	else if (needed)
		r = -EIO;
	web_answer_fini(&a);
	return r;
}

/* A timeline as tiles: all of it at once, then by fourths, then by sixteenths, … as long as a level
 * has room. */
static int put_tiles(struct web *w, const char *id, struct text *t)
{
	struct text level = {0};
	uint64_t t0, t1, from, to, i, n;
	char path[128];
	size_t room = TILES_BYTES;
	int r = 0;

	if (!web_range(w, id, &t0, &t1))
		return 0;
	for (n = 1; n <= TILES_MAX && r == 0; n *= 4) {
		for (i = 0; i < n && r == 0 && level.n <= room; i++) {
			from = t0 + (t1 - t0) / n * i;
			to = i + 1 < n ? from + (t1 - t0) / n : t1;
			if (to <= from)
				break;
			snprintf(path, sizeof(path), "api/s/%s/window?t0=%llu&t1=%llu&px=%u", id,
				(unsigned long long)from, (unsigned long long)to, TILE_PX);
			r = put_answer(w, path, &level, false);
		}
		if (r == 0 && (level.n > room && n > 1))
			break;
		text_add(t, level.s, level.n);
		room -= level.n < room ? level.n : room;
		level.n = 0;
	}
	text_fini(&level);
	return r;
}

static int put_answers(struct web *w, const char *id, struct text *t)
{
	static const struct {
		const char *name;
		bool needed;
	} answers[] = {{"meta", true}, {"tree", true}, {"ops", false}, {"ops?by=family", false},
		{"ops?by=class", false}, {"steps", false}, {"ranks", false}, {"bottlenecks", false},
		{"series", false}, {"memory", false}, {"lanes", false}};
	char path[64];
	size_t i;
	int r = put_list(t, id);

	for (i = 0; i < sizeof(answers) / sizeof(*answers) && r == 0; i++) {
		snprintf(path, sizeof(path), "api/s/%s/%s", id, answers[i].name);
		r = put_answer(w, path, t, answers[i].needed);
	}
	return r < 0 ? r : put_tiles(w, id, t);
}

/* --- the page */

static void put_policy(struct text *t)
{
	text_str(t, "\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		    "script-src ");
	put_hash(t, &web_assets[ASSET_app_js]);
	text_str(t, "; style-src ");
	put_hash(t, &web_assets[ASSET_app_css]);
	text_str(t, "; img-src data: blob:; base-uri 'none'; form-action 'none'\">");
}

static int put_asset(struct text *t, enum web_asset_id id, const char *begin, const char *end)
{
	char *bytes;
	size_t n;

	if (web_asset_plain(&web_assets[id], &bytes, &n) < 0)
		return -ENOMEM;
	text_str(t, begin);
	text_add(t, bytes, n);
	text_str(t, end);
	free(bytes);
	return 0;
}

/* What stands before a mark, which is left behind. */
static int put_until(struct text *t, const char **at, const char *end, const char *mark)
{
	const char *found = memmem(*at, (size_t)(end - *at), mark, strlen(mark));

	if (found == NULL)
		return -EINVAL;
	text_add(t, *at, (size_t)(found - *at));
	*at = found + strlen(mark);
	return 0;
}

static int put_page(struct web *w, const char *id, const char *at, const char *end, struct text *t)
{
	char title[300];
	int r = put_until(t, &at, end, HEAD);

	if (r < 0)
		return r;
	text_str(t, HEAD);
	put_policy(t);
	r = put_until(t, &at, end, TITLE);
	web_title(w, id, title, sizeof(title));
	text_str(t, "<title>");
	put_escaped(t, title);
	text_str(t, "</title>");
	if (r == 0)
		r = put_until(t, &at, end, STYLE);
	if (r == 0)
		r = put_asset(t, ASSET_app_css, "<style>", "</style>");
	if (r == 0)
		r = put_until(t, &at, end, SCRIPT);
	if (r == 0)
		r = put_answers(w, id, t);
	if (r == 0)
		r = put_asset(t, ASSET_app_js, "<script>", "</script>");
	text_add(t, at, (size_t)(end - at));
	return r;
}

int web_report(struct web *w, struct text *out, struct err *e)
{
	char *index;
	size_t n;
	int r;

	if (web_asset_plain(&web_assets[ASSET_index_html], &index, &n) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	r = put_page(w, web_shown(w, 0), index, index + n, out);
	free(index);
	if (r == -EINVAL)
		return err_set(e, r, "the page in this program cannot be written as one file");
	return r < 0 || out->failed ? err_set(e, -ENOMEM, "out of memory") : 0;
}
