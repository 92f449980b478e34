"""Operations that move elements, read and write at positions, against NumPy: sizes of zero, tensors
of no dimensions, negative axes and steps, eager and compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import mycel as ms
from mycel import Tensor, ops
from tests.edges.support import SEEDS, as_array, close, examples, in_both_modes, numbers, tensor, tensors_of

SHAPES = ((3, 4), (5,), (2, 1, 3), (0,), (0, 3), (3, 0, 2), (1,), (), (2, 3, 4))
DTYPES = ("float32", "int32", "bool", "float16", "int64", "complex64")


def steps(data: Any, shape: tuple[int, ...]) -> tuple[int, int]:
    """An axis of either sign, and its size."""
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    return axis, shape[axis]


WHOLE = "reshape ravel broadcast_to expand_dims squeeze tile transpose meshgrid where nonzero masked_select".split()
ALONG = "concat stack split tensor_split unbind roll flip repeat_interleave moveaxis swapaxes narrow".split()
PLACED = "gather index_select take gather_elements rot90 tril triu diagonal diag pad strided_slice".split()
NAMES = [*WHOLE, *ALONG, *PLACED]


def moved(name: str, data: Any, x: Any) -> Any:
    """(function of a tensor, NumPy's result) for one operation with drawn arguments.

    None where there is none for the shape.
    """
    if name in WHOLE:
        return _whole(name, data, x)
    if x.ndim == 0:
        return None
    axis, size = steps(data, x.shape)
    return (_along if name in ALONG else _placed)(name, data, x, axis, size)


def _whole(name: str, data: Any, x: Any) -> Any:
    """For operations of tensors of any rank, and on all axes."""
    rank, shape = x.ndim, x.shape
    if name == "reshape":
        new = [d for d in shape if d != 1] + [1]
        if 0 not in new and data.draw(st.booleans()):
            new[data.draw(st.integers(0, len(new) - 1))] = -1
        return lambda t: ops.reshape(t, tuple(new)), x.reshape(new)
    if name == "ravel":
        return ops.ravel, x.ravel()
    if name == "broadcast_to":
        new = (2, *[3 if d == 1 else d for d in shape])
        return lambda t: ops.broadcast_to(t, new), np.broadcast_to(x, new)
    if name == "expand_dims":
        axis = data.draw(st.integers(-rank - 1, rank))
        return lambda t: ops.expand_dims(t, axis), np.expand_dims(x, axis)
    if name == "squeeze":
        return ops.squeeze, np.squeeze(x)
    if name == "tile":
        counts = tuple(data.draw(st.lists(st.integers(0, 2), min_size=max(rank, 1), max_size=rank + 1)))
        return lambda t: ops.tile(t, counts), np.tile(x, counts)
    if name == "transpose":
        order = tuple(data.draw(st.permutations(range(rank))))
        order = tuple(a - rank if data.draw(st.booleans()) else a for a in order)
        return (lambda t: ops.transpose(t, order), np.transpose(x, order)) if rank else None
    if name == "meshgrid":
        return (lambda t: ops.meshgrid(t, t, indexing="ij"), np.meshgrid(x, x, indexing="ij")) if rank == 1 else None
    if name == "where":
        return lambda t: ops.where(t.astype(ms.bool_), t, t), x
    if name == "nonzero":
        return (ops.nonzero, np.stack(np.nonzero(x), -1)) if rank else None
    if name == "masked_select":
        return lambda t: ops.masked_select(t, t.astype(ms.bool_)), x[x.astype(bool)]
    raise AssertionError(name)


def _along(name: str, data: Any, x: Any, axis: int, size: int) -> Any:
    """For operations along one axis."""
    rank = x.ndim
    if name == "concat":
        return lambda t: ops.concat((t, t, t), axis), np.concatenate((x, x, x), axis)
    if name == "stack":
        return lambda t: ops.stack((t, t), axis), np.stack((x, x), axis)
    if name == "split":
        part = data.draw(st.integers(1, 3))
        return (lambda t: ops.split(t, part, axis), np.split(x, range(part, size, part), axis)) if size else None
    if name == "tensor_split":
        count = data.draw(st.integers(1, 4))
        return lambda t: ops.tensor_split(t, count, axis), np.array_split(x, count, axis)
    if name == "unbind":
        return (lambda t: ops.unbind(t, axis), [np.take(x, i, axis) for i in range(size)]) if size else None
    if name == "roll":
        shift = data.draw(st.integers(-7, 7))
        return lambda t: ops.roll(t, shift, axis), np.roll(x, shift, axis)
    if name == "flip":
        return lambda t: ops.flip(t, (axis,)), np.flip(x, axis)
    if name == "repeat_interleave":
        count = data.draw(st.integers(0, 3))
        return lambda t: ops.repeat_interleave(t, count, axis), np.repeat(x, count, axis)
    if name == "moveaxis":
        to = data.draw(st.integers(-rank, rank - 1))
        return lambda t: ops.moveaxis(t, axis, to), np.moveaxis(x, axis, to)
    if name == "swapaxes":
        to = data.draw(st.integers(-rank, rank - 1))
        return lambda t: ops.swapaxes(t, axis, to), np.swapaxes(x, axis, to)
    if name == "narrow":
        start = data.draw(st.integers(0, size))
        length = data.draw(st.integers(0, size - start))
        return lambda t: ops.narrow(t, axis, start, length), np.take(x, range(start, start + length), axis)
    raise AssertionError(name)


def _placed(name: str, data: Any, x: Any, axis: int, size: int) -> Any:
    """For operations at positions."""
    rank, shape = x.ndim, x.shape
    if name in ("gather", "index_select", "take"):
        if not size:
            return None
        where = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=4)), np.int32)
        functions = {
            "gather": lambda t: ops.gather(t, Tensor(where), axis),
            "index_select": lambda t: ops.index_select(t, axis, Tensor(where)),
            "take": lambda t: t.take(Tensor(where), axis),
        }
        return functions[name], np.take(x, where, axis)
    if name == "gather_elements":
        if not x.size:
            return None
        where = np.random.default_rng(size).integers(0, size, shape)
        return lambda t: ops.gather_elements(t, axis, Tensor(where)), np.take_along_axis(x, where, axis)
    if name == "rot90":
        k = data.draw(st.integers(-3, 5))
        return (lambda t: ops.rot90(t, k, (0, rank - 1)), np.rot90(x, k, (0, rank - 1))) if rank > 1 else None
    if name in ("tril", "triu"):
        k = data.draw(st.integers(-3, 3))
        return (lambda t: getattr(ops, name)(t, k), getattr(np, name)(x, k)) if rank > 1 else None
    if name == "diagonal":
        k = data.draw(st.integers(-2, 2))
        return (lambda t: ops.diagonal(t, k, 0, -1), np.diagonal(x, k, 0, -1)) if rank > 1 else None
    if name == "diag":
        return (ms.mint.diag, np.diag(x)) if rank < 3 else None
    if name == "pad":
        before, after = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
        widths = [(0, 0)] * (rank - 1) + [(before, after)]
        return lambda t: ops.pad(t, (before, after), value=1), np.pad(x, widths, constant_values=1)
    if name == "strided_slice":
        step = data.draw(st.sampled_from((1, 2, -1, -2)))
        begin, end = (0, size) if step > 0 else (size - 1, -size - 1)
        cut = [slice(None)] * (rank - 1)
        if axis not in (-1, rank - 1) or not size:
            return None
        return lambda t: ops.strided_slice(
            t, (0,) * (rank - 1) + (begin,), (*shape[:-1], end), (1,) * (rank - 1) + (step,)
        ), x[(*cut, slice(None, None, step))]
    raise AssertionError(name)


@pytest.mark.parametrize("name", NAMES)
@examples(14)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), shape=st.sampled_from(SHAPES), seed=SEEDS)
def test_moving(name: str, data: Any, dtype: str, shape: Any, seed: int) -> None:
    x = numbers(shape, dtype, seed, 0.2)
    if name in ("where", "pad") and dtype == "complex64":
        dtype, x = "float32", numbers(shape, "float32", seed, 0.2)
    found = moved(name, data, x)
    if found is None:
        return
    function, want = found
    result = in_both_modes(
        function,
        tensor(x),
        what=f"{name} of {dtype}{shape}",
        compiled=seed % 2 == 0 and name not in ("nonzero", "masked_select"),
    )
    got, wanted = tensors_of(result), list(want) if isinstance(want, (list, tuple)) else [want]
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted):
        close(g, w, f"{name}({x!r})", 0, "int64" if name == "nonzero" else dtype)


PADDED = (
    ((2, 3), (1, 1)),
    ((1, 2, 5), (2, 1)),
    ((1, 1, 4, 3), (1, 2, 3, 0)),
    ((2, 2, 5), (0, 0)),
    ((1, 1, 3, 3), (2, 2, 2, 2)),
)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "constant"])
@examples(6)
@given(case=st.sampled_from(PADDED), seed=SEEDS)
def test_pad_modes(mode: str, case: Any, seed: int) -> None:
    shape, widths = case
    x = numbers(shape, "float32", seed, 0)
    pairs = [(widths[2 * k], widths[2 * k + 1]) for k in range(len(widths) // 2)][::-1]
    full = [(0, 0)] * (len(shape) - len(pairs)) + pairs
    want = np.pad(x, full, mode={"replicate": "edge", "circular": "wrap"}.get(mode, mode))
    close(
        in_both_modes(lambda t: ops.pad(t, widths, mode=mode), tensor(x), what=mode),
        want,
        f"pad {mode} {widths} of {x!r}",
        0,
    )


@st.composite
def indices(draw: Any, shape: tuple[int, ...]) -> Any:
    """An index expression: integers, slices with steps, None, an ellipsis, masks, lists and tensors
    of positions.
    """
    entries: list[Any] = []
    width, dots = draw(st.integers(1, 3)), False
    for size in shape:
        kind = draw(st.sampled_from(("int", "slice", "slice", "array", "list", "mask", "new", "dots", "tensor", "end")))
        if kind == "end":
            break
        if kind == "new":
            entries.append(None)
        if kind == "dots" and not dots:
            dots = True
            entries.append(Ellipsis)
            break
        if kind in ("int", "array", "list", "tensor") and size:
            if kind == "int":
                entries.append(draw(st.integers(-size, size - 1)))
            else:
                chosen = draw(st.lists(st.integers(-size, size - 1), min_size=width, max_size=width))
                entries.append(
                    chosen
                    if kind == "list"
                    else np.array(chosen)
                    if kind == "array"
                    else Tensor(np.array(chosen, np.int32))
                )
        elif kind == "mask" and size and not any(isinstance(e, (list, np.ndarray, Tensor)) for e in entries):
            mask = np.zeros(size, bool)
            mask[draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=1))] = True
            entries.append(mask)
            width = 1
        else:
            entries.append(draw(st.slices(size)))
    return tuple(entries)


def plain(index: Any) -> Any:
    return tuple(as_array(e) if isinstance(e, Tensor) else e for e in index)


INDEXED = ((3, 4), (5,), (2, 3, 4), (0, 3), (1,), (2, 1, 3))


@examples(150)
@given(data=st.data(), shape=st.sampled_from(INDEXED), dtype=st.sampled_from(("float32", "int32", "bool")), seed=SEEDS)
def test_reading_by_index(data: Any, shape: Any, dtype: str, seed: int) -> None:
    x = numbers(shape, dtype, seed, 0)
    index = data.draw(indices(shape))
    want = x[plain(index)]
    result = in_both_modes(lambda t: t[index], tensor(x), what=str(index), compiled=seed % 4 == 0)
    close(result, want, f"{shape}[{index}]", 0, dtype)


@examples(120)
@given(data=st.data(), shape=st.sampled_from(INDEXED), number=st.booleans(), seed=SEEDS)
def test_writing_by_index(data: Any, shape: Any, number: bool, seed: int) -> None:
    """Assignments to distinct places, of a number, of a block, and of one row that broadcasts."""
    x = numbers(shape, "float32", seed, 0)
    index = data.draw(indices(shape))
    places = np.arange(x.size).reshape(shape)[plain(index)]
    if len(np.unique(places)) < places.size:
        return
    new: Any = 7.5 if number else numbers(places.shape[-1:] if seed % 2 else places.shape, "float32", seed + 1, 0)
    want = x.copy()
    want[plain(index)] = new

    def written(t: Any, value: Any) -> Any:
        t = t.copy()
        t[index] = value
        return t

    result = in_both_modes(written, tensor(x), new if number else tensor(new), what=str(index), compiled=seed % 4 == 0)
    close(result, want, f"{shape}[{index}] = {new}", 0)


@examples(20)
@given(shape=st.sampled_from(((3, 4), (5,), (2, 3, 4))), seed=SEEDS)
def test_masks(shape: Any, seed: int) -> None:
    x = numbers(shape, "float32", seed, 0)
    mask = np.random.default_rng(seed).uniform(size=shape) < 0.5
    np.testing.assert_array_equal(as_array(tensor(x)[tensor(mask)]), x[mask])
    t, want = tensor(x), x.copy()
    t[tensor(mask)] = 3.0
    want[mask] = 3.0
    np.testing.assert_array_equal(as_array(t), want)


@pytest.mark.parametrize(
    "wrong",
    [
        5,
        -6,
        (0, 9),
        (0, 0, 0),
        "a",
        1.5,
        (slice(None), "b"),
        None.__class__,
        {0: 1},
        (Ellipsis, Ellipsis),
        slice(None, None, 0),
        [True, False],
    ],
)
def test_wrong_indices(wrong: Any) -> None:
    x = tensor(np.zeros((3, 4), np.float32))
    with pytest.raises((IndexError, TypeError, ValueError)):
        x[wrong]
    with pytest.raises((IndexError, TypeError, ValueError)):
        x[wrong] = 1.0


UPDATES = ("add", "sub", "mul", "max", "min", "update")


@pytest.mark.parametrize("name", UPDATES)
@examples(6)
@given(
    shape=st.sampled_from(((3, 4), (5,), (4, 0))),
    count=st.sampled_from((0, 1, 3)),
    dtype=st.sampled_from(("float32", "int32")),
    seed=SEEDS,
)
@example(shape=(3, 4), count=0, dtype="float32", seed=0)
def test_scattered_updates(name: str, shape: Any, count: int, dtype: str, seed: int) -> None:
    x, new = numbers(shape, dtype, seed, 0), numbers((count, *shape[1:]), dtype, seed + 1, 0)
    random = np.random.default_rng(seed)
    where = random.permutation(shape[0])[:count] if name == "update" else random.integers(0, shape[0], count)
    where = where[: len(new)]
    want = x.copy()
    step = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum}.get(name)
    if step is None:
        want[where] = new[: len(where)]
    else:
        step.at(want, where, new)
    at = Tensor(where.reshape(-1, 1).astype(np.int32))
    close(
        in_both_modes(
            lambda t, u: getattr(ops, f"tensor_scatter_{name}")(t, at, u),
            tensor(x),
            tensor(new),
            what=name,
            compiled=seed % 2 == 0,
        ),
        want,
        name,
        9,
        dtype,
    )


@pytest.mark.parametrize("name", ["matmul", "bmm", "dot", "outer", "inner", "kron", "einsum", "tensordot", "mint"])
@examples(14)
@given(
    case=st.sampled_from(
        (
            ((3, 4), (4, 2)),
            ((4,), (4,)),
            ((2, 3, 4), (4, 2)),
            ((2, 3, 4), (2, 4, 5)),
            ((0, 4), (4, 2)),
            ((3, 0), (0, 2)),
            ((2, 1, 3, 4), (5, 4, 2)),
            ((4,), (4, 3)),
            ((2, 4), (4,)),
            ((0, 3, 4), (0, 4, 2)),
            ((1, 1), (1, 1)),
        )
    ),
    dtype=st.sampled_from(("float32", "float64", "float16", "int32", "complex64")),
    seed=SEEDS,
)
def test_products(name: str, case: Any, dtype: str, seed: int) -> None:
    x, y = (numbers(s, dtype, seed + k, 0) for k, s in enumerate(case))
    wide = np.complex128 if dtype == "complex64" else np.float64
    p, q = x.astype(wide), y.astype(wide)
    if (
        name == "bmm"
        and not (x.ndim == y.ndim == 3)
        or name == "dot"
        and not (x.ndim == y.ndim == 1 or x.ndim == y.ndim == 2)
    ):
        return
    if name in ("outer", "kron", "inner") and not (x.ndim == y.ndim == 1):
        x, p, y, q = x.ravel(), p.ravel(), x.ravel()[::-1].copy(), p.ravel()[::-1].copy()
    cases: dict[str, Any] = {
        "matmul": (ops.matmul, lambda: p @ q),
        "bmm": (ops.bmm, lambda: p @ q),
        "dot": (ops.dot, lambda: p @ q),
        "outer": (ops.outer, lambda: np.outer(p, q)),
        "inner": (ops.inner, lambda: np.inner(p, q)),
        "kron": (ops.kron, lambda: np.kron(p, q)),
        "mint": (ms.mint.matmul, lambda: p @ q),
        "einsum": (lambda a, b: ops.einsum("...i,...i->...", a, a), lambda: np.einsum("...i,...i->...", p, p)),
        "tensordot": (lambda a, b: ops.tensor_dot(a, a, axes=([0], [0])), lambda: np.tensordot(p, p, ([0], [0]))),
    }
    if name == "dot" and dtype in ("int32", "complex64") or name == "tensordot" and x.ndim == 1:
        return
    function, oracle = cases[name]
    result = in_both_modes(function, tensor(x), tensor(y), what=name, compiled=seed % 2 == 0)
    scale = {"float16": 8, "float32": 20}.get(dtype, 20)
    got, want = as_array(result), oracle()
    assert got.shape == np.shape(want)
    if dtype == "int32":
        np.testing.assert_array_equal(got, want)
        return
    near = {"float16": 4e-3, "float32": 2e-5, "complex64": 2e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(got.astype(wide), want, rtol=near, atol=near * scale)
