// SPDX-License-Identifier: MIT. flame.tsx: the tree as bars: nested, one step in order, turned over, the callers of one name, two sessions.
import { useMemo } from "preact/hooks";
import { type DiffAnswer, get, type Metric } from "../api";
import { delta, family, inOrder, word } from "../color";
import { chain, fixed, nameKey, percent, shown, sums, withUnit } from "../format";
import { Icicle } from "../icicle";
import { differing, label, type Layout, mainOf, nested, type Order, ownOf, pathOf, type Tree, treeFrom, turned, unitFor, type Words } from "../model";
import { AsTable, Choice, Find, Legend, Loaded, Pills } from "../parts";
import { matcher, selectName, selectNode, selectedNode, useSession, useTree } from "../session";
import { set, usePromise } from "../state";
import { Sunburst } from "../sunburst";
import { type Col, named, numbers, Table } from "../table";
import { StepOrder } from "./order";

type Mode = "nested" | "order" | "turned" | "callers" | "diff";

// Times, counts and bytes add up; averages and quantiles do not, and are no width.
const adds = (m: Metric) => m.inclusive && m.name !== "util";

export function useMatches(t: Words, q: string): Uint8Array | null {
	return useMemo(() => {
		const m = matcher(q);
		return m ? Uint8Array.from(t.names, (n, i) => (m(n) || m(t.raw[i]) ? 1 : 0)) : null;
	}, [t, q]);
}

export function matched(l: Layout, m: Uint8Array): number {
	let sum = 0;
	for (let b = 0; b < l.n;) {
		if (m[l.name[b]]) {
			sum += l.value[b];
			b += l.size[b] || 1;
		} else
			b++;
	}
	return sum;
}

export function FlameTab() {
	const { h } = useSession();
	const of = useTree();
	const mode = (h.flame ?? "nested") as Mode;
	return (
		<div class="fill">
			{mode === "diff" ? <Diff /> : mode === "order" ? <InOrder /> : <Loaded of={of}>{(t) => <Bars t={t} mode={mode} round={false} />}</Loaded>}
		</div>
	);
}

export function SunburstTab() {
	return <div class="fill"><Loaded of={useTree()}>{(t) => <Bars t={t} mode="nested" round />}</Loaded></div>;
}

function Modes({ mode }: { mode: Mode }) {
	return (
		<Pills label="Kind" value={mode} of={[["nested", "top down"], ["order", "one step"], ["turned", "bottom up"], ["callers", "callers"], ["diff", "difference"]]}
			onChange={(m) => set({ flame: m === "nested" ? "" : m, z: "" })} />
	);
}

function InOrder() {
	return (
		<StepOrder bar={(more) => (
			<div class="bar-of">
				<Modes mode="order" />
				{more}
				<Find />
				<AsTable />
			</div>
		)} />
	);
}

// Every picture has its table.
export function BoxTable({ t, l, unit, say, onSelect, selected }: { t: Words; l: Layout; unit: string; say: string; onSelect: (b: number) => void; selected: number }) {
	const rows = useMemo(() => Int32Array.from({ length: l.n }, (_, i) => i), [l]);
	const c = sums(unit, l.value.subarray(0, l.n));
	const { h } = useSession();
	const cols: Col[] = [
		named("Name", (b) => t.names[l.name[b]]),
		{ key: "depth", head: "Depth", num: true, width: 80, text: (b) => String(l.depth[b]), sort: (b) => l.depth[b] },
		numbers("v", say, 130, c, (b) => l.value[b], l.w[0]),
		{ key: "%", head: "%", num: true, width: 72, text: (b) => percent(l.value[b], l.w[0]) },
	];
	return <Table label="What is drawn" cols={cols} rows={rows} sort={h.fsort ?? "-v"} onSort={(s) => set({ fsort: s })} selected={selected} onSelect={onSelect} empty="Nothing to draw." />;
}

function Bars({ t, mode, round }: { t: Tree; mode: Mode; round: boolean }) {
	const { h } = useSession();
	const some = t.metrics.filter(adds);
	const m = some.find((x) => x.name === h.fm) ?? some.find((x) => x === mainOf(t)) ?? some[0];
	const order = (h.order ?? "value") as Order;
	const q = h.q ?? "";
	const selected = selectedNode(t, h);
	const only = mode === "callers" && selected >= 0 ? t.name[selected] : -1;
	const l = useMemo(() => {
		if (!m)
			return nested(t, new Float64Array(t.n), order);
		if (mode === "nested")
			return nested(t, t.values[m.name], order);
		return turned(t, mode === "callers" && only >= 0 ? callersOwn(t, m.name, only) : ownOf(t, m.name), only);
	}, [t, m, mode, order, only]);
	const matches = useMatches(t, q);
	const zoom = Math.min(Number(h.z ?? "0") || 0, Math.max(0, l.n - 1));
	const select = (b: number) => (l.node[b] >= 0 ? selectNode(t, l.node[b]) : selectName(t.raw[l.name[b]]));
	const onZoom = (b: number) => set({ z: b > 0 ? String(b) : "" });
	const say = (b: number) => [t.names[l.name[b]], `${withUnit(l.value[b], m ? unitFor(m) : "")}, ${percent(l.value[b], l.w[0])} of all` + (zoom > 0 && l.w[zoom] !== l.w[0] ? `, ${percent(l.value[b], l.w[zoom])} of what is shown` : "")];
	const crumbs = zoom > 0 && l.node[zoom] > 0 ? pathOf(t, l.node[zoom]) : [];
	const kinds = useMemo(() => [...new Set(Array.from({ length: Math.min(t.n, 20000) }, (_, i) => t.family[i]))].filter((k) => k !== "root").sort(inOrder).slice(0, 20), [t]);
	const Picture = round ? Sunburst : Icicle;
	return (
		<>
			<div class="bar-of">
				{!round && <Modes mode={mode} />}
				<Find note={matches ? percent(matched(l, matches), l.w[0]) : ""} />
				{some.length > 1 && <Choice label="width" value={m?.name ?? ""} of={some.map((x) => [x.name, label(x)] as [string, string])} onChange={(s) => set({ fm: s, z: "" })} />}
				{mode === "nested" && <Choice label="order" value={order} of={[["value", "most first"], ["seen", "as first seen"], ["name", "by name"]]} onChange={(s) => set({ order: s === "value" ? "" : s, z: "" })} />}
				<AsTable />
			</div>
			<nav class="crumbs" aria-label="Zoomed to">
				{crumbs.length > 0 ? crumbs.map((i, k) => (
					<button key={i} aria-current={k === crumbs.length - 1 ? "true" : undefined} onClick={() => onZoom(l.node.indexOf(i))}>{t.names[t.name[i]]}</button>
				)) : <span class="hint">{mode === "callers" ? (only < 0 ? "Select a kernel or a scope: who called it is drawn here." : `Callers of ${t.names[only]}`) : mode === "turned" ? "Kernels at the top, their callers below them." : "Double click or Enter zooms in, Backspace out."}</span>}
			</nav>
			{h.table === "1" ? <BoxTable t={t} l={l} unit={m ? unitFor(m) : ""} say={m ? label(m) : ""} onSelect={select} selected={l.node.indexOf(selected)} />
				: l.n === 0 || !(l.w[0] > 0) ? <p class="none">Nothing of {m ? label(m) : "this"} was recorded.</p>
				: <Picture tree={t} layout={l} zoom={zoom} selected={selected} matches={matches} onZoom={onZoom} onSelect={select} say={say}
					label={`${round ? "Rings" : "Bars"} of ${l.n} boxes by ${m ? label(m) : ""}. Arrows move, Enter zooms in, Backspace out. The table button lists them.`} />}
			<Legend of={kinds.map((k) => [family(k), word(k)])} />
		</>
	);
}

// Who called a scope is asked by all that is below it, but not twice where it stands under itself.
function callersOwn(t: Tree, metric: string, name: number): Float64Array {
	const v = t.values[metric];
	const ret = new Float64Array(t.n);
	for (let i = 0; i < t.n;) {
		if (t.name[i] === name) {
			ret[i] = v[i] > 0 ? v[i] : 0;
			i += t.size[i] || 1;
		} else
			i++;
	}
	return ret;
}

function Diff() {
	const { h, id, sessions } = useSession();
	const col = (name: string) => sessions.columns.findIndex((c) => c.name === name);
	const others = sessions.rows.filter((r) => String(r[col("id")]) !== id).slice(0, 500);
	const a = h.base ?? String(others.find((r) => r[col("name")] === sessions.rows.find((x) => String(x[col("id")]) === id)?.[col("name")])?.[col("id")] ?? others[0]?.[col("id")] ?? "");
	const path = a ? `api/diff?a=${encodeURIComponent(a)}&b=${encodeURIComponent(id)}` : "";
	const of = usePromise(() => (path ? get<DiffAnswer>(path) : null), [path]);
	return (
		<>
			<div class="bar-of">
				<Modes mode="diff" />
				<Choice label="before" value={a} of={others.map((r) => [String(r[col("id")]), `${r[col("id")]}  ${shown(String(r[col("name")])).slice(0, 60)}`] as [string, string])} onChange={(s) => set({ base: s, z: "" })} />
				<span class="note">after: {id}</span>
				<Find />
				<AsTable />
			</div>
			{a ? <Loaded of={of}>{(x) => <DiffBars x={x} />}</Loaded> : <p class="none">There is no other session to compare with.</p>}
			<Legend of={[[delta(1, 0), "less"], [delta(1, 1), "the same"], [delta(0, 1), "more"]]} />
		</>
	);
}

function DiffBars({ x }: { x: DiffAnswer }) {
	const { h } = useSession();
	const [t, after] = useMemo(() => [treeFrom({ ...x, values: x.before }), treeFrom({ ...x, values: x.after })], [x]);
	const nil = useMemo(() => new Float64Array(t.n), [t]);
	const some = x.metrics.filter((m) => adds(m) && (t.values[m.name] ?? after.values[m.name]));
	const m = some.find((k) => k.name === h.fm) ?? some.find((k) => k.name === x.main) ?? some[0];
	const [a, b] = [(m && t.values[m.name]) ?? nil, (m && after.values[m.name]) ?? nil];
	const unit = m ? unitFor(m) : "ns";
	const l = useMemo(() => differing(t, a, b), [t, m]);
	const matches = useMatches(t, h.q ?? "");
	const zoom = Math.min(Number(h.z ?? "0") || 0, Math.max(0, l.n - 1));
	const selected = h.sel ? Array.from(t.name).findIndex((n) => nameKey(t.raw[n]) === h.sel) : -1;
	const sign = (v: number) => (v > 0 ? "+" : "") + withUnit(v, unit);
	const zero = (v: number) => (v > 0 ? v : 0);
	const share = (i: number) => fixed(((zero(b[i]) - a[i]) / a[i]) * 100, 1); // %
	if (h.table === "1") {
		const c = sums(unit, a, b);
		const rows = Int32Array.from({ length: t.n }, (_, i) => i);
		const cols: Col[] = [
			{ key: "name", head: "Name", text: (i) => t.names[t.name[i]], title: (i) => chain(pathOf(t, i).map((k) => t.names[t.name[k]])), sort: (i) => t.names[t.name[i]] },
			{ key: "a", head: "before", unit: c.unit, num: true, width: 120, text: (i) => c.text(a[i]), sort: (i) => zero(a[i]) },
			{ key: "b", head: "after", unit: c.unit, num: true, width: 120, text: (i) => c.text(b[i]), sort: (i) => zero(b[i]) },
			{ key: "d", head: "change", unit: c.unit, num: true, width: 120, text: (i) => c.text(zero(b[i]) - zero(a[i])), sort: (i) => Math.abs(zero(b[i]) - zero(a[i])) },
			{ key: "%", head: "%", num: true, width: 90, text: (i) => (a[i] > 0 ? share(i) : "new"), sort: (i) => (zero(b[i]) - zero(a[i])) / (zero(a[i]) || 1) },
		];
		return <Table label="Difference" cols={cols} rows={rows} sort={h.dsort ?? "-d"} onSort={(s) => set({ dsort: s })} selected={selected} onSelect={(i) => selectName(t.raw[t.name[i]])} empty="Both are empty." />;
	}
	const say = (box: number) => {
		const i = l.node[box];
		return [t.names[l.name[box]], `${withUnit(zero(a[i]), unit)} → ${withUnit(zero(b[i]), unit)}`, `${sign(zero(b[i]) - zero(a[i]))}${a[i] > 0 ? ` (${share(i)} %)` : " (new)"}`];
	};
	if (!(l.w[0] > 0))
		return <p class="none">Neither has anything of this.</p>;
	return <Icicle tree={t} layout={l} zoom={zoom} selected={selected} matches={matches} onZoom={(x) => set({ z: x > 0 ? String(x) : "" })}
		onSelect={(x) => selectName(t.raw[l.name[x]])} say={say} label={`Difference of two sessions, ${l.n} boxes: blue less, orange more. The table button lists them.`} />;
}
