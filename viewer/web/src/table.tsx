// SPDX-License-Identifier: MIT. table.tsx: one table for all views: rows of one height of which only those in sight are
// in the page, so 10 000 or 1 000 000 of them cost the same. Sorted by a column's head, walked by the arrows.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { csv, inUnit, type Written } from "./format";

export interface Col {
	key: string;
	head: string;
	unit?: string;
	num?: boolean;
	width?: number; // px; the columns without one share what is left
	text: (row: number) => string;
	sort?: (row: number) => number | string;
	share?: (row: number) => number; // 0…1: a bar behind the number
	cell?: (row: number) => ComponentChildren;
	title?: (row: number) => string;
}

export const named = (head: string, f: (row: number) => string): Col => ({ key: "name", head, text: f, title: f, sort: f });

// In one unit; `whole` is what fills a bar.
export function numbers(key: string, head: string, width: number, c: Written, v: (row: number) => number | null | undefined, whole?: number): Col {
	return { key, head, unit: c.unit, num: true, width, text: (r) => c.text(v(r)), sort: (r) => v(r) ?? NaN, ...(whole === undefined ? {} : { share: (r: number) => (v(r) || 0) / (whole || 1) }) };
}

export const COUNTS: Written = { unit: "", text: (v) => inUnit(v, ["", 1]) };

export interface TableProps {
	label: string;
	cols: Col[];
	rows: number[] | Int32Array; // ids, in their own order
	sort?: string; // "key" or "-key"; "" as they come
	onSort?: (s: string) => void;
	selected?: number;
	onSelect?: (row: number) => void;
	onOpen?: (row: number) => void;
	onKey?: (e: KeyboardEvent, row: number) => boolean;
	level?: (row: number) => number; // a tree's
	expanded?: (row: number) => boolean | undefined;
	sorted?: boolean; // the rows come as `sort` says
	empty: string;
	height?: string;
}

export const ROW = 26;

// So wide that a head is not cut, its arrow included.
export const headWidth = (words: string, ...texts: string[]) => Math.max(84, Math.round(words.length * 7.6) + 32, ...texts.map((t) => Math.round(t.length * 7.4) + 24));

export function Table(p: TableProps) {
	const box = useRef<HTMLDivElement>(null);
	const [top, setTop] = useState(0);
	const [tall, setTall] = useState(600);
	const rows = useMemo(() => {
		const key = p.sort?.replace(/^-/, "") ?? "";
		const by = p.sorted ? undefined : p.cols.find((c) => c.key === key)?.sort;
		const ids = Array.from(p.rows);
		if (!by)
			return ids;
		const sign = p.sort!.startsWith("-") ? -1 : 1;
		const keys = new Map(ids.map((id) => [id, by(id)]));
		return ids.sort((a, b) => {
			const [x, y] = [keys.get(a)!, keys.get(b)!];
			const [nx, ny] = [x !== x, y !== y]; // without a value: last, either way
			if (nx || ny)
				return nx === ny ? 0 : nx ? 1 : -1;
			return x < y ? -sign : x > y ? sign : a - b;
		});
	}, [p.rows, p.sort, p.cols]);
	const at = p.selected === undefined ? -1 : rows.indexOf(p.selected);

	useEffect(() => {
		const el = box.current!;
		const o = new ResizeObserver(() => setTall(el.clientHeight));
		o.observe(el);
		setTall(el.clientHeight);
		return () => o.disconnect();
	}, []);
	useEffect(() => {
		const el = box.current!;
		if (at < 0)
			return;
		const y = at * ROW;
		if (y < el.scrollTop)
			el.scrollTop = y;
		else if (y + 2 * ROW > el.scrollTop + el.clientHeight)
			el.scrollTop = y + 2 * ROW - el.clientHeight;
	}, [at]);

	const onKey = (e: KeyboardEvent) => {
		if (e.ctrlKey || e.metaKey || e.altKey || rows.length === 0 || (e.target as Element).closest("th"))
			return;
		if (p.onKey && at >= 0 && p.onKey(e, rows[at])) {
			e.preventDefault();
			return;
		}
		const page = Math.max(1, Math.floor(tall / ROW) - 2);
		const by: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length };
		if (e.key in by && p.onSelect) {
			e.preventDefault();
			p.onSelect(rows[Math.max(0, Math.min(rows.length - 1, (at < 0 ? (by[e.key] > 0 ? -1 : 0) : at) + by[e.key]))]);
		} else if (e.key === "Enter" && at >= 0 && p.onOpen) {
			e.preventDefault();
			p.onOpen(rows[at]);
		} else if ((e.key === "c" || e.key === "C") && e.shiftKey) {
			e.preventDefault();
			void copyText(tableCsv(p.cols, rows));
		}
	};
	const from = Math.max(0, Math.floor(top / ROW) - 8);
	const to = Math.min(rows.length, Math.ceil((top + tall) / ROW) + 8);
	const sortBy = (c: Col) => {
		if (c.sort && p.onSort)
			p.onSort(p.sort === "-" + c.key ? c.key : p.sort === c.key && c.num ? "" : c.num || p.sort === c.key ? "-" + c.key : c.key);
	};
	const tree = p.level !== undefined;
	return (
		<div class="table" ref={box} tabIndex={0} role="group" aria-label={`${p.label}: ${rows.length} rows`} onKeyDown={onKey}
			onScroll={(e) => setTop(e.currentTarget.scrollTop)} style={p.height ? { height: p.height, flex: "none" } : {}}>
			<table role={tree ? "treegrid" : "table"} aria-label={p.label} aria-rowcount={rows.length + 1}
				style={{ minWidth: `${p.cols.reduce((s, c) => s + (c.width ?? 260), 0)}px` }}>
				<colgroup>{p.cols.map((c) => <col key={c.key} style={c.width ? { width: `${c.width}px` } : {}} />)}</colgroup>
				<thead>
					<tr role="row" aria-rowindex={1}>
						{p.cols.map((c) => {
							const on = p.sort === c.key ? "ascending" : p.sort === "-" + c.key ? "descending" : "none";
							const words = (
								<>
									{c.head}
									{c.unit ? <span class="unit"> {c.unit}</span> : null}
									<span class="arrow" aria-hidden="true">{on === "ascending" ? " ▲" : on === "descending" ? " ▼" : ""}</span>
								</>
							);
							return (
								<th key={c.key} role="columnheader" scope="col" class={c.num ? "num" : ""} aria-sort={c.sort ? on : undefined}>
									{c.sort && p.onSort ? <button onClick={() => sortBy(c)}>{words}</button> : words}
								</th>
							);
						})}
					</tr>
				</thead>
				<tbody>
					{from > 0 && <tr aria-hidden="true" style={{ height: `${from * ROW}px` }}><td colSpan={p.cols.length}></td></tr>}
					{rows.slice(from, to).map((r, i) => (
						<tr key={r} role="row" aria-rowindex={from + i + 2} class={r === p.selected ? "on" : ""} aria-selected={tree ? r === p.selected : undefined}
							aria-level={tree ? p.level!(r) + 1 : undefined} aria-expanded={tree ? p.expanded?.(r) : undefined}
							onClick={() => p.onSelect?.(r)} onDblClick={() => p.onOpen?.(r)}>
							{p.cols.map((c) => {
								const share = c.share?.(r);
								return (
									<td key={c.key} role={tree ? "gridcell" : "cell"} class={c.num ? "num" : ""} title={c.title?.(r)}>
										{share !== undefined && share > 0 ? <span class="bar" style={{ width: `${Math.min(100, share * 100)}%` }}></span> : null}
										{c.cell ? c.cell(r) : <span class="v">{c.text(r)}</span>}
									</td>
								);
							})}
						</tr>
					))}
					{to < rows.length && <tr aria-hidden="true" style={{ height: `${(rows.length - to) * ROW}px` }}><td colSpan={p.cols.length}></td></tr>}
				</tbody>
			</table>
			{rows.length === 0 && <p class="none">{p.empty}</p>}
		</div>
	);
}

export function tableCsv(cols: Col[], rows: number[]): string {
	return csv([cols.map((c) => (c.unit ? `${c.head} [${c.unit}]` : c.head)), ...rows.map((r) => cols.map((c) => c.text(r).replaceAll("\u202f", "")))]);
}

export async function copyText(text: string): Promise<void> {
	try {
		await navigator.clipboard.writeText(text);
		say("copied");
	} catch {
		say("this browser does not let a page copy here");
	}
}

// One line that is read aloud and shown for a moment.
export function say(text: string): void {
	const el = document.getElementById("said");
	if (el) {
		el.textContent = text;
		el.classList.remove("shown");
		void el.offsetWidth;
		el.classList.add("shown");
	}
}
