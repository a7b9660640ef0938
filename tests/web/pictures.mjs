// SPDX-License-Identifier: MIT. Takes docs/pictures anew, of real sessions (real.mjs), or of those behind an address:
// node tests/web/pictures.mjs [DIR] [ADDRESS 'NAME=HASH'...]
import { mkdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { browser, pageOf, settled } from "./browser.mjs";
import { record } from "./real.mjs";

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
		const { gpt2, demo, ranks } = r.ids;
		const list = r.json("sessions");
		const again = String(list.rows.find((x) => x[list.columns.findIndex((c) => c.name === "name")] === "again")[0]);
		shots = [
			["summary", `s=${gpt2}&tab=summary`, {}],
			["tree", `s=${gpt2}&tab=tree&sel=aten%3A%3Amm`, { dark: true }],
			["flame", `s=${gpt2}&tab=flame`, {}],
			["bottom-up", `s=${gpt2}&tab=flame&flame=turned&q=sgemm`, { dark: true }],
			["difference", `s=${again}&tab=flame&flame=diff&base=${demo}&fm=cpu_time`, {}],
			["call-graph", `s=${gpt2}&tab=graph`, {}],
			["operations", `s=${gpt2}&tab=ops`, {}],
			["timeline", `s=${gpt2}&tab=timeline&t=41000000,43400000`, {}],
			["steps", `s=${demo}&tab=steps`, {}],
			["series", `s=${demo}&tab=series`, { dark: true }],
			["ranks", `s=${ranks}&tab=ranks`, {}],
		];
	}
	let bytes = 0;
	for (const [name, hash, { dark = false, keys = [] }] of shots) {
		const p = await pageOf(b, { dark, width: 1280, height: 720 });
		await p.goto(r.url);
		await p.goto(`${r.url.replace(/\?.*/, "")}#${hash}`);
		await settled(p);
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
