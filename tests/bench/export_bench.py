#!/usr/bin/env python3
# SPDX-License-Identifier: MIT. export_bench.py BUILD FILE.protond [FORMAT…]: what each export of a session takes: CPU time (user and
# system), most memory resident, bytes written. BUILD/bench/multiply makes large sessions. What is written goes to TMPDIR, and away.
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def export(build, source, form, folder):
    out = pathlib.Path(folder) / "x"
    command = [f"{build}/bin/protonview", "export", source, "-f", form, "-o", str(out)]
    env = {**os.environ, "PROTOND_RUNTIME_DIR": "/nonexistent/protond", "PROTOND_DB": "/nonexistent/protond.db", "SQLITE_TMPDIR": folder}
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    files = [p for p in (out.rglob("*") if out.is_dir() else [out]) if p.is_file()]
    if status != 0:
        print(f"{form:16} {said.splitlines()[-1] if said else status}")
    else:
        print(f"{form:16} {used.ru_utime + used.ru_stime:8.2f} s {used.ru_maxrss / 1024:7.1f} MiB "
              f"{sum(p.stat().st_size for p in files) / 1e6:10.1f} MB", flush=True)


def main():
    build, source, *forms = sys.argv[1:]
    formats = re.findall(r"^\s*X\((\w+),", (pathlib.Path(__file__).parents[2] / "proto/terms/formats.h").read_text(), re.M)
    for form in forms or formats:
        with tempfile.TemporaryDirectory() as folder:
            export(build, source, form, folder)


main()
