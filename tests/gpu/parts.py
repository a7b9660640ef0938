# SPDX-License-Identifier: MIT. parts.py: what the time of a GPU is made of, from a timeline's operations alone, for tests here and on GPUs.
"""Of the tables that `protonview sql` has; the parts' names are columns of `devices`."""
import collections

PARTS = "compute_ns comm_ns copy_ns idle_launch_ns idle_gap_ns idle_queued_ns idle_unknown_ns idle_host_ns"


def parts_of(ops, window):
    """What the time is made of, from the operations alone: a sweep over all starts and ends."""
    edges = sorted({t for o in ops for t in (o["start_ns"], o["end_ns"])})
    parts = collections.Counter()
    ops = sorted(ops, key=lambda o: (o["start_ns"], o["launch_ns"] or 0))
    running, at = [], 0
    for a, b in zip(edges, edges[1:]):
        while at < len(ops) and ops[at]["start_ns"] <= a:
            running.append(ops[at])
            at += 1
        running = [o for o in running if o["end_ns"] > a]
        kinds = {o["class"] for o in running}
        if running:
            parts["compute_ns" if "compute" in kinds else "comm_ns" if "comm" in kinds else "copy_ns"] += b - a
            continue
        launched = ops[at]["launch_ns"]  # of the next: this gap's end
        if launched is None:
            parts["idle_unknown_ns"] += b - a
        elif launched >= a:
            parts["idle_launch_ns"] += max(0, b - launched)
        else:
            parts["idle_gap_ns" if b - a < 5000 else "idle_queued_ns"] += b - a
    parts["idle_host_ns"] = window - sum(parts.values())
    return parts
