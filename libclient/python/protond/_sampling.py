# SPDX-License-Identifier: MIT
"""GPU work of some steps only: in between CUPTI is switched off, and costs nothing.

Switching on takes milliseconds (docs/benchmarks.md), so whole runs of steps are recorded: a period
is some steps with CUPTI off, then `warmup` steps that pay for its beginning, then `active` steps.
Scopes and CPU times go on all the time. Each kind of step has a scope of its own, so no average is
mixed: `step`, `step (warm-up)`, `step (GPU off)`.

What recording costs is measured on the way: the steps of a period that were recorded against those
around them that were not. Their means, for what is flushed now and then costs few steps much.
"""
import random
import statistics
import time

from . import _api

_native = _api._native
ON, WARMUP, OFF = "step", "step (warm-up)", "step (GPU off)"
COST = "recording_cost (pty)"  # a metric of `step`: what recording it costs, as a share of it unrecorded
_KEPT = 256   # costs, one a period
_STEPS = 256  # durations of steps, the last ones of each kind in a period
_LEAST = 3    # steps of each kind, to compare them
_SETTLE, _SETTLE_ON = 3, 7  # steps after letting go and after going on: dearer than those that follow (docs/benchmarks.md)
_WAITED = 3   # times the median: such a step waited for data, wrote a checkpoint, compiled


def _mean(took):
    limit = _WAITED * statistics.median(took)
    return statistics.fmean(t for t in took if t <= limit)


class Sampler:
    """rate: share of the steps recorded, 0 to 1; overhead: if > 0, the rate is lowered until
    recording costs at most this share of the time."""

    def __init__(self, rate, warmup=1, active=10, overhead=0.0, seed=0):
        if not 0 <= rate <= 1 or warmup < 0 or active < 1 or overhead < 0:
            raise ValueError("sample_rate is 0 to 1, sample_warmup >= 0, sample_active >= 1, sample_overhead >= 0")
        self.rate, self.warmup, self.active, self.overhead = rate, warmup, active, overhead
        self._random = random.Random(seed)  # so that periods do not beat with the program's own
        self._plan = []                     # kinds of the steps to come, last first
        self._kind = ON
        self._since = None
        self._took = {ON: [], OFF: []}  # ns, of the steps of this period
        self._costs = []                # of the periods before
        self._news = None               # metrics for the next step that is recorded
        self._off = False
        self._settle = 0                # steps to come that are not compared

    def _note(self):
        now = time.monotonic_ns()
        took = self._took.get(self._kind)
        if self._settle > 0:
            self._settle -= 1
        elif self._since is not None and took is not None:
            took.append(now - self._since)
            del took[:-_STEPS]
        self._since = now

    def _compare(self):
        """At the end of a period: a machine that gets slower or faster does so for both kinds."""
        on, off = self._took[ON], self._took[OFF]
        if len(on) >= _LEAST and len(off) >= _LEAST:
            self._costs.append(_mean(on) / max(_mean(off), 1) - 1)
            del self._costs[:-_KEPT]
            self._news = {COST: self.cost()}
        on.clear()
        off.clear()

    def cost(self):
        """What a step takes longer when it is recorded, as a share; None: not known. The interquartile mean over
        periods: it minds outliers no more than the median does, and varies less."""
        cut = (len(self._costs) + 1) // 4
        return statistics.fmean(sorted(self._costs)[cut:len(self._costs) - cut]) if self._costs else None

    def rate_now(self):
        """The rate that holds now: `rate`, or less when recording costs more than it may."""
        cost = self.cost()
        if self.overhead <= 0 or cost is None or cost <= 0:
            return self.rate
        return min(self.rate, self.overhead / cost)

    def _period(self):
        rate = self.rate_now()
        if rate <= 0:
            return [OFF]
        off = round(self.active / rate) - self.active - self.warmup if rate < 1 else 0
        if off <= 0 and rate >= 1:
            return [ON]
        off = max(off, 1)
        before = self._random.randrange(off + 1)
        return [OFF] * (off - before) + [ON] * self.active + [WARMUP] * self.warmup + [OFF] * before

    def next(self):
        """The kind of the step that begins, which is its scope's name; switches CUPTI as it says."""
        self._note()
        if not self._plan:
            self._compare()
            self._plan = self._period()
        self._kind = self._plan.pop()
        if (self._kind == OFF) != self._off:
            self._off = self._kind == OFF
            if self._off:
                self._settle = _SETTLE
                _native.gpu_pause(_native.GIVE_BACK)
            else:
                self._settle = min(_SETTLE_ON, max(0, self.warmup + self.active - _LEAST))  # few are better than none
                _native.gpu_resume()
            self._since = time.monotonic_ns()  # what switching took is no step's
        return self._kind

    def began(self):
        """The scope of that step is open now."""
        if self._kind == ON and self._news:
            _native.metrics(self._news)
            self._news = None
