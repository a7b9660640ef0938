// SPDX-License-Identifier: MIT. timeline.tsx: threads and streams over time, by pieces that the server makes for the window.
// Slices are written as pixels (a row once, then copied down), so that a frame costs the window and not the events in it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, type Arrows, type Counters, type EventAnswer, type Found, get, getJson, inlinedPaths, isReport, type Lane, type Lanes, type Place, type SeriesAnswer } from "../api";
import { Canvas, type Draw, ends, fit, type Look } from "../canvas";
import { contrast, fade, family, ink, phase, pixel, shade, syncColor } from "../color";
import { fixed, group, moment, nameKey, shown, time, unitOf, withUnit } from "../format";
import { TipBox, type Tip } from "../icicle";
import { AsTable, Find, Loaded, Toggle, Trouble } from "../parts";
import { matcher, useOps, useSession } from "../session";
import { now, set, setQuietly, usePromise } from "../state";
import { say } from "../table";
import { GROUP, lower, type Tile, Tiles } from "../tiles";
import { EventOf } from "./event";
import { arrange, GAP, ROW, type Row, SHUT } from "./lanes";
import { Listing, type Slice, SumsOf, useWindow } from "./window";

const RULER = 24;
const COUNTER = 46;
const MOST_ARROWS = 80;
const FINE = 1000; // points of a number in the window
const WAITS = /^(cu(da)?|hip)[A-Z]\w+$/; // calls of the driver and its runtime, in threads
const NUMBERS = 8; // below the lanes
const FIRST = /^gpu \d+ (power|sm_clock|sm_active)$/; // of a GPU, unless others are asked for
const LEAST = 20; // ns that may fill the window

const list = (s: string | undefined): number[] => (s ?? "").split(",").filter(Boolean).map(Number).filter(Number.isFinite);

export function TimelineTab() {
	const { id, beat } = useSession();
	const lanes = usePromise(() => get<Lanes>(api(id, "lanes")), [id, beat]);
	return <div class="fill"><Loaded of={lanes}>{(l) => (l.lane.length === 0 || !(l.t1 > l.t0) ? <p class="none">The timeline has nothing in it.</p> : <Timeline lanes={l} />)}</Loaded></div>;
}

function Timeline({ lanes }: { lanes: Lanes }) {
	const { id, h, meta } = useSession();
	const GUTTER = innerWidth < 600 ? 112 : 196; // of the lanes' names
	const ops = useOps();
	const series = usePromise(() => (meta.has.series !== false ? get<SeriesAnswer>(api(id, "series")) : null), [id]);
	const all: [number, number] = [lanes.t0, lanes.t1];
	const first = useMemo((): [number, number] => {
		const [a, b] = (h.t ?? "").split(",").map(Number);
		return b > a ? [a, b] : all;
	}, [id]);
	const view = useRef({ t0: first[0], t1: first[1], y: 0 });
	const again = useRef<(() => void) | null>(null);
	const box = useRef<HTMLDivElement>(null);
	const [, redraw] = useState(0);
	const [tip, setTip] = useState<Tip | null>(null);
	const [tilesError, setTilesError] = useState<Error | null>(null);
	const rows = useMemo(() => arrange(lanes.lane, list(h.pin), new Set(list(h.hide)), list(h.lanes), list(h.deep)), [lanes, h.pin, h.hide, h.lanes, h.deep]);
	const fine = useWindow<Counters>(id, `counters?px=${FINE}&`, h.nums !== "-" && meta.has.series !== false, h.t ?? "", all);
	// Numbers that were told often have only some of their points in the series: here those of the window, the least and the
	// greatest of each pixel.
	const numbers = series.value?.series ?? [];
	const chosen = useMemo(() => {
		if (h.nums)
			return list(h.nums).filter((i) => i in numbers).slice(0, NUMBERS);
		const told = numbers.map((_, i) => i).filter((i) => !/^(gpu \d+|host) /.test(numbers[i].name));
		const device = numbers.map((_, i) => i).filter((i) => FIRST.test(numbers[i].name)).slice(0, 3);
		return [...told.slice(0, 4 - device.length), ...device];
	}, [series.value, h.nums]);
	const counters = useMemo(() => chosen.map((i) => numbers[i]).map((s) => {
		const c = fine?.counter.find((x) => x.name === s.name && x.process === s.process);
		if (!c)
			return s;
		const at = (px: number) => fine!.t0 + (px * (fine!.t1 - fine!.t0)) / fine!.px;
		return { ...s, t: [fine!.t0, ...c.px.flatMap((x) => [at(x), at(x), at(x)]), fine!.t1], v: [c.before, ...c.px.flatMap((_, i) => [c.min[i], c.max[i], c.last[i]]), c.last.at(-1) ?? c.before] };
	}), [chosen, fine]);
	const tiles = useMemo(() => new Tiles(id, lanes.lane.length, () => {
		again.current?.();
		setTilesError(t.current?.error ?? null);
	}), [id, lanes]);
	const t = useRef(tiles);
	t.current = tiles;
	const familyOf = useMemo(() => {
		const m = new Map<string, string>();
		const o = ops.value;
		o?.column.name.forEach((n, i) => m.set(o.names[n], String(o.column.family?.[i] ?? o.column.class?.[i] ?? "other")));
		return m;
	}, [ops.value]);
	const colors = useMemo(() => new Map(Object.entries(lanes.colors ?? {})), [lanes]);
	const q = h.q ?? "";
	const hit = useMemo(() => {
		const m = matcher(q);
		return m ? (name: string) => m(name) : null;
	}, [q]);
	const look = useRef({ n: 0, key: "" });
	const drawn = useRef<{ tile: Tile; from: number; to: number }[]>([]);
	const image = useRef<{ data: ImageData; word: Uint32Array } | null>(null);
	const hover = useRef<Slice | null>(null);
	const focusLane = Number(h.lane ?? rows[0]?.lane.id ?? -1);
	const event = Number(h.ev ?? "0");
	const details = usePromise(() => (event > 0 && !isReport ? getJson<EventAnswer>(`${api(id, "event")}?id=${event}`) : null), [id, event]);
	const [sel, setSel] = useState<{ start: number; dur: number; lane: number; name: string } | null>(null);
	const range = useMemo((): [number, number] | null => {
		const [a, b] = (h.range ?? "").split(",").map(Number);
		return b > a ? [a, b] : null;
	}, [h.range]);
	const drag = useRef<{ how: "box" | "range" | "pan"; x: number; y: number; t: number; lane: number; x1: number; y1: number; moved: boolean } | null>(null);
	const arrows = useWindow<Arrows>(id, "arrows?", h.arrows !== "0", h.t ?? "", all);
	const height = rows.length > 0 ? rows[rows.length - 1].y + rows[rows.length - 1].rows * ROW + GAP : 0;
	const under = counters.length * COUNTER;
	const byLane = useMemo(() => {
		const m: (Row | undefined)[] = [];
		for (const r of rows)
			m[r.lane.id] = r;
		return m;
	}, [rows]);

	const lastT = useRef(h.t ?? "");
	useEffect(() => {
		if ((h.t ?? "") === lastT.current)
			return;
		lastT.current = h.t ?? "";
		const [a, b] = (h.t ?? "").split(",").map(Number);
		[view.current.t0, view.current.t1] = b > a ? [a, b] : all;
		again.current?.();
	}, [h.t]);

	const width = () => Math.max(50, (box.current?.clientWidth ?? 800) - GUTTER);
	const rest = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
	const moved = () => {
		const v = view.current;
		const whole = v.t0 <= all[0] && v.t1 >= all[1];
		lastT.current = whole ? "" : `${Math.round(v.t0)},${Math.round(v.t1)}`;
		setQuietly({ t: lastT.current });
		clearTimeout(rest.current);
		rest.current = setTimeout(() => redraw((n) => n + 1), 250);
		again.current?.();
	};
	useEffect(() => () => clearTimeout(rest.current), []);
	const clamp = (t0: number, t1: number) => {
		const span = Math.min((all[1] - all[0]) * 1.02, Math.max(LEAST, t1 - t0));
		const mid = (t0 + t1) / 2;
		const pad = (all[1] - all[0]) * 0.01;
		let a = mid - span / 2;
		a = Math.max(all[0] - pad, Math.min(all[1] + pad - span, a));
		view.current.t0 = a;
		view.current.t1 = a + span;
		moved();
	};
	const zoom = (frac: number, factor: number) => {
		const v = view.current;
		const span = Math.max(LEAST, (v.t1 - v.t0) * factor);
		const at = v.t0 + (v.t1 - v.t0) * frac;
		clamp(at - span * frac, at + span * (1 - frac));
	};
	const pan = (dt: number) => clamp(view.current.t0 + dt, view.current.t1 + dt);
	const goTo = (start: number, dur: number) => {
		const v = view.current;
		if (start < v.t0 || start + dur > v.t1 || dur < (v.t1 - v.t0) / 400) {
			const span = Math.max(dur * 4, Math.min(v.t1 - v.t0, dur * 400), LEAST);
			clamp(start + dur / 2 - span / 2, start + dur / 2 + span / 2);
		}
	};

	// Colours of a tile's names, made again when the theme, the search or the families change.
	const paint = (tile: Tile, k: Look) => {
		if (tile.painted === look.current.n)
			return;
		const streams = tile.n > 0 && (byLane[tile.lane[0]]?.lane.kind ?? lanes.lane[tile.lane[0]]?.kind) === "stream";
		for (let i = 0; i < tile.raw.length; i++) {
			const f = familyOf.get(tile.raw[i]);
			const c = syncColor(tile.raw[i]) ?? (f || WAITS.test(tile.raw[i]) ? shade(f ?? "call", tile.briefs[i]) : streams ? shade("other", tile.briefs[i]) : phase(tile.names[i]));
			// The program's own colour; as a bar where it cannot be told from the ground, or is not to be relied upon.
			const own = colors.get(tile.raw[i]);
			const bar = own !== undefined && (h.own === "bars" || contrast(own, k.panel) < 1.6);
			const seen = (x: string) => pixel(hit && !hit(tile.names[i]) ? fade(x, k.panel) : x);
			tile.paint[i] = seen(own && !bar ? own : c);
			tile.bar[i] = bar ? seen(own) : 0;
		}
		tile.painted = look.current.n;
	};
	// Bursts of events that the tree alone has: hatched.
	const isSummed = (lane: number) => lanes.lane[lane]?.kind === "summed";
	const isSyncs = (lane: number) => lanes.lane[lane]?.kind === "syncs";
	const colorAt = (tile: Tile, i: number): string => {
		const p = tile.paint[tile.name[i]];
		return "#" + [p & 255, (p >> 8) & 255, (p >> 16) & 255].map((x) => x.toString(16).padStart(2, "0")).join("");
	};

	const draw: Draw = (g, w, hgt, k) => {
		const v = view.current;
		const dpr = g.getTransform().a;
		const tall = Math.max(10, hgt - RULER - under);
		v.y = Math.max(0, Math.min(v.y, height - tall));
		const lw = Math.max(10, w - GUTTER);
		const per = (v.t1 - v.t0) / lw;
		const key = `${k.panel} ${q} ${h.own} ${familyOf.size}`;
		if (key !== look.current.key)
			look.current = { n: look.current.n + 1, key };
		// Pinned lanes stay where they are while the others are scrolled.
		const pinnedEnd = rows.filter((r) => r.pinned).reduce((s, r) => Math.max(s, r.y + r.rows * ROW + GAP), 0);
		const top = (r: Row) => (r.pinned ? r.y : r.y - v.y);
		const inSight = rows.filter((r) => top(r) < tall && top(r) + r.rows * ROW > (r.pinned ? 0 : pinnedEnd));
		const groups = [...new Set(inSight.map((r) => Math.floor(r.lane.id / GROUP)))];
		drawn.current = tiles.cover(v.t0, v.t1, per, groups);
		const [W, H] = [Math.round(lw * dpr), Math.round(tall * dpr)];
		if (!image.current || image.current.data.width !== W || image.current.data.height !== H) {
			const data = new ImageData(W, H);
			image.current = { data, word: new Uint32Array(data.data.buffer) };
		}
		const px = image.current.word;
		const [back, grey] = [pixel(k.panel), pixel(k.line)];
		px.fill(back);
		const yOf: Int32Array = new Int32Array(lanes.lane.length).fill(-1e6);
		const rowsOf = new Uint16Array(lanes.lane.length);
		for (const r of inSight) {
			yOf[r.lane.id] = Math.round(top(r) * dpr);
			rowsOf[r.lane.id] = r.rows;
		}
		const rowPx = Math.round(ROW * dpr);
		const scale = W / (v.t1 - v.t0);
		const limit = Math.round(pinnedEnd * dpr);
		const labels: { s: Slice; x: number; w: number; y: number }[] = [];
		const roomy = 30 * dpr;
		const bars: number[] = [];
		for (const { tile, from, to } of drawn.current) {
			paint(tile, k);
			const [lo, hi] = [Math.max(0, Math.floor((from - v.t0) * scale)), Math.min(W, Math.ceil((to - v.t0) * scale))];
			if (hi <= lo)
				continue;
			for (let i = 0; i < tile.n; i++) {
				const y = yOf[tile.lane[i]] + tile.depth[i] * rowPx;
				if (y < 0 || y >= H || tile.depth[i] >= rowsOf[tile.lane[i]])
					continue;
				let x0 = Math.floor((tile.start[i] - v.t0) * scale);
				if (x0 >= hi)
					continue;
				const end = (tile.start[i] + tile.dur[i] - v.t0) * scale;
				let x1 = Math.ceil(end);
				if (x1 <= lo)
					continue;
				const wide = x1 - x0;
				const begins = x0 >= lo || lo === 0; // else the piece before this one has its name
				const seen = Math.min(x1, W) - Math.max(x0, 0);
				x0 = Math.max(x0, lo);
				x1 = Math.min(wide > 3 ? x1 - 1 : Math.max(x1, x0 + 1), hi);
				if (x1 <= x0)
					continue;
				const at = y * W;
				const summed = isSummed(tile.lane[i]);
				px.fill(summed ? grey : tile.paint[tile.name[i]], at + x0, at + x1);
				for (let x = x0 + 3; summed && x < x1; x += 6)
					px[at + x] = back;
				const bar = tile.bar[tile.name[i]];
				if (bar && !summed && (y >= limit || byLane[tile.lane[i]]?.pinned))
					bars.push(at + x0, at + x1, bar);
				if (begins && seen > roomy)
					labels.push({ s: { tile, i }, x: x0 / dpr, w: seen / dpr, y: y / dpr });
			}
		}
		// Each row was written once: copied down to its height.
		for (const r of inSight) {
			for (let d = 0; d < r.rows; d++) {
				const y = yOf[r.lane.id] + d * rowPx;
				if (y < 0 || y >= H || (!r.pinned && y < limit - rowPx))
					continue;
				for (let n = 1; n < rowPx - 1 && y + n < H; n++)
					px.copyWithin((y + n) * W, y * W, y * W + W);
			}
		}
		const edge = Math.round(dpr);
		for (let i = 0; i < bars.length; i += 3) // with a line of what it lies on around it
			for (let n = rowPx - 5 * edge; n < rowPx - 2 * edge; n++)
				px.fill(bars[i + 2], bars[i] + n * W, bars[i + 1] + n * W);
		g.putImageData(image.current.data, Math.round(GUTTER * dpr), Math.round(RULER * dpr));
		const font = `11px ${k.font}`;
		g.font = font;
		g.textBaseline = "middle";
		g.save();
		g.beginPath();
		g.rect(GUTTER, RULER, lw, tall);
		g.clip();
		const taken = new Map<number, number>();
		for (const l of labels.length > 700 ? labels.slice(0, 700) : labels) {
			const { tile, i } = l.s;
			const c = isSummed(tile.lane[i]) ? k.line : colorAt(tile, i);
			const name = tile.briefs[tile.name[i]];
			const s = fit(g, (tile.count[i] > 1 ? `${group(tile.count[i])} × ` : "") + (isSyncs(tile.lane[i]) ? name.replace(/^cuda|Synchronize$/g, "") : name), l.w - 6);
			if (s.length > 1 && l.x >= (taken.get(l.y) ?? -1)) { // no name over another
				taken.set(l.y, l.x + l.w - 1);
				g.fillStyle = hit && !hit(tile.names[tile.name[i]]) ? k.dim : ink(c);
				g.fillText(s, GUTTER + l.x + 3, RULER + l.y + ROW / 2 - 0.5);
			}
		}
		drawOver(g, k, lw, tall, per, top);
		g.restore();
		drawRuler(g, k, lw, per);
		drawCounters(g, k, lw, RULER + tall, hgt);
		drawNames(g, k, tall, inSight, top, pinnedEnd);
	};
	const X = (t: number, lw: number) => GUTTER + ((t - view.current.t0) / (view.current.t1 - view.current.t0)) * lw;

	const drawOver = (g: CanvasRenderingContext2D, k: Look, lw: number, tall: number, per: number, top: (r: Row) => number) => {
		const a = arrows;
		if (a && a.from.length > 0) {
			g.strokeStyle = k.dim;
			g.lineWidth = 1;
			g.globalAlpha = 0.55;
			g.beginPath();
			// All of them where they can be followed, else that of what is selected.
			const few = a.from.length <= MOST_ARROWS;
			for (let i = 0; i < a.from.length; i++) {
				if (!few && !(event > 0 && a.event?.[i] === event))
					continue;
				const [f, to] = [byLane[a.from_lane[i]], byLane[a.to_lane[i]]];
				const [x0, x1] = [X(a.from[i], lw), X(a.to[i], lw)];
				if (!f || !to || x1 < GUTTER || x0 > GUTTER + lw)
					continue;
				const [y0, y1] = [RULER + top(f) + Math.min((a.from_depth?.[i] ?? f.rows - 1) + 1, f.rows) * ROW - 2, RULER + top(to) + (a.to_depth?.[i] ?? 0) * ROW + 1];
				const bend = Math.min(60, Math.abs(y1 - y0) / 2);
				g.moveTo(x0, y0);
				g.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
			}
			g.stroke();
			g.globalAlpha = 1;
		}
		if (range) {
			const [x0, x1] = [X(range[0], lw), X(range[1], lw)];
			g.fillStyle = k.accent;
			g.globalAlpha = 0.12;
			g.fillRect(x0, RULER, x1 - x0, tall);
			g.globalAlpha = 1;
			g.fillRect(x0, RULER, 1, tall);
			g.fillRect(x1 - 1, RULER, 1, tall);
		}
		const d = drag.current;
		if (d && d.moved && d.how === "box") {
			g.strokeStyle = k.accent;
			g.setLineDash([4, 3]);
			g.strokeRect(Math.min(d.x, d.x1) + 0.5, Math.min(d.y, d.y1) + 0.5, Math.abs(d.x1 - d.x), Math.abs(d.y1 - d.y));
			g.setLineDash([]);
		}
		// What the selected call waited for, and what let it come back.
		const d1 = details.value;
		const at = (p: Place, end: boolean): [number, number] | null => {
			const r = byLane[p.lane];
			return r && p.depth < r.rows ? [X(p.start_ns + (end ? p.dur_ns : 0), lw), RULER + top(r) + (p.depth + 0.5) * ROW - 1] : null;
		};
		const link = (from: [number, number] | null, to: [number, number] | null) => {
			if (!from || !to)
				return;
			const down = to[1] > from[1] ? 1 : -1;
			const [y0, y1] = [from[1] + (down * ROW) / 2, to[1] - (down * ROW) / 2];
			g.strokeStyle = g.fillStyle = k.accent;
			g.lineWidth = 2;
			g.beginPath();
			g.moveTo(from[0], y0);
			g.bezierCurveTo(from[0], (y0 + y1) / 2, to[0], (y0 + y1) / 2, to[0], y1 - down * 6);
			g.stroke();
			g.beginPath();
			g.moveTo(to[0], y1);
			g.lineTo(to[0] - 4, y1 - down * 8);
			g.lineTo(to[0] + 4, y1 - down * 8);
			g.fill();
		};
		if (d1?.ended_by)
			link(at(d1.ended_by, true), at(d1, d1.class !== "stream_wait"));
		if (d1?.recorded_by)
			link(at(d1.recorded_by, false), at(d1, false));
		const ring = (s: { start: number; dur: number; lane: number }, depth: number, c: string) => {
			const r = byLane[s.lane];
			if (!r || depth >= r.rows)
				return;
			const x = X(s.start, lw);
			g.strokeStyle = c;
			g.lineWidth = 2;
			g.strokeRect(Math.max(x, GUTTER - 2), RULER + top(r) + depth * ROW, Math.max(2, Math.min(s.dur / per, lw + 4)), ROW - 2);
		};
		if (hover.current) {
			const { tile, i } = hover.current;
			ring({ start: tile.start[i], dur: tile.dur[i], lane: tile.lane[i] }, tile.depth[i], k.text);
		}
		if (sel)
			ring(sel, selDepth.current, k.accent);
	};
	const selDepth = useRef(0);

	const drawRuler = (g: CanvasRenderingContext2D, k: Look, lw: number, per: number) => {
		const v = view.current;
		g.fillStyle = k.panel;
		g.fillRect(0, 0, GUTTER + lw, RULER);
		g.fillStyle = k.line;
		g.fillRect(0, RULER - 1, GUTTER + lw, 1);
		const ten = 10 ** Math.floor(Math.log10(per * 90));
		const step = [1, 2, 5].map((m) => m * ten).find((x) => x >= per * 90) ?? 10 * ten;
		const u = unitOf("ns", Math.max(step, 1));
		const digits = Math.max(0, -Math.floor(Math.log10(step / u[1]) + 1e-9));
		g.font = `11px ${k.font}`;
		g.textBaseline = "middle";
		for (let n = Math.ceil(v.t0 / step); n * step <= v.t1; n++) { // from the session's begin, as everywhere
			const x = X(n * step, lw);
			if (x < GUTTER || x > GUTTER + lw - 4)
				continue;
			g.fillStyle = k.line;
			g.fillRect(x, RULER - 7, 1, 7);
			g.fillStyle = k.dim;
			if (x < GUTTER + lw - 56)
				g.fillText(`${fixed((n * step) / u[1], digits)} ${u[0]}`, x + 4, RULER / 2 - 1);
		}
		if (range) {
			const s = `${time(range[1] - range[0])}`;
			const mid = Math.max(GUTTER + 30, Math.min(GUTTER + lw - 30, (X(range[0], lw) + X(range[1], lw)) / 2));
			const tw = g.measureText(s).width + 10;
			g.fillStyle = k.accent;
			g.fillRect(mid - tw / 2, 3, tw, RULER - 7);
			g.fillStyle = k.panel;
			g.fillText(s, mid - tw / 2 + 5, RULER / 2 - 0.5);
		}
		g.fillStyle = k.dim;
		g.fillText(`${time(v.t1 - v.t0)} shown`, 14, RULER / 2 - 1);
	};

	const drawNames = (g: CanvasRenderingContext2D, k: Look, tall: number, inSight: Row[], top: (r: Row) => number, pinnedEnd: number) => {
		g.fillStyle = k.panel;
		g.fillRect(0, RULER, GUTTER - 1, tall);
		g.fillStyle = k.line;
		g.fillRect(GUTTER - 1, 0, 1, RULER + tall + under);
		g.save();
		g.beginPath();
		g.rect(0, RULER, GUTTER - 1, tall);
		g.clip();
		const several = new Set(lanes.lane.map((x) => x.process)).size > 1;
		let was: Lane["process"];
		for (const r of inSight) {
			const y = RULER + top(r);
			if (!r.pinned && y < RULER + pinnedEnd - ROW)
				continue;
			if (r.lane.id === focusLane) {
				g.fillStyle = k.accent;
				g.fillRect(0, y, 3, r.rows * ROW - 1);
			}
			g.font = `${r.lane.id === focusLane ? "600 " : ""}12px ${k.font}`;
			g.fillStyle = k.text;
			const indent = r.lane.parent !== null && r.lane.parent !== undefined ? 10 : 0;
			g.fillText(ends(g, (r.pinned ? "● " : "") + shown(r.lane.name), GUTTER - 24 - indent), 14 + indent, y + ROW / 2);
			const other = r.lane.process !== was || r.pinned;
			was = r.lane.process;
			if (other && several && r.rows > 1 && r.lane.process !== undefined && r.lane.process !== null) {
				g.font = `11px ${k.font}`;
				g.fillStyle = k.dim;
				g.fillText(fit(g, r.lane.rank !== null && r.lane.rank !== undefined ? `rank ${r.lane.rank}` : `process ${shown(String(r.lane.process))}`, GUTTER - 24), 14 + indent, y + ROW * 1.5);
			}
			if (opens(r)) {
				g.font = `11px ${k.font}`;
				g.fillStyle = k.accent;
				g.fillText(r.rows < r.lane.rows! ? `▸ ${r.lane.rows! - r.rows} deeper (O)` : "▾ fewer (O)", 14, y + (r.rows - 0.5) * ROW);
			}
			g.fillStyle = k.line;
			g.globalAlpha = 0.6;
			g.fillRect(0, y + r.rows * ROW + 1, GUTTER - 1, 1);
			g.globalAlpha = 1;
		}
		g.restore();
	};

	const drawCounters = (g: CanvasRenderingContext2D, k: Look, lw: number, y0: number, hgt: number) => {
		if (counters.length === 0)
			return;
		const v = view.current;
		g.fillStyle = k.panel;
		g.fillRect(0, y0, GUTTER + lw, hgt - y0);
		counters.forEach((s, n) => {
			const y = y0 + n * COUNTER;
			g.fillStyle = k.line;
			g.fillRect(0, y, GUTTER + lw, 1);
			let [lo, hi] = [Infinity, -Infinity];
			const from = Math.max(0, lower(s.t, v.t0) - 1);
			const to = Math.min(s.t.length, lower(s.t, v.t1) + 1);
			for (let i = from; i < to && s.t[i] < v.t1; i++)
				if (s.v[i] !== null) {
					lo = Math.min(lo, s.v[i]!);
					hi = Math.max(hi, s.v[i]!);
				}
			g.font = `12px ${k.font}`;
			g.fillStyle = k.text;
			g.fillText(ends(g, shown(s.name), GUTTER - 24), 14, y + 14);
			g.font = `11px ${k.font}`;
			g.fillStyle = k.dim;
			g.fillText(hi >= lo ? fit(g, hi === lo ? withUnit(hi, s.unit) : `${withUnit(lo, s.unit)} – ${withUnit(hi, s.unit)}`, GUTTER - 20) : "nothing here", 14, y + 31);
			if (!(hi >= lo))
				return;
			const Y = (val: number) => y + COUNTER - 5 - (hi > lo ? (val - lo) / (hi - lo) : 0.5) * (COUNTER - 12);
			g.save();
			g.beginPath();
			g.rect(GUTTER, y, lw, COUNTER);
			g.clip();
			g.beginPath();
			let last = NaN;
			for (let i = from; i < to; i++) {
				if (s.v[i] === null)
					continue;
				const x = X(s.t[i], lw);
				if (last === last)
					g.lineTo(x, last); // a value holds until the next
				last = Y(s.v[i]!);
				g.lineTo(x, last);
			}
			g.strokeStyle = family("gemm");
			g.lineWidth = 1.5;
			g.stroke();
			g.restore();
		});
	};

	// --- what the mouse and the keys do

	const opens = (r: Row) => (r.lane.rows ?? 1) > SHUT + 1 && rows.length > 1;
	const toggle = (key: string, r: Row | undefined) => {
		const l = list(now()[key]);
		if (r && (key !== "deep" || opens(r)))
			set({ [key]: (l.includes(r.lane.id) ? l.filter((x) => x !== r.lane.id) : [...l, r.lane.id]).join(",") });
	};

	const inBox = (e: MouseEvent | Touch) => {
		const r = box.current!.getBoundingClientRect();
		return { x: e.clientX - r.left, y: e.clientY - r.top };
	};
	const touch = useRef({ n: 0, x: 0, y: 0, apart: 0 });
	const fingers = (e: TouchEvent) => {
		const at = [...e.touches].map((f) => inBox(f));
		const [a, b] = [at[0], at[at.length - 1]];
		return { n: at.length, x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.abs(a.x - b.x) };
	};
	const timeAt = (x: number) => view.current.t0 + ((x - GUTTER) / width()) * (view.current.t1 - view.current.t0);
	const rowAt = (y: number): Row | undefined => {
		const pinnedEnd = rows.filter((r) => r.pinned).reduce((s, r) => Math.max(s, r.y + r.rows * ROW + GAP), 0);
		const yy = y - RULER;
		if (yy < 0 || y > (box.current?.clientHeight ?? 0) - under)
			return undefined;
		const at = yy < pinnedEnd ? yy : yy + view.current.y;
		return rows.find((r) => (yy < pinnedEnd) === r.pinned && at >= r.y && at < r.y + r.rows * ROW + GAP);
	};
	const sliceAt = (x: number, y: number): Slice | null => {
		const r = rowAt(y);
		if (!r || x < GUTTER)
			return null;
		const depth = Math.floor((y - RULER - (r.pinned ? r.y : r.y - view.current.y)) / ROW);
		const at = timeAt(x);
		const per = (view.current.t1 - view.current.t0) / width();
		let best: Slice | null = null;
		for (const { tile, from, to } of drawn.current) {
			if (at < from - per || at > to + per)
				continue;
			for (let i = 0; i < tile.n; i++)
				if (tile.lane[i] === r.lane.id && tile.depth[i] === depth && tile.start[i] <= at + per && tile.start[i] + tile.dur[i] >= at - per)
					best = { tile, i };
		}
		return best;
	};
	const choose = (s: Slice | null) => {
		if (!s) {
			setSel(null);
			set({ ev: "", sel: "", node: "" });
			return;
		}
		const { tile, i } = s;
		selDepth.current = tile.depth[i];
		setSel({ start: tile.start[i], dur: tile.dur[i], lane: tile.lane[i], name: tile.raw[tile.name[i]] });
		set({ ev: tile.id[i] ? String(tile.id[i]) : "", sel: nameKey(tile.raw[tile.name[i]]), node: "", lane: String(tile.lane[i]) });
	};
	const jump = (p: Place) => {
		selDepth.current = p.depth;
		if (p.depth >= (byLane[p.lane]?.rows ?? 1e9))
			toggle("deep", byLane[p.lane]);
		setSel({ start: p.start_ns, dur: p.dur_ns, lane: p.lane, name: p.name });
		set({ ev: p.event ? String(p.event) : "", sel: nameKey(p.name), node: "", lane: String(p.lane) });
		goTo(p.start_ns, p.dur_ns);
	};
	const next = async (dir: "next" | "prev") => {
		const name = sel?.name;
		if (!name)
			return say("select something first");
		try {
			const f = await getJson<Found>(`${api(id, "find")}?name=${encodeURIComponent(name.slice(0, 1000))}&from=${Math.round(sel.start)}&dir=${dir}${name.length > 1000 ? "" : `&event=${h.ev || 0}`}`);
			if (!f.found)
				return say(dir === "next" ? "that was the last" : "that was the first");
			jump({ name, event: f.id ?? 0, lane: f.lane!, depth: f.depth ?? 0, start_ns: f.start!, dur_ns: f.dur! });
		} catch (e) {
			say((e as Error).message);
		}
	};
	const lanesIn = (y0: number, y1: number) => rows.filter((r) => {
		const y = RULER + (r.pinned ? r.y : r.y - view.current.y);
		return y < y1 && y + r.rows * ROW > y0;
	}).map((r) => r.lane.id);
	const handlers = {
		onMouseDown: (e: MouseEvent) => {
			const { x, y } = inBox(e);
			const how = e.button === 1 || e.shiftKey ? "pan" : y < RULER ? "range" : "box";
			if (e.button > 1)
				return;
			if (x < GUTTER) {
				const r = rowAt(y);
				if (r)
					set({ lane: String(r.lane.id) });
				if (r && y > RULER + (r.pinned ? r.y : r.y - view.current.y) + (r.rows - 1) * ROW)
					toggle("deep", r);
				return;
			}
			drag.current = { how, x, y, t: timeAt(x), lane: rowAt(y)?.lane.id ?? -1, x1: x, y1: y, moved: false };
			const move = (m: MouseEvent) => {
				const d = drag.current!;
				const p = inBox(m);
				if (!d.moved && Math.abs(p.x - d.x) + Math.abs(p.y - d.y) < 4)
					return;
				d.moved = true;
				setTip(null);
				if (d.how === "pan") {
					pan((-(p.x - d.x1) / width()) * (view.current.t1 - view.current.t0));
					view.current.y -= p.y - d.y1;
				}
				d.x1 = Math.max(GUTTER, p.x);
				d.y1 = p.y;
				if (d.how !== "pan") {
					const [a, b] = [Math.min(d.t, timeAt(d.x1)), Math.max(d.t, timeAt(d.x1))];
					setQuietly({});
					set({ range: `${Math.round(a)},${Math.round(b)}`, box: "" });
				}
				again.current?.();
			};
			const up = () => {
				removeEventListener("mousemove", move);
				removeEventListener("mouseup", up);
				const d = drag.current!;
				drag.current = null;
				if (!d.moved) {
					if (d.how !== "pan")
						choose(sliceAt(d.x, d.y));
				} else if (d.how === "box")
					set({ box: lanesIn(Math.min(d.y, d.y1), Math.max(d.y, d.y1)).join(",") });
				else if (d.how === "range")
					set({ box: "all" });
				again.current?.();
			};
			addEventListener("mousemove", move);
			addEventListener("mouseup", up);
		},
		onMouseMove: (e: MouseEvent) => {
			if (drag.current?.moved)
				return;
			const { x, y } = inBox(e);
			const s = sliceAt(x, y);
			if (s?.tile !== hover.current?.tile || s?.i !== hover.current?.i) {
				hover.current = s;
				again.current?.();
			}
			const lane = x < GUTTER ? rowAt(y)?.lane : undefined;
			setTip(s ? {
				x: e.clientX, y: e.clientY,
				lines: isSummed(s.tile.lane[s.i])
					? [`${group(s.tile.count[s.i])} events summed in ${time(s.tile.dur[s.i])}`, "too fast to be kept one by one: the tree has them"]
					: s.tile.count[s.i] > 1
					? [`${group(s.tile.count[s.i])} events`, `most of them: ${s.tile.names[s.tile.name[s.i]]}`, `${time(s.tile.dur[s.i])} from the first to the last`]
					: [s.tile.names[s.tile.name[s.i]], `${time(s.tile.dur[s.i])} at ${moment(s.tile.start[s.i])}`],
			} : lane ? { x: e.clientX, y: e.clientY, lines: [shown(lane.name), `${lane.kind}${lane.process !== undefined && lane.process !== null ? ` of process ${shown(String(lane.process))}` : ""}`, "P pins it, H hides it, Shift+Q and Shift+E move it"] } : null);
		},
		// One finger moves, two zoom.
		onTouchStart: (e: TouchEvent) => (touch.current = fingers(e)),
		onTouchMove: (e: TouchEvent) => {
			const [was, is] = [touch.current, fingers(e)];
			touch.current = is;
			if (was.n !== is.n)
				return;
			if (is.apart > 0 && was.apart > 0)
				zoom((is.x - GUTTER) / width(), was.apart / is.apart);
			view.current.y -= is.y - was.y;
			pan(((was.x - is.x) / width()) * (view.current.t1 - view.current.t0));
		},
		onMouseLeave: () => {
			hover.current = null;
			setTip(null);
			again.current?.();
		},
		onDblClick: (e: MouseEvent) => {
			const { x, y } = inBox(e);
			const s = sliceAt(x, y);
			if (s)
				clamp(s.tile.start[s.i] - s.tile.dur[s.i] * 0.3, s.tile.start[s.i] + s.tile.dur[s.i] * 1.3);
		},
		onWheel: (e: WheelEvent) => {
			e.preventDefault();
			const { x } = inBox(e);
			const v = view.current;
			if (e.ctrlKey || e.metaKey)
				zoom(Math.max(0, (x - GUTTER) / width()), 1.0025 ** e.deltaY);
			else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))
				pan(((e.deltaX || e.deltaY) / width()) * (v.t1 - v.t0));
			else if (height > (box.current!.clientHeight - RULER - under)) {
				v.y += e.deltaY;
				again.current?.();
			} else
				zoom(Math.max(0, (x - GUTTER) / width()), 1.0015 ** e.deltaY);
		},
		onKeyDown: (e: KeyboardEvent) => {
			if (e.ctrlKey || e.metaKey || e.altKey)
				return;
			const v = view.current;
			const span = v.t1 - v.t0;
			const i = rows.findIndex((r) => r.lane.id === focusLane);
			const tall = box.current!.clientHeight - RULER - under;
			const swap = (to: number) => {
				const ids = rows.map((r) => r.lane.id);
				if (i < 0 || to < 0 || to >= ids.length)
					return;
				[ids[i], ids[to]] = [ids[to], ids[i]];
				set({ lanes: ids.join(",") });
			};
			const toLane = (to: number) => {
				const r = rows[Math.max(0, Math.min(rows.length - 1, to))];
				if (!r)
					return;
				set({ lane: String(r.lane.id) });
				if (!r.pinned && (r.y < v.y || r.y + r.rows * ROW > v.y + tall))
					v.y = r.y - tall / 3;
				again.current?.();
			};
			switch (e.key) {
			case "w": zoom(0.5, 0.7); break;
			case "s": zoom(0.5, 1.43); break;
			case "a": case "ArrowLeft": pan(-span * 0.15); break;
			case "d": case "ArrowRight": pan(span * 0.15); break;
			case "ArrowUp": v.y -= ROW * 2; again.current?.(); break;
			case "ArrowDown": v.y += ROW * 2; again.current?.(); break;
			case "q": toLane(i - 1); break;
			case "e": toLane(i + 1); break;
			case "Q": swap(i - 1); break;
			case "E": swap(i + 1); break;
			case "p": toggle("pin", rows[i]); break;
			case "o": toggle("deep", rows[i]); break;
			case "h": if (i >= 0) {
				toggle("hide", rows[i]);
				toLane(i + 1);
			} break;
			case "n": void next("next"); break;
			case "N": void next("prev"); break;
			case "m": if (sel) set({ range: `${Math.round(sel.start)},${Math.round(sel.start + sel.dur)}`, box: "all" }); else set({ range: `${Math.round(v.t0)},${Math.round(v.t1)}`, box: "all" }); break;
			case "f": {
				const on: [number, number] = sel ? [sel.start - sel.dur * 0.3, sel.start + sel.dur * 1.3] : range ?? all;
				const there = Math.abs(v.t0 - on[0]) < (on[1] - on[0]) * 0.02 && Math.abs(v.t1 - on[1]) < (on[1] - on[0]) * 0.02;
				clamp(...(there ? all : on));
			} break;
			case "Home": clamp(all[0], all[0] + span); break;
			case "End": clamp(all[1] - span, all[1]); break;
			case "Escape": if (range) set({ range: "", box: "" }); else choose(null); break;
			default: return;
			}
			e.preventDefault();
			e.stopPropagation();
		},
	};
	const hidden = list(h.hide).length;
	return (
		<>
			<div class="bar-of">
				<Find />
				{!isReport && <button disabled={!sel} onClick={() => void next("prev")}>‹ before</button>}
				{!isReport && <button disabled={!sel} onClick={() => void next("next")}>next ›</button>}
				<button onClick={() => clamp(...all)}>all</button>
				{!isReport && <Toggle on={h.arrows !== "0"} words="arrows" onChange={(on) => set({ arrows: on ? "" : "0" })} />}
				{colors.size > 0 && <Toggle on={h.own !== "bars"} words="program's colours" onChange={(on) => set({ own: on ? "" : "bars" })} />}
				{numbers.length > 0 && (
					<details class="menu">
						<summary>numbers</summary>
						<div>
							{numbers.slice(0, 256).map((s, i) => (
								<label key={i}>
									<input type="checkbox" checked={chosen.includes(i)} disabled={chosen.length >= NUMBERS && !chosen.includes(i)}
										onChange={() => set({ nums: (chosen.includes(i) ? chosen.filter((k) => k !== i) : [...chosen, i]).join() || "-" })} />
									{shown(s.name)}{s.process ? ` ${shown(String(s.process))}` : ""}
								</label>
							))}
						</div>
					</details>
				)}
				{hidden > 0 && <button onClick={() => set({ hide: "" })}>show {hidden} hidden</button>}
				<AsTable />
				{isReport && <span class="note">{inlinedPaths(api(id, "window?")).length > 0 ? "A report has the timeline thinned: what is short was merged." : "This report has no timeline: protonview web shows it."}</span>}
				{tiles.waiting && <span class="note" role="status">…</span>}
			</div>
			{tilesError && <Trouble error={tilesError} />}
			<div class="timeline">
				<div class="left">
					{h.table === "1" ? <Listing tiles={drawn.current} view={view.current} rows={byLane} onSelect={choose} /> : (
						<div class="canvas" ref={box}>
							<Canvas label={`Timeline: ${rows.length} lanes, ${time(all[1] - all[0])}. W, A, S, D zoom and move, N the next of a name, ? all keys. The table button lists what is shown.`}
								draw={draw} deps={[rows, counters, hit, sel, range, arrows, event, details.value, h.own, familyOf, tiles, focusLane]} again={again} handlers={handlers} />
							<TipBox tip={tip} />
						</div>
					)}
					{range && h.box && <SumsOf id={id} range={range} lanes={h.box === "all" ? rows.map((r) => r.lane.id) : list(h.box)} />}
				</div>
				{(event > 0 || sel) && <EventOf of={details} sel={sel} jump={jump} lane={sel ? byLane[sel.lane]?.lane : undefined} close={() => choose(null)} />}
			</div>
		</>
	);
}
