// SPDX-License-Identifier: MIT. tree.tsx: the calling-context tree as a table.
import { useMemo } from "preact/hooks";
import { column, most, percent, sums } from "../format";
import { childrenOf, columnsOf, label, mainOf, type Tree, unitFor } from "../model";
import { Choice, Find, Loaded, Toggle } from "../parts";
import { matcher, selectNode, selectedNode, useSession, useTree } from "../session";
import { set } from "../state";
import { type Col, headWidth, numbers, Table } from "../table";
import { family } from "../color";

const MAX_TOGGLED = 400;
const FIRST = ["gpu_time", "count", "cpu_time", "calls", "sample_time", "sync_time", "launch_time", "launch_delay", "overhead_time", "p50", "p99"]; // what is shown unless others are asked for

// What is open: a node is if it has a twentieth of all, or if it was toggled away from that.
function isOpen(t: Tree, v: Float64Array, node: number, toggled: Set<number>, all: string): boolean {
	const by = all === "all" || (all !== "none" && (node === 0 || t.depth[node] < 2 || v[node] >= (v[0] || 0) * 0.05));
	return toggled.has(node) ? !by : by;
}

export function TreeTab() {
	const { h } = useSession();
	return <Loaded of={useTree()}>{(t) => <TreeTable t={t} h={h} />}</Loaded>;
}

function TreeTable({ t, h }: { t: Tree; h: Record<string, string> }) {
	const every = useMemo(() => columnsOf(t), [t]);
	const shownMetrics = useMemo(() => {
		const want = h.cols?.split(",");
		return every.filter((m) => (want ? want.includes(m.name) : FIRST.includes(m.name.replace(/ \(.*/, "")) && t.values[m.name].some((x) => x > 0)));
	}, [t, h.cols]);
	const main = mainOf(t);
	const v = main ? t.values[main.name] : new Float64Array(t.n);
	const total = t.n > 0 ? (v[0] > 0 ? v[0] : childrenOf(t, 0).reduce((s, c) => s + (v[c] || 0), 0)) : 0;
	const hide = Number(h.hide ?? "0") / 100;
	const sort = h.tsort ?? (main ? "-" + main.name : "");
	const toggled = useMemo(() => new Set((h.x ?? "").split(",").filter(Boolean).map(Number)), [h.x]);
	const all = h.open ?? "";
	const q = h.q ?? "";
	const { rows, found, foundSum, hidden } = useMemo(() => {
		const match = matcher(q);
		let keep: Uint8Array | null = null;
		let found = 0;
		let foundSum = 0;
		if (match) {
			const named = t.names.map((n, i) => match(n) || match(t.raw[i]));
			keep = new Uint8Array(t.n);
			let under = 0; // end of the last match's subtree: what is in it is not counted again
			for (let i = 0; i < t.n; i++)
				if (named[t.name[i]]) {
					found++;
					if (i >= under) {
						foundSum += v[i] || 0;
						under = i + t.size[i];
					}
					for (let k = i; k >= 0 && !keep[k]; k = t.parent[k])
						keep[k] = 1;
				}
		}
		const key = sort.replace(/^-/, "");
		const sign = sort.startsWith("-") ? -1 : 1;
		const by = t.values[key];
		const rows: number[] = [];
		let hidden = 0;
		const stack = t.n > 0 ? [0] : [];
		while (stack.length > 0) {
			const i = stack.pop()!;
			rows.push(i);
			if (t.size[i] <= 1 || !(keep ? true : isOpen(t, v, i, toggled, all)))
				continue;
			let c = childrenOf(t, i);
			if (keep)
				c = c.filter((k) => keep![k]);
			if (hide > 0 && total > 0) {
				const big = c.filter((k) => (v[k] || 0) >= total * hide);
				hidden += c.length - big.length;
				c = big;
			}
			if (by)
				c.sort((a, b) => {
					const [x, y] = [by[a], by[b]];
					return x !== x || y !== y ? (x !== x ? 1 : 0) - (y !== y ? 1 : 0) : sign * (x - y) || a - b;
				});
			else if (key === "name")
				c.sort((a, b) => sign * (t.names[t.name[a]] < t.names[t.name[b]] ? -1 : 1));
			for (let k = c.length - 1; k >= 0; k--)
				stack.push(c[k]);
		}
		return { rows, found, foundSum, hidden };
	}, [t, q, hide, sort, toggled, all]);
	const toggle = (node: number) => {
		const s = new Set(toggled);
		if (!s.delete(node) && s.size < MAX_TOGGLED)
			s.add(node);
		set({ x: [...s].join(",") });
	};
	const selected = selectedNode(t, h);
	const cols: Col[] = useMemo(() => [
		{
			key: "name", head: "Scope or kernel", sort: () => 0, text: (r) => "  ".repeat(t.depth[r]) + t.names[t.name[r]], title: (r) => t.names[t.name[r]],
			cell: (r) => (
				<span class="v node" style={{ "--level": Math.min(t.depth[r], 40) }}>
					{t.size[r] > 1 ? (
						<button class="twist" tabIndex={-1} aria-label={isOpen(t, v, r, toggled, all) ? "close" : "open"} onClick={(e) => {
							e.stopPropagation();
							toggle(r);
						}}>{q || isOpen(t, v, r, toggled, all) ? "▾" : "▸"}</button>
					) : <span class="twist"></span>}
					<span class="dot" style={{ background: family(t.family[r]) }}></span>
					{t.names[t.name[r]]}
				</span>
			),
		},
		...shownMetrics.flatMap((m): Col[] => {
			const vals = t.values[m.name];
			const c = /^(min|p\d+|max)$/.test(m.name) ? column(unitFor(m), ...["p50", "p99"].map((k) => t.values[k] ?? [])) : sums(unitFor(m), vals);
			const col: Col = numbers(m.name, label(m), headWidth(label(m) + " " + c.unit, c.text(most(vals))), c, (r) => vals[r]);
			if (m.name !== (main?.name ?? shownMetrics[0]?.name))
				return [col];
			return [{ ...col, share: (r) => (vals[r] || 0) / (total || 1) }, { key: "%", head: "%", num: true, width: 78, text: (r) => (vals[r] > 0 ? percent(vals[r], total) : "–") }];
		}),
	], [t, shownMetrics, toggled, all, q, total]);
	return (
		<div class="fill">
			<div class="bar-of">
				<Find note={q ? `${found} found${main && found ? `, ${percent(foundSum, total)}` : ""}` : ""} />
				<Choice label="hide below" value={h.hide ?? "0"} of={[["0", "nothing"], ["0.1", "0.1 %"], ["0.5", "0.5 %"], ["1", "1 %"], ["5", "5 %"]]} onChange={(s) => set({ hide: s === "0" ? "" : s })} />
				<Toggle on={all === "all"} words="open all" onChange={(on) => set({ open: on ? "all" : "", x: "" })} />
				<Toggle on={all === "none"} words="close all" onChange={(on) => set({ open: on ? "none" : "", x: "" })} />
				<details class="menu">
					<summary>columns</summary>
					<div>
						{every.map((m) => (
							<label key={m.name}>
								<input type="checkbox" checked={shownMetrics.includes(m)} onChange={(e) => {
									const on = new Set(shownMetrics.map((x) => x.name));
									if (e.currentTarget.checked)
										on.add(m.name);
									else
										on.delete(m.name);
									set({ cols: every.filter((x) => on.has(x.name)).map((x) => x.name).join(",") });
								}} />
								{label(m)}
							</label>
						))}
					</div>
				</details>
				{hidden > 0 && <span class="note">{hidden} hidden</span>}
				{t.warnings.map((w) => <span key={w} class="note warn">{w}</span>)}
			</div>
			<Table label="Tree" cols={cols} rows={rows} sort={sort} sorted onSort={(s) => set({ tsort: s })} selected={selected}
				level={(r) => t.depth[r]} expanded={(r) => (t.size[r] > 1 ? isOpen(t, v, r, toggled, all) : undefined)}
				onSelect={(r) => selectNode(t, r)} onOpen={(r) => t.size[r] > 1 && toggle(r)}
				onKey={(e, r) => {
					const open = t.size[r] > 1 && isOpen(t, v, r, toggled, all);
					if (e.key === "ArrowRight" && t.size[r] > 1 && !open)
						toggle(r);
					else if (e.key === "ArrowLeft" && open)
						toggle(r);
					else if (e.key === "ArrowLeft" && t.parent[r] >= 0)
						selectNode(t, t.parent[r]);
					else if (e.key === "ArrowRight" && open && rows.indexOf(r + 1) >= 0)
						selectNode(t, r + 1);
					else
						return false;
					return true;
				}}
				empty={q ? "No name has this in it." : "Nothing was recorded."} />
		</div>
	);
}
