#!/bin/sh
# The main job, once: the example program under `protonctl run`, with a daemon of its own that starts by
# itself and ends with this script, and a database that is named at the end.
set -u
bin=$(cd "$1/bin" && pwd) || exit 1
# Sockets and rings want a short path on tmpfs; the database stays, so that the tree can be opened again.
PROTOND_RUNTIME_DIR=$(mktemp -d /dev/shm/protond-demo.XXXXXX) || exit 1
PROTOND_DB=$(cd "$1" && pwd)/demo.db
export PROTOND_RUNTIME_DIR PROTOND_DB
trap '"$bin/protonctl" shutdown >/dev/null 2>&1; rm -rf "$PROTOND_RUNTIME_DIR"' EXIT INT TERM
"$bin/protonctl" run --name demo -- "$bin/protond-demo"
