"""The methods of tensors that reduce, order or accumulate along axes, in both of MindSpore's
spellings.

``axis``/``keepdims`` and ``dim``/``keepdim`` name the same parameters; giving both is an error.
"""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops import activation, properties, reduction, sorting
from mycel.ops._operands import flat, number_of
from mycel.ops.algebra import norms

__all__: list[str] = []

UNSET: Any = object()


def _choose(name: str, first: Any, second: Any, default: Any, words: str) -> Any:
    """Return the one of two spellings of a parameter that was given."""
    if first is not UNSET and second is not UNSET:
        raise TypeError(f"{name}: {words} name the same parameter; give one of them")
    return first if first is not UNSET else second if second is not UNSET else default


def axes(name: str, axis: Any, dim: Any, default: Any = None) -> Any:
    """Return the axes given as `axis` or as `dim`, else `default`.

    `name` is the method. Raises TypeError where both are given.
    """
    return _choose(name, axis, dim, default, "axis and dim")


def _keep(name: str, *given: Any) -> bool:
    """Return whether reduced axes stay, from the one spelling of three that is given."""
    chosen = [g for g in given if g is not UNSET]
    if len(chosen) > 1:
        raise TypeError(f"{name}: keepdims, keepdim and keep_dims name the same parameter; give one of them")
    return arguments.flag(name, "keepdims", chosen[0]) if chosen else False


@fused
def _sum(
    self: Tensor,
    axis: Any = UNSET,
    dtype: Any = None,
    keepdims: Any = UNSET,
    initial: Any = None,
    *,
    dim: Any = UNSET,
    keepdim: Any = UNSET,
) -> Tensor:
    """Return the sum over an axis, several, or all, plus `initial`.

    See `mycel.ops.sum`.

    Args:
        axis (int | tuple[int, ...] | None): The axis, or axes; None for all.
        dtype (DType | None): The element type of the result; None for the default. Default: None.
        keepdims (bool): Whether reduced axes stay with size 1.
        initial (Tensor | float | None): What is added. Default: None.
        dim (int | tuple[int, ...] | None): Another name of `axis`.
        keepdim (bool): Another name of `keepdims`.

    Returns:
        Tensor: The sums.
    """
    if isinstance(dtype, bool):
        dtype, keepdims = None, dtype
    result = reduction.sum(self, axes("sum", axis, dim), _keep("sum", keepdims, keepdim), dtype=dtype)
    return result if initial is None else result + number_of("sum", "initial", initial)


@fused
def _mean(
    self: Tensor,
    axis: Any = UNSET,
    keep_dims: Any = UNSET,
    *,
    dim: Any = UNSET,
    keepdim: Any = UNSET,
    keepdims: Any = UNSET,
    dtype: Any = None,
) -> Tensor:
    """Return the mean over an axis, several, or all.

    See `mycel.ops.mean`.

    Args:
        axis (int | tuple[int, ...] | None): The axis, or axes; None for all.
        keep_dims (bool): Whether reduced axes stay with size 1.
        dim (int | tuple[int, ...] | None): Another name of `axis`.
        keepdim (bool): Another name of `keep_dims`.
        keepdims (bool): Another name of `keep_dims`.
        dtype (DType | None): The element type of the result; None for the default. Default: None.

    Returns:
        Tensor: The means.
    """
    x = self if dtype is None else properties.cast(self, dtype)
    return reduction.mean(x, axes("mean", axis, dim), _keep("mean", keep_dims, keepdim, keepdims))


@fused
def _prod(
    self: Tensor,
    axis: Any = UNSET,
    keep_dims: Any = UNSET,
    dtype: Any = None,
    *,
    dim: Any = UNSET,
    keepdim: Any = UNSET,
    keepdims: Any = UNSET,
) -> Tensor:
    """Return the product over an axis, several, or all.

    See `mycel.ops.prod`.

    Args:
        axis (int | tuple[int, ...] | None): The axis, or axes; None for all.
        keep_dims (bool): Whether reduced axes stay with size 1.
        dtype (DType | None): The element type of the result; None for the default. Default: None.
        dim (int | tuple[int, ...] | None): Another name of `axis`.
        keepdim (bool): Another name of `keep_dims`.
        keepdims (bool): Another name of `keep_dims`.

    Returns:
        Tensor: The products.
    """
    return reduction.prod(self, axes("prod", axis, dim), _keep("prod", keep_dims, keepdim, keepdims), dtype)


def _spread(name: str) -> Any:
    """Return the method of a standard deviation or a variance."""
    function = getattr(reduction, name)

    def method(
        self: Tensor,
        axis: Any = UNSET,
        ddof: Any = UNSET,
        keepdims: Any = UNSET,
        *,
        dim: Any = UNSET,
        correction: Any = UNSET,
        keepdim: Any = UNSET,
        unbiased: Any = UNSET,
    ) -> Tensor:
        degrees = _choose(
            name, ddof, _choose(name, correction, unbiased, UNSET, "correction and unbiased"), 0, "ddof and correction"
        )
        # Only the variance takes its axes as a list, under their name `dim`.
        dim = tuple(dim) if name == "var" and isinstance(dim, list) else dim
        return function(self, axes(name, axis, dim), degrees, _keep(name, keepdims, keepdim))

    given = ("axis", "ddof", "keepdims", "dim", "correction", "keepdim", "unbiased")
    return _named(method, name, _text(f"Return `mycel.ops.{name}` of the tensor.", given, "Tensor: The results."))


def _test(name: str) -> Any:
    """Return the method of a reduction of booleans."""
    function = getattr(reduction, name)

    def method(
        self: Tensor,
        axis: Any = UNSET,
        keep_dims: Any = UNSET,
        *,
        dim: Any = UNSET,
        keepdim: Any = UNSET,
        keepdims: Any = UNSET,
    ) -> Tensor:
        return function(self, axes(name, axis, dim), _keep(name, keep_dims, keepdim, keepdims))

    given = ("axis", "keep_dims", "dim", "keepdim", "keepdims")
    return _named(method, name, _text(f"Return `mycel.ops.{name}` of the tensor.", given, "Tensor: Booleans."))


def _extreme(name: str) -> Any:
    """Return the method of a largest or smallest element."""
    both, only = getattr(reduction, name), getattr(reduction, f"a{name}")

    def method(
        self: Tensor,
        dim: Any = UNSET,
        keepdim: Any = UNSET,
        *,
        axis: Any = UNSET,
        keepdims: Any = UNSET,
        initial: Any = None,
        where: Any = None,
        return_indices: bool = False,
    ) -> Any:
        keep = _keep(name, keepdim, keepdims)
        if dim is not UNSET and dim is not None and not isinstance(dim, (tuple, list)) and keepdims is UNSET:
            return both(self, dim, keep, initial=initial, where=where)
        where_axis = axes(name, axis, UNSET if dim is None else dim)
        if return_indices:
            return both(self, where_axis, keep, initial=initial, where=where)
        return only(self, where_axis, keep, initial=initial, where=where)

    first = (
        f"Return the {name}imum over all elements, or over `axis`; over `dim` (also given by position)\n"
        f"    with its position, as `mycel.ops.{name}`."
    )
    given = ("dim", "keepdim", "axis", "keepdims", "initial", "where", "return_indices")
    result = "Tensor | tuple[Tensor, Tensor]: The values, and along an axis their positions."
    return _named(method, name, _text(first, given, result))


def _position(name: str) -> Any:
    """Return the method of the position of a largest or smallest element."""
    function = getattr(reduction, name)

    def method(
        self: Tensor, axis: Any = UNSET, keepdims: Any = UNSET, *, dim: Any = UNSET, keepdim: Any = UNSET
    ) -> Tensor:
        return function(self, axes(name, axis, dim), _keep(name, keepdims, keepdim))

    given = ("axis", "keepdims", "dim", "keepdim")
    return _named(method, name, _text(f"Return `mycel.ops.{name}` of the tensor.", given, "Tensor: Positions."))


# What parameters of methods are, each of which goes by the names of several libraries.
_MEANINGS = {
    "axis": "(int | tuple[int, ...] | None): The axis, or axes; None for all.",
    "dim": "(int | tuple[int, ...] | None): The same under another name.",
    "keepdims": "(bool): Whether reduced axes stay with size 1.",
    "keepdim": "(bool): The same under another name.",
    "keep_dims": "(bool): The same under another name.",
    "ddof": "(int | bool): What is subtracted from the number of elements.",
    "correction": "(int): The same under another name.",
    "unbiased": "(bool): The same under another name.",
    "initial": "(Tensor | float | None): One more value to choose from. Default: None.",
    "where": "(Tensor | bool | None): Which elements count. Default: None.",
    "return_indices": "(bool): Whether positions along `axis` are returned as well. Default: False.",
    "descending": "(bool): Whether the order is descending. Default: False.",
    "stable": "(bool): Has no effect: sorting is always stable. Default: True.",
}


def _text(first: str, names: tuple[str, ...], result: str) -> str:
    """Return the docstring of a method that takes parameters of `_MEANINGS`."""
    listed = "\n        ".join(f"{name} {_MEANINGS[name]}" for name in names)
    return f"{first}\n\n    Args:\n        {listed}\n\n    Returns:\n        {result}\n    "


def _named(method: Any, name: str, text: str) -> Any:
    """Return a method with its name and docstring."""
    method.__name__, method.__qualname__, method.__doc__ = name, f"Tensor.{name}", text
    return method


@fused
def _logsumexp(
    self: Tensor,
    axis: Any = UNSET,
    keepdims: Any = UNSET,
    *,
    dim: Any = UNSET,
    keepdim: Any = UNSET,
    keep_dims: Any = UNSET,
) -> Tensor:
    """Return the logarithms of sums of exponentials over axes.

    See `mycel.ops.logsumexp`.

    Args:
        axis (int | tuple[int, ...] | None): The axis, or axes; None for all.
        keepdims (bool): Whether reduced axes stay with size 1.
        dim (int | tuple[int, ...] | None): Another name of `axis`.
        keepdim (bool): Another name of `keepdims`.
        keep_dims (bool): Another name of `keepdims`.

    Returns:
        Tensor: The logarithms.
    """
    return reduction.logsumexp(self, axes("logsumexp", axis, dim), _keep("logsumexp", keepdims, keepdim, keep_dims))


@fused
def _nansum(
    self: Tensor,
    axis: Any = UNSET,
    keepdims: bool = False,
    *,
    dim: Any = UNSET,
    keepdim: Any = UNSET,
    dtype: Any = None,
) -> Tensor:
    """Return the sum over axes, with NaN as 0.

    See `mycel.ops.nansum`.

    Args:
        axis (int | tuple[int, ...] | None): The axis, or axes; None for all.
        keepdims (bool): Whether reduced axes stay with size 1. Default: False.
        dim (int | tuple[int, ...] | None): Another name of `axis`.
        keepdim (bool): Another name of `keepdims`.
        dtype (DType | None): The element type of the result; None for the default. Default: None.

    Returns:
        Tensor: The sums.
    """
    keep = keepdims if keepdim is UNSET else keepdim
    return reduction.nansum(self, axes("nansum", axis, dim), keep, dtype=dtype)


@fused
def _count_nonzero(
    self: Tensor, axis: Any = UNSET, keep_dims: bool = False, dtype: Any = D.int32, *, dim: Any = UNSET
) -> Tensor:
    """Return the number of elements that are not 0, over axes.

    See `mycel.ops.count_nonzero`.

    Args:
        axis (int | tuple[int, ...] | None): The axis, or axes; None for all.
        keep_dims (bool): Whether reduced axes stay with size 1. Default: False.
        dtype (DType | None): The element type of the result; None for the default. Default: int32.
        dim (int | tuple[int, ...] | None): Another name of `axis`.

    Returns:
        Tensor: The counts.
    """
    return reduction.count_nonzero(self, axes("count_nonzero", axis, dim, ()), keep_dims, dtype or D.int32)


def _ptp(self: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the largest less the smallest element over an axis, several, or all."""
    return reduction.amax(self, axis, keepdims) - reduction.amin(self, axis, keepdims)


@fused
def _norm(self: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the norm of vectors (one axis, or all elements) or of matrices (two axes).

    See `mycel.ops.norm`.

    Args:
        ord (int | float | str | None): Any number for vectors, an order of `matrix_norm` for
            matrices; None for the 2-norm of all elements over `dim`. Default: None.
        dim (int | tuple[int, ...] | None): The axis, or axes; None for all elements. Default: None.
        keepdim (bool): Whether axes stay with size 1. Default: False.
        dtype (DType | None): The type to compute in; None for that of the tensor. Default: None.

    Returns:
        Tensor: The norms.
    """
    return norms.norm(self, ord, dim, keepdim, dtype=dtype)


@fused
def _cumsum(self: Tensor, axis: Any = UNSET, dtype: Any = None, *, dim: Any = UNSET) -> Tensor:
    """Return the running sums along an axis, or of the flattened tensor without one.

    Booleans and 8- and 16-bit integers are summed in int32. See `mycel.ops.cumsum`.
    """
    if dtype is None and self.dtype in (D.bool_, D.int8, D.int16, D.uint8):
        dtype = D.int32
    where = axes("cumsum", axis, dim)
    return sorting.cumsum(flat(self), 0, dtype) if where is None else sorting.cumsum(self, where, dtype)


def _ordered(name: str) -> Any:
    """Return the method of a sort."""
    function = getattr(sorting, name)

    def method(
        self: Tensor, axis: Any = UNSET, descending: bool = False, *, dim: Any = UNSET, stable: bool = True
    ) -> Any:
        return function(self, axes(name, axis, dim, -1), descending)

    given = ("axis", "descending", "dim", "stable")
    result = "Tensor: Positions." if name == "argsort" else "tuple[Tensor, Tensor]: The elements, and their positions."
    return _named(method, name, _text(f"Return `mycel.ops.{name}` of the tensor.", given, result))


def _median(self: Tensor, axis: Any = UNSET, keepdims: Any = UNSET, *, dim: Any = UNSET, keepdim: Any = UNSET) -> Any:
    """Return the medians along an axis, and their positions.

    See `mycel.ops.median`.

    Args:
        axis (int | tuple[int, ...] | None): The axis; None for all elements.
        keepdims (bool): Whether reduced axes stay with size 1.
        dim (int | tuple[int, ...] | None): Another name of `axis`.
        keepdim (bool): Another name of `keepdims`.

    Returns:
        Tensor | tuple[Tensor, Tensor]: The medians, and along an axis their positions.
    """
    return sorting.median(self, axes("median", axis, dim, -1), _keep("median", keepdims, keepdim))


def _searchsorted(self: Tensor, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Return the positions at which values would be put into the tensor, which is sorted.

    See `mycel.ops.searchsorted`.
    """
    return sorting.searchsorted(self, v, side=side, sorter=sorter)


@fused
def _softmax(self: Tensor, axis: int = -1, dtype: Any = None, *, dim: Any = UNSET) -> Tensor:
    """Return the soft-max along an axis. See `mycel.ops.softmax`."""
    return activation.softmax(self, axis if dim is UNSET else dim, dtype=dtype)


def _argmax_with_value(self: Tensor, axis: int = 0, keep_dims: bool = False) -> Any:
    """Return the largest element along an axis, and its position."""
    return reduction.max(self, axis, keep_dims)


def _argmin_with_value(self: Tensor, axis: int = 0, keep_dims: bool = False) -> Any:
    """Return the smallest element along an axis, and its position."""
    return reduction.min(self, axis, keep_dims)


methods: dict[str, Any] = {
    "sum": _sum,
    "mean": _mean,
    "prod": _prod,
    "std": _spread("std"),
    "var": _spread("var"),
    "any": _test("any"),
    "all": _test("all"),
    "max": _extreme("max"),
    "min": _extreme("min"),
    "argmax": _position("argmax"),
    "argmin": _position("argmin"),
    "argmax_with_value": _argmax_with_value,
    "argmin_with_value": _argmin_with_value,
    "ptp": _ptp,
    "logsumexp": _logsumexp,
    "nansum": _nansum,
    "count_nonzero": _count_nonzero,
    "norm": _norm,
    "cumsum": _cumsum,
    "sort": _ordered("sort"),
    "argsort": _ordered("argsort"),
    "median": _median,
    "searchsorted": _searchsorted,
    "softmax": _softmax,
}
