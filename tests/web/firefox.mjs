// SPDX-License-Identifier: MIT. One smoke run in Firefox, of `make web-bench`: each tab of a made-up session is drawn, with nothing in
// the console. node firefox.mjs [PICTURE]. Without firefox-esr it says so.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { fromWeb } from "./browser.mjs";
import { serve } from "./mock.mjs";

const path = ["/usr/bin/firefox-esr", "/usr/bin/firefox"].find(existsSync);
if (!path) {
	console.log("firefox: not here (apt-get install firefox-esr), nothing was run");
	process.exit(0);
}
const site = await serve();
const b = await fromWeb("puppeteer-core").launch({ browser: "firefox", executablePath: path, headless: true });
try {
	const p = await b.newPage();
	const said = [];
	p.on("pageerror", (e) => said.push(e.message));
	p.on("console", (m) => ["error", "warn"].includes(m.type()) && said.push(m.text()));
	await p.setViewport({ width: 1280, height: 800 });
	await p.goto(`${site.url}#s=1`);
	await p.waitForSelector("[role=tab]");
	const tabs = await p.$$eval("[role=tab]", (l) => l.map((t) => t.id.replace("tab-", "")));
	for (const tab of tabs) {
		await p.evaluate((t) => (location.hash = `s=1&tab=${t}`), tab);
		await p.waitForFunction((t) => document.querySelector(`#tab-${t}[aria-selected=true]`) && !document.querySelector(".busy") && document.querySelector("#view").innerText.trim().length > 0, { timeout: 20000 }, tab);
		if (["flame", "graph", "timeline"].includes(tab)) // some of the picture is not its ground
			await p.waitForFunction(() => [...document.querySelectorAll("#view canvas")].some((c) => c.width > 0 && new Set(new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer)).size > 8), { timeout: 20000 });
		if (tab === "timeline" && process.argv[2])
			await p.screenshot({ path: process.argv[2] });
	}
	assert.deepEqual(said, []);
	console.log(`firefox ${(await b.version()).replace(/.*\//, "")}: ${tabs.length} tabs drawn, nothing in its console`);
} finally {
	await b.close();
	site.server.closeAllConnections();
	site.server.close();
}
