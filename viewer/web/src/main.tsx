// SPDX-License-Identifier: MIT. main.tsx: the frame: which session, which tab, what is selected; the keys.
import "uplot/dist/uPlot.min.css";
import "./app.css";
import { type FunctionComponent, render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { api, forget, get, getBytes, inlinedPaths, isReport, type Kind, type Meta, type Sessions } from "./api";
import { Details } from "./details";
import { shown, time } from "./format";
import { Busy, Lacking, Trouble } from "./parts";
import { Session } from "./session";
import { now, set, useHash, usePromise } from "./state";
import { say } from "./table";
import { BottlenecksTab } from "./tabs/bottlenecks";
import { FlameTab, SunburstTab } from "./tabs/flame";
import { LiveTab } from "./tabs/live";
import { OpsTab } from "./tabs/ops";
import { RanksTab } from "./tabs/ranks";
import { SeriesTab } from "./tabs/series";
import { SessionsTab } from "./tabs/sessions";
import { MemoryTab, StepsTab } from "./tabs/steps";
import { Summary } from "./tabs/summary";
import { TimelineTab } from "./tabs/timeline";
import { TreeTab } from "./tabs/tree";

// All tabs, in order; `has` is what a session must have for it.
const TABS: { key: string; words: string; of: FunctionComponent; has?: Kind; aside?: boolean; live?: boolean }[] = [
	{ key: "summary", words: "Summary", of: Summary, aside: true },
	{ key: "bottlenecks", words: "Bottlenecks", of: BottlenecksTab },
	{ key: "tree", words: "Tree", of: TreeTab, aside: true },
	{ key: "flame", words: "Flame", of: FlameTab, aside: true },
	{ key: "graph", words: "Call graph", of: SunburstTab, aside: true },
	{ key: "ops", words: "Operations", of: OpsTab, aside: true },
	{ key: "timeline", words: "Timeline", of: TimelineTab, has: "timeline" },
	{ key: "steps", words: "Steps", of: StepsTab, has: "steps" },
	{ key: "memory", words: "Memory", of: MemoryTab, has: "memory" },
	{ key: "series", words: "Series", of: SeriesTab, has: "series" },
	{ key: "ranks", words: "Ranks", of: RanksTab, has: "ranks" },
	{ key: "sessions", words: "Sessions", of: SessionsTab },
	{ key: "live", words: "Live", of: LiveTab, live: true },
];

const KEYS: [string, string][] = [
	["1 … 9, 0, -, =, \\", "a tab by its place"],
	["[  ]", "the tab before, the next"],
	["/", "search"],
	["Esc", "leave the search; close a menu; select nothing"],
	["t", "light or dark"],
	["?", "these keys"],
	["↑ ↓ ← →", "tables, bars, rings, charts: move; a tree: open and close"],
	["Enter", "open, zoom in; a chart: select"],
	["Backspace", "zoom out"],
	["W S A D", "timeline and bars: zoom in and out, left and right"],
	["drag, double click", "timeline: a range; charts: zoom in, zoom out"],
	["N  Shift+N", "timeline: the next, the one before, of the name that is selected"],
	["Q E", "timeline: lane above, lane below"],
	["Shift+Q  Shift+E", "timeline: move the lane up, down"],
	["P  H  O", "timeline: pin the lane, hide it, open its deeper rows"],
	["M", "timeline: measure: what is selected becomes the range"],
	["F", "timeline: zoom to what is selected; again: to all"],
	["Shift+C", "tables: copy as CSV"],
];

function Help({ close }: { close: () => void }) {
	return (
		<dialog class="help" ref={(d) => {
			if (d && !d.open)
				d.showModal();
		}} onClose={close} onClick={(e) => e.target === e.currentTarget && close()} aria-labelledby="keys">
			<h2 id="keys">Keys</h2>
			<dl>{KEYS.map(([k, w]) => <div key={k}><dt><kbd>{k}</kbd></dt><dd>{w}</dd></div>)}</dl>
			<button onClick={close}>close</button>
		</dialog>
	);
}

// Light or dark: as was chosen, else as the system has it.
const THEME = "protond-theme";
const root = document.documentElement;
const [dark, forced] = ["(prefers-color-scheme: dark)", "(forced-colors: active)"].map((q) => matchMedia(q));
let chosen: string | null = null;
try {
	chosen = localStorage.getItem(THEME);
} catch {
	/* a report from a file may keep nothing */
}

function theme(): void {
	root.dataset.theme = chosen || (dark.matches ? "dark" : "light");
	dispatchEvent(new Event("themed"));
}

function turnTheme(): void {
	chosen = root.dataset.theme === "dark" ? "light" : "dark";
	try {
		localStorage.setItem(THEME, chosen);
	} catch {
		/* as above */
	}
	theme();
}

// The endings of proto/terms/formats.h that are one file; a test compares them.
const TIMELINE = ["json", "pt.trace.json", "pftrace", "tfevents"];
const FORMATS: [string, string][] = [
	["protond", "the whole session"], ["hatchet", "Hatchet"], ["hatchet_msgpack", "Hatchet, smaller"], ["sqlite", "SQLite"], ["pftrace", "Perfetto"], ["json", "Chrome trace"], ["pt.trace.json", "torch.profiler"], ["tfevents", "TensorBoard"],
	["folded", "folded stacks"], ["speedscope.json", "speedscope"], ["pb.gz", "pprof"], ["csv", "CSV of nodes"], ["kernels.csv", "CSV of kernels"], ["nodes.json", "JSON of nodes"],
	["kernels.json", "JSON of kernels"], ["svg", "flame graph, SVG"], ["bars.svg", "bars, SVG"],
];

// Its page gets the file from this one, once it answers; nothing is loaded from there.
const PERFETTO = "https://ui.perfetto.dev";
function inPerfetto(id: string, title: string): void {
	const w = open(PERFETTO);
	const done = (words: string) => {
		clearInterval(ping);
		removeEventListener("message", pong);
		say(words);
	};
	const buffer = getBytes(api(id, "export.pftrace"));
	const pong = (e: MessageEvent) => {
		if (e.source !== w || e.origin !== PERFETTO || e.data !== "PONG")
			return;
		done("sent to Perfetto");
		void buffer.then((b) => w!.postMessage({ perfetto: { buffer: b, title } }, PERFETTO), (x: Error) => say(x.message));
	};
	let tries = 0;
	const ping = setInterval(() => (!w || w.closed || ++tries > 300 ? done("Perfetto does not answer: save as Perfetto, and drop the file there") : w.postMessage("PING", PERFETTO)), 100);
	addEventListener("message", pong);
}

function App() {
	const h = useHash();
	const [help, setHelp] = useState(false);
	const [beat, setBeat] = useState(0);
	const sessions = usePromise(() => get<Sessions>("api/sessions"), []);
	const id = useMemo(() => {
		if (h.s)
			return h.s;
		const s = sessions.value;
		if (s?.open?.length)
			return String(s.open[0]);
		const inside = inlinedPaths("api/s/")[0];
		if (inside)
			return decodeURIComponent(inside.split("/")[2]);
		const k = s?.columns.findIndex((c) => c.name === "id") ?? -1;
		return s && k >= 0 && s.rows.length > 0 ? String(s.rows[0][k]) : "";
	}, [h.s, sessions.value]);
	const came = usePromise(() => (id ? get<Meta>(api(id, "meta")).then((m) => ({ id, m })) : null), [id, beat]);
	const m = came.value?.id === id ? came.value.m : undefined; // not that of the session before
	const tabs = TABS.filter((t) => !isReport || (t.key !== "sessions" && !t.live));
	const tab = tabs.find((t) => t.key === h.tab) ?? (id || !sessions.value ? tabs[0] : tabs.find((t) => t.key === "sessions") ?? tabs[0]);

	useEffect(() => {
		document.title = m ? `${shown(m.session.name ?? `file ${m.ref}`)} · ${tab.words} · protond` : "protond";
	}, [m, tab]);
	useEffect(() => {
		const key = (e: KeyboardEvent) => {
			const on = e.target as HTMLElement;
			if (e.ctrlKey || e.metaKey || e.altKey || on.matches("input, select, textarea, dialog *") || e.defaultPrevented)
				return;
			const at = "1234567890-=\\".indexOf(e.key);
			const i = tabs.indexOf(tab);
			if (at >= 0 && at < tabs.length)
				set({ tab: tabs[at].key, z: "" });
			else if (e.key === "[" || e.key === "]")
				set({ tab: tabs[(i + (e.key === "]" ? 1 : tabs.length - 1)) % tabs.length].key, z: "" });
			else if (e.key === "/")
				document.querySelector<HTMLInputElement>("input.find")?.focus();
			else if (e.key === "?")
				setHelp(true);
			else if (e.key === "t")
				turnTheme();
			else if (e.key === "Escape" && (now().sel || now().node))
				set({ sel: "", node: "" });
			else
				return;
			e.preventDefault();
		};
		addEventListener("keydown", key);
		return () => removeEventListener("keydown", key);
	}, [tab, tabs.length]);

	// What lives is asked again, while somebody looks.
	useEffect(() => {
		if (!m?.live)
			return;
		const t = setInterval(() => {
			if (!document.hidden) {
				forget();
				setBeat((n) => n + 1);
			}
		}, 5000);
		return () => clearInterval(t);
	}, [m?.live, id]);
	const View = tab.of;
	const turn = (e: KeyboardEvent) => {
		const i = tabs.indexOf(tab);
		const to = e.key === "ArrowRight" ? i + 1 : e.key === "ArrowLeft" ? i - 1 : e.key === "Home" ? 0 : e.key === "End" ? tabs.length - 1 : -9;
		if (to === -9)
			return;
		e.preventDefault();
		const next = tabs[(to + tabs.length) % tabs.length];
		set({ tab: next.key, z: "" });
		document.getElementById(`tab-${next.key}`)?.focus();
	};
	return (
		<>
			<header class="top">
				<h1><b>protond</b></h1>
				{m && (
					<p class="which">
						<strong title={shown(m.session.name ?? `file ${m.ref}`)}>{shown(m.session.name ?? `file ${m.ref}`)}</strong>
						<span class={m.live ? "state live" : "state"}>{shown(m.session.state ?? "file")}</span>
						<span class="took">{m.session.duration_ns ? time(m.session.duration_ns) : ""}</span>
						<code title={shown(m.session.command ?? "")}>{m.session.command ? shown(m.session.command) : ""}</code>
					</p>
				)}
				<span class="tools">
					{m && !isReport && (
						<details class="menu right">
							<summary>save as</summary>
							<div>{m.has.timeline && <button class="plain" onClick={() => inPerfetto(id, shown(m.session.name ?? m.ref))}>open in Perfetto ↗</button>}{FORMATS.filter(([f]) => m.has.timeline !== false || !TIMELINE.includes(f)).map(([f, words]) => <a key={f} href={api(id, `export.${f}`)} download="">{words}</a>)}</div>
						</details>
					)}
					<button class="plain" onClick={turnTheme} title="light or dark (t)" aria-label="light or dark">◐</button>
					<button class="plain" onClick={() => setHelp(true)} title="keys (?)" aria-label="keys">?</button>
				</span>
			</header>
			<div class="tabs" role="tablist" aria-label="Views" onKeyDown={turn}>
				{tabs.map((t) => (
					<button key={t.key} id={`tab-${t.key}`} role="tab" aria-selected={t === tab} aria-controls="view" tabIndex={t === tab ? 0 : -1}
						class={m && t.has && m.has[t.has] === false ? "lacks" : ""} onClick={() => set({ tab: t.key, z: "" })}>{t.words}</button>
				))}
			</div>
			<main>
				<div id="view" role="tabpanel" aria-labelledby={`tab-${tab.key}`} class={`panel ${tab.key}`}>
				{sessions.error && !m ? <Trouble error={sessions.error} /> : came.error ? <Trouble error={came.error} /> : null}
				{m && sessions.value ? (
					<Session.Provider value={{ id, meta: m, sessions: sessions.value, h, beat }}>
						<div class="view">{tab.has && m.has[tab.has] === false ? <Lacking what={tab.has} /> : <View key={id} />}</div>
						{tab.aside && <Details />}
					</Session.Provider>
				) : sessions.value && !id ? (
					<div class="lacking"><h2>Nothing has been recorded yet</h2><p>A run is recorded by</p><pre>protonctl run -- python train.py</pre></div>
				) : !came.error && !sessions.error ? <Busy /> : null}
				</div>
			</main>
			<div id="said" role="status" aria-live="polite"></div>
			{help && <Help close={() => setHelp(false)} />}
		</>
	);
}

theme();
for (const m of [dark, forced])
	m.addEventListener("change", theme);
const menus = () => [...document.querySelectorAll<HTMLDetailsElement>("details.menu[open]")];
addEventListener("click", (e) => menus().forEach((d) => d.contains(e.target as Node) || (d.open = false)));
addEventListener("keydown", (e) => {
	for (const d of e.key === "Escape" ? menus() : []) {
		d.open = false;
		d.querySelector("summary")!.focus();
		e.stopPropagation();
	}
}, true);
addEventListener("pageshow", (e) => e.persisted && forget());
render(<App />, document.getElementById("app")!);
