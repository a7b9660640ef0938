// SPDX-License-Identifier: MIT. lanes.ts: where each lane of a timeline stands.
import type { Lane } from "../api";

export const ROW = 18; // px
export const GAP = 5;
export const SHUT = 12; // rows of a lane that is not opened, where there are others

export interface Row {
	lane: Lane;
	y: number;
	rows: number;
	pinned: boolean;
}

// Which lanes are shown, in which order: pinned first, hidden not, others as the server orders them or as they were moved.
export function arrange(lanes: Lane[], pin: number[], hide: Set<number>, order: number[], deep: number[]): Row[] {
	const at = new Map(order.map((l, i) => [l, i]));
	const some = lanes.filter((l) => !hide.has(l.id) && l.kind !== "counter");
	const rank = (l: Lane) => (pin.includes(l.id) ? pin.indexOf(l.id) - 1e6 : at.get(l.id) ?? 1e5 + lanes.indexOf(l));
	some.sort((a, b) => rank(a) - rank(b));
	let y = 0;
	return some.map((lane) => {
		const all = lane.rows || 1;
		const rows = all > SHUT + 1 && some.length > 1 && !deep.includes(lane.id) ? SHUT : all;
		const ret = { lane, y, rows, pinned: pin.includes(lane.id) };
		y += rows * ROW + GAP;
		return ret;
	});
}
