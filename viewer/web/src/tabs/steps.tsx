// SPDX-License-Identifier: MIT. steps.tsx: each step: how long, of which parts; which stand out; and what numbers it had.
import { useMemo } from "preact/hooks";
import { api, get, type MemoryAnswer, type Steps } from "../api";
import { Chart, type Curve, lineColor } from "../chart";
import { family, PART_COLORS } from "../color";
import { column, group, percent, shown, time, withUnit } from "../format";
import { label } from "../model";
import { Choice, Lacking, Loaded } from "../parts";
import { useSession } from "../session";
import { set, usePromise } from "../state";
import { type Col, COUNTS, headWidth, numbers, Table } from "../table";

const PARTS = [["compute", "compute"], ["comm", "comm alone"], ["copy", "copy alone"], ["idle_launch", "launching"], ["idle_gap", "gaps"], ["idle_queued", "queued"], ["idle_unknown", "unknown"], ["idle_host", "host"]]; // GPU_PARTS
export const SLOW = 1.5; // times the median: what stands out

export function useSteps() {
	const { id, meta, beat } = useSession();
	return usePromise(() => (meta.has.steps === false ? null : get<Steps>(api(id, "steps"))), [id, beat]);
}

export function StepsTab() {
	const of = useSteps();
	return <div class="fill"><Loaded of={of}>{(s) => (s.column.step.length === 0 ? <Lacking what="steps" /> : <StepsView s={s} />)}</Loaded></div>;
}

export const whoOf = (p: { pid: number; rank?: number | null } | undefined): string => (p === undefined ? "" : p.rank !== null && p.rank !== undefined ? `rank ${p.rank}` : `process ${p.pid}`);

function median(v: number[]): number {
	const s = [...v].sort((a, b) => a - b);
	return s.length === 0 ? 0 : s[s.length >> 1];
}

function StepsView({ s }: { s: Steps }) {
	const { h, meta } = useSession();
	const c = s.column;
	const proc = c.process as number[] | undefined;
	const which = h.proc ? Number(h.proc) : -1;
	const rows = useMemo(() => c.step.map((_, i) => i).filter((i) => which < 0 ? s.processes.length < 2 || (proc?.[i] ?? 0) === 0 : (proc?.[i] ?? 0) === which), [s, which]);
	const x = useMemo(() => rows.map((i) => c.step[i]), [rows]);
	const mid = useMemo(() => median(rows.map((i) => c.duration[i])), [rows]);
	const slow = useMemo(() => rows.filter((i) => c.duration[i] > mid * SLOW), [rows, mid]);
	// A few that tower over four fifths of the steps would flatten them: these have half of the height then.
	const top = useMemo(() => {
		const d = rows.map((i) => c.duration[i]).sort((a, b) => a - b), most = d[Math.ceil(0.8 * d.length) - 1];
		return d[d.length - 1] > 5 * most ? 2 * most : undefined;
	}, [rows]);
	const beyond = top ? slow.filter((i) => c.duration[i] > top).length : 0;
	const curves = useMemo((): Curve[] => {
		const take = (k: string) => rows.map((i) => c[k]?.[i] ?? null);
		const ret: Curve[] = [];
		const known = rows.some((i) => (c.gpu_busy?.[i] ?? 0) > 0);
		if (known) {
			PARTS.forEach(([k, name], n) => c[k]?.some((v) => v! > 0) && ret.push({ name, color: PART_COLORS[n], v: take(k), kind: "bar" }));
		} else
			ret.push({ name: "duration", color: family("gemm"), v: take("duration"), kind: "bar" });
		if (slow.length > 0 && slow.length <= 60)
			ret.push({ name: `over ${SLOW} × the median`, color: "#aa3377", v: rows.map((i) => (c.duration[i] > mid * SLOW ? c.duration[i] : null)), kind: "dots" });
		return ret;
	}, [rows, mid]);
	const chosen = h.step ? rows.find((i) => c.step[i] === Number(h.step)) ?? -1 : -1;
	const open = (i: number) => {
		if (!meta.has.timeline)
			return;
		const pad = c.duration[i] * 0.05;
		set({ tab: "timeline", t: `${Math.round(Math.max(0, c.start[i] - pad))},${Math.round(c.start[i] + c.duration[i] + pad)}`, range: `${Math.round(c.start[i])},${Math.round(c.start[i] + c.duration[i])}`, box: "all" });
	};
	const cols = useMemo((): Col[] => {
		const d = column("ns", rows.map((i) => c.duration[i]));
		const ret: Col[] = [
			numbers("step", "Step", 90, COUNTS, (i) => c.step[i]),
			...(s.processes.length > 1 ? [{ key: "process", head: "Of", width: 120, text: (i: number) => whoOf(s.processes[proc?.[i] ?? 0]), sort: (i: number) => proc?.[i] ?? 0 }] : []),
			numbers("duration", "Took", 120, d, (i) => c.duration[i], rows.reduce((m, r) => Math.max(m, c.duration[r]), 0)),
			{ key: "ratio", head: "× median", num: true, width: 100, text: (i) => (c.duration[i] / (mid || 1)).toFixed(2), sort: (i) => c.duration[i] },
		];
		for (const [k, words] of [["gpu_busy", "GPU busy"], ...PARTS.map(([k, w]) => [k, /^idle/.test(k) ? `Idle: ${w}` : w[0].toUpperCase() + w.slice(1)]), ["ops", "Operations"]]) {
			if (!c[k]?.some((v) => v !== null && v !== 0))
				continue;
			if (k === "ops")
				ret.push(numbers(k, words, 116, COUNTS, (i) => c[k][i]));
			else
				ret.push(numbers(k, words, headWidth(`${words} ${d.unit}`), d, (i) => c[k][i]));
		}
		const b = column("ns", rows.map((i) => c.start[i]));
		ret.push(numbers("start", "Began at", 124, b, (i) => c.start[i]));
		for (const v of (s.values ?? []).slice(0, 12)) {
			const f = column(inBytes(v) ? "bytes" : v.unit ?? "", v.v);
			ret.push(numbers(`v:${v.name}`, shown(label(v)), Math.min(220, headWidth(`${label(v)} ${f.unit}`)), f, (i) => v.v[i]));
		}
		ret.push({ key: "pad", head: "", text: () => "" });
		return ret;
	}, [s, rows, mid]);
	const totalOf = (k: string) => rows.reduce((n, i) => n + (c[k]?.[i] ?? 0), 0);
	const all = totalOf("duration");
	return (
		<>
			<div class="bar-of">
				<span class="note"><b>{group(rows.length)}</b> {rows.length === 1 ? "step" : "steps"}, median <b>{time(mid)}</b>{totalOf("gpu_busy") > 0 ? <>, GPU busy <b>{percent(totalOf("gpu_busy"), all)}</b> of them</> : null}</span>
				{slow.length > 0 && <span class="note warn">{group(slow.length)} took over {SLOW} × the median: {slow.slice(0, 6).map((i) => <button key={i} class="link" onClick={() => set({ step: String(c.step[i]) })}>{c.step[i]}</button>)}{slow.length > 6 ? " …" : ""}</span>}
				{top && <span class="note">the chart ends at {time(top)}: {group(beyond)} took longer</span>}
				{s.processes.length > 1 && <Choice label="of" value={h.proc ?? "0"} of={s.processes.slice(0, 1024).map((p, i) => [String(i), whoOf(p)] as [string, string])} onChange={(v) => set({ proc: v })} />}
				{chosen >= 0 && meta.has.timeline && <button onClick={() => open(chosen)}>step {c.step[chosen]} in the timeline</button>}
			</div>
			<Chart label={`${rows.length} steps, median ${time(mid)}; the table below has each`} x={x} xIs="step" unit="ns" curves={curves} height={240} zero top={top} selected={chosen >= 0 ? rows.indexOf(chosen) : -1} onPick={(i) => set({ step: String(x[i]) })} />
			<Table label="Steps" cols={cols} rows={rows} sort={h.stsort ?? ""} onSort={(v) => set({ stsort: v })} selected={chosen} onSelect={(i) => set({ step: String(c.step[i]) })} onOpen={open} empty="No steps." />
		</>
	);
}

// What is in bytes, or, where no unit was told, sounds so.
const inBytes = (v: { name: string; unit?: string }) => (v.unit ? v.unit === "bytes" : /memory|bytes/.test(v.name));
// How much a device has in all would flatten what is used of it.
const isMemory = (v: { name: string; unit?: string }) => inBytes(v) && !/memory_total$/.test(v.name);

// What steps and the job itself said of memory.
export function MemoryTab() {
	const { id, meta, beat } = useSession();
	const steps = useSteps();
	const series = usePromise(() => (meta.has.series === false ? null : get<import("../api").SeriesAnswer>(api(id, "series"))), [id, beat]);
	const held = usePromise(() => get<MemoryAnswer>(api(id, "memory")), [id, beat]);
	const of = useMemo(() => {
		const s = steps.value;
		const accounts = held.value?.accounts ?? [];
		const many = new Set(accounts.map((a) => a.process)).size > 1;
		const bySteps = (s?.values ?? []).filter(isMemory).slice(0, 8);
		return { s, bySteps, accounts, byTime: [...accounts.map((a) => ({ name: nameOf(a, many), unit: "bytes", t: a.t, v: a.v })),
			...(series.value?.series ?? []).filter((v) => isMemory(v) && !(accounts.length > 0 && / memory$/.test(v.name)))].slice(0, 8) };
	}, [steps.value, series.value, held.value]);
	if (steps.loading || series.loading || held.loading)
		return <div class="fill"></div>;
	if (of.bySteps.length === 0 && of.byTime.length === 0)
		return <Lacking what="memory" />;
	return (
		<div class="fill scroll">
			{of.byTime.length > 0 && (
				<section class="part">
					<h2>Over time</h2>
					<MemoryOver series={of.byTime} />
				</section>
			)}
			{of.accounts.some((a) => a.owners.length > 0) && <Holders accounts={of.accounts} />}
			{of.bySteps.length > 0 && of.s && <MemorySteps s={of.s} values={of.bySteps} />}
		</div>
	);
}

type Account = MemoryAnswer["accounts"][0];
const nameOf = (a: Account, who: boolean) => `${who ? `${whoOf({ pid: a.process, rank: a.rank < 0 ? null : a.rank })} ` : ""}${a.device} ${a.kind.replaceAll("_", " ")}`;

// Who held one kind of memory: over time, at the peak, now.
function Holders({ accounts }: { accounts: Account[] }) {
	const { h } = useSession();
	const all = useMemo(() => accounts.filter((a) => a.owners.length > 0).sort((a, b) => b.peak - a.peak), [accounts]);
	const a = all[Number(h.held) || 0] ?? all[0];
	const rows = useMemo(() => a.owners.map((_, i) => i), [a]);
	const curves = useMemo(() => a.lines.map((l, k): Curve => ({ name: shown(l.path) || "(no scope)", color: lineColor(k), v: l.v, kind: "hold" })), [a]);
	const cols: Col[] = [
		{ key: "path", head: "Scope", text: (i) => shown(a.owners[i][0]) || "(no scope)", title: (i) => shown(a.owners[i][0]), sort: (i) => a.owners[i][0] },
		...(["At peak", "Now", "Most", "Blocks"] as const).map((head, k): Col => {
			const at = [3, 1, 4, 2][k] as 1 | 2 | 3 | 4;
			const c = column(k < 3 ? "bytes" : "", a.owners.map((o) => o[at]));
			return numbers(head, head, 104, c, (i) => a.owners[i][at], k ? undefined : a.peak);
		}),
	];
	return (
		<section class="part">
			<h2>Who held it</h2>
			<div class="bar-of">
				{all.length > 1 && <Choice label="of" value={String(all.indexOf(a))} of={all.map((x, i): [string, string] => [String(i), nameOf(x, true)])} onChange={(v) => set({ held: v })} />}
				<span class="hint">peak {withUnit(a.peak, "bytes")} at {time(a.peak_t)}; now {withUnit(a.now, "bytes")} in {group(a.blocks)} blocks; {group(a.allocs)} allocations, {group(a.frees)} frees</span>
			</div>
			{a.at.length > 1 && <Chart label="Who held the most, over time; the table below has each at the peak" x={a.at} xIs="time" unit="bytes" curves={curves} height={180} zero />}
			<Table label="Who held memory" cols={cols} rows={rows} sort={h.hsort || "-At peak"} onSort={(v) => set({ hsort: v })} height={`min(320px, ${26 * (rows.length + 1) + 4}px)`} empty="Nobody." />
		</section>
	);
}

function MemoryOver({ series }: { series: import("../api").SeriesAnswer["series"] }) {
	// One axis of time for all: each has instants of its own.
	const { x, curves } = useMemo(() => {
		const x = [...new Set(series.flatMap((s) => s.t))].sort((a, b) => a - b);
		const at = new Map(x.map((t, i) => [t, i]));
		return {
			x, curves: series.map((s, k): Curve => {
				const v: (number | null)[] = new Array(x.length).fill(null);
				s.t.forEach((t, i) => (v[at.get(t)!] = s.v[i]));
				return { name: shown(label(s)), color: lineColor(k), v, kind: "line" };
			}),
		};
	}, [series]);
	return <Chart label={`Memory over time: ${series.length} lines`} x={x} xIs="time" unit="bytes" curves={curves} height={240} zero />;
}

function MemorySteps({ s, values }: { s: Steps; values: NonNullable<Steps["values"]> }) {
	const { h } = useSession();
	const rows = useMemo(() => s.column.step.map((_, i) => i), [s]);
	const one = useMemo(() => rows.filter((i) => (s.column.process?.[i] ?? 0) === 0), [rows]);
	const curves = useMemo(() => values.map((v, k): Curve => ({ name: shown(label(v)), color: lineColor(k), v: one.map((i) => v.v[i]), kind: "line" })), [values, one]);
	const cols: Col[] = [
		numbers("step", "Step", 90, COUNTS, (i) => s.column.step[i]),
		...(s.processes.length > 1 ? [{ key: "process", head: "Of", width: 120, text: (i: number) => whoOf(s.processes[(s.column.process?.[i] as number) ?? 0]), sort: (i: number) => s.column.process?.[i] ?? 0 }] : []),
		...values.map((v): Col => {
			const c = column("bytes", v.v);
			return numbers(v.name, shown(label(v)), Math.min(260, headWidth(`${label(v)} ${c.unit}`)), c, (i) => v.v[i]);
		}),
		{ key: "pad", head: "", text: () => "" },
	];
	return (
		<section class="part">
			<h2>By step</h2>
			<Chart label={`Memory by step: ${values.length} lines; the table below has each step`} x={useMemo(() => one.map((i) => s.column.step[i]), [one])} xIs="step" unit="bytes" curves={curves} height={220} zero
				selected={h.step ? one.findIndex((i) => s.column.step[i] === Number(h.step)) : -1} onPick={(i) => set({ step: String(s.column.step[one[i]]) })} />
			<Table label="Memory by step" cols={cols} rows={rows} sort={h.msort ?? ""} onSort={(v) => set({ msort: v })} height="320px" onSelect={(i) => set({ step: String(s.column.step[i]) })}
				selected={h.step ? rows.find((i) => s.column.step[i] === Number(h.step)) ?? -1 : -1} empty="No steps." />
		</section>
	);
}
