"""The factors of convolutions and of windows over images.

A convolution of (N, C, *spatial) with (O, C / groups, *kernel) iterates over images, groups, the
channels of a group on both sides, and those spatial axes on which the kernel is a single place that
moves by single steps. Its two gradients iterate over the same, and sum over others of them. Another
spatial axis is no factor: windows of neighbouring parts overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mycel._src.compiler.ir.dims import DimLike, is_one, is_zero
from mycel._src.compiler.prims.factors import Factor, Place, named

if TYPE_CHECKING:
    from mycel._src.compiler.ir.graph import Node

__all__ = ["conv_factors", "conv_grad_input_factors", "conv_grad_weight_factors", "window_factors"]

Shape = tuple[DimLike, ...]
Row = tuple[DimLike, Place | None, Place | None, Place | None]


def conv_factors(node: Node) -> tuple[Factor, ...]:
    """Return the factors of a convolution of images with weights."""
    x, w = (i.type.shape for i in node.inputs)
    return _arranged(_rows(x, w, node.params), (0, 1, 2), None)


def conv_grad_input_factors(node: Node) -> tuple[Factor, ...]:
    """Return the factors of the gradient of images by that of the result and the weights."""
    w, x = node.inputs[1].type.shape, node.type.shape
    return _arranged(_rows(x, w, node.params), (2, 1, 0), "input_shape")


def conv_grad_weight_factors(node: Node) -> tuple[Factor, ...]:
    """Return the factors of the gradient of weights by the images and that of the result."""
    x, w = node.inputs[0].type.shape, node.type.shape
    return _arranged(_rows(x, w, node.params), (0, 2, 1), "weight_shape")


def _rows(x: Shape, w: Shape, params: Any) -> list[Row]:
    """Return each factor's size, and its places in the images, weights and results."""
    groups = params["groups"]
    outputs = w[0] // groups
    inside = Place(1, groups), Place(0, groups), Place(1, groups)
    found: list[Row] = [
        (x[0], Place(0), None, Place(0)),
        (groups, Place(1, 1, w[1]), Place(0, 1, outputs), Place(1, 1, outputs)),
        (outputs, None, inside[1], inside[2]),
        (w[1], inside[0], Place(1), None),
    ]
    for k, still in enumerate(_still(w[2:], params["strides"], params["padding"])):
        if still:
            found.append((x[2 + k], Place(2 + k), None, Place(2 + k)))
    return [row for row in found if not is_one(row[0])]


def _still(window: Shape, strides: Sequence[int], padding: Any) -> list[bool]:
    """Return on which spatial axes results are those of single positions."""
    return [
        is_one(k) and s == 1 and is_zero(pads[0]) and is_zero(pads[1]) for k, s, pads in zip(window, strides, padding)
    ]


def _arranged(rows: list[Row], order: tuple[int, int, int], shape: str | None) -> tuple[Factor, ...]:
    """Return factors whose two operands and result are those of the rows in an `order`.

    `shape` is the parameter that has the shape of the result.
    """
    made = []
    for size, *places in rows:
        first, second, result = (places[k] for k in order)
        sizes: tuple[tuple[str, int], ...] = ()
        if shape is not None and result is not None:
            sizes = ((shape, result.axis),)
        if all(p is not None for p in places):
            sizes += (("groups", -1),)
        made.append(Factor(size, (first, second), (result,), "sum" if result is None else "", sizes))
    return tuple(made)


def window_factors(node: Node) -> tuple[Factor, ...]:
    """Return the factors of windows: images, channels, and axes on which nothing moves."""
    p = node.params
    labels: list[int | None] = [0, 1]
    labels += [2 + k if still else None for k, still in enumerate(_still(p["window"], p["strides"], p["padding"]))]
    shared = [a for a in labels if a is not None]
    sizes = {a: (("input_shape", a),) for a in shared} if "input_shape" in p else None
    # The second operand is the place of an extreme in its window.
    padding = dict.fromkeys(shared, (None, 0)) if len(node.inputs) == 2 else None
    return named(node, [labels] * len(node.inputs), [labels], sizes=sizes, padding=padding)
