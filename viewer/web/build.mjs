// SPDX-License-Identifier: MIT. Builds the page into dist/ (or the folder given). The same sources give the same bytes.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { minify } from "terser";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "dist");
const LIMIT = 200_000; // bytes, all of it, minified

mkdirSync(out, { recursive: true });
await build({
	absWorkingDir: here,
	entryPoints: { app: "src/main.tsx" },
	outdir: out,
	bundle: true,
	minify: true,
	target: ["chrome100", "firefox102", "safari16"], // firefox102: Debian 12's first
	format: "iife",
	legalComments: "none",
	charset: "utf8",
	logLevel: "warning",
});
const app = join(out, "app.js"); // 2 % smaller again
writeFileSync(app, (await minify(readFileSync(app, "utf8"), { compress: { ecma: 2020, passes: 2, pure_getters: true, toplevel: true }, mangle: { toplevel: true } })).code + "\n");
copyFileSync(join(here, "src/index.html"), join(out, "index.html"));
const bytes = ["index.html", "app.js", "app.css"].reduce((sum, f) => sum + statSync(join(out, f)).size, 0);
console.log(`the page: ${bytes} bytes`);
if (bytes > LIMIT) {
	console.error(`more than ${LIMIT}: leave something out`);
	process.exit(1);
}
