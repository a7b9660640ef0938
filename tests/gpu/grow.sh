#!/usr/bin/env bash
# SPDX-License-Identifier: MIT. grow.sh DIR: the job's memory after 5 M and after 50 M launches, in KiB.
set -u
dir=$(realpath "$1")
room=$(mktemp -d /dev/shm/pdgrow.XXXXXX)
export PROTOND_RUNTIME_DIR=$room PROTOND_DB=$room/db
"$dir/bin/protonctl" run -n grow -- "$dir/gpu/work" grow 5000000 10 2>"$room/err"
head -n 4 "$room/err"
"$dir/bin/protonctl" status | head -n 20
"$dir/bin/protonctl" shutdown
rm -rf "$room"
