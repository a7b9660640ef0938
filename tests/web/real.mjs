// SPDX-License-Identifier: MIT. Real sessions behind a real `protonview web`: the demo's, those of recordings of an H200
// that are played (where tests/replay is built), ranks, a file of torch.profiler, two H200s of which one has more to do, and one with names that would harm.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { HOSTILE } from "./mock.mjs";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const BUILD = resolve(ROOT, process.env.PROTOND_BUILD ?? "build");
const bin = (name) => join(BUILD, "bin", name);

export const built = existsSync(bin("protonview"));
export const replays = existsSync(join(BUILD, "replay/pd_replay_job"));

async function until(what, yes) {
	for (const end = Date.now() + 20_000; ; ) {
		const v = await yes();
		if (v)
			return v;
		if (Date.now() > end)
			throw new Error(`it did not come: ${what}`);
		await new Promise((done) => setTimeout(done, 20));
	}
}

export async function record() {
	const dir = mkdtempSync(join(tmpdir(), "protond-page-"));
	const env = { PATH: `${join(BUILD, "bin")}:${join(BUILD, "replay")}:${process.env.PATH}`, HOME: dir, LANG: "C.UTF-8", PROTOND_RUNTIME_DIR: join(dir, "r"), PROTOND_DB: join(dir, "p.db"), PROTOND_AUTO_SESSION: "off" };
	const children = [];
	const started = (cmd, args, more = {}) => {
		const p = spawn(cmd, args, { env: { ...env, ...more }, cwd: dir, stdio: ["ignore", "pipe", "pipe"] });
		p.out = "";
		p.stdout.on("data", (d) => (p.out += d));
		p.stderr.on("data", (d) => (p.out += d));
		children.push(p);
		return p;
	};
	const run = (args, more = {}) => execFileSync(bin("protonctl"), args, { env: { ...env, ...more }, cwd: dir, stdio: ["ignore", "pipe", "pipe"] }).toString();
	const stop = async () => {
		for (const p of children.reverse())
			if (p.exitCode === null && p.signalCode === null) {
				p.kill("SIGTERM");
				await new Promise((done) => p.once("exit", done));
			}
		rmSync(dir, { recursive: true, force: true });
	};
	try {
		started(bin("protond"), ["--private", "--foreground"]);
		await until("the daemon", () => {
			try {
				return run(["status"]);
			} catch {
				return null;
			}
		});
		run(["run", "-n", "demo", "-d", "trace", "--", "protond-demo"]);
		run(["run", "-n", "ranks", "-d", "trace", "--", "sh", "-c", `for r in 0 1 2 3; do RANK=$r WORLD_SIZE=4 protond-demo >/dev/null & done; wait`]);
		if (replays)
			for (const name of ["torch", "eager"]) {
				const dump = join(dir, `${name}.dump`);
				writeFileSync(dump, gunzipSync(readFileSync(join(ROOT, `tests/replay/dumps/${name}.cuptidump.gz`))));
				run(["run", "-n", name, "-d", "trace", "--", "pd_replay_job", name], { PROTOND_CUPTI_PATH: join(BUILD, "replay/libcupti.so.13"), PD_REPLAY_DUMP: dump });
			}
		const kineto = join(ROOT, "tests/real/kineto.json.gz");
		execFileSync(bin("protonview"), ["import", kineto, "--as", "gpt2"], { env, cwd: dir, stdio: "ignore" });
		writeFileSync(join(dir, "slow_rank.protond"), gunzipSync(readFileSync(join(ROOT, "tests/recorded/ranks-slow_rank.protond.gz"))));
		const leaf = (name) => ({ frame: { name, type: "function" }, metrics: { "time (ns)": 1000, count: 1 }, children: [] });
		const names = HOSTILE.filter((n) => !/[\0\ud800-\udfff]/.test(n)); // those that JSON may hold; the others are refused in words
		writeFileSync(join(dir, "hostile.hatchet"), JSON.stringify([{ ...leaf("ROOT"), metrics: { "time (ns)": 0, count: 0 }, children: names.map((n) => ({ ...leaf(n), children: names.map(leaf) })) }, {}]));
		const web = started(bin("protonview"), ["web", "--no-open", "--port", "0", "kineto.protond", "hostile.hatchet", "slow_rank.protond"]);
		const url = await until("the page's address", () => /http:\S+/.exec(web.out)?.[0]);
		const json = (...args) => JSON.parse(execFileSync(bin("protonview"), [...args, "--json"], { env, maxBuffer: 1e9 }).toString()).data;
		const list = json("sessions");
		const at = (name) => list.columns.findIndex((c) => c.name === name);
		const ids = Object.fromEntries(list.rows.filter((r) => r[at("source")] !== "job").map((r) => [r[at("name")], String(r[at("id")])]));
		Object.assign(ids, { gpt2: "f1", hostile: "f2", slow: "f3" }); // files of the command line
		return { url, ids, json, run, env, dir, started, stop, view: (...args) => execFileSync(bin("protonview"), args, { env, cwd: dir }).toString() };
	} catch (e) {
		const said = children.map((p) => p.out).join("\n");
		await stop();
		throw new Error(`${e.message}\n${said}`);
	}
}
