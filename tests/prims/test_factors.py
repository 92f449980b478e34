"""The contract of factors: a primitive divided by any of its factors gives the whole.

For every sample of every primitive that names factors, and for samples of this file, the operands
are cut along one factor or two, each part is computed, and the parts are joined and combined. Parts
are uneven where sizes do not divide, or filled up to equal sizes by arbitrary values.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import mycel._src.compiler.transforms.complex_pairs  # noqa: F401
from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import input_node, static_type
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims.base import REGISTRY, Primitive, outputs_of
from mycel._src.compiler.prims.factors import ANYTHING, Factor, Place, factors_of
from mycel._src.engines.reference import apply, evaluate
from mycel._src.foundation.dtype import float32
from mycel._src.foundation.errors import IndexRangeError
from tests.prims.cases import Case, cases
from tests.prims.factor_samples import SAMPLES, WITHOUT

Array = np.ndarray[Any, Any]
WITH = sorted(n for n, p in REGISTRY.items() if p.factors is not None)

# Element types of "*" that say no more than others of their kind.
_LEFT_OUT = {"float16", "bfloat16", "int8", "int16", "int64", "uint8", "uint16", "uint32"}
_COMBINE: dict[str, Any] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "any": np.logical_or,
    "all": np.logical_and,
}


def _neutral(op: str, kind: Any) -> Any:
    if kind.kind == "b":
        return op == "all"
    low, high = (-np.inf, np.inf) if kind.kind not in "iu" else (np.iinfo(kind).min, np.iinfo(kind).max)
    return {"sum": 0, "prod": 1, "max": low, "min": high}[op]


class Division:
    """A node divided by some of its factors, each into parts of given lengths."""

    def __init__(self, node: Any, chosen: dict[int, list[int]], filled: bool) -> None:
        self.node, self.chosen, self.filled = node, chosen, filled
        self.factors = factors_of(node)

    def result(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        """The results of all parts, joined."""
        return self._over(list(self.chosen), {}, arrays)

    def _over(self, left: list[int], at: dict[int, tuple[int, int, int]], arrays: Sequence[Array]) -> Any:
        if not left:
            return self._part(at, arrays)
        first, *others = left
        factor, lengths = self.factors[first], self.chosen[first]
        start, results = 0, []
        for length in lengths:
            size = max(lengths) if self.filled else length
            where = (start, length, size)
            cut = [self._cut(a, p, factor, where, at, i) for i, (a, p) in enumerate(zip(arrays, factor.operands))]
            found = self._over(others, {**at, first: where}, cut)
            results.append(tuple(self._first(r, k, factor, size, length, at) for k, r in enumerate(found)))
            start += length
        return tuple(self._joined(factor, k, [r[k] for r in results]) for k in range(len(results[0])))

    def _sizes(self, place: Place, places: str, at: dict[int, Any], number: int) -> tuple[int, int]:
        """What is before and after a place where other factors of its axis are divided already."""
        before, after = place.before, place.after
        for i, (_, _, size) in at.items():
            other = self.factors[i]
            own = (other.results if places == "results" else other.operands)[number]
            if own is None or own.axis != place.axis:
                continue
            if own.before * other.size <= place.before:
                before = before // other.size * size
            else:
                after = after // other.size * size
        return before, after

    def _cut(self, a: Array, place: Any, factor: Factor, where: Any, at: Any, operand: int) -> Array:
        if place is None:
            return a
        start, length, size = where
        before, after = self._sizes(place, "operands", at, operand)
        wide = a.reshape(*a.shape[: place.axis], before, factor.size, after, *a.shape[place.axis + 1 :])
        part = np.take(wide, range(start, start + length), place.axis + 1)
        if size > length:
            more = list(part.shape)
            more[place.axis + 1] = size - length
            part = np.concatenate(
                [part, np.full(more, self._filling(factor, operand, a.dtype), a.dtype)], place.axis + 1
            )
        return part.reshape(*a.shape[: place.axis], before * size * after, *a.shape[place.axis + 1 :])

    @staticmethod
    def _filling(factor: Factor, operand: int, kind: Any) -> Any:
        given = factor.padding[operand] if factor.padding else None
        if given is None and factor.combine:
            return _neutral(factor.combine, kind)
        return 37 if given in (None, ANYTHING) else given

    def _first(self, r: Array, result: int, factor: Factor, size: int, length: int, at: Any) -> Array:
        """A result without filled up positions, its axis cut into before, length and after."""
        place = factor.results[result]
        if place is None:
            return r
        before, after = self._sizes(place, "results", at, result)
        wide = r.reshape(*r.shape[: place.axis], before, size, after, *r.shape[place.axis + 1 :])
        return np.take(wide, range(length), place.axis + 1)

    def _joined(self, factor: Factor, k: int, parts: list[Array]) -> Array:
        place = factor.results[k]
        if place is not None:
            joined = np.concatenate(parts, place.axis + 1)
            shape = [int(d) for d in joined.shape]
            return joined.reshape(
                *shape[: place.axis], math.prod(shape[place.axis : place.axis + 3]), *shape[place.axis + 3 :]
            )
        if not factor.combine:
            for p in parts[1:]:
                np.testing.assert_array_equal(p, parts[0])
            return parts[0]
        total = parts[0]
        for p in parts[1:]:
            total = _COMBINE[factor.combine](total, p)
        return total

    def _part(self, at: dict[int, tuple[int, int, int]], arrays: Sequence[Array]) -> tuple[Array, ...]:
        prim, params = self.node.prim, dict(self.node.params)
        for i, (_, _, size) in at.items():
            for name, index in self.factors[i].sizes:
                old = params[name] if index < 0 else params[name][index]
                assert old % self.factors[i].size == 0
                new = old // self.factors[i].size * size
                params[name] = new if index < 0 else (*params[name][:index], new, *params[name][index + 1 :])
        inputs = [input_node(static_type(a)) for a in arrays]
        local = outputs_of(prim.node(*inputs, **params))
        types = [n.type for n in (local if isinstance(local, tuple) else (local,))]
        if prim.part is None:
            found = apply(prim, arrays, params)
            results = tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))
        else:
            marks = [input_node(static_type(np.int64(0))) if i in at else None for i in range(len(self.factors))]
            made = prim.part(self.node, tuple(inputs), params, tuple(marks))
            made = made if isinstance(made, tuple) else (made,)
            given = dict(zip(inputs, arrays))
            given.update({m: np.asarray(at[i][0], np.int64) for i, m in enumerate(marks) if m is not None})
            results = evaluate(made, given)
            assert [m.type for m in made] == types
        assert [(r.shape, r.dtype) for r in results] == [(t.shape, t.dtype.numpy) for t in types]
        return results


def _lengths(size: int, count: int, filled: bool) -> list[int]:
    if not filled:
        return [len(p) for p in np.array_split(np.arange(size), count)]
    each = -(-size // count)
    return [max(min(each, size - k * each), 0) for k in range(count)]


def _chosen(primitive: Primitive) -> Iterator[Case]:
    """A case of each sample and kind of elements, and those of this test."""
    own = Primitive(primitive.name, primitive.infer, samples=SAMPLES.get(primitive.name, ()), dtypes=primitive.dtypes)
    for p in (primitive, own):
        seen = set()
        for case in cases(p):
            pattern = case.sample.dtypes or ("*",) * len(case.dtypes)
            if {d.name for p, d in zip(pattern, case.dtypes) if p == "*"} & _LEFT_OUT:
                continue
            key = (case.number, tuple(d.kind for d in case.dtypes))
            if key not in seen:
                seen.add(key)
                yield Case(primitive, case.sample, case.number, case.dtypes)


def _whole(case: Case, arrays: Sequence[Array]) -> tuple[Any, tuple[Array, ...]]:
    node = case.primitive.node(*[input_node(static_type(a)) for a in arrays], **case.sample.params)
    found = apply(case.primitive, arrays, case.sample.params)
    return node, tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))


def _same(found: Sequence[Array], wanted: Sequence[Array], label: str) -> None:
    for f, w in zip(found, wanted):
        assert (f.shape, f.dtype) == (w.shape, w.dtype), label
        if w.dtype.kind in "iub":
            np.testing.assert_array_equal(f, w, label)
        else:
            np.testing.assert_allclose(f, w, rtol=1e-5, atol=1e-5, err_msg=label)


@pytest.mark.parametrize("name", WITH)
def test_each_factor(name: str) -> None:
    """The parts of one factor, uneven and filled up, make the whole."""
    divided = 0
    for case in _chosen(REGISTRY[name]):
        arrays = case.draw()
        node, wanted = _whole(case, arrays)
        for i, factor in enumerate(factors_of(node)):
            _check(node, factor)
            for count in (2, 3):
                for filled in (False, True):
                    if factor.size < count or (filled and (factor.even or factor.size % count == 0)):
                        continue
                    division = Division(node, {i: _lengths(factor.size, count, filled)}, filled)
                    label = f"{case.label} {case.sample.params}: {factor} in {count}{' filled up' * filled}"
                    with np.errstate(all="ignore"):
                        _same(division.result(arrays), wanted, label)
                    divided += 1
    assert divided, f"{name}: no sample has a factor that can be divided"


def _check(node: Any, factor: Factor) -> None:
    """A factor's places are right by their sizes, and combined or in all results."""
    types = node.type if isinstance(node.type, tuple) else (node.type,)
    assert len(factor.operands) == len(node.inputs) and len(factor.results) == len(types)
    assert len(factor.padding) in (0, len(node.inputs))
    for t, place in zip((*[i.type for i in node.inputs], *types), (*factor.operands, *factor.results)):
        if place is not None:
            assert t.shape[place.axis] == place.before * factor.size * place.after
    assert any(p is not None for p in (*factor.operands, *factor.results))


@pytest.mark.parametrize("name", WITH)
def test_pairs_of_factors(name: str) -> None:
    """Two factors divided at once make the whole."""
    for case in _chosen(REGISTRY[name]):
        arrays = case.draw()
        node, wanted = _whole(case, arrays)
        factors = factors_of(node)
        pairs = list(itertools.combinations([i for i, f in enumerate(factors) if f.size > 1], 2))
        rng = np.random.default_rng(zlib.crc32(case.label.encode()))
        for k in rng.permutation(len(pairs))[:3]:
            counts = {i: int(rng.integers(2, min(factors[i].size, 3) + 1)) for i in pairs[k]}
            filled = bool(rng.integers(2)) and not any(
                factors[i].even and factors[i].size % c for i, c in counts.items()
            )
            chosen = {i: _lengths(factors[i].size, c, filled) for i, c in counts.items()}
            label = f"{case.label}: factors {chosen}{' filled up' * filled}"
            with np.errstate(all="ignore"):
                _same(Division(node, chosen, filled).result(arrays), wanted, label)


def test_primitives_without_factors_have_a_reason() -> None:
    """A new primitive names its factors, or has a line here."""
    without = {n for n, p in REGISTRY.items() if p.factors is None}
    assert without == set(WITHOUT)
    assert all(WITHOUT.values())


def test_what_has_a_part_has_factors() -> None:
    """`part` is asked with the places of factors."""
    assert all(p.factors is not None for p in REGISTRY.values() if p.part is not None)


_OUT_OF_RANGE: dict[str, Any] = {
    "take": (((6, 2), (5,)), {"axis": 0}, 1),
    "take_add": (((5, 2), (5,)), {"axis": 0, "size": 6}, 1),
    "take_along": (((6, 2), (5, 2)), {"axis": 0}, 1),
    "put_along": (((6, 2), (5, 2), (5, 2)), {"axis": 0, "mode": "add"}, 1),
    "gather_nd": (((6, 4, 2), (5, 2)), {}, 1),
    "scatter_nd": (((6, 4, 2), (5, 2), (5, 2)), {"mode": "add"}, 1),
}


@pytest.mark.parametrize("name", sorted(_OUT_OF_RANGE))
def test_parts_find_indices_that_are_out_of_range(name: str) -> None:
    """An index outside of the whole is an error in some part, whatever is divided, and one that is
    outside of a part only is none.
    """
    shapes, params, which = _OUT_OF_RANGE[name]
    for bounds, wrong in (("wrap", 6), ("wrap", -7), ("front", -1)):
        arrays = [np.ones(s, np.float32) for s in shapes]
        arrays[which] = np.ones(shapes[which], np.int32)
        node = REGISTRY[name].node(*[input_node(static_type(a)) for a in arrays], **params, bounds=bounds)
        for place in ((0,) * arrays[which].ndim, (-1,) * (arrays[which].ndim - 1) + (0,)):
            for i, factor in enumerate(factors_of(node)):
                bad = arrays[which].copy()
                divided = Division(node, {i: _lengths(factor.size, 2, False)}, False)
                divided.result(arrays)
                bad[place] = wrong
                with pytest.raises(IndexRangeError, match=f"index {wrong} is out of range for axis 0 of size 6"):
                    divided.result([bad if k == which else a for k, a in enumerate(arrays)])


def test_sizes_may_be_symbols() -> None:
    """Factors are found by expressions, of which nothing more is known."""
    b, h = symbol("b"), symbol("h")

    def places(name: str, *shapes: Any, **params: Any) -> list[Any]:
        node = REGISTRY[name].node(*[input_node(tensor_type(s, float32)) for s in shapes], **params)
        return [
            (f.size, *[p and (p.axis, p.before, p.after) for p in (*f.operands, *f.results)]) for f in factors_of(node)
        ]

    assert places("reshape", (b, 12), shape=(b * 12,)) == [(b, (0, 1, 1), (0, 1, 12)), (12, (1, 1, 1), (0, b, 1))]
    assert places("reshape", (b * 8, h), shape=(b, 8, h)) == [
        (b, (0, 1, 8), (0, 1, 1)),
        (8, (0, b, 1), (1, 1, 1)),
        (h, (1, 1, 1), (2, 1, 1)),
    ]
    assert places("reshape", (b, 6, 4), shape=(b, 4, 6)) == [
        (b, (0, 1, 1), (0, 1, 1)),
        (2, (1, 1, 3), (1, 1, 2)),
        (2, (2, 2, 1), (2, 3, 1)),
    ]
    assert places("add", (b, 1, h), (5, 1)) == [
        (b, (0, 1, 1), None, (0, 1, 1)),
        (5, None, (0, 1, 1), (1, 1, 1)),
        (h, (2, 1, 1), None, (2, 1, 1)),
    ]
    assert places("matmul", (b, 3, h), (h, 4))[-1] == (h, (2, 1, 1), (0, 1, 1), None)
    assert places("slice", (b, 4), starts=(0, 1), stops=(b, 3), steps=(1, 1)) == [(b, (0, 1, 1), (0, 1, 1))]
    conv = {"strides": (1,), "padding": ((1, 1),), "dilation": (1,), "groups": 2}
    assert [f[0] for f in places("conv", (b, 6, 8), (4, 3, 3), **conv)] == [b, 2, 2, 3]
