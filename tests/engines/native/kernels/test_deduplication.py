"""Kernels of nests that are alike: written once, with buffers exchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel._src.compiler.ir.dims import symbol
from mycel._src.engines.native.kernels import codegen
from mycel._src.engines.native.kernels.codegen import generate
from mycel._src.engines.native.kernels.deduplication import digest_of
from mycel._src.engines.native.kernels.loop_nest import Access, Affine, Buffer, Builder, Loop, Nest, Store, affine
from mycel._src.foundation import dtype as D


def scaled(
    factor: Any = 2.0,
    size: Any = 100,
    stride: int = 1,
    dtype: Any = D.float32,
    same: bool = False,
    name: str = "one",
    reducing: str = "",
    guard: int = 0,
) -> tuple[Nest, list[Buffer]]:
    """``target[i] = a[stride * i] * factor + b[i]`` or the sum over i of it."""
    a, b, target = (Buffer(dtype, size, n) for n in "abt")
    if same:
        b = a
    build = Builder()
    guards = ((Affine(((0, 1),), -guard), size),) if guard else ()
    x = build.load(Access(a, affine(0).scale(stride), guards))
    value = build.op(
        "add", dtype, build.op("mul", dtype, x, build.const(factor, dtype)), build.load(Access(b, affine(0)))
    )
    if reducing:
        r = build.reduce(reducing, value, dtype)
        nest = Nest([Loop(size, "r")], [r], [Store(Access(target, Affine((), 0)), r.result, False)], name)
    else:
        nest = Nest([Loop(size, "p")], [], [Store(Access(target, affine(0)), value, True)], name)
    return nest, [a, b, target]


def test_the_second_has_its_own_buffers() -> None:
    first, mine = scaled()
    second, theirs = scaled(name="another")
    assert digest_of(first, "t")[0] == digest_of(second, "t")[0]
    one, other = generate(first), generate(second)
    assert one.source is other.source
    exchanged = dict(zip(map(id, mine), theirs))
    assert [(k, exchanged[id(v)] if k == "pointer" else v) for k, v in one.words] == other.words
    assert any(v is theirs[2] for _, v in other.words)
    assert (one.extent, one.work) == (other.extent, other.work)
    fresh = codegen.NestWriter(second).run()
    assert (fresh.text, fresh.words, fresh.extent, fresh.work) == (other.text, other.words, other.extent, other.work)


DIFFERENT: list[dict[str, Any]] = [
    {"factor": 3.0},
    {"factor": 2},
    {"factor": True},
    {"size": 101},
    {"stride": 2},
    {"dtype": D.float64},
    {"same": True},
    {"reducing": "sum"},
    {"reducing": "max"},
    {"guard": 1},
    {"guard": 2},
]


def test_what_differs_is_told_apart() -> None:
    digests = [digest_of(scaled(**kind)[0], "t")[0] for kind in [{}, *DIFFERENT]]
    assert None not in digests
    assert len(set(digests)) == len(digests)
    assert digest_of(scaled()[0], "another")[0] not in digests


def test_zeros_of_either_sign() -> None:
    assert digest_of(scaled(0.0)[0], "t")[0] != digest_of(scaled(-0.0)[0], "t")[0]


def test_loops_of_another_kind() -> None:
    nest, _ = scaled()
    before = digest_of(nest, "t")[0]
    nest.loops[0].unroll = True
    assert digest_of(nest, "t")[0] != before
    nest.loops[0].unroll = False
    nest.scalar = True
    assert digest_of(nest, "t")[0] != before
    nest.scalar, nest.stores[0].mode = False, "add"
    assert digest_of(nest, "t")[0] != before


@pytest.mark.parametrize("where", ["size", "constant"])
def test_symbolic_sizes_are_not_remembered(where: str) -> None:
    nest, _ = scaled(size=symbol("n")) if where == "size" else scaled(factor=object())
    assert digest_of(nest, "t") == (None, [])


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codegen._written, "most", 4)
    codegen._written.forget()
    for size in range(10, 16):
        generate(scaled(size=size)[0])
    assert len(codegen._written) == 4


def texts_of(*factors: Any, **more: Any) -> set[str]:
    return {generate(scaled(factor=f, **more)[0]).text for f in factors}


@pytest.mark.parametrize("reducing", ["", "sum", "max"])
def test_factors_that_follow_from_sizes_are_words(reducing: str) -> None:
    assert len(texts_of(1 / 3, 1 / 512, -1e-7, 1000.0, 3.4e38, 1e-42, reducing=reducing)) == 1
    # What LLVM does better with, what has no word of its own, and other types.
    assert len(texts_of(0.0, -0.0, 0.5, 1.0, 3.0, float("inf"), reducing=reducing)) == 6
    assert len(texts_of(1 / 3, 1 / 512, reducing=reducing, dtype=D.float64)) == 2


@pytest.mark.parametrize("size", [1, 5, 64, 1003])
def test_values_with_factors_as_words(size: int) -> None:
    x = np.random.default_rng(size).normal(size=(3, size)).astype(np.float32)
    t = ms.Tensor(x)
    for factor in (np.float32(1 / 3), np.float32(1 / 512), np.float32(-777.7), np.float32(1e-30)):
        number = float(factor)
        np.testing.assert_array_equal(ms.jit(lambda a, n=number: a * n)(t).asnumpy(), x * factor)
        np.testing.assert_array_equal(ms.jit(lambda a, n=number: a / n)(t).asnumpy(), x / factor)
        found = ms.jit(lambda a, n=number: (ms.ops.exp(a) * n + a / n * 0.1).sum(1))(t).asnumpy()
        wide = x.astype(np.float64)
        terms = np.exp(wide) * number, wide / number * np.float32(0.1)
        error = np.abs(found - sum(terms).sum(1))
        assert np.all(error <= 1e-6 * (np.abs(terms[0]) + np.abs(terms[1])).sum(1))
