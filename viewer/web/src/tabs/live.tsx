// SPDX-License-Identifier: MIT. live.tsx: what a session does now. One stream a page, closed while nobody sees it.
import { useEffect, useRef, useState } from "preact/hooks";
import type { LiveFrame } from "../api";
import { Chart } from "../chart";
import { column, group, percent, shown } from "../format";
import { Toggle } from "../parts";
import { useSession } from "../session";
import { set } from "../state";
import { type Col, COUNTS, named, numbers, Table } from "../table";

const KEPT = 480; // frames: two minutes

interface Past {
	t: number[];
	rate: (number | null)[];
	busy: (number | null)[];
}

export function LiveTab() {
	const { id, meta, h } = useSession();
	const [frame, setFrame] = useState<LiveFrame | null>(null);
	const [state, setState] = useState<"waiting" | "on" | "lost" | "ended">("waiting");
	const past = useRef<Past>({ t: [], rate: [], busy: [] });
	const [shownPast, setPast] = useState<Past>(past.current);
	const paused = h.paused === "1";
	useEffect(() => {
		if (!meta.live || paused)
			return;
		let source: EventSource | null = null;
		const began = Date.now();
		const close = () => {
			source?.close();
			source = null;
		};
		const open = () => {
			if (document.hidden || source)
				return;
			source = new EventSource(`api/live?session=${encodeURIComponent(id)}`);
			source.onmessage = (e) => {
				let f: LiveFrame;
				try {
					f = JSON.parse(String(e.data)) as LiveFrame;
				} catch {
					return;
				}
				if (f.away) {
					setFrame((was) => ({ ...was, away: f.away! }));
					return;
				}
				const p = past.current;
				p.t.push((Date.now() - began) / 1000);
				p.rate.push(f.step_rate ?? null);
				p.busy.push(f.busy === null || f.busy === undefined ? null : f.busy * 100);
				for (const k of ["t", "rate", "busy"] as const)
					if (p[k].length > KEPT)
						p[k].shift();
				setFrame(f);
				setState("on");
				setPast({ t: [...p.t], rate: [...p.rate], busy: [...p.busy] });
			};
			source.addEventListener("end", () => {
				setState("ended");
				close();
			});
			source.onerror = () => setState(source?.readyState === EventSource.CLOSED ? "ended" : "lost");
		};
		const seen = () => (document.hidden ? close() : open());
		document.addEventListener("visibilitychange", seen);
		open();
		return () => {
			document.removeEventListener("visibilitychange", seen);
			close();
		};
	}, [id, meta.live, paused]);
	if (!meta.live)
		return (
			<div class="lacking">
				<h2>This session has ended</h2>
				<p>While a session runs, its steps, its GPU and its hottest scopes are shown here as they are.</p>
				<pre>protonview web @job:PID</pre>
			</div>
		);
	const top = frame?.top ?? [];
	const c = column("ns", top.map((x) => x.time));
	const q = column("ns", top.map((x) => x.p50 ?? 0), top.map((x) => x.p99 ?? 0));
	const cols: Col[] = [
		named("Scope or kernel", (r) => shown(top[r].name)),
		numbers("time", "Time of late", 140, c, (r) => top[r].time, top[0]?.time),
		numbers("count", "Count", 90, COUNTS, (r) => top[r].count),
		numbers("p50", "p50", 100, q, (r) => top[r].p50),
		numbers("p99", "p99", 100, q, (r) => top[r].p99),
	];
	const words = { waiting: "waiting for the first numbers", on: "live", lost: "the stream broke off: trying again", ended: "the session has ended: reload for all of it" }[state];
	return (
		<div class="fill">
			<div class="bar-of">
				<span class={`state ${state === "on" && !paused ? "live" : ""}`} role="status">{paused ? "paused" : words}</span>
				<Toggle on={paused} words="pause" onChange={(on) => set({ paused: on ? "1" : "" })} />
				{frame?.away ? <span class="note warn">{shown(frame.away)}</span> : null}
				{frame && <span class="note"><b>{frame.step_rate === null || frame.step_rate === undefined ? "–" : frame.step_rate.toFixed(1)}</b> steps a second, <b>{frame.steps === null || frame.steps === undefined ? "–" : group(frame.steps)}</b> in all; GPU busy <b>{frame.busy === null || frame.busy === undefined ? "–" : percent(frame.busy, 1)}</b>; lost <b>{group(frame.drops ?? 0)}</b></span>}
			</div>
			<LiveCharts p={shownPast} />
			<Table label="Hottest of late" cols={cols} rows={top.map((_, i) => i)} sort={h.vsort ?? "-time"} onSort={(s) => set({ vsort: s })} empty="Nothing ran of late." />
		</div>
	);
}

function LiveCharts({ p }: { p: Past }) {
	const curves = (name: string, color: string, v: (number | null)[]) => [{ name, color, v, kind: "line" as const }];
	return (
		<div class="halves charts-two">
			<Chart label="Steps a second" x={p.t} xIs="seconds" unit="/s" curves={curves("steps a second", "#4477aa", p.rate)} height={150} zero />
			{p.busy.some((v) => v !== null) && <Chart label="GPU busy" x={p.t} xIs="seconds" unit="%" curves={curves("GPU busy", "#ee7733", p.busy)} height={150} zero />}
		</div>
	);
}
