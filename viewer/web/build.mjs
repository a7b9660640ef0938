// SPDX-License-Identifier: MIT. Builds the page into dist/ (or the folder given). The same sources give the same bytes.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { minify } from "terser";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "dist");
const LIMIT = 200_000; // bytes, all of it, minified

// What of uPlot no chart of ours uses: dates on an axis, scales that are not linear, its legend, splines. Each must be found:
// another version is looked at anew.
const UNUSED = [
	[/\b(sc\.|wsc\.)?distr == ([34]|100)\b/g, "false"],
	[/sc\.distr >= 3/g, "false"],
	[/let isTime = .*;/g, ""],
	[/const showLegend = .*;/, ""],
	[/let multiValLegend = .*;|multiValLegend = .*;|const getMultiVals = .*;/g, ""],
	[/\b(isTime|showLegend|multiValLegend)\b/g, "false"],
	[/^const \[ timeIncrs.*$/gm, ""],
	[/^\tconst _time(AxisSplits|AxisVals|SeriesVal) .*$/gm, ""],
	[/^uPlot\.(fmtNum|rangeNum|rangeLog|rangeAsinh) .*$/gm, ""],
	[/^\tuPlot\.(join|fmtDate|tzDate|addGap|clipGaps) .*$/gm, ""],
	[/\(paths\.(linear|spline) .*$/gm, ""],
];
const leaner = {
	name: "leaner",
	setup: (b) => b.onLoad({ filter: /uPlot\.esm\.js$/ }, ({ path }) => ({
		contents: UNUSED.reduce((text, [what, by]) => {
			if (text.search(what) < 0)
				throw new Error(`${path} has no ${what}`);
			return text.replace(what, by);
		}, readFileSync(path, "utf8")),
	})),
};

mkdirSync(out, { recursive: true });
await build({
	absWorkingDir: here,
	entryPoints: { app: "src/main.tsx" },
	outdir: out,
	bundle: true,
	plugins: [leaner],
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
