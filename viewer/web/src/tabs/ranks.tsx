// SPDX-License-Identifier: MIT. ranks.tsx: each rank's steps as a map of heat, and how far ranks are apart in each scope.
import { useMemo, useRef, useState } from "preact/hooks";
import { api, get, type RanksAnswer, type Steps } from "../api";
import { Canvas, type Draw } from "../canvas";
import { heat } from "../color";
import { chain, column, nameKey, shown, sums as summed, time } from "../format";
import { useVerdicts, whereOf } from "../hints";
import { type Tip, TipBox } from "../icicle";
import { AsTable, Lacking, Loaded } from "../parts";
import { useSession } from "../session";
import { set, usePromise } from "../state";
import { useSteps } from "./steps";
import { type Col, headWidth, numbers, Table } from "../table";

const SIDE = 76;

export function RanksTab() {
	const { id, beat } = useSession();
	const of = usePromise(() => get<RanksAnswer>(api(id, "ranks")), [id, beat]);
	const steps = useSteps();
	return <div class="fill"><Loaded of={of}>{(r) => (r.processes.length < 2 ? <Lacking what="ranks" /> : <View r={working(r)} s={steps.value} />)}</Loaded></div>;
}

// A launcher (torchrun's own process) has nothing to compare.
function working(r: RanksAnswer): RanksAnswer {
	const ids = r.processes.flatMap((p, k) => ((p.total ?? 0) > 0 ? [k] : []));
	if (ids.length < 2 || ids.length === r.processes.length)
		return r;
	return { ...r, processes: ids.map((k) => r.processes[k]), values: r.values.map((v) => ids.map((k) => v[k])), column: { ...r.column, slowest: r.column.slowest.map((k) => ids.indexOf(k)) } };
}

const whoIs = (p: { pid: number; rank?: number | null }) => (p.rank !== null && p.rank !== undefined ? `rank ${p.rank}` : `pid ${p.pid}`);
const middle = (v: number[]) => [...v].sort((x, y) => x - y)[v.length >> 1] ?? NaN;

// Durations of steps by process: its place among the ranks' processes.
interface Grid {
	steps: number[];
	duration: (number | null)[][];
	mid: number;
}

function gridOf(r: RanksAnswer, s: Steps | undefined): Grid | null {
	if (!s || s.column.step.length === 0)
		return null;
	const steps = [...new Set(s.column.step)].sort((a, b) => a - b);
	const at = new Map(steps.map((x, i) => [x, i]));
	const duration = r.processes.map(() => new Array<number | null>(steps.length).fill(null));
	const place = s.processes.map((p) => r.processes.findIndex((q) => q.pid === p.pid && (q.rank ?? null) === (p.rank ?? null)));
	const all: number[] = [];
	s.column.step.forEach((x, i) => {
		const k = place[s.column.process?.[i] ?? 0];
		if (k >= 0) {
			duration[k][at.get(x)!] = s.column.duration[i];
			all.push(s.column.duration[i]);
		}
	});
	return all.length > 0 ? { steps, duration, mid: middle(all) } : null;
}

function View({ r, s }: { r: RanksAnswer; s: Steps | undefined }) {
	const { h } = useSession();
	const late = useVerdicts().value?.verdicts.find((v) => v.rule === "slow_rank");
	const grid = useMemo(() => gridOf(r, s), [r, s]);
	const sums = useMemo(() => r.processes.map((p, k) => {
		const v = (grid?.duration[k] ?? []).filter((x): x is number => x !== null);
		return { total: p.total ?? NaN, mid: middle(v), max: v.reduce((a, b) => Math.max(a, b), -1), n: v.length };
	}), [r, grid]);
	const by = grid ? "mid" : "total"; // without steps: by what they have in all
	const usual = middle(sums.map((x) => x[by]).filter((x) => x === x));
	const slowest = sums.reduce((best, x, k) => ((x[by] || 0) > (sums[best][by] || 0) ? k : best), 0);
	const chosen = h.rank !== undefined && Number(h.rank) < r.processes.length ? Number(h.rank) : -1;
	const [c, tc] = [column("ns", sums.map((x) => x.mid)), column("ns", sums.map((x) => x.total))];
	const words = r.metric === "cpu_time" ? "CPU time" : "GPU time";
	const cols: Col[] = [
		{ key: "rank", head: "Process", width: 120, text: (k) => whoIs(r.processes[k]), sort: (k) => r.processes[k].rank ?? r.processes[k].pid },
		...(grid ? [
			numbers("mid", "Median step", 140, c, (k: number) => sums[k].mid, sums[slowest].mid),
			{ key: "max", head: "Longest", unit: c.unit, num: true, width: 110, text: (k: number) => c.text(sums[k].n > 0 ? sums[k].max : NaN), sort: (k: number) => sums[k].max },
		] : []),
		{ key: "x", head: "× the median", num: true, width: 116, text: (k) => (sums[k][by] >= 0 ? (sums[k][by] / (usual || 1)).toFixed(2) : "–"), sort: (k) => sums[k][by] },
		numbers("total", words, 120, tc, (k) => sums[k].total),
		{ key: "pad", head: "", text: () => "", width: 1 },
	];
	const ids = useMemo(() => r.processes.map((_, k) => k), [r]);
	return (
		<>
			<div class="bar-of">
				<span class="note"><b>{r.processes.length}</b> processes, {grid ? <>median step <b>{time(grid.mid)}</b></> : <>median {words} <b>{time(usual)}</b></>}</span>
				{sums[slowest][by] > usual * 1.05 && <span class="note warn">{whoIs(r.processes[slowest])} takes {(sums[slowest][by] / usual).toFixed(2)} × as long as the median <button class="link" onClick={() => set({ rank: String(slowest) })}>show</button></span>}
				{grid && <AsTable words="tables only" />}
			</div>
			{late && <p class="note warn late">{late.words} <span class="hint">{whereOf(late).slice(0, -2)}</span></p>}
			{h.table !== "1" && grid && <Heat r={r} grid={grid} chosen={chosen} />}
			<div class="halves">
				<Table label="Ranks" cols={cols} rows={ids} sort={h.rsort ?? ""} onSort={(v) => set({ rsort: v })} selected={chosen} onSelect={(k) => set({ rank: String(k) })} empty="No ranks." />
				<Spread r={r} chosen={chosen} />
			</div>
		</>
	);
}

function Spread({ r, chosen }: { r: RanksAnswer; chosen: number }) {
	const { h } = useSession();
	const col = r.column;
	const rows = useMemo(() => col.path.map((_, i) => i), [r]);
	const names = useMemo(() => r.names.map(shown), [r]);
	const last = (i: number) => names[col.path[i][col.path[i].length - 1]] ?? "";
	const path = (i: number) => chain(col.path[i].map((n) => names[n]));
	const c = summed("ns", col.max);
	const largest = col.max.reduce((a: number, b) => Math.max(a, b ?? 0), 0);
	const gap = (i: number) => (col.max[i] ?? NaN) - (col.median[i] ?? NaN);
	const num = (key: string, head: string, v: (i: number) => number): Col => numbers(key, head, headWidth(`${head} ${c.unit}`, c.text(largest)), c, v);
	const cols: Col[] = [
		{ key: "name", head: "Scope or kernel", text: last, title: path, sort: last, cell: (i) => <span class="v">{last(i)}<span class="in">{col.path[i].length > 1 ? `  in ${names[col.path[i][col.path[i].length - 2]]}` : ""}</span></span> },
		num("gap", "apart", gap),
		num("median", "median", (i) => col.median[i] ?? NaN),
		num("max", "most", (i) => col.max[i] ?? NaN),
		{ key: "slowest", head: "of", width: 88, text: (i) => (r.processes[col.slowest[i]] ? whoIs(r.processes[col.slowest[i]]) : ""), sort: (i) => col.slowest[i] },
		...(chosen >= 0 ? [num("its", whoIs(r.processes[chosen]), (i) => r.values[i]?.[chosen] ?? NaN)] : []),
	];
	return <Table label="How far ranks are apart in each scope" cols={cols} rows={rows} sort={h.spsort ?? ""} onSort={(v) => set({ spsort: v })} onSelect={(i) => set({ sel: nameKey(r.names[col.path[i][col.path[i].length - 1]]), node: "" })}
		selected={h.sel ? rows.find((i) => nameKey(r.names[col.path[i][col.path[i].length - 1]]) === h.sel) ?? -1 : -1} empty="No scope is in all ranks." />;
}

function Heat({ r, grid, chosen }: { r: RanksAnswer; grid: Grid; chosen: number }) {
	const mid = grid.mid;
	const again = useRef<(() => void) | null>(null);
	const box = useRef<HTMLDivElement>(null);
	const [tip, setTip] = useState<Tip | null>(null);
	const n = grid.steps.length;
	const tall = Math.min(420, Math.max(120, r.processes.length * 18 + 26));
	// Of [half the median, twice the median]: what is usual is in the middle.
	const t = (v: number) => Math.log2(v / mid) * 0.5 + 0.5;
	const cell = (w: number, h: number) => ({ cw: (w - SIDE - 14) / n, ch: (h - 26) / r.processes.length });
	const draw: Draw = (g, w, h, k) => {
		const { cw, ch } = cell(w, h);
		g.font = `11px ${k.font}`;
		g.textBaseline = "middle";
		const every = Math.ceil(14 / ch);
		for (let y = 0; y < r.processes.length; y++) {
			if (y % every === 0) {
				g.fillStyle = y === chosen ? k.accent : k.dim;
				g.fillText(whoIs(r.processes[y]), 14, y * ch + ch / 2);
			}
			// Several steps in a pixel: the longest is what should be seen.
			for (let x = 0; x < n;) {
				const px = Math.floor(x * cw);
				let most = -1;
				const from = x;
				for (; x < n && (x === from || Math.floor(x * cw) === px); x++) {
					const v = grid.duration[y]?.[x];
					if (v !== null && v !== undefined && v > most)
						most = v;
				}
				if (most < 0)
					continue;
				g.fillStyle = heat(t(most));
				g.fillRect(SIDE + from * cw, y * ch, Math.max(1, (x - from) * cw - (cw > 5 ? 1 : 0)), ch - (ch > 4 ? 1 : 0));
			}
			if (y === chosen) {
				g.strokeStyle = k.accent;
				g.lineWidth = 2;
				g.strokeRect(SIDE, y * ch, n * cw, ch);
			}
		}
		g.fillStyle = k.dim;
		const step = Math.max(1, Math.ceil(n / Math.max(1, Math.floor((w - SIDE) / 80))));
		for (let x = 0; x < n; x += step)
			g.fillText(x === 0 ? `step ${grid.steps[x]}` : String(grid.steps[x]), SIDE + x * cw, h - 11);
	};
	const at = (e: MouseEvent) => {
		const b = box.current!.getBoundingClientRect();
		const { cw, ch } = cell(b.width, b.height);
		const [x, y] = [Math.floor((e.clientX - b.left - SIDE) / cw), Math.floor((e.clientY - b.top) / ch)];
		return x >= 0 && x < n && y >= 0 && y < r.processes.length ? { x, y } : null;
	};
	const handlers = {
		onMouseMove: (e: MouseEvent) => {
			const p = at(e);
			const v = p ? grid.duration[p.y]?.[p.x] : null;
			setTip(p ? { x: e.clientX, y: e.clientY, lines: [`${whoIs(r.processes[p.y])}, step ${grid.steps[p.x]}`, v === null || v === undefined ? "not recorded" : `${time(v)}, ${(v / mid).toFixed(2)} × the median`] } : null);
		},
		onMouseLeave: () => setTip(null),
		onClick: (e: MouseEvent) => {
			const p = at(e);
			if (p)
				set({ rank: String(p.y), step: String(grid.steps[p.x]), proc: String(p.y) });
		},
		onKeyDown: (e: KeyboardEvent) => {
			const d = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
			if (d === 0)
				return;
			e.preventDefault();
			set({ rank: String(Math.max(0, Math.min(r.processes.length - 1, chosen + d))) });
		},
	};
	return (
		<div class="heat">
			<div ref={box} style={{ height: `${tall}px`, position: "relative" }}>
				<Canvas label={`Steps of ${r.processes.length} ranks by duration; the table below has each rank`} draw={draw} deps={[r, grid, chosen]} height={tall} again={again} handlers={handlers} />
				<TipBox tip={tip} />
			</div>
			<p class="scale"><span>½ × the median</span><i class="ramp"></i><span>2 ×</span></p>
		</div>
	);
}
