#!/usr/bin/env python3
# SPDX-License-Identifier: MIT. web_bench.py BUILD FILE.protond…: how long `protonview web` takes to start and to answer, and
# what it takes of memory; windows from full range to a ten-millionth of it, alone and beside an answer that reads everything.
import gzip
import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time


class Server:
    def __init__(self, build, source):
        self.began = time.perf_counter()
        self.process = subprocess.Popen([f"{build}/bin/protonview", "web", "--no-open", "--port", "0", source], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=dict(
                                            os.environ, PROTOND_RUNTIME_DIR="/nonexistent/protond", PROTOND_DB="/nonexistent/protond.db"))
        self.host, port, token = re.match(r"http://([^:]+):(\d+)/\?token=(\w+)", self.process.stdout.readline()).groups()
        self.said_ms, self.port = self.ms(), int(port)
        self.connection = http.client.HTTPConnection(self.host, self.port)
        self.connection.request("GET", "/?token=" + token)
        answer = self.connection.getresponse()
        answer.read()
        self.cookie = answer.headers["Set-Cookie"].split(";")[0]

    def ms(self):
        return (time.perf_counter() - self.began) * 1e3

    def ask(self, path, connection=None):
        """(ms, bytes sent, body)"""
        c, begin = connection or self.connection, time.perf_counter()
        c.request("GET", "/api/s/f1/" + path, headers={"Cookie": self.cookie, "Accept-Encoding": "gzip"})
        answer = c.getresponse()
        body = answer.read()
        took = (time.perf_counter() - begin) * 1e3
        assert answer.status == 200, (path, body)
        return took, len(body), gzip.decompress(body) if answer.headers["Content-Encoding"] == "gzip" else body

    def rss_mib(self, what="VmRSS"):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return int(re.search(what + r":\s+(\d+)", f.read())[1]) / 1024

    def end(self):
        self.process.terminate()
        self.process.wait()


def window(server, lanes, rng):
    whole = lanes["t1"] - lanes["t0"]
    span = whole * 10 ** rng.uniform(-7, 0)
    t0 = lanes["t0"] + rng.random() * (whole - span)
    return server.ask(f"window?t0={int(t0)}&t1={int(t0 + max(span, 1000))}&px=1024")


def said(name, took):
    took = sorted(took)
    at = lambda q: took[min(len(took) - 1, int(len(took) * q))]
    print(f"  {name}: {len(took)}, p50 {at(.5):.1f} ms, p95 {at(.95):.1f} ms, p99 {at(.99):.1f} ms, longest {took[-1]:.1f} ms")


def main(build, *sources):
    for source in sources:
        starts = []
        for _ in range(5):
            server = Server(build, source)
            server.ask("meta")
            starts.append((server.said_ms, server.ms()))
            server.end()
        print(f"{source}: the address after {statistics.median(s[0] for s in starts):.0f} ms, an answer after {statistics.median(s[1] for s in starts):.0f} ms (medians of 5)")
        server, rng = Server(build, source), random.Random(1)
        took, _, body = server.ask("lanes")
        lanes = json.loads(body)
        print(f"  lanes: {len(lanes['lane'])} of {lanes['events']} events, {took:.0f} ms")
        got = [window(server, lanes, rng) for _ in range(400)]
        said("windows", [g[0] for g in got])
        print(f"  the largest: {max(g[1] for g in got)} bytes; memory {server.rss_mib():.0f} MiB")
        other, slow = http.client.HTTPConnection(server.host, server.port), []
        thread = threading.Thread(target=lambda: slow.append(server.ask("steps", other)[0]))
        thread.start()
        beside = []
        while thread.is_alive():
            beside.append(window(server, lanes, rng)[0])
        said(f"windows beside steps, {slow[0]:.0f} ms,", beside)
        for name in ("tree", "ops", "bottlenecks", "sums", "arrows", "series"):
            took, size, _ = server.ask(name)
            print(f"  {name}: {took:.0f} ms, {size} bytes")
        print(f"  memory at the end: {server.rss_mib():.0f} MiB, at most {server.rss_mib('VmHWM'):.0f} MiB")
        server.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
