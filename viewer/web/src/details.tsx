// SPDX-License-Identifier: MIT. details.tsx: what is selected, whole, and the ways on to where else it is.
import { useMemo } from "preact/hooks";
import type { Ops } from "./api";
import { group, nameKey, percent, shown, withUnit } from "./format";
import { columnsOf, label, pathOf, type Tree, unitFor } from "./model";
import { nodesOf, selectNode, selectedNode, useOps, useSession, useTree } from "./session";
import { set } from "./state";
import { copyText } from "./table";

export function Details() {
	const { h, meta } = useSession();
	const { value: tree } = useTree();
	const { value: ops } = useOps();
	const node = useMemo(() => (tree && (h.node || h.sel) ? selectedNode(tree, h) : -1), [tree, h.node, h.sel]);
	if (!h.sel && !h.node)
		return null;
	const op = ops ? ops.column.name.findIndex((n) => nameKey(ops.names[n]) === (node >= 0 && tree ? nameKey(tree.raw[tree.name[node]]) : h.sel)) : -1;
	const name = node >= 0 && tree ? tree.names[tree.name[node]] : op >= 0 && ops ? shown(ops.names[ops.column.name[op]]) : shown(h.sel ?? "");
	const recorded = node >= 0 && tree ? tree.recorded[tree.name[node]] : op >= 0 && ops ? ops.recorded?.[ops.column.name[op]] : undefined;
	const go = (tab: string, more: Record<string, string> = {}) => set({ tab, z: "", ...more });
	return (
		<aside class="details" aria-label="Selected">
			<header>
				<h2>Selected</h2>
				<button class="plain" title="copy the name" onClick={() => void copyText(name)}>copy</button>
				<button class="plain" aria-label="select nothing" title="select nothing (Esc)" onClick={() => set({ sel: "", node: "" })}>×</button>
			</header>
			<p class="whole">{name}</p>
			{recorded !== undefined && recorded !== name && <details class="recorded"><summary>as recorded</summary><code>{shown(recorded)}</code></details>}
			<nav aria-label="Show it in">
				<button onClick={() => go("tree")}>Tree</button>
				<button onClick={() => go("flame", { flame: "" })}>Flame</button>
				<button onClick={() => go("flame", { flame: "callers" })}>Callers</button>
				{op >= 0 && <button onClick={() => go("ops", { by: "" })}>Operations</button>}
				{meta.has?.timeline && <button onClick={() => go("timeline", { find: h.sel ?? "" })}>Timeline</button>}
			</nav>
			{node >= 0 && tree && <OfNode t={tree} node={node} />}
			{op >= 0 && ops && <OfOp o={ops} row={op} />}
		</aside>
	);
}

function OfNode({ t, node }: { t: Tree; node: number }) {
	const path = pathOf(t, node);
	const same = useMemo(() => nodesOf(t, nameKey(t.raw[t.name[node]])), [t, node]);
	return (
		<>
			<h3>Here in the tree</h3>
			<dl class="facts">
				{columnsOf(t).map((m) => {
					const v = t.values[m.name][node];
					return v === v && v !== 0 ? <div key={m.name}><dt>{label(m)}</dt><dd>{withUnit(v, unitFor(m))}{m.inclusive && t.values[m.name][0] > 0 && node > 0 ? <small>{percent(v, t.values[m.name][0])}</small> : null}</dd></div> : null;
				})}
			</dl>
			<h3>Path</h3>
			<ol class="path">{path.slice(0, 60).map((i) => <li key={i}><button class="plain" onClick={() => selectNode(t, i)}>{t.names[t.name[i]]}</button></li>)}</ol>
			{same.length > 1 && <p class="hint">The name stands in {group(same.length)} places.</p>}
		</>
	);
}

const FACTS: [string, string, string][] = [
	["total", "total", "ns"], ["count", "count", ""], ["avg", "average", "ns"], ["p50", "p50", "ns"], ["p99", "p99", "ns"], ["min", "least", "ns"], ["max", "most", "ns"],
	["configs", "launch configurations", ""], ["registers", "registers", ""], ["static_shared", "static shared memory", "bytes"], ["dynamic_shared", "dynamic shared memory", "bytes"],
];

function OfOp({ o, row }: { o: Ops; row: number }) {
	return (
		<>
			<h3>As an operation, everywhere</h3>
			<dl class="facts">
				{["grid", "block"].map((k) => {
					const [x, y, z] = ["x", "y", "z"].map((d) => o.column[`${k}_${d}`]?.[row]);
					return typeof x === "number" ? <div key={k}><dt>{k}</dt><dd>{x} × {String(y)} × {String(z)}</dd></div> : null;
				})}
				{FACTS.map(([k, words, unit]) => {
					const v = o.column[k]?.[row];
					if (v === null || v === undefined || v === "" || v === 0)
						return null;
					return <div key={k}><dt>{words}</dt><dd>{typeof v === "number" ? withUnit(v, unit) : shown(String(v))}</dd></div>;
				})}
			</dl>
		</>
	);
}
