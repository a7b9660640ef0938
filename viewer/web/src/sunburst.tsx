// SPDX-License-Identifier: MIT. sunburst.tsx: the same boxes as rings: five of them, and nothing narrower than half a degree.
import { useMemo } from "preact/hooks";
import { type Draw, fit } from "./canvas";
import { ink } from "./color";
import { cut } from "./format";
import { type BoxesProps, useBoxes } from "./icicle";

const RINGS = 5;
const LEAST = Math.PI / 360;

export function Sunburst(p: BoxesProps) {
	const { l, z, sel, box, hover, out, handlers, picture } = useBoxes(p, (e) => at(e), () => {});
	// As many rings as there are below, up to five.
	const rings = useMemo(() => {
		let most = 1;
		for (let b = z + 1; b < z + (l.size[z] ?? 0) && most < RINGS; b++)
			most = Math.max(most, l.depth[b] - l.depth[z]);
		return most;
	}, [l, z]);
	const geo = (w: number, h: number) => {
		const R = Math.max(40, Math.min(w, h) / 2 - 8);
		const hole = R * 0.2;
		return { cx: w / 2, cy: h / 2, hole, ring: (R - hole) / rings };
	};
	// Each box that is drawn, with its angles; what is too narrow is told as the rest of its ring.
	const arcs = (visit: (b: number, ring: number, a0: number, a1: number) => boolean) => {
		const whole = l.w[z] || 1;
		for (let b = z + 1; b < z + l.size[z];) {
			const ring = l.depth[b] - l.depth[z] - 1;
			const a0 = ((l.x[b] - l.x[z]) / whole) * 2 * Math.PI;
			const a1 = a0 + (l.w[b] / whole) * 2 * Math.PI;
			if (ring >= rings || a1 - a0 < LEAST) {
				b += l.size[b] || 1;
				continue;
			}
			if (visit(b, ring, a0, a1))
				return;
			b++;
		}
	};
	const draw: Draw = (g, w, h, k) => {
		const { cx, cy, hole, ring } = geo(w, h);
		const top = -Math.PI / 2;
		g.textBaseline = "middle";
		const marks: [Path2D, string][] = []; // over what stands beside them
		arcs((b, r, a0, a1) => {
			const [r0, r1] = [hole + r * ring, hole + (r + 1) * ring];
			const on = !p.matches || p.matches[l.name[b]] === 1;
			g.globalAlpha = on ? 1 : 0.22;
			const arc = new Path2D();
			arc.arc(cx, cy, r1 - 0.5, top + a0, top + a1);
			arc.arc(cx, cy, r0 + 0.5, top + a1, top + a0, true);
			arc.closePath();
			g.fillStyle = l.color[b];
			g.fill(arc);
			g.globalAlpha = 1;
			g.lineWidth = 1;
			g.strokeStyle = k.panel;
			g.stroke(arc);
			if (b === sel || b === hover.current)
				marks.push([arc, b === sel ? k.accent : k.text]);
			// Along the ring where that gives more room, else across it.
			const mid = (a0 + a1) / 2;
			const rad = r0 + ring / 2;
			const along = Math.min((a1 - a0) * rad * 0.9, 2 * rad * Math.sin(Math.min(a1 - a0, Math.PI) / 2)) > ring * 1.2;
			const room = along ? Math.min((a1 - a0) * rad * 0.8, rad * 1.1) : ring - 8;
			if ((a1 - a0) * rad > 13 && room > 24) {
				const low = along && mid > Math.PI / 2 && mid < 1.5 * Math.PI;
				const left = !along && mid > Math.PI;
				g.save();
				g.translate(cx, cy);
				g.rotate(mid + (along ? (low ? Math.PI : 0) : left ? Math.PI / 2 : -Math.PI / 2));
				g.font = `11px ${k.font}`;
				g.fillStyle = on ? ink(l.color[b]) : k.dim;
				g.textAlign = "center";
				const s = fit(g, p.tree.briefs[l.name[b]], room);
				if (along)
					g.fillText(s, 0, low ? rad : -rad);
				else
					g.fillText(s, left ? -rad : rad, 0);
				g.restore();
			}
			return false;
		});
		g.lineWidth = 2;
		for (const [arc, color] of marks) {
			g.strokeStyle = color;
			g.stroke(arc);
		}
		g.textAlign = "center";
		g.fillStyle = k.text;
		g.font = `600 12px ${k.font}`;
		g.fillText(cut(p.tree.briefs[l.name[z]], Math.floor(hole / 3.6)), cx, cy - 8, hole * 1.8);
		g.font = `11px ${k.font}`;
		g.fillStyle = k.dim;
		g.fillText(p.say(z)[1].split(",")[0], cx, cy + 9, hole * 1.8);
		g.textAlign = "start";
	};
	const at = (e: MouseEvent): number => {
		const r = box.current!.getBoundingClientRect();
		const { cx, cy, hole, ring } = geo(r.width, r.height);
		const [x, y] = [e.clientX - r.left - cx, e.clientY - r.top - cy];
		const d = Math.hypot(x, y);
		if (d < hole)
			return z;
		const on = Math.floor((d - hole) / ring);
		let a = Math.atan2(y, x) + Math.PI / 2;
		if (a < 0)
			a += 2 * Math.PI;
		let ret = -1;
		arcs((b, rg, a0, a1) => {
			if (rg === on && a >= a0 && a < a1)
				ret = b;
			return ret >= 0;
		});
		return ret;
	};
	return picture(draw, { onClick: (e: MouseEvent) => (at(e) === z ? out() : handlers.onClick(e)) });
}
