"""Emits scans (running reductions), which have a value after each iteration.

Where the lanes are iterations of another loop, the value is the accumulator itself. Where they are
iterations of the running loop, a vector's running values come from log2(lanes) steps, each of which
shifts by 1, 2, 4 ... lanes and combines; they are then combined with the result of all earlier
vectors. That result is carried as a vector of one value; it depends on each vector through one
operation only, so that the processor overlaps the work of several vectors. Sums start from -0.0,
which leaves every number unchanged.

Sums of float32 are carried in float64: a long one would lose its digits, as each step rounds by the
size of the whole. Only what is carried is wide, not what is added up in a vector.
"""

from __future__ import annotations

from mycel._src.engines.native.kernels.instruction_emitter import compute_type, literal
from mycel._src.engines.native.kernels.loop_nest import Reduce
from mycel._src.engines.native.kernels.reductions import ReductionWriter
from mycel._src.foundation import dtype as D

__all__ = ["ScanWriter"]


class ScanWriter(ReductionWriter):
    """A writer of reductions, some of which are running."""

    def identity(self, r: Reduce) -> str:
        if r.scan and r.kind == "sum" and r.value.dtype.kind == "f":
            return literal(-0.0, r.value.dtype)
        return super().identity(r)

    def carried(self, r: Reduce) -> str | None:
        """Return the LLVM type in which the accumulators of float32 are kept, else None."""
        if not r.scan or r.kind != "sum" or compute_type(r.value.dtype) != "float":
            return None
        return self.e.vector("double") if self.wide and not self.across else "double"

    def declare_accumulators(self, r: Reduce) -> None:
        carried = self.carried(r)
        if carried is None:
            super().declare_accumulators(r)
            return
        names = [f"%acc{self.fresh('')}" for _ in range(self.most_copies if self.wide else 1)]
        self.entry.extend(f"  {name} = alloca {carried}" for name in names)
        self.accumulators[r, "slots"] = names

    def start(self, r: Reduce) -> None:
        carried = self.carried(r)
        if carried is None:
            super().start(r)
            return
        text = literal(-0.0, D.float64)
        splat = "<" + ", ".join([f"double {text}"] * self.lanes) + ">" if carried.startswith("<") else text
        for slot in self.accumulators[r, "slots"]:
            self.e.do(f"store {carried} {splat}, ptr {slot}")

    def join_carried(self, r: Reduce, kind: str, carried: str, value: str, slot: str) -> str:
        """Add a `value` of type `kind` to the accumulator at `slot`, of type `carried`, and return
        the running sum of the reduction `r`.
        """
        e = self.e
        before = e.put(f"load {carried}, ptr {slot}")
        if not (self.across and self.wide):
            after = e.put(f"fadd {carried} {before}, {e.put(f'fpext {kind} {value} to {carried}')}")
            e.do(f"store {carried} {after}, ptr {slot}")
            return e.put(f"fptrunc {carried} {after} to {kind}")
        inside = self.running(r, kind, value)
        total = e.put(f"extractelement {kind} {inside}, i32 {self.lanes - 1}")
        after = e.put(f"fadd double {before}, {e.put(f'fpext float {total} to double')}")
        e.do(f"store double {after}, ptr {slot}")
        first = e.put(f"insertelement {kind} undef, float {e.put(f'fptrunc double {before} to float')}, i32 0")
        splat = e.put(f"shufflevector {kind} {first}, {kind} undef, <{self.lanes} x i32> zeroinitializer")
        return self.merge(r, kind, splat, inside)

    def join(self, r: Reduce) -> None:
        if not r.scan:
            super().join(r)
            return
        carried = self.carried(r)
        e, kind = self.e, self.kind_of(r)
        values = self.widened(r.value, self.wide)
        slots = self.accumulators[r, "slots"]
        results = []
        for u in range(self.copies if self.wide else 1):
            value = values[u if len(values) > 1 else 0]
            slot = slots[0 if self.across else u]
            if carried is not None:
                results.append(self.join_carried(r, kind, carried, value, slot))
                continue
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
