"""Random graphs of every kind of work, element type and size, which the native engine must compute
as the reference does.

`RandomGraph(seed)` has a graph and arrays for its inputs. Sizes are odd, powers of two and their
neighbours, and often above 1,000; masks are read several times; steps are element-wise work, casts,
reductions of every kind, running ones, sorting, gathers and scatters, padding, slices, reversals,
windows, products, soft-maxes, branches and loops; some graphs have gradients of what they compute,
some write over their inputs.

*What is exact is compared exactly.* Integers and booleans are. So are floats as long as a value is
a small whole number times a power of two that its type, and every sum on the way to it, can hold:
each value has a bound and a number of fractional bits, which decide what may be done with it. Only
such values are compared, sorted, rounded and chosen by. Everything else has an estimate of its
error, which operations pass on, and what has become too uncertain is used no more.

    python -m tests.engines.random_graphs FIRST COUNT [LEVEL ...]

checks many seeds, each level of `MYCEL_CPU` in a process of its own (`all`: every one that this
processor has), and prints the graphs that fail, cut down. With MYCEL_CHECK=bounds in the
environment every access is checked as well.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node, toposort
from mycel._src.compiler.ir.printer import to_text
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import get_item
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.engines import buffers
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.engines.reference.evaluation import evaluate
from mycel._src.foundation import dtype as D
from tests.engines.random_steps import Steps
from tests.engines.random_values import Skip, Value

__all__ = ["RandomGraph", "check_seed", "levels"]

STEPS = (
    ("arithmetic", 8),
    ("whole_arithmetic", 3),
    ("single", 3),
    ("curve", 3),
    ("compare", 5),
    ("logic", 3),
    ("select", 4),
    ("convert", 4),
    ("masked", 4),
    ("counts", 3),
    ("reduce", 7),
    ("running", 4),
    ("order", 2),
    ("search", 1),
    ("move", 8),
    ("gather", 4),
    ("scatter", 3),
    ("window", 2),
    ("product", 2),
    ("convolve", 1),
    ("normalize", 2),
    ("branch", 1),
    ("loop", 1),
)


# Steps that have derivatives, what makes values that are known to some digits only, and what asks
# which of its operands is larger.
SMOOTH = {
    "arithmetic",
    "curve",
    "select",
    "masked",
    "reduce",
    "running",
    "move",
    "gather",
    "scatter",
    "window",
    "product",
    "convolve",
    "normalize",
    "convert",
}
INEXACT = {
    "tanh",
    "sin",
    "cos",
    "sigmoid",
    "exp",
    "atan",
    "erf",
    "sqrt",
    "log",
    "div",
    "softmax",
    "log_softmax",
    "moments",
}
CHOOSING = {
    "maximum",
    "minimum",
    "reduce_max",
    "reduce_min",
    "abs",
    "cummax",
    "cummin",
    "mod",
    "cumprod",
    "while_loop",
    "cond",
}


def is_smooth(node: Node) -> bool:
    """Whether no rounding decides which way a derivative goes, as it would where inexact values are
    compared.
    """
    inexact: set[Node] = set()
    for n in toposort([node]):
        if n.prim is not None and (n.prim.name in INEXACT or any(i in inexact for i in n.inputs)):
            if n.prim.name in CHOOSING:
                return False
            inexact.add(n)
    return True


class RandomGraph(Steps):
    """A graph that a seed decides, the arrays of its inputs, which outputs may replace inputs, and
    what is known of each output.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        for _ in range(int(self.rng.integers(4, 14))):
            self.step()
        outputs = self.outputs()
        if self.smooth:
            outputs += self.gradients()
        self.graph = Graph(self.inputs, [v.node for v in outputs], f"random {seed}")
        self.known = outputs
        self.aliases = self.replaced(outputs) if self.chance(0.15) else {}

    def step(self) -> None:
        """Add a value; what does not fit is drawn again."""
        kinds = [k for k, weight in STEPS for _ in range(weight if not self.smooth or k in SMOOTH else weight // 4)]
        for _ in range(12):
            before = len(self.pool), len(self.inputs)
            try:
                getattr(self, self.choose(kinds))()
                return
            except Skip:
                del self.pool[before[0] :]
                del self.inputs[before[1] :], self.arrays[before[1] :]

    # Control flow.

    def inner(self, given: Sequence[Value], result: Value, name: str) -> Graph:
        """A graph of a few steps over values like those given, whose last is like `result`, within
        -4 and 4.
        """
        outside = self.inputs, self.arrays, self.pool
        inputs = [input_node(v.node.type, f"i{k}") for k, v in enumerate(given)]
        self.with_nan.update(node for node, v in zip(inputs, given) if self.may_be_nan(v.node))
        self.pool = [Value(node, v.bound, v.grain, v.error) for node, v in zip(inputs, given)]
        self.depth += 1
        try:
            for _ in range(self.whole(1, 4)):
                drawn = len(outside[0])
                kind = self.choose(
                    ("arithmetic", "single", "select", "reduce", "running", "move", "compare", "order", "gather")
                )
                kept = list(self.pool)
                try:
                    getattr(self, kind)()
                    if len(self.inputs) != drawn:
                        raise Skip
                except Skip:
                    self.pool = kept
                    del self.inputs[drawn:], self.arrays[drawn:]
            found = [v for v in self.pool if v.exact and v.dtype.kind in "iuf"]
            if not found:
                raise Skip
            last = self.fit(self.settled(self.cast(found[-1], result.dtype)), result.shape)
            if last.dtype.kind in "iu":
                last = Value(E.mod(last.node, 5), 5.0)
            return Graph(inputs, [last.node], name)
        finally:
            self.depth -= 1
            self.inputs, self.arrays, self.pool = outside

    def carried(self) -> Value:
        x = self.certain()
        x = self.settled(x)
        return Value(E.mod(x.node, 5), 5.0) if x.dtype.kind in "iu" else x

    def branch(self) -> None:
        if self.depth:
            raise Skip
        x = self.carried()
        others = [self.pick(lambda v: v.exact) for _ in range(2)]
        flag = self.pick(lambda v: v.dtype is D.bool_)
        condition = R.reduce_any(flag.node, axes=tuple(range(len(flag.shape))), keepdims=False)
        true, false = (self.inner([x, *others], x, name) for name in ("true", "false"))
        made = control.cond.node(condition, x.node, *[v.node for v in others], true=true, false=false)
        self.add(get_item(made, 0), 5.0)

    def loop(self) -> None:
        if self.depth:
            raise Skip
        x = self.carried()
        other = self.pick(lambda v: v.exact)
        body = self.inner([x, other], x, "body")
        counter = input_node(tensor_type((), D.int32), "n")
        rounds = self.whole(0, 5)
        test = Graph([counter, *body.inputs], [E.lt(counter, rounds)], "test")
        whole = Graph([counter, *body.inputs], [E.add(counter, 1), *body.outputs], "body")
        start = S.full((), 0, D.int32)
        made = control.while_loop.node(start, x.node, other.node, test=test, body=whole, carried=2)
        self.add(get_item(made, 1), 5.0)

    # Results.

    def outputs(self) -> list[Value]:
        last = self.pool[len(self.inputs) :][-self.whole(2, 6) :] or self.pool[-1:]
        others = [v for v in self.pool if v not in last]
        return [*last, *[v for v in others if self.chance(0.25)]]

    def gradients(self) -> list[Value]:
        """What the sum of a float value is worth to each float input.

        A value's own size is all that is known of its error.
        """
        wanted = [i for i in self.inputs if i.dtype in (D.float32, D.float64)]
        found = [
            v
            for v in self.pool
            if v.dtype in (D.float32, D.float64) and v.node not in self.inputs and is_smooth(v.node)
        ]
        for v in reversed(found[-4:] if wanted else ()):
            grads = [g for g in vjp([v.node], [self.cotangent(v)], wanted) if g is not None and not g.is_constant]
            if grads:
                return [Value(g, math.nan, 0, math.nan) for g in grads]
        return []

    def cotangent(self, v: Value) -> Node:
        """Ones, or small numbers that differ."""
        if self.chance(0.3) or not v.shape:
            return S.full(v.shape, 1, v.dtype)
        place = S.iota(shape=v.shape, axis=self.whole(0, len(v.shape)), dtype=D.int32)
        return E.sub(E.cast(E.mod(place, 7), dtype=v.dtype), 2.0)

    def replaced(self, outputs: Sequence[Value]) -> dict[int, int]:
        """Outputs that are written over an input of their type."""
        found: dict[int, int] = {}
        for j, v in enumerate(outputs):
            for i, x in enumerate(self.inputs):
                if i not in found.values() and x.type == v.node.type and v.node is not x and self.chance(0.7):
                    found[j] = i
                    break
        return found


# Checking.


def run(graph: Graph, arrays: Sequence[Any], aliases: dict[int, int] | None = None) -> list[Any]:
    """What the native engine gives."""
    program = compile_native(graph, aliases or {})
    got = program.entry(*[buffers.from_array(a) for a in arrays])
    got = got if isinstance(got, tuple) else (got,)
    return [buffers.to_array(g, t) for g, t in zip(got, graph.output_types)]


def difference(value: Value, got: Any, want: Any) -> str:
    """How a result differs from the reference's; empty where it does not."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if value.exact:
        wrong = np.asarray(~((got == want) | ((got != got) & (want != want))))
        allowed = 0.0
    else:
        a, b = got.astype(np.float64), want.astype(np.float64)
        scale = max(float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0)), 1e-6)
        # A derivative that cancels out leaves the roundings of some thousand terms of about one.
        allowed = 4 * value.error if value.error == value.error else 2e-3 * scale + 1e-4
        with np.errstate(invalid="ignore"):
            wrong = np.asarray(~((np.abs(a - b) <= allowed) | (a == b) | ((a != a) & (b != b))))
    if not wrong.any():
        return ""
    where = tuple(int(k[0]) for k in np.nonzero(np.atleast_1d(wrong)))
    first = where if wrong.ndim else ()
    return (
        f"{int(wrong.sum())} of {wrong.size} differ, the first at {list(first)}: {got[first]} instead of "
        f"{want[first]} (allowed {allowed:.2g})"
    )


def check_graph(made: RandomGraph) -> str:
    """What is wrong with a graph's results; empty where nothing is."""
    want = evaluate(made.graph, made.arrays)
    try:
        got = run(made.graph, made.arrays, made.aliases)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    found = [(k, d) for k, (v, g, w) in enumerate(zip(made.known, got, want)) if (d := difference(v, g, w))]
    return "; ".join(f"output {k}: {d}" for k, d in found)


def shrink(made: RandomGraph) -> None:
    """Leave out outputs, and stand in inputs for nodes, as long as the graph fails."""

    def fails(keep: Sequence[int]) -> bool:
        before = made.graph, made.known, made.aliases
        made.graph = Graph(made.inputs, [before[0].outputs[k] for k in keep], before[0].name)
        made.known, made.aliases = [before[1][k] for k in keep], {}
        if check_graph(made):
            return True
        made.graph, made.known, made.aliases = before
        return False

    changed = True
    while changed and len(made.known) > 1:
        changed = False
        for k in range(len(made.known)):
            if fails([j for j in range(len(made.known)) if j != k]):
                changed = True
                break


def check_seed(seed: int) -> str:
    """What is wrong with the graph of a seed, and the graph; empty where nothing is."""
    made = RandomGraph(seed)
    with np.errstate(all="ignore"):
        wrong = check_graph(made)
        if not wrong:
            return ""
        shrink(made)
        return f"seed {seed}: {wrong}\n{check_graph(made)}\n{to_text(made.graph)}\n"


def levels() -> list[str]:
    """The levels of `MYCEL_CPU` that this processor has."""
    from mycel._src.engines.native.llvm.target import LEVELS, processor

    found, before = [], os.environ.get("MYCEL_CPU")
    for level in LEVELS:
        os.environ["MYCEL_CPU"] = level
        try:
            processor()
        except ValueError:
            break
        finally:
            if before is None:
                os.environ.pop("MYCEL_CPU")
            else:
                os.environ["MYCEL_CPU"] = before
        found.append(level)
    return found


def main(arguments: Sequence[str]) -> int:
    """Check seeds; the number of those that fail, at most 100."""
    first, count, *wanted = arguments
    if wanted:
        failed = 0
        for level in levels() if wanted == ["all"] else wanted:
            command = [sys.executable, "-m", "tests.engines.random_graphs", first, count]
            failed += subprocess.run(command, env={**os.environ, "MYCEL_CPU": level}, check=False).returncode
        return min(failed, 100)
    begun, failed = time.monotonic(), 0
    for seed in range(int(first), int(first) + int(count)):
        wrong = check_seed(seed)
        if wrong:
            failed += 1
            print(wrong, flush=True)
    setting = f"{os.environ.get('MYCEL_CPU') or 'this processor'} {os.environ.get('MYCEL_CHECK', '')}".strip()
    print(f"{setting}: {count} graphs from {first}, {failed} failed, {time.monotonic() - begun:.0f} s", flush=True)
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
