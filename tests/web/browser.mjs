// SPDX-License-Identifier: MIT. Chromium of Debian, for the tests of the page.
import { createRequire } from "node:module";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
export const fromWeb = createRequire(join(here, "../../viewer/web/package.json"));
const puppeteer = fromWeb("puppeteer-core");

export async function browser(more = []) {
	const path = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
	if (!path)
		throw new Error("no chromium: apt-get install chromium");
	return puppeteer.launch({ executablePath: path, headless: true, args: ["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb", "--disable-extensions", "--mute-audio", ...more] });
}

// A page of a size; zoom is the browser's: fewer CSS pixels, more of the screen's for each.
export async function pageOf(b, { zoom = 1, dark = false, width = 1280, height = 800, still = true } = {}) {
	const own = await b.createBrowserContext(); // what one page keeps, another does not find
	const p = await own.newPage();
	p.close = () => own.close();
	p.errors = [];
	p.asked = 0; // requests
	p.on("request", () => p.asked++);
	p.on("pageerror", (e) => p.errors.push(`${e.message}`));
	p.on("console", (m) => m.type() === "error" && p.errors.push(m.text()));
	await p.setViewport({ width: Math.round(width / zoom), height: Math.round(height / zoom), deviceScaleFactor: zoom });
	await p.emulateMediaFeatures([{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }, { name: "prefers-reduced-motion", value: still ? "reduce" : "no-preference" }]);
	return p;
}

// Waits until nothing is asked for any more, what came was drawn, and nothing was asked for because of it: twice in a row.
export async function settled(p) {
	for (let calm = 0, asked; calm < 2; calm = p.asked === asked ? calm + 1 : 0) {
		asked = p.asked;
		await p.waitForNetworkIdle({ idleTime: 60, concurrency: 0, timeout: 30000 });
		await p.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestIdleCallback(() => requestIdleCallback(done))))));
	}
}
