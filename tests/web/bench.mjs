// SPDX-License-Identifier: MIT. `make web-bench`: frames while a timeline and a flame graph are panned and zoomed for 20 s
// each in Chromium with software rendering. node bench.mjs [ADDRESS]; with an address (what `protonview web` prints) the session
// that it opens. Without: 1 M made-up events in 24 lanes and 100 000 nodes; then, where tests/replay is built, 24 lanes of three
// processes that play a torch step of the H200, multiplied to 100 000, 1 M and 10 M events, behind `protonview web`; and speedscope,
// where `make judges` installed it, with 100 000 of the same. SECONDS= for another length. What is measured:
//   first picture from the address to the first colour in the picture; of speedscope, to its canvas
//   main thread   what a frame's drawing takes of the clock and, where others want the machine too, of the processor,
//                 by a trace of the browser's own
//   dropped       frames that its compositor wanted and did not get
//   input         from a key's event to the next frame that is on the screen
import { execFileSync } from "node:child_process";
import { createReadStream, existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { browser, pageOf, settled } from "./browser.mjs";
import { serve } from "./mock.mjs";
import { BUILD, record, replays } from "./real.mjs";

const seconds = Number(process.env.SECONDS ?? 20);
const SPEEDSCOPE = fileURLToPath(new URL("../judges/node_modules/speedscope/dist/release/", import.meta.url));
const at = (v, p) => (v.length === 0 ? NaN : [...v].sort((a, b) => a - b)[Math.min(v.length - 1, Math.floor(v.length * p))]);
const b = await browser(["--enable-unsafe-swiftshader"]); // speedscope draws with WebGL

async function run(name, base, hash, keys, ours = true) {
	const p = await pageOf(b, { still: false });
	if (base.includes("?"))
		await p.goto(base);
	const t0 = Date.now();
	await p.goto(`${base.replace(/\?.*/, "")}#${hash}`);
	if (ours)
		await p.waitForSelector("canvas");
	else
		await p.waitForFunction(() => document.querySelectorAll("canvas").length > 2 && /Time Order/.test(document.body.innerText), { timeout: 120_000 });
	if (ours) // something in it has a colour
		await p.waitForFunction(() => {
			const c = document.querySelector("canvas");
			const d = c.width > 0 ? c.getContext("2d").getImageData(c.width / 4, 24, c.width / 2, 120).data : [];
			return d.some((v, i) => i % 4 === 0 && Math.max(v, d[i + 1], d[i + 2]) - Math.min(v, d[i + 1], d[i + 2]) > 14);
		}, { polling: "raf", timeout: 60_000 });
	const first = Date.now() - t0;
	if (ours) {
		await settled(p);
		await p.focus("canvas");
	}
	// Keys are pressed within the page, so that what is measured is the page and not the wire to it.
	await p.evaluate(() => {
		window.inputs = [];
		let asked = 0;
		const real = requestAnimationFrame;
		window.press = (key) => {
			asked = performance.now();
			for (const type of ["keydown", "keypress"])
				document.querySelector("canvas").dispatchEvent(new KeyboardEvent(type, { key, bubbles: true, cancelable: true }));
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
const into = (n) => Array(n).fill("w"), along = Array(60).fill("d"), back = Array(60).fill("a"), out = Array(40).fill("s");
const TIMELINE = [...along, ...into(8), ...along, ...back, ...into(8), ...along, ...into(12), ...along, ...back, ...out];
const FLAME = [...into(10), ...along, ...back, ...into(10), ...along, ...out];
const OTHERS = FLAME.map((k) => ({ w: "=", s: "-" })[k] ?? k); // speedscope's keys

async function made() {
	const site = await serve();
	await run("1 M made-up events, 24 lanes: timeline", site.url, "s=huge&tab=timeline", TIMELINE);
	await run("100 000 nodes: flame", site.url, "s=huge&tab=flame", FLAME);
	site.server.closeAllConnections();
	site.server.close();
}

// Its page and one file, from one place.
function speedscope(file) {
	const server = createServer((q, r) => {
		const path = q.url === "/trace.json" ? file : join(SPEEDSCOPE, q.url === "/" ? "index.html" : q.url.replace(/[?#].*|\.\./g, ""));
		if (!existsSync(path))
			return r.writeHead(404).end();
		r.writeHead(200, { "Content-Type": { html: "text/html", js: "text/javascript", css: "text/css", wasm: "application/wasm" }[path.split(".").pop()] ?? "application/octet-stream", "Content-Length": statSync(path).size });
		createReadStream(path).pipe(r);
	});
	return new Promise((done) => server.listen(0, "127.0.0.1", () => done({ server, url: `http://127.0.0.1:${server.address().port}/` })));
}

async function beside(name, file) {
	if (!existsSync(SPEEDSCOPE))
		return console.log("speedscope is not here: make judges");
	const { server, url } = await speedscope(file);
	await run(`speedscope, ${name}`, url, `profileURL=${encodeURIComponent(`${url}trace.json`)}`, OTHERS, false).catch((e) => console.log(`speedscope, ${name}: ${e.message}`));
	server.closeAllConnections();
	server.close();
}

async function played() {
	const r = await record();
	try {
		const dump = join(r.dir, "torch.dump");
		r.run(["run", "-n", "three", "-d", "both", "--", "sh", "-c", "for r in 0 1 2; do RANK=$r WORLD_SIZE=3 pd_replay_job torch >/dev/null & done; wait"], { PROTOND_CUPTI_PATH: join(BUILD, "replay/libcupti.so.13"), PD_REPLAY_DUMP: dump });
		r.view("export", "three", "-o", "three.protond");
		for (const [words, times] of [["100 000", 6], ["1 M", 57], ["10 M", 570]]) {
			const file = join(r.dir, `${times}.protond`);
			execFileSync(join(BUILD, "bench/multiply"), [join(r.dir, "three.protond"), file, String(times)]);
			const web = r.started(join(BUILD, "bin/protonview"), ["web", "--no-open", "--port", "0", file]);
			while (!/http:\S+/.test(web.out))
				await new Promise((done) => web.stdout.once("data", done));
			const url = /http:\S+/.exec(web.out)[0];
			const page = await pageOf(b);
			await page.goto(url);
			const lanes = await page.evaluate(() => fetch("api/s/f1/lanes").then((a) => a.json()));
			await page.close();
			await run(`${words} played events (${lanes.events} in ${lanes.lane.length} lanes): timeline`, url, "s=f1&tab=timeline", TIMELINE);
			web.kill("SIGTERM");
			if (times < 10) { // what it reads 1 M of is a file of 800 MB, and takes over 4 GiB
				r.view("export", file, "-o", "chrome.json");
				// What speedscope 1.25 translates mangled names with ends at some of them: "memory access out of bounds".
				execFileSync("sed", ["-i", 's/"name":"_*Z/"name":"z/g', join(r.dir, "chrome.json")]);
				await beside(`the same ${words} events`, join(r.dir, "chrome.json"));
			}
		}
	} finally {
		await r.stop();
	}
}

if (process.argv[2]) {
	await run("timeline", process.argv[2], "tab=timeline", TIMELINE);
	await run("flame", process.argv[2], "tab=flame", FLAME);
} else {
	await made();
	if (replays && existsSync(join(BUILD, "bench/multiply")))
		await played();
	else
		console.log("no replay or multiply is built: `make check T=replay` and `make bench` make them; nothing was played");
}
await b.close();
