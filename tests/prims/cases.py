"""The cases of the contract: every primitive's samples crossed with its element types, and random
inputs for them.

An engine is held to the same contract by running `cases()` and comparing with `reference_results`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mycel._src.compiler.prims  # noqa: F401
from mycel._src.compiler.ir.graph import Node, input_node, static_type, toposort
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import loops as loops
from mycel._src.compiler.prims.base import GET_ITEM, REGISTRY, Primitive, Sample, outputs_of
from mycel._src.engines.reference import apply, evaluate
from mycel._src.foundation.dtype import DType, from_any

Array = np.ndarray[Any, Any]

# A tuple cannot be drawn at random: the primitives with several outputs test it.
# Made by passes of engines: never differentiated or batched.
WITHOUT_CASES = {"fourier_parts", "get_item", "on_complex", "recur"}


@dataclass(frozen=True)
class Case:
    """One sample of a primitive with one choice of element types."""

    primitive: Primitive
    sample: Sample
    number: int
    dtypes: tuple[DType, ...]

    @property
    def label(self) -> str:
        names = sorted({d.name for d in self.dtypes})
        return f"{self.primitive.name}-{self.number}-{'.'.join(names) or 'none'}"

    def draw(self, seed: int = 0) -> list[Array]:
        """Random arrays for the inputs; the same for the same case and seed."""
        rng = np.random.default_rng([zlib.crc32(self.label.encode()), seed])
        return [draw(rng, s, d, self.sample) for s, d in zip(self.sample.shapes, self.dtypes)]


def draw(rng: np.random.Generator, shape: Any, dtype: DType, sample: Sample) -> Array:
    """A random array within the sample's domain; arrays in place of a shape are passed on."""
    if isinstance(shape, np.ndarray):
        return shape
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), np.bool_)
    if dtype.is_integer:
        low, high = sample.integers
        return np.asarray(rng.integers(max(low, 0) if dtype.kind == "u" else low, high, shape)).astype(dtype.numpy)
    low_f, high_f = sample.domain
    values = rng.uniform(low_f, high_f, shape)
    return np.asarray(values + 1j * rng.uniform(low_f, high_f, shape) if dtype.is_complex else values).astype(
        dtype.numpy
    )


def cases(primitive: Primitive) -> Iterator[Case]:
    """The cases of one primitive."""
    for number, sample in enumerate(primitive.samples):
        pattern = sample.dtypes or ("*",) * len(sample.shapes)
        if len(pattern) != len(sample.shapes):
            raise AssertionError(
                f"{primitive.name}: sample {number} has {len(sample.shapes)} inputs, {len(pattern)} dtypes"
            )
        for name in primitive.dtypes if "*" in pattern else ("",):
            chosen = tuple(
                from_any(s.dtype) if isinstance(s, np.ndarray) else from_any(name if p == "*" else p)
                for p, s in zip(pattern, sample.shapes)
            )
            yield Case(primitive, sample, number, chosen)


def all_cases() -> list[Case]:
    """The cases of every registered primitive."""
    return [c for name, p in sorted(REGISTRY.items()) if name not in WITHOUT_CASES for c in cases(p)]


def float64_cases() -> list[Case]:
    """The cases whose derivatives can be compared with finite differences."""
    return [c for c in all_cases() if c.sample.differentiable and _is_smooth(c)]


def _is_smooth(case: Case) -> bool:
    """Whether a float64 input meets a float64 output."""
    if not any(d.name == "float64" for d in case.dtypes):
        return False
    outputs = apply_node(case.primitive, nodes_for(case.draw()), case.sample.params)
    return any(o.dtype.name == "float64" for o in outputs)


def nodes_for(arrays: Sequence[Array]) -> list[Node]:
    """An input node for each array."""
    return [input_node(static_type(a)) for a in arrays]


def apply_node(primitive: Primitive, inputs: Sequence[Node], params: Mapping[str, Any]) -> tuple[Node, ...]:
    """The outputs of a primitive on nodes, always as a tuple."""
    outputs = outputs_of(primitive.node(*inputs, **params))
    return outputs if isinstance(outputs, tuple) else (outputs,)


def reference_results(case: Case, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """What the reference gives, always as a tuple."""
    result = apply(case.primitive, arrays, case.sample.params)
    return tuple(np.asarray(r) for r in result) if isinstance(result, tuple) else (np.asarray(result),)


def sweep(outputs: Sequence[Node], cotangents: Sequence[Node], wrt: Sequence[Node]) -> list[Any]:
    """A plain reverse sweep: the cotangents of `wrt` (None for no dependence), from the primitives'
    own rules.
    """
    received: dict[Node, Any] = {}

    def add(node: Node, value: Any) -> None:
        if value is not None:
            assert value.type is node.type, f"the cotangent {value} of {node}"
            received[node] = E.add(received[node], value) if node in received else value

    for o, c in zip(outputs, cotangents):
        add(o, c)
    for node in reversed(toposort(outputs, stop=set(wrt))):
        if node.prim is None or node in wrt:
            continue
        if node.prim is GET_ITEM:
            (whole,) = node.inputs
            if node in received:
                parts = received.setdefault(whole, [None] * len(whole.type))
                parts[node.params["index"]] = received[node]
            continue
        if node not in received:
            continue
        ct = received[node]
        ct = tuple(ct) if isinstance(ct, list) else ct
        if node.prim.vjp is not None:
            given = node.prim.vjp(ct, outputs_of(node), *node.inputs, **node.params)
        else:
            free = [E.identity(i) for i in node.inputs]
            opened = node.prim.expand(*free, **node.params)
            pairs = (
                [(o, c) for o, c in zip(opened, ct) if c is not None] if isinstance(opened, tuple) else [(opened, ct)]
            )
            given = sweep([o for o, _ in pairs], [c for _, c in pairs], free)
        assert len(given) == len(node.inputs), (
            f"{node.prim.name}: {len(given)} cotangents for {len(node.inputs)} inputs"
        )
        for source, value in zip(node.inputs, given):
            add(source, value)
    return [received.get(w) for w in wrt]


def numeric_gradient(function: Any, arrays: Sequence[Array], position: int, step: float = 1e-5) -> Array:
    """Central differences of a scalar function by one of its float64 inputs."""
    x = arrays[position]
    gradient = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        moved = [a.copy() for a in arrays]
        moved[position][i] += step
        above = function(moved)
        moved[position][i] -= 2 * step
        gradient[i] = (above - function(moved)) / (2 * step)
    return gradient


def run(outputs: Sequence[Node], inputs: Sequence[Node], arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Nodes evaluated by the reference engine."""
    return evaluate(tuple(outputs), dict(zip(inputs, arrays)))
