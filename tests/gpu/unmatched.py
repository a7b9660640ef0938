# SPDX-License-Identifier: MIT. unmatched.py: which calls of the driver had no GPU record, and which records no call.
"""unmatched.py DUMP [CALLS]: PROTOND_RAW_DUMP's file (docs/replay.md), and what others/count.c wrote of the same process.

Prints, for each kind of call that launches, how often it was called and how often no record carries its correlation id;
of the latter where they were called, and how many bytes they were to move. Then the records whose correlation id no call
has, and the copies of unusual kinds. Shares no code with the agent but the numbers of the driver's calls."""
import collections
import pathlib
import re
import struct
import sys

ABI = pathlib.Path(__file__).resolve().parents[2] / "agent/backend/cupti/cupti_abi.h"
NODE_CREATED = 13  # of the resource callbacks
CORRELATION = {1: 44, 2: 44, 3: 92, 10: 92, 22: 60}  # in a record, by its kind
GRAPH = {1: (64, 72), 2: (64, 72), 3: (144, 156), 10: (144, 156), 22: (72, 80)}  # node and executable graph
WORDS = {1: "copy", 2: "memset", 3: "kernel", 10: "kernel", 22: "copy between devices"}
Call = collections.namedtuple("Call", "name path symbol refused captured")
Record = collections.namedtuple("Record", "kind key node graph copy")  # copy: its kind, the memory's kinds, bytes


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


def records_of(p, stride, epoch):
    valid, _, fixups = struct.unpack_from("<QII", p)
    at, end = 16 + 8 * fixups, 16 + 8 * fixups + valid
    while at + 4 <= end:
        kind = struct.unpack_from("<I", p, at)[0]
        if kind >= 64 or stride[kind] == 0:
            return
        if kind in CORRELATION:
            node, graph = GRAPH[kind]
            yield Record(kind, (epoch, struct.unpack_from("<I", p, at + CORRELATION[kind])[0]), struct.unpack_from("<Q", p, at + node)[0],
                         struct.unpack_from("<I", p, at + graph)[0], (*p[at + 4:at + 7], struct.unpack_from("<Q", p, at + 8)[0]) if kind == 1 else None)
        at += stride[kind]


def read(data):
    """({(epoch, correlation id): Call}, [Record])"""
    assert data[:8] == b"PDCUPTI1", "not a raw dump"
    stride, names = struct.unpack_from("<64H", data, 24), calls_of()
    strings, epoch, inside, calls, records = {}, 0, {}, {}, []
    for _, kind, p in sorted(chunks(data), key=lambda c: c[0]):
        if kind == 1:
            strings[struct.unpack_from("<I", p)[0]] = p[8:].decode(errors="replace")
        elif kind == 3:
            epoch += struct.unpack_from("<I", p)[0] == 0
        elif kind == 4:
            domain, cbid, site, corr, thread, symbol, _, ret = struct.unpack_from("<7Ii", p)
            if domain == 3 and cbid == NODE_CREATED and thread in inside:
                inside[thread][1] = True  # a node of a graph was made: nothing was launched
            elif domain == 1 and cbid in names and site == 0:
                path = [struct.unpack_from("<II", p, 72 + 8 * i)[1] for i in range(struct.unpack_from("<I", p, 64)[0])]
                inside[thread] = [(epoch, corr), False, symbol, path]
            elif domain == 1 and cbid in names and thread in inside:
                key, captured, symbol, path = inside.pop(thread)
                calls[key] = Call(names[cbid], " / ".join(strings.get(s, "?") for s in path), strings.get(symbol, ""), ret != 0, captured)
        elif kind == 5:
            records.extend(records_of(p, stride, epoch))
    return calls, records


def unanswered(calls, records):
    """The calls that launched something and have no record."""
    answered = {r.key for r in records}
    return {k: c for k, c in calls.items() if k not in answered and not c.refused and not c.captured}


def sizes_of(file):
    """{correlation id: (bytes, whether it is from and to the same address)} of count.c's calls."""
    return {corr: (n, dst == src and cbid not in (216, 220)) for cbid, corr, _, _, dst, src, n in struct.iter_unpack("<IIiIQQQ", file.read_bytes())}


def lines(data, sizes=None):
    """What there is to say, a line each; of a dump in which all is as usual none."""
    calls, records = read(data)
    none, sizes = unanswered(calls, records), sizes or {}
    of = collections.Counter(c.name for c in calls.values() if not c.captured)
    for name, n in sorted(collections.Counter(c.name for c in none.values()).items()):
        yield f"{name}: {n} of {of[name]} calls have no record"
    for (name, path, symbol), n in collections.Counter((c.name, c.path, c.symbol) for c in none.values()).most_common(12):
        yield f"  {n} x {name} {symbol} in {path or 'no scope'}"
    for name, n in sorted(collections.Counter(c.name for c in calls.values() if c.refused).items()):
        yield f"{name}: {n} were refused by the driver"
    if sizes:
        kinds = collections.defaultdict(lambda: [0, 0])  # of copies and memsets, and of those without a record
        for k, c in calls.items():
            if k[1] in sizes and not c.captured and not c.refused:
                n, same = sizes[k[1]]
                it = kinds[(c.name, "of 0 bytes" if n == 0 else "onto itself" if same else "of some bytes")]
                it[0] += 1
                it[1] += k in none
        for (name, what), (n, without) in sorted(kinds.items()):
            if without or what != "of some bytes":
                yield f"{name} {what}: {n} calls, {without} without a record"
    known = {r.graph for r in records if r.graph and r.key in calls}
    lost = collections.Counter((WORDS[r.kind], "0" if r.key[1] == 0 else "unknown", "no graph" if not r.graph else
                                "a graph that a call launched" if r.graph in known else "another graph") for r in records if r.key not in calls)
    for (kind, corr, graph), n in lost.most_common():
        yield f"{n} records of a {kind} with correlation id {corr}, of {graph}"
    if lost:
        keys = {r.key for r in records if r.key not in calls}
        graphs = {r.graph for r in records if r.key not in calls}
        yield f"  they have {len(keys)} correlation ids and {len(graphs)} graphs; first {[r[1:4] for r in records if r.key not in calls][:4]}"
        yield f"  of the calls: {collections.Counter(c.name for c in calls.values()).most_common(6)}; graphs that calls launched: {sorted(known)[:12]}"
    per = collections.Counter(r.key for r in records)
    made = collections.Counter()
    for k, c in calls.items():
        if c.captured and per[k]:
            made[c.name] += per[k]
    for name, n in made.most_common():
        yield f"{n} records of calls of {name} that made a node, too"
    odd = collections.Counter((r.copy, calls[r.key].name if r.key in calls else "no call") for r in records if r.kind == 1 and not 1 <= r.copy[0] <= 8)
    for ((kind, src, dst, n), name), count in odd.most_common(8):
        yield f"{count} copies of kind {kind}, memory {src} to {dst}, {n} bytes, by {name}"


if __name__ == "__main__":
    print("\n".join(lines(pathlib.Path(sys.argv[1]).read_bytes(), sizes_of(pathlib.Path(sys.argv[2])) if len(sys.argv) > 2 else None)))
