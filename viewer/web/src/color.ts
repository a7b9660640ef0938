// SPDX-License-Identifier: MIT. color.ts: colours by what work is. Paul Tol's bright and vibrant sets, which people who
// are colour-blind tell apart; a shade by name on top.
import { hash } from "./format";

const FAMILY: Record<string, string> = {
	gemm: "#4477aa",
	attention: "#aa3377",
	conv: "#66ccee",
	norm: "#228833",
	elementwise: "#ccbb44",
	reduce: "#88a94b",
	optimizer: "#ee6677",
	softmax: "#cc88bb",
	pool: "#b8d4e8",
	embedding: "#80cdc1",
	index: "#d8b365",
	sort: "#bf812d",
	random: "#c9b6e0",
	comm: "#ee7733",
	copy: "#009988",
	memset: "#9a9a9a",
	set: "#9a9a9a",
	kernel: "#77aadd",
	other: "#77aadd",
	compute: "#77aadd",
	scope: "#b3bccb",
	state: "#cfc6b0",
	op: "#c4b7d0",
	frame: "#b9c9bd",
	captured: "#d3c4c4",
	root: "#d4d8e0",
	call: "#cc6677",
	idle: "#e2e5ea",
};
for (const c of ["h2d", "d2h", "d2d", "p2p"])
	FAMILY[c] = FAMILY.copy;

const shades = new Map<string, string>();

function rgb(hex: string): [number, number, number] {
	return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) as [number, number, number];
}

function mix(a: string, b: string, t: number): string {
	const [x, y] = [rgb(a), rgb(b)];
	return "#" + x.map((v, i) => Math.round(v + (y[i] - v) * t).toString(16).padStart(2, "0")).join("");
}

export const family = (word: string): string => FAMILY[word] ?? FAMILY.other;
export const PART_COLORS = [FAMILY.gemm, FAMILY.comm, FAMILY.copy, "#ddaa33", "#88ccaa", "#cc6677", "#7a6a9a", "#9aa2ae"]; // of GPU_PARTS
// What a family or a class is called where people read it.
const WORDS: Record<string, string> = { h2d: "copy to the GPU", d2h: "copy from the GPU", d2d: "copy on the GPU", p2p: "copy between GPUs", comm: "communication", gemm: "matrix product", conv: "convolution" };
const ORDER = Object.keys(FAMILY);
// Kinds of work in one order, that of the table above; what it does not know comes last.
export const inOrder = (a: string, b: string): number => (ORDER.indexOf(a) + 1 || 999) - (ORDER.indexOf(b) + 1 || 999);
export const word = (w: string): string => WORDS[w] ?? w;

export function shade(word: string, name: string): string {
	const n = hash(name) % 5;
	const key = word + n;
	let ret = shades.get(key);
	if (ret === undefined) {
		ret = mix(family(word), "#ffffff", n * 0.07);
		shades.set(key, ret);
	}
	return ret;
}

const inks = new Map<string, string>();
function luminance(hex: string): number {
	const [r, g, b] = rgb(hex).map((v) => ((v / 255) ** 2.2));
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
export const contrast = (a: string, b: string): number => {
	const [x, y] = [luminance(a) + 0.05, luminance(b) + 0.05];
	return Math.max(x, y) / Math.min(x, y);
};

// Black or white, whichever can be read on it.
export function ink(back: string): string {
	let ret = inks.get(back);
	if (ret === undefined) {
		ret = luminance(back) > 0.22 ? "#10151c" : "#ffffff";
		inks.set(back, ret);
	}
	return ret;
}

// A difference: blue less, orange more, by how much of the larger it is.
export function delta(before: number, after: number): string {
	const most = Math.max(before, after);
	if (!(most > 0))
		return "#c9cdd4";
	const d = (after - before) / most;
	const t = Math.min(1, Math.abs(d) * 1.6) * 0.9 + (Math.abs(d) > 0.005 ? 0.1 : 0);
	return mix("#d5d8dd", d < 0 ? "#2b6cb0" : "#dd6b10", t);
}

// One hue, light to dark: a heat map that prints.
export function heat(t: number): string {
	const x = Math.max(0, Math.min(1, t));
	return x < 0.5 ? mix("#f3f6fa", "#77aadd", x * 2) : mix("#77aadd", "#173a66", (x - 0.5) * 2);
}

// Scopes in a timeline, where phases are to be told apart: Tol's light set, by name.
const LIGHT = ["#77aadd", "#99ddff", "#44bb99", "#bbcc33", "#cccc77", "#eedd88", "#ee8866", "#ffaabb", "#c9b6e0"];
export const phase = (name: string): string => LIGHT[hash(name) % LIGHT.length];

// Calls that wait for the GPU, or say what is to be waited for.
const SYNCS: Record<string, string> = {
	cudaStreamSynchronize: FAMILY.call,
	cudaEventSynchronize: "#ee8866",
	cudaDeviceSynchronize: "#aa4499",
	cudaMemcpy: FAMILY.copy,
	cudaMalloc: "#ccbb44",
	cudaFree: "#bbaa55",
	cudaHostRegister: "#d8b365",
	cudaStreamWaitEvent: "#66ccee",
	cudaEventRecord: "#9aa2ae",
};
export const syncColor = (name: string): string | undefined => (Object.hasOwn(SYNCS, name) ? SYNCS[name] : undefined);

// As a canvas' pixels are stored: little endian, opaque.
const words32 = new Map<string, number>();
export function pixel(hex: string): number {
	let ret = words32.get(hex);
	if (ret === undefined) {
		const [r, g, b] = rgb(hex.length === 7 ? hex : "#888888");
		ret = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
		words32.set(hex, ret);
	}
	return ret;
}
export function fade(hex: string, back: string): string {
	return mix(hex, back, 0.78);
}
