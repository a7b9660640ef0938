// SPDX-License-Identifier: MIT. tiles.ts: a timeline in pieces: a tile is so much time at a power of two of ns a pixel, of
// eight lanes. What is missing is asked for, newest wish first; until it comes, a coarser tile stands for it.
import { api, getBytes, inlinedPaths, isReport } from "./api";
import { brief, shown } from "./format";

const MAGIC = 0x314c5450; // "PTL1"
export const TILE_PX = 1024;
export const GROUP = 8; // lanes a tile
const KEPT = 320;
const AT_ONCE = 6;

export interface Tile {
	t0: number;
	t1: number;
	per: number; // ns a pixel
	n: number;
	truncated: boolean;
	start: Float64Array;
	dur: Float32Array;
	name: Uint32Array;
	id: Uint32Array;
	count: Uint32Array;
	lane: Uint16Array;
	depth: Uint16Array;
	raw: string[];
	names: string[];
	briefs: string[];
	paint: Uint32Array; // of each name, made by who draws
	bar: Uint32Array; // likewise; 0: none
	painted: number; // for which look
}

// The same names come with piece after piece: they are made fit to be shown once.
const MOST_KNOWN = 50_000;
const names = new Map<string, { shown: string; brief: string }>();
function known(raw: string): { shown: string; brief: string } {
	let ret = names.get(raw);
	if (ret === undefined) {
		const s = shown(raw);
		ret = { shown: s, brief: brief(s) };
		if (names.size >= MOST_KNOWN)
			names.clear();
		names.set(raw, ret);
	}
	return ret;
}

// Throws where it is not a tile: lengths are checked before anything is read.
export function decode(b: ArrayBuffer, t1: number): Tile {
	const v = new DataView(b);
	if (b.byteLength < 40 || v.getUint32(0, true) !== MAGIC)
		throw new Error("this is not a piece of a timeline");
	const n = v.getUint32(8, true);
	const nnames = v.getUint32(12, true);
	const nameBytes = v.getUint32(36, true);
	const cols = Math.ceil((n * 28) / 4) * 4;
	if (n > 1e6 || nnames > 1e6 || 40 + cols + nameBytes > b.byteLength)
		throw new Error("this piece of the timeline is cut");
	let at = 40;
	// A copy each: the columns need not lie where a view of them may begin.
	const take = (size: number) => b.slice(at, (at += n * size));
	const start = new Float64Array(take(8));
	const dur = new Float32Array(take(4));
	const name = new Uint32Array(take(4));
	const id = new Uint32Array(take(4));
	const count = new Uint32Array(take(4));
	const lane = new Uint16Array(take(2));
	const depth = new Uint16Array(take(2));
	at = 40 + cols;
	const end = at + nameBytes;
	const raw: string[] = [];
	const text = new TextDecoder();
	for (let i = 0; i < nnames && at + 4 <= end; i++) {
		const len = v.getUint32(at, true);
		at += 4;
		if (at + len > end)
			break;
		raw.push(text.decode(new Uint8Array(b, at, len)));
		at += len;
	}
	const both = raw.map(known);
	return {
		t0: v.getFloat64(16, true), t1, per: v.getFloat64(24, true), n, truncated: (v.getUint32(32, true) & 1) !== 0, start, dur, name, id, count, lane, depth,
		raw, names: both.map((x) => x.shown), briefs: both.map((x) => x.brief), paint: new Uint32Array(raw.length), bar: new Uint32Array(raw.length), painted: -1,
	};
}

interface Wish {
	key: string;
	level: number;
	index: number;
	group: number;
}

export class Tiles {
	private have = new Map<string, Tile | null>(); // null: asked for
	private queue: Wish[] = [];
	private flying = 0;
	private fixed: Tile[] = []; // a report's
	error: Error | null = null;
	constructor(private id: string, private lanes: number, private onNew: () => void) {
		if (isReport)
			void this.readReport();
	}
	private async readReport(): Promise<void> {
		for (const p of inlinedPaths(api(this.id, "window?"))) {
			try {
				this.fixed.push(decode(await getBytes(p), Number(new URLSearchParams(p.slice(p.indexOf("?") + 1)).get("t1"))));
			} catch (e) {
				this.error = e as Error;
			}
		}
		this.fixed.sort((a, b) => b.per - a.per);
		this.onNew();
	}
	get waiting(): boolean {
		return this.flying > 0 || this.queue.length > 0;
	}
	static span(level: number): number {
		return TILE_PX * 2 ** level;
	}
	static level(nsPerPx: number): number {
		return Math.max(-4, Math.floor(Math.log2(nsPerPx)));
	}
	// What to draw of [t0, t1) in these groups of lanes, coarse first; each with the part of it that it stands for.
	cover(t0: number, t1: number, nsPerPx: number, groups: number[]): { tile: Tile; from: number; to: number }[] {
		if (isReport)
			return this.coverFixed(t0, t1, nsPerPx);
		const level = Tiles.level(nsPerPx);
		const span = Tiles.span(level);
		const ret: { tile: Tile; from: number; to: number }[] = [];
		const wishes: Wish[] = [];
		for (const group of groups)
			for (let index = Math.max(0, Math.floor(t0 / span)); index * span < t1; index++) { // before 0 is nothing
				const key = `${level}:${index}:${group}`;
				const tile = this.have.get(key);
				if (tile === undefined)
					wishes.push({ key, level, index, group });
				if (tile) {
					this.have.delete(key);
					this.have.set(key, tile); // newest
					ret.push({ tile, from: index * span, to: (index + 1) * span });
				} else
					this.instead(level, index, group, ret);
			}
		this.queue = wishes;
		this.pump();
		return ret;
	}
	// A report's pieces: of those that are fine enough the coarsest, and where there is none what is coarser.
	private coverFixed(t0: number, t1: number, nsPerPx: number): { tile: Tile; from: number; to: number }[] {
		const there = this.fixed.filter((t) => t.t1 > t0 && t.t0 < t1);
		const enough = there.filter((t) => t.per <= nsPerPx * 1.01);
		const best = enough.length > 0 ? enough[0].per : (there[there.length - 1]?.per ?? 0);
		const ret: { tile: Tile; from: number; to: number }[] = [];
		let holes: [number, number][] = [[t0, t1]];
		for (const tile of there.filter((t) => t.per >= best * 0.99).reverse()) {
			const next: [number, number][] = [];
			for (const [a, b] of holes) {
				const [from, to] = [Math.max(a, tile.t0), Math.min(b, tile.t1)];
				if (to <= from) {
					next.push([a, b]);
					continue;
				}
				ret.push({ tile, from, to });
				if (a < from)
					next.push([a, from]);
				if (to < b)
					next.push([to, b]);
			}
			holes = next;
		}
		return ret;
	}
	private instead(level: number, index: number, group: number, ret: { tile: Tile; from: number; to: number }[]): void {
		const span = Tiles.span(level);
		for (let up = 1; up < 24; up++) {
			const t = this.have.get(`${level + up}:${Math.floor(index / 2 ** up)}:${group}`);
			if (t) {
				ret.push({ tile: t, from: index * span, to: (index + 1) * span });
				return;
			}
		}
		for (let k = 0; k < 2; k++) {
			const t = this.have.get(`${level - 1}:${index * 2 + k}:${group}`);
			if (t)
				ret.push({ tile: t, from: (index + k / 2) * span, to: (index + k / 2 + 0.5) * span });
		}
	}
	private pump(): void {
		while (this.flying < AT_ONCE && this.queue.length > 0) {
			const w = this.queue.shift()!;
			this.flying++;
			this.have.set(w.key, null);
			const span = Tiles.span(w.level);
			const [t0, t1] = [w.index * span, (w.index + 1) * span];
			const last = Math.min(this.lanes, (w.group + 1) * GROUP) - 1;
			getBytes(`${api(this.id, "window")}?t0=${t0}&t1=${t1}&px=${TILE_PX}&lanes=${w.group * GROUP}-${last}`)
				.then(
					(b) => {
						this.have.set(w.key, decode(b, t1));
						this.error = null;
					},
					(e: Error) => {
						this.have.delete(w.key);
						this.error = e;
						this.queue = []; // asked again when something moves
					},
				)
				.catch((e: Error) => {
					this.have.delete(w.key);
					this.error = e;
				})
				.finally(() => {
					this.flying--;
					for (const [k, t] of this.have) {
						if (this.have.size <= KEPT)
							break;
						if (t !== null)
							this.have.delete(k);
					}
					this.pump();
					this.onNew();
				});
		}
	}
}

// The first that is not before `at`.
export function lower(t: number[], at: number): number {
	let [lo, hi] = [0, t.length];
	while (lo < hi) {
		const mid = (lo + hi) >> 1;
		if (t[mid] < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}
