// SPDX-License-Identifier: MIT. ops.tsx: kernels and copies: each, by family, class, stream, operator, stack.
import { useMemo } from "preact/hooks";
import { api, type Bars, type Cell, get, type Lanes, type Ops, type Sums } from "../api";
import { family } from "../color";
import { chain, column, group, most, nameKey, percent, shown, sums, time } from "../format";
import { ownOf, pathOf } from "../model";
import { Choice, Find, Lacking, Loaded } from "../parts";
import { matcher, selectName, selectNode, useOps, useSession, useTree } from "../session";
import { set, usePromise } from "../state";
import { type Col, COUNTS, headWidth, numbers, Table } from "../table";

const NUM: [string, string, string, boolean][] = [
	["total", "Total", "ns", true], ["count", "Count", "", false], ["avg", "Average", "ns", false], ["p50", "p50", "ns", false], ["p99", "p99", "ns", false],
	["min", "Least", "ns", false], ["max", "Most", "ns", false],
];

const nums = (o: Ops, key: string): number[] => (o.column[key] ?? []).map((v) => (typeof v === "number" ? v : NaN));

export function wordOf(o: Ops, key: string, row: number): string {
	const v: Cell | undefined = o.column[key]?.[row];
	if (v === null || v === undefined)
		return "";
	return shown(String(v));
}

export function OpsTab() {
	const of = useOps();
	return <div class="fill"><Loaded of={of}>{(o) => <OpsView o={o} />}</Loaded></div>;
}

const BY: [string, string][] = [["", "kernel"], ["family", "family"], ["class", "class"], ["stream", "stream"], ["op", "operator and shapes"], ["stack", "stack"]];

const headOf = (by: string) => by ? BY.find(([k]) => k === by)![1].replace(/^./, (x) => x.toUpperCase()) : "Kernel or copy";

function OpsView({ o }: { o: Ops }) {
	const { h } = useSession();
	const q = h.q ?? "";
	const by = h.by ?? "";
	const names = useMemo(() => o.names.map(shown), [o]);
	const total = useMemo(() => nums(o, "total"), [o]);
	const all = total.reduce((s, v) => s + (v || 0), 0);
	const match = matcher(q);
	const rows = useMemo(() => o.column.name.map((_, i) => i).filter((i) => !match || match(names[o.column.name[i]]) || match(wordOf(o, "family", i))), [o, q, names]);
	return (
		<>
			<div class="bar-of">
				<Find note={q ? `${rows.length} found, ${percent(rows.reduce((s, r) => s + (total[r] || 0), 0), all)}` : ""} />
				<Choice label="by" value={by} of={BY} onChange={(s) => set({ by: s, osort: "", group: "" })} />
			</div>
			{by === "stream" ? <OfStreams all={all} /> : by === "op" || by === "stack" ? <OfTree o={o} by={by} q={q} /> : by ? <OfKind by={by} found={new Set(rows.map((r) => wordOf(o, by, r)))} /> : <Each o={o} rows={rows} by="" />}
		</>
	);
}

// All GPU work of a family or a class: rows as those of names are, histograms and all. found: those that have a name that is looked for.
function OfKind({ by, found }: { by: string; found: Set<string> }) {
	return <Loaded of={useOps(by)}>{(o) => <Each o={o} by={by} rows={o.column.name.map((_, i) => i).filter((i) => found.has(shown(o.names[o.column.name[i]])))} />}</Loaded>;
}

function Each({ o, rows, by }: { o: Ops; rows: number[]; by: string }) {
	const { h } = useSession();
	const names = useMemo(() => o.names.map(shown), [o]);
	const total = useMemo(() => nums(o, "total"), [o]);
	const all = total.reduce((s, v) => s + (v || 0), 0);
	const cols: Col[] = useMemo(() => {
		const ret: Col[] = [{
			key: "name", head: headOf(by), text: (r) => names[o.column.name[r]], title: (r) => names[o.column.name[r]], sort: (r) => names[o.column.name[r]],
			cell: (r) => <span class="v"><span class="dot" style={{ background: family(wordOf(o, "family", r) || wordOf(o, "class", r)) }}></span>{names[o.column.name[r]]}</span>,
		}];
		for (const k of by ? [] : ["family", "class"])
			if (o.column[k] && !(k === "class" && o.column.family))
				ret.push({ key: k, head: k[0].toUpperCase() + k.slice(1), width: 104, text: (r) => wordOf(o, k, r), sort: (r) => wordOf(o, k, r) });
		for (const [key, head, unit, share] of NUM) {
			if (!o.column[key])
				continue;
			const v = nums(o, key);
			const c = unit === "ns" && key !== "total" ? column(unit, nums(o, "avg"), nums(o, "p50"), nums(o, "p99")) : sums(unit, v);
			ret.push(numbers(key, head, Math.max(share ? 112 : 0, headWidth(`${head} ${c.unit}`, c.text(most(v)))), c, (r) => v[r], share ? all : undefined));
			if (share)
				ret.push({ key: "%", head: "%", num: true, width: 78, text: (r) => percent(v[r], all), sort: (r) => v[r] });
		}
		if (by) {
			const v = nums(o, "names");
			ret.push(numbers("names", "Names", 90, COUNTS, (r) => v[r]));
		}
		return ret;
	}, [o, names, all]);
	const is = by ? h.group : h.sel;
	const selected = is ? rows.find((r) => nameKey(o.names[o.column.name[r]]) === is) ?? -1 : -1;
	const select = (r: number) => by ? set({ group: nameKey(o.names[o.column.name[r]]) }) : selectName(o.names[o.column.name[r]]);
	return (
		<>
			<Table label="Kernels and copies" cols={cols} rows={rows} sort={h.osort || "-total"} onSort={(s) => set({ osort: s })} selected={selected}
				onSelect={select} onOpen={(r) => {
					select(r);
					set(by === "family" ? { q: names[o.column.name[r]], by: "" } : by ? {} : { tab: "flame", flame: "callers", z: "" });
				}} empty={h.q ? "No name has this in it." : "No work of a GPU was recorded."} />
			{selected >= 0 && <Histogram o={o} row={selected} total={total[selected]} />}
		</>
	);
}

function Histogram({ o, row, total }: { o: Ops; row: number; total: number }) {
	const [e, b] = (o.column.hist?.[row] as unknown as Bars) ?? [[], []];
	if (b.length === 0 || e.length !== b.length + 1)
		return null;
	const first = b.findIndex((v) => v > 0);
	const last = b.length - 1 - [...b].reverse().findIndex((v) => v > 0);
	if (first < 0)
		return null;
	const top = Math.max(...b);
	const bars = b.slice(first, last + 1);
	return (
		<figure class="hist">
			<figcaption>How long each of {group(bars.reduce((s, v) => s + v, 0))} took; {time(total)} in all</figcaption>
			<div class="bars" role="img" aria-label={bars.map((v, i) => `${time(e[first + i])}: ${v}`).slice(0, 60).join(", ")}>
				{bars.map((v, i) => <span key={i} title={`${time(e[first + i])} to ${time(e[first + i + 1])}: ${group(v)}`}><i style={{ height: `${Math.max(v > 0 ? 3 : 0, (100 * v) / top)}%` }}></i></span>)}
			</div>
			<div class="ends"><span>{time(e[first])}</span><span>{time(e[last + 1] ?? e[last])}</span></div>
		</figure>
	);
}

// What is grouped: by what the tree has above each (operator, stack), by the streams of the timeline.
interface Group {
	key: string | number;
	name: string;
	family: string;
	total: number;
	count: number;
	kinds: number;
	p50?: number | undefined;
	p99?: number | undefined;
	pick?: () => void;
	open?: () => void;
}

// `what`: name, family, total, count of each; those of one key are one group.
function gathered(what: Omit<Group, "kinds">[]): Group[] {
	const m = new Map<string | number, Group>();
	for (const w of what) {
		const g = m.get(w.key);
		if (!g) {
			m.set(w.key, { ...w, kinds: 1 });
			continue;
		}
		g.total += w.total;
		g.count += w.count;
		g.kinds++;
	}
	return [...m.values()];
}

// A path that ends in a kernel is a node: its own p50 and p99 are known.
function OfTree({ o, by, q }: { o: Ops; by: string; q: string }) {
	const { value: t } = useTree();
	const own = useMemo(() => t && ownOf(t, o.is_cpu ? "cpu_time" : "gpu_time"), [t, o]);
	const all = own?.reduce((s, v) => s + (v || 0), 0) ?? 0;
	const groups = useMemo(() => {
		const match = matcher(q);
		const stack = by === "stack";
		const what: Parameters<typeof gathered>[0] = [];
		const places: Group[] = [];
		for (let i = 1; t && own && i < t.n; i++) {
			if (!(own[i] > 0) || (match && !match(t.names[t.name[i]])))
				continue;
			const v = (k: string) => t.values[k]?.[i];
			const at = stack ? i : t.parent[i];
			const one = { family: t.family[at], total: own[i], count: (o.is_cpu ? v("calls") : v("count_self") ?? v("count")) || 0, pick: () => selectNode(t, at) };
			if (stack) // a path is written when it is seen: there may be 100 000
				places.push({ ...one, key: i, kinds: 1, p50: v("p50"), p99: v("p99"), get name() {
					return chain(pathOf(t, i).slice(1).reverse().map((k) => t.briefs[t.name[k]]), " ‹ ");
				} });
			else
				what.push({ ...one, key: t.name[at], name: t.names[t.name[at]] });
		}
		return stack ? places : gathered(what);
	}, [t, by, o, q]);
	const shapes = by === "stack" || groups.length === 0 || groups.some((g) => /\[\d*[,\]]/.test(g.name));
	return (
		<>
			{!shapes && <p class="crumbs hint">Shapes were not recorded: PROTOND_TORCH_OPS=1 PROTOND_TORCH_SHAPES=1 protonctl run -k torch -- CMD</p>}
			<Grouped by={by} groups={groups} all={all} />
		</>
	);
}

function OfStreams({ all }: { all: number }) {
	const { id, meta } = useSession();
	const of = usePromise(() => (meta.has.timeline ? get<Lanes>(api(id, "lanes")).then((l) => Promise.all(l.lane.filter((x) => x.kind === "stream").slice(0, 128).map(async (x): Promise<Group> => {
		const s = await get<Sums>(`${api(id, "sums")}?t0=${l.t0}&t1=${l.t1}&lanes=${x.id}`);
		const sum = (v: number[], rest: number | undefined) => v.reduce((a, b) => a + b, rest ?? 0);
		return { key: x.id, name: shown(x.name), family: "other", total: sum(s.total, s.rest?.total), count: sum(s.count, s.rest?.count), kinds: s.name.length + (s.rest?.names ?? 0), open: () => set({ tab: "timeline", lane: String(x.id) }) };
	}))) : null), [id]);
	return meta.has.timeline ? <Loaded of={of}>{(groups) => <Grouped by="stream" groups={groups} all={all} />}</Loaded> : <Lacking what="timeline" />;
}

function Grouped({ by, groups, all }: { by: string; groups: Group[]; all: number }) {
	const { h } = useSession();
	const c = sums("ns", groups.map((g) => g.total));
	const d = column("ns", groups.map((g) => g.p50 ?? null), groups.map((g) => g.p99 ?? null));
	const rows = useMemo(() => groups.map((_, i) => i), [groups]);
	const at = useMemo(() => groups.findIndex((g) => String(g.key) === h.group), [groups, h.group]);
	const stack = by === "stack";
	const long = stack || by === "op"; // names take the room of the bars
	const cols: Col[] = [
		{ key: "name", head: headOf(by), ...(long ? {} : { width: 240 }), text: (i) => groups[i].name, title: (i) => groups[i].name, sort: (i) => groups[i].name, cell: (i) => <span class="v"><span class="dot" style={{ background: family(groups[i].family) }}></span>{groups[i].name}</span> },
		...(long ? [] : [{ key: "share", head: "Share", text: () => "", cell: (i: number) => <span class="meter"><i style={{ width: `${(100 * groups[i].total) / (all || 1)}%`, background: family(groups[i].family) }}></i></span> } as Col]),
		numbers("total", "Total", 110, c, (i) => groups[i].total, long ? all : undefined),
		{ key: "%", head: "%", num: true, width: 72, text: (i) => percent(groups[i].total, all), sort: (i) => groups[i].total },
		numbers("count", "Count", 90, COUNTS, (i) => groups[i].count),
		...(stack ? (["p50", "p99"] as const).map((k): Col => (numbers(k, k, 90, d, (i) => groups[i][k])))
			: [numbers("kinds", "Kernels", 90, COUNTS, (i: number) => groups[i].kinds)]),
	];
	return <Table label={`By ${by}`} cols={cols} rows={rows} sort={h.osort || "-total"} onSort={(s) => set({ osort: s })} selected={at} onSelect={(i) => {
		groups[i].pick?.();
		set({ group: String(groups[i].key) });
	}} onOpen={(i) => groups[i].open?.()} empty="No work of a GPU was recorded." />;
}
