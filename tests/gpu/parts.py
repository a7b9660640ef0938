# SPDX-License-Identifier: MIT. parts.py: what the time of a GPU is made of, from a timeline's operations alone, for tests here and on GPUs.
"""Of the tables that `protonview sql` has; the parts' names are columns of `devices`."""
import collections

PARTS = "compute_ns comm_ns copy_ns idle_launch_ns idle_gap_ns idle_queued_ns idle_unknown_ns idle_host_ns"


def pieces_of(ops):
    """Time, piece by piece, as (begin, end, part), from the operations alone: a sweep over all starts and ends. What is in none is the host's."""
    edges = sorted({t for o in ops for t in (o["start_ns"], o["end_ns"])})
    ops = sorted(ops, key=lambda o: (o["start_ns"], o["launch_ns"] or 0))
    running, at = [], 0
    for a, b in zip(edges, edges[1:]):
        while at < len(ops) and ops[at]["start_ns"] <= a:
            running.append(ops[at])
            at += 1
        running = [o for o in running if o["end_ns"] > a]
        kinds = {o["class"] for o in running}
        if running:
            yield a, b, "compute_ns" if "compute" in kinds else "comm_ns" if "comm" in kinds else "copy_ns"
            continue
        launched = ops[at]["launch_ns"]  # of the next: this gap's end
        if launched is None:
            yield a, b, "idle_unknown_ns"
        elif launched >= a:
            yield launched, b, "idle_launch_ns"
        else:
            yield a, b, "idle_gap_ns" if b - a < 5000 else "idle_queued_ns"


def parts_of(ops, window, begin=0, end=1 << 63):
    """What `window` nanoseconds, which lie from begin to end, are made of."""
    parts = collections.Counter()
    for a, b, part in pieces_of(ops):
        parts[part] += max(0, min(b, end) - max(a, begin))
    parts["idle_host_ns"] = window - sum(parts.values())
    return parts
