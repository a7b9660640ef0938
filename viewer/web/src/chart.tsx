// SPDX-License-Identifier: MIT. chart.tsx: lines, steps and stacked bars, by uPlot.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { look } from "./canvas";
import { time, type Unit, unitOf, withUnit } from "./format";

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
	curves: Curve[]; // bars are stacked, first at the bottom
	height: number;
	selected?: number; // of x
	onPick?: (index: number) => void;
	zero?: boolean;
	sync?: string;
}

// A tick: in the axis' unit, without zeros that say nothing.
const plain = (v: number, u: Unit) => `${Number((v / u[1]).toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6 }).replaceAll(",", "\u202f")}${u[0] ? " " + u[0] : ""}`;

const LINES = ["#4477aa", "#ee7733", "#228833", "#aa3377", "#009988", "#ccbb44", "#66ccee", "#ee6677"];
export const lineColor = (i: number): string => LINES[i % LINES.length];

export function Chart(p: ChartProps) {
	const el = useRef<HTMLDivElement>(null);
	const plot = useRef<uPlot | null>(null);
	const pick = useRef(p.onPick);
	pick.current = p.onPick;
	const mark = useRef(p.selected);
	mark.current = p.selected;
	useLayoutEffect(() => {
		const box = el.current!;
		const make = () => {
			plot.current?.destroy();
			const k = look();
			const bars = p.curves.filter((c) => c.kind === "bar");
			const rest = p.curves.filter((c) => c.kind !== "bar");
			// The tallest sum is drawn first, the others over it.
			const sums: (number | null)[][] = [];
			bars.forEach((c, i) => sums.push(c.v.map((v, j) => (v ?? 0) + (i > 0 ? sums[i - 1][j] ?? 0 : 0))));
			let most = 0;
			for (const v of [...(sums.length > 0 ? [sums[sums.length - 1]] : []), ...rest.map((c) => c.v)])
				for (const x of v)
					if (x !== null && Math.abs(x) > most)
						most = Math.abs(x);
			const u = unitOf(p.unit, most);
			const axis = { stroke: k.dim, grid: { stroke: k.line, width: 1 }, ticks: { stroke: k.line, width: 1, size: 4 }, font: `11px ${k.font}` };
			const order = bars.map((c, i) => ({ c, v: sums[i] })).reverse();
			const series: uPlot.Series[] = [
				{},
				...order.map(({ c }) => ({ label: c.name, stroke: c.color, fill: c.color, width: 0, paths: uPlot.paths.bars!({ size: [0.9, 60], align: 0 }), points: { show: false } })),
				...rest.map((c): uPlot.Series => ({
					label: c.name, stroke: c.color, width: c.kind === "dots" ? 0 : 1.5, spanGaps: true,
					...(c.kind === "hold" ? { paths: uPlot.paths.stepped!({ align: 1 }) } : c.kind === "dots" ? { paths: () => null } : {}),
					points: c.kind === "dots" ? { show: true, size: 7, fill: c.color } : { show: c.v.length === 1, size: 6 },
				})),
			];
			const options: uPlot.Options = {
				width: Math.max(120, box.clientWidth), height: p.height, series, legend: { show: false },
				scales: { x: { time: false, ...(p.x.length === 1 && p.xIs !== "seconds" ? { range: [p.x[0] - 1, p.x[0] + 1] as uPlot.Range.MinMax } : bars.length > 0 ? { range: (_u, a, b) => [a - 0.6, b + 0.6] } : p.xIs === "seconds" ? { range: (_u, _a, b) => [Math.max(0, b - 120), Math.max(b, 10)] } : {}) }, y: p.zero || bars.length > 0 ? { range: (_u, _a, b) => [0, b > 0 ? b * 1.06 : 1] } : {} },
				axes: [
					{ ...axis, size: 30, ...(p.xIs === "step" || p.xIs === "session" ? { incrs: [1, 2, 5].flatMap((k) => Array.from({ length: 9 }, (_, i) => k * 10 ** i)).sort((a, b) => a - b) } : {}), values: (_u, ticks) => ticks.map((t) => (p.xIs === "step" || p.xIs === "session" ? (Number.isInteger(t) ? String(t) : "") : p.xIs === "time" ? plain(t, unitOf("ns", ticks[ticks.length - 1])) : `${t} s`)) },
					{ ...axis, size: 74, ...(p.unit === "bytes" ? { incrs: Array.from({ length: 50 }, (_, i) => 2 ** i) } : {}), values: (_u, ticks) => ticks.map((t) => plain(t, u)) },
				],
				cursor: { y: false, points: { size: 6 }, ...(p.sync ? { sync: { key: p.sync } } : {}), drag: { x: true, y: false } },
				hooks: {
					setCursor: [(up) => {
						const i = up.cursor.idx;
						if (i === null || i === undefined)
							return;
						const at = p.xIs === "step" || p.xIs === "session" ? `${p.xIs} ${p.x[i]}` : p.xIs === "time" ? `at ${time(p.x[i])}` : `${p.x[i]} s`;
						said.current!.textContent = [at, ...p.curves.filter((c) => c.v[i] !== null && c.v[i] !== undefined).map((c) => `${c.name} ${withUnit(c.v[i], p.unit)}`)].join("   ");
					}],
					draw: [(up) => {
						if (mark.current === undefined || mark.current < 0 || mark.current >= p.x.length)
							return;
						const x = up.valToPos(p.x[mark.current], "x", true);
						up.ctx.save();
						up.ctx.strokeStyle = k.accent;
						up.ctx.lineWidth = 2 * devicePixelRatio;
						up.ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
						up.ctx.beginPath();
						up.ctx.moveTo(x, up.bbox.top);
						up.ctx.lineTo(x, up.bbox.top + up.bbox.height);
						up.ctx.stroke();
						up.ctx.restore();
					}],
				},
			};
			plot.current = new uPlot(options, [p.x, ...order.map((o) => o.v), ...rest.map((c) => c.v)] as uPlot.AlignedData, box);
			let down = 0;
			plot.current.over.addEventListener("mousedown", (e) => (down = e.clientX));
			plot.current.over.addEventListener("click", (e) => {
				const i = plot.current?.cursor.idx;
				if (Math.abs(e.clientX - down) < 4 && i !== null && i !== undefined)
					pick.current?.(i);
			});
		};
		make();
		const o = new ResizeObserver(() => plot.current && Math.abs(plot.current.width - box.clientWidth) > 1 && plot.current.setSize({ width: Math.max(120, box.clientWidth), height: p.height }));
		o.observe(box);
		const dark = matchMedia("(prefers-color-scheme: dark)");
		dark.addEventListener("change", make);
		addEventListener("themed", make);
		return () => {
			o.disconnect();
			dark.removeEventListener("change", make);
			removeEventListener("themed", make);
			plot.current?.destroy();
			plot.current = null;
		};
	}, [p.x, p.curves, p.unit, p.height, p.xIs]);
	useEffect(() => plot.current?.redraw(false), [p.selected]);
	const said = useRef<HTMLParagraphElement>(null);
	return (
		<figure class="chart">
			<figcaption>
				<span class="keys">{p.curves.map((c) => <span key={c.name}><i class="swatch" style={{ background: c.color }}></i>{c.name}</span>)}</span>
				<p ref={said} class="note"></p>
			</figcaption>
			<div ref={el} role="img" aria-label={p.label} style={{ height: `${p.height}px` }}></div>
		</figure>
	);
}
