# SPDX-License-Identifier: MIT. unmatched.py: which calls of the driver had no GPU record, by a raw dump of CUPTI.
"""unmatched.py DUMP...: PROTOND_RAW_DUMP's files (docs/replay.md). Prints, for each kind of call that launches, how often
it was called and how often no record carries its correlation id; of the latter where they were called. Shares no code
with the agent but the numbers of the driver's calls."""
import collections
import pathlib
import re
import struct
import sys

ABI = pathlib.Path(__file__).resolve().parents[2] / "agent/backend/cupti/cupti_abi.h"
NODE_CREATED = 13  # of the resource callbacks
CORRELATION = {1: 44, 2: 44, 3: 92, 10: 92, 22: 60}  # in a record, by its kind


def calls_of():
    """{cbid: name} of what launches."""
    text = ABI.read_text()
    text = text[text.index("#define LAUNCH_CBIDS"):text.index("#define CAPTURE_CBIDS")]
    return {int(n): name for name, n in re.findall(r"X\((cu\w+), (\d+)", text)}


def chunks(data):
    at = 152
    while at + 16 <= len(data):
        kind, size, seq = struct.unpack_from("<IIQ", data, at)
        if at + 16 + size > len(data):
            return
        yield seq, kind, data[at + 16:at + 16 + size]
        at += 16 + (size + 7) // 8 * 8


def unmatched(data):
    """({call: [calls, unanswered, refused]}, {(call, where): unanswered})"""
    assert data[:8] == b"PDCUPTI1", "not a raw dump"
    stride, names = struct.unpack_from("<64H", data, 24), calls_of()
    strings, epoch, inside, open_calls, answered = {}, 0, {}, {}, set()
    calls = collections.defaultdict(lambda: [0, 0, 0])
    for _, kind, p in sorted(chunks(data), key=lambda c: c[0]):
        if kind == 1:
            strings[struct.unpack_from("<I", p)[0]] = p[8:].decode(errors="replace")
        elif kind == 3:
            epoch += struct.unpack_from("<I", p)[0] == 0
        elif kind == 4:
            domain, cbid, site, corr, thread, symbol, _, ret = struct.unpack_from("<7Ii", p)
            if domain == 3 and cbid == NODE_CREATED and thread in inside:
                inside[thread][1] = True  # a node of a graph was made: nothing was launched
            if domain != 1 or cbid not in names:
                continue
            if site == 0:
                steps = struct.unpack_from("<I", p, 64)[0]
                path = [struct.unpack_from("<II", p, 72 + 8 * i)[1] for i in range(steps)]
                inside[thread] = [(epoch, corr), False, cbid, symbol, path]
            elif thread in inside:
                it = inside.pop(thread)
                calls[names[cbid]][0] += 1
                if ret != 0:
                    calls[names[cbid]][2] += 1
                elif not it[1]:
                    open_calls[it[0]] = it
        elif kind == 5:
            valid, _, fixups = struct.unpack_from("<QII", p)
            at, end = 16 + 8 * fixups, 16 + 8 * fixups + valid
            while at + 4 <= end:
                what = struct.unpack_from("<I", p, at)[0]
                if what >= 64 or stride[what] == 0:
                    break
                if what in CORRELATION:
                    answered.add((epoch, struct.unpack_from("<I", p, at + CORRELATION[what])[0]))
                at += stride[what]
    where = collections.Counter()
    for it in (it for k, it in open_calls.items() if k not in answered):
        calls[names[it[2]]][1] += 1
        where[(names[it[2]], " / ".join([strings.get(s, "?") for s in it[4]] + ([strings.get(it[3], "?")] if it[3] else [])))] += 1
    return calls, where


if __name__ == "__main__":
    for file in sys.argv[1:]:
        calls, where = unmatched(pathlib.Path(file).read_bytes())
        for name, (n, none, refused) in sorted(calls.items()):
            print(f"{name}: {n} calls, {none} without a record, {refused} refused by the driver")
        for (name, path), n in where.most_common(40):
            print(f"  {n} x {name} in {path or 'no scope'}")
