// SPDX-License-Identifier: MIT. session.ts: what all tabs share of the session that is shown: its tree, its operations, what is selected.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { api, get, type Meta, type Ops, type Sessions, type TreeAnswer } from "./api";
import { nameKey } from "./format";
import { type Tree, treeFrom } from "./model";
import { set, type State, usePromise } from "./state";

export interface Shared {
	id: string;
	meta: Meta;
	sessions: Sessions;
	h: State;
	beat: number; // counts up while the session lives: what is shown is asked again
}

export const Session = createContext<Shared>(null as unknown as Shared);
export const useSession = () => useContext(Session);

const trees = new WeakMap<object, Tree>();

export function treeOf(a: TreeAnswer): Tree {
	let t = trees.get(a);
	if (!t) {
		t = treeFrom(a);
		trees.set(a, t);
	}
	return t;
}

export const treePath = (id: string, h: State): string => api(id, "tree" + (h.phase ? `?phase=${encodeURIComponent(h.phase)}` : ""));

export function useTree() {
	const { id, h, beat } = useSession();
	const path = treePath(id, h);
	return usePromise(() => get<TreeAnswer>(path).then(treeOf), [path, beat]);
}

export function useOps(by = "") {
	const { id, beat } = useSession();
	return usePromise(() => get<Ops>(api(id, by ? `ops?by=${by}` : "ops")), [id, beat, by]);
}

// The selection is a name, and a node of the tree where it was one: other tabs follow the name.
export function selectNode(t: Tree, node: number): void {
	set({ node: String(node), sel: nameKey(t.raw[t.name[node]]) });
}

export function selectName(raw: string): void {
	set({ sel: nameKey(raw), node: "" });
}

// The node that is selected, else the one with the most among those of the selected name.
export function selectedNode(t: Tree, h: State): number {
	const n = Number(h.node);
	if (h.node && n >= 0 && n < t.n)
		return n;
	return h.sel ? nodesOf(t, h.sel)[0] ?? -1 : -1;
}

export function nodesOf(t: Tree, key: string): number[] {
	const at = t.raw.findIndex((r) => nameKey(r) === key);
	if (at < 0)
		return [];
	const ret: number[] = [];
	for (let i = 0; i < t.n; i++)
		if (t.name[i] === at)
			ret.push(i);
	const v = t.metrics.length > 0 ? t.values[t.metrics[0].name] : null;
	return v ? ret.sort((a, b) => (v[b] || 0) - (v[a] || 0)) : ret;
}

export function matcher(q: string): ((s: string) => boolean) | null {
	if (!q)
		return null;
	const low = q.toLowerCase();
	return (s) => s.toLowerCase().includes(low);
}
