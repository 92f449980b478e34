"""Tensors of more than 2**31 elements: positions, indices and guards that 32 bits cannot hold.

Each takes 2 to 5 GB and some seconds, so they run only with MYCEL_FAR=1; what needs no such tensor
is tested always.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, mint, ops

FAR = 2**31 + 37
PLACE = 2**31 + 11
large = pytest.mark.skipif(os.environ.get("MYCEL_FAR") != "1", reason="takes gigabytes of memory: MYCEL_FAR=1 runs it")


def line(value: int = 0, at: int = PLACE, number: int = 5) -> Tensor:
    """A line of int8 with one other value far out."""
    array = np.full(FAR, value, np.int8)
    array[at] = number
    return ms.from_numpy(array)


def test_types_of_positions() -> None:
    from mycel._src.compiler.ir.graph import input_node
    from mycel._src.compiler.ir.types import tensor_type
    from mycel._src.compiler.prims import reduce as R
    from mycel._src.compiler.prims import shape as S
    from mycel._src.compiler.prims import sort_and_scan

    near, far = (input_node(tensor_type((n,), ms.int8)) for n in (2**31 - 1, 2**31))
    for find in (R.argmax, R.argmin):
        assert find(near, axis=0).dtype is ms.int32 and find(far, axis=0).dtype is ms.int64
    value = input_node(tensor_type((3,), ms.int8))
    assert sort_and_scan.search_sorted(near, value, side="left").dtype is ms.int32
    assert sort_and_scan.search_sorted(far, value, side="left").dtype is ms.int64
    for call in (
        lambda: sort_and_scan.sort(far, axis=0, descending=False),
        lambda: sort_and_scan.top_k(far, k=3, axis=0, largest=True),
        lambda: S.iota(shape=(2**31,), axis=0, dtype=ms.int32),
    ):
        with pytest.raises(ValueError, match="2147483647|2147483648"):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.Argmax(0)(x),
        lambda x: ops.Argmin(0)(x),
        lambda x: ops.count_nonzero(x),
        lambda x: ops.sort(x),
        lambda x: ops.argsort(x),
        lambda x: ops.topk(x, 2),
        lambda x: ops.searchsorted(x, Tensor([1], ms.int8), out_int32=True),
        lambda x: ops.unique(x),
        lambda x: ops.median(x),
        lambda x: mint.sort(x),
    ],
)
def test_what_is_int32_is_refused_with_a_clear_error(call: Any) -> None:
    """Staged, where a broadcast takes no memory."""
    with pytest.raises((ValueError, MemoryError, RuntimeError), match="int32|2147483647|more memory"):
        ms.jit(lambda s: call(s.expand((FAR,))))(Tensor(1, ms.int8))


@large
def test_extremes() -> None:
    x = line()
    assert ops.argmax(x).item() == PLACE and ops.argmax(x, 0).item() == PLACE
    assert mint.max(x, 0).indices.item() == PLACE and ops.max(x, 0)[1].item() == PLACE
    assert ms.jit(lambda x: ops.argmax(x + x))(x).item() == PLACE
    x = line(0, PLACE, -5)
    assert ops.argmin(x).item() == PLACE and ops.Argmin(0, ms.int64)(x).item() == PLACE


@large
def test_extremes_across_columns() -> None:
    array = np.zeros((FAR, 1), np.int8)
    array[PLACE] = 3
    assert ops.argmax(ms.from_numpy(array), 0).tolist() == [PLACE]


@large
def test_positions_of_what_holds() -> None:
    x = line()
    assert ops.nonzero(x).tolist() == [[PLACE]]
    assert ops.count_nonzero(x, dtype=ms.int64).item() == 1
    assert x[x > 0].tolist() == [5]


@large
def test_searches() -> None:
    array = np.zeros(FAR, np.int8)
    array[PLACE:] = 9
    assert ops.searchsorted(ms.from_numpy(array), Tensor([0, 5, 10], ms.int8)).tolist() == [0, PLACE, FAR]


@large
def test_elements_that_lie_far() -> None:
    x = line()
    assert x[PLACE].item() == 5 and x[-26].item() == 5 and x[PLACE - 1 : PLACE + 2].tolist() == [0, 5, 0]
    assert ops.gather(x, Tensor([PLACE, 3]), 0).tolist() == [5, 0]
    assert ops.gather_elements(x, 0, Tensor([PLACE, 3])).tolist() == [5, 0]
    assert ops.flip(x, (0,))[FAR - 1 - PLACE].item() == 5
    assert ops.sum(x == 5, dtype=ms.int64).item() == 1 and ops.amax(x).item() == 5


@large
def test_writes_that_lie_far() -> None:
    made = ops.scatter_nd(Tensor([[PLACE]]), Tensor([4], ms.int8), (FAR,))
    assert made[PLACE].item() == 4 and ops.amax(made[:PLACE]).item() == 0


@large
def test_guards_far_out() -> None:
    x = line()
    made = ops.pad(x, (3, 5), value=1)
    assert made.shape == (FAR + 8,) and made[:4].tolist() == [1, 1, 1, 0] and made[PLACE + 3].item() == 5
    assert made[-6:].tolist() == [0, 1, 1, 1, 1, 1]
    joined = ops.concat((x[:5], x))
    assert joined[PLACE + 5].item() == 5 and joined[PLACE].item() == 0


@large
def test_numbers_of_positions() -> None:
    place = ms.jit(lambda: ops.amax(ops.arange(FAR, dtype=ms.int64)))()
    assert place.item() == FAR - 1
    halves = ms.jit(lambda x: ops.sum(ops.arange(FAR) * (x > 0), dtype=ms.int64))(line())
    assert halves.item() == PLACE


@large
def test_running_sums_and_turns() -> None:
    array = np.zeros(FAR, np.int8)
    array[PLACE:] = 1
    x = ms.from_numpy(array)
    assert ops.roll(x, 1)[PLACE - 1 : PLACE + 2].tolist() == [0, 0, 1]
    assert ops.tile(x[PLACE - 2 :], (2,)).shape[0] == 2 * (FAR - PLACE + 2)
    found = ops.cummax(x, 0) if os.environ.get("MYCEL_FAR_LONG") else None
    assert found is None or found[1][-1].item() == FAR - 1


@large
def test_columns_far_apart() -> None:
    x = ms.from_numpy(np.arange(FAR, dtype=np.int64).astype(np.int8))
    y = x[: FAR - FAR % 4].reshape(-1, 4)
    strided = y[:, 1]
    assert strided.shape == (FAR // 4,) and strided[-1].item() == y[-1, 1].item() == np.int8(
        (FAR - FAR % 4 - 3) % 256 - 256 * ((FAR - FAR % 4 - 3) % 256 > 127)
    )
    assert ops.amax(strided, 0).item() == 125
