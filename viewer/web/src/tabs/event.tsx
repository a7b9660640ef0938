// SPDX-License-Identifier: MIT. event.tsx: what is known of the event that is selected in the timeline.
import type { EventAnswer, Lane, Place } from "../api";
import { csv, moment, shown, time, withUnit } from "../format";
import { type Promised, set } from "../state";
import { copyText } from "../table";

function Link({ words, to, jump }: { words: string; to: Place; jump: (p: Place) => void }) {
	return <p class="linked">{words} <button class="plain" title={shown(to.name)} onClick={() => jump(to)}>{shown(to.name)}</button><br />{time(to.dur_ns)} at {moment(to.start_ns)}</p>;
}

export function EventOf({ of: d, sel, lane, jump, close }: { of: Promised<EventAnswer | null>; sel: { start: number; dur: number; name: string } | null; lane: Lane | undefined; jump: (p: Place) => void; close: () => void }) {
	const more = Object.entries(d.value ?? {}).filter(([k, v]) => k !== "warnings" && k !== "name" && !(k === "recorded" && v === d.value?.name) && !["path", "lane", "depth"].includes(k) && v !== null && v !== "" && v !== false && (typeof v !== "object" || Array.isArray(v)));
	const path = Array.isArray(d.value?.path) ? (d.value.path as unknown[]).map((x) => shown(String(x))) : [];
	const name = sel ? shown(sel.name) : shown(String(d.value?.name ?? ""));
	const say1 = (k: string, v: unknown) => (typeof v === "number" ? (/^(start|end)_ns$/.test(k) ? moment(v) : k.endsWith("_ns") ? time(v) : /bytes|shared/.test(k) ? withUnit(v, "bytes") : String(v)) : Array.isArray(v) ? v.map(String).join(" × ") : v === true ? "yes" : shown(String(v)));
	const facts: [string, string][] = [
		...(sel ? [["took", time(sel.dur)], ["begins at", moment(sel.start)]] as [string, string][] : []),
		...(lane ? [["lane", shown(lane.name)]] as [string, string][] : []),
		...more.filter(([k]) => !(sel && /^(start|dur|end)(_ns)?$/.test(k))).map(([k, v]) => [k.replace(/_(ns|bytes)$/, "").replaceAll("_", " "), say1(k, v)] as [string, string]),
	];
	return (
		<aside class="details" aria-label="Selected event">
			<header>
				<h2>Selected</h2>
				<button class="plain" onClick={() => void copyText(csv([["name", ...facts.map((f) => f[0])], [name, ...facts.map((f) => f[1])]]))}>copy as CSV</button>
				<button class="plain" aria-label="select nothing" onClick={close}>×</button>
			</header>
			<p class="whole">{name}</p>
			<nav aria-label="Show it in">
				<button onClick={() => set({ tab: "tree" })}>Tree</button>
				<button onClick={() => set({ tab: "flame", flame: "callers", z: "" })}>Callers</button>
				<button onClick={() => set({ tab: "ops", by: "" })}>Operations</button>
			</nav>
			<dl class="facts">{facts.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
			{d.value?.recorded_by && <Link words="waited for what was recorded by" to={d.value.recorded_by} jump={jump} />}
			{d.value?.ended_by && <Link words={d.value.class === "stream_wait" ? "the last work before that" : "ended by the end of"} to={d.value.ended_by} jump={jump} />}
			{d.error && <p class="hint">{d.error.message}</p>}
			{path.length > 0 && <><h3>Path</h3><ol class="path">{path.map((x, i) => <li key={i}>{x}</li>)}</ol></>}
		</aside>
	);
}
