// SPDX-License-Identifier: MIT. `make web-bench`: frames while a timeline and a flame graph are panned and zoomed for 20 s
// each in Chromium with software rendering. Without an address: 1 M made-up events in 24 lanes and 100 000 nodes; with one
// (what `protonview web` prints) the session that it opens. SECONDS= for another length. What is measured:
//   main thread   what a frame's drawing takes of the clock and, where others want the machine too, of the processor,
//                 by a trace of the browser's own
//   dropped       frames that its compositor wanted and did not get
//   input         from a key's event to the next frame that is on the screen
import { readFileSync, rmSync } from "node:fs";
import { browser, pageOf, settled } from "./browser.mjs";
import { serve } from "./mock.mjs";

const seconds = Number(process.env.SECONDS ?? 20);
const given = process.argv[2];
const site = given ? null : await serve();
const base = given ?? site.url;
const at = (v, p) => (v.length === 0 ? NaN : [...v].sort((a, b) => a - b)[Math.min(v.length - 1, Math.floor(v.length * p))]);
const b = await browser();

async function run(name, hash, keys) {
	const p = await pageOf(b, { still: false });
	if (base.includes("?"))
		await p.goto(base);
	const t0 = Date.now();
	await p.goto(`${base.replace(/\?.*/, "")}#${hash}`);
	await p.waitForSelector("canvas");
	await settled(p);
	const first = Date.now() - t0 - 100; // settled() waits so long for quiet
	await p.focus("canvas");
	// Keys are pressed within the page, so that what is measured is the page and not the wire to it.
	await p.evaluate(() => {
		window.inputs = [];
		let asked = 0;
		const real = requestAnimationFrame;
		window.press = (key) => {
			asked = performance.now();
			document.querySelector("canvas").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
			const began = asked;
			// Two frames on: the first one drew it, at the second one's beginning it was handed over.
			real(() => real(() => window.inputs.push(performance.now() - began)));
		};
	});
	await p.tracing.start({ path: `/tmp/web-bench.${process.pid}.json`, categories: ["devtools.timeline", "disabled-by-default-devtools.timeline.frame"] });
	await p.evaluate(async (keys, ms) => {
		const end = performance.now() + ms;
		for (let i = 0; performance.now() < end; i++) {
			window.press(keys[i % keys.length]);
			await new Promise((done) => setTimeout(done, 16));
		}
	}, keys, seconds * 1000);
	await p.tracing.stop();
	const trace = JSON.parse(readFileSync(`/tmp/web-bench.${process.pid}.json`, "utf8")).traceEvents;
	rmSync(`/tmp/web-bench.${process.pid}.json`);
	const count = (n) => trace.filter((e) => e.name === n).length;
	const [drawn, dropped] = [count("DrawFrame"), count("DroppedFrame")];
	const inputs = await p.evaluate(() => window.inputs);
	// By frame; one in which nothing was drawn has only what presses the keys.
	const begins = trace.filter((e) => e.name === "BeginMainThreadFrame").map((e) => e.ts).sort((x, y) => x - y);
	const of = new Map();
	for (const e of trace.filter((x) => x.name === "FireAnimationFrame" && x.ph === "X")) {
		let [lo, hi] = [0, begins.length];
		while (lo < hi) {
			const mid = (lo + hi) >> 1;
			if (begins[mid] <= e.ts)
				lo = mid + 1;
			else
				hi = mid;
		}
		const f = of.get(lo) ?? { wall: 0, cpu: 0 };
		f.wall += e.dur / 1000;
		f.cpu += (e.tdur ?? e.dur) / 1000;
		of.set(lo, f);
	}
	const work = [...of.values()].filter((f) => f.wall > 0.5);
	const [frames, cpu] = [work.map((f) => f.wall), work.map((f) => f.cpu)];
	console.log(`${name}: first picture ${first} ms; ${frames.length} frames; main thread p50 ${at(frames, 0.5).toFixed(1)}, p95 ${at(frames, 0.95).toFixed(1)}, most ${at(frames, 1).toFixed(1)} ms (processor p95 ${at(cpu, 0.95).toFixed(1)} ms); ` +
		`dropped ${dropped} of ${drawn + dropped} (${((100 * dropped) / (drawn + dropped || 1)).toFixed(1)} %); input to picture p50 ${at(inputs, 0.5).toFixed(1)}, p95 ${at(inputs, 0.95).toFixed(1)} ms`);
	if (p.errors.length > 0)
		console.log(p.errors.slice(0, 3));
	await p.close();
}

// In to a microsecond, along, out again.
const into = Array(30).fill("w"), along = Array(60).fill("d"), back = Array(60).fill("a"), out = Array(40).fill("s");
const s = given ? "" : "s=huge&";
await run("timeline", `${s}tab=timeline`, [...along, ...into.slice(0, 8), ...along, ...back, ...into.slice(0, 8), ...along, ...into.slice(0, 12), ...along, ...back, ...out]);
await run("flame", `${s}tab=flame`, [...into.slice(0, 10), ...along, ...back, ...into.slice(0, 10), ...along, ...out]);
await b.close();
site?.server.closeAllConnections();
site?.server.close();
