// SPDX-License-Identifier: MIT. Takes docs/pictures anew, of real sessions (real.mjs), or of those behind an address:
// node tests/web/pictures.mjs [DIR] [ADDRESS 'NAME=HASH'...]
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { browser, pageOf, settled } from "./browser.mjs";
import { BUILD, record } from "./real.mjs";

// Keeps some of each step, and tells what of the machine's memory it has.
const KEEPS = `import os, protond
kept, page = [], os.sysconf("SC_PAGESIZE")
for i in range(80):
    with open("/proc/self/statm") as f:
        size, resident, shared, *_ = (page * int(n) for n in f.read().split())
    with protond.scope("step", metrics={"memory_resident": resident, "memory_shared": shared}):
        with protond.scope("work"):
            work = [os.urandom(100_000 + 50_000 * (i % 9)) for _ in range(24)]
        kept.append(os.urandom(300_000))
`;
const TRAINS = `import os, time, protond
while True:
    with protond.scope("step"):
        for name, ms in ("data loader", 2), ("forward", 6), ("backward", 12), ("optimizer", 3):
            with protond.scope(name):
                end = time.monotonic() + ms / 1000 * (0.8 + 0.4 * os.urandom(1)[0] / 255)
                while time.monotonic() < end: os.urandom(4096)
`;
const LIMIT = 1_500_000; // bytes of all
const dir = process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), "../../docs/pictures");
const given = process.argv[3];
mkdirSync(dir, { recursive: true });
const r = given ? { url: given, stop: async () => {} } : await record();
const b = await browser();
try {
	let shots;
	if (given)
		shots = process.argv.slice(4).map((s) => [s.slice(0, s.indexOf("=")), s.slice(s.indexOf("=") + 1), {}]);
	else {
		r.run(["run", "-n", "again", "-d", "trace", "--", "protond-demo"]);
		const own = { PYTHONPATH: join(BUILD, "lib/protond/python") };
		writeFileSync(join(r.dir, "keeps.py"), KEEPS);
		writeFileSync(join(r.dir, "train.py"), TRAINS);
		r.run(["run", "-n", "keeps", "-d", "both", "--", "/usr/bin/python3", "keeps.py"], own);
		r.run(["tag", "demo", "base"]);
		r.started(join(BUILD, "bin/protonctl"), ["run", "-q", "-n", "night", "--", "/usr/bin/python3", "train.py"], own);
		const { gpt2, demo, slow } = r.ids;
		const id = (name) => {
			const list = r.json("sessions");
			return list.rows.find((x) => x[list.columns.findIndex((c) => c.name === "name")] === name)?.[0]?.toString();
		};
		const [again, keeps] = ["again", "keeps"].map(id);
		shots = [
			["summary", `s=${gpt2}&tab=summary`, {}],
			["bottlenecks", `s=${gpt2}&tab=bottlenecks`, {}],
			["tree", `s=${gpt2}&tab=tree&sel=aten%3A%3Amm`, { dark: true }],
			["flame", `s=${gpt2}&tab=flame`, {}],
			["bottom-up", `s=${gpt2}&tab=flame&flame=turned&q=sgemm`, { dark: true }],
			["difference", `s=${again}&tab=flame&flame=diff&base=${demo}&fm=cpu_time`, {}],
			["call-graph", `s=${gpt2}&tab=graph`, {}],
			["operations", `s=${gpt2}&tab=ops`, {}],
			["timeline", `s=${gpt2}&tab=timeline&t=41000000,43400000`, {}],
			["steps", `s=${demo}&tab=steps`, {}],
			["series", `s=${demo}&tab=series`, { dark: true, height: 720 }],
			["ranks", `s=${slow}&tab=ranks`, {}],
			["memory", `s=${keeps}&tab=memory`, {}],
			["sessions", `s=${demo}&tab=sessions`, {}],
			["live", `s=${id("night") ?? "@last"}&tab=live`, { more: 250 }],
		];
	}
	let bytes = 0;
	for (const [name, hash, { dark = false, keys = [], more = 0, height = 660 }] of shots) {
		const p = await pageOf(b, { dark, width: 1280, height });
		await p.goto(r.url);
		await p.goto(`${r.url.replace(/\?.*/, "")}#${hash}`);
		if (more === 0)
			await settled(p);
		else // of a stream, which never is: so many steps
			await p.waitForFunction((n) => {
				const done = Number(document.querySelectorAll(".bar-of .note b")[1]?.textContent.replace(/\D/g, "") ?? 0);
				window.first ??= done || undefined;
				return done >= window.first + n;
			}, { timeout: 120_000 }, more);
		for (const k of keys) {
			await p.focus("canvas");
			await p.keyboard.press(k);
			await settled(p);
		}
		await p.evaluate(() => document.activeElement?.blur());
		await p.screenshot({ path: join(dir, `${name}.png`) });
		bytes += statSync(join(dir, `${name}.png`)).size;
		if (p.errors.length > 0)
			throw new Error(`${name}: ${p.errors[0]}`);
		await p.close();
	}
	console.log(`${shots.length} pictures, ${bytes} bytes`);
	if (bytes > LIMIT)
		throw new Error(`more than ${LIMIT} bytes`);
} finally {
	await b.close();
	await r.stop();
}
