// SPDX-License-Identifier: MIT. series.tsx: any number over time: what the job set, what was counted.
import { useMemo } from "preact/hooks";
import { api, get, type SeriesAnswer } from "../api";
import { Chart, lineColor } from "../chart";
import { group, shown, time, withUnit, column } from "../format";
import { Find, Lacking, Loaded } from "../parts";
import { matcher, useSession } from "../session";
import { set, usePromise } from "../state";
import { type Col, COUNTS, numbers, Table } from "../table";

const AT_ONCE = 6;

export function SeriesTab() {
	const { id, beat } = useSession();
	const of = usePromise(() => get<SeriesAnswer>(api(id, "series")), [id, beat]);
	return <div class="fill"><Loaded of={of}>{(s) => (s.series.length === 0 ? <Lacking what="series" /> : <View s={s} />)}</Loaded></div>;
}

function View({ s }: { s: SeriesAnswer }) {
	const { h } = useSession();
	const q = h.q ?? "";
	const rows = useMemo(() => {
		const m = matcher(q);
		return s.series.map((_, i) => i).filter((i) => !m || m(shown(s.series[i].name)));
	}, [s, q]);
	const on = useMemo(() => (h.on ? h.on.split(",").map(Number).filter((i) => i >= 0 && i < s.series.length) : rows.slice(0, 3)).slice(0, AT_ONCE), [h.on, rows]);
	const toggle = (i: number) => {
		const next = on.includes(i) ? on.filter((k) => k !== i) : [...on, i].slice(-AT_ONCE);
		set({ on: next.join(",") || "-1" });
	};
	const stat = useMemo(() => s.series.map((x) => {
		const v = x.v.filter((n): n is number => n !== null);
		return { n: v.length, min: v.reduce((a, b) => Math.min(a, b), Infinity), max: v.reduce((a, b) => Math.max(a, b), -Infinity), last: v[v.length - 1] };
	}), [s]);
	const say = (r: number, v: number | undefined) => (v === undefined || !Number.isFinite(v) ? "–" : withUnit(v, s.series[r].unit));
	const cols: Col[] = [
		{ key: "name", head: "Number", text: (r) => shown(s.series[r].name), title: (r) => shown(s.series[r].name), sort: (r) => shown(s.series[r].name), cell: (r) => (
			<span class="v"><input type="checkbox" tabIndex={-1} aria-label={`draw ${shown(s.series[r].name).slice(0, 80)}`} checked={on.includes(r)} onClick={(e) => e.stopPropagation()} onChange={() => toggle(r)} /> {shown(s.series[r].name)}</span>) },
		{ key: "process", head: "Process", width: 110, text: (r) => shown(String(s.series[r].process ?? "") || "–") },
		numbers("n", "Values", 90, COUNTS, (r) => stat[r].n),
		{ key: "min", head: "Least", num: true, width: 120, text: (r) => say(r, stat[r].min), sort: (r) => stat[r].min },
		{ key: "max", head: "Most", num: true, width: 120, text: (r) => say(r, stat[r].max), sort: (r) => stat[r].max },
		{ key: "last", head: "Last", num: true, width: 120, text: (r) => say(r, stat[r].last), sort: (r) => stat[r].last ?? NaN },
	];
	const shownOne = on.length === 1 && h.table === "1" ? s.series[on[0]] : undefined;
	return (
		<>
			<div class="bar-of">
				<Find note={`${group(rows.length)} of ${group(s.series.length)}`} />
				<span class="hint">Enter draws one or takes it away; {AT_ONCE} at once.</span>
				{on.length === 1 && <button aria-pressed={h.table === "1"} onClick={() => set({ table: h.table === "1" ? "" : "1" })}>its values as a table</button>}
			</div>
			<div class="charts">
				{shownOne ? <Values s={shownOne} /> : on.map((i) => <One key={i} s={s.series[i]} color={lineColor(i)} tall={Math.max(130, Math.min(300, Math.floor((innerHeight - 420) / on.length)))} />)}
				{on.length === 0 && <p class="none">Nothing is chosen.</p>}
			</div>
			<Table label="Numbers" cols={cols} rows={rows} sort={h.nsort ?? ""} onSort={(v) => set({ nsort: v })} selected={h.num ? Number(h.num) : -1} onSelect={(r) => set({ num: String(r) })} onOpen={toggle} height={`min(34%, ${26 * (rows.length + 1) + 4}px)`} empty={q ? "No name has this in it." : "None."} />
		</>
	);
}

function One({ s, color, tall }: { s: SeriesAnswer["series"][0]; color: string; tall: number }) {
	const curves = useMemo(() => [{ name: shown(s.name).slice(0, 120), color, v: s.v, kind: "line" as const }], [s, color]);
	return <Chart label={`${shown(s.name).slice(0, 200)} over ${time((s.t[s.t.length - 1] ?? 0) - (s.t[0] ?? 0))}; the table below has least and most`} x={s.t} xIs="time" unit={s.unit} curves={curves} height={tall} sync="series" />;
}

function Values({ s }: { s: SeriesAnswer["series"][0] }) {
	const rows = useMemo(() => s.t.map((_, i) => i), [s]);
	const [t, v] = [column("ns", s.t), column(s.unit, s.v)];
	const cols: Col[] = [
		{ key: "t", head: "At", unit: t.unit, num: true, width: 140, text: (i) => t.text(s.t[i]) },
		{ key: "v", head: shown(s.name).slice(0, 60), unit: v.unit, num: true, width: 220, text: (i) => v.text(s.v[i]) },
		{ key: "pad", head: "", text: () => "" },
	];
	return <Table label={`Values of ${shown(s.name).slice(0, 80)}`} cols={cols} rows={rows} empty="None." />;
}
