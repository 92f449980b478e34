"""Cells that compute the derivatives of Cells along directions."""

from __future__ import annotations

from typing import Any

from mycel._src.staging.derivatives import jvp, vjp
from mycel._src.tensors.cells.cell import Cell

__all__ = ["Jvp", "Vjp"]


class Jvp(Cell):
    """The outputs of a Cell and the product of its Jacobian and a vector: ``Jvp(fn)(*inputs, v)``.

    For several inputs `v` is a tuple; see `mycel.jvp`.

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
    """The outputs of a Cell and the product of a vector and its Jacobian: ``Vjp(fn)(*inputs, v)``.

    For several outputs `v` is a tuple. The product is a tensor for one input, a tuple for several;
    see `mycel.vjp`.

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
