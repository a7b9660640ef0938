// SPDX-License-Identifier: MIT. sessions.tsx: what the database holds; one click opens another.
import { useMemo } from "preact/hooks";
import { forget } from "../api";
import { group, shown, time, when } from "../format";
import { matcher, useSession } from "../session";
import { set } from "../state";
import { Chart } from "../chart";
import type { Sessions } from "../api";
import { type Col, Table } from "../table";
import { Search } from "../parts";

const HEAD: [string, string, number | undefined][] = [
	["id", "ID", 60], ["name", "Name", 200], ["state", "State", 92], ["source", "Source", 84], ["created_ns", "Began", 168], ["duration_ns", "Took", 110],
	["processes", "Processes", 100], ["launches", "Launches", 100], ["tags", "Tags", 90], ["command", "Command", undefined],
];

export function SessionsTab() {
	const { sessions, id, h } = useSession();
	const q = h.sq ?? "";
	const at = (name: string) => sessions.columns.findIndex((c) => c.name === name);
	const ids = useMemo(() => {
		const m = matcher(q);
		const [n, c, t] = [at("name"), at("command"), at("tags")];
		return sessions.rows.map((_, i) => i).filter((i) => !m || [n, c, t].some((k) => k >= 0 && m(String(sessions.rows[i][k] ?? ""))));
	}, [sessions, q]);
	const cols: Col[] = HEAD.filter(([k]) => at(k) >= 0).map(([key, head, width]): Col => {
		const k = at(key);
		const v = (r: number) => sessions.rows[r][k];
		const num = ["id", "duration_ns", "processes", "launches"].includes(key);
		const text = (r: number) => {
			const x = v(r);
			if (x === null || x === undefined)
				return "";
			return key === "created_ns" ? when(Number(x)) : key === "duration_ns" ? time(Number(x)) : num && key !== "id" ? group(Number(x)) : shown(String(x) || " ").trim();
		};
		return { key, head, num: num && key !== "id", ...(width ? { width } : {}), text, title: text, sort: (r) => (typeof v(r) === "number" ? (v(r) as number) : String(v(r) ?? "")) };
	});
	const idOf = (r: number) => String(sessions.rows[r][at("id")]);
	return (
		<div class="fill">
			<div class="bar-of">
				<Search value={q} label="Find in names, commands, tags" onInput={(s) => set({ sq: s })} note={`${group(ids.length)} of ${group(sessions.rows.length)}`} />
				<span class="hint">Enter or a double click opens one.</span>
			</div>
			<History sessions={sessions} of={h.ss ?? id} />
			<Table label="Sessions" cols={cols} rows={ids} sort={h.ssort ?? ""} onSort={(s) => set({ ssort: s })}
				selected={sessions.rows.findIndex((r) => String(r[at("id")]) === (h.ss ?? id))} onSelect={(r) => set({ ss: idOf(r) })}
				onOpen={(r) => {
					forget();
					set({ s: idOf(r), tab: "summary", node: "", sel: "", z: "", ss: "", x: "", t: "" });
				}} empty={q ? "None has this in it." : "Nothing has been recorded yet: `protonctl run -- CMD` records a run."} />
		</div>
	);
}

const MOST = 400;

// How long all sessions of one name took, the oldest first.
function History({ sessions, of }: { sessions: Sessions; of: string }) {
	const { x, curves, name } = useMemo(() => {
		const at = (k: string) => sessions.columns.findIndex((c) => c.name === k);
		const [id, n, took, source] = ["id", "name", "duration_ns", "source"].map(at);
		const me = sessions.rows.find((r) => String(r[id]) === of);
		const rows = me ? sessions.rows.filter((r) => r[n] === me[n] && r[source] === me[source] && Number.isFinite(Number(r[id]))).sort((a, b) => Number(a[id]) - Number(b[id])).slice(-MOST) : [];
		return { name: me ? shown(String(me[n])) : "", x: rows.map((r) => Number(r[id])), curves: [{ name: me ? `how long ${shown(String(me[n])).slice(0, 80)} took` : "", color: "#4477aa", v: rows.map((r) => (r[took] === null ? null : Number(r[took]))), kind: "line" as const }] };
	}, [sessions, of]);
	if (x.length < 2)
		return null;
	return <Chart label={`How long each of ${x.length} sessions named ${name.slice(0, 80)} took; the table below has them`} x={x} xIs="session" unit="ns" curves={curves} height={150} zero selected={x.indexOf(Number(of))} onPick={(i) => set({ ss: String(x[i]) })} />;
}
