"""The methods of tensors that write into them, and those that draw from random generators.

A method that ends in an underscore computes the same as the one without, then writes the result, in
the tensor's own type, into the tensor.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import random as distributions
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core import eager, views
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.common.generator import default_generator
from mycel.ops import activation, creation, elementwise, gather_scatter, masked_selection, math, random
from mycel.ops._operands import broadcast, cast_index, flat, number_of, operand, reshaped, run, size_of, term
from mycel.ops.algebra import linalg
from mycel.ops.assignment import fitted
from mycel.ops.tensors.signatures import drawing, with_signature

__all__: list[str] = []


def _times(alpha: Any, other: Any) -> Any:
    """Return `other` times `alpha`."""
    return other if isinstance(alpha, builtins.int) and alpha == 1 else elementwise.mul(other, alpha)


def added(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return ``self + alpha * other``. See `mycel.ops.add`."""
    if isinstance(other, (list, tuple)) and alpha == 1:
        return self + other
    return elementwise.add(self, _times(alpha, other))


def subtracted(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return ``self - alpha * other``. See `mycel.ops.sub`."""
    return elementwise.sub(self, _times(alpha, other))


# Methods with an underscore: the function that computes the new value.
_IN_PLACE: dict[str, Callable[..., Any]] = {
    "add_": added,
    "sub_": subtracted,
    "mul_": elementwise.mul,
    "div_": elementwise.div,
    "pow_": elementwise.pow,
    "floor_divide_": elementwise.floor_divide,
    "remainder_": elementwise.remainder,
    "exp_": elementwise.exp,
    "log_": elementwise.log,
    "floor_": elementwise.floor,
    "sign_": elementwise.sign,
    "sigmoid_": elementwise.sigmoid,
    "tanh_": elementwise.tanh,
    "erfinv_": elementwise.erfinv,
    "clamp_": math.clamp,
    "masked_fill_": masked_selection.masked_fill,
    "masked_scatter_": masked_selection.masked_scatter,
    "index_fill_": gather_scatter.index_fill,
    "scatter_": gather_scatter.scatter,
    "addmm_": linalg.addmm,
    "relu_": activation.relu,
}

# What docstrings say of methods with many parameters, behind their first sentence.
_SECTIONS = {
    "addmm_": """

    That is ``beta * self + alpha * (mat1 @ mat2)``.

    Args:
        mat1 (Tensor): The left matrix, (n, m).
        mat2 (Tensor): The right matrix, (m, p).
        beta (float): The factor of the tensor's values. Default: 1.
        alpha (float): The factor of the product. Default: 1.

    Returns:
        Tensor: The tensor itself.

    Raises:
        ShapeError: If the result has another shape than the tensor.

    Examples:
        >>> import mycel as ms
        >>> x = ms.ops.ones((1, 1))
        >>> x.addmm_(ms.ops.ones((1, 3)), ms.ops.ones((3, 1)), alpha=2).tolist()
        [[7.0]]
    """,
    "index_add_": """

    Args:
        dim (int): The axis.
        index (Tensor): The positions along it, a vector of n integers; negative ones count from the
            end.
        source (Tensor): The parts that are added, of the tensor's shape with n along `dim`.
        alpha (Tensor | float): The factor of `source`. Default: 1.

    Returns:
        Tensor: The tensor itself.

    Raises:
        IndexRangeError: If a position lies outside of the axis.
        ShapeError: If `source` has another shape.

    Examples:
        >>> import mycel as ms
        >>> x = ms.ops.zeros(3)
        >>> x.index_add_(0, ms.Tensor([2, 0]), ms.Tensor([1.0, 2.0]), alpha=2).tolist()
        [4.0, 0.0, 2.0]
    """,
}


def _named(method: Any, name: str, text: str) -> Any:
    """Return a method with its name and docstring."""
    method.__name__, method.__qualname__, method.__doc__ = name, f"Tensor.{name}", text
    return method


def _writer(name: str, function: Callable[..., Any]) -> Any:
    """Return the method `name`, which writes what `function` computes into the tensor."""

    def method(self: Tensor, *args: Any, **named: Any) -> Tensor:
        new = function(self, *args, **named)
        if new.shape != self.shape:
            raise ShapeError(
                f"{name}: the result has shape {new.shape}, the tensor {self.shape}; use {name[:-1]} for a new tensor"
            )
        new = cast(new, self.dtype)
        return self._replace(run(E.identity, new) if new is self else new)

    text = f"Return the tensor itself, after writing the result of `{name[:-1]}` into it."
    _named(method, name, text + _SECTIONS.get(name, ""))
    return with_signature(method, function)


def _filled(self: Tensor, value: Any) -> Tensor:
    """Return the tensor itself, after writing one value everywhere."""
    return self._replace(creation.full(self.shape, value, dtype=self.dtype))


def _zeroed(self: Tensor) -> Tensor:
    """Return the tensor itself, after writing zeros everywhere."""
    return _filled(self, 0)


def _copied(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Return the tensor itself, after writing the values of `src`, broadcast and converted, into
    it.
    """
    new = broadcast(operand("copy_", src, self.dtype), self.shape)
    return self._replace(run(E.identity, new) if new is src else new)


def _assign_value(self: Tensor, value: Any) -> Tensor:
    """Return the tensor itself, after taking over the values, the shape and the type of another
    one.

    A tensor with views and a parameter keep their own shape and type, which the values must fit.
    """
    if (
        type(self) is Tensor
        and isinstance(value, Tensor)
        and self._view is None
        and self._views is None
        and not eager.active
    ):
        self._type = value._type
    return self._replace(run(E.identity, fitted("assign_value", self, value)))


def _drawn(name: str, draw: Callable[..., Tensor]) -> Any:
    """Return the method `name`, which writes what `draw` draws into the tensor."""

    def method(self: Tensor, *args: Any, generator: Any = None, **named: Any) -> Tensor:
        return self._replace(cast(draw(self, generator or default_generator, *args, **named), self.dtype))

    _named(method, name, "Return the tensor itself, after writing random numbers from `generator` or the default one.")
    return drawing(method, draw)


def _uniform(self: Tensor, generator: Any, from_: Any = 0, to: Any = 1) -> Tensor:
    low, high = number_of("uniform_", "from_", from_), number_of("uniform_", "to", to)
    return random.draw(distributions.uniform, self.shape, generator, dtype=self.dtype) * (high - low) + low


def _normal(self: Tensor, generator: Any, mean: Any = 0, std: Any = 1) -> Tensor:
    middle, spread = number_of("normal_", "mean", mean), number_of("normal_", "std", std)
    return random.draw(distributions.normal, self.shape, generator, dtype=self.dtype) * spread + middle


def _integers(self: Tensor, generator: Any, from_: int = 0, to: int | None = None) -> Tensor:
    if to is None:
        # Up to where the type still holds every integer.
        digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
        to = 2 ** digits[self.dtype.name] if self.dtype.is_floating else builtins.int(np.iinfo(self.dtype.numpy).max)
    low, high = size_of("random_", from_), size_of("random_", to)
    return random.draw(distributions.randint, self.shape, generator, dtype=D.int64, low=low, high=high)


def _coins(self: Tensor, generator: Any, p: Any = 0.5) -> Tensor:
    if isinstance(p, Tensor):
        return random.draw(distributions.uniform, self.shape, generator, dtype=D.float32) < p
    return random.draw(distributions.bernoulli, self.shape, generator, probability=random.chance("bernoulli_", p))


def _exponentials(self: Tensor, generator: Any, lambd: Any = 1) -> Tensor:
    rate = number_of("exponential_", "lambd", lambd)
    return run(E.log1p, -random.draw(distributions.uniform, self.shape, generator, dtype=self.dtype)) / -rate


def _multinomial(self: Tensor, num_samples: int, replacement: bool = True, seed: int | None = None) -> Tensor:
    """Return positions drawn with the given weights. See `mycel.ops.multinomial`."""
    return random.multinomial(self, num_samples, replacement, seed)


def _bernoulli(self: Tensor, *, generator: Any = None) -> Tensor:
    """Return 1 with the probability that each element names and 0 otherwise, in the
    tensor's type.
    """
    return cast(
        random.draw(distributions.uniform, self.shape, generator or default_generator, dtype=D.float32) < self,
        self.dtype,
    )


def _diagonal_filled(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Return a tensor with one value on its main diagonal.

    In a tall matrix `wrap` repeats the diagonal below each square, after a row between.
    """
    if self.ndim < 2 or (self.ndim > 2 and len(set(self.shape)) > 1):
        raise ShapeError(f"fill_diagonal_: takes a matrix, or a tensor of equal sizes, not {self._type}")
    rows, columns = self.shape[0], self.shape[-1]
    step = builtins.sum(columns**i for i in builtins.range(self.ndim)) if self.ndim > 2 else columns + 1
    stop = self.size if wrap or self.ndim > 2 else builtins.min(rows, columns) * columns
    count = -(-stop // step)
    values = broadcast(term("fill_diagonal_", fill_value, self.dtype), (count,))
    return reshaped(views.put_block(flat(self), (0,), (step,), values), self.shape)


def _copied_along(self: Tensor, dim: int, index: Any, tensor: Any) -> Tensor:
    """Return a tensor with the parts of another one at the positions of a vector along an axis."""
    return gather_scatter._along("index_copy_", self, dim, index, operand("index_copy_", tensor, self.dtype), "set")


def _put(self: Tensor, index: Any, source: Any, accumulate: bool = False) -> Tensor:
    """Return a tensor with the elements of `source` at flat positions, or added there with
    `accumulate`.
    """
    places, new = operand("put_", index), operand("put_", source, self.dtype)
    if not places.dtype.is_integer or places.size != new.size:
        raise ValueError(f"put_: takes integer positions and as many values, not {places._type} and {new._type}")
    places = cast_index("put_", places)
    mode = "add" if accumulate else "set"
    return reshaped(run(I.scatter_nd, flat(self), reshaped(places, (places.size, 1)), flat(new), mode=mode), self.shape)


def attach(others: dict[str, Callable[..., Any]]) -> None:
    """Attach the methods; `others` names functions that compute new values for more of them."""
    more: dict[str, Callable[..., Any]] = {
        "fill_diagonal_": _diagonal_filled,
        "index_copy_": _copied_along,
        "put_": _put,
    }
    for name, function in {**_IN_PLACE, **more, **others}.items():
        setattr(Tensor, name, _writer(name, function))
    methods = {
        "fill_": _filled,
        "zero_": _zeroed,
        "copy_": _copied,
        "assign_value": _assign_value,
        "uniform_": _drawn("uniform_", _uniform),
        "normal_": _drawn("normal_", _normal),
        "random_": _drawn("random_", _integers),
        "bernoulli_": _drawn("bernoulli_", _coins),
        "exponential_": _drawn("exponential_", _exponentials),
        "multinomial": _multinomial,
        "bernoulli": _bernoulli,
    }
    for name, method in methods.items():
        setattr(Tensor, name, method)
