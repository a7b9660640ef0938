// SPDX-License-Identifier: MIT. state.ts: what is shown stands in the address, so that a link shows the same thing.
import { useEffect, useState } from "preact/hooks";

export type State = Record<string, string>;

function parse(): State {
	return Object.fromEntries(new URLSearchParams(location.hash.replace(/^#/, "")));
}

let state: State = parse();
const listeners = new Set<() => void>();

function write(push: boolean): void {
	const to = "#" + new URLSearchParams(Object.entries(state).filter(([, v]) => v !== "")).toString();
	if (to === location.hash)
		return;
	try {
		history[push ? "pushState" : "replaceState"](null, "", to);
	} catch {
		/* in a notebook's cell there is no address */
	}
}

addEventListener("popstate", () => {
	state = parse();
	listeners.forEach((f) => f());
});
addEventListener("hashchange", () => {
	state = parse();
	listeners.forEach((f) => f());
});

export const now = (): State => state;

// "" takes a key away. A change of place (tab, session) can be gone back from; a change of view replaces.
export function set(change: State, push = "tab" in change || "s" in change): void {
	state = { ...state, ...change };
	for (const k of Object.keys(change))
		if (state[k] === "")
			delete state[k];
	write(push);
	listeners.forEach((f) => f());
}

// Browsers refuse hundreds of address changes a second: what moves is written when it rests.
let resting: ReturnType<typeof setTimeout> | undefined;
export function setQuietly(change: State): void {
	state = { ...state, ...change };
	clearTimeout(resting);
	resting = setTimeout(() => write(false), 250);
}

export function useHash(): State {
	const [s, put] = useState(state);
	useEffect(() => {
		const f = () => put(state);
		listeners.add(f);
		f();
		return () => void listeners.delete(f);
	}, []);
	return s;
}

export interface Promised<T> {
	value?: T;
	error?: Error;
	loading: boolean;
}
export function usePromise<T>(make: () => Promise<T> | null, deps: unknown[]): Promised<T> {
	const [r, put] = useState<Promised<T>>({ loading: true });
	useEffect(() => {
		let on = true;
		const p = make();
		if (!p) {
			put({ loading: false });
			return;
		}
		put((was) => (was.value === undefined ? { loading: true } : { value: was.value, loading: true }));
		p.then(
			(value) => on && put({ value, loading: false }),
			(error: Error) => on && put({ error, loading: false }),
		);
		return () => {
			on = false;
		};
	}, deps);
	return r;
}
