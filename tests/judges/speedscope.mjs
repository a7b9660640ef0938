// SPDX-License-Identifier: MIT. speedscope.mjs: files against speedscope's own schema. Usage: node speedscope.mjs FILE...
import { readFileSync } from 'node:fs';
import Ajv from 'ajv';

const read = (path) => JSON.parse(readFileSync(path, 'utf8'));
const schema = new URL('node_modules/speedscope/dist/release/file-format-schema.json', import.meta.url);
const validate = new Ajv({ strict: false }).compile(read(schema));
for (const file of process.argv.slice(2)) {
  if (validate(read(file))) continue;
  console.error(file, validate.errors);
  process.exitCode = 1;
}
