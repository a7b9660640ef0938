// SPDX-License-Identifier: MIT. The page on what `protonview web` really says: every tab, and its numbers against the tools'.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { browser, pageOf, settled } from "./browser.mjs";
import { built, record, replays } from "./real.mjs";

describe("a real server", { skip: !built && "build/bin/protonview is not there: make" }, () => {
	let b, r, base;
	before(async () => {
		r = await record(); // one after the other: what one of them started is stopped when the other fails
		b = await browser();
		base = r.url.replace(/\?.*/, "");
	});
	after(async () => {
		await b?.close();
		await r?.stop();
	});
	const open = async (hash) => {
		const p = await pageOf(b);
		await p.goto(r.url);
		await p.goto(`${base}#${hash}`);
		await settled(p);
		return p;
	};
	const tabs = (p) => p.$$eval("[role=tab]", (l) => l.map((t) => t.id.replace("tab-", "")));
	const number = (s) => Number(s.replaceAll("\u202f", "").replace("−", "-"));

	for (const name of ["demo", "ranks", "gpt2", "hostile", ...(replays ? ["torch"] : [])])
		test(`every tab of ${name}`, async () => {
			const p = await open(`s=${r.ids[name]}`);
			for (const tab of await tabs(p)) {
				await p.evaluate((h) => (location.hash = h), `s=${r.ids[name]}&tab=${tab}&node=2`);
				await settled(p);
				assert.deepEqual(p.errors, [], tab);
				assert.equal(await p.$("[role=alert]"), null, tab);
				assert.equal(await p.evaluate(() => window.hit), undefined, `${tab}: a name was run`);
				assert.equal(await p.evaluate(() => document.querySelectorAll("img, svg, #app script").length), 0, `${tab}: a name became an element`);
			}
			await p.close();
		});
	test("the address is traded for a cookie, and without it nothing is told", async () => {
		const p = await open("tab=summary");
		assert.ok(!p.url().includes("token"));
		await p.close();
		const q = await pageOf(b);
		await q.goto(base);
		await settled(q);
		assert.match(await q.$eval("[role=alert]", (e) => e.textContent), /address/);
		await q.close();
	});
	test("the rank that comes last is named where the others only wait", async () => {
		const p = await open(`s=${r.ids.slow}&tab=ranks`);
		assert.match(await p.$eval(".late", (e) => e.textContent), /^Rank 3 comes last .*spin_kernel in extra$/);
		assert.match(await p.$$eval(".halves th", (l) => l.map((h) => h.textContent).join("|")), /apart\s?ms/);
		await p.close();
	});
	test("the tree has the tools' numbers", async () => {
		const t = r.json("tree", r.ids.demo, "-m", "cpu_time/ns", "-n", "0");
		const of = (n) => t.rows.find((row) => row[t.columns.findIndex((c) => c.name === "name")] === n)[t.columns.findIndex((c) => c.name.startsWith("cpu_time"))];
		const p = await open(`s=${r.ids.demo}&tab=tree&open=all`);
		const head = await p.$$eval("th", (l) => l.map((h) => h.textContent));
		const col = head.findIndex((h) => h.startsWith("CPU time") && !h.includes("self"));
		const unit = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9 }[/(ns|µs|ms|s)\s*[▲▼]?$/.exec(head[col])[1]];
		const rows = await p.$$eval("tbody tr[role=row]", (l, c) => l.map((row) => [row.children[0].textContent.replace(/^[▾▸]/, ""), row.children[c].textContent]), col);
		for (const name of ["forward", "optimizer"]) {
			const said = number(rows.find(([n]) => n === name)[1]) * unit;
			assert.ok(Math.abs(said - of(name)) <= unit * 0.0051, `${name}: ${said}, the tool says ${of(name)}`);
		}
		await p.close();
	});
	test("steps and their place in the timeline", async () => {
		const rows = r.json("sql", r.ids.demo, "select step, dur_ns from steps order by step").rows;
		const p = await open(`s=${r.ids.demo}&tab=steps&step=3`);
		assert.match(await p.$eval(".bar-of .note", (e) => e.textContent), new RegExp(`^${rows.length} steps`));
		await p.evaluate(() => [...document.querySelectorAll("button")].find((e) => /in the timeline/.test(e.textContent)).click());
		await settled(p);
		const [a, z] = new URLSearchParams(new URL(p.url()).hash.slice(1)).get("range").split(",").map(Number);
		assert.ok(Math.abs(z - a - rows.find(([n]) => n === 3)[1]) <= 1);
		await p.waitForFunction(() => [...document.querySelectorAll(".sums td:first-child")].some((e) => e.textContent === "step"));
		assert.deepEqual(p.errors, []);
		await p.close();
	});
	test("a verdict leads to a time in which it is seen", async () => {
		const p = await open(`s=${r.ids.gpt2}&tab=bottlenecks`);
		await p.click("[aria-label='Timeline: gpu_idle']");
		await settled(p);
		const [a, z] = new URLSearchParams(new URL(p.url()).hash.slice(1)).get("t").split(",").map(Number);
		const steps = await p.evaluate(async (id) => (await fetch(`api/s/${id}/steps`)).json(), r.ids.gpt2);
		assert.deepEqual([a, z], [steps.column.start[0], steps.column.start.at(-1) + steps.column.duration.at(-1)], "both steps");
		assert.deepEqual(p.errors, []);
		await p.close();
	});
	test("a slice that is clicked is the event it says it is", async () => {
		const p = await open(`s=${r.ids.demo}&tab=timeline`);
		const box = await (await p.$("canvas")).boundingBox();
		let row = 0;
		for (let x = 200; x < 1200 && row === 0; x += 50) {
			await p.mouse.click(box.x + x, box.y + 34);
			await settled(p);
			row = (await p.$(".details .path")) ? 1 : 0;
		}
		const path = await p.$$eval(".details .path li", (l) => l.map((e) => e.textContent));
		assert.equal(path[path.length - 1], await p.$eval(".details .whole", (e) => e.textContent));
		assert.equal(path[0], "ROOT");
		await p.close();
	});
	test("saves as all that export writes", async () => {
		const table = readFileSync(new URL("../../proto/terms/formats.h", import.meta.url), "utf8");
		const endings = [...table.matchAll(/^\tX\([a-z_]+,\s+(?!FOLDER)[A-Z]+,.*?"([a-z._]+)",/gm)].map((x) => x[1]);
		assert.ok(endings.length > 10);
		const p = await open(`s=${r.ids.demo}&tab=summary`);
		const links = await p.$$eval(".menu a", (l) => l.map((e) => e.getAttribute("href")));
		assert.deepEqual(links.map((l) => l.replace(/^.*export\./, "")).sort(), endings.sort());
		for (const l of links)
			assert.equal(await p.evaluate(async (x) => (await fetch(x)).status, l), 200, l);
		await p.close();
	});
	test("a report is the same page, and asks nobody", async () => {
		r.view("report", r.ids.demo, "-o", "x.html");
		const p = await pageOf(b);
		await p.setRequestInterception(true);
		const asked = [];
		p.on("request", (q) => (/^(file|data):/.test(q.url()) ? q.continue() : (asked.push(q.url()), q.abort())));
		await p.goto(`file://${join(r.dir, "x.html")}`);
		await settled(p);
		for (const tab of await tabs(p)) {
			await p.evaluate((h) => (location.hash = h), `tab=${tab}`);
			await settled(p);
			assert.deepEqual(p.errors, [], tab);
			assert.equal(await p.$("[role=alert]"), null, tab);
		}
		assert.deepEqual(asked, []);
		await p.close();
	});
});
