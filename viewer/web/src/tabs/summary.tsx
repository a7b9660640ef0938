// SPDX-License-Identifier: MIT. summary.tsx: what ran, how busy it was, and what took the time.
import type { DeviceSum, Meta } from "../api";
import { family, PART_COLORS, word } from "../color";
import { group, percent, shown, sums, time, when } from "../format";
import { Hints } from "../hints";
import { Legend, Loaded } from "../parts";
import { selectName, selectNode, selectedNode, useOps, useSession, useTree } from "../session";
import { set } from "../state";
import { type Col, Table } from "../table";
import { nameKey } from "../format";
import { label, mainOf, type Tree, unitFor } from "../model";

// What steps were told of samples, tokens and flops, a second.
function rates(t: Meta["session"]["throughput"]): string {
	const of = (v: number | null | undefined, word: string) => (v === undefined || v === null ? "" : `${group(v)} ${word}`);
	const mfu = t?.mfu;
	return [of(t?.samples_per_sec, "samples"), of(t?.tokens_per_sec, "tokens"), of(t?.flops_per_sec ? t.flops_per_sec / 1e9 : null, "GFLOP"),
		mfu === undefined || mfu === null ? "" : `MFU ${percent(mfu, 1)}`].filter(Boolean).join(", ");
}

function Card({ head, value, note, bad }: { head: string; value: string; note?: string; bad?: boolean }) {
	return (
		<div class={bad ? "card bad" : "card"}>
			<dt>{head}</dt>
			<dd>{value}{note ? <small>{note}</small> : null}</dd>
		</div>
	);
}

const partsOf = (d: DeviceSum): [string, string, number][] => d.parts?.length ? d.parts.map(([w, ns], i) => [PART_COLORS[i], w, ns]) : [[PART_COLORS[0], "busy", d.busy_ns], [PART_COLORS[7], "idle", d.idle_ns]];

function Device({ d, name }: { d: DeviceSum; name: string }) {
	const all = d.busy_ns + d.idle_ns;
	return (
		<div class="device">
			<span class="who" title={name}>{name}</span>
			<span class="stack" role="img" aria-label={`${name}: busy ${percent(d.busy_ns, all)}, idle ${percent(d.idle_ns, all)}`}>
				{all > 0 && partsOf(d).map(([c, w, ns]) => <span key={w} style={{ width: `${(100 * ns) / all}%`, background: c }} title={`${w} ${time(ns)}, ${percent(ns, all)}`}></span>)}
			</span>
			<span class="how">{percent(d.busy_ns, all)} busy</span>
		</div>
	);
}

function TopSelf() {
	const { h } = useSession();
	const ops = useOps();
	return (
		<section>
			<h2>Most time in itself</h2>
			<Loaded of={ops}>{(o) => {
				const total = (o.is_cpu ? o.column.self : o.column.total) as number[];
				const rows = o.column.name.map((_, i) => i).sort((a, b) => total[b] - total[a]).slice(0, 10);
				const all = total.reduce((s, v) => s + v, 0);
				const c = sums("ns", rows.map((r) => total[r]));
				const cols: Col[] = [
					{ key: "name", head: o.is_cpu ? "Scope" : "Kernel or copy", text: (r) => shown(o.names[o.column.name[r]]), title: (r) => shown(o.names[o.column.name[r]]) },
					{ key: "total", head: o.is_cpu ? "CPU time" : "GPU time", unit: c.unit, num: true, width: 110, text: (r) => c.text(total[r]), share: (r) => total[r] / all },
					{ key: "pct", head: "", num: true, width: 78, text: (r) => percent(total[r], all) },
					{ key: "count", head: "Count", num: true, width: 76, text: (r) => group(o.column.count[r] as number) },
				];
				return (
					<Table label="Most time in itself" cols={cols} rows={rows} empty="No work of a GPU was recorded." height={rows.length === 0 ? "94px" : `${26 * (rows.length + 1) + 2}px`}
						selected={rows.find((r) => h.sel !== undefined && nameKey(o.names[o.column.name[r]]) === h.sel) ?? -1}
						onSelect={(r) => selectName(o.names[o.column.name[r]])} onOpen={() => set({ tab: "ops" })} />
				);
			}}</Loaded>
		</section>
	);
}

// The nodes with the most that are not just a link of a chain: a child that has all of its parent's stands for it.
export function heaviest(t: Tree, v: Float64Array, n: number): number[] {
	const ret: number[] = [];
	for (let i = 1; i < t.n; i++)
		if (v[i] > 0 && ["scope", "state", "op", "frame"].includes(t.kinds[t.kind[i]]))
			ret.push(i);
	return ret.sort((a, b) => v[b] - v[a]).slice(0, n);
}

function TopTotal() {
	const { h } = useSession();
	const of = useTree();
	return (
		<section>
			<h2>Most time in all below it</h2>
			<Loaded of={of}>{(t) => {
				const m = mainOf(t);
				const v = m ? t.values[m.name] : new Float64Array(t.n);
				const rows = heaviest(t, v, 10);
				const all = t.n > 0 && v[0] > 0 ? v[0] : rows.length > 0 ? v[rows[0]] : 0;
				const c = sums(m ? unitFor(m) : "", rows.map((r) => v[r]));
				const cols: Col[] = [
					{ key: "name", head: "Scope", text: (r) => t.names[t.name[r]], title: (r) => t.names[t.name[r]], cell: (r) => (
						<span class="v">{t.names[t.name[r]]}<span class="in">{t.parent[r] > 0 ? `  in ${t.names[t.name[t.parent[r]]]}` : ""}</span></span>) },
					{ key: "v", head: m ? label(m) : "", unit: c.unit, num: true, width: 110, text: (r) => c.text(v[r]), share: (r) => v[r] / all },
					{ key: "pct", head: "", num: true, width: 78, text: (r) => percent(v[r], all) },
				];
				return (
					<Table label="Most time in all below it" cols={cols} rows={rows} empty="No scopes were recorded." height={rows.length === 0 ? "94px" : `${26 * (rows.length + 1) + 2}px`}
						selected={selectedNode(t, h)} onSelect={(r) => selectNode(t, r)} onOpen={() => set({ tab: "tree" })} />
				);
			}}</Loaded>
		</section>
	);
}

// Kernels and copies of a session by class, as a bar each: what the time was spent on.
function ByClass() {
	const ops = useOps();
	return (
		<Loaded of={ops}>{(o) => {
			const sum = new Map<string, number>();
			const words = o.column.family ?? o.column.class ?? [];
			o.column.name.forEach((_, i) => {
				const w = String(words[i] ?? "other");
				sum.set(w, (sum.get(w) ?? 0) + (Number(o.column.total[i]) || 0));
			});
			const parts = [...sum].filter(([, v]) => v > 0).sort((a, b) => b[1] - a[1]);
			const all = parts.reduce((s, [, v]) => s + v, 0);
			if (o.is_cpu || all === 0)
				return null;
			return (
				<>
					<div class="device">
						<span class="who">Kernels and copies</span>
						<span class="stack" role="img" aria-label={parts.map(([w, v]) => `${w} ${percent(v, all)}`).join(", ")}>
							{parts.map(([w, v]) => <span key={w} style={{ width: `${(100 * v) / all}%`, background: family(w) }} title={`${w} ${time(v)}`}></span>)}
						</span>
						<span class="how">{time(all)}</span>
					</div>
					<Legend of={parts.map(([w, v]) => [family(w), `${word(w)} ${percent(v, all)}`])} />
				</>
			);
		}}</Loaded>
	);
}

export function Summary() {
	const { meta } = useSession();
	const s = meta.session;
	const has = meta.summary ?? {};
	const devices = s.devices ?? [];
	const wall = s.duration_ns ?? 0;
	const parts: DeviceSum[] = has.devices?.length ? has.devices.filter((d) => d.busy_ns > 0) : devices.filter((d) => (d.busy_ns ?? 0) > 0 && wall > 0).map((d) => ({
		device: d.id, busy_ns: Math.min(d.busy_ns!, wall), idle_ns: Math.max(0, wall - d.busy_ns!),
	}));
	const busy = parts.reduce((n, d) => n + d.busy_ns, 0);
	const all = parts.reduce((n, d) => n + d.busy_ns + d.idle_ns, 0);
	const nameOf = (d: DeviceSum) => {
		const dev = devices.find((x) => String(x.id) === String(d.device));
		return `GPU ${d.device}` + (dev?.name ? `  ${shown(dev.name)}` : "");
	};
	const drops = s.drops ?? [];
	const lost = meta.lost ?? 0; // a launch and its record once
	const steps = meta.steps ?? 0;
	const inCalls = s.overhead_in_calls;
	const told = rates(s.throughput);
	const notes = [...(s.notes ?? []), ...(meta.warnings ?? []), ...(s.source === "replay" ? ["This is a recording that was played back: no time here was measured on this machine."] : []), ...(s.gpu_why ? [s.gpu_why] : [])];
	const hosts = [...new Set(meta.processes.map((p) => p.host).filter(Boolean))] as string[];
	return (
		<div class="overview">
			<Hints />
			<dl class="cards">
				<Card head="Recorded" value={time(s.duration_ns)} note={s.created_ns ? when(s.created_ns) : ""} />
				<Card head="GPU busy" value={all > 0 ? percent(busy, all) : "–"} note={all > 0 ? `${time(busy)}${parts.length > 1 ? ` on ${parts.length} GPUs` : ""}` : devices.length > 0 ? "not measured" : "no GPU"} />
				<Card head="Launches" value={s.launches === undefined || s.launches === null ? "–" : group(s.launches)} note={s.unmatched ? `${group(s.unmatched)} without their kernel` : `${meta.processes.length} ${meta.processes.length === 1 ? "process" : "processes"}`} />
				<Card head="Steps" value={steps > 0 ? group(steps) : "–"} note={steps === 0 ? "none named" : [has.steps_per_s ? `${has.steps_per_s.toFixed(has.steps_per_s < 10 ? 2 : 1)} a second` : "", has.step_p50_ns ? `median ${time(has.step_p50_ns)}` : ""].filter(Boolean).join(", ") || (wall > 0 ? `${(steps / (wall / 1e9)).toFixed(1)} a second` : "")} />
				<Card head="Lost" value={group(lost)} note={lost ? "events" : "nothing"} bad={lost > 0} />
				<Card head="Overhead" value={s.overhead === undefined || s.overhead === null ? "–" : percent(s.overhead, 1)} note="of a core: agents and daemon" />
				{inCalls && <Card head="Overhead in calls" value={time((inCalls.driver_ns ?? 0) + (inCalls.cupti_ns ?? 0) + (inCalls.other_ns ?? 0))}
					note={`driver ${time(inCalls.driver_ns ?? 0)}, recording ${time(inCalls.cupti_ns ?? 0)}${inCalls.other_ns ? `, not known ${time(inCalls.other_ns)}` : ""}`} />}
			</dl>
			{(devices.length > 0 || parts.length > 0) && (
				<section>
					<h2>Where the GPU's time went</h2>
					{parts.slice(0, 64).map((d) => <Device key={String(d.device)} d={d} name={nameOf(d)} />)}
					{parts.length > 0 && <Legend of={partsOf(parts.find((d) => d.parts?.length) ?? parts[0]).filter((x) => x[2] > 0).map(([c, w, ns]) => [c, parts.length > 1 ? w : `${w} ${percent(ns, all)}`])} />}
					<ByClass />
				</section>
			)}
			<div class="two">
				<TopTotal />
				<TopSelf />
			</div>
			<div class="two">
				<section>
					<h2>What ran</h2>
					<dl class="facts">
						<dt>command</dt><dd><code>{shown(s.command ?? "–")}</code></dd>
						{hosts.length > 0 && <><dt>on</dt><dd>{hosts.slice(0, 8).map(shown).join(", ")}</dd></>}
						<dt>devices</dt><dd>{devices.length === 0 ? "none" : devices.slice(0, 16).map((d) => shown(d.name)).join(", ")}</dd>
						<dt>processes</dt><dd>{meta.processes.slice(0, 16).map((p) => `${p.pid}${p.rank !== undefined && p.rank !== null ? ` (rank ${p.rank})` : ""}${p.end ? ` ${shown(p.end)}` : ""}`).join(", ") || "–"}{meta.processes.length > 16 ? `, and ${meta.processes.length - 16} more` : ""}</dd>
						{told !== "" && <><dt>a second</dt><dd>{told}</dd></>}
						<dt>session</dt><dd>{meta.ref}, {s.state ?? "a file"}</dd>
					</dl>
				</section>
				<section>
					<h2>What to know</h2>
					<ul class="notes">
						{notes.map((w) => <li key={w} class="warn">{shown(w)}</li>)}
						{drops.map((c) => <li key={c.cause} class="warn">{c.exact === false ? "at least " : ""}{group(c.count)} lost: {shown(c.words ?? c.cause)}</li>)}
						{drops.reduce((n, d) => n + d.count, 0) > lost && <li>A lost record and the launch that lacks it count once: {group(lost)} in all.</li>}
						{(meta.lacks ?? []).map((l) => <li key={l.what}>No {l.what}{l.words ? `: ${shown(l.words)}` : "."}{l.switch ? <> <span class="hint">Recorded by</span> <code>{shown(l.switch)}</code></> : null}</li>)}
						{notes.length + drops.length + (meta.lacks ?? []).length === 0 && <li>Nothing was lost, and nothing is missing.</li>}
					</ul>
				</section>
			</div>
		</div>
	);
}
