"""Cells that compute derivatives of Cells along directions."""

from __future__ import annotations

from typing import Any

from mycel.cells.cell import Cell
from mycel.derivatives import jvp, vjp

__all__ = ["Jvp", "Vjp"]


class Jvp(Cell):
    """A Cell's outputs and its Jacobian times a vector: ``Jvp(fn)(*inputs, v)``, with a tuple `v`
    for several inputs; see `mycel.jvp`.

    >>> import mycel as ms
    >>> out, product = ms.nn.Jvp(ms.nn.ReLU())(ms.Tensor([1.0, -1.0]), ms.Tensor([5.0, 5.0]))
    >>> product.asnumpy().tolist()
    [5.0, 0.0]
    """

    def __init__(self, fn: Any) -> None:
        super().__init__()
        self.fn = fn

    def construct(self, *args: Any) -> Any:
        """Return the outputs and the product."""
        return jvp(self.fn, args[:-1], args[-1])


class Vjp(Cell):
    """A Cell's outputs and a vector times its Jacobian: ``Vjp(fn)(*inputs, v)``, with a tuple `v`
    for several outputs; see `mycel.vjp`.

    The product is a tensor for one input, a tuple for several.

    >>> import mycel as ms
    >>> out, product = ms.nn.Vjp(ms.nn.ReLU())(ms.Tensor([1.0, -1.0]), ms.Tensor([5.0, 5.0]))
    >>> product.asnumpy().tolist()
    [5.0, 0.0]
    """

    def __init__(self, fn: Any) -> None:
        super().__init__()
        self.fn = fn

    def construct(self, *args: Any) -> Any:
        """Return the outputs and the product."""
        out, pull = vjp(self.fn, *args[:-1])
        product = pull(args[-1])
        return out, product[0] if len(product) == 1 else product
