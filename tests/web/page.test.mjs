// SPDX-License-Identifier: MIT. The page in a browser, on made-up sessions: sizes, hostile names, keys, addresses, and
// what people need who see or hear it otherwise.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { browser, fromWeb, pageOf, settled } from "./browser.mjs";
import { Line, packTile, serve, SESSIONS } from "./mock.mjs";

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
async function until(yes) {
	const end = Date.now() + 5000;
	while (!yes()) {
		assert.ok(Date.now() < end, "it did not come");
		await new Promise((done) => setTimeout(done, 20));
	}
}
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
	for (const id of ["1", "empty", "one", "many", "hostile", "long", "tree", "rtl", "threads"])
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
			for (const tab of [...(await tabsOf(p)), "flame&flame=order", "ops&by=stack"]) {
				await p.evaluate((t) => (location.hash = t), `s=1&tab=${tab}&node=3`);
				await settled(p);
				await p.evaluate(AXE);
				const found = await p.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
				const bad = found.violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`);
				assert.deepEqual(bad, [], tab);
			}
			// It would have said so.
			const planted = await p.evaluate(async () => {
				const e = document.querySelector("#view").appendChild(document.createElement("button"));
				const r = await axe.run(document, { resultTypes: ["violations"] });
				e.remove();
				return r.violations.map((v) => v.id);
			});
			assert.ok(planted.includes("button-name"), `${planted}`);
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
	test("of operations is grouped, and each way has the same sum", async () => {
		const p = await open("s=1&tab=ops&by=family");
		const share = async (by) => {
			await p.evaluate((t) => (location.hash = t), `s=1&tab=ops&by=${by}`);
			await settled(p);
			return p.$$eval("tbody tr[role=row] td:nth-child(3)", (l) => l.reduce((s, c) => s + (c.textContent.startsWith("<") ? 0 : parseFloat(c.textContent)), 0));
		};
		for (const by of ["family", "class"])
			assert.ok(Math.abs((await share(by)) - 100) < 2, by);
		await share("family");
		await p.focus(".table");
		await p.keyboard.press("ArrowDown");
		await settled(p);
		assert.ok((await hashOf(p)).get("group"), "a group is in the address");
		assert.ok(await p.$(".hist .bars"), "with how long its kernels took");
		await share("stack");
		assert.deepEqual(await p.$$eval("thead th", (l) => l.slice(-2).map((c) => c.textContent.slice(0, 3))), ["p50", "p99"]);
		await p.focus(".table");
		await p.keyboard.press("ArrowDown");
		await p.keyboard.press("ArrowDown");
		await settled(p);
		assert.equal(await p.$eval("tbody tr.on", (r) => r.getAttribute("aria-rowindex")), "3");
		assert.ok((await hashOf(p)).get("node"), "what is selected is a place in the tree");
		await p.close();
	});
	test("is sorted by its head, and the address keeps it", async () => {
		const p = await open("s=1&tab=ops");
		const col = () => p.$$eval("tbody tr[role=row] td:nth-child(5)", (l) => l.slice(0, 20).map((c) => Number(c.textContent.replaceAll("\u202f", ""))));
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

describe("a chart", () => {
	// Where a step is: the axis is half a bar wider than the steps.
	const at = async (p, step) => {
		const box = await (await p.$(".u-over")).boundingBox();
		return [box.x + ((step - 0.4) / 120.2) * box.width, box.y + box.height / 2];
	};
	const said = (p) => p.$$eval(".chart .note", (l) => l.map((e) => e.textContent));
	test("says what is under the mouse, and does not move for it", async () => {
		const p = await open("s=1&tab=steps");
		const where = await at(p, 19);
		await p.mouse.move(...where);
		await settled(p);
		assert.deepEqual(await said(p), ["step 19"]);
		const parts = await p.$$eval(".chart b", (l) => l.map((e) => e.textContent));
		assert.ok(parts.length > 4 && parts.every((s) => /^[\d.]+\u202f[mµ]s$/.test(s)), `${parts}`);
		assert.deepEqual(await at(p, 19), where);
		await p.mouse.move(5, 5);
		await settled(p);
		assert.deepEqual(await said(p), [""]);
		await p.close();
	});
	test("is zoomed by a drag, picked by a click, and walked by keys", async () => {
		const p = await open("s=1&tab=steps");
		const left = await at(p, 1);
		await p.mouse.move(...(await at(p, 60)));
		await p.mouse.down();
		await p.mouse.move(...(await at(p, 80)));
		await p.mouse.up();
		await p.mouse.move(...(await at(p, 61)));
		await settled(p);
		assert.deepEqual(await said(p), ["step 70"]);
		await p.mouse.click(...left, { count: 2 });
		await settled(p);
		assert.deepEqual(await said(p), ["step 1"]);
		await p.mouse.click(...(await at(p, 56)));
		await settled(p);
		assert.equal((await hashOf(p)).get("step"), "56");
		await p.focus(".plot");
		await p.keyboard.press("ArrowRight");
		await settled(p);
		assert.deepEqual(await said(p), ["step 57"]);
		await p.keyboard.press("Enter");
		assert.equal((await hashOf(p)).get("step"), "57");
		assert.deepEqual(p.errors, []);
		await p.close();
	});
	test("moves with those beside it", async () => {
		const p = await open("s=1&tab=series");
		await p.mouse.move(...(await at(p, 60)));
		await settled(p);
		const all = await said(p);
		assert.ok(all.length === 3 && /^at /.test(all[0]) && all.every((s) => s === all[0]), `${all}`);
		await p.close();
	});
	test("that goes on is drawn again, not made again", async () => {
		const p = await open("s=live&tab=live");
		await p.waitForSelector(".uplot");
		await p.evaluate(() => {
			window.kept = document.querySelector(".uplot canvas");
			window.was = window.kept.toDataURL();
		});
		await p.waitForFunction(() => window.kept.toDataURL() !== window.was, { timeout: 5000 });
		await p.close();
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
		await p.keyboard.press("3");
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
	test("of one step stand in the order of time, and the next step is a button away", async () => {
		const p = await open("s=1&tab=flame&flame=order&step=7&table=1&fsort=");
		const names = () => p.$$eval("tbody tr[role=row] td:first-child", (l) => l.map((c) => c.textContent));
		const [line, step] = [new Line(200_000, 2, 2, SESSIONS[1][7]), await (await fetch(`${site.url}api/s/1/steps`)).json()];
		const first = (n) => line.names[line.one(0, Math.ceil(step.column.start[n - 1] / 20_000)).name];
		const at = (await names()).findIndex((n) => n === first(7));
		assert.equal((await names())[0], "step 7");
		assert.ok(at > 0 && at < 8, "what came first is first");
		await p.evaluate(() => [...document.querySelectorAll("button")].find((e) => e.textContent === "next ›").click());
		await settled(p);
		assert.equal((await hashOf(p)).get("step"), "8");
		assert.equal((await names())[0], "step 8");
		await p.evaluate(() => (location.hash = "s=1&tab=flame&flame=order&step=7"));
		await settled(p);
		await p.focus("canvas");
		await p.keyboard.press("ArrowDown");
		await p.keyboard.press("Enter");
		await settled(p);
		assert.ok((await hashOf(p)).get("sel") && Number((await hashOf(p)).get("z")) > 0);
		await p.close();
	});
	test("are not left loading by a session that had less", async () => {
		const p = await open("s=empty&tab=steps");
		await p.evaluate(() => (location.hash = "s=1&tab=steps"));
		await settled(p);
		assert.ok((await p.$$("tbody tr[role=row]")).length > 1);
		await p.close();
	});
	test("of two sessions say what changed", async () => {
		const p = await open("s=1&tab=flame&flame=diff&base=2&table=1");
		const row = await p.$$eval("tbody tr[role=row]:first-child td", (l) => l.slice(1, 4).map((c) => Number(c.textContent.replace("−", "-").replaceAll("\u202f", ""))));
		assert.ok(Math.abs(row[1] - row[0] - row[2]) < 0.02, `${row}`);
		const signs = await p.$$eval("tbody tr[role=row]", (l) => l.map((r) => [3, 4].map((i) => r.children[i].textContent[0])));
		assert.ok(signs.some(([d]) => d === "−") && signs.every(([d, share]) => (d === "−") === (share === "−")), "one sign of minus");
		await p.close();
	});
});

describe("the frame", () => {
	test("goes from tab to tab by keys, and back by the browser", async () => {
		const p = await open("s=1&tab=summary");
		assert.match(await p.$eval(".cards", (e) => e.textContent), /Overhead in calls.*driver 3.10\sms, recording 1.20\sms/);
		await p.keyboard.press("]");
		await settled(p);
		assert.equal(await p.$eval("[role=tab][aria-selected=true]", (t) => t.id), "tab-bottlenecks");
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
	test("hands the timeline to Perfetto's page, and to no other", async () => {
		const p = await open("s=1&tab=summary");
		await p.setRequestInterception(true);
		p.on("request", (r) => (r.url().endsWith("/export.pftrace") ? r.respond({ status: 200, body: "trace" }) : r.continue()));
		const got = await p.evaluate(async () => {
			const there = document.body.appendChild(document.createElement("iframe")).contentWindow;
			const got = [];
			window.open = (url) => (got.push(url), { postMessage: (what, to) => got.push([what.perfetto ? new TextDecoder().decode(what.perfetto.buffer) : what, to]) });
			const given = window.open;
			window.open = (url) => Object.assign(there, given(url));
			[...document.querySelectorAll(".menu button")].find((e) => /Perfetto/.test(e.textContent)).click();
			const says = (origin) => dispatchEvent(new MessageEvent("message", { data: "PONG", origin, source: there }));
			const until = async (yes) => {
				while (!yes())
					await new Promise((done) => setTimeout(done, 20));
			};
			await until(() => got.length > 1);
			says("https://elsewhere.example");
			const n = got.length;
			await until(() => got.length > n); // it asks on
			says("https://ui.perfetto.dev");
			await until(() => got.at(-1)[0] === "trace");
			return got;
		});
		assert.equal(got[0], "https://ui.perfetto.dev");
		assert.ok(got.slice(1, -1).every(([what, to]) => what === "PING" && to === got[0]), `${got}`);
		assert.deepEqual(got.at(-1), ["trace", "https://ui.perfetto.dev"]);
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

describe("the timeline", () => {
	test("has all numbers of its window below it", async () => {
		const p = await open("s=1&tab=timeline&t=20000000,20400000&arrows=0");
		await p.waitForFunction(() => {
			const c = document.querySelector("canvas"), k = c.height / c.clientHeight;
			const strip = c.getContext("2d").getImageData(210 * k, c.height - 4 * 46 * k, 900 * k, 40 * k).data;
			let line = 0;
			for (let i = 0; i < strip.length; i += 4)
				line += strip[i + 2] > strip[i] + 40 ? 1 : 0; // blue
			return line > 900 * 40 * k * k / 4; // a line of some points takes a twentieth
		}, { timeout: 10_000 });
		await p.close();
	});
	const range = async (p) => (((await hashOf(p)).get("t") ?? "0,0").split(",").map(Number));
	const moved = async (p) => {
		await p.waitForFunction((was) => location.hash !== was, { timeout: 5000 }, await p.evaluate(() => (window.was ??= location.hash)));
		await p.evaluate(() => (window.was = location.hash));
		await settled(p);
	};
	test("is zoomed and moved by keys, and its place is in the address", async () => {
		const p = await open("s=1&tab=timeline&t=20000000,20400000");
		await p.evaluate(() => (window.was = location.hash));
		await p.focus("canvas");
		await p.keyboard.press("w");
		await moved(p);
		const [a, b] = await range(p);
		assert.ok(b - a < 300000 && a > 20000000 && b < 20400000, `${a} ${b}`);
		await p.keyboard.press("d");
		await moved(p);
		const [c, d] = await range(p);
		assert.ok(c > a && d > b);
		await p.close();
	});
	test("names what is under the mouse, and says all of what is clicked", async () => {
		const p = await open("s=1&tab=timeline&t=20000000,20400000");
		const box = await (await p.$("canvas")).boundingBox();
		let hit = "";
		for (let x = 200; x < 420 && !hit; x += 4) {
			await p.mouse.move(box.x + x, box.y + 34);
			await settled(p);
			hit = (await p.$(".tip .head")) ? await text(p, ".tip .head") : "";
			if (hit)
				await p.mouse.click(box.x + x, box.y + 34);
		}
		await settled(p);
		assert.equal(await text(p, ".details .whole"), hit);
		assert.match(await text(p, ".details .facts"), /grid128 × 1 × 1/);
		assert.ok(Number((await hashOf(p)).get("ev")) > 0);
		const first = (await hashOf(p)).get("ev");
		await p.focus("canvas");
		await p.keyboard.press("n");
		await p.waitForFunction((was) => new URLSearchParams(location.hash.slice(1)).get("ev") !== was, { timeout: 5000 }, first);
		await settled(p);
		assert.equal(await text(p, ".details .whole"), hit, "the next of the same name");
		await p.close();
	});
	test("a call that waits leads to the work that let it come back", async () => {
		const p = await open("s=1&tab=timeline&t=20000000,20400000&ev=4242");
		assert.match(await text(p, ".linked"), /^ended by the end of sgemm5\.00\sµs at/);
		await p.click(".linked button");
		await settled(p);
		const h = await hashOf(p);
		assert.deepEqual([h.get("ev"), h.get("lane"), h.get("sel")], ["99", "1", "sgemm"]);
		await p.close();
	});
	test("sums what is in a box", async () => {
		const p = await open("s=1&tab=timeline&t=20000000,20400000");
		const box = await (await p.$("canvas")).boundingBox();
		await p.mouse.move(box.x + 300, box.y + 30);
		await p.mouse.down();
		await p.mouse.move(box.x + 500, box.y + 120, { steps: 4 });
		await p.mouse.up();
		await p.waitForSelector(".sums tbody tr[role=row]");
		const [a, b] = (await hashOf(p)).get("range").split(",").map(Number);
		const want = (px) => 20000000 + ((px - 196) / (box.width - 196)) * 400000;
		assert.ok(Math.abs(a - want(300)) < 800 && Math.abs(b - want(500)) < 800, `${a} ${b}`);
		assert.equal((await hashOf(p)).get("box"), "0,1");
		await p.close();
	});
	test("pins and hides lanes", async () => {
		const p = await open("s=1&tab=timeline&lane=2");
		await p.focus("canvas");
		await p.keyboard.press("p");
		await settled(p);
		assert.equal((await hashOf(p)).get("pin"), "2");
		await p.keyboard.press("e");
		await p.keyboard.press("h");
		await settled(p);
		assert.equal((await hashOf(p)).get("hide"), "0");
		await p.close();
	});
	test("draws the slices where they are", async () => {
		const p = await open("s=1&tab=timeline&t=20000000,20400000&nums=-&arrows=0");
		const line = new Line(200_000, 2, 2, SESSIONS[1][7]);
		await p.waitForFunction(() => document.querySelector("canvas").getContext("2d").getImageData(196, 32, 400, 1).data.some((v) => v !== 255), { timeout: 15000 });
		const got = await p.evaluate((n) => {
			const c = document.querySelector("canvas");
			const d = c.getContext("2d").getImageData(0, 24 + 8, c.width, 1).data;
			return Array.from({ length: n }, (_, i) => d[(196 + i) * 4] | (d[(196 + i) * 4 + 1] << 8) | (d[(196 + i) * 4 + 2] << 16));
		}, 1000);
		const width = await p.$eval("canvas", (c) => c.width - 196);
		const scale = width / 400000;
		let wrong = 0;
		for (let i = 0; i < 18; i++) {
			const e = line.one(0, 1000 + i);
			const [x0, x1] = [(e.start - 20000000) * scale, (e.start + e.dur - 20000000) * scale];
			if (x1 < 1000 && x1 - x0 > 4) {
				wrong += got[Math.ceil(x0) + 1] === 0xffffff ? 1 : 0; // in it there is colour
				const next = (line.one(0, 1001 + i).start - 20000000) * scale;
				wrong += next - x1 > 3 && got[Math.ceil(x1) + 1] !== 0xffffff ? 1 : 0; // after it there is none
			}
		}
		assert.equal(wrong, 0);
		await p.close();
	});
	test("a piece that is cut or no piece is said, and nothing breaks", async () => {
		for (const body of [Buffer.from("hello"), packTile(0, 1, 0, [[0, 5, 0, 1, 1, 0, 0]], ["a"], 1).subarray(0, 60)]) {
			const p = await pageOf(b);
			await p.setRequestInterception(true);
			p.on("request", (r) => (r.url().includes("/window?") ? r.respond({ status: 200, body }) : r.continue()));
			await p.goto(`${site.url}#s=1&tab=timeline`);
			await p.waitForSelector("[role=alert]");
			assert.match(await text(p, "[role=alert]"), /piece/);
			assert.deepEqual(p.errors, []);
			await p.close();
		}
	});
});

test("numbers below the lanes: the job's and a GPU's, unless others are chosen", async () => {
	const p = await pageOf(b);
	const names = ["loss", "gpu 0 power", "gpu 0 temperature", "gpu 0 sm_clock", "gpu 0 sm_active", "gpu 1 power", "lr", "host io_wait", ...Array.from({ length: 9 }, (_, i) => `n${i}`)];
	await p.setRequestInterception(true);
	p.on("request", (q) => (/\/series$/.test(q.url()) ? q.respond({ status: 200, contentType: "application/json", body: JSON.stringify({ series: names.map((name) => ({ name, unit: "", process: null, t: [0, 1e7], v: [1, 2] })), warnings: [] }) }) : q.continue()));
	const chosen = () => p.$$eval(".menu label", (l) => l.filter((e) => e.querySelector("input").checked).map((e) => e.textContent));
	await p.goto(`${site.url}#s=1&tab=timeline`);
	await settled(p);
	assert.deepEqual(await chosen(), ["loss", "gpu 0 power", "gpu 0 sm_clock", "gpu 0 sm_active"]);
	await p.evaluate(() => document.querySelectorAll(".menu label input")[6].click());
	await settled(p);
	assert.equal((await hashOf(p)).get("nums"), "0,1,3,4,6");
	await p.evaluate(() => (location.hash = `s=1&tab=timeline&nums=${[...Array(17).keys()]}`));
	await settled(p);
	assert.equal((await chosen()).length, 8, "as many as there is room for");
	await p.evaluate(() => (location.hash = "s=1&tab=timeline&nums=-"));
	await settled(p);
	assert.deepEqual(await chosen(), []);
	assert.deepEqual(p.errors, []);
	await p.close();
});

describe("whoever looks", () => {
	test("by keys alone sorts a table, and closes a menu", async () => {
		const p = await open("s=1&tab=ops");
		await p.focus(".table");
		for (let i = 0; i < 5; i++)
			await p.keyboard.press("Tab");
		assert.equal(await p.evaluate(() => document.activeElement.textContent), "Count");
		assert.notEqual(await p.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), "none", "where the keys go is seen");
		await p.keyboard.press("Enter");
		await settled(p);
		assert.equal((await hashOf(p)).get("osort"), "-count");
		await p.evaluate(() => (location.hash = "s=1&tab=tree&sel=x"));
		await settled(p);
		await p.focus("#view .menu summary");
		await p.keyboard.press("Enter");
		await p.keyboard.press("Tab");
		assert.ok(await p.evaluate(() => document.activeElement.matches(".menu input")));
		await p.keyboard.press("Escape");
		assert.deepEqual(await p.evaluate(() => [document.querySelectorAll(".menu[open]").length, document.activeElement.textContent]), [0, "columns"]);
		assert.equal((await hashOf(p)).get("sel"), "x", "the menu alone was closed");
		await p.close();
	});
	test("with the system's colours sees what is chosen, and pictures on their ground", async () => {
		const p = await pageOf(b);
		await (await p.createCDPSession()).send("Emulation.setEmulatedMedia", { features: [{ name: "forced-colors", value: "active" }, { name: "prefers-color-scheme", value: "dark" }] });
		await p.goto(`${site.url}#s=1&tab=flame`);
		await settled(p);
		const [on, off, ground, swatch] = await p.evaluate(() => {
			const of = (sel) => getComputedStyle(document.querySelector(sel));
			const c = document.querySelector("canvas");
			return [of("[aria-pressed=true]"), of("[aria-pressed=false]")].map((s) => [s.backgroundColor, s.color].join()).concat(
				c.getContext("2d").getImageData(4, c.height - 4, 1, 1).data.join(), of(".swatch").backgroundColor);
		});
		assert.notEqual(on, off);
		assert.notEqual(on.split("),")[0] + ")", on.split("),")[1]);
		assert.equal(ground, "0,0,0,255");
		assert.notEqual(swatch, "rgb(0, 0, 0)");
		await p.close();
	});
	test("on a phone has whole words on the buttons, and moves the timeline by hand", async () => {
		const p = await open("s=1&tab=flame", { width: 390, height: 844 });
		for (const tab of await tabsOf(p)) {
			await p.evaluate((t) => (location.hash = `s=1&tab=${t}`), tab);
			await settled(p);
			assert.deepEqual(await p.$$eval("button", (l) => l.filter((e) => e.scrollHeight > e.clientHeight + 4 && e.clientHeight > 0).map((e) => e.textContent)), [], tab);
			await sound(p, tab);
		}
		await p.evaluate(() => (location.hash = "s=1&tab=timeline&t=20000000,20400000"));
		await settled(p);
		const box = await (await p.$("canvas")).boundingBox();
		const range = async () => (await hashOf(p)).get("t").split(",").map(Number);
		const far = async (way) => {
			const was = p.url();
			await way();
			await until(() => p.url() !== was);
			return range();
		};
		const y = box.y + 100;
		const [a, e] = await far(async () => {
			const f = await p.touchscreen.touchStart(box.x + 300, y);
			await f.move(box.x + 161, y);
			await f.end();
		});
		assert.ok(Math.abs(a - 20200000) < 4000 && Math.abs(e - 20600000) < 4000, `${a} ${e}`);
		const [c, d] = await far(async () => {
			const [f, g] = [await p.touchscreen.touchStart(box.x + 240, y), await p.touchscreen.touchStart(box.x + 260, y)];
			await g.move(box.x + 300, y);
			await g.end();
			await f.end();
		});
		assert.ok(d - c < (e - a) / 2 && c > a && d < e, `${c} ${d}`);
		await p.close();
	});
	test("reads names from the right in their places", async () => {
		const p = await open("s=rtl&tab=bottlenecks");
		assert.match(await text(p, ".where"), /^\u2068[^›]+\u2069 › \u2068[^›]+\u2069 › \u2068[^›]+\u2069$/);
		await p.close();
	});
});

test("lanes that differ in the end of their names are told apart; when something was is told to the microsecond", async () => {
	const p = await pageOf(b);
	await p.setRequestInterception(true);
	const lane = [13, 29].map((n, id) => ({ id, kind: "stream", process: 1, rank: null, name: `scopes on a GPU with a long name, stream ${n}`, parent: null, rows: 1 }));
	const tile = packTile(0, 1e6, 0, [[5.6181234e9, 5000000, 0, 1, 1, 0, 0]], ["step"], 2);
	p.on("request", (q) => (/\/lanes$/.test(q.url()) ? q.respond({ status: 200, contentType: "application/json", body: JSON.stringify({ lane, t0: 5.6e9, t1: 5.64e9 }) })
		: /\/window\?/.test(q.url()) ? q.respond({ status: 200, body: tile }) : q.continue()));
	await p.goto(`${site.url}#s=1&tab=timeline&arrows=0&nums=-&lane=9`);
	await settled(p);
	const names = await p.$eval("canvas", (c) => [0, 1].map((i) => c.getContext("2d").getImageData(14, 24 + i * 23, 170, 18).data.join()));
	assert.notEqual(names[0], names[1]);
	const box = await (await p.$("canvas")).boundingBox();
	await p.mouse.click(box.x + 196 + (box.width - 196) * 0.5, box.y + 33);
	await settled(p);
	assert.match(await text(p, ".details .facts"), /begins at5\u202f618\.123\u202fms/);
	assert.deepEqual(p.errors, []);
	await p.close();
});

test("memory has what is in bytes, and not what a device has in all", async () => {
	const p = await pageOf(b);
	await p.setRequestInterception(true);
	const series = [["allocated", "bytes"], ["gpu 0 memory_clock", "MHz"], ["gpu 0 memory_total", "bytes"], ["host memory_wait", "%"], ["my memory", ""]].map(([name, unit]) => ({ name, unit, process: null, t: [0, 1e7], v: [1, 2] }));
	p.on("request", (q) => (/\/series$/.test(q.url()) ? q.respond({ status: 200, contentType: "application/json", body: JSON.stringify({ series, warnings: [] }) }) : /\/memory$/.test(q.url()) ? q.respond({ status: 200, contentType: "application/json", body: '{"accounts":[]}' }) : q.continue()));
	await p.goto(`${site.url}#s=1&tab=memory`);
	await settled(p);
	assert.deepEqual(await p.$$eval(".chart:first-of-type figcaption span:not(.note)", (l) => l.map((e) => e.textContent.trim())), ["allocated", "my memory", "memory peak"]);
	await p.close();
});

describe("where to look", () => {
	const verdicts = [
		{ rule: "data_loader", severity: "HIGH", words: "The loop waits 45.0% of the steps for its batches.", advice: "More workers.", view: "tree", where: ["step", "<b>data</b>loader"], name: "dataloader" },
		{ rule: "gpu_idle", severity: "MEDIUM", words: "During the steps the GPU had work for 30.0% of the time.", advice: "Look beside.", view: "steps", where: [], name: null },
	];
	for (const [what, said] of [["nothing is wrong", []], ["two verdicts", verdicts]])
		test(what, async () => {
			const p = await pageOf(b);
			await p.setRequestInterception(true);
			p.on("request", (q) => (/\/bottlenecks$/.test(q.url()) ? q.respond({ status: 200, contentType: "application/json", body: JSON.stringify({ verdicts: said, rules: [], warnings: [] }) }) : q.continue()));
			await p.goto(`${site.url}#s=1&tab=summary`);
			await settled(p);
			const shown = await p.$$eval(".hints li", (l) => l.map((e) => e.textContent));
			assert.equal(shown.length, said.length, shown.join("\n"));
			if (said.length > 0) {
				assert.match(shown[0], /^▲ HIGH<b>data<\/b>loader in step: The loop waits 45\.0% .* More workers\./);
				assert.match(shown[1], /^◆ MEDIUMDuring the steps/);
				await p.click(".hints li:nth-child(2) button");
				await settled(p);
				assert.equal((await hashOf(p)).get("tab"), "steps");
				await p.goto(`${site.url}#s=1&tab=summary`);
				await settled(p);
				await p.click(".hints li button");
				await p.waitForFunction(() => location.hash.includes("sel="));
				await settled(p);
				const h = await hashOf(p);
				assert.equal(h.get("tab"), "tree");
				assert.equal(h.get("sel"), "<b>data</b>loader", "as people read it");
			}
			assert.deepEqual(p.errors, []);
			await p.close();
		});
});

describe("bottlenecks", () => {
	test("say what, where, what to do and what that gives, and lead there", async () => {
		const p = await open("s=1&tab=bottlenecks");
		const shown = await p.$$eval(".verdict", (l) => l.map((e) => e.textContent));
		assert.deepEqual(shown.map((w) => /^(. [A-Z]+)/u.exec(w)[1]), ["▲ HIGH", "◆ MEDIUM", "● LOW"]);
		for (const part of [/what rule_high looks for/, /40\.0.%/, /step › forward › backward/, /step:42@train/, /do\s*Do less of it/, /at most 17\.00.ms a step, 40\.0.% of the steps/])
			assert.match(shown[0], part);
		assert.ok(!shown[1].includes("at most"), "what nobody knows is not said");
		assert.match(await text(p, ".bottlenecks"), /calls that wait sync\s*recorded by protonctl run -s sync, or start -s sync/);
		assert.match(await text(p, ".bottlenecks .clean"), /data_loader.*harmless/);
		const follow = async (label) => {
			await p.evaluate(() => (location.hash = "s=1&tab=bottlenecks"));
			await settled(p);
			await p.focus(`[aria-label="${label}"]`);
			await p.keyboard.press("Enter");
			await p.waitForFunction(() => !location.hash.includes("tab=bottlenecks"));
			await settled(p);
			return hashOf(p);
		};
		const line = await follow("Timeline: rule_high");
		assert.deepEqual(["tab", "t", "range"].map((k) => line.get(k)), ["timeline", "20000000,24000000", "21000000,22000000"]);
		assert.equal((await follow("Timeline: rule_low")).get("range"), null, "nothing is left of another's");
		for (const tab of ["Tree", "Flame"])
			assert.equal((await follow(`${tab}: rule_high`)).get("sel"), "backward");
		assert.equal((await follow("Steps: rule_medium")).get("tab"), "steps");
		assert.deepEqual(p.errors, []);
		await p.close();
	});
});

describe("steps, series, ranks, live", () => {
	test("a slow step leads to its place in the timeline", async () => {
		const p = await open("s=1&tab=steps");
		await p.evaluate(() => document.querySelector(".warn button.link").click());
		await settled(p);
		assert.equal((await hashOf(p)).get("step"), "19");
		await p.evaluate(() => [...document.querySelectorAll("button")].find((e) => /in the timeline/.test(e.textContent)).click());
		await settled(p);
		const h = await hashOf(p);
		assert.equal(h.get("tab"), "timeline");
		assert.ok(h.get("range").split(",").map(Number).reduce((x, y) => y - x) > 4e7);
		await p.close();
	});
	test("the slow rank is named", async () => {
		const p = await open("s=1&tab=ranks");
		assert.match(await text(p, ".bar-of .warn"), /rank 3 takes 1\.3\d × as long/);
		assert.match(await p.$eval(".halves .table:last-child tbody tr[role=row]", (r) => r.textContent), /rank 3/);
		await p.close();
	});
	test("what is live moves, can be paused, and is let go of when nobody looks", async () => {
		const p = await pageOf(b);
		await p.goto(`${site.url}#s=live&tab=live`);
		await p.waitForFunction(() => document.querySelectorAll(".bar-of .note b")[1]?.textContent > "1");
		const n = () => p.$$eval(".bar-of .note b", (l) => Number(l[1].textContent.replaceAll("\u202f", "")));
		const first = await n();
		await p.waitForFunction((was) => Number(document.querySelectorAll(".bar-of .note b")[1].textContent.replaceAll("\u202f", "")) > was + 1, { timeout: 5000 }, first);
		assert.equal(site.live(), 1);
		await p.click(".bar-of button.toggle");
		await p.waitForFunction(() => document.querySelector(".state[role=status]").textContent === "paused");
		await until(() => site.live() === 0);
		await p.close();
	});
});

describe("a report", () => {
	test("is the same page, without a server", async () => {
		const page = readFileSync(new URL("../../viewer/web/dist/index.html", import.meta.url), "utf8");
		const js = readFileSync(new URL("../../viewer/web/dist/app.js", import.meta.url), "utf8");
		const css = readFileSync(new URL("../../viewer/web/dist/app.css", import.meta.url), "utf8");
		const answers = [];
		for (const path of ["api/sessions", "api/s/1/meta", "api/s/1/tree", "api/s/1/ops", "api/s/1/steps", "api/s/1/lanes", "api/s/1/window?t0=0&t1=409600000&px=1024&lanes=0-3"]) {
			const r = await fetch(site.url + path);
			answers.push(`<script type="application/octet-stream" data-path="${path.replaceAll("&", "&amp;")}">${deflateRawSync(Buffer.from(await r.arrayBuffer())).toString("base64")}</script>`);
		}
		assert.ok(page.includes('<link rel="stylesheet" href="app.css">') && page.includes('<script src="app.js"></script>'), "what protonview report replaces");
		const html = page.replace('<link rel="stylesheet" href="app.css">', () => `<style>${css}</style>`).replace('<script src="app.js"></script>', () => `${answers.join("\n")}<script>${js}</script>`);
		const dir = mkdtempSync(join(tmpdir(), "page-"));
		writeFileSync(join(dir, "run.html"), html);
		const p = await pageOf(b);
		await p.setRequestInterception(true);
		const asked = [];
		p.on("request", (r) => (r.url().startsWith("file:") || r.url().startsWith("data:") ? r.continue() : (asked.push(r.url()), r.abort())));
		await p.goto(`file://${dir}/run.html`);
		await settled(p);
		for (const tab of await tabsOf(p)) {
			await p.evaluate((t) => (location.hash = t), `tab=${tab}`);
			await settled(p);
			await sound(p, `report/${tab}`);
		}
		assert.deepEqual(asked, [], "it asked the network");
		assert.ok(!(await tabsOf(p)).includes("sessions"));
		await p.evaluate(() => (location.hash = "tab=timeline&arrows=0"));
		await settled(p);
		assert.ok(await p.$eval("canvas", (c) => new Set(c.getContext("2d").getImageData(200, 30, 400, 1).data).size > 8), "its timeline is drawn");
		assert.deepEqual(await p.$$eval(".bar-of button", (l) => l.map((e) => e.textContent)), ["all", "table"], "nothing is offered that only a server can do");
		await p.close();
		// In a notebook's cell, which has no address of its own.
		writeFileSync(join(dir, "cell.html"), `<iframe sandbox="allow-scripts" srcdoc="${html.replaceAll("&", "&amp;").replaceAll('"', "&quot;")}"></iframe>`);
		const cell = await pageOf(b);
		await cell.goto(`file://${dir}/cell.html`);
		const inside = await (await cell.$("iframe")).contentFrame();
		await (await inside.waitForSelector("#tab-flame")).evaluate((e) => e.click());
		await inside.waitForSelector("#tab-flame[aria-selected=true]");
		assert.deepEqual(cell.errors, []);
		await cell.close();
		rmSync(dir, { recursive: true });
	});
});
