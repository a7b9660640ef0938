/* SPDX-License-Identifier: MIT. svg_draw.c: what the two pictures share. */
#include "svg_draw.h"

#include "utf8.h"

static void put_character(struct text *t, const char *s, size_t n)
{
	const uint32_t c = utf8_code(s, n);

	if (utf8_is_control(c) || c == 0xfffe || c == 0xffff)
		text_str(t, "\xef\xbf\xbd");
	else if (c == '&')
		text_str(t, "&amp;");
	else if (c == '<')
		text_str(t, "&lt;");
	else if (c == '>')
		text_str(t, "&gt;");
	else if (c == '"')
		text_str(t, "&quot;");
	else
		text_add(t, s, n);
}

void svg_text(struct text *t, const char *utf8, size_t most)
{
	const size_t length = strlen(utf8), n = text_cut(utf8, length < most ? length : most);
	size_t at, some;

	for (at = 0; at < n; at += some) {
		some = utf8_bytes(utf8 + at, n - at);
		if (some == 0)
			return;
		put_character(t, utf8 + at, some);
	}
	if (n < length)
		text_str(t, "\xe2\x80\xa6");
}

void svg_open(struct text *t, const struct profile *p, const char *words, uint64_t height)
{
	const char *name = p->head.name != NULL ? p->head.name : "protond";

	text_fmt(t,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%llu\" "
		"viewBox=\"0 0 %u %llu\" font-family=\"system-ui,sans-serif\" font-size=\"12\">\n"
		"<style>text{fill:#1f2328}.n{fill:#59636e}g:hover rect{stroke:#1f2328}</style>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		"<text x=\"%u\" y=\"24\" font-size=\"15\" font-weight=\"600\">",
		SVG_WIDTH, (unsigned long long)height, SVG_WIDTH, (unsigned long long)height,
		SVG_MARGIN);
	svg_text(t, name, 80);
	text_str(t, "<tspan class=\"n\" font-size=\"12\" font-weight=\"400\" dx=\"12\">");
	svg_text(t, words, 200);
	text_str(t, "</tspan></text>\n");
}

void svg_close(struct text *t)
{
	text_str(t, "</svg>\n");
}

void svg_time(struct text *t, uint64_t ns)
{
	static const struct {
		double ns;
		const char *unit;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "\xc2\xb5s"}};

	for (unsigned i = 0; i < sizeof(units) / sizeof(*units); i++)
		if ((double)ns >= units[i].ns) {
			text_fixed(t, (double)ns / units[i].ns, 3, 0);
			text_char(t, ' ');
			text_str(t, units[i].unit);
			return;
		}
	text_fmt(t, "%llu ns", (unsigned long long)ns);
}

void svg_share(struct text *t, uint64_t part, uint64_t whole)
{
	text_fmt(t, "%.1f %%", whole > 0 ? 100.0 * (double)part / (double)whole : 0.0);
}

void svg_colour(struct text *t, const char *name, bool gpu)
{
	uint32_t h = 2166136261u;

	for (const char *s = name; *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	h ^= h >> 15;
	if (gpu)
		text_fmt(t, "#%02x%02x%02x", 120 + h % 50, 175 + h / 64 % 45, 225 + h / 4096 % 25);
	else
		text_fmt(t, "#%02x%02x%02x", 235 + h % 16, 165 + h / 64 % 60, 105 + h / 4096 % 45);
}
