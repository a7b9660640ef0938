// SPDX-License-Identifier: MIT. css.d.ts: esbuild takes style sheets as imports.
declare module "*.css";
