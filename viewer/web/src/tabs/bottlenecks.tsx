// SPDX-License-Identifier: MIT. bottlenecks.tsx: what is slow, how much, where, what to do and what that gives; what was judged and is fine; what could not be.
import type { Rule, Verdict, Verdicts } from "../api";
import { chain, cut, group, percent, shown } from "../format";
import { Evidence, gives, Severity, ticked, useVerdicts } from "../hints";
import { Loaded } from "../parts";
import { selectName } from "../session";
import { set } from "../state";

export function BottlenecksTab() {
	return <Loaded of={useVerdicts()}>{(v) => <View of={v} />}</Loaded>;
}

// Of a deep place both ends.
const pathOf = (where: string[]): string => chain((where.length > 12 ? [...where.slice(0, 3), "…", ...where.slice(-8)] : where).map((w) => cut(shown(w), 240)));

function One({ v, what }: { v: Verdict; what: string }) {
	const line = v.line;
	return (
		<li class="verdict">
			<header>
				<Severity of={v.severity} />
				<h2>{what} <code>{v.rule}</code></h2>
				{v.share ? <span class="how">{percent(v.share, 1)}<span class="meter" aria-hidden="true"><i style={{ width: `${Math.min(100, v.share * 100)}%` }} class={v.severity}></i></span></span> : null}
			</header>
			<p>{v.words}</p>
			<dl class="facts">
				{v.where.length > 0 && <><dt>where</dt><dd class="where">{pathOf(v.where)}</dd></>}
				{line && <><dt>line</dt><dd><button type="button" class="link" onClick={() => (selectName(line), set({ tab: "tree", open: "all", q: "" }))}><code>{shown(line)}</code></button></dd></>}
				<dt>do</dt><dd>{ticked(v.advice)}</dd>
				{gives(v) && <><dt>gives</dt><dd>{gives(v)}</dd></>}
				<dt>see</dt><dd><Evidence v={v} /></dd>
			</dl>
		</li>
	);
}

const limit = (r: Rule) => `${r.rule}, limit ${r.threshold} ${r.unit}`;

function Rules({ of }: { of: Rule[] }) {
	return (
		<ul class="rules">
			{of.map((r) => <li key={r.rule}>{r.what} <span class="hint">{limit(r)}</span>{r.note ? <p class="hint">{r.note}</p> : null}</li>)}
		</ul>
	);
}

function View({ of }: { of: Verdicts }) {
	const rules = of.rules ?? [];
	const by = (state: string) => rules.filter((r) => r.state === state);
	const [clean, unsure, lacks] = ["clean", "unsure", "lacks"].map(by);
	const what = (v: Verdict) => rules.find((r) => r.rule === v.rule)?.what ?? v.rule;
	// What records it, and which rules wait for that.
	const missing = new Map<string, { words: string; rules: string[] }>();
	for (const r of lacks)
		r.lacks.forEach((words, i) => {
			const how = r.record?.[i] ?? "";
			const m = missing.get(how) ?? { words, rules: [] };
			m.rules.push(r.rule);
			missing.set(how, m);
		});
	return (
		<div class="overview bottlenecks">
			<p class="note">{of.verdicts.length === 0 ? "No rule found anything to mend." : <><b>{group(of.verdicts.length)}</b> to mend, the worst first.</>} {group(clean.length)} looked for and not found{lacks.length > 0 && `, ${group(lacks.length)} without their data`}. Limits: <code>protonview bottlenecks --set</code>.</p>
			<ol class="verdicts">{of.verdicts.map((v) => <One key={v.rule + v.words} v={v} what={what(v)} />)}</ol>
			{lacks.length > 0 && (
				<section>
					<h2>Not judged: nothing was recorded for it</h2>
					<ul class="rules">
						{[...missing].map(([how, m]) => <li key={how}>{m.words} <span class="hint">{m.rules.join(", ")}</span><p><span class="hint">recorded by</span> {ticked(how.replace(/^protonctl [^;,]*/, "`$&`"))}</p></li>)}
					</ul>
				</section>
			)}
			{unsure.length > 0 && <section><h2>Too little to tell</h2><Rules of={unsure} /></section>}
			{clean.length > 0 && <section class="clean"><h2>Looked for, and not found</h2><Rules of={clean} /></section>}
		</div>
	);
}
