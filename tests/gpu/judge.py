# SPDX-License-Identifier: MIT. judge.py: what the checks on a GPU share: how each is told, and the count at the end.
import sys

score = {"passed": 0, "failed": 0}


def check(name, ok, words=""):
    score["passed" if ok else "failed"] += 1
    print(("ok    " if ok else "FAIL  ") + name + (f": {words}" if words else ""), flush=True)
    return ok


def judge(tests, wanted):
    """Runs the tests, or those of the names in `wanted`, and ends the program."""
    for test in tests:
        if wanted and test.__name__ not in wanted:
            continue
        try:
            test()
        except Exception as e:  # one broken test does not hide the others
            check(test.__name__, False, repr(e))
    print(f"{score['passed']} passed, {score['failed']} failed")
    sys.exit(score["failed"] != 0)
