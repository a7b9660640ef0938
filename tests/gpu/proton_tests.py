# SPDX-License-Identifier: MIT. proton_tests.py: Proton's own tests, unmodified, against Triton's Proton and against protond.
"""proton_tests.py DIR TESTS OUT [pytest's words]: DIR is a build or a bundle, TESTS a folder of test files or of such folders.

Each file has a process of its own, three times: with Triton's Proton; with protond in its place as `protonctl run
--as-proton` puts it; and with protond in its place and no protonctl, so that the program's own sessions are all there
are. OUT gets a log of each and results.json. A process that dies, or hangs, costs the test it was in: the others are run
again without it. Ends in a table of the tests that not all passed, and a line for each way. pytest loads this file as a
plugin too: then it only writes down what each test came to.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = int(os.environ.get("PD_SECONDS", "240"))  # of one file's tests
MODULES = {"proton": "protond", "proton-viewer": "protond.viewer"}
SITE = "from protond import _as_proton\n_as_proton.install()\n"


# --- as a plugin ------------------------------------------------------------------------------------

def _tell(nodeid, word):
    with open(os.environ["PD_RESULTS"], "a", encoding="utf-8") as f:
        f.write(json.dumps([nodeid, word]) + "\n")


def pytest_runtest_logstart(nodeid):
    if "PD_RESULTS" in os.environ:
        _tell(nodeid, "died")


def pytest_runtest_logreport(report):
    if "PD_RESULTS" in os.environ and (report.when == "call" or report.outcome != "passed"):
        _tell(report.nodeid, report.outcome)


# --- as a program -----------------------------------------------------------------------------------

def commands(folder):
    """What `make install PROTON_NAMES=1` makes; `python3`, which some tests call, is the Python that runs them."""
    folder.mkdir()
    for name, module in MODULES.items():
        (folder / name).write_text(f'#!/bin/sh\nPROTOND_AS_PROTON=1 exec "{sys.executable}" -m {module} "$@"\n')
        (folder / name).chmod(0o755)
    (folder / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "python3").chmod(0o755)


def ways(build, place):
    """{name: (words before python, what the environment has more)}"""
    ours = build / "lib/protond/python"
    commands(place / "bin")
    (place / "site").mkdir()
    (place / "site/sitecustomize.py").write_text(SITE)
    mine = {"PROTOND_RUNTIME_DIR": str(place / "run"), "PROTOND_DB": str(place / "db"),
            "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
    (place / "run").mkdir(mode=0o700)
    run = [str(build / "bin/protonctl"), "run", "--as-proton", "-k", "none", "-q", "--"]
    return {"Proton": ([], {}),
            "protond, run": (run, {**mine, "PYTHONPATH": str(ours)}),
            "protond, alone": ([], {**mine, "PYTHONPATH": f"{place / 'site'}:{ours}"})}


def read(results):
    """{test: word}, of a file that may end anywhere."""
    found = {}
    for line in results.read_text(encoding="utf-8").splitlines() if results.exists() else ():
        try:
            test, word = json.loads(line)
        except ValueError:
            continue
        if word != "passed" or found.get(test, "died") == "died":  # what failed at its end, too, has failed
            found[test] = word
    return found


def one_file(file, before, more, out, words):
    """{test: word} of a file's tests, run one way."""
    results, log, found = out.with_suffix(".results"), out.with_suffix(".log"), {}
    results.unlink(missing_ok=True)
    env = {**{k: v for k, v in os.environ.items() if k not in ("PROTOND_TOKEN", "PYTEST_ADDOPTS")}, **more,
           "PD_RESULTS": str(results)}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (more.get("PYTHONPATH"), str(HERE), os.environ.get("PYTHONPATH"))))
    with open(log, "w", encoding="utf-8") as f:
        while True:
            done = [word for test in found for word in ("--deselect", test)]
            at = tempfile.mkdtemp(prefix="pdptest", dir="/dev/shm")  # test.hatchet and proton.hatchet lie there
            try:
                r = subprocess.run([*before, sys.executable, "-m", "pytest", "-p", "proton_tests", "-p", "no:cacheprovider", "-v",
                                    "--tb=short", f"--rootdir={file.parent}", f"--basetemp={at}/tmp", str(file), *done, *words],
                                   cwd=at, env=env, stdout=f, stderr=subprocess.STDOUT, timeout=SECONDS, check=False).returncode
            except subprocess.TimeoutExpired:
                r = None
            before_it, found = len(found), read(results)
            if r in (0, 1, 5) or len(found) == before_it:  # 5: none was left to run
                break
            print(f"{file.name}: ended with {r} after {len(found)} tests", file=f, flush=True)
    if not found:
        found[f"{file.name}::(none began)"] = "failed"
    return found


def main():
    build, tests, out = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    out.mkdir(parents=True, exist_ok=True)
    place = pathlib.Path(tempfile.mkdtemp(prefix="pdpt", dir="/dev/shm"))
    table = {}
    how = ways(build, place)
    for file in sorted(tests.rglob("test_*.py")):
        for way, (before, more) in how.items():
            name = f"{file.parent.name}-{file.stem}-{way.replace(', ', '-')}".replace(".", "_")
            for test, word in one_file(file, before, more, out / name, sys.argv[4:]).items():
                table.setdefault(f"{file.parent.name}/{test.split('/')[-1]}", {})[way] = word
            print(f"{file.parent.name}/{file.name} {way}: done", flush=True)
    (out / "results.json").write_text(json.dumps(table, indent=1))
    for test, words in table.items():
        if set(words.values()) - {"passed"}:
            print(f"{test:95} " + "  ".join(f"{way}: {words.get(way, 'not run'):8}" for way in how))
    for folder in sorted({test.split("/")[0] for test in table}):
        for way in how:
            got = [words.get(way, "not run") for test, words in table.items() if test.split("/")[0] == folder]
            print(f"{folder}: {way}: {got.count('passed')} passed of {len(got)}, {got.count('skipped')} skipped")


if __name__ == "__main__":
    main()
