// SPDX-License-Identifier: MIT. ranks.tsx: each rank's steps as a map of heat, and how far ranks are apart in each scope.
import { useMemo, useRef, useState } from "preact/hooks";
import { api, get, type RanksAnswer } from "../api";
import { Canvas, type Draw } from "../canvas";
import { heat } from "../color";
import { column, group, shown, time, withUnit } from "../format";
import { type Tip, TipBox } from "../icicle";
import { Lacking, Loaded, Toggle } from "../parts";
import { useSession } from "../session";
import { set, usePromise } from "../state";
import { type Col, headWidth, Table } from "../table";

const SIDE = 76;

export function RanksTab() {
	const { id, beat } = useSession();
	const of = usePromise(() => get<RanksAnswer>(api(id, "ranks")), [id, beat]);
	return <div class="fill"><Loaded of={of}>{(r) => (r.ranks.length < 2 ? <Lacking what="ranks" /> : <View r={r} />)}</Loaded></div>;
}

function View({ r }: { r: RanksAnswer }) {
	const { h } = useSession();
	const sums = useMemo(() => r.ranks.map((_, k) => {
		const v = (r.duration[k] ?? []).filter((x): x is number => x !== null).sort((a, b) => a - b);
		return { n: v.length, mid: v[v.length >> 1] ?? NaN, max: v[v.length - 1] ?? NaN, total: v.reduce((s, x) => s + x, 0) };
	}), [r]);
	const mids = sums.map((s) => s.mid).filter((m) => m === m).sort((a, b) => a - b);
	const mid = mids[mids.length >> 1] ?? 0;
	const slowest = sums.reduce((best, s, k) => ((s.mid || 0) > (sums[best].mid || 0) ? k : best), 0);
	const chosen = h.rank !== undefined ? r.ranks.indexOf(Number(h.rank)) : -1;
	const c = column("ns", sums.map((s) => s.mid));
	const cols: Col[] = [
		{ key: "rank", head: "Rank", width: 90, num: true, text: (k) => String(r.ranks[k]), sort: (k) => r.ranks[k] },
		{ key: "mid", head: "Median step", unit: c.unit, num: true, width: 140, text: (k) => c.text(sums[k].mid), sort: (k) => sums[k].mid, share: (k) => sums[k].mid / (sums[slowest].mid || 1) },
		{ key: "x", head: "× all ranks'", num: true, width: 110, text: (k) => (sums[k].mid / (mid || 1)).toFixed(2), sort: (k) => sums[k].mid },
		{ key: "max", head: "Longest", unit: c.unit, num: true, width: 110, text: (k) => c.text(sums[k].max), sort: (k) => sums[k].max },
		{ key: "n", head: "Steps", num: true, width: 90, text: (k) => group(sums[k].n), sort: (k) => sums[k].n },
		{ key: "pad", head: "", text: () => "" },
	];
	const ids = useMemo(() => r.ranks.map((_, k) => k), [r]);
	return (
		<>
			<div class="bar-of">
				<span class="note"><b>{r.ranks.length}</b> ranks, median step <b>{time(mid)}</b></span>
				{sums[slowest].mid > mid * 1.05 && <span class="note warn">rank {r.ranks[slowest]} takes {(sums[slowest].mid / mid).toFixed(2)} × as long as the median rank <button type="button" class="link" onClick={() => set({ rank: String(r.ranks[slowest]) })}>show</button></span>}
				<Toggle on={h.table === "1"} words="scopes only" onChange={(on) => set({ table: on ? "1" : "" })} />
			</div>
			{h.table !== "1" && r.steps.length > 0 && <Heat r={r} mid={mid} chosen={chosen} />}
			<div class="halves">
				<Table label="Ranks" cols={cols} rows={ids} sort={h.rsort ?? ""} onSort={(s) => set({ rsort: s })} selected={chosen} onSelect={(k) => set({ rank: String(r.ranks[k]) })} empty="No ranks." />
				{r.scopes && <Spread s={r.scopes} />}
			</div>
		</>
	);
}

function Spread({ s }: { s: NonNullable<RanksAnswer["scopes"]> }) {
	const { h } = useSession();
	const rows = useMemo(() => s.name.map((_, i) => i), [s]);
	const num = (k: string, i: number) => (typeof s[k]?.[i] === "number" ? (s[k][i] as number) : NaN);
	const keys = Object.keys(s).filter((k) => k !== "name" && s[k].some((v) => typeof v === "number"));
	const times = keys.filter((k) => !/rank|count|share|ratio/.test(k));
	const c = column("ns", ...times.map((k) => s[k] as number[]));
	const cols: Col[] = [
		{ key: "name", head: "Scope", text: (i) => shown(s.name[i]), title: (i) => shown(s.name[i]), sort: (i) => shown(s.name[i]) },
		...keys.map((k): Col => ({
			key: k, head: k.replaceAll("_", " "), unit: times.includes(k) ? c.unit : "", num: true, width: headWidth(`${k} ${times.includes(k) ? c.unit : ""}`),
			text: (i) => (times.includes(k) ? c.text(num(k, i)) : withUnit(num(k, i), "")), sort: (i) => num(k, i),
		})),
	];
	return <Table label="How far ranks are apart in each scope" cols={cols} rows={rows} sort={h.spsort ?? ""} onSort={(v) => set({ spsort: v })} empty="No scope is in all ranks." />;
}

function Heat({ r, mid, chosen }: { r: RanksAnswer; mid: number; chosen: number }) {
	const again = useRef<(() => void) | null>(null);
	const box = useRef<HTMLDivElement>(null);
	const [tip, setTip] = useState<Tip | null>(null);
	const n = r.steps.length;
	const tall = Math.min(420, Math.max(120, r.ranks.length * 18 + 26));
	// Of [half the median, twice the median]: what is usual is in the middle.
	const t = (v: number) => Math.log2(v / mid) * 0.5 + 0.5;
	const cell = (w: number, h: number) => ({ cw: (w - SIDE - 14) / n, ch: (h - 26) / r.ranks.length });
	const draw: Draw = (g, w, h, k) => {
		const { cw, ch } = cell(w, h);
		g.font = `11px ${k.font}`;
		g.textBaseline = "middle";
		const every = Math.ceil(14 / ch);
		for (let y = 0; y < r.ranks.length; y++) {
			if (y % every === 0) {
				g.fillStyle = y === chosen ? k.accent : k.dim;
				g.fillText(`rank ${r.ranks[y]}`, 14, y * ch + ch / 2);
			}
			// Several steps in a pixel: the longest is what should be seen.
			for (let x = 0; x < n;) {
				const px = Math.floor(x * cw);
				let most = -1;
				const from = x;
				for (; x < n && (x === from || Math.floor(x * cw) === px); x++) {
					const v = r.duration[y]?.[x];
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
			g.fillText(x === 0 ? `step ${r.steps[x]}` : String(r.steps[x]), SIDE + x * cw, h - 11);
	};
	const at = (e: MouseEvent) => {
		const b = box.current!.getBoundingClientRect();
		const { cw, ch } = cell(b.width, b.height);
		const [x, y] = [Math.floor((e.clientX - b.left - SIDE) / cw), Math.floor((e.clientY - b.top) / ch)];
		return x >= 0 && x < n && y >= 0 && y < r.ranks.length ? { x, y } : null;
	};
	const handlers = {
		onMouseMove: (e: MouseEvent) => {
			const p = at(e);
			const v = p ? r.duration[p.y]?.[p.x] : null;
			setTip(p ? { x: e.clientX, y: e.clientY, lines: [`rank ${r.ranks[p.y]}, step ${r.steps[p.x]}`, v === null || v === undefined ? "not recorded" : `${time(v)}, ${(v / mid).toFixed(2)} × the median`] } : null);
		},
		onMouseLeave: () => setTip(null),
		onClick: (e: MouseEvent) => {
			const p = at(e);
			if (p)
				set({ rank: String(r.ranks[p.y]), step: String(r.steps[p.x]), proc: String(p.y) });
		},
		onKeyDown: (e: KeyboardEvent) => {
			const d = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
			if (d === 0)
				return;
			e.preventDefault();
			set({ rank: String(r.ranks[Math.max(0, Math.min(r.ranks.length - 1, chosen + d))]) });
		},
	};
	return (
		<div class="heat">
			<div ref={box} style={{ height: `${tall}px`, position: "relative" }}>
				<Canvas label={`Steps of ${r.ranks.length} ranks by duration; the table below has each rank`} draw={draw} deps={[r, chosen]} height={tall} again={again} handlers={handlers} />
				<TipBox tip={tip} />
			</div>
			<p class="scale"><span>½ × the median</span><i class="ramp"></i><span>2 ×</span></p>
		</div>
	);
}
