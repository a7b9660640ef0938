// SPDX-License-Identifier: MIT. chart.tsx: lines, steps and stacked bars, by uPlot.
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import { type Look, look } from "./canvas";
import { fixed, time, type Unit, unitOf, withUnit } from "./format";

export interface Curve {
	name: string;
	color: string;
	v: (number | null)[];
	kind?: "line" | "bar" | "hold" | "dots";
}
export interface ChartProps {
	label: string;
	x: number[];
	xIs: "step" | "session" | "time" | "seconds";
	unit: string;
	curves: Curve[]; // bars before all else, stacked, first at the bottom
	height: number;
	selected?: number; // of x
	onPick?: (index: number) => void;
	zero?: boolean;
	top?: number | undefined; // where the axis ends, whatever is beyond
	sync?: string;
}

// A tick: in the axis' unit, without zeros that say nothing.
const plain = (v: number, u: Unit) => `${Number((v / u[1]).toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6 }).replaceAll(",", "\u202f")}${u[0] ? " " + u[0] : ""}`;

const LINES = ["#4477aa", "#ee7733", "#228833", "#aa3377", "#009988", "#ccbb44", "#66ccee", "#ee6677"];
export const lineColor = (i: number): string => LINES[i % LINES.length];

export function Chart(p: ChartProps) {
	const el = useRef<HTMLDivElement>(null);
	const said = useRef<HTMLElement>(null);
	const plot = useRef<uPlot | null>(null);
	const latest = useRef(p);
	latest.current = p;
	const bars = p.curves.filter((c) => c.kind === "bar").length;
	// Bars as sums: the tallest is drawn first, the others over it.
	const data = useMemo(() => {
		let sum: number[] = [];
		const sums = p.curves.slice(0, bars).map((c) => (sum = c.v.map((v, i) => (v ?? 0) + (sum[i] ?? 0))));
		return [p.x, ...sums.reverse(), ...p.curves.slice(bars).map((c) => c.v.map((v) => (v === null ? v : Math.min(v, p.top ?? v))))] as uPlot.AlignedData;
	}, [p.x, p.curves, p.top]);
	const whole = p.xIs === "step" || p.xIs === "session";
	useLayoutEffect(() => {
		const box = el.current!;
		let seen: Look | null = null;
		const k = (up: uPlot) => (seen ??= look(up.ctx));
		const size = () => ({ width: Math.max(120, box.clientWidth), height: p.height });
		const line = (up: uPlot) => k(up).line;
		const axis = { stroke: (up: uPlot) => k(up).dim, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 }, font: `11px ${getComputedStyle(box).fontFamily}` };
		const up = (plot.current = new uPlot({
			...size(), legend: { show: false },
			series: [
				{},
				...p.curves.slice(0, bars).reverse().map((c) => ({ stroke: c.color, fill: c.color, width: 0, paths: uPlot.paths.bars!({ size: [0.9, 60], align: 0 }), points: { show: false } })),
				...p.curves.slice(bars).map((c): uPlot.Series => ({
					stroke: c.color, width: c.kind === "dots" ? 0 : 1.5, spanGaps: true,
					...(c.kind === "hold" ? { paths: uPlot.paths.stepped!({ align: 1 }) } : c.kind === "dots" ? { paths: () => null } : {}),
					points: c.kind === "dots" ? { show: true, size: 7, fill: c.color } : { show: (u) => u.data[0].length === 1, size: 6 },
				})),
			],
			scales: {
				x: {
					time: false,
					range: ({ data: [x] }, a, b) => (p.xIs === "seconds" ? [Math.max(0, b - 120), Math.max(b, 10)] : x.length === 1 ? [x[0] - 1, x[0] + 1] : bars > 0 ? [a - 0.6, b + 0.6] : [a, b]),
				},
				y: p.zero || bars > 0 ? { range: (_u, _a, b) => [0, b > 0 ? Math.min(b, latest.current.top ?? b) * 1.06 : 1] } : {},
			},
			axes: [
				{ ...axis, size: 30, ...(whole ? { incrs: [1, 2, 5].flatMap((k) => Array.from({ length: 9 }, (_, i) => k * 10 ** i)).sort((a, b) => a - b) } : {}), values: (_u, ticks) => ticks.map((t) => (whole ? (Number.isInteger(t) ? String(t) : "") : p.xIs === "time" ? plain(t, unitOf("ns", ticks[ticks.length - 1])) : `${t} s`)) },
				{ ...axis, size: 74, ...(p.unit === "bytes" ? { incrs: Array.from({ length: 50 }, (_, i) => 2 ** i) } : {}), values: (_u, ticks) => ticks.map((t) => plain(t, unitOf(p.unit, Math.max(...ticks.map(Math.abs))))) },
			],
			cursor: { y: false, points: { size: 6 }, ...(p.sync ? { sync: { key: p.sync } } : {}), drag: { x: true, y: false } },
			hooks: {
				setLegend: [({ cursor: { idx } }) => {
					const { x, curves } = latest.current;
					const at = idx ?? -1; // beside each key what it is at the mouse
					const put = (of: Element, words: string) => (of.textContent = words);
					put(said.current!.lastElementChild!, at < 0 ? "" : whole ? `${p.xIs} ${x[at]}` : p.xIs === "time" ? `at ${time(x[at])}` : `${fixed(x[at], 1)} s`);
					said.current!.querySelectorAll("b").forEach((b, i) => put(b, (curves[i].v[at] ?? null) === null ? "" : withUnit(curves[i].v[at], p.unit)));
				}],
				draw: [(up) => {
					const { x, selected = -1 } = latest.current;
					if (!(selected in x))
						return;
					const at = up.valToPos(x[selected], "x", true);
					up.ctx.save();
					up.ctx.strokeStyle = k(up).accent;
					up.ctx.lineWidth = 2 * devicePixelRatio;
					up.ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
					up.ctx.beginPath();
					up.ctx.moveTo(at, up.bbox.top);
					up.ctx.lineTo(at, up.bbox.top + up.bbox.height);
					up.ctx.stroke();
					up.ctx.restore();
				}],
			},
		}, data, box));
		const pick = () => up.cursor.idx !== null && up.cursor.idx !== undefined && latest.current.onPick?.(up.cursor.idx);
		let down = 0;
		up.over.addEventListener("mousedown", (e) => (down = e.clientX));
		up.over.addEventListener("click", (e) => Math.abs(e.clientX - down) < 4 && pick());
		box.onkeydown = (e) => {
			const { x, selected = -1 } = latest.current;
			const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
			if (e.key === "Enter")
				pick();
			if (by === undefined || e.ctrlKey || e.metaKey || e.altKey)
				return;
			e.preventDefault();
			const to = x[Math.max(0, Math.min(x.length - 1, (up.cursor.idx ?? selected) + by))];
			up.setCursor({ left: up.valToPos(to, "x"), top: 0 });
		};
		const o = new ResizeObserver(() => Math.abs(up.width - box.clientWidth) > 1 && up.setSize(size()));
		o.observe(box);
		const themed = () => {
			seen = null;
			up.redraw(false);
		};
		addEventListener("themed", themed);
		return () => {
			o.disconnect();
			removeEventListener("themed", themed);
			up.destroy();
			plot.current = null;
		};
	}, [p.unit, p.height, p.xIs, p.curves.map((c) => c.name + c.color + c.kind).join()]);
	useLayoutEffect(() => {
		if (plot.current!.data !== data)
			plot.current!.setData(data);
	}, [data]);
	useEffect(() => plot.current!.redraw(false), [p.selected]);
	return (
		<figure class="chart">
			<figcaption ref={said}>
				{p.curves.map((c) => <span key={c.name}><i class="swatch" style={{ background: c.color }}></i>{c.name} <b></b></span>)}
				<span class="note"></span>
			</figcaption>
			<div ref={el} class="plot" role="application" tabIndex={0} aria-label={p.label} style={{ height: `${p.height}px` }}></div>
		</figure>
	);
}
