"""Micro-batching during staging: the differentiated function is called on parts of its batch.

While `cut_into` is in force in a thread, the outermost gradient that a stage takes calls its
function once for each part of the batch. Every tensor in the arguments is cut along axis 0, as its
rows are those of the batch: part k of n has rows k, n + k, 2n + k and so on, so that parts of a
batch that ranks divide are divided the same way. Results without axes are averaged or summed, and
of others the rows are joined again. So the gradient is that of the whole batch where the function
is a mean, or a sum, over rows; what rows do together, as the moments of a batch normalisation, is
done in each part.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation import arguments
from mycel._src.foundation.pytree import flatten, unflatten
from mycel._src.staging.frontend.parallelism.cell_path import inside_micro_batch
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.execution_context import Context
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, scalar

__all__ = ["COMBINED", "cut_into", "invoked"]

COMBINED = ("mean", "sum")


class _Local(threading.local):
    asked: tuple[int, str] | None = None


_local = _Local()


@contextmanager
def cut_into(count: int, combined: str = "mean") -> Iterator[None]:
    """Cut the batches of gradients that are staged in a block into `count` micro-batches.

    `combined` says what becomes of results without axes, "mean" or "sum". Raises ValueError for
    another word, and for a count below 1.
    """
    arguments.integer("micro-batches", "count", count, 1)
    arguments.one_of("micro-batches", "combined", combined, COMBINED)
    before, _local.asked = _local.asked, (count, combined)
    try:
        yield
    finally:
        _local.asked = before


def invoked(context: Context, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ``fn(*args, **kwargs)``, which `context` runs, of micro-batches where they
    are in force.

    A call has `args` and `kwargs` of the whole batch, and `fn` is called with those of its parts.
    Raises ValueError for a batch that does not divide, and for arguments and results whose rows are
    not those of the batch.
    """
    asked = _local.asked
    if asked is None or not context.is_staging:
        return context.invoke(fn, args, kwargs)
    count, combined = asked
    if count == 1:
        with inside_micro_batch(0):
            return context.invoke(fn, args, kwargs)
    _local.asked = None
    try:
        leaves, form = flatten((args, kwargs))
        rows = _rows(leaves, count)
        found = []
        for k in range(count):
            own, named = unflatten(form, [_part(v, k, count) for v in leaves])
            with inside_micro_batch(k):
                found.append(context.invoke(fn, tuple(own), dict(named)))
    finally:
        _local.asked = asked
    return _joined(found, combined, rows // count)


def _is_data(value: Any) -> bool:
    return isinstance(value, Tensor) and not isinstance(value, Parameter) and bool(value.ndim)


def _rows(leaves: list[Any], count: int) -> int:
    sizes = [v.shape[0] for v in leaves if _is_data(v)]
    if not sizes:
        raise ValueError(f"micro-batches: no argument has rows to cut into {count} parts; pass the batch as tensors")
    if any(s != sizes[0] for s in sizes):
        raise ValueError(
            f"micro-batches: the arguments have {', '.join(map(str, sizes))} rows; give all of them the rows of the "
            "batch, and take other tensors from outside"
        )
    if sizes[0] % count:
        raise ValueError(f"micro-batches: a batch of {sizes[0]} rows does not divide into {count} parts")
    return int(sizes[0])


def _part(value: Any, number: int, count: int) -> Any:
    """Return each row of a micro-batch: the one at `number` of every `count` rows."""
    if not _is_data(value):
        return value
    rows, rest = value.shape[0] // count, value.shape[1:]
    split = eager.apply(S.RESHAPE, value, shape=(rows, count, *rest))
    starts, stops = (0, number, *[0] * len(rest)), (rows, number + 1, *rest)
    own = eager.apply(S.SLICE, split, starts=starts, stops=stops, steps=(1,) * len(starts))
    return eager.apply(S.RESHAPE, own, shape=(rows, *rest))


def _joined(found: list[Any], combined: str, rows: int) -> Any:
    parts = [flatten(f) for f in found]
    if any(form != parts[0][1] for _, form in parts):
        raise ValueError("micro-batches: the function gives results of different forms for the parts of the batch")
    result = []
    for values in zip(*[leaves for leaves, _ in parts]):
        result.append(_together(values, combined, rows))
    return unflatten(parts[0][1], result)


def _together(values: tuple[Any, ...], combined: str, rows: int) -> Any:
    first = values[0]
    if not isinstance(first, Tensor):
        return first
    if first.ndim and first.shape[0] == rows:
        rest = first.shape[1:]
        split = [eager.apply(S.RESHAPE, v, shape=(rows, 1, *rest)) for v in values]
        return eager.apply(S.RESHAPE, eager.apply(S.CONCAT, *split, axis=1), shape=(rows * len(values), *rest))
    if first.ndim:
        raise ValueError(
            f"micro-batches: a result of shape {first.shape} has neither no axes nor the {rows} rows of its part of "
            "the batch, so it cannot be joined"
        )
    total = first
    for value in values[1:]:
        total = eager.apply(E.add, total, value)
    if combined == "sum" or not first.dtype.is_differentiable:
        return total
    return eager.apply(E.mul, total, scalar(1 / len(values), first.dtype))
