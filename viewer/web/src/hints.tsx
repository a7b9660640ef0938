// SPDX-License-Identifier: MIT. hints.tsx: where to look first: idle GPUs, the host alone, results that are waited for, a slow rank.
// Each is a comparison of two numbers that other tabs show, and leads to them.
import { useMemo } from "preact/hooks";
import { api, get, type RanksAnswer } from "./api";
import { group, percent, shown, time } from "./format";
import { pathOf, type Tree } from "./model";
import { selectNode, useSession, useTree } from "./session";
import { set, usePromise } from "./state";

const BUSY = 0.8; // a GPU that works so much of its steps is not waited for
const SHARE = 0.1; // of the steps, or of what a rank has in all: less is not worth a word
const FETCHES = 4; // of results a step
const APART = 1.25; // times the median
const MOST = 3; // scopes

interface Hint {
	words: string;
	show: () => void;
}

const isStep = (name: string) => /^(step( \d+)?|ProfilerStep#\d+)$/.test(name);
const where = (t: Tree, i: number) => `${t.names[t.name[i]]}${t.parent[i] > 0 ? ` in ${t.names[t.name[t.parent[i]]]}` : ""}`;

function* inSteps(t: Tree): Generator<[number, boolean]> {
	for (let i = 1, end = 0; i < t.n; i++) {
		const first = i >= end && isStep(t.names[t.name[i]]);
		if (first)
			end = i + t.size[i];
		if (i < end)
			yield [i, first];
	}
}

// `steps`: how many there were. A loader's time is the loop's wait; other scopes matter where the GPU had nothing to do.
export function hintsOf(t: Tree, steps: number): Hint[] {
	const at = (metric: string, i: number) => t.values[metric]?.[i] || 0;
	const ret: Hint[] = [];
	const tree = (i: number) => () => (selectNode(t, i), set({ tab: "tree" }));
	let [wall, gpu, fetches, most] = [0, 0, 0, 0];
	const alone: number[] = [];
	for (const [i, first] of inSteps(t)) {
		wall += first ? at("cpu_time", i) : 0;
		gpu += first ? at("gpu_time", i) : 0;
		const name = t.names[t.name[i]];
		if (name.startsWith("[memcpy DtoH]")) {
			const n = at("count", i);
			fetches += n;
			most = most > 0 && at("count", most) > n ? most : i;
		} else if (!first && at("calls", i) * 2 >= steps && (name === "dataloader" || (t.values.gpu_time !== undefined && at("gpu_time", i) === 0)))
			alone.push(i);
	}
	// Where much of the GPU's work stands outside of the steps, as of other threads, they do not say how busy it was.
	const idle = gpu > BUSY * at("gpu_time", 0) && gpu < BUSY * wall;
	if (idle)
		ret.push({ words: `During the steps the GPU had work for ${percent(gpu, wall)} of the time.`, show: () => set({ tab: "steps" }) });
	const said: number[] = [];
	for (const i of alone.sort((a, b) => at("cpu_time", b) - at("cpu_time", a)).filter((n) => at("cpu_time", n) >= SHARE * wall)) {
		const loader = t.names[t.name[i]] === "dataloader";
		if (said.length === MOST || (!loader && !idle) || pathOf(t, i).some((p) => said.includes(p)))
			continue;
		said.push(i);
		ret.push({ words: `${where(t, i)} takes ${percent(at("cpu_time", i), wall)} of the steps: ${loader ? "so long the loop waits for its batches." : "the host alone, without work for the GPU."}`, show: tree(i) });
	}
	if (steps > 0 && fetches >= FETCHES * steps)
		ret.push({ words: `${group(fetches / steps)} times a step a result is fetched from the GPU (most: ${where(t, most)}). Each waits until the GPU is done, as .item() and .cpu() do; protonctl run -c python names the lines.`, show: tree(most) });
	return ret;
}

const meets = (name: string) => /^(dist\.|nccl)/.test(name);

// Work alone: who is slow is waited for in what communicates, and there the others have the larger number. What DDP's
// backward waits for over gloo has no name.
export function slowRank(r: RanksAnswer): Hint[] {
	const c = r.column;
	const ranks = r.processes.filter((p) => (p.total ?? 0) > 0).length; // a launcher has nothing
	const more = (k: number) => (c.max[k] ?? 0) - (c.median[k] ?? 0);
	const all = c.path.map((_, k) => k);
	const last = (k: number) => r.names[c.path[k][c.path[k].length - 1]];
	const waits = all.filter((k) => meets(last(k)));
	const waited = (k: number) => waits.filter((w) => c.slowest[w] === c.slowest[k] && c.path[k].every((n, d) => c.path[w][d] === n)).reduce((sum, w) => sum + more(w), 0) > more(k) / 2;
	const own = all.filter((k) => ranks > 1 && c.in[k] === ranks && (c.max[k] ?? 0) > APART * (c.median[k] ?? 0) && more(k) >= SHARE * (r.processes[c.slowest[k]].total ?? 0) && last(k) !== "backward" && !waited(k));
	if (own.length === 0)
		return [];
	// Of those that have nearly all of the most, the innermost.
	const first = own.reduce((x, y) => (more(y) > more(x) ? y : x));
	const i = own.filter((k) => more(k) > 0.9 * more(first) && c.slowest[k] === c.slowest[first]).reduce((x, y) => (c.path[y].length > c.path[x].length ? y : x));
	const [path, p] = [c.path[i].map((n) => shown(r.names[n])), r.processes[c.slowest[i]]];
	return [{ words: `${p.rank !== null && p.rank !== undefined ? `Rank ${p.rank}` : `Process ${p.pid}`} takes ${((c.max[i] ?? 0) / (c.median[i] || 1)).toFixed(1)} × the median in ${path[path.length - 1]}${path.length > 1 ? ` below ${path[path.length - 2]}` : ""}: ${time(more(i))} more. Where ranks meet, the others wait for it.`, show: () => set({ tab: "ranks" }) }];
}

export function Hints() {
	const { id, meta, beat } = useSession();
	const { tree } = useTree();
	const ranks = usePromise(() => (meta.has.ranks ? get<RanksAnswer>(api(id, "ranks")) : null), [id, beat, meta.has.ranks]).value;
	const hints = useMemo(() => [...(tree ? hintsOf(tree, meta.steps ?? 0) : []), ...(ranks ? slowRank(ranks) : [])], [tree, ranks]);
	if (hints.length === 0)
		return null;
	return (
		<section>
			<h2>Where to look</h2>
			<ul class="notes hints">
				{hints.map((x) => <li key={x.words}>{x.words} <button type="button" class="link" onClick={x.show}>show</button></li>)}
			</ul>
		</section>
	);
}
