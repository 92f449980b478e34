"""Random kernels with several reductions and masks that several of them read, compared with the
reference.

``python -m tests.engines.native.kernels.side_by_side FIRST COUNT`` tries the seeds from FIRST on,
for the level of the processor that MYCEL_CPU names. Sizes lie above 1,000, so that all copies of
all lanes are at work and a tail is left. Integer results must be equal in every bit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.engines import buffers
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.engines.reference.evaluation import evaluate
from mycel._src.foundation import dtype as D

TYPES = (D.int8, D.int16, D.int32, D.int64, D.uint8, D.uint16, D.uint32, D.uint64, D.float32, D.float64, D.float16)
# Those whose vectors fill the widest registers are tried most.
SHARES = np.array((1, 1, 12, 4, 1, 1, 4, 2, 2, 1, 1)) / 30
NUMBERS = (R.reduce_sum, R.reduce_prod, R.reduce_max, R.reduce_min, R.argmax, R.argmin)
TRUTHS = (R.reduce_any, R.reduce_all)


def _array(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    if dtype.kind == "f":
        return rng.choice(np.array([-2, -1, -0.5, 0.5, 1, 2, 3]), shape).astype(dtype.numpy)
    return rng.integers(0, 4, shape).astype(dtype.numpy)


def _reduced(rng: np.random.Generator, x: Node, axes: tuple[int, ...], usual: int) -> Node:
    """A reduction of one kind more often than of the others: two that are alike are what a compiler
    joins.
    """
    kinds = TRUTHS if x.type.dtype is D.bool_ else NUMBERS
    reduce = kinds[usual % len(kinds) if rng.random() < 0.7 else rng.integers(len(kinds))]
    if reduce in (R.argmax, R.argmin):
        return reduce(x, axis=axes[-1])
    if reduce is R.reduce_prod and x.type.dtype.kind == "f":
        x = E.sign(x)
    return reduce(x, axes=axes, keepdims=False)


def graph_of(seed: int) -> tuple[Graph, list[Any]]:
    """A graph of reductions over one domain, and arrays for its inputs."""
    rng = np.random.default_rng(seed)
    long = int(rng.integers(1000, 1200))
    shape = ((long,), (3, long), (long, 5))[rng.choice(3, p=(0.6, 0.3, 0.1))]
    axes = (len(shape) - 1,) if rng.random() < 0.8 else (0,)
    pool: list[Node] = []
    kinds = [TYPES[k] for k in rng.choice(len(TYPES), 2, p=SHARES)]
    inputs = [input_node(tensor_type(shape, kind)) for kind in kinds[: rng.integers(1, 3)]]
    arrays = [_array(rng, shape, x.type.dtype) for x in inputs]
    pool.extend(inputs)
    for x in inputs:
        masks = [E.gt(x, 0), E.eq(x, 1), E.le(x, 2)][: rng.integers(1, 4)]
        pool.extend(masks)
        pool.extend(E.cast(m, dtype=kinds[rng.integers(2)]) for m in masks)
        pool.append(E.select(masks[0], x, E.add(x, x)))
        pool.append(E.add(x, 1))
    usual = int(rng.integers(len(NUMBERS)))
    outputs = [_reduced(rng, pool[rng.integers(len(pool))], axes, usual) for _ in range(rng.integers(3, 9))]
    outputs.extend(pool[rng.integers(len(inputs), len(pool))] for _ in range(rng.integers(0, 3)))
    return Graph(inputs, outputs, f"seed{seed}"), arrays


def alike() -> Iterator[tuple[Graph, list[Any]]]:
    """Three reductions of one kind in one kernel, for kinds and types whose accumulators are whole
    registers.
    """
    rng = np.random.default_rng(0)
    for dtype in (D.int16, D.int32, D.int64, D.float32):
        for reduce in NUMBERS[:4]:
            x = input_node(tensor_type((1030,), dtype))
            values = (E.cast(E.gt(x, 0), dtype=dtype), E.cast(E.eq(x, 1), dtype=dtype), E.sign(E.sub(x, 1)))
            graph = Graph([x], [reduce(v, axes=(0,), keepdims=False) for v in values], f"{reduce.name} of {dtype}")
            yield graph, [_array(rng, (1030,), dtype)]


def check(graph: Graph, arrays: list[Any]) -> None:
    with np.errstate(all="ignore"):
        wanted = evaluate(graph, arrays)
    results = compile_native(graph).entry(*[buffers.from_array(a) for a in arrays])
    for k, (result, want, kind) in enumerate(
        zip(results if isinstance(results, tuple) else (results,), wanted, graph.output_types)
    ):
        assert isinstance(kind, TensorType)
        got = buffers.to_array(result, kind)
        if kind.dtype.kind == "f":
            np.testing.assert_allclose(
                got, want, rtol=1e-2 if kind.dtype.bits == 16 else 1e-5, err_msg=f"{graph.name}, output {k}"
            )
        else:
            np.testing.assert_array_equal(got, want, err_msg=f"{graph.name}, output {k}")


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(first, first + count):
        check(*graph_of(number))
    for graph, arrays in alike():
        check(graph, arrays)
    print(f"{count} graphs agree")
