// SPDX-License-Identifier: MIT. parts.tsx: small things that tabs share.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api";
import { shown } from "./format";
import { useSession } from "./session";
import { set } from "./state";

export function Trouble({ error }: { error: Error }) {
	return (
		<div class="trouble" role="alert">
			<strong>{error.message}</strong>
			{error instanceof ApiError && error.next ? <p>{error.next}</p> : null}
		</div>
	);
}

// What a session lacks, and what records it, where the server does not say.
const LACKS: Record<string, [string, string]> = {
	timeline: ["no timeline", "protonctl run -d trace -- CMD"],
	steps: ["no steps", "a scope named `step` around each, under protonctl run -d trace -- CMD"],
	memory: ["no memory", "protonctl run -k torch -d trace -- CMD"],
	series: ["no numbers over time", "protond.metric(\"loss\", value) in the job, under protonctl run -d trace -- CMD"],
	ranks: ["one rank", "protonctl run -- torchrun --nproc-per-node N CMD"],
};

export function Lacking({ what }: { what: string }) {
	const { meta } = useSession();
	const lack = meta.lacks?.find((l) => l.what === what);
	return (
		<div class="lacking">
			<h2>This session has {LACKS[what]?.[0] ?? `no ${what}`}</h2>
			{lack?.words ? <p>{shown(lack.words)}</p> : null}
			{lack?.switch !== null && <p>It is recorded by</p>}
			{lack?.switch !== null && <pre>{shown(lack?.switch ?? LACKS[what]?.[1] ?? "")}</pre>}
		</div>
	);
}

export function Busy() {
	const [late, setLate] = useState(false);
	useEffect(() => {
		const t = setTimeout(() => setLate(true), 200);
		return () => clearTimeout(t);
	}, []);
	return late ? <p class="busy" role="status">Loading…</p> : null;
}

export function Loaded<T>(p: { of: { value?: T; error?: Error; loading: boolean }; children: (v: T) => ComponentChildren }) {
	if (p.of.error)
		return <Trouble error={p.of.error} />;
	return p.of.value === undefined ? <Busy /> : <>{p.children(p.of.value)}</>;
}

export function Search({ value, label, onInput, note }: { value: string; label: string; onInput: (v: string) => void; note?: string }) {
	const el = useRef<HTMLInputElement>(null);
	return (
		<span class="search">
			<input ref={el} type="search" class="find" size={Math.max(20, label.length + 5)} value={value} placeholder={`${label}  /`} aria-label={label} spellcheck={false} maxLength={300}
				onInput={(e) => onInput(e.currentTarget.value)}
				onKeyDown={(e) => {
					if (e.key === "Escape") {
						e.stopPropagation();
						if (e.currentTarget.value)
							onInput("");
						else
							e.currentTarget.blur();
					}
				}} />
			{note ? <span class="note" role="status">{note}</span> : null}
		</span>
	);
}

// What most bars have, in the address: what is searched for, and whether the table stands in place of the picture.
export function Find({ note = "" }: { note?: string }) {
	const { h } = useSession();
	return <Search value={h.q ?? ""} label="Find in names" onInput={(q) => set({ q })} note={note} />;
}

export function AsTable({ words = "table" }: { words?: string }) {
	const { h } = useSession();
	return <Toggle on={h.table === "1"} words={words} onChange={(on) => set({ table: on ? "1" : "" })} />;
}

export function Choice<T extends string>({ label, value, of, onChange }: { label: string; value: T; of: [T, string][]; onChange: (v: T) => void }) {
	return (
		<label class="choice">
			{label}
			<select value={value} onChange={(e) => onChange(e.currentTarget.value as T)}>
				{of.map(([v, words]) => <option key={v} value={v}>{words}</option>)}
			</select>
		</label>
	);
}

export function Pills<T extends string>({ label, value, of, onChange }: { label: string; value: T; of: [T, string][]; onChange: (v: T) => void }) {
	return (
		<span class="pills" role="group" aria-label={label}>
			{of.map(([v, words]) => (
				<button key={v} aria-pressed={v === value} onClick={() => onChange(v)}>{words}</button>
			))}
		</span>
	);
}

export function Toggle({ on, words, onChange }: { on: boolean; words: string; onChange: (on: boolean) => void }) {
	return <button class="toggle" aria-pressed={on} onClick={() => onChange(!on)}>{words}</button>;
}

export function Legend({ of }: { of: [string, string][] }) {
	return (
		<ul class="legend">
			{of.map(([color, words]) => (
				<li key={words}><span class="swatch" style={{ background: color }}></span>{words}</li>
			))}
		</ul>
	);
}
