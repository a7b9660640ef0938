// SPDX-License-Identifier: MIT. canvas.tsx: a canvas as large as its box, sharp on any screen, drawn once a frame at most.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { cut } from "./format";

export interface Look {
	text: string;
	dim: string;
	line: string;
	accent: string;
	panel: string;
	font: string;
}

// The style sheet's colours as #rrggbb, the system's among them.
export function look(g: CanvasRenderingContext2D): Look {
	const s = getComputedStyle(document.documentElement);
	const v = (name: string) => {
		g.fillStyle = s.getPropertyValue(name).trim();
		return g.fillStyle as string;
	};
	return { text: v("--text"), dim: v("--dim"), line: v("--line"), accent: v("--accent"), panel: v("--panel"), font: s.fontFamily };
}

export type Draw = (c: CanvasRenderingContext2D, width: number, height: number, l: Look) => void;

export interface CanvasProps {
	label: string;
	draw: Draw;
	deps: unknown[];
	height?: number; // px; else all of the box
	again?: { current: (() => void) | null }; // set to a function that draws on the next frame
	handlers?: Record<string, unknown>;
	class?: string;
}

export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export function Canvas(p: CanvasProps) {
	const el = useRef<HTMLCanvasElement>(null);
	const latest = useRef(p.draw);
	latest.current = p.draw;
	const frame = useRef(0);
	const seen = useRef<{ w: number; h: number; look: Look | null }>({ w: 0, h: 0, look: null });
	const paint = () => {
		frame.current = 0;
		const c = el.current;
		if (!c)
			return;
		const { w, h } = seen.current;
		const dpr = devicePixelRatio || 1;
		const [W, H] = [Math.max(1, Math.round(w * dpr)), Math.max(1, Math.round(h * dpr))];
		if (c.width !== W || c.height !== H) {
			c.width = W;
			c.height = H;
		}
		const g = c.getContext("2d", { alpha: false })!;
		g.setTransform(dpr, 0, 0, dpr, 0, 0);
		const l = (seen.current.look ??= look(g));
		g.fillStyle = l.panel;
		g.fillRect(0, 0, w, h);
		latest.current(g, w, h, l);
	};
	const ask = () => {
		if (frame.current === 0)
			frame.current = requestAnimationFrame(paint);
	};
	if (p.again)
		p.again.current = ask;
	useLayoutEffect(() => {
		const box = el.current!.parentElement!;
		const size = () => {
			seen.current.w = box.clientWidth;
			seen.current.h = p.height ?? box.clientHeight;
			ask();
		};
		const o = new ResizeObserver(size);
		o.observe(box);
		size();
		const themed = () => {
			seen.current.look = null;
			ask();
		};
		addEventListener("themed", themed);
		return () => {
			o.disconnect();
			removeEventListener("themed", themed);
			cancelAnimationFrame(frame.current);
			frame.current = 0;
		};
	}, [p.height]);
	useEffect(ask, p.deps);
	// With a role a canvas may be focused and has a name; its table is beside it.
	return (
		<canvas ref={el} class={p.class ?? ""} role="application" aria-label={p.label} tabIndex={0}
			style={p.height ? { height: `${p.height}px` } : {}} {...(p.handlers ?? {})}></canvas>
	);
}

// What fits, with an ellipsis: each character is measured once for each font.
const wide = new Map<string, Float32Array>();
export function fit(g: CanvasRenderingContext2D, s: string, room: number): string {
	let of = wide.get(g.font);
	if (of === undefined) {
		of = Float32Array.from({ length: 128 }, (_, c) => (c < 32 ? 0 : g.measureText(String.fromCharCode(c)).width));
		of[0] = g.measureText("…").width;
		of[1] = g.measureText("⟨").width * 1.6; // any other character: a wide one
		wide.set(g.font, of);
	}
	let [sum, fits] = [0, 0];
	for (let i = 0; i < s.length; i++) {
		const c = s.charCodeAt(i);
		sum += of[c > 31 && c < 128 ? c : 1];
		if (sum + of[0] <= room)
			fits = i + 1;
		if (sum > room)
			return fits < 2 ? "" : s.slice(0, fits) + "…";
	}
	return s;
}

// What fits, its end too: numbers of streams and threads stand there.
export function ends(g: CanvasRenderingContext2D, s: string, room: number): string {
	let ret = s;
	for (let n = Math.min(s.length, Math.ceil(room / 3)); n > 4 && fit(g, ret, room) !== ret; n--)
		ret = cut(s, n);
	return fit(g, ret, room);
}
