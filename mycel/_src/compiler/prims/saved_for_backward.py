"""Which operands and results a primitive's derivative uses, so that recordings keep no others.

`SAVED` has, by the name of a primitive, the places of these values: i for operand i, -1 - k for
result k. Whatever the types, parameters and wanted gradients are, the derivative uses no more than
these. Of primitives that are not in it everything may be used. `SAVED_ALONE` has, for some
primitives of two operands, what is used where a gradient is wanted of the first or of the second
operand alone.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["PAIRS", "SAVED", "SAVED_ALONE", "pairs"]

_BY_PLACES: Mapping[tuple[int, ...], str] = {
    (): "add sub neg identity cast promote stop_gradient assigned reshape transpose broadcast_to slice pad concat "
    "reverse reduce_sum cumsum window_sum sign floor ceil rint trunc floor_div eq ne lt le gt ge is_nan is_inf "
    "is_finite logical_and logical_or logical_not logical_xor argmax argmin",
    (0,): "abs acos acosh asin asinh atan atanh cos cosh sin sinh erf erfc log log10 log1p log2 lgamma digamma select "
    "window_max",
    (-1,): "exp exp2 expm1 tanh tan sigmoid sqrt erfinv softmax log_softmax",
    (1,): "take take_add take_along gather_nd",
    (0, 1): "mul matmul conv conv_grad_input conv_grad_weight maximum minimum atan2 mod fmod",
    (1, -1): "div",
    (0, -1): "rsqrt reduce_max reduce_min",
    (0, 1, -1): "pow",
}
SAVED: Mapping[str, tuple[int, ...]] = {name: places for places, names in _BY_PLACES.items() for name in names.split()}
SAVED_ALONE: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    **dict.fromkeys(("mul", "matmul", "conv", "conv_grad_input", "conv_grad_weight"), ((1,), (0,))),
    "div": ((1,), (1, -1)),
    "pow": ((0, 1, -1), (0, -1)),
}


def pairs(
    saved: Mapping[str, tuple[int, ...]], alone: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]
) -> Mapping[str, tuple[int, int, int]]:
    """Return what is kept of applications to two operands as masks: 1 and 2 for the operands, 4 for
    the result.

    There are three, for gradients of both, and of the first or the second alone.
    """
    made = {}
    for name, both in saved.items():
        first, second = alone.get(name, (both, both))
        masks = [(0 in p) + 2 * (1 in p) + 4 * (-1 in p) for p in (both, first, second)]
        made[name] = masks[0], masks[1], masks[2]
    return made


PAIRS = pairs(SAVED, SAVED_ALONE)
