#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. check.sh: the page: its types, that dist/ is what its sources make, and what it does in a browser.
set -eu
cd "$(dirname "$0")/../.."
[ -d viewer/web/node_modules/esbuild ] || (cd viewer/web && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
cd viewer/web
npx --no-install tsc --noEmit
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
node build.mjs "$made"
for f in index.html app.js app.css; do
        cmp "$made/$f" "dist/$f" || { echo "viewer/web/dist/$f is not what viewer/web/src makes: run make web" && exit 1; }
done
cd ../..
printf '%s\n' tests/web/*.test.mjs | xargs -P 2 -n 1 node --test # they wait more than they compute
