// SPDX-License-Identifier: MIT. ops.tsx: kernels and copies: each, by family, by class, by stream.
import { useMemo } from "preact/hooks";
import type { Bars, Cell, Ops } from "../api";
import { family } from "../color";
import { column, group, most, nameKey, percent, shown, sums, time } from "../format";
import { Choice, Loaded, Search } from "../parts";
import { matcher, selectName, useOps, useSession } from "../session";
import { set } from "../state";
import { type Col, headWidth, Table } from "../table";

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

const BY: [string, string][] = [["", "kernel"], ["family", "family"], ["class", "class"], ["stream", "stream"], ["device", "device"]];

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
				<Search value={q} label="Find in names" onInput={(s) => set({ q: s })} note={q ? `${rows.length} found, ${percent(rows.reduce((s, r) => s + (total[r] || 0), 0), all)}` : ""} />
				<Choice label="by" value={by} of={BY.filter(([k]) => k === "" || o.column[k])} onChange={(s) => set({ by: s, osort: "" })} />
			</div>
			{by === "" ? <Each o={o} names={names} rows={rows} total={total} all={all} /> : <Grouped o={o} by={by} rows={rows} total={total} all={all} />}
		</>
	);
}

function Each({ o, names, rows, total, all }: { o: Ops; names: string[]; rows: number[]; total: number[]; all: number }) {
	const { h } = useSession();
	const cols: Col[] = useMemo(() => {
		const ret: Col[] = [{
			key: "name", head: "Kernel or copy", text: (r) => names[o.column.name[r]], title: (r) => names[o.column.name[r]], sort: (r) => names[o.column.name[r]],
			cell: (r) => <span class="v"><span class="dot" style={{ background: family(wordOf(o, "family", r) || wordOf(o, "class", r)) }}></span>{names[o.column.name[r]]}</span>,
		}];
		for (const k of ["family", "class", "stream"])
			if (o.column[k] && !(k === "class" && o.column.family))
				ret.push({ key: k, head: k[0].toUpperCase() + k.slice(1), width: k === "stream" ? 80 : 104, text: (r) => wordOf(o, k, r), sort: (r) => wordOf(o, k, r) });
		for (const [key, head, unit, share] of NUM) {
			if (!o.column[key])
				continue;
			const v = nums(o, key);
			const c = unit === "ns" && key !== "total" ? column(unit, nums(o, "avg"), nums(o, "p50"), nums(o, "p99")) : sums(unit, v);
			ret.push({ key, head, unit: c.unit, num: true, width: Math.max(share ? 112 : 0, headWidth(`${head} ${c.unit}`, c.text(most(v)))), text: (r) => c.text(v[r]), sort: (r) => v[r], ...(share ? { share: (r: number) => (v[r] || 0) / all } : {}) });
			if (share)
				ret.push({ key: "%", head: "%", num: true, width: 78, text: (r) => percent(v[r], all), sort: (r) => v[r] });
		}
		return ret;
	}, [o, names, all]);
	const selected = h.sel ? rows.find((r) => nameKey(o.names[o.column.name[r]]) === h.sel) ?? -1 : -1;
	return (
		<>
			<Table label="Kernels and copies" cols={cols} rows={rows} sort={h.osort || "-total"} onSort={(s) => set({ osort: s })} selected={selected}
				onSelect={(r) => selectName(o.names[o.column.name[r]])} onOpen={(r) => {
					selectName(o.names[o.column.name[r]]);
					set({ tab: "flame", flame: "callers", z: "" });
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

function Grouped({ o, by, rows, total, all }: { o: Ops; by: string; rows: number[]; total: number[]; all: number }) {
	const { h } = useSession();
	const count = nums(o, "count");
	const groups = useMemo(() => {
		const m = new Map<string, { total: number; count: number; kinds: number; most: number }>();
		for (const r of rows) {
			const k = wordOf(o, by, r) || "–";
			const g = m.get(k) ?? { total: 0, count: 0, kinds: 0, most: r };
			g.total += total[r] || 0;
			g.count += count[r] || 0;
			g.kinds++;
			if ((total[r] || 0) > (total[g.most] || 0))
				g.most = r;
			m.set(k, g);
		}
		return [...m].sort((a, b) => b[1].total - a[1].total);
	}, [o, by, rows]);
	const c = sums("ns", groups.map((g) => g[1].total));
	const ids = groups.map((_, i) => i);
	const cols: Col[] = [
		{ key: "name", head: by[0].toUpperCase() + by.slice(1), width: 180, text: (i) => groups[i][0], sort: (i) => groups[i][0], cell: (i) => <span class="v"><span class="dot" style={{ background: family(groups[i][0]) }}></span>{groups[i][0]}</span> },
		{ key: "share", head: "Share", text: () => "", cell: (i) => <span class="meter"><i style={{ width: `${(100 * groups[i][1].total) / (all || 1)}%`, background: family(groups[i][0]) }}></i></span> },
		{ key: "total", head: "Total", unit: c.unit, num: true, width: 110, text: (i) => c.text(groups[i][1].total), sort: (i) => groups[i][1].total },
		{ key: "%", head: "%", num: true, width: 72, text: (i) => percent(groups[i][1].total, all), sort: (i) => groups[i][1].total },
		{ key: "count", head: "Count", num: true, width: 100, text: (i) => group(groups[i][1].count), sort: (i) => groups[i][1].count },
		{ key: "kinds", head: "Kernels", num: true, width: 90, text: (i) => group(groups[i][1].kinds), sort: (i) => groups[i][1].kinds },
	];
	return <Table label={`By ${by}`} cols={cols} rows={ids} sort={h.osort || "-total"} onSort={(s) => set({ osort: s })} onSelect={(i) => set({ q: by === "family" ? groups[i][0] : h.q ?? "", by: by === "family" ? "" : by })} empty="No work of a GPU was recorded." />;
}
