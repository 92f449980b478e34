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
from mycel._src.engines.native.kernels.kernel_form import Form
from mycel._src.engines.native.kernels.kernel_function import KernelFunction
from mycel._src.engines.native.kernels.loop_nest import Reduce
from mycel._src.engines.native.kernels.open_loops import OpenLoops
from mycel._src.engines.native.kernels.reductions import ReductionWriter, identity, merge
from mycel._src.engines.native.kernels.value_writer import ValueWriter
from mycel._src.foundation import dtype as D

__all__ = ["ScanWriter"]


class ScanWriter:
    """A writer of running reductions of the `values` inside of `loops`, into the `function`.

    Their accumulators are kept by the writer of `reductions`. The nest has the form `form`.
    """

    def __init__(
        self,
        form: Form,
        function: KernelFunction,
        loops: OpenLoops,
        values: ValueWriter,
        reductions: ReductionWriter,
    ) -> None:
        self._form, self._function, self._loops = form, function, loops
        self._values, self._reductions = values, reductions
        self._e, self._lanes = function.e, form.lanes
        # Whether a vector has values of several iterations.
        self._along = form.across and form.wide

    def _carried(self, r: Reduce) -> str | None:
        """Return the LLVM type in which the accumulators of float32 are kept, else None."""
        if r.kind != "sum" or compute_type(r.value.dtype) != "float":
            return None
        return self._e.vector("double") if self._form.wide and not self._form.across else "double"

    def declare(self, r: Reduce) -> None:
        """Reserve the accumulators of a running reduction."""
        self._reductions.declare(r, self._carried(r) or "")

    def start(self, r: Reduce) -> None:
        """Set the accumulators to what they are before the first value."""
        carried = self._carried(r)
        if carried is None:
            self._reductions.start(r)
            return
        text = literal(-0.0, D.float64)
        splat = self._function.repeated("double", text) if carried.startswith("<") else text
        for slot in self._reductions.slots[r]:
            self._e.do(f"store {carried} {splat}, ptr {slot}")

    def join(self, r: Reduce) -> None:
        """Combine one iteration's values with the accumulators; the results are running ones."""
        carried = self._carried(r)
        e, kind, wide = self._e, self._reductions.kind_of(r), self._form.wide
        values = self._values.widened(r.value, wide)
        slots = self._reductions.slots[r]
        results = []
        for u in range(self._loops.copies if wide else 1):
            value = values[u if len(values) > 1 else 0]
            slot = slots[0 if self._form.across else u]
            if carried is not None:
                results.append(self._join_carried(r, kind, carried, value, slot))
                continue
            before = e.put(f"load {kind}, ptr {slot}")
            if self._along:
                inside = self._running(r, kind, value)
                order = ", ".join([f"i32 {self._lanes - 1}"] * self._lanes)
                total = e.put(f"shufflevector {kind} {inside}, {kind} undef, <{self._lanes} x i32> <{order}>")
                results.append(merge(e, r, kind, before, inside))
                after = merge(e, r, kind, before, total)
            else:
                after = merge(e, r, kind, before, value)
                results.append(after)
            e.do(f"store {kind} {after}, ptr {slot}")
        self._values.results[r] = results

    def _join_carried(self, r: Reduce, kind: str, carried: str, value: str, slot: str) -> str:
        """Add a `value` of type `kind` to the accumulator at `slot`, of type `carried`, and return
        the running sum of the reduction `r`.
        """
        e = self._e
        before = e.put(f"load {carried}, ptr {slot}")
        if not self._along:
            after = e.put(f"fadd {carried} {before}, {e.put(f'fpext {kind} {value} to {carried}')}")
            e.do(f"store {carried} {after}, ptr {slot}")
            return e.put(f"fptrunc {carried} {after} to {kind}")
        inside = self._running(r, kind, value)
        total = e.put(f"extractelement {kind} {inside}, i32 {self._lanes - 1}")
        after = e.put(f"fadd double {before}, {e.put(f'fpext float {total} to double')}")
        e.do(f"store double {after}, ptr {slot}")
        first = e.put(f"insertelement {kind} undef, float {e.put(f'fptrunc double {before} to float')}, i32 0")
        splat = e.put(f"shufflevector {kind} {first}, {kind} undef, <{self._lanes} x i32> zeroinitializer")
        return merge(e, r, kind, splat, inside)

    def _running(self, r: Reduce, kind: str, value: str) -> str:
        """Return the running values within one vector."""
        e, lanes = self._e, self._lanes
        nothing = self._function.repeated(compute_type(r.value.dtype), identity(r))
        step = 1
        while step < lanes:
            order = ", ".join(f"i32 {k - step if k >= step else lanes + k}" for k in range(lanes))
            moved = e.put(f"shufflevector {kind} {value}, {kind} {nothing}, <{lanes} x i32> <{order}>")
            value = merge(e, r, kind, moved, value)
            step *= 2
        return value

    def finish(self, r: Reduce) -> None:
        """Do nothing, as the results are known after each iteration."""
