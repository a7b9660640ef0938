// SPDX-License-Identifier: MIT. hints.tsx: where to look first: the rules' verdicts, and the ways on to what they judge.
import type { ComponentChildren } from "preact";
import { api, get, type TreeAnswer, type Verdict, type Verdicts } from "./api";
import { chain, cut, percent, shown, time } from "./format";
import { childrenOf } from "./model";
import { selectName, selectNode, treeOf, treePath, useSession } from "./session";
import { set, usePromise } from "./state";

export function useVerdicts() {
	const { id, beat } = useSession();
	return usePromise(() => get<Verdicts>(api(id, "bottlenecks")), [id, beat]);
}

// A shape and a word beside the colour.
const SHAPES: Record<string, string> = { HIGH: "▲", MEDIUM: "◆", LOW: "●" };
export const Severity = ({ of }: { of: string }) => <b class={`severity ${of}`}><span aria-hidden="true">{SHAPES[of]} </span>{of}</b>;

// What stands between `marks` is a command or an option.
export const ticked = (s: string): ComponentChildren => s.split("`").map((w, i) => (i % 2 ? <code key={i}>{w}</code> : w));

export function gives(v: Verdict): string {
	if (v.gain === null || v.gain === undefined)
		return "";
	const share = v.gain_share ? `${percent(v.gain_share, 1)} ${v.of}` : "";
	const each = v.gain_step ?? null;
	return `at most ${time(each ?? v.gain)}${each === null ? "" : " a step"}${share && `, ${share}`}`;
}

// As people read it, which is what names are known by here; v.name may be mangled.
const nameOf = (v: Verdict): string => v.where.at(-1) ?? v.name!;

// To the node of its path; without one, to the largest of its name.
async function toNode(path: string, v: Verdict, tab: string): Promise<void> {
	const t = treeOf(await get<TreeAnswer>(path));
	let at = t.n > 0 ? 0 : -1;
	for (const w of v.where)
		if (at >= 0)
			at = childrenOf(t, at).find((c) => t.raw[t.name[c]] === w) ?? -1;
	if (at > 0)
		selectNode(t, at);
	else
		selectName(nameOf(v));
	const seen = at > 0 && t.metrics.find((m) => m.inclusive && t.values[m.name][at] > 0); // where it is not as wide as nothing
	set({ tab, z: "", q: "", ...(tab === "tree" ? { open: "all", x: "", hide: "" } : { flame: "", fm: seen ? seen.name : "" }) });
}

const VIEWS: Record<string, string> = { steps: "Steps", ranks: "Ranks", series: "Series", tree: "Tree" };

export function Evidence({ v }: { v: Verdict }) {
	const { id, h, meta } = useSession();
	const link = (words: string, go: () => void) => <button type="button" class="link" aria-label={`${words}: ${v.rule}`} onClick={go}>{words}</button>;
	const { time: at, mark } = v;
	return (
		<span class="evidence">
			{at && meta.has.timeline !== false && link("Timeline", () => {
				set({ tab: "timeline", t: at.join(), range: mark?.join() ?? "", box: "", ev: "", q: "" });
				if (v.name)
					selectName(nameOf(v));
			})}
			{v.name && link("Tree", () => void toNode(treePath(id, h), v, "tree"))}
			{v.name && link("Flame", () => void toNode(treePath(id, h), v, "flame"))}
			{VIEWS[v.view] && !(v.name && v.view === "tree") && link(VIEWS[v.view], () => set({ tab: v.view }))}
		</span>
	);
}

export const whereOf = (v: Verdict): string => (v.where.length > 0 ? `${chain(v.where.slice(-2).reverse().map((w) => cut(shown(w), 120)), " in ")}: ` : "");

const FIRST = 5;

export function Hints() {
	const { value } = useVerdicts();
	if (!value)
		return null;
	const all = value.verdicts.length;
	const of = (state: string) => (value.rules ?? []).filter((r) => r.state === state).length;
	return (
		<section>
			<h2>Where to look <button type="button" class="link" onClick={() => set({ tab: "bottlenecks" })}>{all > FIRST ? `all ${all}` : "all rules"}</button></h2>
			{all === 0 && <p class="hint">No rule found anything to mend: {of("clean")} judged, {of("lacks")} without their data.</p>}
			<ul class="hints">
				{value.verdicts.slice(0, FIRST).map((v) => (
					<li key={v.words}>
						<Severity of={v.severity} />
						<p>{whereOf(v)}{v.words} <span class="hint">{ticked(v.advice)}</span> <Evidence v={v} /></p>
						<span class="gives">{v.gain_step || v.gain ? <><b>{time(v.gain_step ?? v.gain)}</b>{v.gain_step ? " a step" : ""}<small>{v.gain_share ? `${percent(v.gain_share, 1)} ` : ""}at most</small></> : null}</span>
					</li>
				))}
			</ul>
		</section>
	);
}
