// SPDX-License-Identifier: MIT. A server of made-up sessions for the tests of the page: any size, any name, nothing random.
// As a program: node mock.mjs [PORT]; session ids say what is in them (SESSIONS below).
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const DIST = join(dirname(fileURLToPath(import.meta.url)), "../../viewer/web/dist");
const FAMILIES = ["gemm", "attention", "norm", "elementwise", "optimizer", "comm", "copy", "other"];
const KINDS = ["root", "scope", "state", "op", "frame", "kernel", "copy", "set", "captured"];

// Names that would do something if they were put on the page as anything but text.
export const HOSTILE = [
	"<img src=x onerror=\"window.hit=1\">", "</script><script>window.hit=1</script>", "a\u202Ekcab\u202Cb", "javascript:window.hit=1", "\u0000\u0007bell\n\nlines",
	"${window.hit=1}", "{{constructor.constructor('window.hit=1')()}}", "\u200b\u200b", "", "x".repeat(300), "M".repeat(65536), "\ud800lone", "__proto__", "constructor",
	"&lt;b&gt;", "'\"><svg onload=window.hit=1>",
];

// A generator that says the same each time.
export function dice(seed) {
	let s = seed >>> 0;
	return () => {
		s = (Math.imul(s, 1664525) + 1013904223) >>> 0;
		return s / 4294967296;
	};
}

export function makeTree(n, names) {
	const r = dice(n + 7);
	const t = { names: [...new Set(["ROOT", ...names])], kinds: KINDS, families: FAMILIES, main: "gpu_time", warnings: [], recorded: {}, metrics: [
		{ name: "gpu_time", unit: "ns", inclusive: true, self: "gpu_time_self" }, { name: "count", unit: "", inclusive: true, self: null },
		{ name: "cpu_time", unit: "ns", inclusive: true, self: null }, { name: "p50", unit: "ns", inclusive: false, self: null }, { name: "p99", unit: "ns", inclusive: false, self: null },
	], node: { name: [], kind: [], parent: [], size: [], family: [] }, values: { gpu_time: [], gpu_time_self: [], count: [], cpu_time: [], p50: [], p99: [] } };
	const add = (name, kind, parent, family) => {
		t.node.name.push(name);
		t.node.kind.push(kind);
		t.node.parent.push(parent);
		t.node.size.push(1);
		t.node.family.push(family);
		for (const k of Object.keys(t.values))
			t.values[k].push(null);
		return t.node.name.length - 1;
	};
	if (n > 0)
		add(0, 0, -1, null);
	const open = [0];
	while (t.node.name.length < n) {
		const leaf = r() < 0.55 && open.length > 2;
		const half = (t.names.length - 1) / 2; // scopes have the first names, kernels the last
		const i = add(1 + Math.floor((leaf ? half : 0) + r() * half), leaf ? 5 : 1, open[open.length - 1], leaf ? Math.floor(r() * FAMILIES.length) : null);
		if (leaf) {
			const c = 1 + Math.floor(r() * 40);
			const each = Math.floor(1000 + 400000 * r() ** 3);
			Object.entries({ gpu_time_self: each * c, count: c, p50: each, p99: each * 2 }).forEach(([k, v]) => (t.values[k][i] = v));
		} else if (open.length < 12)
			open.push(i);
		while (open.length > 1 && r() < 0.3)
			open.pop();
	}
	for (let i = n - 1; i >= 0; i--) {
		const p = t.node.parent[i];
		t.values.gpu_time[i] = (t.values.gpu_time[i] ?? 0) + (t.values.gpu_time_self[i] ?? 0);
		t.values.cpu_time[i] = t.node.kind[i] === 5 ? null : Math.floor((t.values.gpu_time[i] ?? 0) * 1.3 + 5000);
		if (p >= 0) {
			t.node.size[p] += t.node.size[i];
			t.values.gpu_time[p] = (t.values.gpu_time[p] ?? 0) + t.values.gpu_time[i];
			t.values.count[p] = (t.values.count[p] ?? 0) + (t.values.count[i] ?? 0);
		}
	}
	// As the server says it: preorder and depth; of what has a self, only that.
	const depth = t.node.parent.map(() => 0);
	t.node.parent.forEach((p, i) => (depth[i] = p < 0 ? 0 : depth[p] + 1));
	delete t.node.parent;
	delete t.node.size;
	t.node.depth = depth;
	if (n > 0)
		t.values.gpu_time_self = t.values.gpu_time_self.map((v) => v ?? 0);
	t.gpu_time = t.values.gpu_time;
	delete t.values.gpu_time;
	return t;
}

export function makeOps(n, names) {
	const r = dice(n + 3);
	const rows = Object.fromEntries("name names family class count total avg p50 p99 min max grid_x grid_y grid_z block_x block_y block_z registers static_shared dynamic_shared hist".split(" ").map((k) => [k, []]));
	for (let i = 0; i < n; i++) {
		const count = 1 + Math.floor(r() * 500);
		const avg = Math.floor(1000 + 300000 * r() ** 4);
		const row = { name: i % names.length, names: 3, family: FAMILIES[i % FAMILIES.length], class: "compute", count, total: count * avg, avg, p50: avg, p99: avg * 2, min: avg / 2, max: avg * 3,
			grid_x: 128, grid_y: 1, grid_z: 1, block_x: 256, block_y: 1, block_z: 1, registers: 32, static_shared: 1024, dynamic_shared: 0,
			hist: [Array.from({ length: 25 }, (_, k) => Math.round(avg * 1.2 ** (k - 9))), Array.from({ length: 24 }, (_, k) => Math.floor(count * Math.exp(-((k - 9) ** 2) / 9) * 0.2))] };
		for (const k of Object.keys(rows))
			rows[k].push(row[k]);
	}
	return { names, column: rows, warnings: [] };
}

export function makeSteps(n, ranks = 1) {
	const s = Object.fromEntries("process step tid start duration gpu_busy compute copy comm idle_launch idle_host".split(" ").map((k) => [k, []]));
	const peak = [];
	for (let k = 0; k < ranks; k++) {
		const r = dice(11 + k);
		let t = 1e6;
		for (let i = 1; i <= n; i++) {
			const d = Math.floor(2e7 * (1 + 0.1 * r()) * (i % 37 === 19 ? 2.4 : 1) * (k === 3 ? 1.35 : 1));
			const row = { process: k, step: i, tid: 4711, start: t, duration: d, gpu_busy: d * 0.62, compute: d * 0.5, copy: d * 0.04, comm: d * 0.08, idle_launch: d * 0.1, idle_host: d * 0.28 };
			for (const c of Object.keys(s))
				s[c].push(row[c]);
			peak.push(4e9 + i * 5e6);
			t += d;
		}
	}
	return { processes: Array.from({ length: ranks }, (_, k) => ({ pid: 4711 + k, rank: ranks > 1 ? k : null })), column: s, values: n > 0 ? [{ name: "memory_peak", unit: "bytes", v: peak }] : [], warnings: [] };
}

export function makeSeries(n, count = 4) {
	const r = dice(5);
	const names = [["loss", ""], ["memory allocated", "bytes"], ["memory reserved", "bytes"], ["gpu power", "W"], ["tokens per second", "1/s"]].slice(0, count);
	return { series: names.map(([name, unit], k) => {
		const t = [], v = [];
		for (let i = 0; i < n; i++) {
			t.push(i * 2e7);
			v.push(unit === "bytes" ? 4e9 + 1e9 * Math.sin(i / 9) + k * 1e9 : k === 0 ? 2 + 8 * Math.exp(-i / (n / 4)) + r() * 0.2 : 300 + 60 * r());
		}
		return { name, unit, process: 4711, t, v };
	}) };
}

export function makeRanks(n, names) {
	const processes = Array.from({ length: n }, (_, k) => ({ pid: 4711 + k, rank: k, total: 1e9 * (k === 3 ? 1.35 : 1) }));
	const path = names.slice(0, 10).map((_, i) => (i === 0 ? [0] : [0, i]));
	const values = path.map((_, i) => processes.map((_, k) => (10 - i) * 1e8 * (k === 3 ? 1.4 : 1 + k / 1000)));
	const sorted = values.map((v) => [...v].sort((x, y) => x - y));
	return { processes, metric: "gpu_time", names, recorded: {}, warnings: [], values, column: { path, class: path.map(() => "compute"), in: path.map(() => n), min: sorted.map((v) => v[0]),
		median: sorted.map((v) => v[v.length >> 1]), max: sorted.map((v) => v[v.length - 1]), slowest: values.map((v) => v.indexOf(Math.max(...v))) } };
}

// --- a timeline: `events` slices in lanes, each as long as its place in a fixed grid says -----------------------------

export function makeLanes(threads, streams) {
	const lane = [];
	for (let i = 0; i < threads; i++)
		lane.push({ id: lane.length, kind: "thread", process: 4711, rank: null, name: i === 0 ? "main" : `worker ${i}`, parent: null, rows: 4 });
	for (let i = 0; i < streams; i++)
		lane.push({ id: lane.length, kind: "stream", process: 4711, rank: null, name: `GPU 0 stream ${7 + i * 6}`, parent: null, rows: 1 });
	return lane;
}

const PERIOD = 20_000; // ns of one event in a lane

export class Line {
	constructor(events, threads, streams, names) {
		this.lane = makeLanes(threads, streams);
		this.names = names;
		this.rows = this.lane.flatMap((l) => Array.from({ length: l.rows }, (_, d) => ({ lane: l.id, depth: d })));
		this.each = Math.max(1, Math.floor(events / this.rows.length));
		this.t1 = this.each * PERIOD;
	}
	one(row, i) {
		const h = Math.imul(i * 31 + row * 17 + 5, 2654435761) >>> 0;
		return { start: i * PERIOD + (h % 2000), dur: 3000 + (h >>> 8) % 14000, name: (h >>> 4) % this.names.length, id: (row * 16777216 + i + 1) % 2 ** 32 };
	}
	window(t0, t1, px, lanes) {
		const per = (t1 - t0) / px;
		const rows = this.rows.map((r, row) => ({ ...r, row })).filter((r) => lanes.has(r.lane));
		const first = Math.max(0, Math.floor(t0 / PERIOD) - 1);
		const last = Math.min(this.each, Math.ceil(t1 / PERIOD));
		// What is shorter than a pixel is merged, and more where there is too much for an answer.
		const merge = Math.max(per, ((last - first) * PERIOD * rows.length) / 8000);
		const n = Math.max(1, Math.floor(merge / PERIOD));
		const slices = [];
		for (const { lane, depth, row } of rows)
			for (let i = first - (first % n); i < last; i += n) {
				const a = this.one(row, i);
				slices.push(n === 1 ? [a.start, a.dur, a.name, a.id, 1, lane, depth] : [a.start, Math.min(last - i, n) * PERIOD * 0.7, a.name, 0, Math.min(last - i, n), lane, depth]);
			}
		return { slices, per, truncated: merge > per ? 1 : 0 };
	}
	tile(q) {
		const [t0, t1, px] = ["t0", "t1", "px"].map((k) => Number(q.get(k)));
		const lanes = new Set();
		for (const part of (q.get("lanes") ?? "").split(",")) {
			const [a, b] = part.split("-").map(Number);
			for (let i = a; i <= (b ?? a); i++)
				lanes.add(i);
		}
		const { slices, per, truncated } = this.window(t0, t1, px, lanes);
		// Only the names that are in it.
		const place = new Map();
		for (const s of slices) {
			if (!place.has(s[2]))
				place.set(s[2], place.size);
			s[2] = place.get(s[2]);
		}
		return packTile(t0, per, truncated, slices, [...place.keys()].map((i) => this.names[i]), lanes.size);
	}
}

export function packTile(t0, per, flags, slices, names, nlanes) {
	const n = slices.length;
	const text = names.map((s) => Buffer.from(s));
	const head = 40;
	const nameBytes = text.reduce((s, b) => s + 4 + b.length, 0);
	const cols = n * (8 + 4 + 4 + 4 + 4 + 2 + 2);
	const buf = Buffer.alloc(head + Math.ceil(cols / 4) * 4 + nameBytes);
	buf.write("PTL1", 0, "latin1");
	[nlanes, n, names.length].forEach((v, i) => buf.writeUInt32LE(v, 4 + i * 4));
	buf.writeDoubleLE(t0, 16);
	buf.writeDoubleLE(per, 24);
	buf.writeUInt32LE(flags, 32);
	buf.writeUInt32LE(nameBytes, 36);
	let at = head;
	[["writeDoubleLE", 8], ["writeFloatLE", 4], ["writeUInt32LE", 4], ["writeUInt32LE", 4], ["writeUInt32LE", 4], ["writeUInt16LE", 2], ["writeUInt16LE", 2]].forEach(([w, size], k) => {
		for (const s of slices) {
			buf[w](s[k], at);
			at += size;
		}
	});
	at = head + Math.ceil(cols / 4) * 4;
	for (const b of text) {
		at = buf.writeUInt32LE(b.length, at);
		at += b.copy(buf, at);
	}
	return buf;
}

// --- sessions ---------------------------------------------------------------------------------------------------------

const WORDS = ["step", "forward", "backward", "optimizer", "attn", "mlp", "layer_norm", "embed", "loss", "data loader",
	"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul>>(int, float)", "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_TNN",
	"fmha_cutlassB_f32_aligned_64x64_k64_dropout_sm80", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "[memcpy HtoD]", "softmax_warp_forward"];

// [tree, operations, steps, series, ranks, events, names]
export const SESSIONS = {
	1: ["train", 400, 60, 120, 400, 8, 200_000, WORDS],
	2: ["train", 380, 58, 110, 400, 8, 20_000, WORDS],
	empty: ["empty", 0, 0, 0, 0, 0, 0, WORDS],
	one: ["one", 2, 1, 1, 1, 1, 1, WORDS],
	many: ["many", 10_000, 10_000, 10_000, 4000, 16, 1_000_000, WORDS],
	huge: ["huge", 100_000, 5000, 1000, 4000, 8, 1_000_000, Array.from({ length: 5000 }, (_, i) => `void kernel_${i}<float, ${i % 7}>(float*)`)],
	hostile: [HOSTILE[0], 300, HOSTILE.length, 20, 40, 2, 1000, HOSTILE],
	long: ["n".repeat(300), 60, 20, 20, 40, 2, 1000, Array.from({ length: 20 }, (_, i) => `${i}_` + "a_name_of_three_hundred_characters::".repeat(9).slice(0, 296))],
	live: ["training now", 200, 40, 60, 60, 0, 20_000, WORDS],
	tree: ["tree only", 60, 20, 0, 0, 0, 0, WORDS],
	rtl: ["אימון (1)", 60, 20, 20, 40, 2, 1000, ["צעד (1)", "קדימה[2]", "خطوة_3", "رأس 4: mlp", "שכבה.5", "אחורה 6", "خسارة", "step", "embed 7 (שלום)", "נרמול"]],
	threads: ["threads", 200, 40, 0, 0, 0, 100_000, WORDS],
};

const made = new Map();
function once(key, make) {
	if (!made.has(key))
		made.set(key, make());
	return made.get(key);
}

const lineOf = (id) => once(`line ${id}`, () => new Line(SESSIONS[id][6], ...({ many: [4, 8], huge: [8, 16], threads: [10_000, 4] }[id] ?? [2, 2]), SESSIONS[id][7]));

// One of each severity, with names of its own session in every place where a job's text may stand; none of an empty one.
function makeVerdicts(id, names) {
	const rule = (rule, state, more = {}) => ({ rule, state, what: `what ${rule} looks for`, threshold: 5, unit: "% of the steps", note: null, lacks: [], record: [], ...more });
	const verdicts = id === "empty" ? [] : ["HIGH", "MEDIUM", "LOW"].map((severity, i) => ({
		rule: `rule_${severity.toLowerCase()}`, severity, words: `It takes ${40 - 10 * i}.0% of the steps.`, advice: "Do `less` of it.", view: i ? "steps" : "tree", share: 0.4 - 0.1 * i, gain: i ? null : 8e8, gain_step: i ? null : 1.7e7,
		gain_share: i ? null : 0.4, of: "of the steps", where: i ? [] : names.slice(0, 3), name: i ? null : names[2 % names.length], line: i ? null : `${names[0]}:42@train`, time: [20e6, 24e6], mark: i ? null : [21e6, 22e6],
	}));
	return { verdicts, rules: [...verdicts.map((v) => rule(v.rule, "found")), rule("data_loader", "clean", { note: "seen, and harmless" }), rule("jitter", "unsure", { note: "too few steps" }), rule("sync", "lacks", { lacks: ["calls that wait"], record: ["protonctl run -s sync, or start -s sync"] })] };
}

function meta(id) {
	const [name, tree, , steps, series, ranks, events] = SESSIONS[id];
	const t1 = events > 0 ? lineOf(id).t1 : 2.4e9;
	const has = { timeline: events > 0, steps: steps > 0, memory: series > 0, series: series > 0, ranks: ranks > 1 };
	const busy = tree > 1 ? t1 * 0.71 : 0;
	return { session: { name, id, state: id === "live" ? "active" : "finalized", command: `python3 train.py --name ${name}`, source: "job", created_ns: 1795633967184671773, duration_ns: t1,
		devices: tree > 0 ? [{ type: "CUDA", id: "0", name: "NVIDIA H200", busy_ns: busy }] : [], launches: tree * 24, unmatched: 0,
		drops: id === "hostile" ? [{ cause: "lane_full", count: 3, exact: true, words: HOSTILE[1] }] : [], notes: id === "hostile" ? [HOSTILE[0]] : [], overhead: 0.0062,
		...(id === "1" ? { overhead_in_calls: { driver_ns: 3.1e6, cupti_ns: 1.2e6, other_ns: 0 } } : {}) },
	ref: id, live: id === "live", lost: id === "hostile" ? 3 : 0, steps, has, processes: [{ pid: 4711, rank: ranks > 1 ? 0 : null, host: "node7", end: "exited" }],
	lacks: Object.entries(has).filter(([, v]) => !v).map(([what]) => ({ what, words: "", switch: what === "timeline" ? "protonctl run -d trace -- CMD" : "protonctl run -k torch -d trace -- CMD" })),
	warnings: [], summary: busy > 0 ? { devices: [{ device: 0, busy_ns: busy, idle_ns: t1 * 0.29 }], compute_ns: t1 * 0.55, copy_ns: t1 * 0.04, comm_ns: t1 * 0.12,
		...(steps > 0 ? { steps_per_s: 48.1, step_p50_ns: 2.08e7, step_p99_ns: 4.9e7 } : {}) } : {} };
}

function diff(a) {
	const x = makeTree(SESSIONS[a][1], SESSIONS[a][7]);
	const r = dice(9);
	const self = x.values.gpu_time_self;
	const { values, gpu_time, ...rest } = x;
	return { ...rest, metrics: [x.metrics[0]], before: { gpu_time_self: self }, after: { gpu_time_self: self.map((t) => Math.floor((t ?? 0) * (0.5 + r()))) } };
}

function answer(url) {
	const path = decodeURIComponent(url.pathname).replace(/^\//, "");
	const q = url.searchParams;
	if (path === "api/sessions")
		return { columns: "id name state source command created_ns duration_ns processes launches tags".split(" ").map((name) => ({ name, unit: name.endsWith("_ns") ? "ns" : "" })), open: ["1"],
			rows: Object.keys(SESSIONS).map((id, i) => [id, SESSIONS[id][0], "finalized", "job", `python3 train.py ${id}`, 1795633967184671773 + i * 1e12, 2.4e9, 1, SESSIONS[id][1] * 24, i === 0 ? "base" : ""]) };
	if (path === "api/diff")
		return diff(q.get("a"));
	const [, , id, what] = path.split("/");
	if (!path.startsWith("api/s/") || !(id in SESSIONS))
		return null;
	const [, tree, ops, steps, series, ranks, , names] = SESSIONS[id];
	switch (what) {
	case "meta": return meta(id);
	case "tree": return once(`tree ${id}`, () => makeTree(tree, names));
	case "ops": if (q.get("by") && ops > 0)
		return q.get("by") === "class" ? makeOps(1, ["compute"]) : makeOps(Math.min(ops, FAMILIES.length), FAMILIES);
		return makeOps(ops, names.slice(0, Math.max(1, ops)).concat(ops > names.length ? Array.from({ length: ops - names.length }, (_, i) => `kernel ${i}`) : []));
	case "steps": return makeSteps(steps, Math.max(1, ranks));
	case "series": return makeSeries(series);
	case "memory": return { accounts: series > 0 ? [{ process: 4711, rank: -1, device: "cuda:0", kind: "torch_allocated", now: 3 << 20, blocks: 3, peak: 5 << 20, peak_t: 2e9, allocs: 9, frees: 6,
		t: [0, 1e9, 2e9, 3e9], v: [0, 4 << 20, 5 << 20, 3 << 20], owners: [["step/forward", 3 << 20, 3, 4 << 20, 4 << 20], ["", 0, 0, 1 << 20, 1 << 20]],
		at: [0, 1e9, 2e9], lines: [{ path: "step/forward", v: [0, 4 << 20, 4 << 20] }] }] : [] };
	case "ranks": return ranks > 1 ? makeRanks(ranks, names) : null;
	case "bottlenecks": return makeVerdicts(id, names);
	case "lanes": return { lane: lineOf(id).lane, t0: 0, t1: lineOf(id).t1 };
	case "window": return lineOf(id).tile(q);
	case "counters": { // what the series has only some of: up and down within each pixel
		const all = Array.from({ length: 500 }, (_, i) => 2 * i);
		return { px: Number(q.get("px")), counter: [{ name: "loss", process: 4711, before: 0, px: all, min: all.map(() => 0), max: all.map(() => 9), last: all.map(() => 0) }] };
	}
	case "arrows": return { from_lane: [0, 0], from: [PERIOD, 3 * PERIOD], to_lane: [lineOf(id).lane.length - 1, lineOf(id).lane.length - 1], to: [2 * PERIOD, 5 * PERIOD] };
	case "event": if (q.get("id") === "4242")
		return { name: "cudaStreamSynchronize", path: [], class: "stream_sync", lane: 0, depth: 0, start_ns: 20090000, dur_ns: 20000, ended_by: { name: "sgemm", event: 99, lane: 1, depth: 0, start_ns: 20100000, dur_ns: 5000 } };
		return { name: names[Number(q.get("id")) % names.length], path: ["step", "forward"], thread: 4711, stream: 7, grid: "128 × 1 × 1", block: "256 × 1 × 1", registers: 32, shared_bytes: 1024, launch_delay_ns: 12345 };
	case "sums": return { name: names.slice(0, 5), count: [5, 4, 3, 2, 1], total: [5e6, 4e6, 3e6, 2e6, 1e6], min: [1e3, 1e3, 1e3, 1e3, 1e3], max: [2e6, 2e6, 2e6, 2e6, 1e6], rest: { names: 2, count: 7, total: 4e5 } };
	case "find": {
		const line = lineOf(id);
		const dir = q.get("dir") === "prev" ? -1 : 1;
		for (let i = Math.floor(Number(q.get("from")) / PERIOD) + dir; i >= 0 && i < line.each; i += dir) {
			const e = line.one(line.rows.length - 1, i);
			if (names[e.name] === q.get("name"))
				return { found: true, id: e.id, lane: line.lane.length - 1, start: e.start, dur: e.dur };
		}
		return { found: false };
	}
	default: return null;
	}
}

export function serve(port = 0) {
	let live = 0;
	const server = createServer((req, res) => {
		const url = new URL(req.url, "http://localhost");
		res.setHeader("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'");
		if (url.pathname === "/api/live") {
			res.writeHead(200, { "Content-Type": "text/event-stream" });
			let n = 0;
			live++;
			const send = () => res.write(`data: ${JSON.stringify({ steps: 1200 + n, step_rate: 48 + Math.sin(n), busy: 0.7 + 0.1 * Math.sin(n / 3), drops: 0, top: WORDS.slice(0, 12).map((name, i) => ({ name, time: 2e8 / (i + 1), count: 80 - i, p50: 2e6, p99: 4e6 })) })}\n\n`);
			send();
			const beat = setInterval(() => (n++, send()), 250);
			req.on("close", () => {
				live--;
				clearInterval(beat);
			});
			return;
		}
		const file = { "/": ["index.html", "text/html"], "/index.html": ["index.html", "text/html"], "/app.js": ["app.js", "text/javascript"], "/app.css": ["app.css", "text/css"] }[url.pathname];
		if (file) {
			res.setHeader("Content-Type", `${file[1]}; charset=utf-8`);
			res.end(readFileSync(join(DIST, file[0])));
			return;
		}
		const a = answer(url);
		if (a === null) {
			res.writeHead(404, { "Content-Type": "application/json" });
			res.end(JSON.stringify({ protond: "1", kind: "web", error: { code: -2, text: `there is no ${url.pathname} (\`protonview sessions\` lists what there is)` }, warnings: [] }));
		} else if (Buffer.isBuffer(a)) {
			res.setHeader("Content-Type", "application/octet-stream");
			res.end(a);
		} else {
			res.setHeader("Content-Type", "application/json");
			res.end(JSON.stringify(a));
		}
	});
	return new Promise((done) => server.listen(port, "127.0.0.1", () => done({ server, live: () => live, url: `http://127.0.0.1:${server.address().port}/` })));
}

if (process.argv[1] === fileURLToPath(import.meta.url))
	console.log((await serve(Number(process.argv[2] ?? 8080))).url);
