// SPDX-License-Identifier: MIT. order.tsx: one step as bars in the order of time, out of the timeline's pieces.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, get, type Lane, type Lanes, type Steps } from "../api";
import { phase } from "../color";
import { group, nameKey, percent, shown, time } from "../format";
import { Icicle } from "../icicle";
import { blank, type Layout, sizes, type Words } from "../model";
import { Choice, Lacking, Loaded } from "../parts";
import { selectName, useSession } from "../session";
import { set, usePromise } from "../state";
import { GROUP, Tiles } from "../tiles";
import { BoxTable, useMatches } from "./flame";
import { useSteps, whoOf } from "./steps";

const PX = 4096; // of a step: what is shorter is merged

export function StepOrder({ bar }: { bar: (more: ComponentChildren) => ComponentChildren }) {
	const { id, meta } = useSession();
	const steps = useSteps();
	const lanes = usePromise(() => (meta.has.timeline ? get<Lanes>(api(id, "lanes")) : null), [id]);
	if (!meta.has.timeline || meta.has.steps === false)
		return <>{bar(null)}<Lacking what={meta.has.timeline ? "steps" : "timeline"} /></>;
	return <Loaded of={steps}>{(s) => <Loaded of={lanes}>{(l) => (s.column.step.length === 0 ? <>{bar(null)}<Lacking what="steps" /></> : <OfStep s={s} lanes={l} bar={bar} />)}</Loaded>}</Loaded>;
}

function OfStep({ s, lanes, bar }: { s: Steps; lanes: Lanes; bar: (more: ComponentChildren) => ComponentChildren }) {
	const { id, h } = useSession();
	const c = s.column;
	const proc = Number(h.proc ?? "0") || 0;
	const mine = useMemo(() => c.step.map((_, i) => i).filter((i) => (c.process?.[i] ?? 0) === proc), [s, proc]);
	const at = Math.max(0, mine.findIndex((i) => c.step[i] === Number(h.step)));
	const row = mine[at] ?? 0;
	const [t0, t1] = [c.start[row], c.start[row] + c.duration[row]];
	const some = lanes.lane.filter((l) => l.process === s.processes[proc]?.pid && l.kind !== "counter");
	const lane = some.find((l) => String(l.id) === h.lane) ?? some.find((l) => l.kind === "thread" && l.number === c.tid?.[row]) ?? some[0];
	const { words, l } = useSlices(id, lanes.lane, lane, t0, t1, `step ${c.step[row]}`);
	const matches = useMatches(words, h.q ?? "");
	const zoom = Math.min(Number(h.z ?? "0") || 0, Math.max(0, l.n - 1));
	const selected = words.raw.findIndex((r) => nameKey(r) === h.sel);
	const select = (b: number) => b > 0 && selectName(words.raw[l.name[b]]);
	const to = (by: number) => set({ step: String(c.step[mine[at + by]]), z: "" });
	return (
		<>
			{bar(
				<>
					<button disabled={at < 1} onClick={() => to(-1)}>‹ before</button>
					<label class="choice">step <input type="number" min={c.step[mine[0]]} max={c.step[mine[mine.length - 1]]} value={c.step[row]} onChange={(e) => set({ step: e.currentTarget.value, z: "" })} /></label>
					<button disabled={at + 1 >= mine.length} onClick={() => to(1)}>next ›</button>
					{s.processes.length > 1 && <Choice label="of" value={String(proc)} of={s.processes.slice(0, 1024).map((p, i) => [String(i), whoOf(p)] as [string, string])} onChange={(v) => set({ proc: v, z: "" })} />}
					{lane && <Choice label="in" value={String(lane.id)} of={some.slice(0, 500).map((x) => [String(x.id), shown(x.name).slice(0, 60)] as [string, string])} onChange={(v) => set({ lane: v, z: "" })} />}
				</>,
			)}
			<nav class="crumbs" aria-label="Which step"><span class="hint">Step {group(c.step[row])} of {group(mine.length)} in the order of time, {time(t1 - t0)}; what is shorter than {time((t1 - t0) / PX)} is merged. The timeline shows it whole.</span></nav>
			{h.table === "1" ? <BoxTable t={words} l={l} unit="ns" say="took" onSelect={select} selected={l.node.indexOf(selected)} />
				: l.n < 2 ? <p class="none" role="status">{lane ? "Nothing of this step is here." : "Its process has no lane."}</p>
				: <Icicle tree={words} layout={l} zoom={zoom} selected={selected} matches={matches} onZoom={(b) => set({ z: b > 0 ? String(b) : "" })} onSelect={select}
					say={(b) => [words.names[l.name[b]], `${time(l.w[b])}, ${percent(l.w[b], l.w[0])} of the step`, `after ${time(l.x[b])}`]}
					label={`Step ${c.step[row]} in the order of time: ${l.n} bars. The table button lists them.`} />}
		</>
	);
}

// What a lane has in [t0, t1): a box each, below one for all.
function useSlices(id: string, all: Lane[], lane: Lane | undefined, t0: number, t1: number, head: string): { words: Words; l: Layout } {
	const [came, again] = useState(0);
	const alive = useRef(true);
	useEffect(() => () => void (alive.current = false), []);
	const tiles = useMemo(() => new Tiles(id, all.length, () => alive.current && again((n) => n + 1)), [id, all]);
	return useMemo(() => {
		const words: Words = { raw: [head], names: [head], briefs: [head] };
		const place = new Map<string, number>();
		const seen = new Set<string>();
		const v: { x: number; end: number; depth: number; name: number }[] = [];
		for (const { tile, from, to } of lane ? tiles.cover(t0, t1, (t1 - t0) / PX, [Math.floor(lane.id / GROUP)]) : [])
			for (let i = 0; i < tile.n; i++) {
				const [x, end, depth] = [Math.max(t0, tile.start[i]), Math.min(t1, tile.start[i] + tile.dur[i]), tile.depth[i]];
				const key = `${depth} ${tile.start[i]}`;
				if (tile.lane[i] !== lane!.id || end <= x || x >= to || end <= from || seen.has(key))
					continue;
				seen.add(key);
				const raw = tile.raw[tile.name[i]];
				let name = place.get(raw);
				if (name === undefined) {
					place.set(raw, (name = words.raw.push(raw) - 1));
					words.names.push(tile.names[tile.name[i]]);
					words.briefs.push(tile.briefs[tile.name[i]]);
				}
				v.push({ x: x - t0, end: end - t0, depth, name });
			}
		v.sort((a, b) => a.x - b.x || a.depth - b.depth);
		const low = v.reduce((m, s) => Math.min(m, s.depth), Infinity);
		const l = blank(v.length + 1);
		const put = (s: { x: number; end: number; depth: number; name: number }) => {
			const b = l.n++;
			l.x[b] = s.x;
			l.w[b] = l.value[b] = s.end - s.x;
			l.depth[b] = s.depth;
			l.depths = Math.max(l.depths, s.depth + 1);
			l.name[b] = l.node[b] = s.name;
			l.color[b] = s.name === 0 ? "#d5d8dd" : phase(words.briefs[s.name]);
		};
		put({ x: 0, end: t1 - t0, depth: 0, name: 0 });
		for (const s of v)
			put({ ...s, depth: s.depth - low + 1 });
		sizes(l);
		return { words, l };
	}, [came, tiles, lane?.id, t0, t1]);
}
