// SPDX-License-Identifier: MIT. window.tsx: what stands beside a timeline: what the server says of its window, the tables of a range and of what is shown.
import { useEffect, useMemo, useState } from "preact/hooks";
import { api, getJson, isReport, type Lane, type Sums } from "../api";
import { column, group, nameKey, shown, time } from "../format";
import { Loaded } from "../parts";
import { useSession } from "../session";
import { now, set, usePromise } from "../state";
import { type Col, COUNTS, named, numbers, Table } from "../table";
import type { Tile } from "../tiles";

export interface Slice {
	tile: Tile;
	i: number;
}

export function SumsOf({ id, range, lanes }: { id: string; range: [number, number]; lanes: number[] }) {
	const { h } = useSession();
	const path = `${api(id, "sums")}?t0=${Math.max(0, Math.floor(range[0]))}&t1=${Math.ceil(range[1])}&lanes=${spans(lanes)}`;
	const [at, settle] = useState("");
	useEffect(() => {
		const wait = setTimeout(() => settle(path), 200);
		return () => clearTimeout(wait);
	}, [path]);
	const s = usePromise(() => (at ? getJson<Sums>(at) : null), [at]);
	return (
		<div class="sums">
			<header>
				<h2>{time(range[1] - range[0])} in {lanes.length} {lanes.length === 1 ? "lane" : "lanes"}</h2>
				<button onClick={() => set({ range: "", box: "" })}>close</button>
			</header>
			<Loaded of={s}>{(v) => <SumTable v={v} sort={h.bsort ?? "-total"} />}</Loaded>
		</div>
	);
}

function SumTable({ v, sort }: { v: Sums; sort: string }) {
	const rows = useMemo(() => v.name.map((_, i) => i), [v]);
	const names = useMemo(() => v.name.map(shown), [v]);
	const c = column("ns", v.total);
	const e = column("ns", v.min, v.max);
	const cols: Col[] = [
		named("Name", (r) => names[r]),
		numbers("total", "Total", 110, c, (r) => v.total[r], v.total[0]),
		numbers("count", "Count", 90, COUNTS, (r) => v.count[r]),
		numbers("avg", "Average", 110, e, (r) => v.total[r] / (v.count[r] || 1)),
		numbers("min", "Least", 100, e, (r) => v.min[r]),
		numbers("max", "Most", 100, e, (r) => v.max[r]),
	];
	return (
		<>
			<Table label="What is in it" cols={cols} rows={rows} sort={sort} onSort={(s) => set({ bsort: s })} onSelect={(r) => set({ sel: nameKey(v.name[r]), node: "" })} empty="Nothing is in it." />
			{v.rest && v.rest.names > 0 && <p class="note">and {group(v.rest.names)} names more, with {time(v.rest.total)} in {group(v.rest.count)}</p>}
		</>
	);
}

// 0,1,2,5 as "0-2,5".
function spans(ids: number[]): string {
	const s = [...ids].sort((a, b) => a - b);
	const ret: string[] = [];
	for (let i = 0; i < s.length;) {
		let k = i;
		while (k + 1 < s.length && s[k + 1] === s[k] + 1)
			k++;
		ret.push(k > i ? `${s[i]}-${s[k]}` : `${s[i]}`);
		i = k + 1;
	}
	return ret.join(",");
}

// The table of what is in the window.
export function Listing({ tiles, view, rows, onSelect }: { tiles: { tile: Tile; from: number; to: number }[]; view: { t0: number; t1: number }; rows: ({ lane: Lane } | undefined)[]; onSelect: (s: Slice) => void }) {
	const { h } = useSession();
	const all = useMemo(() => {
		const ret: Slice[] = [];
		for (const { tile, from, to } of tiles)
			for (let i = 0; i < tile.n && ret.length < 50_000; i++)
				if (tile.start[i] < view.t1 && tile.start[i] + tile.dur[i] > view.t0 && tile.start[i] < to && (tile.start[i] >= from || from <= view.t0))
					ret.push({ tile, i });
		return ret;
	}, [tiles, view.t0, view.t1]);
	const ids = useMemo(() => all.map((_, i) => i), [all]);
	const s = (r: number) => all[r];
	const c = column("ns", all.map((x) => x.tile.dur[x.i]));
	const b = column("ns", all.map((x) => x.tile.start[x.i]));
	const cols: Col[] = [
		named("Name", (r) => s(r).tile.names[s(r).tile.name[s(r).i]]),
		{ key: "lane", head: "Lane", width: 180, text: (r) => shown(rows[s(r).tile.lane[s(r).i]]?.lane.name ?? ""), sort: (r) => s(r).tile.lane[s(r).i] },
		numbers("start", "Begins", 120, b, (r) => s(r).tile.start[s(r).i]),
		numbers("dur", "Took", 120, c, (r) => s(r).tile.dur[s(r).i]),
		numbers("count", "Events", 90, COUNTS, (r) => s(r).tile.count[s(r).i]),
	];
	return <Table label="What is shown" cols={cols} rows={ids} sort={h.lsort ?? "start"} onSort={(x) => set({ lsort: x })} onSelect={(r) => onSelect(s(r))} empty="Nothing is in this window." />;
}

// What the server says of the window, asked for when it rests; until then what stood there before.
export function useWindow<T>(id: string, what: string, on: boolean, t: string, all: [number, number]): (T & { t0: number; t1: number }) | null {
	const [a, put] = useState<(T & { t0: number; t1: number }) | null>(null);
	useEffect(() => {
		if (!on || isReport) {
			put(null);
			return;
		}
		const stop = new AbortController();
		const wait = setTimeout(() => {
			const [x, y] = (now().t ?? t).split(",").map(Number);
			const [b, e] = y > x ? [x, y] : all;
			const [t0, t1] = [Math.max(0, Math.floor(b)), Math.ceil(e)];
			getJson<T>(`${api(id, what)}t0=${t0}&t1=${t1}`, stop.signal).then(
				(v) => put({ ...v, t0, t1 }),
				() => put(null), // the tiles say what is wrong
			);
		}, 300);
		return () => {
			clearTimeout(wait);
			stop.abort();
		};
	}, [id, on, now().t]);
	return a;
}
