"""Writes running reductions, which have a value after each iteration.

Where the lanes are iterations of another loop, the value is the accumulator itself. Where they are
iterations of the running loop, a vector's running values come from log2(lanes) steps, each of which
shifts by 1, 2, 4 ... lanes and combines; they are then combined with the result of all earlier
vectors. That result is carried as a vector of one value; it depends on each vector through one
operation only, so that the processor overlaps the work of several vectors. Sums start from -0.0,
which leaves every number unchanged.
"""

from __future__ import annotations

from mycel.engines.native.kernels.emit import compute_type, literal
from mycel.engines.native.kernels.nest import Reduce
from mycel.engines.native.kernels.reductions import ReductionWriter

__all__ = ["ScanWriter"]


class ScanWriter(ReductionWriter):
    """A writer of reductions, some of which are running."""

    def identity(self, r: Reduce) -> str:
        if r.scan and r.kind == "sum" and r.value.dtype.kind == "f":
            return literal(-0.0, r.value.dtype)
        return super().identity(r)

    def join(self, r: Reduce) -> None:
        if not r.scan:
            super().join(r)
            return
        e, kind = self.e, self.kind_of(r)
        values = self.widened(r.value, self.wide)
        slots = self.accumulators[r, "slots"]
        results = []
        for u in range(self.copies if self.wide else 1):
            value = values[u if len(values) > 1 else 0]
            slot = slots[0 if self.across else u]
            before = e.put(f"load {kind}, ptr {slot}")
            if self.across and self.wide:
                inside = self.running(r, kind, value)
                order = ", ".join([f"i32 {self.lanes - 1}"] * self.lanes)
                total = e.put(f"shufflevector {kind} {inside}, {kind} undef, <{self.lanes} x i32> <{order}>")
                results.append(self.merge(r, kind, before, inside))
                after = self.merge(r, kind, before, total)
            else:
                after = self.merge(r, kind, before, value)
                results.append(after)
            e.do(f"store {kind} {after}, ptr {slot}")
        self.accumulators[r, "result"] = results

    def running(self, r: Reduce, kind: str, value: str) -> str:
        """Return the running values within one vector."""
        e, lanes = self.e, self.lanes
        nothing = "<" + ", ".join([f"{compute_type(r.value.dtype)} {self.identity(r)}"] * lanes) + ">"
        step = 1
        while step < lanes:
            order = ", ".join(f"i32 {k - step if k >= step else lanes + k}" for k in range(lanes))
            moved = e.put(f"shufflevector {kind} {value}, {kind} {nothing}, <{lanes} x i32> <{order}>")
            value = self.merge(r, kind, moved, value)
            step *= 2
        return value

    def finish(self, r: Reduce) -> None:
        if not r.scan:
            super().finish(r)
