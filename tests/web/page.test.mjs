// SPDX-License-Identifier: MIT. The page in a browser, on made-up sessions: sizes, hostile names, keys, addresses, and
// what people need who see or hear it otherwise.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { readFileSync } from "node:fs";
import { browser, fromWeb, pageOf, settled } from "./browser.mjs";
import { serve } from "./mock.mjs";

const AXE = readFileSync(fromWeb.resolve("axe-core/axe.min.js"), "utf8");
let b, site;
before(async () => {
	b = await browser();
	site = await serve();
});
after(async () => {
	await b.close();
	site.server.closeAllConnections();
	site.server.close();
});

async function open(hash, options) {
	const p = await pageOf(b, options);
	await p.goto(`${site.url}#${hash}`);
	await settled(p);
	return p;
}
const tabsOf = (p) => p.$$eval("[role=tab]", (l) => l.map((t) => t.id.replace("tab-", "")));
const text = (p, sel) => p.$eval(sel, (e) => e.textContent);
const hashOf = async (p) => new URLSearchParams(new URL(p.url()).hash.slice(1));

// Nothing threw, nothing was refused by the browser, nothing ran that came from a name, nothing sticks out of the page.
async function sound(p, what) {
	assert.deepEqual(p.errors, [], what);
	assert.equal(await p.evaluate(() => window.hit), undefined, `${what}: a name was run`);
	assert.equal(await p.evaluate(() => document.querySelectorAll("img, svg, #app script").length), 0, `${what}: a name became an element`);
	const over = await p.evaluate(() => document.documentElement.scrollWidth - innerWidth);
	assert.ok(over <= 0, `${what}: ${over} px wider than the window`);
}

describe("every tab", () => {
	for (const id of ["1", "empty", "one", "many", "hostile", "long", "tree"])
		test(`of session ${id}`, async () => {
			const p = await open(`s=${id}`);
			for (const tab of await tabsOf(p)) {
				await p.evaluate((t) => (location.hash = t), `s=${id}&tab=${tab}${id === "hostile" ? "&node=3" : ""}`);
				await settled(p);
				await sound(p, `${id}/${tab}`);
				assert.ok((await text(p, "#view")).trim().length > 0, `${id}/${tab} is empty`);
			}
			await p.close();
		});
	for (const zoom of [0.8, 1.5])
		test(`at ${zoom * 100} %`, async () => {
			const p = await open("s=1", { zoom });
			for (const tab of await tabsOf(p)) {
				await p.evaluate((t) => (location.hash = t), `s=1&tab=${tab}&node=3`);
				await settled(p);
				await sound(p, `${tab} at ${zoom}`);
			}
			await p.close();
		});
	for (const dark of [false, true])
		test(`for all people, ${dark ? "dark" : "light"}`, async () => {
			const p = await open("s=1", { dark });
			for (const tab of await tabsOf(p)) {
				await p.evaluate((t) => (location.hash = t), `s=1&tab=${tab}&node=3`);
				await settled(p);
				await p.evaluate(AXE);
				const found = await p.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
				const bad = found.violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`);
				assert.deepEqual(bad, [], tab);
			}
			await p.close();
		});
});

describe("a table", () => {
	test("of 10 000 rows has few in the page, and the last can be reached", async () => {
		const p = await open("s=many&tab=ops");
		assert.ok((await p.$$("tbody tr")).length < 80);
		await p.focus(".table");
		await p.keyboard.press("End");
		await settled(p);
		assert.equal(await p.$eval(".table table", (t) => t.getAttribute("aria-rowcount")), "10001");
		assert.equal(await p.$eval("tbody tr.on", (r) => r.getAttribute("aria-rowindex")), "10001");
		await p.close();
	});
	test("is sorted by its head, and the address keeps it", async () => {
		const p = await open("s=1&tab=ops");
		const col = () => p.$$eval("tbody tr[role=row] td:nth-child(6)", (l) => l.slice(0, 20).map((c) => Number(c.textContent.replaceAll("\u202f", ""))));
		await p.evaluate(() => [...document.querySelectorAll("th button")].find((e) => e.textContent.startsWith("Count")).click());
		await settled(p);
		const down = await col();
		assert.deepEqual(down, [...down].sort((x, y) => y - x));
		assert.equal((await hashOf(p)).get("osort"), "-count");
		const again = await open((await p.url()).split("#")[1]);
		assert.deepEqual(await again.$$eval("tbody tr[role=row]", (l) => l.slice(0, 5).map((r) => r.textContent)), await p.$$eval("tbody tr[role=row]", (l) => l.slice(0, 5).map((r) => r.textContent)));
		await p.close();
		await again.close();
	});
});

describe("the tree", () => {
	test("finds, says how much it is, and hides what is small", async () => {
		const p = await open("s=1&tab=tree");
		const before = (await p.$$("tbody tr[role=row]")).length;
		await p.keyboard.press("/");
		await p.keyboard.type("softmax");
		await settled(p);
		assert.match(await text(p, ".search .note"), /^\d+ found, [\d.]+\u202f%$/);
		assert.equal((await hashOf(p)).get("q"), "softmax");
		await p.keyboard.press("Escape");
		await p.evaluate(() => (location.hash = "s=1&tab=tree&hide=5&open=all"));
		await settled(p);
		const shares = await p.$$eval("tbody tr[role=row] td:nth-child(3)", (l) => l.map((c) => parseFloat(c.textContent)));
		assert.ok(shares.length > 1 && shares.every((s) => s >= 5) && shares.length < before);
		await p.close();
	});
	test("opens and closes by the arrows", async () => {
		const p = await open("s=1&tab=tree&open=none");
		assert.equal((await p.$$("tbody tr[role=row]")).length, 1);
		await p.focus(".table");
		await p.keyboard.press("ArrowDown");
		await p.keyboard.press("ArrowRight");
		await settled(p);
		assert.ok((await p.$$("tbody tr[role=row]")).length > 1);
		assert.equal(await p.$eval("tbody tr.on", (r) => r.getAttribute("aria-expanded")), "true");
		await p.keyboard.press("ArrowRight");
		await p.keyboard.press("ArrowLeft");
		await p.keyboard.press("ArrowLeft");
		await settled(p);
		assert.equal((await p.$$("tbody tr[role=row]")).length, 1);
		await p.close();
	});
});

describe("bars", () => {
	test("are walked, zoomed into and out of by keys; the other tabs know what is selected", async () => {
		const p = await open("s=1&tab=flame");
		await p.focus("canvas");
		await p.keyboard.press("ArrowDown");
		await p.keyboard.press("ArrowDown");
		await settled(p);
		const name = await text(p, ".details .whole");
		await p.keyboard.press("Enter");
		await settled(p);
		assert.ok(Number((await hashOf(p)).get("z")) > 0);
		assert.equal(await text(p, ".crumbs [aria-current]"), name);
		await p.keyboard.press("Home");
		await p.keyboard.press("2");
		await settled(p);
		assert.equal(await p.$eval("tbody tr.on", (r) => r.querySelector("td").textContent.replace(/^[▾▸]/, "")), name);
		assert.equal((await hashOf(p)).get("z"), null);
		await p.close();
	});
	test("have a table with the same sum", async () => {
		const p = await open("s=1&tab=flame&flame=turned&table=1");
		const sum = await p.$eval("tbody tr[role=row] td:nth-child(3)", (c) => c.textContent);
		const tree = await open("s=1&tab=tree");
		assert.equal(sum, await tree.$eval("tbody tr[role=row] td:nth-child(2)", (c) => c.textContent), "bottom up is the same time, turned over");
		await p.close();
		await tree.close();
	});
	test("of two sessions say what changed", async () => {
		const p = await open("s=1&tab=flame&flame=diff&base=2&table=1");
		const row = await p.$$eval("tbody tr[role=row]:first-child td", (l) => l.slice(1, 4).map((c) => Number(c.textContent.replace("−", "-").replaceAll("\u202f", ""))));
		assert.ok(Math.abs(row[1] - row[0] - row[2]) < 0.02, `${row}`);
		await p.close();
	});
});

describe("the frame", () => {
	test("goes from tab to tab by keys, and back by the browser", async () => {
		const p = await open("s=1&tab=summary");
		await p.keyboard.press("]");
		await settled(p);
		assert.equal(await p.$eval("[role=tab][aria-selected=true]", (t) => t.id), "tab-tree");
		await p.goBack();
		await settled(p);
		assert.equal(await p.$eval("[role=tab][aria-selected=true]", (t) => t.id), "tab-summary");
		await p.keyboard.press("?");
		await settled(p);
		assert.ok(await p.$("dialog[open]"));
		await p.keyboard.press("Escape");
		await settled(p);
		assert.equal(await p.$("dialog[open]"), null);
		await p.keyboard.press("t");
		assert.equal(await p.evaluate(() => document.documentElement.dataset.theme), "dark");
		await p.close();
	});
	test("opens a session from the list", async () => {
		const p = await open("s=1&tab=sessions");
		await p.focus(".table");
		await p.keyboard.press("ArrowDown");
		await p.keyboard.press("Enter");
		await settled(p);
		const h = await hashOf(p);
		assert.equal(h.get("tab"), "summary");
		assert.notEqual(h.get("s"), "1");
		await p.close();
	});
	test("says what is wrong in the server's words", async () => {
		const p = await open("s=nosuch");
		assert.match(await text(p, "[role=alert]"), /there is no .*protonview sessions/);
		await p.close();
	});
	test("gives back the same for the same address", async () => {
		const hash = "s=1&tab=tree&q=ncclDev&hide=0.1&cols=gpu_time,count&tsort=-count";
		const [p, q] = [await open(hash), await open(hash)];
		assert.equal(Buffer.from(await p.screenshot()).compare(Buffer.from(await q.screenshot())), 0);
		await p.close();
		await q.close();
	});
});
