"""Products of matrices whose rows the processes have apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor
from mycel.communication.collectives import share_of
from mycel.communication.groups import Group, find_group
from mycel.communication.steps import ReduceOp, copied, gathered, tensor_of

__all__ = ["all_gather_matmul", "matmul_reduce_scatter"]


def _factors(
    name: str, input: Any, x2: Any, group: Any, world_size: Any, trans_x2: Any, **fixed: Any
) -> tuple[Tensor, Tensor, Group]:
    found = find_group(name, group)
    if arguments.integer(name, "world_size", world_size, numpy=False) != found.size:
        raise ValueError(f"{name}: world_size is {world_size}, but the group has {found.size} members")
    for parameter, (value, only) in fixed.items():
        if value != only:
            raise ValueError(f"{name}: {parameter} must be {only!r}, not {value!r}")
    a, b = tensor_of(name, "input", input), tensor_of(name, "x2", x2)
    if a.ndim != 2 or b.ndim != 2 or a.dtype is not b.dtype or not a.dtype.is_floating:
        raise ShapeError(f"{name}: takes two matrices of one floating type, not {a._type} and {b._type}")
    b = eager.apply(S.TRANSPOSE, b, permutation=(1, 0)) if trans_x2 else b
    if a.shape[1] != b.shape[0]:
        raise ShapeError(f"{name}: inner dimensions differ: {a.shape} @ {b.shape}; transpose x2 by trans_x2?")
    return a, b, found


def all_gather_matmul(
    input: Tensor,
    x2: Tensor,
    group: str,
    world_size: int,
    *,
    bias: Any = None,
    gather_index: int = 0,
    gather_output: bool = True,
    comm_turn: int = 0,
    trans_input: bool = False,
    trans_x2: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the rows of `input` in all processes times a matrix.

    Args:
        input (Tensor): This process's tensor.
        x2 (Tensor): The matrix.
        group (str): The name of the group, which must have `world_size` members.
        world_size (int): The number of ranks.
        bias (Tensor | None): Must have its default. Default: None.
        gather_index (int): Must have its default. Default: 0.
        gather_output (bool): Whether the second result is not empty. Default: True.
        comm_turn (int): Must have its default. Default: 0.
        trans_input (bool): Must have its default. Default: False.
        trans_x2 (bool): Whether `x2` is transposed. Default: False.

    Returns:
        tuple[Tensor, Tensor]: The product, and the rows.

    Raises:
        ValueError: For another `world_size`, sizes that do not fit, and other values of those
            options.

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([[1.0, 2.0]])
        >>> world = ms.communication.GlobalComm.WORLD_COMM_GROUP
        >>> ms.ops.all_gather_matmul(x, x, world, 1, trans_x2=True)[0].tolist()
        [[5.0]]
    """
    a, b, found = _factors(
        "all_gather_matmul",
        input,
        x2,
        group,
        world_size,
        trans_x2,
        bias=(bias, None),
        gather_index=(gather_index, 0),
        comm_turn=(comm_turn, 0),
        trans_input=(trans_input, False),
    )
    whole = gathered(a, found)
    kept = copied(whole) if gather_output else Tensor(np.zeros((0,), np.float32)).astype(a.dtype)
    return eager.apply(matrix_product.matmul, whole, b), kept


def matmul_reduce_scatter(
    input: Tensor,
    x2: Tensor,
    group: str,
    world_size: int,
    *,
    reduce_op: str = ReduceOp.SUM,
    bias: Any = None,
    comm_turn: int = 0,
    trans_input: bool = False,
    trans_x2: bool = False,
) -> Tensor:
    """Return this process's share of the rows of the sum over all processes of `input` times a
    matrix.

    Args:
        input (Tensor): This process's tensor.
        x2 (Tensor): The matrix.
        group (str): The name of the group, which must have `world_size` members.
        world_size (int): The number of ranks.
        reduce_op (str): Must have its default. Default: "sum".
        bias (Tensor | None): Must have its default. Default: None.
        comm_turn (int): Must have its default. Default: 0.
        trans_input (bool): Must have its default. Default: False.
        trans_x2 (bool): Whether `x2` is transposed. Default: False.

    Returns:
        Tensor: The share.

    Raises:
        ValueError: For another `world_size`, sizes that do not fit, and other values of those
            options.

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([[1.0, 2.0]])
        >>> world = ms.communication.GlobalComm.WORLD_COMM_GROUP
        >>> ms.ops.matmul_reduce_scatter(x, x, world, 1, trans_x2=True).tolist()
        [[5.0]]
    """
    name = "matmul_reduce_scatter"
    a, b, found = _factors(
        name,
        input,
        x2,
        group,
        world_size,
        trans_x2,
        reduce_op=(reduce_op, ReduceOp.SUM),
        bias=(bias, None),
        comm_turn=(comm_turn, 0),
        trans_input=(trans_input, False),
    )
    return share_of(name, eager.apply(matrix_product.matmul, a, b), None, ReduceOp.SUM, found)
