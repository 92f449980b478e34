"""Rows that ranks send each other: `Dataset.send` and `Dataset.recv`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.tensors.core.tensor import Tensor
from mycel.communication import get_group_size, get_rank
from mycel.communication.messages import recv_object_list, send_object_list
from mycel.dataset.arguments import check_count
from mycel.dataset.iteration.iterators import TupleIterator
from mycel.dataset.nodes.node import Node

__all__ = ["SendsRows"]


class SendsRows(Node):
    """A dataset whose rows other ranks get."""

    def send(self, tensor: Any = None, dst: int | Sequence[int] = 0, group: str | None = None) -> None:
        """Send one row to other ranks, where `recv` returns it.

        * `tensor`: the tensor or list of tensors to send; by default the next row of this dataset.
        * `dst`: the rank, or a list of them.
        * `group`: the group of processes, by default all.

        Raises ValueError where `dst` holds this rank, or one that there is not.
        """
        _send(self._rows_to_send(), tensor, dst, group)

    def recv(self, src: int | Sequence[int] = 0, group: str | None = None) -> Any:
        """Return one row that another rank sent: a tensor, or a list where it has several columns.

        * `src`: the rank, or a list of them, for a list of rows; from this rank comes the next row
          of this dataset.
        * `group`: the group of processes, by default all.

        >>> import mycel.dataset as ds
        >>> data = ds.NumpySlicesDataset([5, 6], ["x"], shuffle=False)
        >>> int(data.recv()), int(data.recv())
        (5, 6)
        """
        return _received(self._rows_to_send(), src, group)

    def _rows_to_send(self) -> TupleIterator:
        found: TupleIterator | None = self.__dict__.get("_sent")
        if found is None:
            # Over a copy, so that no thread holds this dataset, which ends the iterator.
            found = TupleIterator(copy.copy(self), num_epochs=-1, output_numpy=True)
            self.__dict__["_sent"] = found
        return found


def _ranks(where: str, parameter: str, given: Any) -> list[int]:
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    return [check_count(where, parameter, rank, 0) for rank in listed]


def _send(rows: TupleIterator, tensor: Any, dst: Any, group: str | None) -> None:
    """Send tensors, or else the next of `rows`, to other ranks; see `Dataset.send`.

    * `tensor`, `dst`, `group`: as there.
    """
    ranks = _ranks("send", "dst", dst)
    if get_rank() in ranks:
        raise ValueError(f"send: dst must not hold the rank of this process, {get_rank()}; recv gives its own rows")
    _check_members("send", "dst", ranks)
    if tensor is None:
        values = _next_of("send", rows)
    else:
        values = list(tensor) if isinstance(tensor, (list, tuple)) else [tensor]
        for value in values:
            arguments.instance("send", "tensor", value, Tensor, "a Tensor or a list of them")
        values = [value.asnumpy() for value in values]
    for rank in ranks:
        send_object_list([values], rank, group)


def _received(rows: TupleIterator, src: Any, group: str | None) -> Any:
    """Return what other ranks sent, or the next of `rows`; see `Dataset.recv`.

    * `src`, `group`: as there.
    """
    ranks = _ranks("recv", "src", src)
    _check_members("recv", "src", ranks)
    found: list[Any] = []
    for rank in ranks:
        if rank == get_rank():
            values = _next_of("recv", rows)
        else:
            listed: list[Any] = [None]
            recv_object_list(listed, rank, group)
            values = listed[0]
        made = [Tensor(value) if value.dtype.kind not in "USO" else value for value in values]
        found.append(made[0] if len(made) == 1 else made)
    return found if isinstance(src, (list, tuple)) else found[0]


def _check_members(where: str, parameter: str, ranks: list[int]) -> None:
    if any(rank >= get_group_size() for rank in ranks):
        raise ValueError(f"{where}: {parameter} must be below {get_group_size()}, the number of ranks, not {ranks}")


def _next_of(where: str, rows: TupleIterator) -> list[Any]:
    for _ in range(2):
        # At the end of an epoch the next one begins.
        row = next(rows, None)
        if row is not None:
            return [np.asarray(value) for value in row]
    raise RuntimeError(f"{where}: the dataset has no rows")
