"""Loops over samples, as routines."""

from __future__ import annotations

from mycel.engines.routines import routine
from mycel.engines.routines.words import Doubles, Int

__all__ = ["interpolate"]


@routine
def interpolate(
    padded: Doubles,
    rows: Int,
    span: Int,
    weights: Doubles,
    taps: Int,
    source: Int,
    target: Int,
    count: Int,
    planes: Doubles,
    sums: Doubles,
    result: Doubles,
) -> None:
    """Write `count` results for each of `rows` waveforms to `result`.

    Result i is the sum of `taps` samples from i * source // target on, times row i % target of
    `weights`, in their order. Those of one phase, `target` apart, are computed side by side: their
    samples are `source` apart, and lie in one of as many planes.

    * `padded`: the waveforms, each of `span` * `source` samples.
    * `planes`, `sums`: memory for as many samples, and for the results of a phase.
    """
    for r in range(rows):
        for j in range(span):
            for q in range(source):
                planes[q * span + j] = padded[(r * span + j) * source + q]
        for p in range(target):
            some = (count - p + target - 1) // target
            first = p * source // target
            for k in range(some):
                sums[k] = 0.0
            for t in range(taps):
                plane = (first + t) % source * span + (first + t) // source
                weight = weights[p * taps + t]
                for k in range(some):
                    sums[k] = sums[k] + planes[plane + k] * weight
            for k in range(some):
                result[r * count + p + k * target] = sums[k]
