// SPDX-License-Identifier: MIT. format.ts: numbers and names as people read them. Names come from strangers: what could
// turn a line around or hide in it is written out.

const NARROW = "\u202f";
const TIME: [string, number][] = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];
const BYTES: [string, number][] = [["B", 1], ["KiB", 1024], ["MiB", 1048576], ["GiB", 1073741824], ["TiB", 1099511627776]];

export type Unit = [string, number];

function pick(units: Unit[], v: number): Unit {
	let ret = units[0];
	for (const u of units)
		if (Math.abs(v) >= u[1])
			ret = u;
	return ret;
}

// One unit for a column: that of its largest value.
export function unitOf(unit: string, max: number): Unit {
	if (unit === "ns")
		return pick(TIME, max);
	if (unit === "bytes" || unit === "B")
		return pick(BYTES, max);
	return [unit === "count" ? "" : unit, 1];
}

export function group(n: number): string {
	const s = Math.round(Math.abs(n)).toString();
	let ret = "";
	for (let i = 0; i < s.length; i++)
		ret += (i > 0 && (s.length - i) % 3 === 0 ? NARROW : "") + s[i];
	return (n < 0 && ret !== "0" ? "−" : "") + ret;
}

export function fixed(v: number, digits: number): string {
	const s = Math.abs(v).toFixed(digits);
	const dot = s.indexOf(".");
	const whole = dot < 0 ? s : s.slice(0, dot);
	return (v < 0 && Number(s) !== 0 ? "−" : "") + group(Number(whole)) + (dot < 0 ? "" : s.slice(dot));
}

export function inUnit(v: number | null | undefined, u: Unit): string {
	if (v === null || v === undefined || Number.isNaN(v))
		return "–";
	if (u[1] === 1 && Number.isInteger(v))
		return group(v);
	const x = v / u[1];
	return fixed(x, Math.abs(x) >= 1000 ? 1 : Math.abs(x) >= 1 || u[0] === "ns" ? 2 : 3);
}

export function withUnit(v: number | null | undefined, unit: string): string {
	if (v === null || v === undefined || Number.isNaN(v))
		return "–";
	const u = unitOf(unit, v);
	return inUnit(v, u) + (u[0] ? NARROW + u[0] : "");
}

export const time = (ns: number | null | undefined) => withUnit(ns, "ns");
// When something was, from the session's begin: to the microsecond however late it is.
export const moment = (ns: number): string => (ns < 1e6 ? time(ns) : `${fixed(ns / 1e6, 3)}${NARROW}ms`);

export function percent(part: number, whole: number): string {
	if (!(whole > 0) || Number.isNaN(part))
		return "–";
	const p = (100 * part) / whole;
	return (p > 0 && p < 0.1 ? "<0.1" : p > 99.9 && p < 100 ? "99.9" : p.toFixed(1)) + NARROW + "%";
}

export function when(unixNs: number): string {
	const d = new Date(unixNs / 1e6);
	const two = (n: number) => String(n).padStart(2, "0");
	return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

// C0, C1, bidirectional controls, zero-width characters, line separators, tags.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

export function clean(name: string): string {
	return name.replace(HIDDEN, (c) => `⟨U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

const FROM_RIGHT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
// Names in a row. One that is written from the right is kept to itself, so that the order stays.
export const chain = (names: string[], by = " › "): string => names.map((n) => (FROM_RIGHT.test(n) ? `\u2068${n}\u2069` : n)).join(by);

// The middle says least: beginning and end stay.
export function cut(s: string, max: number): string {
	if (s.length <= max)
		return s;
	const head = Math.ceil((max - 1) * 0.6);
	return s.slice(0, head) + "…" + s.slice(s.length - (max - 1 - head));
}

export const LONG = 2000; // characters of a name that are ever put on the page

export function shown(name: string | null | undefined): string {
	if (name === null || name === undefined)
		return "–";
	const s = name.length > LONG ? name.slice(0, LONG - 400) + "…" + name.slice(-399) : name;
	return s === "" ? "(no name)" : clean(s);
}

// A kernel's name without what stands in <> and (): for bars. What is left is never empty.
export function brief(name: string): string {
	if (name.length > LONG)
		return cut(name, 200);
	// A line of Python: what it is first, where it stands after it.
	const frame = /^(?:.*\/)?([^/]+)\((\d+)\): (.+)$/.exec(name);
	if (frame)
		return `${frame[3]} (${frame[1]}:${frame[2]})`;
	if (name.startsWith("nn.Module: "))
		return name.slice(11);
	let depth = 0;
	let ret = "";
	for (const c of name.replace(/^void /, "").replace("(anonymous namespace)::", "")) {
		if (c === "<" || c === "(")
			depth++;
		if (depth === 0)
			ret += c;
		if ((c === ">" || c === ")") && depth > 0)
			depth--;
	}
	ret = ret.replace(/^(at::native|cudnn|cutlass|c10)::/, "").trim();
	return ret.length > 1 && depth === 0 ? ret : name;
}

export function hash(s: string): number {
	let h = 0x811c9dc5;
	for (let i = 0; i < s.length && i < 256; i++)
		h = Math.imul(h ^ s.charCodeAt(i), 0x01000193);
	return h >>> 0;
}

// A name in an address: whole where short, else its beginning and a hash.
export function nameKey(name: string): string {
	return name.length <= 200 ? name : `${name.slice(0, 160)}…${hash(name.slice(160)).toString(16)}.${name.length}`;
}

export function csv(rows: (string | number)[][]): string {
	return rows.map((r) => r.map((c) => (/[",\n\r]/.test(String(c)) ? `"${String(c).replaceAll('"', '""')}"` : String(c))).join(",")).join("\n") + "\n";
}

// How columns of numbers are written: one unit, that of a middling value, so that one giant does not make zeros of all
// others; one count of digits, so that they stand under each other.
export interface Written {
	unit: string;
	text: (v: number | null | undefined) => string;
}
export const column = (unit: string, ...of: ArrayLike<number | null>[]): Written => written(unit, 1e6, of);
// Of sums, where the largest is what is looked for.
export const sums = (unit: string, ...of: ArrayLike<number | null>[]): Written => written(unit, 1e4, of);

function written(unit: string, most: number, of: ArrayLike<number | null>[]): Written {
	const some: number[] = [];
	for (const v of of)
		for (let i = 0, by = Math.max(1, Math.floor(v.length / 500)); i < v.length; i += by)
			if (v[i] !== null && v[i]! > 0)
				some.push(v[i]!);
	some.sort((x, y) => x - y);
	let u = unitOf(unit, some[Math.floor(some.length * 0.6)] ?? 0);
	const top = some[some.length - 1] ?? 0;
	if (top / u[1] > most) // more digits than anybody reads
		u = unitOf(unit, top / (most / 1000));
	const whole = u[1] === 1 && some.every(Number.isInteger);
	return { unit: u[0], text: (v) => (v === null || v === undefined || Number.isNaN(v) ? "–" : v === 0 ? "0" : fixed(v / u[1], whole ? 0 : 2)) };
}

export function most(v: ArrayLike<number | null>): number {
	let ret = 0;
	for (let i = 0; i < v.length; i++)
		if (v[i] !== null && v[i]! > ret)
			ret = v[i]!;
	return ret;
}
