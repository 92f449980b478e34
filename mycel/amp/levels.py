"""The choice of the parts of a network that compute in 16 bits: by level, or by lists of layers and
operations.

Each Cell is given a `Precision` of its own, once, so that later compilation sees nothing but Cells.
In 16 bits with a black list ("O2"), the listed layers compute in float32 and hand on 16-bit floats;
the network's outputs come back in float32. With a white list ("O1", "auto"), the listed layers
compute in 16 bits and give float32, and so do the listed operations wherever a Cell's own
`construct` uses them.
"""

from __future__ import annotations

from typing import Any

from mycel import nn, ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.precision import Precision

__all__ = ["LEVELS", "auto_mixed_precision", "custom_mixed_precision", "get_black_list", "get_white_list", "keep_wide"]

LEVELS = ("O0", "O1", "O2", "O3", "auto")

_WHITE_LAYERS = (
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "Conv1dTranspose",
    "Conv2dTranspose",
    "Conv3dTranspose",
    "Dense",
    "LSTMCell",
    "RNNCell",
    "GRUCell",
)
_WHITE_OPERATIONS = (
    "Conv2D",
    "Conv3D",
    "Conv2DTranspose",
    "Conv3DTranspose",
    "Conv2DBackpropInput",
    "MatMul",
    "BatchMatMul",
    "PReLU",
    "ReLU",
    "Ger",
)
_BLACK_LAYERS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm")


def get_white_list() -> list[Any]:
    """Return the layers and operations that level "O1" computes in 16 bits.

    The result is a new list of classes, which may be changed and given to `custom_mixed_precision`.

    >>> import mycel as ms
    >>> ms.nn.Dense in ms.amp.get_white_list()
    True
    """
    layers = [getattr(nn, name) for name in _WHITE_LAYERS if hasattr(nn, name)]
    return layers + [getattr(ops, name) for name in _WHITE_OPERATIONS if hasattr(ops, name)]


def get_black_list() -> list[Any]:
    """Return the layers that level "O2" computes in float32.

    The result is a new list of classes, which may be changed and given to `custom_mixed_precision`.

    >>> import mycel as ms
    >>> ms.nn.BatchNorm2d in ms.amp.get_black_list()
    True
    """
    return [getattr(nn, name) for name in _BLACK_LAYERS if hasattr(nn, name)]


def auto_mixed_precision(network: Cell, amp_level: str = "O0", dtype: Any = D.float16) -> Cell:
    """Change a network in place to compute in mixed precision at a level, and return it.

    "O0" leaves float32. "O1" computes the layers and operations of `get_white_list` in `dtype`,
    float16 or bfloat16. "O2" computes everything but the layers of `get_black_list` in it, "O3"
    everything. "auto" is the white list without its element-wise operations. Parameters stay
    float32. Inputs that are not floats stay as they are, and outputs come in float32. Raises
    ValueError for another level or type, TypeError for a network that is no Cell.

    >>> import mycel as ms
    >>> net = ms.nn.SequentialCell(ms.nn.Dense(3, 4), ms.nn.LayerNorm((4,)))
    >>> net = ms.amp.auto_mixed_precision(net, "O2", ms.bfloat16)
    >>> net(ms.ops.ones((2, 3))).dtype, net[0].weight.dtype
    (mindspore.float32, mindspore.float32)
    """
    arguments.one_of("auto_mixed_precision", "amp_level", amp_level, LEVELS)
    _check("auto_mixed_precision", network, dtype)
    if amp_level == "O1":
        _narrow(network, get_white_list(), dtype)
    elif amp_level == "auto":
        _narrow(network, [c for c in get_white_list() if c.__name__ not in ("PReLU", "ReLU", "Ger")], dtype)
    elif amp_level != "O0":
        _narrow_but(network, get_black_list() if amp_level == "O2" else [], dtype)
    return network


def custom_mixed_precision(
    network: Cell,
    *,
    white_list: list[Any] | None = None,
    black_list: list[Any] | None = None,
    dtype: Any = D.float16,
) -> Cell:
    """Change a network in place to compute in mixed precision by a list of classes, and return it.

    Exactly one of the two lists is given.

    Args:
        network (Cell): The network.
        white_list (list[Any] | None): The layers and operations that compute in `dtype`; a class of
            an operation such as ``ops.MatMul`` stands for the function `matmul` too. Default: None.
        black_list (list[Any] | None): The layers that do not, while everything else does. Default:
            None.
        dtype (DType): float16 or bfloat16. Default: float16.

    Returns:
        Cell: The network.

    Raises:
        ValueError: For both lists, none, or another type.
        TypeError: For a network that is no Cell and for members that are no classes.

    Examples:
        >>> import mycel as ms
        >>> net = ms.nn.SequentialCell(ms.nn.Dense(3, 4), ms.nn.ReLU())
        >>> ms.amp.custom_mixed_precision(net, white_list=[ms.nn.Dense])(ms.ops.ones((2, 3))).dtype
        mindspore.float32
    """
    _check("custom_mixed_precision", network, dtype)
    if (white_list is None) == (black_list is None):
        raise ValueError("custom_mixed_precision: give either white_list or black_list, and not both")
    name, given = ("white_list", white_list) if black_list is None else ("black_list", black_list)
    classes = arguments.instance("custom_mixed_precision", name, given, list, "a list of classes")
    for member in classes:
        if not isinstance(member, type):
            raise arguments.wrong_type("custom_mixed_precision", f"the members of {name}", "classes", member)
        if black_list is not None and not issubclass(member, Cell):
            raise ValueError(
                f"custom_mixed_precision: {name} takes layers, not {member.__name__}; keep an operation in float32 by "
                "a white_list without it"
            )
    if black_list is None:
        _narrow(network, classes, dtype)
    else:
        _narrow_but(network, classes, dtype)
    return network


def _check(function: str, network: Any, dtype: Any) -> None:
    arguments.instance(function, "the network", network, Cell)
    if dtype not in (D.float16, D.bfloat16):
        raise ValueError(f"{function}: dtype must be float16 or bfloat16, not {dtype!r}")


def _narrow(network: Cell, listed: list[Any], dtype: DType) -> None:
    """Compute the listed layers and operations in `dtype`."""
    layers = tuple(c for c in listed if issubclass(c, Cell))
    operations = frozenset(c.__name__ for c in listed if not issubclass(c, Cell))
    wide = Precision(operations=operations, narrow=dtype) if operations else None
    _assign(network, layers, lambda inside: Precision(dtype) if inside else wide, Precision(dtype, D.float32))


def _narrow_but(network: Cell, listed: list[Any], dtype: DType) -> None:
    """Compute everything but the listed layers in `dtype`, with outputs in float32."""
    network.to_float(dtype)
    keep_wide(network, listed, dtype)
    network._cast_to = Precision(dtype, D.float32)


def keep_wide(network: Cell, listed: list[Any], dtype: DType) -> None:
    """Compute the listed layers in float32, and give their outputs in `dtype`."""
    for _, cell in network.cells_and_names():
        if isinstance(cell, tuple(listed)):
            cell.to_float(D.float32)
            cell._cast_to = Precision(D.float32, dtype)


def _assign(network: Cell, layers: tuple[Any, ...], choose: Any, listed: Precision) -> None:
    """Give every Cell its precision: `listed` to the given layers with all Cells inside, `choose`
    of the Cell to others.
    """
    seen: set[int] = set()

    def visit(cell: Cell, inside: bool) -> None:
        if id(cell) in seen:
            return
        seen.add(id(cell))
        own = isinstance(cell, layers)
        cell._cast_to = listed if own and not inside else choose(inside)
        for child in cell.cells():
            visit(child, inside or own)

    visit(network, False)
