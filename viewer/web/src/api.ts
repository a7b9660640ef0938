// SPDX-License-Identifier: MIT. api.ts: what the server says, as types, and how it is asked. docs/web.md has the contract.
// A report has its answers inside: they are looked for first, so that one page serves both.

export type Num = number | null;
export type Cell = string | number | boolean | null;

export interface Column {
	name: string;
	unit: string;
}
// Every answer says what is to be known of it.
export interface Answer {
	warnings?: string[];
}
export interface Sessions extends Answer {
	columns: Column[];
	rows: Cell[][];
	open?: (string | number)[];
	report?: boolean;
}
export interface Lack {
	what: string;
	words?: string;
	switch: string | null;
}
export interface DeviceSum {
	device: string | number;
	busy_ns: number;
	idle_ns: number;
	parts?: [string, number][]; // what both are made of, all of GPU_PARTS or none
}
export type Kind = "timeline" | "steps" | "memory" | "series" | "ranks" | "gpu";
export interface Meta extends Answer {
	session: {
		name: string | null;
		id: string | number | null;
		state: string | null;
		source?: string | null;
		command?: string | null;
		created_ns?: Num;
		duration_ns?: Num;
		devices?: { type?: string; id: string | number; name: string; busy_ns?: Num }[];
		launches?: Num;
		unmatched?: Num;
		drops?: { cause: string; count: number; exact?: boolean; words?: string }[];
		notes?: string[];
		overhead?: Num;
		overhead_in_calls?: { driver_ns?: Num; cupti_ns?: Num; other_ns?: Num };
		throughput?: { iterations_per_sec?: Num; samples_per_sec?: Num; tokens_per_sec?: Num; flops_per_sec?: Num; mfu?: Num };
		gpu_why?: string | null;
	};
	ref: string;
	live?: boolean;
	lost?: Num; // a launch and its record count once
	steps?: Num;
	has: Partial<Record<Kind, boolean>>;
	processes: { pid: number; rank?: Num; host?: string | null; command?: string | null; end?: string | null; gpu?: string | null }[];
	lacks?: Lack[];
	head?: string;
	summary?: { window_ns?: Num; devices?: DeviceSum[]; compute_ns?: Num; comm_ns?: Num; copy_ns?: Num; steps_per_s?: Num; step_p50_ns?: Num; step_p99_ns?: Num };
}
export interface Metric {
	name: string;
	unit: string;
	inclusive: boolean;
	self?: string | null;
}
// Names are as people read them; what was recorded is another text for some: by number.
export interface Named extends Answer {
	names: string[];
	recorded?: Record<string, string>;
}
export interface TreeAnswer extends Named {
	kinds: string[];
	classes?: string[];
	families?: string[];
	metrics: Metric[];
	main?: string | null;
	node: { name: number[]; kind: number[]; class?: Num[]; family?: Num[]; depth: number[]; side?: number[] };
	values: Record<string, Num[]>;
}
export interface DiffAnswer extends Omit<TreeAnswer, "values"> {
	before: Record<string, Num[]>;
	after: Record<string, Num[]>;
	change?: Record<string, Num[]>;
}
export interface Ops extends Named {
	is_cpu?: boolean;
	total?: Num;
	accuracy?: string;
	column: Record<string, Cell[]> & { name: number[] };
}
// A bar each: edges, one more than counts.
export type Bars = [number[], number[]] | null;
export interface Steps extends Answer {
	processes: { pid: number; rank?: Num }[];
	column: Record<string, Num[]> & { step: number[]; start: number[]; duration: number[] };
	values?: { name: string; unit?: string; v: Num[] }[];
}
export interface SeriesAnswer extends Answer {
	series: { name: string; unit: string; process?: string | number | null; t: number[]; v: Num[] }[];
}
export interface MemoryAnswer extends Answer {
	accounts: {
		process: number; rank: number; device: string; kind: string; now: number; blocks: number; peak: number; peak_t: number; allocs: number; frees: number; t: number[]; v: number[];
		owners: [string, number, number, number, number][]; // path, now, blocks, peak, most
		at: number[];
		lines: { path: string; v: number[] }[];
	}[];
}
export interface Counters {
	px: number;
	counter: { name: string; process?: string | number | null; before: Num; px: number[]; min: Num[]; max: Num[]; last: Num[] }[];
}
export interface RanksAnswer extends Named {
	processes: { pid: number; rank?: Num; total?: Num }[];
	metric: string;
	column: { path: number[][]; class?: Cell[]; in: number[]; min: Num[]; median: Num[]; max: Num[]; slowest: number[] };
	values: number[][]; // of each row: of each process
}
export interface Verdict {
	rule: string;
	severity: string;
	words: string;
	advice: string;
	view: string;
	share?: Num;
	gain?: Num; // ns in all, at most
	gain_step?: Num;
	gain_share?: Num;
	of?: string; // "of the steps"
	where: string[]; // from the outermost scope down
	name: string | null;
	line?: string | null;
	time?: [number, number] | null; // where the timeline shows it
	mark?: [number, number] | null; // what in that
}
export interface Rule {
	rule: string;
	state: string; // clean, found, lacks, unsure
	what: string;
	threshold: number;
	unit: string;
	note?: string | null;
	lacks: string[];
	record?: string[]; // of each of these
}
export interface Verdicts extends Answer {
	verdicts: Verdict[];
	rules: Rule[];
}
export interface Lane {
	id: number;
	kind: string; // thread, tasks, stream, projected, summed, syncs, counter
	process?: string | number | null;
	rank?: Num;
	name: string;
	parent?: Num;
	rows?: number;
	number?: Num;
}
export interface Lanes extends Answer {
	lane: Lane[];
	colors?: Record<string, string>; // the program's, by name
	t0: number;
	t1: number;
}
export interface Place { // of an event
	name: string;
	event: number;
	lane: number;
	depth: number;
	start_ns: number;
	dur_ns: number;
}
export interface EventAnswer extends Answer, Place { // and what is known of its kind
	[key: string]: unknown;
	class?: string;
	recorded_by?: Place;
	ended_by?: Place;
}
export interface Arrows {
	from_lane: number[];
	from: number[];
	to_lane: number[];
	to: number[];
	from_depth?: number[];
	to_depth?: number[];
	event?: number[];
	left_out?: number;
}
export interface Sums {
	name: string[];
	count: number[];
	total: number[];
	min: number[];
	max: number[];
	rest?: { names: number; count: number; total: number };
}
export interface Found {
	found: boolean;
	id?: number;
	lane?: number;
	start?: number;
	dur?: number;
	depth?: number;
}
export interface LiveFrame {
	away?: string | null; // why nobody answers
	steps?: Num;
	step_rate?: Num;
	busy?: Num;
	drops?: Num;
	top?: { name: string; time: number; count: number; p50?: Num; p99?: Num }[];
}

export class ApiError extends Error {
	constructor(message: string, readonly next: string, readonly status: number) {
		super(message);
	}
}

const inlined = new Map<string, Element>();
for (const s of document.querySelectorAll("script[data-path]"))
	inlined.set(s.getAttribute("data-path")!, s);

export const isReport = inlined.size > 0;

export function inlinedPaths(prefix: string): string[] {
	return [...inlined.keys()].filter((p) => p.startsWith(prefix));
}

async function inflate(text: string): Promise<ArrayBuffer> {
	const raw = atob(text.trim());
	const bytes = new Uint8Array(raw.length);
	for (let i = 0; i < raw.length; i++)
		bytes[i] = raw.charCodeAt(i);
	return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer();
}

async function refused(r: Response): Promise<never> {
	let message = `the server answered ${r.status}`;
	try {
		const e = (await r.json()) as { error?: { text?: string } };
		message = e.error?.text ?? message;
	} catch {
		/* not JSON: what stands above is all there is to say */
	}
	throw new ApiError(message, r.status === 503 ? "It is busy: reload in a moment." : "", r.status);
}

export async function getBytes(path: string, signal?: AbortSignal): Promise<ArrayBuffer> {
	const here = inlined.get(path);
	if (here)
		return inflate(here.textContent ?? "");
	if (isReport)
		throw new ApiError("this is not in the report", "`protonview web` shows all of a session.", 404);
	let r: Response;
	try {
		r = await fetch(path, { credentials: "same-origin", ...(signal ? { signal } : {}) });
	} catch (e) {
		if ((e as Error).name === "AbortError")
			throw e;
		throw new ApiError("the server does not answer", "Is `protonview web` still running? Start it again and reload.", 0);
	}
	return r.ok ? r.arrayBuffer() : refused(r);
}

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
	return JSON.parse(new TextDecoder().decode(await getBytes(path, signal))) as T;
}

// Answers of a session that has ended stay as they are: asked once. Bounded, oldest out first.
const KEPT = 24;
const kept = new Map<string, Promise<unknown>>();

export function get<T>(path: string): Promise<T> {
	let p = kept.get(path) as Promise<T> | undefined;
	if (!p) {
		p = getJson<T>(path);
		kept.set(path, p);
		p.catch(() => kept.delete(path));
		if (kept.size > KEPT)
			kept.delete(kept.keys().next().value!);
	}
	return p;
}

export function forget(): void {
	kept.clear();
}

export const api = (id: string, what: string) => `api/s/${encodeURIComponent(id)}/${what}`;
