/* SPDX-License-Identifier: MIT. print_steps.c: how fast steps went, as words. */
#include <math.h>

#include "print.h"

void print_rates(struct text *t, const struct throughput *h, const char *between)
{
	const struct {
		const char *word;
		double v;
	} rates[] = {
		{"steps/s", h->iterations}, {"samples/s", h->samples}, {"tokens/s", h->tokens}};
	size_t i, n = 0;

	for (i = 0; i < sizeof(rates) / sizeof(*rates); i++)
		if (!isnan(rates[i].v))
			text_fmt(t, "%s%.*f %s", n++ > 0 ? between : "",
				rates[i].v >= 1000 ? 0
				: rates[i].v >= 10 ? 1
						   : 3,
				rates[i].v, rates[i].word);
	if (!isnan(h->flops)) {
		text_str(t, n > 0 ? between : "");
		term_scaled(t, h->flops, "FLOP/s");
	}
	if (!isnan(h->mfu))
		text_fmt(t, "%sMFU %.1f%%", between, 100 * h->mfu);
}

void print_steps(struct text *t, const struct profile *p, const struct term *term)
{
	const struct step_rates *r = &p->head.rates;
	const size_t line = t->n;
	struct throughput h;

	if (r->steps == 0 || r->told[RATE_STEPS] == 0)
		return;
	throughput_of(p, r, &h);
	term_count(t, r->steps, "step", "steps");
	text_str(t, ":  ");
	print_rates(t, &h, "  ");
	term_wrap(term, t, line, 2);
	text_char(t, '\n');
}
