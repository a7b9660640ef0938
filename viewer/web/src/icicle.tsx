// SPDX-License-Identifier: MIT. icicle.tsx: a layout as nested bars. What is narrower than half a pixel is skipped with
// all below it, so 100 000 boxes cost what can be seen of them.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Canvas, type Draw, fit, still } from "./canvas";
import { ink } from "./color";
import { cut } from "./format";
import type { Layout, Words } from "./model";

export const BAR = 20;

export interface BoxesProps {
	tree: Words;
	layout: Layout;
	zoom: number; // a box
	selected: number; // a node
	matches: Uint8Array | null; // of names
	onZoom: (box: number) => void;
	onSelect: (box: number) => void;
	say: (box: number) => string[]; // what is said of a box: name first
	label: string;
}

export function parentOf(l: Layout, box: number): number {
	for (let b = box - 1; b >= 0; b--)
		if (l.depth[b] < l.depth[box])
			return b;
	return 0;
}

// What the arrows do, alike in bars and rings.
export function stepBox(l: Layout, box: number, key: string): number {
	if (key === "ArrowUp")
		return parentOf(l, box);
	if (key === "ArrowDown")
		return l.size[box] > 1 ? box + 1 : box;
	if (key === "ArrowRight") {
		const next = box + l.size[box];
		return next < l.n && l.depth[next] === l.depth[box] ? next : box;
	}
	if (key === "ArrowLeft") {
		let last = box;
		for (let b = parentOf(l, box) + 1; b < box; b += l.size[b])
			last = b;
		return last;
	}
	return -1;
}

export function boxOfNode(l: Layout, node: number): number {
	if (node < 0)
		return -1;
	for (let b = 0; b < l.n; b++)
		if (l.node[b] === node)
			return b;
	return -1;
}

export interface Tip {
	x: number;
	y: number;
	lines: string[];
}

export function TipBox({ tip }: { tip: Tip | null }) {
	if (!tip)
		return null;
	const left = tip.x > innerWidth / 2;
	const up = tip.y > innerHeight * 0.7;
	return (
		<div class="tip" role="presentation" style={{
			...(left ? { right: `${innerWidth - tip.x + 12}px` } : { left: `${tip.x + 12}px` }),
			...(up ? { bottom: `${innerHeight - tip.y + 12}px` } : { top: `${tip.y + 16}px` }),
		}}>
			{tip.lines.map((l, i) => <div key={i} class={i === 0 ? "head" : ""}>{cut(l, 400)}</div>)}
		</div>
	);
}

// What hand and keys do in a picture of boxes. `at`: the box below the mouse; `seen`: the keys went to this one.
export function useBoxes(p: BoxesProps, at: (e: MouseEvent) => number, seen: (box: number) => void) {
	const l = p.layout;
	const z = p.zoom < l.n ? p.zoom : 0;
	const again = useRef<(() => void) | null>(null);
	const box = useRef<HTMLDivElement>(null);
	const hover = useRef(-1);
	const focus = useRef(-1);
	const [tip, setTip] = useState<Tip | null>(null);
	const sel = useMemo(() => boxOfNode(l, p.selected), [l, p.selected]);
	if (sel >= 0)
		focus.current = sel;
	const out = () => p.onZoom(z === 0 ? 0 : parentOf(l, z));
	const point = (b: number, e?: MouseEvent) => {
		if (b !== hover.current) {
			hover.current = b;
			again.current?.();
		}
		setTip(b < 0 || !e ? null : { x: e.clientX, y: e.clientY, lines: p.say(b) });
	};
	const handlers = {
		onMouseMove: (e: MouseEvent) => point(at(e), e),
		onMouseLeave: () => point(-1),
		onClick: (e: MouseEvent) => {
			const b = at(e);
			if (b >= 0) {
				focus.current = b;
				p.onSelect(b);
			}
		},
		onDblClick: (e: MouseEvent) => {
			const b = at(e);
			if (b >= 0)
				p.onZoom(b);
		},
		onKeyDown: (e: KeyboardEvent) => {
			if (e.ctrlKey || e.metaKey || e.altKey || l.n === 0)
				return;
			const f = focus.current >= 0 && focus.current < l.n ? focus.current : z;
			const next = stepBox(l, f, e.key);
			if (next >= 0) {
				focus.current = next;
				seen(next);
				p.onSelect(next);
			} else if (e.key === "Enter")
				p.onZoom(f);
			else if (e.key === "Backspace" || e.key === "Escape")
				out();
			else if (e.key === "Home")
				p.onZoom(0);
			else
				return;
			e.preventDefault();
			e.stopPropagation();
		},
	};
	const picture = (draw: Draw, more: Record<string, unknown>) => (
		<div class="canvas" ref={box}>
			<Canvas label={p.label} draw={draw} deps={[l, z, p.matches, sel, p.tree]} again={again} handlers={{ ...handlers, ...more }} />
			<TipBox tip={tip} />
		</div>
	);
	return { l, z, sel, again, box, hover, out, point, handlers, picture };
}

export function Icicle(p: BoxesProps) {
	const view = useRef({ x0: 0, x1: 1, y: 0 });
	const { l, z, sel, again, box, hover, point, handlers, picture } = useBoxes(p, (e) => at(e), (b) => {
		const y = l.depth[b] * BAR;
		const tall = box.current!.clientHeight;
		if (y < view.current.y || y + BAR > view.current.y + tall)
			view.current.y = y - tall / 2;
	});
	const drag = useRef<{ x: number; y: number; moved: boolean } | null>(null);
	const above = useMemo(() => {
		const ret = new Set<number>();
		for (let b = z; b > 0; b = parentOf(l, b))
			ret.add(b);
		return ret.add(0);
	}, [l, z]);

	useEffect(() => {
		const to = { x0: l.x[z] ?? 0, x1: (l.x[z] ?? 0) + (l.w[z] || 1) };
		const from = { ...view.current };
		const t0 = performance.now();
		let f = 0;
		const ms = still() ? 0 : 160;
		const step = (t: number) => {
			const k = ms === 0 ? 1 : Math.max(0, Math.min(1, (t - t0) / ms));
			const e = 1 - (1 - k) ** 3;
			view.current.x0 = from.x0 + (to.x0 - from.x0) * e;
			view.current.x1 = from.x1 + (to.x1 - from.x1) * e;
			again.current?.();
			if (k < 1)
				f = requestAnimationFrame(step);
		};
		step(t0);
		return () => cancelAnimationFrame(f);
	}, [l, z]);

	const draw: Draw = (g, w, h, k) => {
		const v = view.current;
		v.y = Math.max(0, Math.min(v.y, l.depths * BAR - h));
		const scale = w / (v.x1 - v.x0 || 1);
		const font = `12px ${k.font}`;
		g.font = font;
		g.textBaseline = "middle";
		for (let b = 0; b < l.n;) {
			const full = above.has(b);
			let x = (l.x[b] - v.x0) * scale;
			let r = x + l.w[b] * scale;
			if (!full && (r < 0 || x > w || r - x < 0.5)) {
				b += l.size[b] || 1;
				continue;
			}
			x = Math.max(x, 0);
			r = Math.min(r, w);
			const y = l.depth[b] * BAR - v.y;
			if (y > h) {
				b += l.size[b] || 1;
				continue;
			}
			if (y > -BAR) {
				const on = !p.matches || p.matches[l.name[b]] === 1;
				g.globalAlpha = on ? 1 : 0.22;
				g.fillStyle = l.color[b];
				const bw = Math.max(r - x - (r - x > 3 ? 1 : 0), 0.6);
				g.fillRect(x, y, bw, BAR - 1);
				if (bw > 26) {
					g.fillStyle = on ? ink(l.color[b]) : k.text;
					g.globalAlpha = on ? 1 : 0.7;
					const s = fit(g, p.tree.briefs[l.name[b]], bw - 8);
					if (s)
						g.fillText(s, x + 4, y + BAR / 2);
				}
				g.globalAlpha = 1;
				if (b === hover.current || b === sel) {
					g.strokeStyle = b === sel ? k.accent : k.text;
					g.lineWidth = b === sel ? 2 : 1;
					g.strokeRect(x + 1, y + 1, Math.max(bw - 2, 1), BAR - 3);
				}
			}
			b++;
		}
	};
	const at = (e: MouseEvent): number => {
		const r = box.current!.getBoundingClientRect();
		const v = view.current;
		const x = v.x0 + ((e.clientX - r.left) / r.width) * (v.x1 - v.x0);
		const d = Math.floor((e.clientY - r.top + v.y) / BAR);
		for (let b = 0; b < l.n;) {
			const full = above.has(b);
			if (!full && (x < l.x[b] || x >= l.x[b] + l.w[b])) {
				b += l.size[b] || 1;
				continue;
			}
			if (l.depth[b] === d)
				return b;
			b++;
		}
		return -1;
	};
	const zoomAt = (frac: number, factor: number) => {
		const v = view.current;
		const all = l.w[0] || 1;
		const span = Math.min(all, Math.max(all * 1e-9, (v.x1 - v.x0) * factor));
		const mid = v.x0 + (v.x1 - v.x0) * frac;
		v.x0 = Math.max(0, Math.min(all - span, mid - span * frac));
		v.x1 = v.x0 + span;
		again.current?.();
	};
	const pan = (dx: number) => {
		const v = view.current;
		const span = v.x1 - v.x0;
		v.x0 = Math.max(0, Math.min((l.w[0] || 1) - span, v.x0 + dx));
		v.x1 = v.x0 + span;
		again.current?.();
	};
	return picture(draw, {
		onMouseMove: (e: MouseEvent) => {
			const d = drag.current;
			if (!d || e.buttons !== 1)
				return handlers.onMouseMove(e);
			if (d.moved || Math.abs(e.clientX - d.x) + Math.abs(e.clientY - d.y) > 4) {
				d.moved = true;
				view.current.y -= e.clientY - d.y;
				pan((-(e.clientX - d.x) * (view.current.x1 - view.current.x0)) / box.current!.clientWidth);
				d.x = e.clientX;
				d.y = e.clientY;
				point(-1);
			}
		},
		onMouseDown: (e: MouseEvent) => (drag.current = { x: e.clientX, y: e.clientY, moved: false }),
		onClick: (e: MouseEvent) => drag.current?.moved || handlers.onClick(e),
		onWheel: (e: WheelEvent) => {
			e.preventDefault();
			const r = box.current!.getBoundingClientRect();
			const v = view.current;
			const tall = l.depths * BAR > r.height;
			if (Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey)
				pan(((e.deltaX || e.deltaY) / r.width) * (v.x1 - v.x0));
			else if (e.ctrlKey || e.metaKey || !tall)
				zoomAt((e.clientX - r.left) / r.width, 1.0015 ** e.deltaY);
			else {
				v.y += e.deltaY;
				again.current?.();
			}
		},
		onKeyDown: (e: KeyboardEvent) => {
			const far = view.current.x1 - view.current.x0;
			const way = e.ctrlKey || e.metaKey || e.altKey || l.n === 0 ? -1 : "wsad".indexOf(e.key);
			if (way < 0)
				return handlers.onKeyDown(e);
			if (way < 2)
				zoomAt(0.5, way === 0 ? 0.7 : 1.43);
			else
				pan(far * (way === 2 ? -0.15 : 0.15));
			e.preventDefault();
			e.stopPropagation();
		},
	});
}
