// SPDX-License-Identifier: MIT. model.ts: a tree in typed arrays, in preorder: a node's children follow it, and its
// subtree is `size` long. Layouts of it are made here: nested by order of siblings, turned over, and of two.
import type { Metric, TreeAnswer } from "./api";
import { delta, shade } from "./color";
import { brief, shown } from "./format";

export interface Words {
	raw: string[]; // as the server says them: what a name is known by
	names: string[]; // as shown
	briefs: string[];
}

export interface Tree extends Words {
	n: number;
	recorded: Record<string, string>; // by number, where it is another text
	name: Uint32Array;
	kind: Uint8Array;
	kinds: string[];
	family: string[]; // of each node: what it is coloured by
	parent: Int32Array;
	size: Uint32Array;
	depth: Uint16Array;
	metrics: Metric[];
	values: Record<string, Float64Array>;
	main: string; // the metric to look at first
	warnings: string[];
}

function summed(self: Float64Array, parent: Int32Array): Float64Array {
	const ret = Float64Array.from(self, (v) => (v === v ? v : 0));
	const any = Uint8Array.from(self, (v) => (v === v ? 1 : 0));
	for (let i = ret.length - 1; i > 0; i--)
		if (parent[i] >= 0) {
			ret[parent[i]] += ret[i];
			any[parent[i]] |= any[i];
		}
	return ret.map((v, i) => (any[i] ? v : NaN));
}

const wordAt = (words: string[] | undefined, i: number | null | undefined): string | undefined => (i === null || i === undefined ? undefined : words?.[i] || undefined);

// Scopes have a class too, that of what is not a GPU's: their kind says more.
const wordOfClass = (word: string | undefined): string | undefined => (word === "cpu" ? undefined : word);

export function treeFrom(a: TreeAnswer): Tree {
	const n = a.node.name.length;
	const names = a.names.map(shown);
	const parent = new Int32Array(n).fill(-1);
	const size = new Uint32Array(n).fill(1);
	const depth = Uint16Array.from(a.node.depth);
	// Preorder and depth say all: the parent is the last one that is less deep.
	const open: number[] = [];
	for (let i = 0; i < n; i++) {
		while (open.length > 0 && depth[open[open.length - 1]] >= depth[i])
			open.pop();
		parent[i] = open.length > 0 ? open[open.length - 1] : -1;
		open.push(i);
	}
	for (let i = n - 1; i > 0; i--)
		if (parent[i] >= 0)
			size[parent[i]] += size[i];
	const family: string[] = new Array(n);
	const values: Record<string, Float64Array> = {};
	for (let i = 0; i < n; i++) {
		family[i] = a.kinds[a.node.kind[i]] === "call" ? "call" : wordAt(a.families, a.node.family?.[i]) ?? wordOfClass(wordAt(a.classes, a.node.class?.[i])) ?? wordAt(a.kinds, a.node.kind[i]) ?? "other";
	}
	const take = (name: string) => a.values[name] && (values[name] = Float64Array.from(a.values[name], (v) => (v === null ? NaN : v)));
	for (const m of a.metrics) {
		const self = m.self ? take(m.self) : undefined;
		if (self) // what it is with all below it is their sum
			values[m.name] = summed(self, parent);
		else
			take(m.name);
	}
	return {
		n, raw: a.names, names, recorded: a.recorded ?? {}, main: a.main ?? "", warnings: a.warnings ?? [], briefs: names.map(brief), name: Uint32Array.from(a.node.name), kind: Uint8Array.from(a.node.kind),
		kinds: a.kinds, family, parent, size, depth,
		metrics: a.metrics.filter((m) => values[m.name]), values,
	};
}

export function pathOf(t: Tree, node: number): number[] {
	const ret: number[] = [];
	for (let i = node; i >= 0 && ret.length < 300; i = t.parent[i])
		ret.push(i);
	return ret.reverse();
}

export function childrenOf(t: Tree, node: number): number[] {
	const ret: number[] = [];
	for (let i = node + 1, end = node + t.size[node]; i < end; i += t.size[i] || 1)
		ret.push(i);
	return ret;
}

// What is drawn: boxes in preorder, x and w in the metric's unit.
export interface Layout {
	n: number;
	x: Float64Array;
	w: Float64Array;
	depth: Uint16Array;
	size: Uint32Array;
	color: string[];
	name: Uint32Array; // into the tree's names
	node: Int32Array; // of the tree; −1 where a box is of several
	value: Float64Array; // what is said of it
	depths: number;
}

// A name that is a number's: "copy_bytes (inc)" of which people need only the first word.
export const label = (m: { name: string }): string => m.name.replace(/( \((inc|exc|ns|bytes)\))+$/, "").replaceAll("_", " ").replace(/\b[cg]pu\b/g, (w) => w.toUpperCase());
// What a metric is in: bytes are told by their name alone.
export const unitFor = (m: Metric): string => (m.unit === "" && /bytes/.test(m.name) ? "bytes" : m.unit);

// The metrics that are columns of a tree: those of one's own beside what they are inclusive of.
export function columnsOf(t: Tree): Metric[] {
	return t.metrics.flatMap((m) => {
		const self = m.self ? t.values[m.self] : undefined;
		return self ? [m, { name: m.self!, unit: m.unit, inclusive: false, self: null }] : [m];
	});
}

// The first metric that has anything.
export function mainOf(t: Tree): Metric | undefined {
	const any = (m: Metric | undefined) => m && t.values[m.name].some((v) => v > 0);
	const main = t.metrics.find((m) => m.name === t.main);
	return any(main) ? main : t.metrics.find((m) => m.inclusive && any(m)) ?? t.metrics[0];
}

// A node is as wide as what it has or its children have, whichever is more: a scope's own time may be missing.
function widths(t: Tree, v: Float64Array): Float64Array {
	const w = new Float64Array(t.n);
	const sum = new Float64Array(t.n);
	for (let i = t.n - 1; i >= 0; i--) {
		w[i] = Math.max(v[i] > 0 ? v[i] : 0, sum[i]);
		if (t.parent[i] >= 0)
			sum[t.parent[i]] += w[i];
	}
	return w;
}

export type Order = "value" | "seen" | "name";

export function blank(n: number): Layout {
	return {
		n: 0, x: new Float64Array(n), w: new Float64Array(n), depth: new Uint16Array(n), size: new Uint32Array(n), color: new Array(n),
		name: new Uint32Array(n), node: new Int32Array(n), value: new Float64Array(n), depths: 0,
	};
}

export function nested(t: Tree, v: Float64Array, order: Order, colorOf?: (node: number) => string): Layout {
	const w = widths(t, v);
	const l = blank(t.n);
	const at = new Float64Array(t.n); // where the next child of a node goes
	const boxOf = new Int32Array(t.n).fill(-1);
	const stack: number[] = t.n > 0 ? [0] : [];
	while (stack.length > 0) {
		const i = stack.pop()!;
		const p = t.parent[i];
		const b = l.n++;
		boxOf[i] = b;
		l.x[b] = p >= 0 ? at[p] : 0;
		if (p >= 0)
			at[p] += w[i];
		at[i] = l.x[b];
		l.w[b] = w[i];
		l.depth[b] = t.depth[i];
		l.depths = Math.max(l.depths, t.depth[i] + 1);
		l.color[b] = colorOf ? colorOf(i) : shade(t.family[i], t.briefs[t.name[i]]);
		l.name[b] = t.name[i];
		l.node[b] = i;
		l.value[b] = w[i];
		const c = childrenOf(t, i).filter((k) => w[k] > 0);
		if (order === "value")
			c.sort((a, k) => w[k] - w[a]);
		else if (order === "name")
			c.sort((a, k) => (t.names[t.name[a]] < t.names[t.name[k]] ? -1 : 1));
		for (let k = c.length - 1; k >= 0; k--)
			stack.push(c[k]);
	}
	sizes(l);
	return l;
}

export function sizes(l: Layout): void {
	const stack: number[] = [];
	for (let b = 0; b <= l.n; b++) {
		while (stack.length > 0 && (b === l.n || l.depth[stack[stack.length - 1]] >= l.depth[b])) {
			const done = stack.pop()!;
			l.size[done] = b - done;
		}
		stack.push(b);
	}
}

const MAX_TURNED = 300_000;

// Bottom up: the roots are names by what they have themselves, below each its callers. `only` keeps one name.
export function turned(t: Tree, own: Float64Array, only = -1): Layout {
	const name: number[] = [-1];
	const parent: number[] = [-1];
	const value: number[] = [0];
	const first: number[] = [-1];
	const times: number[] = [0];
	const child = new Map<number, number>();
	const step = (p: number, nm: number, v: number, node: number): number => {
		const key = p * t.raw.length + nm;
		let c = child.get(key);
		if (c === undefined) {
			if (name.length >= MAX_TURNED)
				return -1;
			c = name.length;
			child.set(key, c);
			name.push(nm);
			parent.push(p);
			value.push(0);
			first.push(node);
			times.push(0);
		}
		value[c] += v;
		times[c]++;
		return c;
	};
	for (let i = 1; i < t.n; i++) {
		if (!(own[i] > 0) || (only >= 0 && t.name[i] !== only))
			continue;
		value[0] += own[i];
		for (let k = i, p = 0; k > 0 && p >= 0; k = t.parent[k])
			p = step(p, t.name[k], own[i], k);
	}
	const n = name.length;
	const kids: number[][] = Array.from({ length: n }, () => []);
	for (let i = 1; i < n; i++)
		kids[parent[i]].push(i);
	const l = blank(n);
	const stack: [number, number, number][] = [[0, 0, 0]];
	while (stack.length > 0) {
		const [i, x, d] = stack.pop()!;
		const b = l.n++;
		l.x[b] = x;
		l.w[b] = l.value[b] = value[i];
		l.depth[b] = d;
		l.depths = Math.max(l.depths, d + 1);
		l.name[b] = i === 0 ? t.name[0] ?? 0 : name[i];
		l.node[b] = i === 0 ? 0 : times[i] === 1 ? first[i] : -1;
		l.color[b] = i === 0 ? shade("root", "") : shade(t.family[first[i]], t.briefs[name[i]]);
		kids[i].sort((a, k) => value[a] - value[k]);
		let end = x + kids[i].reduce((s, k) => s + value[k], 0);
		for (const k of kids[i]) {
			end -= value[k];
			stack.push([k, end, d + 1]);
		}
	}
	sizes(l);
	return l;
}

// Two trees in one: a box is as wide as the larger of both, coloured by the change.
export function differing(t: Tree, a: Float64Array, b: Float64Array): Layout {
	const most = Float64Array.from(a, (v, i) => Math.max(v > 0 ? v : 0, b[i] > 0 ? b[i] : 0));
	return nested(t, most, "value", (i) => delta(a[i] > 0 ? a[i] : 0, b[i] > 0 ? b[i] : 0));
}

// Self of an inclusive metric, where the answer has it; else what the children leave.
export function ownOf(t: Tree, metric: string): Float64Array {
	const self = t.values[t.metrics.find((m) => m.name === metric)?.self ?? ""];
	if (self)
		return self;
	const v = t.values[metric] ?? new Float64Array(t.n);
	const ret = Float64Array.from(v, (x) => (x > 0 ? x : 0));
	for (let i = 1; i < t.n; i++)
		if (v[i] > 0)
			ret[t.parent[i]] = Math.max(0, ret[t.parent[i]] - v[i]);
	return ret;
}
